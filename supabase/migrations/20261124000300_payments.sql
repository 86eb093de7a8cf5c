-- Purpose: payments, refunds, disputes, transfers, events and idempotency keys: what a change
-- writes.
--
-- Every primary key begins with environment_id (tenancy, row-level security, reset, and the column
-- to distribute by). Ids sort by time, so the primary key is also the order of the default list.
-- body is the resource as JSON text, made once in TypeScript and stored, sent, signed and replayed
-- as the same bytes. The other columns are those that the database itself decides and filters by.
-- No table has a foreign key to a row that every request shares: it would serialise all creates.
--
-- The captured amount of a payment is amount_minor - amount_released once its money has moved.

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
  customer_id text collate "C",
  instrument_id text collate "C",
  checkout_id text collate "C",
  sequence integer not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  amount_released bigint not null default 0,
  amount_refunding bigint not null default 0,
  amount_disputed bigint not null default 0,
  is_erased boolean not null default false,
  is_counted boolean not null default false,
  body text not null,
  constraint payments_pkey primary key (environment_id, id),
  constraint payments_status_known check (status in (
    /* payment statuses */ 'pending', 'requires_action', 'processing', 'authorized', 'completed',
    'declined', 'failed', 'cancelled', 'partially_refunded', 'refunded', 'chargeback'
  )),
  constraint payments_amount_minor_in_range check (amount_minor between 0 and 999999999999),
  constraint payments_method_kind_known check (method_kind in (
    /* method kinds */ 'card', 'sepa', 'swift', 'stablecoin'
  )),
  constraint payments_sequence_positive check (sequence > 0),
  constraint payments_released_in_range check (
    amount_released between 0 and greatest(amount_minor - 1, 0)
  ),
  -- A payment of 0 only saves its instrument.
  constraint payments_of_nothing_saves check (
    amount_minor > 0 or instrument_id is not null and status not in (
      'authorized', 'partially_refunded', 'refunded', 'chargeback')
  ),
  constraint payments_refunds_in_range check (
    amount_refunded >= 0 and amount_refunding >= 0
    and amount_refunded + amount_refunding <= amount_minor - amount_released
  ),
  -- Short, because PostgreSQL reads the text of a constraint in every statement that inserts.
  constraint payments_money_agrees_with_status check (
    (amount_disputed > 0) = (status = 'chargeback') and amount_disputed >= 0
    and case status
      when 'completed' then amount_refunded = 0
      when 'partially_refunded'
        then amount_refunded > 0 and amount_refunded < amount_minor - amount_released
      when 'refunded' then amount_refunded = amount_minor - amount_released
      -- A payer can dispute a payment that was refunded, and a bank can return one.
      when 'chargeback' then true
      when 'failed' then true
      else amount_refunded + amount_refunding = 0
    end
  )
-- Retention searches for the oldest rows, and steps over those that it has deleted until a vacuum.
-- The same holds for each table with this setting.
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 10000);
comment on table pay.payments is 'A payment as it stands now.';
comment on column pay.payments.environment_id is 'The environment of the row.';
comment on column pay.payments.id is 'The id in responses; sorts by time.';
comment on column pay.payments.status is 'Status, as in responses.';
comment on column pay.payments.amount_minor is 'Amount in minor units.';
comment on column pay.payments.amount_refunded is 'Sum of the payment''s refunds, minor units.';
comment on column pay.payments.currency is 'ISO 4217 code.';
comment on column pay.payments.method_kind is 'The kind of payment method, as in responses.';
comment on column pay.payments.reference is 'The merchant''s own reference, here because lists filter by it.';
comment on column pay.payments.customer_id is 'The merchant''s own id of the customer, here because lists and the views of pay.expose filter by it.';
comment on column pay.payments.instrument_id is 'The instrument that the payment has saved or used, here because lists filter by it.';
comment on column pay.payments.checkout_id is 'The checkout whose attempt it is, here because lists filter by it.';
comment on column pay.payments.sequence is 'Number of the payment''s newest event. A change compares it and sets it.';
comment on column pay.payments.created_at is 'Time of creation.';
comment on column pay.payments.updated_at is 'Time of the last change.';
comment on column pay.payments.amount_released is 'The part of an authorized amount that the capture has released, minor units.';
comment on column pay.payments.amount_refunding is 'Sum of the payment''s pending refunds, minor units.';
comment on column pay.payments.amount_disputed is 'The amount that the payer has charged back, minor units.';
comment on column pay.payments.is_erased is 'Whether the customer''s personal data were erased. A change that was decided with them is stale.';
comment on column pay.payments.is_counted is 'Whether it was ever successful and counts for its checkout.';
comment on column pay.payments.body is 'The payment as JSON text, as responses show it.';

