-- Purpose: the double-entry ledger. A ledger transaction is a set of entries that sums to zero in
-- every currency; a trigger proves it for each statement, whoever wrote the rows.
-- Entries are append-only: no policy lets anyone update them, and only sandboxes may delete.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

create table pay.ledger_transactions (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  kind text collate "C" not null,
  subject_id text collate "C" not null,
  refund_id text collate "C",
  created_at timestamptz not null,
  constraint ledger_transactions_pkey primary key (environment_id, id),
  constraint ledger_transactions_kind_known check (
    kind in ('capture', 'capture_reversal', 'refund', 'chargeback', 'transfer',
      'transfer_completed', 'transfer_reversed')
  )
);
comment on table pay.ledger_transactions is 'One movement of money; its entries sum to zero.';
comment on column pay.ledger_transactions.environment_id is 'The environment of the row.';
comment on column pay.ledger_transactions.id is 'The id in answers; sorts by time.';
comment on column pay.ledger_transactions.kind is 'Kind of the movement of money.';
comment on column pay.ledger_transactions.refund_id is
  'The refund that moved the money, if one did.';
comment on column pay.ledger_transactions.created_at is 'Time of creation.';
comment on column pay.ledger_transactions.subject_id is 'The payment or transfer whose money moves.';

create table pay.ledger_entries (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  transaction_id text collate "C" not null,
  subject_id text collate "C" not null,
  refund_id text collate "C",
  account text collate "C" not null,
  direction text collate "C" not null,
  amount_minor bigint not null,
  currency text collate "C" not null,
  created_at timestamptz not null,
  constraint ledger_entries_pkey primary key (environment_id, id),
  constraint ledger_entries_account_known check (
    account in ('processor', 'available', 'chargebacks', 'in_transit', 'external')
  ),
  constraint ledger_entries_direction_known check (direction in ('debit', 'credit')),
  constraint ledger_entries_amount_minor_positive check (amount_minor > 0)
);
comment on table pay.ledger_entries is 'One side of a ledger transaction. Append-only.';
comment on column pay.ledger_entries.environment_id is 'The environment of the row.';
comment on column pay.ledger_entries.id is 'The id in answers; sorts by time.';
comment on column pay.ledger_entries.transaction_id is 'The transaction of the entry.';
comment on column pay.ledger_entries.subject_id is 'The subject of the transaction.';
comment on column pay.ledger_entries.refund_id is 'The refund of the transaction.';
comment on column pay.ledger_entries.account is 'The account that is debited or credited.';
comment on column pay.ledger_entries.direction is 'debit or credit.';
comment on column pay.ledger_entries.amount_minor is 'Amount in minor units.';
comment on column pay.ledger_entries.currency is 'ISO 4217 code.';
comment on column pay.ledger_entries.created_at is 'Time of creation.';

-- Lists the entries of a payment, and of a transaction of it; the balance check reads it too.
create index ledger_entries_subject on pay.ledger_entries (environment_id, subject_id, transaction_id);

alter table pay.ledger_transactions enable row level security;
alter table pay.ledger_transactions force row level security;
alter table pay.ledger_entries enable row level security;
alter table pay.ledger_entries force row level security;

-- At the end of each statement that writes entries: every ledger transaction they belong to sums to
-- zero in every currency. Entries are append-only, so what holds then holds at the commit too; once
-- for a statement, because a call for each row was a fifth of the price of a create (ADR 0022).
-- Entries of one transaction that named different subjects would each have to balance alone, which
-- is stricter still. Seeing no entry at all (no environment open) is refused too.
create function pay.check_ledger_transactions()
returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off
as $$
declare
  v_unbalanced text;
begin
  select t.transaction_id into v_unbalanced
  from (
    select distinct n.environment_id, n.subject_id, n.transaction_id from new_entries n
  ) t
  cross join lateral (
    select coalesce(bool_or(per_currency.total <> 0), true) as is_unbalanced
    from (
      select sum(case e.direction when 'debit' then e.amount_minor else -e.amount_minor end) as total
      from pay.ledger_entries e
      where e.environment_id = t.environment_id
        and e.subject_id = t.subject_id
        and e.transaction_id = t.transaction_id
      group by e.currency
    ) per_currency
  ) c
  where c.is_unbalanced
  limit 1;
  if found then
    raise exception 'ledger transaction % does not sum to zero', v_unbalanced
      using errcode = 'PAY01';
  end if;
  return null;
end
$$;

create trigger ledger_entries_sum_to_zero
  after insert on pay.ledger_entries
  referencing new table as new_entries
  for each statement execute function pay.check_ledger_transactions();

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
