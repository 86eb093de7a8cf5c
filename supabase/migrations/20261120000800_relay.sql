-- Purpose: the relay's side of the outbox, retention, and what wakes them.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

-- One turn of the relay: record the attempts that have ended, then claim what is due.
--
-- p_results       [{environment_id, id, attempt, delivered, next_attempt_at, failed_at, record}]
--                 delivered: the receiver took it; else next_attempt_at is the next attempt, or null
--                 when it was the last; record is the attempt as JSON text.
-- p_busy          endpoints that have as many attempts under way as they may have
-- p_limit         how many to claim in all; p_per_endpoint of one endpoint, 2 of a failing one
-- p_leased_until  when another relay may think that this one is dead
--
-- Order: of one endpoint and subject only the earliest pending event is claimed. What waits for an
-- attempt under way is looked at again when that ends, or in a second; what waits for a later
-- attempt, at that attempt's time.
-- Concurrency: rows are taken with skip locked, so relays never wait for each other. A result counts
-- only while its attempt is the newest: a late one of an expired lease changes nothing.
create function pay.relay_turn(
  p_results text,
  p_busy text[],
  p_limit integer,
  p_per_endpoint integer,
  p_at timestamptz,
  p_leased_until timestamptz
)
returns table (
  environment_id text, id text, endpoint_id text, event_id text, attempt integer, url text,
  secrets text, livemode boolean, failing_since timestamptz, body text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off
as $$
#variable_conflict use_column
begin
  perform set_config('pay.worker', 'on', true);

  if p_results <> '[]' then
    perform pay.record_attempts(p_results, p_at);
  end if;
  if p_limit <= 0 then
    return;
  end if;

  for v_round in 1..5 loop
  return query
  with recursive
  -- Endpoints with something pending, one index probe for each.
  waiting as (
    (select d.endpoint_id from pay.webhook_deliveries d
     where d.status = 'pending' order by d.endpoint_id limit 1)
    union all
    select (
      select d.endpoint_id from pay.webhook_deliveries d
      where d.status = 'pending' and d.endpoint_id > w.endpoint_id
      order by d.endpoint_id limit 1
    )
    from waiting w where w.endpoint_id is not null
  ),
  candidate as materialized (
    select c.*, w.endpoint_id
    from waiting w
    cross join lateral (
      select d.environment_id, d.id, d.subject_id, d.sequence
      from pay.webhook_deliveries d
      where d.status = 'pending' and d.endpoint_id = w.endpoint_id and d.next_attempt_at <= p_at
      order by d.next_attempt_at, d.sequence
      limit p_per_endpoint
      for update skip locked
    ) c
    where w.endpoint_id is not null and w.endpoint_id <> all (p_busy)
  ),
  judged as materialized (
    select c.*, t.url, t.secrets, t.failing_since, e.livemode, t.status = 'enabled' as enabled,
      blocker.next_attempt_at as blocked_until, blocker.leased_until as blocker_leased_until,
      row_number() over (
        partition by c.endpoint_id, blocker.next_attempt_at is null order by c.id
      ) as rank_of_endpoint
    from candidate c
    left join pay.webhook_endpoints t
      on t.environment_id = c.environment_id and t.id = c.endpoint_id
    join pay.environments e on e.id = c.environment_id
    left join lateral (
      select d.next_attempt_at, d.leased_until
      from pay.webhook_deliveries d
      where d.status = 'pending'
        and d.environment_id = c.environment_id
        and d.endpoint_id = c.endpoint_id
        and d.subject_id = c.subject_id
        and d.sequence < c.sequence
      order by d.sequence
      limit 1
    ) blocker on true
  ),
  called_off as (
    update pay.webhook_deliveries d
    set status = 'cancelled', next_attempt_at = null, leased_until = null
    from judged j
    where j.enabled is not true and d.environment_id = j.environment_id and d.id = j.id
  ),
  held_back as (
    update pay.webhook_deliveries d
    set next_attempt_at = case
      when j.blocker_leased_until is null and j.blocked_until > p_at then j.blocked_until
      else p_at + interval '1 second'
    end
    from judged j
    where j.enabled and j.blocked_until is not null
      and d.environment_id = j.environment_id and d.id = j.id
  ),
  free as materialized (
    select * from judged j
    where j.enabled and j.blocked_until is null
      and (j.failing_since is null or j.rank_of_endpoint <= 2)
    order by j.rank_of_endpoint
    limit p_limit
  ),
  claimed as (
    update pay.webhook_deliveries d
    set attempt_count = d.attempt_count + 1,
      next_attempt_at = p_leased_until,
      leased_until = p_leased_until
    from free f
    where d.environment_id = f.environment_id and d.id = f.id
    returning d.environment_id, d.id, d.event_id, d.attempt_count
  )
  select f.environment_id, f.id, f.endpoint_id, c.event_id, c.attempt_count, f.url,
    f.secrets::text, f.livemode, f.failing_since, v.body
  from claimed c
  join free f on f.environment_id = c.environment_id and f.id = c.id
  join pay.events v on v.environment_id = c.environment_id and v.id = c.event_id;
  -- All that was due may have had to wait for something earlier: then look behind it.
  exit when found or not exists (
    select from pay.webhook_deliveries d
    where d.status = 'pending' and d.next_attempt_at <= p_at and d.endpoint_id <> all (p_busy)
  );
  end loop;
end
$$;

-- Records ended attempts; the part of a turn that writes results.
create function pay.record_attempts(p_results text, p_at timestamptz)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off
as $$
begin
  with
  result as materialized (
    select * from json_to_recordset(p_results::json) as r (
      environment_id text, id text, attempt integer, delivered boolean,
      next_attempt_at timestamptz, record text
    )
  ),
  recorded as (
    update pay.webhook_deliveries d
    set status = case
        when r.delivered then 'delivered'
        when r.next_attempt_at is null then 'failed'
        else 'pending'
      end,
      next_attempt_at = case when not r.delivered then r.next_attempt_at end,
      leased_until = null,
      attempts = d.attempts || case when d.attempts = '' then '' else ',' end || r.record
    from result r
    where d.environment_id = r.environment_id and d.id = r.id
      and d.status = 'pending' and d.attempt_count = r.attempt and d.leased_until is not null
    returning d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.status, r.delivered
  ),
  -- The next event of the same payment need not wait any longer.
  let_go as (
    update pay.webhook_deliveries d
    set next_attempt_at = p_at
    from (
      select n.environment_id, n.id
      from recorded r
      cross join lateral (
        select d.environment_id, d.id
        from pay.webhook_deliveries d
        where d.status = 'pending'
          and d.environment_id = r.environment_id
          and d.endpoint_id = r.endpoint_id
          and d.subject_id = r.subject_id
          and d.sequence > r.sequence
          and d.leased_until is null
          and d.next_attempt_at > p_at
        order by d.sequence
        limit 1
      ) n
      where r.status <> 'pending'
    ) next
    where d.environment_id = next.environment_id and d.id = next.id
  )
  update pay.webhook_endpoints t
  set failing_since = case when e.any_delivered then null else p_at end
  from (
    select r.environment_id, r.endpoint_id, bool_or(r.delivered) as any_delivered
    from recorded r group by r.environment_id, r.endpoint_id
  ) e
  where t.environment_id = e.environment_id and t.id = e.endpoint_id
    and (t.failing_since is null) <> e.any_delivered;
end
$$;

-- Turns an endpoint off for the relay, with its event. Outcome: committed | stale.
-- The event goes to the other endpoints of the environment that want it.
create function pay.disable_webhook_endpoint(
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
  update pay.webhook_deliveries d
  set status = 'cancelled', next_attempt_at = null, leased_until = null
  where d.environment_id = p_environment_id and d.endpoint_id = p_id and d.status = 'pending'
    and d.leased_until is null;
  insert into pay.events (environment_id, id, type, subject_id, sequence, created_at, body)
  values (p_environment_id, p_event_id, 'webhook_endpoint.disabled', p_id, p_expects_revision + 1,
    p_at, p_event_body);
  insert into pay.webhook_deliveries
    (environment_id, id, event_id, event_type, endpoint_id, subject_id, sequence, status,
      next_attempt_at, created_at)
  select p_environment_id, p_delivery_id || pay.slot_character(t.slot), p_event_id,
    'webhook_endpoint.disabled', t.id, p_id, p_expects_revision + 1, 'pending', p_at, p_at
  from pay.webhook_endpoints t
  where t.environment_id = p_environment_id
    and t.status = 'enabled'
    and t.events && pay.patterns_of('webhook_endpoint.disabled');
  return 'committed';
end
$$;

-- An endpoint as the relay needs it to turn it off.
create function pay.load_webhook_endpoint(p_environment_id text, p_id text)
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
  pay.relay_turn(text, text[], integer, integer, timestamptz, timestamptz) to pay_api;
grant execute on function pay.disable_webhook_endpoint(
  text, text, integer, timestamptz, text, text, text, text) to pay_api;
grant execute on function pay.load_webhook_endpoint(text, text) to pay_api;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
