-- Purpose: invariants over the outbox of webhooks (invariants.sql).

create or replace view pay.invariant_outbox with (security_invoker = true) as
select v.environment_id, v.id as subject_id, v.type || ' has no delivery to ' || t.id as detail
from pay.events v
join pay.webhook_endpoints t
  on t.environment_id = v.environment_id
  and t.events && pay_internal.patterns_of(v.type)
  -- The endpoint was never changed, so it was always enabled. The margin of 10 seconds is for
  -- requests that were under way when it was created.
  and t.revision = 1
  and v.created_at > t.created_at + interval '10 seconds'
left join pay_internal.sandbox_times clock on clock.environment_id = v.environment_id
where v.sequence is not null
  and right(v.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
  and not exists (
    select from pay_internal.deliveries_of(v.environment_id, v.id) d where d.endpoint_id = t.id
  );
comment on view pay.invariant_outbox is
  'R6: every event has a delivery to every endpoint that subscribes to it';

create or replace view pay.invariant_endless_deliveries with (security_invoker = true) as
select d.environment_id, d.id as subject_id,
  'next attempt at ' || greatest(coalesce(d.due_at, d.next_attempt_at), d.leased_until) as detail
from pay.webhook_deliveries d
left join pay_internal.sandbox_times clock on clock.environment_id = d.environment_id
where d.status = 'pending'
  -- The longest delay of the schedule is 24 hours and a fifth, and twice that if the receiver asks
  -- for it. A lease lasts seconds. Infinity is the time of a clock that stands.
  and (coalesce(case when clock.now is not null then d.due_at end, d.next_attempt_at)
      > coalesce(clock.now, now()) + interval '58 hours'
    or d.leased_until > now() + interval '1 hour')
union all
select d.environment_id, d.id, 'due by the clock of its sandbox since ' || d.due_at
from pay.webhook_deliveries d
join pay_internal.sandbox_times clock on clock.environment_id = d.environment_id
where d.next_attempt_at = 'infinity' and d.due_at <= clock.now
  -- No step of an advance is still to make it due.
  and not exists (
    select from pay.sandbox_settings w
    where w.environment_id = d.environment_id and w.target_at is not null
  )
  and pay_internal.blocking_delivery(d) is null
union all
select d.environment_id, d.id, 'due since ' || d.next_attempt_at
from pay.webhook_deliveries d
where d.status = 'pending'
  and greatest(d.next_attempt_at, d.leased_until) < now() - interval '1 hour'
  -- A slow receiver has a long queue, which is no defect. So only endpoints without an attempt in
  -- this hour or the last are listed.
  and (d.environment_id, d.endpoint_id) not in (
    select o.environment_id, o.endpoint_id
    from pay.webhook_deliveries o
    left join pay_internal.sandbox_times clock on clock.environment_id = o.environment_id
    where o.leased_until > now() - interval '1 hour'
      or (o.attempts[cardinality(o.attempts)] ->> 'at')::timestamptz
        >= date_trunc('hour', coalesce(clock.now, now()), 'UTC') - interval '1 hour'
  );
comment on view pay.invariant_endless_deliveries is
  'R6: no delivery waits longer than the retry schedule allows';

create or replace view pay.invariant_delivery_order with (security_invoker = true) as
select d.environment_id, d.id as subject_id, 'attempted before the earlier ' || d.before as detail
from (
  select w.environment_id, w.id, w.attempt_count, a.first_at,
    lag(w.id) over earlier as before,
    lag(w.status) over earlier as status_before,
    lag(w.attempt_count) over earlier as attempt_count_before,
    lag(a.first_at) over earlier as first_at_before
  from pay.webhook_deliveries w
  -- The endpoint was never changed, so no delivery was cancelled and redelivered later.
  join pay.webhook_endpoints t
    on t.environment_id = w.environment_id and t.id = w.endpoint_id and t.revision = 1
  -- The record of the first attempt can be lost with its dispatcher.
  cross join lateral (
    select case when (w.attempts[1] ->> 'number')::integer = 1
      then (w.attempts[1] ->> 'at')::timestamptz end as first_at
  ) a
  where w.sequence is not null
    -- A declared fault can change the order.
    and w.fault is null
  window earlier as (partition by w.environment_id, w.endpoint_id, w.subject_id order by w.sequence)
) d
-- Each time is from the clock of the isolate that made the attempt. These clocks differ a little.
where d.first_at_before > d.first_at + interval '1 second'
  or (d.status_before = 'pending' and d.attempt_count_before = 0 and d.attempt_count > 0);
comment on view pay.invariant_delivery_order is
  'R7: for each endpoint and payment, first attempts are made in the order of sequence';

create or replace view pay.invariant_inboxes with (security_invoker = true) as
select d.environment_id, d.id as subject_id,
  'is available, but no read of its inbox would show it' as detail
from pay.webhook_deliveries d
join pay.environments v on v.id = d.environment_id and v.retired_at is null
where d.status = 'available'
  and not exists (
    select from pay.inbox_entries entry
    join pay.webhook_endpoints t
      on t.environment_id = entry.environment_id and t.id = entry.endpoint_id
      and t.delivery = 'inbox'
    where entry.environment_id = d.environment_id and entry.delivery_id = d.id
      and entry.endpoint_id = d.endpoint_id
      and entry.position > t.inbox_acknowledged and entry.position <= t.inbox_position
  );
comment on view pay.invariant_inboxes is
  'R6: every delivery that waits in an inbox is behind the acknowledged position';
