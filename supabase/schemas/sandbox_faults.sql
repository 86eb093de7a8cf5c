-- Purpose: declared faults of sandboxes (ADR 0023). A fault names a kind of target (a request, a
-- delivery, an operation of the simulated provider) and the conditions that the target has to
-- match. The next targets that match fail, as often as it was declared.
--
-- Who asks: a request asks pay.match_fault only if the settings of its sandbox name the kind
-- (sandbox_settings.fault_kinds), so sandboxes without faults pay nothing. The dispatcher asks once
-- in a poll whether any delivery fault is open (webhook_faults.sql).
-- Concurrency: a fault is counted under its row lock, so it happens exactly as often as it was
-- declared. Transactions wait for this lock only while they hold locks that nobody waits for who
-- holds this one: the shared lock of the sandbox, payments and transfers (commit.sql), and
-- deliveries that the dispatcher has locked with "skip locked".

-- A fault as JSON text, in the order of the contract (§7).
create or replace function pay_internal.fault_body(p_fault pay.faults)
returns text language sql stable as $$
  select row_to_json(t)::text from (
    select
      p_fault.id,
      'fault' as object,
      p_fault.kind as "on",
      p_fault.fault,
      p_fault.times,
      p_fault.times_left as "left",
      p_fault.filter as "where",
      p_fault.delay_ms,
      pay_internal.wire_time(p_fault.created_at) as created_at
  ) t
$$;

-- Whether a target matches the conditions of a fault. p_target has a text, or a list of texts, for
-- each condition that a fault of its kind can have.
create or replace function pay_internal.fault_matches(p_filter jsonb, p_target jsonb)
returns boolean language plpgsql immutable parallel safe as $$
begin
  return not exists (
    select from jsonb_each(p_filter) w
    -- A list contains each of its texts, and a text contains itself.
    where not coalesce(p_target -> w.key @> w.value, false)
  );
end $$;

-- The oldest open fault that a target matches; all columns are null if there is none.
-- p_takes    true: counts the fault, which waits for other transactions that count it
-- p_without  a fault that the target cannot have; null: it can have all
create or replace function pay_internal.next_fault(
  p_environment_id text, p_kind text, p_target jsonb, p_takes boolean, p_without text default null
) returns pay.faults language plpgsql volatile as $$
declare
  v_fault pay.faults;
begin
  if not p_takes then
    select fault.* into v_fault from pay.faults fault
    where fault.environment_id = p_environment_id and fault.kind = p_kind and fault.times_left > 0
      and pay_internal.fault_matches(fault.filter::jsonb, p_target)
    order by fault.id limit 1;
    return v_fault;
  end if;
  -- If another transaction uses the fault up while this one waits, the next one is locked.
  select fault.* into v_fault from pay.faults fault
  where fault.environment_id = p_environment_id and fault.kind = p_kind and fault.times_left > 0
    and fault.fault is distinct from p_without
      and pay_internal.fault_matches(fault.filter::jsonb, p_target)
  order by fault.id limit 1 for update;
  update pay.faults fault set times_left = fault.times_left - 1
  where fault.environment_id = p_environment_id and fault.id = v_fault.id;
  return v_fault;
end $$;

-- Writes the kinds of open faults into the settings of a sandbox, if they differ. The caller holds
-- the lock of the sandbox alone.
create or replace function pay_internal.note_fault_kinds(p_environment_id text)
returns void language plpgsql volatile as $$
declare
  v_kinds text[] := array(
    select distinct fault.kind from pay.faults fault
    where fault.environment_id = p_environment_id and fault.times_left > 0
      and fault.kind <> 'delivery'
    order by 1);
begin
  update pay.sandbox_settings w
  set fault_kinds = v_kinds, version = pay_internal.new_settings_version()
  where w.environment_id = p_environment_id and w.fault_kinds <> v_kinds;
  if not found and v_kinds <> '{}' then
    insert into pay.sandbox_settings (environment_id, version, fault_kinds)
    values (p_environment_id, pay_internal.new_settings_version(), v_kinds)
    on conflict on constraint sandbox_settings_pkey do nothing;
  end if;
end $$;

