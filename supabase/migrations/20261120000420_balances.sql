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

alter table pay.ledger_deltas enable row level security;
alter table pay.ledger_deltas force row level security;
alter table pay.ledger_totals enable row level security;
alter table pay.ledger_totals force row level security;
create policy ledger_deltas_of_environment on pay.ledger_deltas to pay_owner using (
  environment_id = any ((select nullif(current_setting('pay.environment_ids', true), '')::text[])::text[])
  or (select current_setting('pay.worker', true)) = 'on'
);
create policy ledger_totals_of_environment on pay.ledger_totals to pay_owner using (
  environment_id = any ((select nullif(current_setting('pay.environment_ids', true), '')::text[])::text[])
  or (select current_setting('pay.worker', true)) = 'on'
);

-- Debits and credits of each currency and account of an environment, in one snapshot.
create function pay.account_sums(p_environment_id text)
returns table (currency text, account text, debits_minor numeric, credits_minor numeric)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select x.currency, x.account, sum(x.debits_minor), sum(x.credits_minor)
  from (
    select t.currency, t.account, t.debits_minor, t.credits_minor
    from pay.ledger_totals t where t.environment_id = p_environment_id
    union all
    select d.currency, side.account, side.debits_minor, side.credits_minor
    from (
      select d.currency, d.debit_account, d.credit_account, sum(d.amount_minor) as amount_minor
      from pay.ledger_deltas d where d.environment_id = p_environment_id
      group by d.currency, d.debit_account, d.credit_account
    ) d
    cross join lateral (
      values (d.debit_account, d.amount_minor, 0::numeric), (d.credit_account, 0::numeric, d.amount_minor)
    ) as side (account, debits_minor, credits_minor)
  ) x
  group by x.currency, x.account
$$;

-- What can be transferred: credits less debits of the available account.
create function pay.available_minor(p_environment_id text, p_currency text)
returns numeric
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(sum(s.credits_minor - s.debits_minor), 0)
  from pay.account_sums(p_environment_id) s
  where s.currency = p_currency and s.account = 'available'
$$;

-- Moves up to p_batch deltas of an environment into its totals; 0 while someone else is at them.
create function pay.roll_up_deltas(p_environment_id text, p_batch integer)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rows bigint;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('totals ' || p_environment_id, 0)) then
    return 0;
  end if;
  with taken as materialized (
    delete from pay.ledger_deltas d
    using (
      select o.id from pay.ledger_deltas o
      where o.environment_id = p_environment_id
      order by o.id limit p_batch for update skip locked
    ) old
    where d.environment_id = p_environment_id and d.id = old.id
    returning d.currency, d.debit_account, d.credit_account, d.amount_minor
  ),
  added as (
    insert into pay.ledger_totals as t
      (environment_id, currency, account, debits_minor, credits_minor)
    select p_environment_id, s.currency, s.account, sum(s.debits_minor), sum(s.credits_minor)
    from (
      select currency, debit_account as account, amount_minor as debits_minor, 0 as credits_minor from taken
      union all
      select currency, credit_account, 0, amount_minor from taken
    ) s
    group by s.currency, s.account
    order by s.currency, s.account
    on conflict on constraint ledger_totals_pkey do update
    set debits_minor = t.debits_minor + excluded.debits_minor,
      credits_minor = t.credits_minor + excluded.credits_minor
  )
  select count(*) into v_rows from taken;
  return v_rows;
end
$$;

-- Rolls an environment up when so many deltas have gathered that reading them would be felt.
create function pay.roll_up_if_many(p_environment_id text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if (
    select count(*) from (
      select from pay.ledger_deltas d where d.environment_id = p_environment_id limit 5000
    ) few
  ) = 5000 then
    perform pay.roll_up_deltas(p_environment_id, 100000);
  end if;
end
$$;

-- Retention: rolls up the deltas of every environment, one batch each; how many rows moved.
create function pay.roll_up_balances(p_batch integer default 10000)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_environment_id text;
  v_total bigint := 0;
begin
  perform set_config('pay.worker', 'on', true);
  -- One index probe for each environment that has deltas.
  loop
    select min(d.environment_id) into v_environment_id from pay.ledger_deltas d
    where d.environment_id > coalesce(v_environment_id, '');
    exit when v_environment_id is null;
    v_total := v_total + pay.roll_up_deltas(v_environment_id, p_batch);
  end loop;
  return v_total;
end
$$;

grant execute on function pay.roll_up_balances(integer) to pay_api, pay_operator;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
