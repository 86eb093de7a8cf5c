-- Purpose: payments, refunds, idempotency keys and events: what one change of a payment writes.
--
-- Every primary key begins with environment_id (tenancy, row-level security, reset, and the column
-- to distribute by). Ids sort by time, so the primary key is also the order of the default list.
-- body is the resource as JSON text, made once in TypeScript and stored, sent, signed and replayed
-- as the same bytes; the columns beside it are what the database itself decides and filters by.
-- No table has a foreign key to a row that every request shares: it would serialise all creates.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

create table pay.payments (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  status text collate "C" not null,
  amount_minor bigint not null,
  amount_refunded bigint not null,
  currency text collate "C" not null,
  method_kind text collate "C" not null,
  reference text collate "C",
  sequence integer not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  body text not null,
  constraint payments_pkey primary key (environment_id, id),
  constraint payments_status_known check (status in (
    'pending', 'requires_action', 'processing', 'completed', 'declined', 'failed', 'cancelled',
    'partially_refunded', 'refunded', 'chargeback'
  )),
  constraint payments_amount_minor_in_range check (amount_minor between 1 and 999999999999),
  constraint payments_amount_refunded_in_range check (amount_refunded between 0 and amount_minor),
  constraint payments_refunded_agrees_with_status check (
    case status
      when 'partially_refunded' then amount_refunded > 0 and amount_refunded < amount_minor
      when 'refunded' then amount_refunded = amount_minor
      when 'chargeback' then amount_refunded < amount_minor
      else amount_refunded = 0
    end
  ),
  constraint payments_method_kind_known check (method_kind in ('card', 'sepa', 'swift', 'stablecoin')),
  constraint payments_sequence_positive check (sequence > 0)
) with (fillfactor = 90);
comment on table pay.payments is 'A payment as it stands now.';
comment on column pay.payments.environment_id is 'The environment of the row.';
comment on column pay.payments.id is 'The id in answers; sorts by time.';
comment on column pay.payments.status is 'Status, as in answers.';
comment on column pay.payments.amount_minor is 'Amount in minor units.';
comment on column pay.payments.currency is 'ISO 4217 code.';
comment on column pay.payments.method_kind is 'The kind of payment method, as in answers.';
comment on column pay.payments.created_at is 'Time of creation.';
comment on column pay.payments.updated_at is 'Time of the last change.';
comment on column pay.payments.amount_refunded is 'Sum of the payment''s refunds, minor units.';
comment on column pay.payments.reference is 'The merchant''s own reference, here because lists filter by it.';
comment on column pay.payments.sequence is 'Number of the payment''s newest event. A change compares it and sets it.';
comment on column pay.payments.body is 'The payment as JSON text, as it is answered.';

-- Only the primary key begins with the environment, here and in the other indexes for lists, so the
-- planner has no other index for a search by key. pay.list_range describes how lists use these
-- indexes.
-- Lists with reference=.
create index payments_reference on pay.payments (reference, environment_id, id)
  where reference is not null;
comment on index pay.payments_reference is 'pay.list_column: lists with reference=.';

-- Lists with status= other than completed; completed is common enough for the primary key.
create index payments_status on pay.payments (status, environment_id, id)
  where status <> 'completed';
comment on index pay.payments_status is 'pay.list_column: lists with status=.';

create table pay.refunds (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  payment_id text collate "C" not null,
  amount_minor bigint not null,
  currency text collate "C" not null,
  created_at timestamptz not null,
  body text not null,
  constraint refunds_pkey primary key (environment_id, id),
  constraint refunds_amount_minor_positive check (amount_minor > 0)
);
comment on table pay.refunds is 'Money given back on a payment. Never changes.';
comment on column pay.refunds.environment_id is 'The environment of the row.';
comment on column pay.refunds.id is 'The id in answers; sorts by time.';
comment on column pay.refunds.payment_id is 'The payment that is refunded.';
comment on column pay.refunds.amount_minor is 'Amount in minor units.';
comment on column pay.refunds.currency is 'Currency of the payment.';
comment on column pay.refunds.created_at is 'Time of creation.';
comment on column pay.refunds.body is 'The refund as JSON text, as it is answered.';