-- Only the primary key begins with the environment, here and in the other indexes for lists, so the
-- planner has no other index for a search by key. pay_internal.list_range describes how lists use
-- these indexes.
-- Lists with reference=.
create index payments_reference on pay.payments (reference, environment_id, id)
  where reference is not null;
comment on index pay.payments_reference is 'pay_internal.list_column: lists with reference=.';

-- Lists with customer_id=, and the views of pay.expose. A payment without a customer id, which is
-- the usual one, is not in it and pays nothing.
create index payments_customer on pay.payments (customer_id, environment_id, id)
  where customer_id is not null;
comment on index pay.payments_customer is 'pay_internal.list_column: lists with customer_id=.';

-- Lists with instrument_id=.
create index payments_instrument on pay.payments (instrument_id, environment_id, id)
  where instrument_id is not null;
comment on index pay.payments_instrument is 'pay_internal.list_column: lists with instrument_id=.';

-- Lists with checkout_id=.
create index payments_checkout on pay.payments (checkout_id, environment_id, id)
  where checkout_id is not null;
comment on index pay.payments_checkout is 'pay_internal.list_column: lists with checkout_id=.';

-- Lists with status= other than completed; completed is common enough for the primary key.
create index payments_status on pay.payments (status, environment_id, id)
  where status <> 'completed';
comment on index pay.payments_status is 'pay_internal.list_column: lists with status=.';

create table pay.refunds (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  payment_id text collate "C" not null,
  amount_minor bigint not null,
  currency text collate "C" not null,
  created_at timestamptz not null,
  status text collate "C" not null default 'completed',
  body text not null,
  constraint refunds_pkey primary key (environment_id, id),
  constraint refunds_amount_minor_positive check (amount_minor > 0),
  constraint refunds_status_known check (status in (
    /* refund statuses */ 'pending', 'completed', 'failed'
  ))
);
comment on table pay.refunds is 'Money given back on a payment.';
comment on column pay.refunds.environment_id is 'The environment of the row.';
comment on column pay.refunds.id is 'The id in responses; sorts by time.';
comment on column pay.refunds.payment_id is 'The payment that is refunded.';
comment on column pay.refunds.amount_minor is 'Amount in minor units.';
comment on column pay.refunds.currency is 'Currency of the payment.';
comment on column pay.refunds.created_at is 'Time of creation.';
comment on column pay.refunds.status is 'Status, as in responses.';
comment on column pay.refunds.body is 'The refund as JSON text, as responses show it.';

create index refunds_payment on pay.refunds (payment_id, environment_id, id);
comment on index pay.refunds_payment is 'pay_internal.list_column: the refunds of a payment.';

create table pay.disputes (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  payment_id text collate "C" not null,
  status text collate "C" not null,
  amount_minor bigint not null,
  currency text collate "C" not null,
  provider_reference text collate "C",
  created_at timestamptz not null,
  body text not null,
  constraint disputes_pkey primary key (environment_id, id),
  constraint disputes_status_known check (
    status in ('needs_response', 'under_review', 'won', 'lost')
  ),
  constraint disputes_amount_minor_positive check (amount_minor > 0)
);
comment on table pay.disputes is 'A payment that the payer has charged back.';
comment on column pay.disputes.environment_id is 'The environment of the row.';
comment on column pay.disputes.id is 'The id in responses (dp_…); sorts by time.';
comment on column pay.disputes.payment_id is 'The payment that is disputed.';
comment on column pay.disputes.status is 'Status, as in responses.';
comment on column pay.disputes.amount_minor is 'Amount in minor units.';
comment on column pay.disputes.currency is 'Currency of the payment.';
comment on column pay.disputes.provider_reference is 'The provider''s id of the dispute; null in a sandbox.';
comment on column pay.disputes.created_at is 'Time of creation.';
comment on column pay.disputes.body is 'The dispute as JSON text, as responses show it.';

create unique index disputes_current on pay.disputes (environment_id, payment_id)
  where status <> 'won' and provider_reference is null;
comment on index pay.disputes_current is
  'pay_internal.read_resource: the dispute of a sandbox payment that is open or lost. Unique: the simulated provider opens one at a time.';

