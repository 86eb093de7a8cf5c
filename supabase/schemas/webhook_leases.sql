-- Purpose: steps of pay.poll_deliveries that lease deliveries. A poison delivery is one with an
-- expired lease that has no record, so it may have crashed its dispatcher (ADR 0017). It is leased
-- apart.

-- Locks the first due deliveries of each endpoint and returns them; null if there are none. One
-- with an expired lease becomes a poison delivery, because its dispatcher has died. No later call
-- returns it.
create or replace function pay_internal.lock_due(
  p_endpoints text[], p_capacity integer[], p_quotas integer[], p_reads integer[], p_at timestamptz,
  out due pay_internal.due_delivery[]
) language plpgsql volatile as $$
declare
  v_is_any_expired boolean;
begin
  select
    array_agg(row(c.environment_id, c.id, c.endpoint_id, c.subject_id, c.sequence, c.event_id,
      c.rank - c.quota, c.is_expired)::pay_internal.due_delivery),
    bool_or(c.is_expired)
  into due, v_is_any_expired
  from (
    select l.*, o.capacity, o.quota,
      rank() over (partition by l.endpoint_id order by l.next_attempt_at, l.subject_id) as rank
    from unnest(p_endpoints, p_capacity, p_quotas, p_reads)
      as o (endpoint_id, capacity, quota, reads)
    cross join lateral (
      select d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.event_id,
        d.next_attempt_at, d.leased_until is not null as is_expired
      from pay.webhook_deliveries d
      where d.endpoint_id = o.endpoint_id and d.next_attempt_at <= p_at and d.expired_leases = 0
        and (d.leased_until is null or d.leased_until <= p_at)
      order by d.next_attempt_at, d.subject_id, d.sequence
      limit o.reads
      for update skip locked
    ) l
  ) c
  where c.rank <= c.capacity;

  if v_is_any_expired then
    update pay.webhook_deliveries d
    set expired_leases = 1, leased_until = null
    from unnest(due) c
    where c.is_expired and d.environment_id = c.environment_id and d.id = c.id;
  end if;
end $$;

-- The locked deliveries within the capacity, with their endpoints. No environment and no
-- account exceeds its limit, however many endpoints it has. Stable: reads with the snapshot of
-- pay_internal.lease_due.
create or replace function pay_internal.within_capacity(
  p_due pay_internal.due_delivery[], p_capacity jsonb, p_limit integer, p_per_environment integer,
  p_per_account integer
) returns table (
  environment_id text, id text, endpoint_id text, subject_id text, sequence integer, event_id text,
  rank_of_endpoint bigint, url text, secrets text, failing_since timestamptz, livemode boolean,
  public_id text, account text
) language plpgsql stable rows 10 as $$
#variable_conflict use_column
begin
  return query
  with
  shared as (
    select c.*, t.url, t.secrets, t.failing_since, e.livemode, e.public_id, e.account,
      rank() over (partition by e.public_id order by c.rank_of_endpoint, c.endpoint_id)
        <= coalesce((p_capacity -> 'environments' ->> e.public_id)::integer, p_per_environment)
      and rank() over (partition by e.account order by c.rank_of_endpoint, c.endpoint_id)
        <= coalesce((p_capacity -> 'accounts' ->> e.account)::integer, p_per_account) as is_within
    from unnest(p_due) c
    join pay.webhook_endpoints t
      on t.environment_id = c.environment_id and t.id = c.endpoint_id and t.status = 'enabled'
        and t.delivery = 'url'
    join pay.environments e on e.id = c.environment_id
    where not c.is_expired
  )
  select s.environment_id, s.id, s.endpoint_id, s.subject_id, s.sequence, s.event_id,
    s.rank_of_endpoint, s.url, s.secrets::text, s.failing_since, s.livemode, s.public_id, s.account
  from shared s
  where s.is_within
  order by s.rank_of_endpoint, s.endpoint_id
  fetch first (p_limit) rows with ties;
end $$;