create index refunds_payment on pay.refunds (payment_id, environment_id, id);
comment on index pay.refunds_payment is 'pay.list_column: the refunds of a payment.';

create table pay.events (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  type text collate "C" not null,
  subject_id text collate "C" not null,
  sequence integer,
  created_at timestamptz not null,
  body text not null,
  constraint events_pkey primary key (environment_id, id),
  constraint events_subject_sequence_key unique (environment_id, subject_id, sequence),
  constraint events_sequence_positive check (sequence > 0)
);
comment on table pay.events is 'A change of a resource. Written in the transaction of the change; never changes.';
comment on column pay.events.environment_id is 'The environment of the row.';
comment on column pay.events.id is 'The id in answers; sorts by time.';
comment on column pay.events.type is 'Type, for example payment.completed.';
comment on column pay.events.created_at is 'Time of creation.';
comment on column pay.events.subject_id is 'The resource that changed. Events of one subject are ordered by sequence.';
comment on column pay.events.sequence is 'Null for a triggered event, which changes nothing.';
comment on column pay.events.body is 'The payload as JSON text, as it is signed and sent.';

create table pay.idempotency_keys (
  environment_id text collate "C" not null,
  api_key_id text collate "C" not null,
  key text collate "C" not null,
  fingerprint bytea not null,
  request_id text collate "C" not null,
  status smallint not null,
  body text not null,
  created_at timestamptz not null,
  constraint idempotency_keys_pkey primary key (environment_id, api_key_id, key),
  constraint idempotency_keys_key_length check (length(key) between 1 and 255),
  constraint idempotency_keys_fingerprint_length check (length(fingerprint) = 32)
);
comment on table pay.idempotency_keys is 'The first answer to a keyed request, replayed for 24 hours.';
comment on column pay.idempotency_keys.environment_id is 'The environment of the row.';
comment on column pay.idempotency_keys.api_key_id is 'The API key of the request.';
comment on column pay.idempotency_keys.key is 'The Idempotency-Key header.';
comment on column pay.idempotency_keys.body is 'The body of the answer, byte for byte.';
comment on column pay.idempotency_keys.created_at is 'Time of the first request.';
comment on column pay.idempotency_keys.status is 'HTTP status of the answer; 102 while a triggered attempt is under way.';
comment on column pay.idempotency_keys.fingerprint is 'SHA-256 of method, path and canonical body.';
comment on column pay.idempotency_keys.request_id is 'The first request; identifies the winner of concurrent twins.';

-- Finds the keys to purge. A B-tree, though their rows come in the order of time: a BRIN index is read
-- whole, and the table with it, once vacuumed room is used again (a block's summary then reaches from
-- the first rows it ever had to the newest) or a summary was interrupted (what follows counts as
-- without one, also after a vacuum). Measured at 5 000 000 keys: one interrupted, 15 s for each look
-- for what has outlived; here 0.1 ms, 4 ms with a million purged keys that wait for a vacuum.
-- By environment, because each sandbox can have a clock of its own. All rows are in it; the predicate,
-- which only the purge repeats, keeps the planner from looking keys up here: before the first analyze
-- it takes any index that begins alike.
create index idempotency_keys_age on pay.idempotency_keys (environment_id, created_at)
  where created_at > '-infinity';
comment on index pay.idempotency_keys_age is 'pay.purge_idempotency_keys: the oldest keys of an environment.';

alter table pay.payments enable row level security;
alter table pay.payments force row level security;
alter table pay.refunds enable row level security;
alter table pay.refunds force row level security;
alter table pay.events enable row level security;
alter table pay.events force row level security;
alter table pay.idempotency_keys enable row level security;
alter table pay.idempotency_keys force row level security;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