create index disputes_payment on pay.disputes (payment_id, environment_id, id);
comment on index pay.disputes_payment is
  'pay_internal.list_column: lists with payment_id=; pay_internal.dispute_body: the dispute of a provider event.';

create index disputes_status on pay.disputes (status, environment_id, id);
comment on index pay.disputes_status is 'pay_internal.list_column: lists with status=.';

create table pay.transfers (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  status text collate "C" not null,
  amount_minor bigint not null,
  currency text collate "C" not null,
  sequence integer not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  body text not null,
  constraint transfers_pkey primary key (environment_id, id),
  constraint transfers_status_known
    check (status in ('pending', 'completed', 'failed', 'cancelled')),
  constraint transfers_amount_minor_in_range check (amount_minor between 1 and 999999999999),
  constraint transfers_sequence_positive check (sequence > 0)
) with (fillfactor = 90);
comment on table pay.transfers is 'A transfer as it stands now.';
comment on column pay.transfers.environment_id is 'The environment of the row.';
comment on column pay.transfers.id is 'The id in responses; sorts by time.';
comment on column pay.transfers.status is 'Status, as in responses.';
comment on column pay.transfers.amount_minor is 'Amount in minor units.';
comment on column pay.transfers.currency is 'ISO 4217 code.';
comment on column pay.transfers.sequence is 'Number of the transfer''s newest event. A change compares it and sets it.';
comment on column pay.transfers.created_at is 'Time of creation.';
comment on column pay.transfers.updated_at is 'Time of the last change.';
comment on column pay.transfers.body is 'The transfer as JSON text, as responses show it.';

create index transfers_status on pay.transfers (status, environment_id, id);
comment on index pay.transfers_status is 'pay_internal.list_column: lists with status=.';

create table pay.events (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  type text collate "C" not null,
  subject_id text collate "C" not null,
  sequence integer,
  created_at timestamptz not null,
  body text,
  object text,
  before text[],
  request_id text collate "C",
  idempotency_key text collate "C",
  traceparent text collate "C",
  constraint events_pkey primary key (environment_id, id),
  constraint events_subject_sequence_key unique (environment_id, subject_id, sequence),
  constraint events_sequence_positive check (sequence > 0)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000);
comment on table pay.events is 'A change of a resource. Written in the transaction of the change; only an erasure changes it.';
comment on column pay.events.environment_id is 'The environment of the row.';
comment on column pay.events.id is 'The id in responses; sorts by time.';
comment on column pay.events.type is 'Type, for example payment.completed.';
comment on column pay.events.subject_id is 'The resource that changed. Events of one subject are ordered by sequence.';
comment on column pay.events.sequence is 'Null for a triggered event, which changes nothing.';
comment on column pay.events.created_at is 'Time of creation.';
comment on column pay.events.body is
  'The payload of an event of no change as JSON text; else null: pay_internal.event_body composes it.';
comment on column pay.events.object is
  'The object of the payload as JSON text; null: the payment or transfer as of the event (pay_internal.text_at).';
comment on column pay.events.before is
  'Splices that undo the event in the text of its payment or transfer: place, length, and the text that stood there; place 0 is the whole text.';
comment on column pay.events.request_id is 'The request of the event; null: a worker made it.';
comment on column pay.events.idempotency_key is 'The idempotency key of the request; null: none.';
comment on column pay.events.traceparent is
  'The place in a trace from which the event came, as its deliveries send it (W3C Trace Context); null: none.';

-- Earlier texts are derived from present ones (ADR 0002), so a change past the service would change
-- the past. Triggers refuse it to every role, and any change of an event or of a stored response.
-- They do not fire for a move between cells, whose subscription replicates what has changed, nor for
-- a restore, which only inserts. The exception is an erasure of personal data: it gives each event
-- the whole text before it (erasure.sql).
create function pay_internal.refuse_change()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if current_setting('pay.erasing', true) = 'on' then return null; end if;
  raise exception 'pay.%: the events and responses of the past depend on this row', tg_table_name
    using errcode = 'check_violation', constraint = tg_name, table = tg_table_name,
      hint = 'A text changes with a new event, which has the next sequence: send a request';
end
$$;
comment on function pay_internal.refuse_change() is
  'Refuses a change of a row on which the events and responses of the past depend.';

-- After the update, because a trigger before it would lock the row once more.
create trigger payments_text_stays after update on pay.payments for each row
  when (new.sequence <= old.sequence
    and (new.sequence < old.sequence or new.body is distinct from old.body))
  execute function pay_internal.refuse_change();