-- Finds the fault of a request or of an operation of the simulated provider.
-- p_kind     request or provider
-- p_target   as in pay_internal.fault_matches
-- p_takes    true: counts the fault. An operation of the provider only looks, and the commit of its
--            result counts (pay_internal.lock_faults)
-- Outcomes: those of admission.sql; ok (body: {id, fault, delay_ms}; null: no fault matches).
-- If no fault of any kind is open any more, this function tries to remove the kinds from the
-- settings, so that later requests do not ask. It does not wait for the requests under way, and
-- leaves the settings as they are if there are any.
create or replace function pay.match_fault(
  p_request text, p_kind text, p_target text, p_takes boolean
) returns pay.admission language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request, 'shared', true);
  v_fault pay.faults;
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  v_fault := pay_internal.next_fault(v_access.environment_id, p_kind, p_target::jsonb, p_takes);
  if v_fault.id is not null then
    v_access.body := json_build_object(
      'id', v_fault.id, 'fault', v_fault.fault, 'delay_ms', v_fault.delay_ms);
  elsif not exists (
    select from pay.faults fault
    where fault.environment_id = v_access.environment_id and fault.times_left > 0
      and fault.kind in ('request', 'provider')
  ) and pg_try_advisory_xact_lock(
    hashtextextended('environment ' || v_access.environment_id, 0)
  ) then
    perform pay_internal.note_fault_kinds(v_access.environment_id);
  end if;
  return v_access;
end $$;
grant execute on function pay.match_fault to pay_api;

-- Declares a fault. p_fault: {id, kind, fault, filter, delay_ms, times}; p_limit: the most faults
-- of a sandbox that can still happen.
-- Outcomes: those of admission.sql; committed (body) | full.
-- Concurrency: holds the lock of the sandbox alone, because its settings change.
create or replace function pay.create_fault(p_request text, p_fault text, p_limit integer)
returns pay.admission language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.claim_one(p_request, pay_internal.admit_alone(p_request));
  v_fault pay.faults := json_populate_record(null::pay.faults, p_fault::json);
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  if (
    select count(*) from pay.faults fault
    where fault.environment_id = v_access.environment_id and fault.times_left > 0
  ) >= p_limit then
    v_access.outcome := 'full';
    perform pay_internal.release_key(p_request, v_access);
    return v_access;
  end if;
  v_fault.environment_id := v_access.environment_id;
  v_fault.times_left := v_fault.times;
  v_fault.created_at := v_access.at;
  insert into pay.faults select v_fault.*;
  perform pay_internal.note_fault_kinds(v_access.environment_id);
  v_access.outcome := 'committed';
  v_access.body := pay_internal.fault_body(v_fault);
  perform pay_internal.store_response(p_request, v_access);
  return v_access;
end $$;
grant execute on function pay.create_fault to pay_api;

-- Deletes a fault: it does not happen any more.
-- Outcomes: those of admission.sql; committed (body) | not_found.
-- Concurrency: as pay.create_fault.
create or replace function pay.delete_fault(p_request text, p_id text) returns pay.admission
language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.claim_one(p_request, pay_internal.admit_alone(p_request));
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  delete from pay.faults fault where fault.environment_id = v_access.environment_id
    and fault.id = p_id;
  if not found then
    v_access.outcome := 'not_found';
    perform pay_internal.release_key(p_request, v_access);
    return v_access;
  end if;
  perform pay_internal.note_fault_kinds(v_access.environment_id);
  v_access.outcome := 'committed';
  v_access.body := json_build_object('id', p_id, 'object', 'fault', 'deleted', true);
  perform pay_internal.store_response(p_request, v_access);
  return v_access;
end $$;
grant execute on function pay.delete_fault to pay_api;

-- Locks the provider faults that the changes of a list use. A change is stale if its fault cannot
-- happen any more, or if earlier changes of the list use it up.
create or replace function pay_internal.lock_faults(p_faults jsonb, p_found pay.admission[])
returns pay.admission[] language plpgsql volatile as $$
declare
  v_n integer;
begin
  for v_n in
    with
    requested as materialized (
      select u.n, f.environment_id, u.id,
        row_number() over (partition by f.environment_id, u.id order by u.n) as place
      from unnest(p_found) f
      join jsonb_to_recordset(p_faults) as u (n integer, id text) on u.n = f.n
      where f.outcome = 'ok'
    ),
    locked as materialized (
      select fault.environment_id, fault.id, fault.times_left
      from pay.faults fault
      where (fault.environment_id, fault.id) in (select a.environment_id, a.id from requested a)
      order by fault.environment_id, fault.id
      for update of fault
    )
    select a.n from requested a
    left join locked l on l.environment_id = a.environment_id and l.id = a.id
    where l.id is null or a.place > l.times_left
  loop
    p_found[v_n].outcome := 'stale';
  end loop;
  return p_found;
end $$;

-- Counts the provider faults of the committed changes. p_callers: as in pay_internal.write_rows.
create or replace function pay_internal.count_faults(
  p_faults jsonb, p_callers pay_internal.caller[]
) returns void language plpgsql volatile as $$
begin
  update pay.faults fault
  set times_left = fault.times_left - u.times
  from (
    select caller.environment_id, f.id, count(*) as times
    from jsonb_to_recordset(p_faults) as f (n integer, id text)
    join unnest(p_callers) caller on caller.n = f.n
    group by caller.environment_id, f.id
  ) u
  where fault.environment_id = u.environment_id and fault.id = u.id;
end $$;
