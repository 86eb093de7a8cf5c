-- Purpose: how much the sandboxes of an account store, and the limit of it (ADR 0018).
--
-- Requests add the bytes that they write to the counters that count them (rate_limits.sql), so they
-- pay for no further row. Retention moves these counts to pay.sandbox_storage, a row for each
-- sandbox and day, and measures logs and transcripts. It writes the sum of an account, in whole
-- gigabytes, to all its sandboxes. Admission reads it with the sandbox and refuses a request that
-- would add something (storage_full).
--
-- The count of a day ends when retention has deleted what was written on it: after 31 days, and in
-- a sandbox with a clock of its own, which can stand, with the next reset. What a reset has retired
-- counts apart, as waiting, until it is deleted.
--
-- Accuracy: the bytes are estimates, between half of and twice what the tables and their indexes
-- grow by (tests/http/storage_test.ts). An account can exceed the limit by what it writes in the
-- minute between two runs of retention. A crash of the server forgets the counts of that minute.

-- The bytes of a delivery, with its indexes, its place in an inbox and its first attempt.
create or replace function pay_internal.delivery_bytes(p_environment_id text, p_events bigint)
returns bigint language plpgsql stable as $$
begin
  if p_events > 0 then
    return p_events * 2000 * (
      select count(*) from pay.webhook_endpoints t
      where t.environment_id = p_environment_id and t.status = 'enabled');
  end if;
  return 0;
end $$;

-- Moves the counts of requests to the sandboxes, and returns the accounts. p_environment_id: null
-- is all.
-- Concurrency: leaves counters that a request has locked for the next run.
create or replace function pay_internal.count_storage(p_environment_id text)
returns text[] language plpgsql volatile as $$
declare
  v_accounts text[];
begin
  with counted as materialized (
    select c.ctid as place, c.environment_id, c.account, c.stored_bytes as bytes
    from pay.rate_counters c
    join pay.environments e on e.id = c.environment_id and e.moving is null
    where c.stored_bytes > 0 and (p_environment_id is null or c.environment_id = p_environment_id)
    for update of c skip locked
  ),
  cleared as (
    update pay.rate_counters c set stored_bytes = 0 from counted o where c.ctid = o.place
  ),
  added as (
    insert into pay.sandbox_storage (environment_id, day, account, bytes)
    select o.environment_id, (pay_internal.server_time() at time zone 'UTC')::date,
      min(o.account), sum(o.bytes)
    from counted o group by o.environment_id order by o.environment_id
    on conflict on constraint sandbox_storage_pkey
    do update set bytes = sandbox_storage.bytes + excluded.bytes
  )
  select array_agg(distinct o.account) into v_accounts from counted o;
  return coalesce(v_accounts, '{}');
end $$;

-- The bytes that the sandboxes of an account store: those that are open, or those that wait for
-- their deletion. p_except: without this sandbox
create or replace function pay_internal.account_storage(
  p_account text, p_is_retired boolean, p_except text default null
) returns bigint language sql stable as $$
  select coalesce(sum(s.bytes), 0)::bigint
  from pay.sandbox_storage s join pay.environments e on e.id = s.environment_id
  where s.account = p_account and (e.retired_at is not null) = p_is_retired
    and e.id is distinct from p_except
$$;

-- Retention: counts what sandboxes store, at most once in p_every, and tells it to the sandboxes.
-- Returns 0, because no more is left to do.
-- Logs and transcripts are measured in at most 200 sandboxes with requests in the last two minutes.
-- Runs at the end of pay.purge, so that no request waits long for the rows that it locks.
create or replace function pay_internal.note_storage(p_every interval default '10 seconds')
returns bigint language plpgsql volatile as $$
declare
  v_now constant timestamptz := pay_internal.server_time();
  v_accounts text[];
  v_changed text[];
  v_gbs integer[];
