-- Purpose: the steps of an advance of a sandbox's clock (sandbox_clock.sql).
--
-- A row that waits has two times. due_at is a time of the sandbox. next_attempt_at is the real time
-- of it, or infinity while the clock stands before it. So when a clock stops, the rows that wait
-- get infinity; on its way, those that become due get a real time; and when it runs again, the
-- others do. pay_internal.stop_waiting and pay_internal.give_real_times change at most
-- pay_internal.clock_batch() rows of each table, and the step calls them again. A row that is
-- changed is not found again, so no cursor is needed.
--
-- Plans: the queries compare environment_id with an array of one element and are ordered by the
-- columns of an index that begins with it, and sorts are off, so that the planner takes this index
-- with any statistics (as in pay_internal.list_range). With "=" it took the index of what is due in
-- all environments. The rows found are then locked by their ids, with sorts: before PostgreSQL 17 a
-- scan for an array of ids has no order, and without a sort the planner would read the whole
-- environment.
--
-- Concurrency: the caller holds the lock of the sandbox alone. Locks rows in the order of their
-- ids. The dispatcher has no row that is found here, because it leases rows that are due.

-- One step of an advance. Returns no row if the sandbox was reset.
-- p_response {api_key_id, idempotency_key, request_id, target} of the request, whose response is
-- the
--           clock; idempotency_key can be absent, and target is null if the request moves no clock.
--           The target of the clock can be later, because other requests have advanced it further.
--           When the clock arrives there, it is also the response of the earlier requests whose
--           advances have not ended
-- p_sends   whether the service sends webhooks; if not, an advance does not wait for deliveries
-- state: waiting (something that is due now is not done yet: do it, and call again)
--        moved (the clock has moved, or rows were purged: call again)
--        done (the advance of the request is complete).
create or replace function pay.step_clock(
  p_environment_id text, p_response text, p_sends boolean
) returns table (state text, body text, detail text)
language plpgsql volatile security definer rows 1 set lock_timeout = '3s' as $$
declare
  v_response json := p_response::json;
  v_target timestamptz := (v_response ->> 'target')::timestamptz;
  v_clock pay.sandbox_settings;
  v_state text;
  v_has_arrived boolean := false;
  v_body text;
begin
  perform set_config('pay.environment_ids', array[p_environment_id]::text, true);
  perform pg_advisory_xact_lock(hashtextextended('environment ' || p_environment_id, 0));
  perform pay_internal.refuse_moving(p_environment_id);
  if not exists (
    select from pay.environments e where e.id = p_environment_id and e.retired_at is null
  ) then
    return;
  end if;
  select * into v_clock from pay.sandbox_settings w where w.environment_id = p_environment_id;
  if v_clock.target_at is null or v_target is null then
    v_state := 'done';
  elsif pay_internal.has_due_work(p_environment_id, p_sends) then
    v_state := 'waiting';
  elsif v_target <= v_clock.frozen_at and v_target < v_clock.target_at then
    v_state := 'done';
  else
    v_state := pay_internal.move_clock(v_clock, p_sends);
    v_has_arrived := v_state = 'done';
    select * into v_clock from pay.sandbox_settings w where w.environment_id = p_environment_id;
  end if;
  v_body := pay_internal.step_response(
    v_clock, v_response, case when v_state <> 'done' then v_target end);
  if v_has_arrived then
    -- Advances that others have begun and not ended, because they have died or had no more time. No
    -- more than a step changes: the few that are left keep a response that asks to go on.
    update pay.idempotency_keys k set body = v_body, advances_to = null
    where k.ctid = any (array(
      select o.ctid from pay.idempotency_keys o
      where o.environment_id = p_environment_id and o.advances_to is not null
      limit pay_internal.clock_batch() for update
    ));
  end if;
  return query select v_state, v_body, row_to_json(v_clock)::text;
end $$;
grant execute on function pay.step_clock to pay_api;

-- Stores the clock as the response of a request, and returns the response. A response that is
-- complete stays, because the numbers can be those of a later advance by now.
-- p_response  as in pay.step_clock
-- p_target    the target of the request; null: its advance is complete
create or replace function pay_internal.step_response(
  p_clock pay.sandbox_settings, p_response json, p_target timestamptz
) returns text language plpgsql volatile as $$
declare
  v_shown pay.sandbox_settings := p_clock;
  v_body text;
begin
  v_shown.target_at := p_target;
  v_body := pay_internal.clock_body(v_shown, true);
  update pay.idempotency_keys k
  set body = case when k.advances_to is not null then v_body else k.body end,
    advances_to = case when k.advances_to is not null then p_target end
  where k.environment_id = p_clock.environment_id and k.api_key_id = p_response ->> 'api_key_id'
    and k.key = p_response ->> 'idempotency_key' and k.request_id = p_response ->> 'request_id'
  returning k.body into v_body;
  return coalesce(v_body, pay_internal.clock_body(v_shown, true));