create trigger transfers_text_stays after update on pay.transfers for each row
  when (new.sequence <= old.sequence
    and (new.sequence < old.sequence or new.body is distinct from old.body))
  execute function pay_internal.refuse_change();

-- An event never changes. Its other columns are a part of what it shows, too.
create trigger events_stay after update on pay.events for each row
  when (new is distinct from old)
  execute function pay_internal.refuse_change();

create table pay.idempotency_keys (
  environment_id text collate "C" not null,
  api_key_id text collate "C" not null,
  key text collate "C" not null,
  fingerprint bytea not null,
  request_id text collate "C" not null,
  status smallint not null,
  body text,
  subject_id text collate "C",
  sequence integer,
  created_at timestamptz not null,
  advances_to timestamptz,
  request_line text collate "C" not null,
  replays integer not null default 0,
  constraint idempotency_keys_pkey primary key (environment_id, api_key_id, key),
  constraint idempotency_keys_key_length check (length(key) between 1 and 255),
  constraint idempotency_keys_fingerprint_length check (length(fingerprint) = 32),
  constraint idempotency_keys_has_body check (num_nonnulls(body, sequence) = 1)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000);
comment on table pay.idempotency_keys is 'The first response to a keyed request, replayed for 24 hours.';
comment on column pay.idempotency_keys.environment_id is 'The environment of the row.';
comment on column pay.idempotency_keys.api_key_id is 'The API key of the request.';
comment on column pay.idempotency_keys.key is 'The Idempotency-Key header.';
comment on column pay.idempotency_keys.fingerprint is 'SHA-256 of method, path and canonical body.';
comment on column pay.idempotency_keys.request_id is
  'The first request; identifies the winner of concurrent duplicates.';
comment on column pay.idempotency_keys.status is 'HTTP status of the response; 102 while a triggered attempt is under way.';
comment on column pay.idempotency_keys.body is
  'The body of the response, byte for byte; null: the payment or transfer at a sequence (pay_internal.text_at).';
comment on column pay.idempotency_keys.subject_id is 'The payment, transfer or instrument of the request; null: none.';
comment on column pay.idempotency_keys.sequence is 'The sequence of the payment or transfer; null: the response has a body of its own.';
comment on column pay.idempotency_keys.created_at is 'Time of the first request.';
comment on column pay.idempotency_keys.advances_to is 'Of a request that advances a clock: the end of its advance while the stored response is not complete; else null.';
comment on column pay.idempotency_keys.request_line is 'Method and path of the first request.';
comment on column pay.idempotency_keys.replays is 'How often the response was replayed. A replay is counted after it is sent.';

-- A request claims its key with an empty response, and stores the response when it has one.
create trigger idempotency_keys_stay after update on pay.idempotency_keys for each row
  when (old.body is distinct from '' and old.advances_to is null
    and (new.status <> old.status or new.body is distinct from old.body
      or new.subject_id is distinct from old.subject_id
      or new.sequence is distinct from old.sequence or new.fingerprint <> old.fingerprint
      or new.request_line <> old.request_line))
  execute function pay_internal.refuse_change();

-- Finds the keys to purge. A B-tree, though their rows come in the order of time: a BRIN index is
-- read whole, and the table with it, once vacuumed space is used again (a block's summary then
-- reaches from the first rows it ever had to the newest) or a summary was interrupted (what follows
-- counts as without one, also after a vacuum). Measured at 5 000 000 keys: one interrupted, 15 s
-- for each look for what has outlived; here 0.1 ms, 4 ms with a million purged keys that wait for a
-- vacuum. By environment, because each sandbox can have a clock of its own. All rows are in it; the
-- predicate, which only the purge repeats, keeps the planner from looking keys up here: before the
-- first analyze it takes any index that begins alike.
create index idempotency_keys_age on pay.idempotency_keys (environment_id, created_at)
  where created_at > '-infinity';
comment on index pay.idempotency_keys_age is 'pay_internal.purge_idempotency_keys: the oldest keys of an environment.';

-- Only responses with a body of their own are in it, so most creates pay nothing.
create index idempotency_keys_subject on pay.idempotency_keys (subject_id, environment_id)
  where body is not null and subject_id is not null;
comment on index pay.idempotency_keys_subject is
  'pay_internal.erase_responses: the responses about a payment or an instrument.';

-- The end of an advance completes the responses of those that have begun before it.
create index idempotency_keys_advances on pay.idempotency_keys (environment_id)
  where advances_to is not null;
