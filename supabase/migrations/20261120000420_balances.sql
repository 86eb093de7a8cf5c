-- Purpose: what each account of the ledger holds, exact at any moment and without a row that every
-- create would have to lock.
--
-- Each ledger transaction leaves a delta, an insert that meets no one else's. Now and then deltas are
-- rolled up: deleted and added to totals, in one transaction. Whoever reads totals and deltas in one
-- snapshot sees every movement exactly once, so a balance costs the deltas since the last roll-up and
-- not the history.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

create table pay.ledger_deltas (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  currency text collate "C" not null,
  debit_account text collate "C" not null,
  credit_account text collate "C" not null,
  amount_minor bigint not null,
  constraint ledger_deltas_pkey primary key (environment_id, id)
);
comment on table pay.ledger_deltas is 'Ledger transactions that are not in the totals yet.';
comment on column pay.ledger_deltas.environment_id is 'The environment of the row.';
comment on column pay.ledger_deltas.currency is 'ISO 4217 code.';
comment on column pay.ledger_deltas.debit_account is 'The account that is debited.';
comment on column pay.ledger_deltas.credit_account is 'The account that is credited.';
comment on column pay.ledger_deltas.amount_minor is 'Amount in minor units.';
comment on column pay.ledger_deltas.id is 'The ledger transaction''s.';

create table pay.ledger_totals (
  environment_id text collate "C" not null,
  currency text collate "C" not null,
  account text collate "C" not null,
  debits_minor numeric not null,
  credits_minor numeric not null,
  constraint ledger_totals_pkey primary key (environment_id, currency, account)
);
comment on table pay.ledger_totals is 'Sums of the ledger entries that have been rolled up.';
comment on column pay.ledger_totals.environment_id is 'The environment of the row.';
comment on column pay.ledger_totals.currency is 'ISO 4217 code.';
comment on column pay.ledger_totals.account is 'The account of the sums.';
comment on column pay.ledger_totals.debits_minor is 'Sum of the debits.';
comment on column pay.ledger_totals.credits_minor is 'Sum of the credits.';

alter table pay.ledger_deltas enable row level security;
alter table pay.ledger_deltas force row level security;
alter table pay.ledger_totals enable row level security;
alter table pay.ledger_totals force row level security;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