begin
  if not pg_try_advisory_xact_lock(hashtextextended('pay.sandbox_storage', 0)) then
    return 0;
  end if;
  insert into pay.settings (name, value)
  values ('storage_counted_at', extract(epoch from v_now)::text)
  on conflict on constraint settings_pkey do update set value = excluded.value
    where to_timestamp(settings.value::double precision) not between v_now - p_every and v_now;
  if not found then return 0; end if;
  v_accounts := pay_internal.count_storage(null);
  with active as materialized (
    select c.environment_id, min(c.account) as account from pay.rate_counters c
    join pay.environments e
      on e.id = c.environment_id and e.moving is null and e.retired_at is null and not e.livemode
    where c.window_number > floor(extract(epoch from v_now) / 2) - 60
    group by c.environment_id order by random() limit 200
  )
  insert into pay.sandbox_storage (environment_id, day, account, bytes)
  select a.environment_id, 'infinity', a.account, coalesce(w.transcript_bytes, 0) + (
      select coalesce(sum(500 + coalesce(pg_column_size(r.request_body), 0)
        + coalesce(pg_column_size(r.response_body), 0)), 0)
      from pay.requests r where r.environment_id = a.environment_id
    )
  from active a left join pay.sandbox_settings w on w.environment_id = a.environment_id
  order by a.environment_id
  on conflict on constraint sandbox_storage_pkey do update set bytes = excluded.bytes;
  with ended as (
    delete from pay.sandbox_storage s
    where s.day < (v_now at time zone 'UTC')::date - 31
      and exists (select from pay.environments e where e.id = s.environment_id and e.moving is null)
      and not exists (select from pay.sandbox_settings w where w.environment_id = s.environment_id)
    returning s.account
  )
  select array_agg(distinct t.account) into v_accounts from (
    select unnest(v_accounts) as account
    union all select s.account from ended s
    -- They may store less by now.
    union all select e.account from pay.environments e where e.stored_gb > 0
  ) t;
  select array_agg(e.id), array_agg(coalesce(t.gb, 0)) into v_changed, v_gbs
  from pay.environments e
  left join (
    select s.account, sum(s.bytes)::bigint >> 30 as gb from pay.sandbox_storage s
    join pay.environments o on o.id = s.environment_id and o.retired_at is null
    where s.account = any (v_accounts)
    group by s.account
  ) t on t.account = e.account
  where e.account = any (v_accounts) and not e.livemode and e.retired_at is null
    and e.moving is null and e.stored_gb <> coalesce(t.gb, 0);
  if v_changed is not null then
    perform set_config('pay.environment_ids', v_changed::text, true);
    update pay.environments e set stored_gb = c.gb
    from unnest(v_changed, v_gbs) as c (id, gb)
    where e.id = c.id and e.moving is null;
  end if;
  return 0;
end $$;

-- The time after which one more reset of a sandbox is possible.
create or replace function pay_internal.reset_every()
returns interval language sql immutable parallel safe as $$ select interval '200 milliseconds' $$;

-- The maximum number of environments of an account that wait for their deletion (contract §5).
create or replace function pay_internal.max_waiting_environments()
returns integer language sql immutable parallel safe as $$ select 1000 $$;

-- Whether a sandbox may be reset now: "ok", "too_often", or "waiting" if too many environments of
-- the account, or as many bytes as its sandboxes may store, wait for their deletion.
-- p_request: the request of the reset. A limit of it that is off limits nothing here
-- Concurrency: the caller has the sandbox alone. Simultaneous resets of other sandboxes of the
-- account do not count each other.
create or replace function pay_internal.judge_reset(p_environment_id text, p_request jsonb)
returns text language plpgsql volatile as $$
declare
  -- The account's other sandboxes are not open.
  v_was_worker constant boolean := pay_internal.act_as_worker();
  v_storage_gb constant bigint := (p_request -> 'storage' ->> 0)::bigint;
  -- The resets that are possible at once.
  v_at_once constant integer := 300;
  v_environment pay.environments;
  v_outcome text := 'ok';
begin
  select * into v_environment from pay.environments e where e.id = p_environment_id;
  if (p_request -> 'rate' ->> 1)::integer > 0 then
    v_outcome := case
      when v_environment.resets_until
        > pay_internal.server_time() + v_at_once * pay_internal.reset_every()
        then 'too_often'
      when (select count(*) from (
          select from pay.environments e
          where e.account = v_environment.account and e.retired_at is not null
          limit pay_internal.max_waiting_environments()
        ) waiting) >= pay_internal.max_waiting_environments() then 'waiting'
      else 'ok' end;
  end if;
  if v_outcome = 'ok' and v_storage_gb is not null
    and pay_internal.account_storage(v_environment.account, true) >> 30 >= v_storage_gb
  then
    v_outcome := 'waiting';
  end if;
  perform pay_internal.act_as_worker(v_was_worker);
  return v_outcome;
end $$;
