-- Purpose: the waiting deliveries and calls of a sandbox whose clock is set (sandbox_clock.sql).
--
-- A row that waits has two times. due_at is a time of the sandbox. next_attempt_at is the real time
-- of it, or infinity while the clock stands before it. So when a clock stops, the rows that wait
-- get infinity; on its way, those that become due get a real time; and when it runs again, the
-- others do. Each function here changes at most pay_internal.clock_batch() rows of each table, and
-- its caller calls it again. A row that is changed is not found again, so no cursor is needed.
--
-- Plans: the queries compare environment_id with an array of one element and are ordered by the
-- columns of an index that begins with it, and sorts are off, so that the planner takes this index
-- with any statistics (as in pay_internal.list_range). With "=" it took the index of what is due in
-- all environments. The rows found are then locked by their ids, with sorts: before PostgreSQL 17 a
-- scan for an array of ids has no order, and without a sort the planner would read the whole
-- environment.
--
-- Concurrency: the caller holds the lock of the sandbox alone. Locks rows in the order of their
-- ids. The relay has no row that is found here, because it claims rows that are due.

-- The maximum number of rows of a table that a step of the clock changes: a tenth of a second's
-- work.
create or replace function pay_internal.clock_batch()
returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select 1000 $$;

-- Stops a batch of the rows that wait by the real time, because the clock stands now: those that
-- come first. Returns whether there may be more. A row without a due_at is from before the sandbox
-- had a clock of its own, so its real time is that of the sandbox.
create or replace function pay_internal.stop_waiting(p_clock pay.sandbox_settings)
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_sort = off set enable_bitmapscan = off
as $$
declare
  v_now constant timestamptz := pay_internal.server_time();
  v_deliveries text[];
  v_calls text[];
begin
  select array_agg(w.id) into v_deliveries from (
    select w.id from pay.webhook_endpoints t
    cross join lateral (
      (select d.id, d.next_attempt_at from pay.webhook_deliveries d
       where d.endpoint_id = t.id and d.lost_claims = 0
         and d.environment_id is not distinct from p_clock.environment_id
         and d.next_attempt_at > v_now and d.next_attempt_at < 'infinity'
       order by d.next_attempt_at limit pay_internal.clock_batch())
      union all
      (select d.id, d.next_attempt_at from pay.webhook_deliveries d
       where d.endpoint_id = t.id and d.lost_claims > 0
         and d.environment_id is not distinct from p_clock.environment_id
         and d.next_attempt_at > v_now and d.next_attempt_at < 'infinity'
       limit pay_internal.clock_batch())
    ) w
    where t.environment_id = p_clock.environment_id
    order by w.next_attempt_at limit pay_internal.clock_batch()
  ) w;
  v_calls := array(
    select c.id from pay.provider_calls c
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
    select c.id, coalesce(c.due_at, c.next_attempt_at) as due_at from pay.provider_calls c
    where c.environment_id = p_clock.environment_id and c.id = any (v_calls)
      and c.state || '' = 'pending' and c.next_attempt_at > v_now
    order by c.id for update of c
  )
  update pay.provider_calls c
  set due_at = w.due_at, next_attempt_at = pay_internal.real_due_at(p_clock, w.due_at)
  from waiting w
  where c.environment_id = p_clock.environment_id and c.id = w.id;
  return pay_internal.clock_batch() in (cardinality(v_deliveries), cardinality(v_calls));
end
$$;

-- Gives a batch of the rows that wait for the clock, and are due up to p_to, the real times that
-- they have by p_clock: those that come first.
-- p_clock  the settings after it; a clock that stands is set to p_to, or to the last of these rows
--          if there may be more
-- changed  the number of rows; reached: the time up to which all are done or in this batch
create or replace function pay_internal.give_real_times(
  p_clock pay.sandbox_settings, p_to timestamptz, out changed bigint, out reached timestamptz
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_sort = off set enable_bitmapscan = off
as $$
declare
  v_clock pay.sandbox_settings := p_clock;
  v_deliveries text[];
  v_calls text[];
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
  select array_agg(w.id), array_agg(w.due_at) into v_calls, v_last from (
    select c.id, c.due_at from pay.provider_calls c
    where c.environment_id = any (array[p_clock.environment_id]) and c.state = 'pending'
      and c.account_id = 'sandbox' and c.next_attempt_at = 'infinity' and c.due_at <= reached
    order by c.environment_id, c.next_attempt_at, c.due_at limit pay_internal.clock_batch()
  ) w;
  if cardinality(v_calls) = pay_internal.clock_batch() then
    reached := v_last[pay_internal.clock_batch()];
  end if;
  if v_clock.frozen_at is not null then
    v_clock.frozen_at := reached;
  end if;
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
    select c.id from pay.provider_calls c
    where c.environment_id = p_clock.environment_id and c.id = any (v_calls)
      and c.next_attempt_at = 'infinity'
    order by c.id for update of c
  )
  update pay.provider_calls c
  set next_attempt_at = pay_internal.real_due_at(v_clock, c.due_at)
  from waiting w
  where c.environment_id = p_clock.environment_id and c.id = w.id;
  changed := changed + cardinality(coalesce(v_calls, '{}'));
end
$$;
