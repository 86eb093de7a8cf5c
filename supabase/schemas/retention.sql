-- Purpose: deletes the rows that have outlived their retention, in small batches that hold no lock
-- for long.
--
-- 7 days:   the log of attempts (pay_internal.purge_attempt_log).
-- 24 hours: idempotency keys. Readers ignore older keys themselves; this only frees the space.
-- 30 days:  events and deliveries of every environment, checkouts after their end, all data of
--           sandboxes (contract §5). A
--           sandbox whose clock is ahead keeps the collections that a bank can return, with
--           their refunds. A payment or transfer stays as long as it has events, which show its
--           text (pay_internal.text_at). In a
--           live environment operations and provider events stay as long as its payments.
--           An archive keeps its events and deliveries until it has them (archive.sql). Its bank
--           details have a retention of their own (bank_details.sql).
-- At once:  environments that resets have retired, disposable sandboxes that have ended, and all
--           but the last requests of each sandbox.
-- It also finishes the erasures of customers that a request has begun (erasure.sql).
-- pay_internal.purge_keys deletes API keys and their secrets, pay_internal.purge_counters their
-- rate counters.

-- Deletes one batch of each kind of row of a retired environment. When no rows are left, deletes
-- the environment with its keys, which only a disposable sandbox still has. Returns the number of
-- deleted rows. Two other transactions can still write in the environment: a dispatcher that
-- records attempts, and another purge. If another purge is at work there, this function leaves the
-- environment for the next run. A row that the dispatcher has changed meanwhile stays for the next
-- batch, so the environment is empty only if nothing is found in a new snapshot.
create or replace function pay_internal.purge_retired(p_environment_id text, p_batch integer)
returns bigint language plpgsql volatile as $$
declare
  v_table text;
  v_rows bigint;
  v_is_empty boolean := true;
  v_total bigint := 0;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('purge ' || p_environment_id, 0))
    or not pg_try_advisory_xact_lock_shared(pay_internal.words_lock(p_environment_id))
  then
    return 0;
  end if;
  foreach v_table in array array[
    'webhook_deliveries', 'attempt_log', 'inbox_entries', 'events', 'ledger_movements',
    'ledger_totals', 'provider_events', 'deposit_addresses', 'chain_payouts',
    'provider_operations', 'transfers', 'refunds', 'disputes', 'payments', 'instruments',
    'checkouts', 'bank_details', 'faults', 'idempotency_keys', 'webhook_endpoints', 'requests',
    'sandbox_settings', 'transcript_lines', 'erasures', 'search_words', 'search_cursors'
  ] loop
    -- Deletes by ctid, which needs no index.
    execute format(
      'delete from pay.%1$I t
       where t.ctid = any (array(
         select o.ctid from pay.%1$I o where o.environment_id = $1 limit $2
       ))',
      v_table
    ) using p_environment_id, p_batch;
    get diagnostics v_rows = row_count;
    v_total := v_total + v_rows;
    if v_is_empty then
      execute format(
        'select not exists (select from pay.%I o where o.environment_id = $1)', v_table)
      into v_is_empty using p_environment_id;
    end if;
  end loop;
  if v_is_empty then
    v_rows := pay_internal.delete_keys(array(
      select k.id from pay.api_keys k where k.environment_id = p_environment_id limit p_batch
    ));
    v_total := v_total + v_rows;
    v_is_empty := v_rows < p_batch;
  end if;
  if v_is_empty then
    -- What the environment stores counts as waiting until nothing of it is left.
    delete from pay.sandbox_storage s where s.environment_id = p_environment_id;
    perform set_config('pay.environment_ids', array[p_environment_id]::text, true);
    delete from pay.environments e where e.id = p_environment_id;
    v_total := v_total + 1;
  end if;
  return v_total;
end $$;

-- The environments for retention, one of each account after the other, so that an account with many
-- delays no other. Otherwise in random order, so that those that fail leave slots for the others.
-- p_is_retired: those that wait for their deletion, or the others
create or replace function pay_internal.environments_in_turn(p_is_retired boolean)
returns table (id text) language plpgsql volatile rows 100 as $$
begin
  return query
    select t.id from (
      select e.id, row_number() over (partition by e.account order by random()) as turn
      from pay.environments e
      where (e.retired_at is not null) = p_is_retired and e.moving is null
    ) t
    order by t.turn, random();
end $$;

-- Deletes one batch of each kind of row that has outlived its retention, in each environment, and
-- one batch in all of the retired environments. It retires disposable sandboxes that have ended.
-- From the others it deletes only idempotency keys, and requests over their limit, because they end
-- before any other row is old, unless they have a clock of their own. Returns the number of deleted
-- rows, so that a caller can repeat the call until it is 0. It leaves locked rows for the next
-- call. After 2 seconds it also leaves the remaining environments. Accounts take turns. A step that
-- fails holds up no other (pay_internal.purge_apart).
-- Balances keep the amounts of deleted movements, because the totals stay. p_at can be earlier than
-- the server's time; a later time counts as the server's. A sandbox with a clock of its own is
-- purged by that clock.
create or replace function pay.purge(
  p_at timestamptz default now(), p_batch integer default 3000
) returns bigint language plpgsql volatile security definer
set enable_seqscan = on set plan_cache_mode = auto as $$
declare
  v_at constant timestamptz := least(p_at, pay_internal.server_time());
  v_until constant timestamptz := clock_timestamp() + interval '2 seconds';
  v_step text;
  v_environment_id text;
  v_rows bigint := 0;
  v_total bigint := 0;
