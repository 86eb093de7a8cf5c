-- Purpose: a turn of the relay. It records the attempts that have ended, then claims due
-- deliveries.
--
-- The relay calls only pay.relay_turn. The other functions of this file, of relay_rooms.sql, of
-- relay_results.sql and of relay_suspects.sql are its internal steps. They run under its row-level
-- security and with its planner settings. Each statement of a step has a new snapshot.

-- One turn of the relay.
--
-- p_results       [{environment_id, id, attempt, outcome, next_attempt_at, record}]
--                 outcome: delivered | failed | released (the attempt was not made);
--                 next_attempt_at: the time of the next attempt; null if there is none;
--                 record: the attempt as JSON text.
--                 Results of sandboxes also have an exchange (pay_internal.keep_exchanges)
-- p_rooms         {endpoints: {id: limit}, environments: {public id: limit},
--                 accounts: {name: limit}}: how many more deliveries of each the relay may claim,
--                 for those of which it has claims already
-- p_limit         how many to claim in total
-- p_per_endpoint, p_per_environment, p_per_account
--                 the limits of those without claims. The limit of a failing endpoint is 2.
--                 Environments are counted by their public id, which a reset keeps.
-- p_suspects_ahead  as in pay_internal.lock_suspects; null if the relay has a suspect
-- p_leased_until  the end of the leases; another relay may claim the deliveries after it
-- p_aside         [endpoint id]: endpoints to leave out, because a turn with them fails
-- p_only          the only endpoint to serve; null: all of them
--
-- Order: a turn claims an event only together with all earlier pending events of its endpoint and
-- subject. The relay sends them one after another. Of the deliveries that are due at the same
-- moment, a turn claims all of one subject before those of the next. So a claim can exceed a limit
-- by the rest of one subject: postponing that rest would cost as much as sending it. A suspect is
-- claimed alone.
-- Endpoints share the free places: the endpoint with the fewest claims comes first. When a
-- delivery ends, the turn that records it makes the next delivery of its subject due. This
-- statement does not see a delivery that is written after it has begun. So a later turn checks a
-- waiting delivery again when the next attempt of the earlier one is due, or in 5 seconds while
-- that attempt is under way (in a minute if the delivery is more than 100 events behind).
-- Concurrency: a turn skips locked rows, so relays never wait for each other. A result counts only
-- if its attempt is the newest, so the result of an attempt that was claimed again changes nothing.
-- Cost: a claim changes no indexed column, so the new version of the row is heap-only. Queries for
-- the events of a subject use "environment_id is not distinct from", which no index supports. With
-- "=" the planner could choose an index that reads all deliveries of the endpoint for each event.
create or replace function pay.relay_turn(
  p_results text, p_rooms text, p_limit integer,
  p_per_endpoint integer, p_per_environment integer, p_per_account integer, p_suspects_ahead text,
  p_at timestamptz,
  p_leased_until timestamptz,
  p_aside text default '[]',
  p_only text default null
)
returns setof pay.claimed_delivery
language plpgsql volatile security definer rows 10
set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_longest_look constant interval := '100 ms';
  -- The lead of the caller's clock over the server's.
  v_ahead constant interval := greatest(p_at - pay_internal.server_time(), '0');
  v_at constant timestamptz := p_at - v_ahead;
  -- By the server's time: other relays would find a lease of a slow clock expired.
  v_leased_until constant timestamptz := pay_internal.server_time() + (p_leased_until - p_at);
  v_rooms constant jsonb := p_rooms::jsonb;
  v_aside constant text[] := array(select json_array_elements_text(p_aside::json));
  v_waiting record;
  v_due pay_internal.due_delivery[];
  v_claimed integer;