-- Leases the locked deliveries that are within the capacity and whose earlier events are leased as
-- well.
-- Concurrency: runs after the statement that has locked them, with a new snapshot. If another
-- transaction that records an earlier delivery has committed, this function sees its result.
-- Otherwise that transaction makes the later delivery due after this poll has committed.
create or replace function pay_internal.lease_due(
  p_due pay_internal.due_delivery[], p_capacity jsonb, p_limit integer, p_per_environment integer,
  p_per_account integer, p_leased_until timestamptz, p_ahead interval
) returns setof pay.leased_delivery language plpgsql volatile rows 10 as $$
begin
  return query
  with
  counted as (
    select k.*, count(*) over (
        partition by k.endpoint_id, k.subject_id order by k.sequence
        range between unbounded preceding and 1 preceding
      ) as taken_before
    from pay_internal.within_capacity(
      p_due, p_capacity, p_limit, p_per_environment, p_per_account) k
  ),
  judged as materialized (
    select k.*,
      -- All earlier events are taken as well.
      k.sequence is null or (k.taken_before < 100 and earlier.known = k.taken_before) as is_next,
      min(k.rank_of_endpoint) over (partition by k.endpoint_id, k.subject_id) as rank_of_chain
    from counted k
    cross join lateral (
      select count(*) as known from (
        select from pay.webhook_deliveries d
        where d.status = 'pending'
          and d.environment_id is not distinct from k.environment_id
          and d.endpoint_id = k.endpoint_id
          and d.subject_id = k.subject_id
          and d.sequence < k.sequence
        -- One more than those that are taken is enough.
        limit least(k.taken_before, 99) + 1
      ) l
    ) earlier
  ),
  leased as (
    update pay.webhook_deliveries d
    set attempt_count = d.attempt_count + 1, leased_until = p_leased_until
    from judged j
    where j.is_next and d.environment_id = j.environment_id and d.id = j.id
    returning j.*, d.attempt_count,
      case d.fault_attempt when d.attempt_count then d.fault end as fault
  )
  select c.environment_id, c.public_id, c.account, c.id, c.endpoint_id, c.event_id, c.subject_id,
    c.attempt_count, c.url, c.secrets, c.livemode,
    -- In the caller's time, because the caller computes how long the endpoint has been failing.
    c.failing_since + p_ahead, false, false,
    -- As pay_internal.event_body, with the payments of the list read together.
    coalesce(v.body, pay_internal.event_payload(v, coalesce(v.object, case
      when p.body is null then pay_internal.text_at(v.environment_id, v.subject_id, v.sequence)
      else pay_internal.take_back(
        p.body, p.sequence, v.environment_id, v.subject_id, v.sequence) end), c.livemode)), (
      select row_to_json(w)::text from pay.sandbox_settings w
      where w.environment_id = c.environment_id), c.fault, v.traceparent, p_leased_until::text
  from leased c
  join pay.events v on v.environment_id = c.environment_id and v.id = c.event_id
  left join lateral (
    select t.body, t.sequence from pay.payments t
    where t.environment_id = c.environment_id and t.id = c.subject_id limit 1
  ) p on true
  order by c.rank_of_chain, c.endpoint_id, c.subject_id, c.sequence;
end $$;