begin
  perform pay_internal.act_as_worker();
  foreach v_step in array array[
    'ends', 'sandboxes', 'attempt_log', 'watches', 'counters'
  ] loop
    -- A move of an account compares all its rows with those of the other cell.
    continue when v_step <> 'counters'
      and exists (select from pay.environments e where e.moving is not null);
    v_total := v_total + pay_internal.purge_apart(v_step, null, v_at, p_batch);
  end loop;
  for v_environment_id in
    select e.id from pay_internal.environments_in_turn(false) e
  loop
    exit when clock_timestamp() > v_until;
    v_total := v_total + pay_internal.purge_apart('environment', v_environment_id, v_at, p_batch);
  end loop;
  for v_environment_id in
    select e.id from pay_internal.environments_in_turn(true) e limit 50
  loop
    v_rows := v_rows + pay_internal.purge_apart('retired', v_environment_id, v_at, p_batch);
    exit when v_rows >= p_batch;
  end loop;
  return v_total + v_rows + pay_internal.purge_apart('storage', null, v_at, p_batch);
end $$;
grant execute on function pay.purge to pay_api, pay_operator;

-- Makes one step of retention. If it fails, it changes nothing and leaves a warning in the log of
-- the server, and the other steps go on. A step that all environments share is then made for each
-- of them, so that a bad row holds up only its own environment. Returns the number of changed rows.
create or replace function pay_internal.purge_apart(
  p_step text, p_environment_id text, p_at timestamptz, p_batch integer
) returns bigint language plpgsql volatile as $$
declare
  v_until constant timestamptz := clock_timestamp() + interval '1 second';
  v_environment_id text;
  v_total bigint := 0;
begin
  return case p_step
    when 'ends' then pay_internal.retire_ended_sandboxes(p_environment_id, p_at)
    when 'sandboxes' then pay_internal.purge_sandboxes(p_environment_id, p_at, p_batch)
    when 'attempt_log' then pay_internal.purge_attempt_log(p_environment_id, p_at, p_batch)
    when 'watches' then pay_internal.end_watches(p_environment_id, p_at, p_batch)
    when 'counters' then pay_internal.purge_counters(p_environment_id, p_batch)
    when 'environment' then pay_internal.purge_environment(p_environment_id, p_at, p_batch)
      + pay_internal.purge_requests(p_environment_id, p_at, p_batch)
      + pay_internal.continue_erasures(p_environment_id)
    when 'retired' then pay_internal.purge_retired(p_environment_id, p_batch)
    when 'storage' then pay_internal.note_storage()
  end;
exception when others then
  raise warning 'retention of % (%) failed: % %',
    coalesce(p_environment_id, 'all environments'), p_step, sqlstate, sqlerrm;
  if p_environment_id is not null or p_step = 'storage' then return 0; end if;
  for v_environment_id in
    select e.id from pay.environments e where e.moving is null order by random()
  loop
    exit when clock_timestamp() > v_until;
    v_total := v_total + pay_internal.purge_apart(p_step, v_environment_id, p_at, p_batch);
  end loop;
  return v_total;
end $$;

-- Deletes one batch of each kind of row of an environment that has outlived its retention, by p_at
-- or by the environment's own clock. Returns the number of deleted rows. Leaves the requests,
-- because they are written behind their responses, and an advance of a clock counts what it purges.
create or replace function pay_internal.purge_environment(
  p_environment_id text, p_at timestamptz, p_batch integer
) returns bigint language plpgsql volatile as $$
declare
  v_environment record;
  v_at timestamptz := p_at;
begin
  select e.livemode, e.ends_at, w.environment_id is not null as has_clock into v_environment
  from pay.environments e
  left join pay.sandbox_settings w on w.environment_id = e.id
  where e.id = p_environment_id;
  if v_environment.has_clock then
    v_at := pay_internal.environment_time(p_environment_id);
  end if;
  return pay_internal.purge_idempotency_keys(p_environment_id, v_at, p_batch) + case
    -- A disposable sandbox ends before any other row is old, unless it has a clock of its own.
    when v_environment.ends_at is not null and not v_environment.has_clock then 0
    else pay_internal.purge_keys(p_environment_id, v_at, p_batch)
      + case when v_environment.livemode
        then pay_internal.purge_bank_details(p_environment_id, p_at, p_batch)
        else pay_internal.purge_instruments(p_environment_id, p_at, p_batch) end
      + pay_internal.purge_checkouts(p_environment_id, v_at, p_batch)
      + pay_internal.end_idle_instruments(p_environment_id, v_at, p_batch)
      + pay_internal.purge_old(p_environment_id, v_environment.livemode, v_at, p_batch)
  end;