begin
  perform set_config('pay.worker', 'on', true);
  if p_results <> '[]' then
    perform pay_internal.record_attempts(p_results, v_at, v_ahead);
  end if;
  if p_limit <= 0 then
    return;
  end if;

  select * into v_waiting
  from pay_internal.find_room(
    v_rooms, p_limit, p_per_endpoint, p_per_environment, p_per_account, v_aside, p_only);
  if v_waiting.inbox_endpoints is not null then
    perform pay_internal.fill_inboxes(v_waiting.inbox_environments, v_waiting.inbox_endpoints);
  end if;
  if v_waiting.off_endpoint is not null then
    -- Fewer if results wait for the end of this turn.
    perform pay_internal.call_off_deliveries(v_waiting.off_environment, v_waiting.off_endpoint,
      case when p_results = '[]' then 2000 else 250 end);
  end if;

  -- If all due deliveries wait for earlier ones, the turn looks at those behind them, for as long
  -- as others can wait for it. Postponed deliveries stay postponed, and the next turn continues.
  loop
    v_due := pay_internal.lock_due(
      v_waiting.endpoints, v_waiting.rooms, v_waiting.shares, v_waiting.reads, v_at);
    exit when v_due is null;
    -- One probe of an index that is mostly empty.
    if exists (select from pay.faults f where f.kind = 'delivery' and f.times_left > 0) then
      v_due := pay_internal.give_faults(v_due, v_at);
    end if;
    return query select * from pay_internal.claim_due(
      v_due, v_rooms, p_limit, p_per_environment, p_per_account, v_leased_until, v_ahead);
    get diagnostics v_claimed = row_count;
    if v_claimed < cardinality(v_due) then
      perform pay_internal.put_off_deliveries(v_due, v_at);
    end if;
    exit when v_claimed > 0 or clock_timestamp() > statement_timestamp() + v_longest_look;
  end loop;

  -- Checked first, because there is usually none and the function costs a third of an empty turn.
  if p_suspects_ahead is not null and exists (
    select from pay.webhook_deliveries d
    where d.next_attempt_at is not null and d.lost_claims > 0
  ) then
    return query
      select * from pay_internal.claim_suspect(
        p_suspects_ahead::jsonb, v_at, v_leased_until, v_ahead, v_aside, p_only);
  end if;
end
$$;
grant execute on function pay.relay_turn(text, text, integer, integer, integer, integer, text,
  timestamptz, timestamptz, text, text) to pay_api;

-- Finds the endpoints with which a turn fails: makes a turn for each endpoint alone and undoes it.
-- The relay calls it after a turn without results has failed, and leaves out these endpoints for a
-- while, so that they hold up no other. Works for 2 seconds at most.
-- p_after  the endpoints up to this id were tried; '' begins
-- code     the SQLSTATE; null: no failure, but the endpoints after this one are not tried yet
create or replace function pay.find_failing_endpoints(p_at timestamptz, p_after text)
returns table (endpoint_id text, code text)
language plpgsql volatile security definer rows 10
set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_until constant timestamptz := clock_timestamp() + interval '2 seconds';
  v_undone constant text := 'PY000';
  v_last text := p_after;
begin
  perform set_config('pay.worker', 'on', true);
  loop
    select d.endpoint_id into v_last from pay.webhook_deliveries d
    where d.status = 'pending' and d.endpoint_id > v_last
    order by d.endpoint_id limit 1;
    exit when v_last is null;
    begin
      perform pay.relay_turn(
        '[]', '{}', 1000, 1000, 1000, 1000, '{}', p_at, p_at, '[]', v_last);
      raise exception using errcode = v_undone;
    exception when others then
      if sqlstate <> v_undone then
        raise warning 'a turn of the relay for % fails: % %', v_last, sqlstate, sqlerrm;
        return query select v_last, sqlstate;
      end if;
    end;
    if clock_timestamp() > v_until then
      return query select v_last, null::text;
      return;
    end if;
  end loop;
end
$$;
grant execute on function pay.find_failing_endpoints(timestamptz, text) to pay_api;