comment on index pay.idempotency_keys_advances is
  'pay.step_clock: the responses of advances that have begun and not ended.';

create table pay.instruments (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  status text collate "C" not null,
  customer_id text collate "C",
  email text,
  name text,
  method_kind text collate "C" not null,
  method text,
  usage text collate "C" not null,
  is_kept boolean not null,
  mandate_id text collate "C",
  signed_at text collate "C",
  iban text collate "C",
  test_behaviour text collate "C",
  provider jsonb,
  payment_id text collate "C" not null,
  ended_reason text collate "C",
  last_used_at timestamptz,
  idle_at timestamptz,
  touched_at timestamptz not null,
  sequence integer not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  ended_at timestamptz,
  constraint instruments_pkey primary key (environment_id, id),
  constraint instruments_status_known check (status in ('pending', 'active', 'failed', 'ended')),
  constraint instruments_method_kind_known check (method_kind in ('card', 'sepa')),
  constraint instruments_usage_known check (usage in ('on_session', 'off_session')),
  constraint instruments_ended_has_reason check (
    (status = 'ended') = (ended_at is not null) and (status = 'ended') = (ended_reason is not null)
  ),
  constraint instruments_ended_reason_known check (ended_reason in (
    'deleted', 'erased', 'revoked', 'account_closed', 'used_up', 'idle', 'removed_at_provider'
  )),
  constraint instruments_has_mandate check (
    (method_kind = 'sepa') = (mandate_id is not null) and (mandate_id is null) = (signed_at is null)
    and (is_kept or mandate_id is not null)
  ),
  constraint instruments_sequence_positive check (sequence > 0)
) with (fillfactor = 90);
comment on table pay.instruments is 'A card, or a mandate of SEPA Direct Debit, that later payments can use.';
comment on column pay.instruments.environment_id is 'The environment of the row.';
comment on column pay.instruments.id is 'The id in responses (ins_…); sorts by time.';
comment on column pay.instruments.status is 'Status, as in responses.';
comment on column pay.instruments.customer_id is 'The merchant''s own id of the customer; null: no payment has named one.';
comment on column pay.instruments.email is 'E-mail address of the customer; null: none, or erased.';
comment on column pay.instruments.name is 'Name of the customer; null: none, or erased.';
comment on column pay.instruments.method_kind is 'The kind of payment method, as in responses.';
comment on column pay.instruments.method is 'The masked instrument as JSON text; null: the provider has not told it yet.';
comment on column pay.instruments.usage is 'on_session: only with the payer present. off_session: also without.';
comment on column pay.instruments.is_kept is 'False: the caller sends the IBAN with each payment, and the row only knows the mandate.';
comment on column pay.instruments.mandate_id is 'The merchant''s reference of the mandate; null for a card.';
comment on column pay.instruments.signed_at is 'When the payer signed the mandate, as it was sent.';
comment on column pay.instruments.iban is
  'The fingerprint of the only IBAN that is collected from: "<key id>:<HMAC>", and in a sandbox "sandbox:" and parts of it.';
comment on column pay.instruments.test_behaviour is 'What the simulated provider does with it; null in a live environment.';
comment on column pay.instruments.provider is 'The account and the references at a live provider; null: it needs none.';
comment on column pay.instruments.payment_id is 'The payment that has saved it. Retention can have deleted it.';
comment on column pay.instruments.ended_reason is 'Why it has ended; null unless ended.';
comment on column pay.instruments.last_used_at is 'The time of the last payment, by the clock of the environment.';
comment on column pay.instruments.idle_at is 'When the mandate ends if it is not used before; null: it does not end so.';
comment on column pay.instruments.touched_at is 'The real time of the last change, for retention.';
comment on column pay.instruments.sequence is 'Rises by one with each change of the status. A payment that uses the instrument compares it.';
comment on column pay.instruments.created_at is 'Time of creation.';
comment on column pay.instruments.updated_at is 'Time of the last change, without uses.';
comment on column pay.instruments.ended_at is 'The time of its end; null unless ended.';

-- To banks the id of a mandate is one in any case. A payment that failed has left the mandate free.
create unique index instruments_mandate
  on pay.instruments (environment_id, upper(mandate_id))
  where mandate_id is not null and status <> 'failed';
comment on index pay.instruments_mandate is
  'pay_internal.check_instruments: the instrument of a mandate. Unique: a mandate belongs to one IBAN and one customer.';

