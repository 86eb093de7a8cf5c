-- Purpose: balances

-- Writes the ledger transactions of committed changes, each with its two entries.
-- p_ledger      as in pay.commit
-- p_changes, p_environments  the n of the committed changes, and the environment of each
create or replace function pay.record_movements(
  p_ledger json, p_changes integer[], p_environments text[]
)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  with
  movement as materialized (
    select l.*, w.environment_id
    from json_to_recordset(p_ledger) as l (
      n integer, id text, kind text, subject_id text, refund_id text, debit_id text,
      debit_account text, credit_id text, credit_account text, amount_minor bigint, currency text,
      created_at timestamptz
    )
    join unnest(p_changes, p_environments) as w (n, environment_id) on w.n = l.n
  ),
  ledger_transaction_made as (
    insert into pay.ledger_transactions (environment_id, id, kind, subject_id, refund_id, created_at)
    select environment_id, id, kind, subject_id, refund_id, created_at from movement
  ),
  ledger_delta_made as (
    insert into pay.ledger_deltas
      (environment_id, id, currency, debit_account, credit_account, amount_minor)
    select environment_id, id, currency, debit_account, credit_account, amount_minor from movement
  )
  insert into pay.ledger_entries
    (environment_id, id, transaction_id, subject_id, refund_id, account, direction, amount_minor,
      currency, created_at)
  select m.environment_id, side.id, m.id, m.subject_id, m.refund_id, side.account,
    side.direction, m.amount_minor, m.currency, m.created_at
  from movement m
  cross join lateral (
    values (m.debit_id, m.debit_account, 'debit'), (m.credit_id, m.credit_account, 'credit')
  ) as side (id, account, direction);
end
$$;

-- Debits and credits of each currency and account of an environment, in one snapshot.
create or replace function pay.account_sums(p_environment_id text)
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
create or replace function pay.available_minor(p_environment_id text, p_currency text)
returns numeric
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(sum(s.credits_minor - s.debits_minor), 0)
  from pay.account_sums(p_environment_id) s
  where s.currency = p_currency and s.account = 'available'
$$;

-- Moves up to p_batch deltas of an environment into its totals; 0 while someone else is at them.
create or replace function pay.roll_up_deltas(p_environment_id text, p_batch integer)
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
create or replace function pay.roll_up_if_many(p_environment_id text)
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
create or replace function pay.roll_up_balances(p_batch integer default 10000)
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
