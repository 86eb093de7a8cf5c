-- Purpose: the bound on the deliveries of a sandbox that wait to be sent (contract §5). A receiver
-- that is down, or a clock that stands, would let them grow for ever. Live environments have no
-- bound, because no live payment is refused for its webhooks.
--
-- To count 20 000 rows takes a tenth of a second. A statement of pay.commit has the requests of up
-- to 64 sandboxes and live environments, so it only finds the sandboxes that have some deliveries.
-- The service then counts them by pay.read_pending_quota, in the queue of their own account, and
-- sends the change again.

-- The maximum number of pending deliveries of a sandbox at which a request may add some.
create or replace function pay_internal.max_pending_deliveries()
returns integer language sql immutable parallel safe as $$ select 20000 $$;

-- The number of pending deliveries of a sandbox from which on they are counted. With fewer, each
-- change reads them: a quarter of a millisecond.
create or replace function pay_internal.few_pending_deliveries()
returns integer language sql immutable parallel safe as $$ select 100 $$;

-- The number of pending deliveries to enabled endpoints of a sandbox, up to p_most; 0 for a live
-- environment. Those to disabled endpoints are being cancelled.
create or replace function pay_internal.count_pending(p_environment_id text, p_most integer)
returns bigint language plpgsql stable as $$
begin
  return (
    select count(*) from (
      select from pay.environments e
      join pay.webhook_endpoints t on t.environment_id = e.id and t.status = 'enabled'
      -- The limit and the order make it a scan of the index that ends there.
      cross join lateral (
        select from pay.webhook_deliveries d
        where d.endpoint_id = t.id and d.status = 'pending'
          and d.environment_id is not distinct from p_environment_id
        order by d.subject_id, d.sequence
        limit p_most
      ) d
      where e.id = p_environment_id and not e.livemode
      limit p_most
    ) counted
  );
end $$;

-- Whether an environment is a sandbox with pay_internal.max_pending_deliveries() pending
-- deliveries.
create or replace function pay_internal.has_backlog(p_environment_id text)
returns boolean language plpgsql stable as $$
begin
  return pay_internal.count_pending(p_environment_id, pay_internal.max_pending_deliveries())
    >= pay_internal.max_pending_deliveries();
end $$;

-- How many more pending deliveries the sandbox of a key may have; body: the number.
-- Outcomes: those of admission.sql; backlog (it may have no more).
create or replace function pay.read_pending_quota(p_request text) returns pay.admission
language plpgsql volatile security definer as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request, 'shared', true);
  v_quota bigint;
begin
  if v_access.outcome = 'ok' then
    v_quota := pay_internal.max_pending_deliveries()
      - pay_internal.count_pending(v_access.environment_id, pay_internal.max_pending_deliveries());
    v_access.outcome := case when v_quota > 0 then 'ok' else 'backlog' end;
    v_access.body := v_quota;
  end if;
  return v_access;
end $$;
grant execute on function pay.read_pending_quota to pay_api;

-- Finds the admitted changes that add deliveries in sandboxes with
-- pay_internal.few_pending_deliveries(), and for which the service has not counted them: the
-- outcome is uncounted. p_requests, p_events: as pay.commit takes them.
create or replace function pay_internal.find_uncounted(
  p_requests pay_internal.request[], p_events pay_internal.event_row[], p_found pay.admission[]
) returns pay.admission[] language plpgsql volatile as $$
declare
  v_many constant text[] := array(
    select a.environment_id
    -- The offset keeps the planner from counting for each request.
    from (
      select distinct f.environment_id from unnest(p_found) f
      where f.outcome = 'ok' and p_requests[f.n].has_quota is not true offset 0
    ) a
    where pay_internal.count_pending(a.environment_id, pay_internal.few_pending_deliveries())
      >= pay_internal.few_pending_deliveries());
  v_n integer;
begin
  if v_many = '{}' then return p_found; end if;
  for v_n in
    select distinct e.n from unnest(p_events) e
    join pay.webhook_endpoints t
      on t.environment_id = p_found[e.n].environment_id
      and t.status = 'enabled' and t.events && pay_internal.patterns_of(e.type)
    where p_found[e.n].outcome = 'ok' and p_found[e.n].environment_id = any (v_many)
      and p_requests[e.n].has_quota is not true
  loop
    p_found[v_n].outcome := 'uncounted';
  end loop;
  return p_found;
end $$;