create index instruments_failed_mandate on pay.instruments (environment_id, upper(mandate_id))
  where mandate_id is not null and status = 'failed';
comment on index pay.instruments_failed_mandate is
  'pay_internal.check_instruments: the IBAN and the customer of a mandate whose save has failed.';

create index instruments_customer on pay.instruments (customer_id, environment_id, id)
  where customer_id is not null;
comment on index pay.instruments_customer is 'pay_internal.list_column: lists with customer_id=.';

create index instruments_token on pay.instruments ((provider ->> 'token'), environment_id)
  where provider ->> 'token' is not null;
comment on index pay.instruments_token is
  'pay_internal.find_instrument_payment, pay_internal.detach_instrument: the instrument of a card at the provider.';

create index instruments_kept on pay.instruments (environment_id, customer_id)
  where is_kept and status in ('pending', 'active');
comment on index pay.instruments_kept is 'pay_internal.check_instruments: how many a customer has.';

create index instruments_idle on pay.instruments (environment_id, idle_at)
  where idle_at is not null;
comment on index pay.instruments_idle is 'pay_internal.end_idle_instruments: the mandates that end next.';

create index instruments_touched on pay.instruments (environment_id, touched_at)
  where test_behaviour is not null;
comment on index pay.instruments_touched is
  'pay_internal.purge_instruments: those of a sandbox that nobody uses. A live one is not in it.';

create table pay.checkouts (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  salt text collate "C" not null,
  token_hash bytea not null,
  status text collate "C" not null default 'open',
  max_payments integer,
  payments_count integer not null default 0,
  payment_id text collate "C",
  attempts integer not null default 0,
  attempt_id text collate "C",
  declines integer not null default 0,
  declines_since timestamptz,
  reference text collate "C",
  customer_id text collate "C",
  expires_at timestamptz,
  revision integer not null default 1,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  body text not null,
  constraint checkouts_pkey primary key (environment_id, id),
  constraint checkouts_token_hash_length check (length(token_hash) = 32),
  constraint checkouts_status_known check (status in ('open', 'completed', 'cancelled')),
  -- A link is open until it expires or is cancelled.
  constraint checkouts_of_one_end check (
    case status when 'completed' then max_payments = 1 and payments_count > 0 else true end
    and (max_payments is null or max_payments = 1 and expires_at is not null)
  ),
  constraint checkouts_counts_agree check (
    payments_count >= 0 and payments_count <= attempts
    and (payments_count = 0) = (payment_id is null)
    and (attempts = 0) = (attempt_id is null) and declines >= 0 and declines <= attempts
    and (declines = 0) = (declines_since is null)
  )
) with (fillfactor = 90);
comment on table pay.checkouts is 'A page on which a payer pays: a container of attempts, which are payments.';
comment on column pay.checkouts.environment_id is 'The environment of the row.';
comment on column pay.checkouts.id is 'The id in responses (chk_…); sorts by time.';
comment on column pay.checkouts.salt is 'The token in the URL is derived from it and the master secret.';
comment on column pay.checkouts.token_hash is 'SHA-256 of the token in the URL.';
comment on column pay.checkouts.status is 'Status, as in responses, but an expired one is still open.';
comment on column pay.checkouts.max_payments is '1; null: a link, which any number of payers can pay.';
comment on column pay.checkouts.payments_count is 'The payments that were ever successful. It never falls.';
comment on column pay.checkouts.payment_id is 'The last successful payment.';
comment on column pay.checkouts.attempts is 'The number of its payments.';
comment on column pay.checkouts.attempt_id is 'The last of its payments.';
comment on column pay.checkouts.declines is 'The declines since declines_since.';
comment on column pay.checkouts.declines_since is 'The first decline of the present hour, by the clock of the environment.';
comment on column pay.checkouts.reference is 'The merchant''s own reference, here because lists filter by it.';
comment on column pay.checkouts.customer_id is 'The merchant''s own id of the customer, here because lists filter by it.';
comment on column pay.checkouts.expires_at is 'The end of new attempts. Null: a live link without an end.';
comment on column pay.checkouts.revision is 'Rises by one with each change of the row. An attempt compares it.';
comment on column pay.checkouts.created_at is 'Time of creation.';
comment on column pay.checkouts.updated_at is 'Time of the last change that responses show.';
comment on column pay.checkouts.body is 'The members that never change as JSON text.';

create index checkouts_reference on pay.checkouts (reference, environment_id, id)
  where reference is not null;
