-- Purpose: the clock of a sandbox: it is read, set, frozen and advanced (ADR 0023).
--
-- pay.set_clock writes the target of an advance. Then the service calls pay.step_clock until the
-- clock is there: each step moves the clock to the next time at which something is due, and the
-- dispatcher and the worker do what is due then (sandbox_clock_steps.sql). A step holds the
-- sandbox's lock alone, so no request is decided in the middle of one. If a process dies in an
-- advance, the clock stands where it is, and the next command goes on. An advance adds to the
-- target of those that are not complete, so each of them happens.
--
-- The rows that wait get new times in batches (sandbox_clock_steps.sql), so no statement grows
-- with their number.
--
-- Order of locks: the sandbox's own lock, deliveries by id, operations by id, the row of the
-- settings. The dispatcher and pay.record lock the row of the settings last too
-- (pay_internal.count_advance).

create or replace function pay_internal.longest_advance()
returns interval language sql immutable parallel safe as $$ select interval '400 days' $$;

-- A clock as JSON text (contract §7). p_is_advance: with the numbers of what the advance has done.
-- For an advance, target_at of p_settings is its own target; null: it is complete.
create or replace function pay_internal.clock_body(
  p_settings pay.sandbox_settings, p_is_advance boolean
) returns text language plpgsql stable as $$
declare
  v_ahead interval := coalesce(pay_internal.time_ahead(p_settings), '0');
  v_counts jsonb := case when p_is_advance then pay_internal.advance_counts(p_settings) end;
begin
  return format('{"object":"clock","now":%s,"mode":%s,"offset_seconds":%s,"target":%s',
    to_json(pay_internal.wire_time(pay_internal.server_time() + v_ahead)),
    case when p_settings.frozen_at is null then '"real"' else '"frozen"' end,
    -- A clock that stands has no constant distance to the real time.
    case when p_settings.frozen_at is null
      then round(extract(epoch from v_ahead))::text else 'null' end,
    coalesce(to_json(pay_internal.wire_time(p_settings.target_at))::text, 'null'))
    || case when p_is_advance then format(',"did":{"deliveries":%s,"expired_payments":%s,'
        '"disputes_closed":%s,"purged":%s},"has_more":%s',
      coalesce(v_counts ->> 'deliveries', '0'),
      coalesce(v_counts ->> 'expired_payments', '0'),
      coalesce(v_counts ->> 'disputes_closed', '0'),
      coalesce(v_counts ->> 'purged', '0'),
      (p_settings.target_at is not null)::text) else '' end
    || '}';
end $$;

-- The newest positions of the inboxes of a sandbox, by the id of the endpoint.
create or replace function pay_internal.inbox_positions(p_environment_id text)
returns jsonb language plpgsql stable as $$
begin
  return coalesce((
    select jsonb_object_agg(t.id, t.inbox_position) from pay.webhook_endpoints t
    where t.environment_id = p_environment_id and t.inbox_position > 0
  ), '{}');
end $$;

-- The numbers of an advance. counts.inboxes has the positions of the inboxes at its beginning. What
-- has been added to them since counts as deliveries. A fill counts nothing itself, because the
-- dispatcher fills inboxes of several sandboxes in one transaction, and two dispatchers could wait
-- for the settings of each other.
create or replace function pay_internal.advance_counts(p_settings pay.sandbox_settings)
returns jsonb language plpgsql stable as $$
declare
  v_begun constant jsonb := p_settings.counts -> 'inboxes';
begin
  if v_begun is null then return p_settings.counts; end if;
  return (p_settings.counts - 'inboxes') || jsonb_build_object('deliveries',
    coalesce((p_settings.counts ->> 'deliveries')::bigint, 0) + (
      select coalesce(sum(o.value::bigint - coalesce((v_begun ->> o.key)::bigint, 0)), 0)
      from jsonb_each_text(pay_internal.inbox_positions(p_settings.environment_id)) o
    ));
end $$;

-- Reads the clock. Outcomes: those of admission.sql; live.
create or replace function pay.read_clock(p_request text) returns pay.admission
language plpgsql volatile security definer as $$
declare
  v_access pay.admission := pay_internal.refuse_live(
    pay_internal.admit_one(p_request, 'shared', true));
  v_settings pay.sandbox_settings;
