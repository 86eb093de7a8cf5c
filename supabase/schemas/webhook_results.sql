-- Purpose: steps of pay.poll_deliveries that record the attempts that have ended.

-- Records ended attempts. p_results: as in pay.poll_deliveries. p_ahead: how far the caller's clock
-- is ahead of the server's; it is subtracted from the times of the results. Work that few polls
-- need stands in statements of its own. Plans: a statement that finds a delivery by its key never
-- tests status = 'pending' directly. With that test a plan from a time when the outbox was empty
-- would read a whole index of pending deliveries.
create or replace function pay_internal.record_attempts(
  p_results jsonb, p_at timestamptz, p_ahead interval
) returns void language plpgsql volatile as $$
declare
  v_ended constant jsonb := p_results -> 'ended';
  v_released constant jsonb := p_results -> 'released';
  v_log_entries constant jsonb := p_results -> 'log_entries';
  v_recorded record;
begin
  if v_released <> '[]' then
    update pay.webhook_deliveries d
    set attempt_count = d.attempt_count - 1, leased_until = null
    from jsonb_to_recordset(v_released) as r (
      environment_id text, id text, attempt integer, leased_until timestamptz
    )
    where d.environment_id = r.environment_id and d.id = r.id
      and d.attempt_count = r.attempt and d.leased_until = r.leased_until;
  end if;

  select * into v_recorded from pay_internal.record_results(v_ended, p_at, p_ahead);
  if v_recorded.next_ids is not null then
    perform pay_internal.release_next_deliveries(
      v_recorded.next_environments, v_recorded.next_ids, p_at);
  end if;
  perform pay_internal.count_attempts(v_ended);
  if v_log_entries <> '[]' then perform pay_internal.log_attempts(v_log_entries); end if;
  if v_recorded.turned_ids is not null then
    perform pay_internal.note_failing_endpoints(
      v_recorded.turned_environments, v_recorded.turned_ids, v_recorded.turned_to_success, p_at);
  end if;
end $$;

-- The attempts that were made, with the times by the clocks of their sandboxes.
create or replace function pay_internal.ended_attempts(p_ended jsonb, p_ahead interval)
returns table (
  environment_id text, id text, attempt integer, leased_until timestamptz, outcome text,
  next_attempt_at timestamptz, record text, due_at timestamptz
) language plpgsql stable rows 16 as $$
#variable_conflict use_column
begin
  return query
    select r.environment_id, r.id, r.attempt, r.leased_until, r.outcome, r.next_attempt_at,
      r.record,
      -- The sandbox can have got a clock of its own in the attempt.
      coalesce(r.due_at, r.next_attempt_at - p_ahead + (
        select pay_internal.time_ahead(w) from pay.sandbox_settings w
        where w.environment_id = r.environment_id and r.next_attempt_at is not null
      ))
    from jsonb_to_recordset(p_ended) as r (
      environment_id text, id text, attempt integer, leased_until timestamptz, outcome text,
      next_attempt_at timestamptz, record text, due_at timestamptz
    );
end $$;

-- Records the attempts that were made.
-- next_environments, next_ids: the deliveries that waited for a delivery that is now delivered or
-- failed.
-- turned_environments, turned_ids, turned_to_success: the endpoints that have started or stopped
-- failing.
-- Concurrency: locks deliveries in the order of their ids.
-- This is one statement with one snapshot: a delivery that follows another in the same results
-- still has its lease in it. A later statement would treat it as waiting, and make it due at once.
create or replace function pay_internal.record_results(
  p_ended jsonb, p_at timestamptz, p_ahead interval, out next_environments text[],
  out next_ids text[], out turned_environments text[], out turned_ids text[],
  out turned_to_success boolean[]
) language plpgsql volatile as $$
declare
  v_most constant integer := 50;
