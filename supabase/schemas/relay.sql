-- Purpose: the relay's side of the outbox, retention, and what wakes them.

-- Locks the suspects that may be next, two of each endpoint, and returns them in the order in which
-- to take one. Accounts share the relay's time: p_ahead, {account: milliseconds}, names the accounts
-- that have had more of it than the others. Within an account the suspects with the fewest lost claims
-- come first: the poisonous one has the most.
create or replace function pay.lock_suspects(
  p_ahead jsonb,
  p_at timestamptz,
  out environments text[],
  out ids text[]
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  with recursive suspected as (
    (select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
     where d.next_attempt_at is not null and d.lost_claims > 0 order by d.endpoint_id limit 1)
    union all
    select n.environment_id, n.endpoint_id
    from suspected s
    cross join lateral (
      select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
      where d.next_attempt_at is not null and d.lost_claims > 0 and d.endpoint_id > s.endpoint_id
      order by d.endpoint_id limit 1
    ) n
  )
  select
    array_agg(l.environment_id order by coalesce((p_ahead ->> e.account)::float8, 0), e.account,
      l.lost_claims, l.next_attempt_at, l.subject_id, l.sequence),
    array_agg(l.id order by coalesce((p_ahead ->> e.account)::float8, 0), e.account,
      l.lost_claims, l.next_attempt_at, l.subject_id, l.sequence)
  into environments, ids
  from suspected s
  join pay.environments e on e.id = s.environment_id
  cross join lateral (
    select d.environment_id, d.id, d.subject_id, d.sequence, d.lost_claims, d.next_attempt_at
    from pay.webhook_deliveries d
    where d.endpoint_id = s.endpoint_id and d.next_attempt_at <= p_at and d.lost_claims > 0
      and (d.leased_until is null or d.leased_until <= p_at)
    order by d.lost_claims, d.next_attempt_at, d.subject_id, d.sequence
    limit 2
    for update skip locked
  ) l;
end
$$;
comment on function pay.lock_suspects is 'Internal.';

-- Claims one suspect: a delivery with a lost claim, which may have killed its relay. A relay has
-- one at a time, so that a poisonous one takes no other suspect with it.
-- A claim counts the lost claim before it. On the third and every later loss crashed is true: the
-- relay records a crashed attempt under the number of the lost one and does not send the delivery.
-- p_suspects_ahead: as in pay.lock_suspects.
-- p_ahead: how far the caller's clock is ahead of the server's.
create or replace function pay.claim_suspect(
  p_suspects_ahead jsonb,
  p_at timestamptz,
  p_leased_until timestamptz,
  p_ahead interval
)
returns table (
  environment_id text, public_id text, account text, id text, endpoint_id text, event_id text,
  subject_id text, attempt integer, url text, secrets text, livemode boolean,
  failing_since timestamptz, suspect boolean, crashed boolean, body text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  c_most_lost constant integer := 3;
  c_longest_look constant interval := '200 ms';
  v_locked record;
  v_is_claimed boolean;
begin
  loop
    select * into v_locked from pay.lock_suspects(p_suspects_ahead, p_at);
    exit when v_locked.ids is null;
    -- A new statement has a new snapshot, as in pay.relay_turn.
    return query
    with
    chosen as materialized (
      select d.environment_id, d.id, t.url, t.secrets, t.failing_since, e.livemode, e.public_id,
        e.account, d.leased_until is not null as is_lost,
        d.leased_until is not null and d.lost_claims + 1 >= c_most_lost as crashed
      from unnest(v_locked.environments, v_locked.ids) with ordinality as c (environment_id, id, n)
      join pay.webhook_deliveries d on d.environment_id = c.environment_id and d.id = c.id
      join pay.webhook_endpoints t
        on t.environment_id = d.environment_id and t.id = d.endpoint_id and t.status = 'enabled'
      join pay.environments e on e.id = d.environment_id
      where not exists (
        select from pay.webhook_deliveries w
        where w.status = 'pending'
          and w.environment_id is not distinct from d.environment_id
          and w.endpoint_id = d.endpoint_id
          and w.subject_id = d.subject_id
          and w.sequence < d.sequence
      )
      order by c.n
      limit 1
    ),
    claimed as (
      update pay.webhook_deliveries d
      set attempt_count = d.attempt_count + case when c.crashed then 0 else 1 end,
        lost_claims = d.lost_claims + case when c.is_lost then 1 else 0 end,
        leased_until = p_leased_until
      from chosen c
      where d.environment_id = c.environment_id and d.id = c.id
      returning c.*, d.endpoint_id, d.event_id, d.subject_id, d.attempt_count
    )
    select c.environment_id, c.public_id, c.account, c.id, c.endpoint_id, c.event_id, c.subject_id,
      c.attempt_count, c.url, c.secrets::text, c.livemode,
      c.failing_since + p_ahead, true, c.crashed, v.body
    from claimed c
    join pay.events v on v.environment_id = c.environment_id and v.id = c.event_id;
    v_is_claimed := found;
    -- Postpones deliveries that wait for an earlier one, and cancels those of disabled endpoints.
    perform pay.put_off_deliveries(v_locked.environments, v_locked.ids, p_at);
    exit when v_is_claimed or clock_timestamp() > statement_timestamp() + c_longest_look;
  end loop;
end
$$;
comment on function pay.claim_suspect is 'Internal.';

-- One turn of the relay: record the attempts that have ended, then claim what is due.
--
-- p_results       [{environment_id, id, attempt, outcome, next_attempt_at, record}]
--                 outcome: delivered | failed | released (never made: to be claimed anew);
--                 next_attempt_at is the next attempt, or null when it was the last; record is the
--                 attempt as JSON text
-- p_rooms         {endpoints: {id: limit}, environments: {public id: limit},
--                 accounts: {name: limit}} for those of which the relay has claims already
-- p_limit         how many to claim in total
-- p_per_endpoint, p_per_environment, p_per_account
--                 how many of one without claims; 2 of an endpoint that is failing. Environments are
--                 counted by their public id, which a reset keeps
-- p_suspects_ahead  as in pay.lock_suspects; null: the relay has a suspect
-- p_leased_until  when the lease of a claim ends, and another relay may claim the delivery
-- suspect, crashed  as in pay.claim_suspect
--
-- Order: an event is claimed with all earlier pending ones of its endpoint and subject, or not at
-- all. The relay that claims them sends them one after another. Deliveries that are due at the same
-- moment are claimed subject by subject, so a claim may exceed a limit by the rest of one subject:
-- postponing and releasing the rest would cost as much as sending it. A suspect is claimed alone.
-- Endpoints share the free places: the endpoint with the fewest claims comes first. A delivery that
-- waits for an earlier one is released when that one ends. It is checked again when the earlier
-- one's next attempt is due, or in 5 seconds while an attempt is under way (a minute if it is more than
-- 100 events behind), because it may have been written too late to be released.
-- Concurrency: rows are claimed with skip locked, so relays never wait for each other there. A result
-- counts only while its attempt is the newest: a late one of an expired lease changes nothing.
-- Cost: a claim touches no indexed column, so its new version of the row is heap-only. Queries for the
-- events of a subject use "environment_id is not distinct from", which no index supports: before the
-- first analyze the planner chose another index with the same first column, and read all deliveries of
-- the endpoint for each event.
create or replace function pay.relay_turn(
  p_results text,
  p_rooms text,
  p_limit integer,
  p_per_endpoint integer,
  p_per_environment integer,
  p_per_account integer,
  p_suspects_ahead text,
  p_at timestamptz,
  p_leased_until timestamptz
)
returns table (
  environment_id text, public_id text, account text, id text, endpoint_id text, event_id text,
  subject_id text, attempt integer, url text, secrets text, livemode boolean,
  failing_since timestamptz, suspect boolean, crashed boolean, body text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_rooms_known jsonb := p_rooms::jsonb;
  -- How far the caller's clock is ahead; it is subtracted from the caller's times.
  v_ahead interval := greatest(p_at - pay.server_time(), '0');
  -- As many rows as one request makes due at a moment, but for the first.
  c_rest constant integer := 3;
  c_longest_look constant interval := '100 ms';
  v_endpoints text[];
  v_rooms integer[];
  v_shares integer[];
  v_reads integer[];
  -- A deleted or disabled endpoint with pending deliveries.
  v_off_environment text;
  v_off_endpoint text;
  v_due record;
  v_claimed integer;
begin
  perform set_config('pay.worker', 'on', true);
  -- By the server's time: other relays would find a lease of a slow clock expired.
  p_leased_until := pay.server_time() + (p_leased_until - p_at);
  p_at := p_at - v_ahead;

  if p_results <> '[]' then
    perform pay.record_attempts(p_results, p_at, v_ahead);
  end if;
  if p_limit <= 0 then
    return;
  end if;

  -- Endpoints with something pending, one index probe for each, and how much more each may have.
  with recursive waiting as (
    (select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
     where d.status = 'pending' order by d.endpoint_id limit 1)
    union all
    select n.environment_id, n.endpoint_id
    from waiting w
    cross join lateral (
      select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
      where d.status = 'pending' and d.endpoint_id > w.endpoint_id
      order by d.endpoint_id limit 1
    ) n
  )
  select array_agg(w.endpoint_id) filter (where r.has_room),
    array_agg(r.room) filter (where r.has_room), array_agg(r.share) filter (where r.has_room),
    array_agg(r.room + r.rest) filter (where r.has_room),
    (array_agg(w.environment_id) filter (where not k.is_on))[1],
    (array_agg(w.endpoint_id) filter (where not k.is_on))[1]
  into v_endpoints, v_rooms, v_shares, v_reads, v_off_environment, v_off_endpoint
  from waiting w
  join pay.environments e on e.id = w.environment_id
  left join pay.webhook_endpoints t on t.environment_id = w.environment_id and t.id = w.endpoint_id
  cross join lateral (
    select (v_rooms_known -> 'endpoints' ->> w.endpoint_id)::integer as left_of_endpoint,
      least(
        coalesce((v_rooms_known -> 'environments' ->> e.public_id)::integer, p_per_environment),
        coalesce((v_rooms_known -> 'accounts' ->> e.account)::integer, p_per_account)
      ) as left_of_tenant,
      t.failing_since is not null as is_failing,
      t.status is not distinct from 'enabled' as is_on
  ) k
  cross join lateral (
    select
      -- A quick one, that may have more, is no more in need than others.
      case when k.left_of_endpoint is null then p_per_endpoint
        else least(k.left_of_endpoint, p_per_endpoint - 1)
      end as share,
      b.room,
      k.is_on and b.room > 0 as has_room,
      -- At one that is failing most of what is claimed is given back.
      case when k.is_failing then 0 else c_rest end as rest
    from (
      select least(coalesce(k.left_of_endpoint, p_per_endpoint), k.left_of_tenant, p_limit,
        case when k.is_failing then 2 end) as room
    ) b
  ) r;

  if v_off_endpoint is not null then
    -- Fewer if results wait for this turn.
    perform pay.call_off_deliveries(v_off_environment, v_off_endpoint,
      case when p_results = '[]' then 2000 else 250 end);
  end if;

  -- If all due deliveries wait for earlier ones, look at those behind them, for as long as others can
  -- wait for this turn. Postponed deliveries stay postponed, and the next turn continues.
  loop
  select array_agg(c.environment_id) as environments, array_agg(c.id) as ids,
    array_agg(c.endpoint_id) as endpoints, array_agg(c.subject_id) as subjects,
    array_agg(c.sequence) as sequences, array_agg(c.event_id) as events,
    array_agg(c.place - c.share) as ranks, array_agg(c.is_lost) as lost,
    bool_or(c.is_lost) as any_lost
  into v_due
  from (
    select l.*, o.room, o.share,
      rank() over (partition by l.endpoint_id order by l.next_attempt_at, l.subject_id) as place
    from unnest(v_endpoints, v_rooms, v_shares, v_reads) as o (endpoint_id, room, share, reads)
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
  exit when v_due.ids is null;

  -- Their relay has died: they become suspects, which the scan above does not read.
  if v_due.any_lost then
    update pay.webhook_deliveries d
    set lost_claims = 1, leased_until = null
    from unnest(v_due.environments, v_due.ids, v_due.lost) as c (environment_id, id, is_lost)
    where c.is_lost and d.environment_id = c.environment_id and d.id = c.id;
  end if;

  -- A new statement and so a new snapshot: whoever records what a locked row waits for has either
  -- committed, and is seen, or will let the row go once we have.
  return query
  with
  candidate as materialized (
    select * from unnest(v_due.environments, v_due.ids, v_due.endpoints, v_due.subjects,
      v_due.sequences, v_due.events, v_due.ranks, v_due.lost) as c (environment_id, id, endpoint_id,
      subject_id, sequence, event_id, rank_of_endpoint, is_lost)
    where not c.is_lost
  ),
  -- No environment and no account exceeds its limit, whatever its endpoints do.
  shared as (
    select c.*, t.url, t.secrets, t.failing_since, e.livemode, e.public_id, e.account,
      rank() over (partition by e.public_id order by c.rank_of_endpoint, c.endpoint_id)
        <= coalesce((v_rooms_known -> 'environments' ->> e.public_id)::integer, p_per_environment)
      and rank() over (partition by e.account order by c.rank_of_endpoint, c.endpoint_id)
        <= coalesce((v_rooms_known -> 'accounts' ->> e.account)::integer, p_per_account) as has_place
    from candidate c
    join pay.webhook_endpoints t
      on t.environment_id = c.environment_id and t.id = c.endpoint_id and t.status = 'enabled'
    join pay.environments e on e.id = c.environment_id
  ),
  taken as materialized (
    select * from shared s
    where s.has_place
    order by s.rank_of_endpoint, s.endpoint_id
    fetch first (p_limit) rows with ties
  ),
  counted as (
    select k.*, count(*) over (
        partition by k.endpoint_id, k.subject_id order by k.sequence
        range between unbounded preceding and 1 preceding
      ) as taken_before
    from taken k
  ),
  judged as materialized (
    select k.*,
      -- All that is earlier is taken as well.
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
    returning j.*, d.attempt_count
  )
  select c.environment_id, c.public_id, c.account, c.id, c.endpoint_id, c.event_id, c.subject_id,
    c.attempt_count, c.url, c.secrets::text, c.livemode,
    -- In the caller's time, because the caller computes how long the endpoint has been failing.
    c.failing_since + v_ahead, false, false, v.body
  from claimed c
  join pay.events v on v.environment_id = c.environment_id and v.id = c.event_id
  order by c.rank_of_chain, c.endpoint_id, c.subject_id, c.sequence;
  get diagnostics v_claimed = row_count;
  if v_claimed < cardinality(v_due.ids) then
    perform pay.put_off_deliveries(v_due.environments, v_due.ids, p_at);
  end if;
  exit when v_claimed > 0 or clock_timestamp() > statement_timestamp() + c_longest_look;
  end loop;

  -- Checked first, because there is usually none and the function costs a third of an empty turn.
  if p_suspects_ahead is not null and exists (
    select from pay.webhook_deliveries d
    where d.next_attempt_at is not null and d.lost_claims > 0
  ) then
    return query select * from pay.claim_suspect(
      p_suspects_ahead::jsonb, p_at, p_leased_until, v_ahead);
  end if;
end
$$;

-- For due deliveries that were not claimed: cancels those whose endpoint is deleted or disabled,
-- and postpones those that wait for an earlier one. If a claim would exceed the limit, the whole
-- chain stays due. If a turn claims nothing, this function changes at least one row, because the
-- first due delivery waits for none of the others. Concurrency: the caller has locked the rows.
create or replace function pay.put_off_deliveries(p_environments text[], p_ids text[], p_at timestamptz)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off
as $$
begin
  with
  left_over as materialized (
    select d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.next_attempt_at
    from unnest(p_environments, p_ids) as c (environment_id, id)
    join pay.webhook_deliveries d on d.environment_id = c.environment_id and d.id = c.id
    where d.leased_until is null or d.leased_until <= p_at
  ),
  judged as materialized (
    select l.*, t.status = 'enabled' as enabled, blocker.id as blocker_id,
      blocker.next_attempt_at as blocked_until, blocker.leased_until as blocker_leased_until,
      l.sequence - blocker.sequence as distance
    from left_over l
    left join pay.webhook_endpoints t
      on t.environment_id = l.environment_id and t.id = l.endpoint_id
    left join lateral (
      select d.id, d.sequence, d.next_attempt_at, d.leased_until
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
      -- The one before will release it. Thousands must not be checked every 5 seconds.
      when j.blocker_leased_until > p_at and j.distance > 100 then p_at + interval '1 minute'
      when j.blocker_leased_until > p_at then p_at + interval '5 seconds'
      else greatest(j.blocked_until, p_at + interval '1 second')
    end
  from judged j
  where j.enabled and j.blocker_id is not null
    and (
      -- Somebody has it, this turn or another.
      (j.environment_id, j.blocker_id) not in (select o.environment_id, o.id from left_over o)
      -- Or it is due later: each time this one would be looked at in its place.
      or j.blocked_until > j.next_attempt_at
    )
    and d.environment_id = j.environment_id and d.id = j.id;
end
$$;

-- Records ended attempts; the part of a turn that writes results. What only few turns need stands in
-- statements of its own.
-- A row that is sought by its key is not asked plainly whether it is pending: a plan made while the outbox
-- was empty would take an index of what is pending, and read it whole.
-- Concurrency: rows of deliveries are locked in the order of their ids, as whoever calls deliveries
-- off does. An endpoint that someone is changing is not waited for: its next attempt tells as much.
-- p_ahead: how far the caller's clock is ahead; it is subtracted from the times of the results.
create or replace function pay.record_attempts(p_results text, p_at timestamptz, p_ahead interval)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_environments text[];
  v_ids text[];
  v_turned_environments text[];
  v_turned_ids text[];
  v_has_succeeded boolean[];
begin
  if p_results like '%"released"%' then
    update pay.webhook_deliveries d
    set attempt_count = d.attempt_count - 1, leased_until = null
    from json_to_recordset(p_results::json) as r (
      environment_id text, id text, attempt integer, outcome text
    )
    where r.outcome = 'released'
      and d.environment_id = r.environment_id and d.id = r.id
      and d.attempt_count = r.attempt and d.leased_until is not null;
  end if;

  with
  result as materialized (
    select * from json_to_recordset(p_results::json) as r (
      environment_id text, id text, attempt integer, outcome text, next_attempt_at timestamptz,
      record text
    )
    where r.outcome <> 'released'
    order by r.environment_id, r.id
  ),
  recorded as (
    update pay.webhook_deliveries d
    set status = case
        when r.outcome = 'delivered' then 'delivered'
        when r.next_attempt_at is null then 'failed'
        else 'pending'
      end,
      next_attempt_at = r.next_attempt_at - p_ahead,
      leased_until = null,
      -- The process survived the attempt. A crashed delivery stays a suspect.
      lost_claims = case when d.lost_claims < 3 then 0 else d.lost_claims end,
      -- Limited, because a delivery can be redelivered any number of times and each record rewrites the
      -- text. 8 000 bytes are more than 50 attempts.
      attempts = case
        when d.attempts = '' then r.record
        when octet_length(d.attempts) < 8000 then d.attempts || ',' || r.record
        else pay.without_second_attempt(d.attempts) || ',' || r.record
      end
    from result r
    where d.environment_id = r.environment_id and d.id = r.id
      and d.attempt_count = r.attempt and d.leased_until is not null
    returning d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.status, r.outcome
  ),
  -- Those that waited for one that has ended for good.
  next as (
    select r.environment_id, n.id
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
  -- Endpoints that have begun or ceased to fail.
  turned as (
    select t.environment_id, t.id, e.any_delivered
    from (
      select r.environment_id, r.endpoint_id, bool_or(r.outcome = 'delivered') as any_delivered
      from recorded r group by r.environment_id, r.endpoint_id
    ) e
    join pay.webhook_endpoints t on t.environment_id = e.environment_id and t.id = e.endpoint_id
    where (t.failing_since is null) <> e.any_delivered
  )
  select n.environments, n.ids, u.environments, u.ids, u.has_succeeded
  into v_environments, v_ids, v_turned_environments, v_turned_ids, v_has_succeeded
  from (select array_agg(environment_id) as environments, array_agg(id) as ids from next) n
  cross join (
    select array_agg(environment_id) as environments, array_agg(id) as ids,
      array_agg(any_delivered) as has_succeeded
    from turned
  ) u;

  -- As old as they were, so that they come before what else was held back.
  if v_ids is not null then
    with waiting as materialized (
      select d.environment_id, d.id
      from unnest(v_environments, v_ids) as n (environment_id, id)
      join pay.webhook_deliveries d on d.environment_id = n.environment_id and d.id = n.id
      where d.status || '' = 'pending' and (d.leased_until is null or d.leased_until <= p_at)
      order by d.environment_id, d.id
      for update of d
    )
    update pay.webhook_deliveries d
    set next_attempt_at = least(d.created_at, p_at)
    from waiting w
    where d.environment_id = w.environment_id and d.id = w.id;
  end if;
  if v_turned_ids is not null then
    with turned as materialized (
      select t.environment_id, t.id, u.has_succeeded
      from unnest(v_turned_environments, v_turned_ids, v_has_succeeded)
        as u (environment_id, id, has_succeeded)
      join pay.webhook_endpoints t on t.environment_id = u.environment_id and t.id = u.id
      for update of t skip locked
    )
    update pay.webhook_endpoints t
    set failing_since = case when not u.has_succeeded then p_at end
    from turned u
    where t.environment_id = u.environment_id and t.id = u.id
      and (t.failing_since is null) <> u.has_succeeded;
  end if;
end
$$;

-- Cancels at most p_most pending deliveries of a deleted or disabled endpoint, because one statement has no
-- time for any number of them. Turns of the relay cancel the others. Returns true if there may be more. An
-- attempt under way ends by itself; the relay then cancels the deliveries after it.
-- Concurrency: skips rows that another transaction holds; a turn of the relay finds them.
create or replace function pay.call_off_deliveries(p_environment_id text, p_endpoint_id text, p_most integer)
returns boolean
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  with called_off as (
    update pay.webhook_deliveries d
    set status = 'cancelled', next_attempt_at = null, leased_until = null
    from (
      select w.id from pay.webhook_deliveries w
      where w.environment_id = p_environment_id and w.endpoint_id = p_endpoint_id
        and w.status = 'pending'
        and (w.leased_until is null or w.leased_until <= pay.server_time())
      limit p_most
      for update skip locked
    ) waiting
    where d.environment_id = p_environment_id and d.id = waiting.id
    returning d.id
  )
  select count(*) >= p_most from called_off
$$;

-- Most deliveries that a change of an endpoint cancels: a tenth of a second's work.
create or replace function pay.called_off_at_once()
returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select 5000 $$;

-- Turns an endpoint off for the relay, with its event. Outcome: committed | stale.
-- The event goes to the other endpoints of the environment that want it.
create or replace function pay.disable_webhook_endpoint(
  p_environment_id text,
  p_id text,
  p_expects_revision integer,
  p_at timestamptz,
  p_endpoint_body text,
  p_event_id text,
  p_event_body text,
  p_delivery_id text
)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('pay.worker', 'on', true);
  update pay.webhook_endpoints t
  set status = 'disabled', revision = t.revision + 1, body = p_endpoint_body
  where t.environment_id = p_environment_id and t.id = p_id
    and t.revision = p_expects_revision and t.status = 'enabled';
  if not found then
    return 'stale';
  end if;
  perform pay.call_off_deliveries(p_environment_id, p_id, pay.called_off_at_once());
  insert into pay.events (environment_id, id, type, subject_id, sequence, created_at, body)
  values (p_environment_id, p_event_id, 'webhook_endpoint.disabled', p_id, p_expects_revision + 1,
    p_at, p_event_body);
  insert into pay.webhook_deliveries
    (environment_id, id, event_id, event_type, endpoint_id, subject_id, sequence, status,
      next_attempt_at, created_at)
  select p_environment_id, p_delivery_id || pay.slot_character(t.slot), p_event_id,
    'webhook_endpoint.disabled', t.id, p_id, p_expects_revision + 1, 'pending',
    least(p_at, pay.server_time()), p_at
  from pay.webhook_endpoints t
  where t.environment_id = p_environment_id
    and t.status = 'enabled'
    and t.events && pay.patterns_of('webhook_endpoint.disabled');
  return 'committed';
end
$$;

-- An endpoint as the relay needs it to turn it off.
create or replace function pay.load_webhook_endpoint(p_environment_id text, p_id text)
returns table (revision integer, status text, body text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('pay.worker', 'on', true);
  return query
    select t.revision, t.status, t.body from pay.webhook_endpoints t
    where t.environment_id = p_environment_id and t.id = p_id;
end
$$;

grant execute on function
  pay.relay_turn(text, text, integer, integer, integer, integer, text, timestamptz, timestamptz)
  to pay_api;
grant execute on function pay.disable_webhook_endpoint(
  text, text, integer, timestamptz, text, text, text, text) to pay_api;
grant execute on function pay.load_webhook_endpoint(text, text) to pay_api;