begin
  if v_access.outcome = 'ok' then
    select * into v_settings from pay.sandbox_settings w
    where w.environment_id = v_access.environment_id;
    v_access.body := pay_internal.clock_body(v_settings, false);
  end if;
  return v_access;
end $$;
grant execute on function pay.read_clock to pay_api;

-- Counts something that an advance has done.
-- Concurrency: locks the row of the settings, as the last lock of its transaction.
create or replace function pay_internal.count_advance(
  p_environment_id text, p_name text, p_count bigint
) returns void language plpgsql volatile as $$
begin
  update pay.sandbox_settings w
  set counts = w.counts ||
    jsonb_build_object(p_name, coalesce((w.counts ->> p_name)::bigint, 0) + p_count)
  where w.environment_id = p_environment_id and w.target_at is not null;
end $$;

-- Counts the attempts of sandboxes with a clock of their own. p_ended: as in pay.poll_deliveries.
create or replace function pay_internal.count_attempts(p_ended jsonb)
returns void language plpgsql volatile as $$
begin
  perform pay_internal.count_advance(r.environment_id, 'deliveries', r.attempts)
  from (
    select r.environment_id, count(*) as attempts
    from jsonb_to_recordset(p_ended) as r (environment_id text, due_at timestamptz)
    where r.due_at is not null
    group by r.environment_id order by r.environment_id
  ) r;
end $$;

-- Counts the recorded records that name their number. p_counts: as in pay.record.
create or replace function pay_internal.count_results(
  p_counts jsonb, p_callers pay_internal.caller[]
) returns void language plpgsql volatile as $$
begin
  perform pay_internal.count_advance(r.environment_id, r.counted_as, r.records)
  from (
    select caller.environment_id, c.counted_as, count(*) as records
    from unnest(p_callers) caller
    join jsonb_to_recordset(p_counts) as c (n integer, counted_as text) on c.n = caller.n
    group by caller.environment_id, c.counted_as order by caller.environment_id, c.counted_as
  ) r;
end $$;

-- Writes the settings of a clock. An advance that goes on keeps its numbers.
-- Concurrency: keeps the numbers of the locked row, because the dispatcher and pay.record count
-- without the lock of the sandbox.
create or replace function pay_internal.write_clock(p_settings pay.sandbox_settings)
returns pay.sandbox_settings language plpgsql volatile as $$
declare
  v_counts constant jsonb := case when p_settings.target_at is null then '{}'
    else jsonb_build_object('inboxes', pay_internal.inbox_positions(p_settings.environment_id)) end;
  v_written pay.sandbox_settings;
begin
  insert into pay.sandbox_settings as w
    (environment_id, version, offset_ms, frozen_at, target_at, runs_after, is_stopping, counts)
  values (p_settings.environment_id, pay_internal.new_settings_version(), p_settings.offset_ms,
    p_settings.frozen_at, p_settings.target_at, p_settings.runs_after, p_settings.is_stopping,
    v_counts)
  on conflict on constraint sandbox_settings_pkey do update
  set version = excluded.version, offset_ms = excluded.offset_ms, frozen_at = excluded.frozen_at,
    target_at = excluded.target_at, runs_after = excluded.runs_after,
    is_stopping = excluded.is_stopping,
    counts = case when w.target_at is null then excluded.counts else w.counts end
  returning * into v_written;
  return v_written;
end $$;

-- Sets, freezes or advances the clock of a sandbox.
-- p_command  {to, advance_s, mode}, each can be absent: the new time, or by how many seconds the
--            clock advances; and whether it stands ("frozen") or runs ("real") after that. Advances
--            that are not complete come first, so target_at of the new settings is also the
--            target of this command; null: it moves no clock
-- Outcomes: those of admission.sql; committed (body, and the new settings as detail) | live |
--           behind (the time is before the clock; detail: the time of the clock)
--           beyond (the target is after pay_internal.clock_ceiling(); detail: as before)
--           too_far (the target is more than pay_internal.longest_advance() after it; detail: as
--           before).
-- The response is stored with the target, so a duplicate and a retry after a crash learn how to go
-- on.
create or replace function pay.set_clock(p_request text, p_command text) returns pay.admission
language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_request jsonb := p_request::jsonb -> 0;
  v_access pay.admission := pay_internal.admit_alone(p_request);
  v_before pay.sandbox_settings;
  v_clock pay.sandbox_settings;
  v_now timestamptz;