-- Handles locked deliveries that were not leased. It cancels a delivery whose endpoint is deleted
-- or disabled, and postpones a delivery that waits for an earlier one. A chain that would exceed
-- the limit stays due as a whole. The first due delivery waits for none of the others. So in a
-- poll that leases nothing this function changes at least one row.
create or replace function pay_internal.reschedule_deliveries(
  p_due pay_internal.due_delivery[], p_at timestamptz
) returns void language plpgsql volatile as $$
begin
  with
  left_over as materialized (
    select d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.next_attempt_at
    from unnest(p_due) c
    join pay.webhook_deliveries d on d.environment_id = c.environment_id and d.id = c.id
    where d.leased_until is null or d.leased_until <= p_at
  ),
  judged as materialized (
    select l.*, t.status = 'enabled' or t.delivery = 'inbox' as enabled, blocker.id as blocker_id,
      blocker.next_attempt_at as blocked_until, blocker.leased_until as blocker_leased_until,
      blocker.due_at as blocker_due_at,
      l.sequence - blocker.sequence as distance
    from left_over l
    left join pay.webhook_endpoints t
      on t.environment_id = l.environment_id and t.id = l.endpoint_id
    left join lateral (
      select d.id, d.sequence, d.next_attempt_at, d.leased_until, d.due_at
      from pay.webhook_deliveries d
      where d.status = 'pending'
        and d.environment_id is not distinct from l.environment_id
        and d.endpoint_id = l.endpoint_id
        and d.subject_id = l.subject_id
        and d.sequence < l.sequence
      order by d.sequence
      limit 1
    ) blocker on true
  ),
  called_off as (
    update pay.webhook_deliveries d
    set status = 'cancelled', next_attempt_at = null, leased_until = null
    from judged j
    where j.enabled is not true and d.environment_id = j.environment_id and d.id = j.id
  )
  update pay.webhook_deliveries d
  set next_attempt_at = case
      -- The earlier delivery releases this one. A short wait would check thousands of rows often.
      when j.blocker_leased_until > p_at and j.distance > 100 then p_at + interval '1 minute'
      when j.blocker_leased_until > p_at then p_at + interval '5 seconds'
      else greatest(j.blocked_until, p_at + interval '1 second')
    end,
    -- The clock of a sandbox that stands makes both due at the same time.
    due_at = case when j.blocker_leased_until > p_at then d.due_at
      else greatest(d.due_at, j.blocker_due_at) end
  from judged j
  where j.enabled and j.blocker_id is not null
    and (
      -- A poll has leased the blocker: this one or another.
      (j.environment_id, j.blocker_id) not in (select o.environment_id, o.id from left_over o)
      -- The blocker is due later: every poll would look at this one in its place.
      or j.blocked_until > j.next_attempt_at
    )
    and d.environment_id = j.environment_id and d.id = j.id;
end $$;

-- Leases one poison delivery. A dispatcher has one at a time, so that a crash adds no expired lease
-- to another poison delivery. p_poison_ahead: as in pay_internal.lock_poison. p_ahead: how far the
-- caller's clock is ahead of the server's. p_excluded, p_only: as in pay.poll_deliveries.
create or replace function pay_internal.lease_poison(
  p_poison_ahead jsonb, p_at timestamptz, p_leased_until timestamptz, p_ahead interval,
  p_excluded text[], p_only text
) returns setof pay.leased_delivery language plpgsql volatile rows 10 as $$
declare
  v_longest_look constant interval := '200 ms';
  v_due pay_internal.due_delivery[];
  v_is_leased boolean;
begin
  loop
    v_due := pay_internal.lock_poison(p_poison_ahead, p_at, p_excluded, p_only);
    exit when v_due is null;
    return query select * from pay_internal.lease_first_poison(v_due, p_leased_until, p_ahead);
    v_is_leased := found;
    -- Postpones poison deliveries that wait for an earlier delivery, and cancels those of disabled
    -- endpoints.
    perform pay_internal.reschedule_deliveries(v_due, p_at);
    exit when v_is_leased or clock_timestamp() > statement_timestamp() + v_longest_look;
  end loop;
end $$;

