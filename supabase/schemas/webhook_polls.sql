-- Purpose: a poll of the dispatcher. It records the attempts that have ended, then leases due
-- deliveries.
--
-- The dispatcher calls only pay.poll_deliveries. Its steps are here, in webhook_results.sql and in
-- webhook_leases.sql. They run under its row-level security and with its planner settings. Each
-- statement of a step has a new snapshot.

-- One poll of the dispatcher.
--
-- p_results       {ended, released, log_entries}; {} if there are none
--                 ended: [{environment_id, id, attempt, leased_until, outcome, next_attempt_at,
--                   record, due_at}]
--                   outcome: delivered | failed; next_attempt_at: null if there is none;
--                   record: the attempt as JSON text;
--                   due_at: only of a sandbox with a clock of its own, the time by that clock
--                 released: [{environment_id, id, attempt, leased_until}], without an attempt
--                 log_entries: as pay_internal.log_attempts takes them
-- p_capacity      {endpoints: {id: limit}, environments: {public id: limit},
--                 accounts: {name: limit}}: how many more deliveries of each the dispatcher may
--                 lease, for those of which it has leases already
-- p_limit         how many to lease in total
-- p_per_endpoint, p_per_environment, p_per_account
--                 the limits of those without leases. The limit of a failing endpoint is 2.
--                 Environments are counted by their public id, which a reset keeps.
-- p_poison_ahead  as in pay_internal.lock_poison; null if the dispatcher has a poison delivery
-- p_leased_until  the end of the leases; another dispatcher may lease the deliveries after it
-- p_excluded      [endpoint id]: endpoints to leave out, because a poll with them fails
-- p_only          the only endpoint to serve; null: all of them
--
-- Order: a poll leases an event only together with all earlier pending events of its endpoint and
-- subject. The dispatcher sends them one after another. Of the deliveries that are due at the same
-- moment, a poll leases all of one subject before those of the next. So a lease can exceed a limit
-- by the rest of one subject: postponing that rest would cost as much as sending it. A poison
-- delivery is leased alone. Endpoints share the free capacity: the endpoint with the fewest leases
-- comes first. When a delivery ends, the poll that records it makes the next delivery of its
-- subject due. This statement does not see a delivery that is written after it has begun. So a
-- later poll checks a waiting delivery again when the next attempt of the earlier one is due, or in
-- 5 seconds while that attempt is under way (in a minute if the delivery is more than 100 events
-- behind).
-- Concurrency: a poll skips locked rows, so dispatchers never wait for each other. A result counts
-- only for its own lease, which it names by the attempt and the end of the lease. So a result that
-- comes again after a lost response changes nothing, also if the delivery was given back and leased
-- under the same number.
-- Cost: a lease changes no indexed column, so the new version of the row is heap-only. Queries for
-- the events of a subject use "environment_id is not distinct from", which no index supports. With
-- "=" the planner could choose an index that reads all deliveries of the endpoint for each event.
create or replace function pay.poll_deliveries(
  p_results text, p_capacity text, p_limit integer, p_per_endpoint integer,
  p_per_environment integer, p_per_account integer, p_poison_ahead text, p_at timestamptz,
  p_leased_until timestamptz, p_excluded text default '[]', p_only text default null
) returns setof pay.leased_delivery
language plpgsql volatile security definer rows 10 set search_path = pg_catalog, pg_temp
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off
-- Each delivery is looked up once. A bitmap of the pending ones would read all of them: the first
-- plan is made while there is none.
set enable_memoize = off set enable_bitmapscan = off as $$
declare
  v_longest_look constant interval := '100 ms';
  -- The lead of the caller's clock over the server's.
  v_ahead constant interval := greatest(p_at - pay_internal.server_time(), '0');
  v_at constant timestamptz := p_at - v_ahead;
  -- By the server's time: other dispatchers would find a lease of a slow clock expired.
  v_leased_until constant timestamptz := pay_internal.server_time() + (p_leased_until - p_at);
  v_capacity constant jsonb := p_capacity::jsonb;
  v_excluded constant text[] := array(select json_array_elements_text(p_excluded::json));
  v_waiting record;
  v_due pay_internal.due_delivery[];
  v_leased integer;