begin
  if v_access.outcome = 'ok' then
    select * into v_before from pay.sandbox_settings w
    where w.environment_id = v_access.environment_id;
    v_now := date_trunc('milliseconds', pay_internal.environment_time(v_access.environment_id));
    v_clock := pay_internal.planned_clock(v_before, p_command::json, v_now);
    v_access.outcome := case
      when (p_command::json ->> 'to')::timestamptz < v_now then 'behind'
      when v_clock.target_at > pay_internal.clock_ceiling() then 'beyond'
      when v_clock.target_at > v_now + pay_internal.longest_advance() then 'too_far'
      else 'ok' end;
    if v_access.outcome <> 'ok' then v_access.detail := pay_internal.wire_time(v_now); end if;
  end if;
  v_access := pay_internal.claim_one(p_request, v_access);
  if v_access.outcome <> 'ok' then return v_access; end if;
  v_clock.environment_id := v_access.environment_id;
  if pay_internal.stop_waiting(v_clock) then
    -- Some still have real times. A command that moves no clock stops them on its way too.
    v_clock.target_at := coalesce(v_clock.target_at, v_now);
  end if;
  v_clock := pay_internal.write_clock(v_clock);
  v_access.outcome := 'committed';
  v_access.status := 200;
  v_access.body := pay_internal.clock_body(v_clock, true);
  v_access.detail := row_to_json(v_clock)::text;
  perform pay_internal.store_response(p_request, v_access);
  -- Kept for 24 hours after the advance, and not after its beginning.
  update pay.idempotency_keys k
  set created_at = greatest(k.created_at, v_clock.target_at), advances_to = v_clock.target_at
  where k.environment_id = v_access.environment_id and k.api_key_id = v_access.api_key_id
    and k.key = v_request ->> 'idempotency_key';
  return v_access;
end $$;
grant execute on function pay.set_clock to pay_api;

-- The time to which a command moves the clock; null: it moves no clock.
-- p_pending  the target of the advances that are not complete; null: there are none.
create or replace function pay_internal.clock_target(
  p_command json, p_now timestamptz, p_pending timestamptz
) returns timestamptz language sql stable as $$
  select case
    when p_command ->> 'to' is not null
      then greatest((p_command ->> 'to')::timestamptz, p_pending)
    when p_command ->> 'advance_s' is not null
      then coalesce(p_pending, p_now) + (p_command ->> 'advance_s')::bigint * interval '1 second'
    when p_command ->> 'mode' = 'real' then coalesce(p_pending, p_now)
    else p_pending
  end
$$;

-- The settings of a clock after a command at p_now.
create or replace function pay_internal.planned_clock(
  p_before pay.sandbox_settings, p_command json, p_now timestamptz
) returns pay.sandbox_settings language plpgsql stable as $$
declare
  v_clock pay.sandbox_settings := p_before;
begin
  v_clock.offset_ms := 0;
  v_clock.frozen_at := p_now;
  -- Attempts under way can leave deliveries that wait by the real time, so the next step looks too.
  v_clock.is_stopping := p_before.is_stopping is not false or p_before.frozen_at is null
    or p_before.offset_ms > 0;
  v_clock.target_at := pay_internal.clock_target(p_command, p_now, p_before.target_at);
  v_clock.runs_after := v_clock.target_at is not null and case
    when p_command ->> 'mode' is not null then p_command ->> 'mode' = 'real'
    else p_before.frozen_at is null or p_before.runs_after
  end;
  -- A clock that runs is never behind the real time: one that has stood until now catches up.
  if v_clock.runs_after then
    v_clock.target_at := greatest(
      v_clock.target_at, date_trunc('milliseconds', pay_internal.server_time()));
  end if;
  return v_clock;
end $$;