end $$;

-- Deletes one batch of each kind of an environment's rows that are older than 30 days. If another
-- purge is at work there, it leaves the environment for the next run. Movements cannot be locked,
-- so two purges would wait for each other, and in two environments they would deadlock.
create or replace function pay_internal.purge_old(
  p_environment_id text, p_livemode boolean, p_at timestamptz, p_batch integer
) returns bigint language plpgsql volatile as $$
declare
  v_kind record;
  v_rows bigint;
  v_total bigint := 0;
  -- Whatever is younger has events. Otherwise each batch would look at all of it.
  v_first_event text;
  v_before constant timestamptz := least(p_at - interval '30 days', case when p_livemode then
    (select a.archived_until from pay.archives a
     where a.environment_id = p_environment_id and not a.is_ended)
  end);
begin
  if not pg_try_advisory_xact_lock(hashtextextended('purge ' || p_environment_id, 0)) then
    return 0;
  end if;
  for v_kind in
    select * from (values
      ('webhook_deliveries', 'id', 'whd_', true, 'for update skip locked'),
      ('inbox_entries', 'delivery_id', 'whd_', true, 'for update skip locked'),
      ('events', 'id', 'evt_', true, 'for update skip locked'),
      -- Not locked: a lock would need a policy that lets someone update, and nobody may.
      ('ledger_movements', 'transaction_id', 'txn_', false, ''),
      ('provider_operations', 'id', 'pc_', false, 'for update skip locked'),
      ('transfers', 'id', 'tr_', false, 'for update skip locked'),
      ('refunds', 'id', 're_', false, 'for update skip locked'),
      ('disputes', 'id', 'dp_', false, 'for update skip locked'),
      ('payments', 'id', 'pay_', false, 'for update skip locked'),
      ('search_words', 'payment_id', 'pay_', false, 'for update skip locked'),
      ('bank_details', 'owner_id', 'pay_', false, 'for update skip locked'),
      ('faults', 'id', 'flt_', false, 'for update skip locked')
    ) as k (table_name, id_column, prefix, of_live_too, lock)
    where k.of_live_too or not p_livemode
  loop
    if v_kind.table_name = 'ledger_movements' then
      select v.id into v_first_event from pay.events v
      where v.environment_id = p_environment_id order by v.id limit 1;
    end if;
    -- The primary key is in the order of time, so the oldest rows are found without a search.
    -- The batch is an array, so that it is read once.
    execute format(
      'delete from pay.%1$I t
       where t.environment_id = $1 and t.%3$I = any (array(
         select o.%3$I from pay.%1$I o
         where o.environment_id = $1 and o.%3$I < $2 %4$s
         order by o.%3$I limit $3 %2$s
       ))',
      v_kind.table_name, v_kind.lock, v_kind.id_column, concat(
        -- A refund or dispute goes with its payment, whose state can depend on it.
        'and not exists (select from pay.events v
          where v.environment_id = o.environment_id and v.subject_id = o.' || case
            when v_kind.table_name in ('payments', 'transfers') then 'id'
            when v_kind.table_name in ('refunds', 'disputes') then 'payment_id' end || ') ',
        case when v_kind.table_name = 'search_words' then 'and not exists (select from pay.payments p
          where p.environment_id = o.environment_id and p.id = o.payment_id)' end,
        case
          when p_at <= pay_internal.server_time() then ''
          when v_kind.table_name = 'payments' then 'and not pay_internal.can_be_returned(o, $4)'
          when v_kind.table_name = 'refunds' then 'and not exists (select from pay.payments p
            where p.environment_id = o.environment_id and p.id = o.payment_id
              and pay_internal.can_be_returned(p, $4))'
        end)
    ) using
      p_environment_id, least(pay_internal.id_floor(v_kind.prefix, v_before) collate "C",
        case when v_kind.table_name in
            ('transfers', 'refunds', 'disputes', 'payments', 'search_words')
          then v_kind.prefix || substr(v_first_event, 5) end), p_batch, p_at;
    get diagnostics v_rows = row_count;
    v_total := v_total + v_rows;
  end loop;
  return v_total + case when p_livemode then 0
    else pay_internal.purge_provider_events(p_environment_id, p_at, p_batch) end;
end $$;

-- Deletes one batch of the events of providers that a sandbox got more than 30 days ago.
create or replace function pay_internal.purge_provider_events(
  p_environment_id text, p_at timestamptz, p_batch integer, out deleted bigint
) language plpgsql volatile as $$
begin
  delete from pay.provider_events t
  where t.ctid = any (array(
    select reported.ctid from pay.provider_events reported
    where reported.environment_id = p_environment_id
      -- The time of receipt is real.
      and reported.received_at < least(p_at, pay_internal.server_time()) - interval '30 days'
    order by reported.received_at limit p_batch for update skip locked
  ));
  get diagnostics deleted = row_count;
end $$;