begin
  perform pay_internal.act_as_worker();
  if p_results <> '{}' then
    perform pay_internal.record_attempts(p_results::jsonb, v_at, v_ahead);
  end if;
  if p_limit <= 0 then return; end if;

  select * into v_waiting
  from pay_internal.find_capacity(
    v_capacity, p_limit, p_per_endpoint, p_per_environment, p_per_account, v_excluded, p_only);
  if v_waiting.inbox_endpoints is not null then
    perform pay_internal.fill_inboxes(v_waiting.inbox_environments, v_waiting.inbox_endpoints);
  end if;
  if v_waiting.off_endpoint is not null then
    -- Fewer if results wait for the end of this poll.
    perform pay_internal.call_off_deliveries(v_waiting.off_environment, v_waiting.off_endpoint,
      case when p_results = '{}' then 2000 else 250 end);
  end if;

  -- If all due deliveries wait for earlier ones, the poll looks at those behind them, for as long
  -- as others can wait for it. Postponed deliveries stay postponed, and the next poll continues.
  loop
    v_due := pay_internal.lock_due(
      v_waiting.endpoints, v_waiting.capacity, v_waiting.quotas, v_waiting.reads, v_at);
    exit when v_due is null;
    -- One probe of an index that is mostly empty.
    if exists (select from pay.faults fault where fault.kind = 'delivery'
      and fault.times_left > 0) then
      v_due := pay_internal.give_faults(v_due, v_at);
    end if;
    return query select * from pay_internal.lease_due(
      v_due, v_capacity, p_limit, p_per_environment, p_per_account, v_leased_until, v_ahead);
    get diagnostics v_leased = row_count;
    if v_leased < cardinality(v_due) then
      perform pay_internal.reschedule_deliveries(v_due, v_at);
    end if;
    exit when v_leased > 0 or clock_timestamp() > statement_timestamp() + v_longest_look;
  end loop;

  -- Checked first, because there is usually none and the function costs a third of an empty poll.
  if p_poison_ahead is not null and exists (
    select from pay.webhook_deliveries d
    where d.next_attempt_at is not null and d.expired_leases > 0
  ) then
    return query
      select * from pay_internal.lease_poison(
        p_poison_ahead::jsonb, v_at, v_leased_until, v_ahead, v_excluded, p_only);
  end if;
end $$;
grant execute on function pay.poll_deliveries to pay_api;

-- Finds the endpoints with which a poll fails: makes a poll for each endpoint alone and undoes it.
-- The dispatcher calls it after a poll without results has failed, and leaves out these endpoints
-- for a while, so that they hold up no other. Works for 2 seconds at most.
-- p_after  the endpoints up to this id were tried; '' begins
-- code     the SQLSTATE; null: no failure, but the endpoints after this one are not tried yet
create or replace function pay.find_failing_endpoints(p_at timestamptz, p_after text)
returns table (endpoint_id text, code text)
language plpgsql volatile security definer rows 10 set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  v_until constant timestamptz := clock_timestamp() + interval '2 seconds';
  v_undone constant text := 'PY000';
  v_last text := p_after;
begin
  perform pay_internal.act_as_worker();
  loop
    select d.endpoint_id into v_last from pay.webhook_deliveries d
    where d.status = 'pending' and d.endpoint_id > v_last
    order by d.endpoint_id limit 1;
    exit when v_last is null;
    begin
      perform pay.poll_deliveries(
        '{}', '{}', 1000, 1000, 1000, 1000, '{}', p_at, p_at, '[]', v_last);
      raise exception using errcode = v_undone;
    exception when others then
      if sqlstate <> v_undone then
        raise warning 'a poll of the dispatcher for % fails: % %', v_last, sqlstate, sqlerrm;
        return query select v_last, sqlstate;
      end if;
    end;
    if clock_timestamp() > v_until then
      return query select v_last, null::text;
      return;
    end if;
  end loop;
end $$;
grant execute on function pay.find_failing_endpoints to pay_api;