begin
  with
  result as materialized (
    select * from pay_internal.ended_attempts(p_ended, p_ahead) r order by r.environment_id, r.id
  ),
  recorded as (
    update pay.webhook_deliveries d
    set status = case
        when r.outcome = 'delivered' then 'delivered'
        when r.next_attempt_at is null then 'failed'
        else 'pending'
      end,
      next_attempt_at = case
        when r.next_attempt_at is null or r.due_at is null then r.next_attempt_at - p_ahead
        else pay_internal.real_due(r.environment_id, r.due_at) end,
      due_at = case when r.next_attempt_at is not null then r.due_at end,
      leased_until = null,
      -- The process survived the attempt. A crashed delivery stays a poison delivery.
      expired_leases = case when d.expired_leases < 3 then 0 else d.expired_leases end,
      -- At most v_most, because a delivery can be redelivered any number of times, and each record
      -- rewrites the row. The first one stays, because an invariant checks the order by it.
      attempts = case when cardinality(d.attempts) < v_most then d.attempts
        else d.attempts[:1] || d.attempts[3:] end || r.record::json
    from result r
    where d.environment_id = r.environment_id and d.id = r.id
      and d.attempt_count = r.attempt and d.leased_until = r.leased_until
    returning d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.status, r.outcome
  ),
  next as (
    select array_agg(r.environment_id) as environments, array_agg(n.id) as ids
    from recorded r
    cross join lateral (
      select w.id, w.leased_until
      from pay.webhook_deliveries w
      where w.status = 'pending'
        and w.environment_id is not distinct from r.environment_id
        and w.endpoint_id = r.endpoint_id
        and w.subject_id = r.subject_id
        and w.sequence > r.sequence
      order by w.sequence
      limit 1
    ) n
    where r.status <> 'pending' and (n.leased_until is null or n.leased_until <= p_at)
  ),
  turned as (
    select array_agg(t.environment_id) as environments, array_agg(t.id) as ids,
      array_agg(e.any_delivered) as to_success
    from (
      select r.environment_id, r.endpoint_id, bool_or(r.outcome = 'delivered') as any_delivered
      from recorded r group by r.environment_id, r.endpoint_id
    ) e
    join pay.webhook_endpoints t on t.environment_id = e.environment_id and t.id = e.endpoint_id
    where (t.failing_since is null) <> e.any_delivered
  )
  select n.environments, n.ids, t.environments, t.ids, t.to_success
  into next_environments, next_ids, turned_environments, turned_ids, turned_to_success
  from next n cross join turned t;
end $$;

-- Makes deliveries due that waited for an earlier one, except those that a declared fault keeps
-- back. They are due since their creation, so they come before younger deliveries.
-- Concurrency: locks them in the order of their ids.
create or replace function pay_internal.release_next_deliveries(
  p_environments text[], p_ids text[], p_at timestamptz
) returns void language plpgsql volatile as $$
begin
  with waiting as materialized (
    select d.environment_id, d.id
    from unnest(p_environments, p_ids) as n (environment_id, id)
    join pay.webhook_deliveries d on d.environment_id = n.environment_id and d.id = n.id
    where d.status || '' = 'pending' and (d.leased_until is null or d.leased_until <= p_at)
      and (d.fault is null or not pay_internal.waits_for_fault(d))
    order by d.environment_id, d.id
    for update of d
  )
  update pay.webhook_deliveries d
  set next_attempt_at = least(d.created_at, p_at),
    due_at = case when d.due_at is not null then d.created_at end
  from waiting w
  where d.environment_id = w.environment_id and d.id = w.id;
end $$;

-- Records which endpoints have started or stopped failing.
-- Concurrency: skips an endpoint that another transaction changes. The result of its next attempt
-- records the same.
create or replace function pay_internal.note_failing_endpoints(
  p_environments text[], p_ids text[], p_to_success boolean[], p_at timestamptz
) returns void language plpgsql volatile as $$
begin
  with turned as materialized (
    select t.environment_id, t.id, u.to_success
    from unnest(p_environments, p_ids, p_to_success) as u (environment_id, id, to_success)
    join pay.webhook_endpoints t on t.environment_id = u.environment_id and t.id = u.id
    for update of t skip locked
  )
  update pay.webhook_endpoints t
  set failing_since = case when not u.to_success then p_at end
  from turned u
  where t.environment_id = u.environment_id and t.id = u.id
    and (t.failing_since is null) <> u.to_success;
end $$;
