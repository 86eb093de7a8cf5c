-- Purpose: what has outlived its retention goes, in small batches that hold no lock for long.
--
-- 24 hours: idempotency keys (a day is decided when they are read; this only frees the space).
-- 30 days:  events and deliveries of every environment, all data of sandboxes (interface §8).
-- Keys, their secrets and their rate counters: pay.purge_keys.
-- At once:  what resets have left behind.

-- The least id made at or after an instant, as shared/core/ids.ts makes them: an id begins with its
-- milliseconds in base 32.
create or replace function pay.id_floor(p_prefix text, p_at timestamptz)
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rest bigint := floor(extract(epoch from p_at) * 1000);
  v_time text := '';
begin
  for v_character in 1..9 loop
    v_time := substr('0123456789abcdefghjkmnpqrstvwxyz', (v_rest % 32)::integer + 1, 1) || v_time;
    v_rest := v_rest / 32;
  end loop;
  return p_prefix || v_time || repeat('0', 17);
end
$$;

-- Deletes one batch of each kind of what a reset has left behind; when nothing is left, the environment.
-- Returns how many rows went. Only a relay that records attempts still writes there, and another purge
-- deletes: while another purge runs, this one leaves the environment for the next time. Internal.
create or replace function pay.purge_retired(p_environment_id text, p_batch integer)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off
as $$
declare
  v_table text;
  v_rows bigint;
  v_is_empty boolean := true;
  v_total bigint := 0;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('purge ' || p_environment_id, 0)) then
    return 0;
  end if;
  foreach v_table in array array[
    'webhook_deliveries', 'events', 'ledger_movements', 'ledger_totals',
    'transfers', 'refunds', 'payments', 'idempotency_keys', 'rate_counters'
  ] loop
    -- By its place, which needs no search. A row that moves meanwhile goes with another batch.
    execute format(
      'delete from pay.%1$I t
       where t.ctid = any (array(
         select o.ctid from pay.%1$I o where o.environment_id = $1 limit $2
       ))',
      v_table
    ) using p_environment_id, p_batch;
    get diagnostics v_rows = row_count;
    v_total := v_total + v_rows;
    v_is_empty := v_is_empty and v_rows < p_batch;
  end loop;
  if v_is_empty then
    perform set_config('pay.environment_ids', array[p_environment_id]::text, true);
    delete from pay.environments e where e.id = p_environment_id;
    v_total := v_total + 1;
  end if;
  return v_total;
end
$$;

-- Totals keep the amounts of deleted movements, as an opening balance does.
--
-- Deletes one batch of each kind in each environment, and of what resets have left behind one batch in
-- all; returns how many rows went, so that a caller can go on until 0. Rows that someone holds are left
-- for the next time. So is what 2 seconds do not suffice for, whichever it is: they are taken in any order.
-- p_at can be earlier than the server's time; a later time counts as the server's.
create or replace function pay.purge(p_at timestamptz default now(), p_batch integer default 1000)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_at timestamptz := least(p_at, pay.server_time());
  v_cut timestamptz := v_at - interval '30 days';
  v_until timestamptz := clock_timestamp() + interval '2 seconds';
  v_environment record;
  v_kind record;
  v_rows bigint;
  v_total bigint := 0;
begin
  perform set_config('pay.worker', 'on', true);
  -- Materialized, and below an array: a batch that is read again for each row has no limit. In order,
  -- or a limit makes reading the table look cheap while its statistics are old.
  with old as materialized (
    select o.environment_id, o.api_key_id, o.key
    from pay.idempotency_keys o
    where o.created_at <= v_at - pay.idempotency_retention()
    order by o.created_at
    limit p_batch for update skip locked
  )
  delete from pay.idempotency_keys t using old
  where t.environment_id = old.environment_id and t.api_key_id = old.api_key_id and t.key = old.key;
  get diagnostics v_total = row_count;

  for v_environment in
    select e.id, e.livemode from pay.environments e where e.retired_at is null order by random()
  loop
    exit when clock_timestamp() > v_until;
    v_total := v_total + pay.purge_keys(v_environment.id, v_at, p_batch);
    for v_kind in
      select * from (values
        ('webhook_deliveries', 'id', 'whd_', true, 'for update skip locked'),
        ('events', 'id', 'evt_', true, 'for update skip locked'),
        -- Not locked: a lock would need a policy that lets someone update, and nobody may.
        ('ledger_movements', 'transaction_id', 'txn_', false, ''),
        ('transfers', 'id', 'tr_', false, 'for update skip locked'),
        ('refunds', 'id', 're_', false, 'for update skip locked'),
        ('payments', 'id', 'pay_', false, 'for update skip locked')
      ) as k (table_name, id_column, prefix, of_live_too, lock)
      where k.of_live_too or not v_environment.livemode
    loop
      -- The primary key is in the order of time: the oldest rows are found without a search.
      execute format(
        'delete from pay.%1$I t
         where t.environment_id = $1 and t.%3$I = any (array(
           select o.%3$I from pay.%1$I o
           where o.environment_id = $1 and o.%3$I < $2
           order by o.%3$I limit $3 %2$s
         ))',
        v_kind.table_name, v_kind.lock, v_kind.id_column
      ) using v_environment.id, pay.id_floor(v_kind.prefix, v_cut), p_batch;
      get diagnostics v_rows = row_count;
      v_total := v_total + v_rows;
    end loop;
  end loop;
  v_rows := 0;
  for v_environment in
    select e.id from pay.environments e where e.retired_at is not null order by e.retired_at limit 50
  loop
    v_rows := v_rows + pay.purge_retired(v_environment.id, p_batch);
    exit when v_rows >= p_batch;
  end loop;
  return v_total + v_rows;
end
$$;

grant execute on function pay.purge(timestamptz, integer) to pay_api, pay_operator;