-- The endpoints with pending deliveries, each found by one index probe. p_excluded, p_only: as in
-- pay.poll_deliveries.
-- is_on         takes deliveries; is_inbox: keeps them; has_entries: and can take some now
-- of_environment, of_account, of_all
--               how many share the limits: those that take deliveries and are not failing
create or replace function pay_internal.waiting_endpoints(p_excluded text[], p_only text)
returns table (
  environment_id text, endpoint_id text, public_id text, account text, is_failing boolean,
  is_on boolean, is_inbox boolean, has_entries boolean, of_environment bigint, of_account bigint,
  of_all bigint
) language plpgsql stable rows 10 as $$
#variable_conflict use_column
begin
  return query
  with recursive waiting as (
    (select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
     where d.status = 'pending' and d.endpoint_id >= coalesce(p_only, '')
     order by d.endpoint_id limit 1)
    union all
    select n.environment_id, n.endpoint_id
    from waiting w
    cross join lateral (
      select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
      where d.status = 'pending' and d.endpoint_id > w.endpoint_id
      order by d.endpoint_id limit 1
    ) n
    where p_only is null
  )
  select w.environment_id, w.endpoint_id, e.public_id, e.account, k.is_failing, k.is_on, k.is_inbox,
    k.is_inbox and pay_internal.has_entries(w.endpoint_id),
    count(*) filter (where k.shares) over (partition by e.public_id),
    count(*) filter (where k.shares) over (partition by e.account),
    count(*) filter (where k.shares) over ()
  from waiting w
  join pay.environments e on e.id = w.environment_id and e.moving is null
  left join pay.webhook_endpoints t on t.environment_id = w.environment_id and t.id = w.endpoint_id
  cross join lateral (
    select t.failing_since is not null as is_failing,
      coalesce(t.status = 'enabled' and t.delivery = 'url', false) as is_on,
      coalesce(t.delivery = 'inbox', false) as is_inbox,
      t.status = 'enabled' and t.delivery = 'url' and t.failing_since is null as shares
  ) k
  where w.endpoint_id <> all (p_excluded) and w.endpoint_id = coalesce(p_only, w.endpoint_id);
end $$;

-- The endpoints with pending deliveries, and how many more of each the dispatcher may lease.
-- Parameters: as in pay.poll_deliveries.
-- endpoints, capacity, quotas, reads: the endpoints, and for each of them how many deliveries to
-- lease at most, its quota of the free capacity, and how many due deliveries to read.
-- off_environment, off_endpoint: a deleted or disabled endpoint with pending deliveries.
-- inbox_environments, inbox_endpoints: endpoints with an inbox to which something can be added, 16
-- at most.
create or replace function pay_internal.find_capacity(
  p_capacity jsonb, p_limit integer, p_per_endpoint integer, p_per_environment integer,
  p_per_account integer, p_excluded text[], p_only text, out endpoints text[],
  out capacity integer[], out quotas integer[], out reads integer[], out off_environment text,
  out off_endpoint text, out inbox_environments text[], out inbox_endpoints text[]
) language plpgsql stable as $$
declare
  -- As many rows as one request makes due at a moment, except the first.
  v_rest constant integer := 4;
begin
  select array_agg(w.endpoint_id) filter (where w.is_on and r.capacity > 0),
    array_agg(r.capacity) filter (where w.is_on and r.capacity > 0),
    -- An endpoint that has leases comes after those that have none, however quick it is.
    array_agg(
      case when r.left_of_endpoint is null then p_per_endpoint
        else least(r.left_of_endpoint, p_per_endpoint - 1)
      end
    ) filter (where w.is_on and r.capacity > 0),
    -- The poll would give back most deliveries that it leases of a failing endpoint.
    array_agg(r.capacity + case when w.is_failing then 0 else v_rest end)
      filter (where w.is_on and r.capacity > 0),
    (array_agg(w.environment_id) filter (where not w.is_on and not w.is_inbox))[1],
    (array_agg(w.endpoint_id) filter (where not w.is_on and not w.is_inbox))[1],
    (array_agg(w.environment_id) filter (where w.has_entries))[:16],
    (array_agg(w.endpoint_id) filter (where w.has_entries))[:16]
  into endpoints, capacity, quotas, reads, off_environment, off_endpoint, inbox_environments,
    inbox_endpoints
  from pay_internal.waiting_endpoints(p_excluded, p_only) w
  cross join lateral (
    select o.left_of_endpoint, least(
      coalesce(o.left_of_endpoint, p_per_endpoint),
      -- Twice the share of each limit: what the others do not need, the next poll gives.
      min(least(l.free, (2 * l.free + l.sharers - 1) / l.sharers)),
      case when w.is_failing then 2 end
    ) as capacity
    from (select (p_capacity -> 'endpoints' ->> w.endpoint_id)::integer as left_of_endpoint) o
    cross join lateral (values
      (coalesce((p_capacity -> 'environments' ->> w.public_id)::integer, p_per_environment),
        greatest(w.of_environment, 1)),
      (coalesce((p_capacity -> 'accounts' ->> w.account)::integer, p_per_account),
        greatest(w.of_account, 1)),
      (p_limit, greatest(w.of_all, 1))
    ) l (free, sharers)
    group by o.left_of_endpoint
  ) r;
end $$;