-- Locks the poison deliveries that may be next, two of each endpoint, and returns them in the order
-- in which the dispatcher leases one; null if there are none. Accounts share the dispatcher's time:
-- p_ahead, {account: milliseconds}, contains the accounts that have used more of it than the
-- others. Within an account the poison deliveries with the fewest expired leases come first,
-- because the one that crashes dispatchers has the most.
create or replace function pay_internal.lock_poison(
  p_ahead jsonb, p_at timestamptz, p_excluded text[], p_only text
) returns pay_internal.due_delivery[] language plpgsql volatile as $$
begin
  return (
    with recursive poisoned as (
      (select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
       where d.next_attempt_at is not null and d.expired_leases > 0
         and d.endpoint_id >= coalesce(p_only, '')
       order by d.endpoint_id limit 1)
      union all
      select n.environment_id, n.endpoint_id
      from poisoned s
      cross join lateral (
        select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
        where d.next_attempt_at is not null and d.expired_leases > 0
          and d.endpoint_id > s.endpoint_id
        order by d.endpoint_id limit 1
      ) n
      where p_only is null
    )
    select array_agg(
      row(l.environment_id, l.id, l.endpoint_id, l.subject_id, l.sequence, l.event_id, null,
        l.leased_until is not null)::pay_internal.due_delivery
      order by coalesce((p_ahead ->> e.account)::float8, 0), e.account,
        l.expired_leases, l.next_attempt_at, l.subject_id, l.sequence
    )
    from poisoned s
    join pay.environments e on e.id = s.environment_id and e.moving is null
    -- A delivery that moves to an inbox is a poison delivery until it is there.
    left join pay.webhook_endpoints t
      on t.environment_id = s.environment_id and t.id = s.endpoint_id
    cross join lateral (
      select d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.event_id,
        d.leased_until, d.expired_leases, d.next_attempt_at
      from pay.webhook_deliveries d
      where d.endpoint_id = s.endpoint_id and d.next_attempt_at <= p_at and d.expired_leases > 0
        and (d.leased_until is null or d.leased_until <= p_at)
      order by d.expired_leases, d.next_attempt_at, d.subject_id, d.sequence
      limit 2
      for update skip locked
    ) l
    where t.delivery is distinct from 'inbox'
      and s.endpoint_id <> all (p_excluded) and s.endpoint_id = coalesce(p_only, s.endpoint_id)
  );
end $$;

-- Leases the first of the locked poison deliveries that waits for no earlier delivery.
-- A lease counts the one before it, which has expired. On the third and every later loss crashed is
-- true: the dispatcher records a crashed attempt under the number of the lost one and does not send
-- the delivery.
-- Concurrency: as pay_internal.lease_due.
create or replace function pay_internal.lease_first_poison(
  p_due pay_internal.due_delivery[], p_leased_until timestamptz, p_ahead interval
) returns setof pay.leased_delivery language plpgsql volatile rows 10 as $$
declare
  v_most_expired constant integer := 3;
begin
  return query
  with
  chosen as materialized (
    select d.environment_id, d.id, t.url, t.secrets, t.failing_since, e.livemode, e.public_id,
      e.account, c.is_expired, c.is_expired and d.expired_leases + 1 >= v_most_expired as crashed
    from unnest(p_due) with ordinality as c
      (environment_id, id, endpoint_id, subject_id, sequence, event_id, rank, is_expired, n)
    join pay.webhook_deliveries d on d.environment_id = c.environment_id and d.id = c.id
    join pay.webhook_endpoints t
      on t.environment_id = d.environment_id and t.id = d.endpoint_id and t.status = 'enabled'
        and t.delivery = 'url'
    join pay.environments e on e.id = d.environment_id
    where pay_internal.blocking_delivery(d) is null
    order by c.n
    limit 1
  ),
  leased as (
    update pay.webhook_deliveries d
    set attempt_count = d.attempt_count + case when c.crashed then 0 else 1 end,
      expired_leases = d.expired_leases + case when c.is_expired then 1 else 0 end,
      leased_until = p_leased_until
    from chosen c
    where d.environment_id = c.environment_id and d.id = c.id
    returning c.*, d.endpoint_id, d.event_id, d.subject_id, d.attempt_count
  )
  select c.environment_id, c.public_id, c.account, c.id, c.endpoint_id, c.event_id, c.subject_id,
    c.attempt_count, c.url, c.secrets::text, c.livemode, c.failing_since + p_ahead, true, c.crashed,
    pay_internal.event_body(v), (
      select row_to_json(w)::text from pay.sandbox_settings w
      where w.environment_id = c.environment_id), null, v.traceparent, p_leased_until::text
  from leased c
  join pay.events v on v.environment_id = c.environment_id and v.id = c.event_id;
end $$;