end $$;

-- Whether a delivery or operation of a sandbox is due now, or under way.
create or replace function pay_internal.has_due_work(p_environment_id text, p_sends boolean)
returns boolean language plpgsql stable set enable_sort = off set enable_bitmapscan = off as $$
begin
  return exists (
    select from pay.provider_operations c
    where c.environment_id = any (array[p_environment_id]) and c.state = 'pending'
      and c.account_id = 'sandbox' and c.next_attempt_at <= pay_internal.server_time()
    order by c.environment_id, c.next_attempt_at, c.due_at limit 1
  ) or p_sends and exists (
    -- Without poison deliveries, because the dispatcher sends one such at a time.
    select from pay.webhook_endpoints t
    join pay.webhook_deliveries d
      on d.endpoint_id = t.id and d.expired_leases = 0
        and d.next_attempt_at <= pay_internal.server_time()
      and d.environment_id = p_environment_id
    where t.environment_id = p_environment_id and t.status = 'enabled'
  );
end $$;

-- Moves a clock on to the next time at which something is due, or to its target. At the target it
-- purges a batch of rows; if there are none, the advance ends. Before the clock moves, the rows
-- that wait by the real time stop; before it runs again, those that wait for it start. Returns the
-- state.
create or replace function pay_internal.move_clock(p_clock pay.sandbox_settings, p_sends boolean)
returns text language plpgsql volatile as $$
declare
  v_clock pay.sandbox_settings := p_clock;
  v_next timestamptz;
  v_changed bigint;
begin
  if p_clock.is_stopping and pay_internal.stop_waiting(p_clock) then return 'moved'; end if;
  v_clock.is_stopping := false;
  if pay_internal.end_idle_instruments(
    p_clock.environment_id, p_clock.frozen_at, pay_internal.clock_batch()) > 0
  then
    return pay_internal.write_step(v_clock);
  end if;
  v_next := pay_internal.next_due(p_clock.environment_id, p_sends);
  select g.changed, g.reached into v_changed, v_clock.frozen_at
  from pay_internal.give_real_times(v_clock, case
    when v_next <= p_clock.target_at then greatest(p_clock.frozen_at, pay_internal.last_due(
      p_clock.environment_id, v_next, p_clock.target_at, p_sends))
    else p_clock.target_at end) g;
  if v_changed > 0 or v_clock.frozen_at > p_clock.frozen_at then
    -- Those that were left at the end of a batch can be due before the time of the clock.
    v_clock.frozen_at := greatest(v_clock.frozen_at, p_clock.frozen_at);
    return pay_internal.write_step(v_clock);
  end if;
  v_changed := pay_internal.purge_environment(
    p_clock.environment_id, pay_internal.server_time(), pay_internal.clock_batch());
  if v_changed > 0 then
    perform pay_internal.count_advance(p_clock.environment_id, 'purged', v_changed);
    return 'moved';
  end if;
  v_clock.target_at := null;
  v_clock.runs_after := false;
  if p_clock.runs_after then
    -- Rounded up, so that the clock does not go back. It runs from the first of these steps on.
    v_clock.offset_ms := coalesce(nullif(p_clock.offset_ms, 0), greatest(0,
      ceil(extract(epoch from p_clock.target_at - pay_internal.server_time()) * 1000)));
    v_clock.frozen_at := null;
    v_changed := (
      select g.changed from pay_internal.give_real_times(v_clock, pay_internal.clock_ceiling()) g
    );
    if v_changed >= pay_internal.clock_batch() then
      v_clock.frozen_at := p_clock.frozen_at;
      v_clock.target_at := p_clock.target_at;
      v_clock.runs_after := true;
    end if;
  end if;
  return pay_internal.write_step(v_clock);
end $$;

-- Writes the settings after a step. Returns the state. The numbers stay: the dispatcher can count
-- at the same time.
create or replace function pay_internal.write_step(p_clock pay.sandbox_settings)
returns text language plpgsql volatile as $$
begin
  update pay.sandbox_settings w
  set version = pay_internal.new_settings_version(), frozen_at = p_clock.frozen_at,
    target_at = p_clock.target_at, runs_after = p_clock.runs_after, offset_ms = p_clock.offset_ms,
    is_stopping = p_clock.is_stopping,
    counts = case
      when p_clock.target_at is null then pay_internal.advance_counts(w) else w.counts
    end
  where w.environment_id = p_clock.environment_id;
  return case when p_clock.target_at is null then 'done' else 'moved' end;