-- Locks the first due deliveries of each endpoint and returns them; null if there are none. One
-- with an expired lease becomes a suspect, because its relay has died. No later call returns it.
create or replace function pay_internal.lock_due(
  p_endpoints text[],
  p_rooms integer[],
  p_shares integer[],
  p_reads integer[],
  p_at timestamptz
)
returns pay_internal.due_delivery[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_due pay_internal.due_delivery[];
  v_is_any_lost boolean;
begin
  select
    array_agg(row(c.environment_id, c.id, c.endpoint_id, c.subject_id, c.sequence, c.event_id,
      c.place - c.share, c.is_lost)::pay_internal.due_delivery),
    bool_or(c.is_lost)
  into v_due, v_is_any_lost
  from (
    select l.*, o.room, o.share,
      rank() over (partition by l.endpoint_id order by l.next_attempt_at, l.subject_id) as place
    from unnest(p_endpoints, p_rooms, p_shares, p_reads) as o (endpoint_id, room, share, reads)
    cross join lateral (
      select d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.event_id,
        d.next_attempt_at, d.leased_until is not null as is_lost
      from pay.webhook_deliveries d
      where d.endpoint_id = o.endpoint_id and d.next_attempt_at <= p_at and d.lost_claims = 0
        and (d.leased_until is null or d.leased_until <= p_at)
      order by d.next_attempt_at, d.subject_id, d.sequence
      limit o.reads
      for update skip locked
    ) l
  ) c
  where c.place <= c.room;

  if v_is_any_lost then
    update pay.webhook_deliveries d
    set lost_claims = 1, leased_until = null
    from unnest(v_due) c
    where c.is_lost and d.environment_id = c.environment_id and d.id = c.id;
  end if;
  return v_due;
end
$$;

-- The locked deliveries for which there is a place, with their endpoints. No environment and no
-- account exceeds its limit, however many endpoints it has. Stable: reads with the snapshot of
-- pay_internal.claim_due.
create or replace function pay_internal.take_places(
  p_due pay_internal.due_delivery[],
  p_rooms jsonb,
  p_limit integer,
  p_per_environment integer,
  p_per_account integer
)
returns table (
  environment_id text, id text, endpoint_id text, subject_id text, sequence integer, event_id text,
  rank_of_endpoint bigint, url text, secrets text, failing_since timestamptz, livemode boolean,
  public_id text, account text
)
language plpgsql stable rows 10
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
  with
  shared as (
    select c.*, t.url, t.secrets, t.failing_since, e.livemode, e.public_id, e.account,
      rank() over (partition by e.public_id order by c.rank_of_endpoint, c.endpoint_id)
        <= coalesce((p_rooms -> 'environments' ->> e.public_id)::integer, p_per_environment)
      and rank() over (partition by e.account order by c.rank_of_endpoint, c.endpoint_id)
        <= coalesce((p_rooms -> 'accounts' ->> e.account)::integer, p_per_account) as has_place
    from unnest(p_due) c
    join pay.webhook_endpoints t
      on t.environment_id = c.environment_id and t.id = c.endpoint_id and t.status = 'enabled'
        and t.delivery = 'url'
    join pay.environments e on e.id = c.environment_id
    where not c.is_lost
  )
  select s.environment_id, s.id, s.endpoint_id, s.subject_id, s.sequence, s.event_id,
    s.rank_of_endpoint, s.url, s.secrets::text, s.failing_since, s.livemode, s.public_id, s.account
  from shared s
  where s.has_place
  order by s.rank_of_endpoint, s.endpoint_id
  fetch first (p_limit) rows with ties;
end
$$;

-- Claims the locked deliveries that have a place and whose earlier events are claimed as well.
-- Concurrency: runs after the statement that has locked them, with a new snapshot. If another
-- transaction that records an earlier delivery has committed, this function sees its result.
-- Otherwise that transaction makes the later delivery due after this turn has committed.
create or replace function pay_internal.claim_due(
  p_due pay_internal.due_delivery[],
  p_rooms jsonb,
  p_limit integer,
  p_per_environment integer,
  p_per_account integer,
  p_leased_until timestamptz,
  p_ahead interval
)
returns setof pay.claimed_delivery
language plpgsql volatile rows 10
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  with
  counted as (
    select k.*, count(*) over (
        partition by k.endpoint_id, k.subject_id order by k.sequence
        range between unbounded preceding and 1 preceding
      ) as taken_before
    from pay_internal.take_places(p_due, p_rooms, p_limit, p_per_environment, p_per_account) k
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
  claimed as (
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
    c.failing_since + p_ahead, false, false, v.body, (
      select row_to_json(w)::text from pay.sandbox_settings w
      where w.environment_id = c.environment_id), c.fault
  from claimed c
  join pay.events v on v.environment_id = c.environment_id and v.id = c.event_id
  order by c.rank_of_chain, c.endpoint_id, c.subject_id, c.sequence;
end
$$;

-- Handles locked deliveries that were not claimed. It cancels a delivery whose endpoint is deleted
-- or disabled, and postpones a delivery that waits for an earlier one. A chain that would exceed
-- the limit stays due as a whole. The first due delivery waits for none of the others. So in a
-- turn that claims nothing this function changes at least one row.
create or replace function pay_internal.put_off_deliveries(
  p_due pay_internal.due_delivery[], p_at timestamptz
)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
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
      -- A turn has claimed the blocker: this one or another.
      (j.environment_id, j.blocker_id) not in (select o.environment_id, o.id from left_over o)
      -- The blocker is due later: every turn would look at this one in its place.
      or j.blocked_until > j.next_attempt_at
    )
    and d.environment_id = j.environment_id and d.id = j.id;
end
$$;
