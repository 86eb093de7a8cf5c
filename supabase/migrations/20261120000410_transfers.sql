-- Purpose: transfers, money out of the available balance. Shaped as payments are.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

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
comment on column pay.transfers.id is 'The id in answers; sorts by time.';
comment on column pay.transfers.status is 'Status, as in answers.';
comment on column pay.transfers.amount_minor is 'Amount in minor units.';
comment on column pay.transfers.currency is 'ISO 4217 code.';
comment on column pay.transfers.created_at is 'Time of creation.';
comment on column pay.transfers.updated_at is 'Time of the last change.';
comment on column pay.transfers.sequence is 'Number of the transfer''s newest event. A change compares it and sets it.';
comment on column pay.transfers.body is 'The transfer as JSON text, as it is answered.';

create index transfers_status on pay.transfers (status, environment_id, id);
comment on index pay.transfers_status is 'pay.list_column: lists with status=.';

alter table pay.transfers enable row level security;
alter table pay.transfers force row level security;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