end $$;

-- The first time at which something of a sandbox is due whose clock stands before it; null: nothing
-- is.
create or replace function pay_internal.next_due(p_environment_id text, p_sends boolean)
returns timestamptz language plpgsql stable set enable_sort = off set enable_bitmapscan = off as $$
begin
  return least((
    select c.due_at from pay.provider_operations c
    where c.environment_id = any (array[p_environment_id]) and c.state = 'pending'
      and c.account_id = 'sandbox' and c.next_attempt_at = 'infinity'
    order by c.environment_id, c.next_attempt_at, c.due_at limit 1
  ), (
    select d.due_at from pay.webhook_deliveries d
    where d.environment_id = any (array[p_environment_id]) and d.next_attempt_at = 'infinity'
      and p_sends
    order by d.environment_id, d.due_at limit 1
  ), (
    select t.idle_at from pay.instruments t
    where t.environment_id = any (array[p_environment_id]) and t.idle_at is not null
    order by t.environment_id, t.idle_at limit 1
  ));
end $$;

-- The last time up to which a step may go from p_first, at most to p_last. What is due within a
-- second runs together, because every delay of the service is longer. Without an endpoint nobody
-- sees in which order payments end, so up to 64 ends run together, each with its own time. Only the
-- result of an authorization begins further operations, so it ends a step.
create or replace function pay_internal.last_due(
  p_environment_id text, p_first timestamptz, p_last timestamptz, p_sends boolean
) returns timestamptz language plpgsql stable
set enable_sort = off set enable_bitmapscan = off as $$
declare
  v_together constant interval := interval '1 second';
  v_most constant integer := 64;
  v_last timestamptz := least(p_first + v_together, p_last);
begin
  if not exists (
    select from pay.webhook_endpoints t
    where t.environment_id = p_environment_id and t.status = 'enabled'
  ) then
    select greatest(v_last, max(e.due_at)) into v_last
    from (
      select c.due_at, bool_or(c.op = 'authorize') over (order by c.due_at) as makes_more
      from (
        select o.due_at, o.op from pay.provider_operations o
        where o.environment_id = any (array[p_environment_id]) and o.state = 'pending'
          and o.account_id = 'sandbox' and o.next_attempt_at = 'infinity'
          and o.due_at between p_first and p_last
        order by o.environment_id, o.next_attempt_at, o.due_at limit v_most
      ) c
    ) e
    where not e.makes_more;
  end if;
  return greatest(p_first, (
    select c.due_at from pay.provider_operations c
    where c.environment_id = any (array[p_environment_id]) and c.state = 'pending'
      and c.account_id = 'sandbox' and c.next_attempt_at = 'infinity'
      and c.due_at between p_first and v_last
    order by c.environment_id desc, c.next_attempt_at desc, c.due_at desc limit 1
  ), (
    select d.due_at from pay.webhook_deliveries d
    where d.environment_id = any (array[p_environment_id]) and d.next_attempt_at = 'infinity'
      and d.due_at between p_first and v_last and p_sends
    order by d.environment_id desc, d.due_at desc limit 1
  ));
end $$;

-- The maximum number of rows of a table that a step of the clock changes: a tenth of a second's
-- work.
create or replace function pay_internal.clock_batch()
returns integer language sql immutable parallel safe as $$ select 1000 $$;

-- Stops a batch of the rows that wait by the real time, because the clock stands now: those that
-- come first. Returns whether there may be more. A row without a due_at is from before the sandbox
-- had a clock of its own, so its real time is that of the sandbox.
create or replace function pay_internal.stop_waiting(p_clock pay.sandbox_settings)
returns boolean language plpgsql volatile set enable_sort = off set enable_bitmapscan = off as $$
declare
  v_now constant timestamptz := pay_internal.server_time();
  v_deliveries text[];
  v_operations text[];