comment on index pay.checkouts_reference is 'pay_internal.list_column: lists with reference=.';

create index checkouts_customer on pay.checkouts (customer_id, environment_id, id)
  where customer_id is not null;
comment on index pay.checkouts_customer is 'pay_internal.list_column: lists with customer_id=.';

create index checkouts_token on pay.checkouts (token_hash);
comment on index pay.checkouts_token is
  'pay_internal.admit_payers. Not unique: a seeded sandbox that is reset makes its tokens again.';

create index checkouts_open on pay.checkouts (environment_id, expires_at) where status = 'open';
comment on index pay.checkouts_open is 'pay.create_checkout: how many are open.';

create index checkouts_end on pay.checkouts
  (environment_id, (case when status = 'open' then expires_at else updated_at end));
comment on index pay.checkouts_end is 'pay_internal.purge_checkouts: those that have ended first.';

create table pay.erasures (
  environment_id text collate "C" not null,
  person bytea not null,
  customer_id text collate "C",
  after_id text collate "C" not null,
  at_sequence integer,
  until_id text collate "C" not null,
  logged_after text collate "C" not null,
  run_number bigint,
  is_done boolean not null,
  erased_at timestamptz not null,
  constraint erasures_pkey primary key (environment_id, person),
  constraint erasures_person_length check (length(person) = 32)
);
comment on table pay.erasures is
  'An erasure of a customer''s personal data that retention continues, or in a sandbox one of the last minutes.';
comment on column pay.erasures.environment_id is 'The environment of the row.';
comment on column pay.erasures.person is 'pay_internal.person_of: SHA-256 of the customer''s id, or of the e-mail address.';
comment on column pay.erasures.customer_id is 'The id of the customer; null: a person without one, who is known by the e-mail address.';
comment on column pay.erasures.after_id is 'The payments up to this one are erased.';
comment on column pay.erasures.at_sequence is 'The newest event of that payment that is not erased yet; null: all are.';
comment on column pay.erasures.until_id is 'The newest payment that the erasure covers.';
comment on column pay.erasures.logged_after is 'The requests of the log up to this id are erased; run_ and a number: the lines of the transcript up to it, too.';
comment on column pay.erasures.run_number is 'The number of requests of a seeded sandbox at that time; null: it has no seed.';
comment on column pay.erasures.is_done is 'Whether nothing is left to erase.';
comment on column pay.erasures.erased_at is 'The time of the request, by the clock of the database.';

create table pay.search_words (
  environment_id text collate "C" not null,
  payment_id text collate "C" not null,
  part smallint not null,
  words bigint[] not null,
  constraint search_words_pkey primary key (environment_id, payment_id, part)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000);
comment on table pay.search_words is
  'The words and values by which a search finds payments. A job writes them after the payments, so no create pays for them.';
comment on column pay.search_words.environment_id is 'The environment of the row.';
comment on column pay.search_words.payment_id is 'The payment.';
comment on column pay.search_words.part is '0; a payment with more than 16 words has a row for each 16.';
comment on column pay.search_words.words is
  'pay_internal.word_hashes: the first 64 bits of SHA-256 of the environment and each word.';

-- An index for each place of the array: row-level security lets no index of whole arrays be read,
-- because their operators are not leakproof (decision 0004).
do $$
begin
  for v_place in 1..16 loop
    execute pg_catalog.format('create index search_words_%1$s on pay.search_words ((words[%1$s]))
      where words[%1$s] is not null', v_place);
    execute pg_catalog.format('comment on index pay.search_words_%s is %L', v_place,
      'pay_internal.word_rows: the payments of a word.');
  end loop;
end $$;

create table pay.search_cursors (
  environment_id text collate "C" not null,
  after_id text collate "C" not null,
  seen text[] collate "C" not null,
  marked_id text collate "C",
  marked_at timestamptz,
  constraint search_cursors_pkey primary key (environment_id)
);
comment on table pay.search_cursors is 'How far the job has read the events of an environment for pay.search_words.';
comment on column pay.search_cursors.environment_id is 'The environment.';
comment on column pay.search_cursors.after_id is 'The events up to this one are read.';
comment on column pay.search_cursors.seen is 'The later events that are read, too.';
comment on column pay.search_cursors.marked_id is 'The event to which after_id moves next; null: it has reached the newest.';
comment on column pay.search_cursors.marked_at is 'The time at which that was the newest event.';

-- The rows of the parameters of pay.commit and pay.record. n: the place of its change or record in
-- the list. body, object and before: the lines of the document that have the text.
create type pay_internal.payment_row as (
  n integer, id text, status text, amount_minor bigint, amount_refunded bigint,
  amount_refunding bigint, amount_released bigint, amount_disputed bigint, currency text,
  method_kind text, reference text, customer_id text, instrument_id text, checkout_id text,
  sequence integer, created_at timestamptz, updated_at timestamptz, body integer
);
comment on type pay_internal.payment_row is 'A row of pay.payments in a document.';
create type pay_internal.transfer_row as (
  n integer, id text, status text, amount_minor bigint, currency text, sequence integer,
  created_at timestamptz, updated_at timestamptz, body integer
);
comment on type pay_internal.transfer_row is 'A row of pay.transfers in a document.';
create type pay_internal.refund_row as (
  n integer, id text, payment_id text, status text, amount_minor bigint, currency text,
  created_at timestamptz, is_to_payer boolean, body integer
);
comment on type pay_internal.refund_row is 'A row of pay.refunds in a document.';
create type pay_internal.dispute_row as (
  n integer, id text, payment_id text, status text, amount_minor bigint, currency text,
  provider_reference text, created_at timestamptz, body integer
);
comment on type pay_internal.dispute_row is
  'A row of pay.disputes in a document. Without a provider_reference the stored one stays.';
create type pay_internal.movement_row as (
  n integer, transaction_id text, leg smallint, kind text, subject_id text, refund_id text,
  debit_account text, credit_account text, amount_minor bigint, currency text,
  created_at timestamptz
);
comment on type pay_internal.movement_row is 'A row of pay.ledger_movements in a document.';
create type pay_internal.event_row as (
  n integer, id text, type text, subject_id text, sequence integer, created_at timestamptz,
  delivery_id text, request_id text, idempotency_key text, traceparent text, object integer,
  before integer
);
comment on type pay_internal.event_row is
  'A row of pay.events in a document. delivery_id: the id of its deliveries without the last character. before: a tab between its splices.';

create type pay_internal.document as (
  records jsonb,
  expects jsonb,
  faults jsonb,
  reports jsonb,
  counts jsonb,
  instruments jsonb,
  checkouts jsonb,
  operations jsonb
);
comment on type pay_internal.document is
  'The first line of the document of pay.commit and pay.record: lists of rows that most changes lack, null without rows. The n of a row is the place of its change or record. Further lines are JSON texts, which rows of other parameters name by their number.';
comment on column pay_internal.document.records is
  '{n, environment_id, operation_id, operation, provider_events, status, body}. operation_id: the operation with this result, or null. operation: {state, next_attempt_at, provider_reference, last_reply, may_repeat}, as pay_internal.update_operations takes it; null: it stays as it is. provider_events: provider events as connectors make them, with outcome, exception, booked_minor (the sum of all movements for the provider event) and was_booked_minor (the part that is booked already). status, body: the response to store under the idempotency key of the operation, or null.';
comment on column pay_internal.document.expects is
  '{n, id, sequence, is_erased}: the payment or transfer that the change is based on. is_erased: mostly absent, which is false.';
comment on column pay_internal.document.faults is
  '{n, id}: the declared fault that has decided the change.';
comment on column pay_internal.document.reports is
  '{n, account_id, reference, count, payment_id, final_minor}: the number of handled provider events about a transfer on a chain. final_minor: the sum of the final transfers of the payment; absent: any.';
comment on column pay_internal.document.counts is
  '{n, counted_as}: the number in pay.sandbox_settings.counts that counts the record.';
comment on column pay_internal.document.instruments is
  'What a change does with instruments, by act (shared/store/commit_rows.ts): save, mandate, use, result, renew, end.';
comment on column pay_internal.document.checkouts is
  '{n, id, at, payment_id, revision, is_attempt, is_paid, is_declined}: what a change of a payment means to its checkout (pay_internal.write_checkouts). revision: that on which a new attempt is based.';
comment on column pay_internal.document.operations is
  '{n, id, op, subject_id, refund_id, method_kind, amount_minor, currency, request, decline_is_error, lease_ms, delay_ms, provider_reference}: calls to providers. With provider_reference the provider has responded already. With delay_ms the worker sends the call after that time. Otherwise the request holds it for lease_ms; the idempotency key of such a change is claimed with the status 102, and pay.record stores the response.';

do $$ begin execute pg_catalog.format('set role %I',
  pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