begin
  select array_agg(w.id) into v_deliveries from (
    select w.id from pay.webhook_endpoints t
    cross join lateral (
      (select d.id, d.next_attempt_at from pay.webhook_deliveries d
       where d.endpoint_id = t.id and d.expired_leases = 0
         and d.environment_id is not distinct from p_clock.environment_id
         and d.next_attempt_at > v_now and d.next_attempt_at < 'infinity'
       order by d.next_attempt_at limit pay_internal.clock_batch())
      union all
      (select d.id, d.next_attempt_at from pay.webhook_deliveries d
       where d.endpoint_id = t.id and d.expired_leases > 0
         and d.environment_id is not distinct from p_clock.environment_id
         and d.next_attempt_at > v_now and d.next_attempt_at < 'infinity'
       limit pay_internal.clock_batch())
    ) w
    where t.environment_id = p_clock.environment_id
    order by w.next_attempt_at limit pay_internal.clock_batch()
  ) w;
  v_operations := array(
    select c.id from pay.provider_operations c
    where c.environment_id = any (array[p_clock.environment_id]) and c.state = 'pending'
      and c.account_id = 'sandbox' and c.next_attempt_at > v_now and c.next_attempt_at < 'infinity'
    order by c.environment_id, c.next_attempt_at, c.due_at limit pay_internal.clock_batch()
  );
  perform set_config('enable_sort', 'on', true);
  with waiting as materialized (
    select d.id, coalesce(d.due_at, d.next_attempt_at) as due_at from pay.webhook_deliveries d
    where d.environment_id = p_clock.environment_id and d.id = any (v_deliveries)
      and d.status || '' = 'pending' and d.next_attempt_at > v_now
    order by d.id for update of d
  )
  update pay.webhook_deliveries d
  set due_at = w.due_at, next_attempt_at = pay_internal.real_due_at(p_clock, w.due_at)
  from waiting w
  where d.environment_id = p_clock.environment_id and d.id = w.id;
  with waiting as materialized (
    select c.id, coalesce(c.due_at, c.next_attempt_at) as due_at from pay.provider_operations c
    where c.environment_id = p_clock.environment_id and c.id = any (v_operations)
      and c.state || '' = 'pending' and c.next_attempt_at > v_now
    order by c.id for update of c
  )
  update pay.provider_operations c
  set due_at = w.due_at, next_attempt_at = pay_internal.real_due_at(p_clock, w.due_at)
  from waiting w
  where c.environment_id = p_clock.environment_id and c.id = w.id;
  return pay_internal.clock_batch() in (cardinality(v_deliveries), cardinality(v_operations));
end $$;

-- Gives a batch of the rows that wait for the clock, and are due up to p_to, the real times that
-- they have by p_clock: those that come first.
-- p_clock  the settings after it; a clock that stands is set to p_to, or to the last of these rows
--          if there may be more
-- changed  the number of rows; reached: the time up to which all are done or in this batch
create or replace function pay_internal.give_real_times(
  p_clock pay.sandbox_settings, p_to timestamptz, out changed bigint, out reached timestamptz
) language plpgsql volatile set enable_sort = off set enable_bitmapscan = off as $$
declare
  v_clock pay.sandbox_settings := p_clock;
  v_deliveries text[];
  v_operations text[];
  v_last timestamptz[];
begin
  select array_agg(w.id), array_agg(w.due_at) into v_deliveries, v_last from (
    select d.id, d.due_at from pay.webhook_deliveries d
    where d.environment_id = any (array[p_clock.environment_id])
      and d.next_attempt_at = 'infinity' and d.due_at <= p_to
    order by d.environment_id, d.due_at limit pay_internal.clock_batch()
  ) w;
  reached := case when cardinality(v_deliveries) = pay_internal.clock_batch()
    then v_last[pay_internal.clock_batch()] else p_to end;
  select array_agg(w.id), array_agg(w.due_at) into v_operations, v_last from (
    select c.id, c.due_at from pay.provider_operations c
    where c.environment_id = any (array[p_clock.environment_id]) and c.state = 'pending'
      and c.account_id = 'sandbox' and c.next_attempt_at = 'infinity' and c.due_at <= reached
    order by c.environment_id, c.next_attempt_at, c.due_at limit pay_internal.clock_batch()
  ) w;
  if cardinality(v_operations) = pay_internal.clock_batch() then
    reached := v_last[pay_internal.clock_batch()];
  end if;
  if v_clock.frozen_at is not null then v_clock.frozen_at := reached; end if;
  perform set_config('enable_sort', 'on', true);
  with waiting as materialized (
    select d.id from pay.webhook_deliveries d
    where d.environment_id = p_clock.environment_id and d.id = any (v_deliveries)
      and d.next_attempt_at = 'infinity' and d.due_at <= reached
    order by d.id for update of d
  )
  update pay.webhook_deliveries d
  set next_attempt_at = pay_internal.real_due_at(v_clock, d.due_at)
  from waiting w
  where d.environment_id = p_clock.environment_id and d.id = w.id;
  get diagnostics changed = row_count;
  with waiting as materialized (
    select c.id from pay.provider_operations c
    where c.environment_id = p_clock.environment_id and c.id = any (v_operations)
      and c.next_attempt_at = 'infinity'
    order by c.id for update of c
  )
  update pay.provider_operations c
  set next_attempt_at = pay_internal.real_due_at(v_clock, c.due_at)
  from waiting w
  where c.environment_id = p_clock.environment_id and c.id = w.id;
  changed := changed + cardinality(coalesce(v_operations, '{}'));
end $$;
