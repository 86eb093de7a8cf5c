-- Purpose: the bound on the deliveries of a sandbox that wait to be sent (contract §5). A receiver
-- that is down, or a clock that stands, would let them grow for ever. Live environments have no
-- bound, because no live payment is refused for its webhooks.

-- The maximum number of pending deliveries of a sandbox at which a request may add some. With
-- fewer, the answer of a request costs a few milliseconds more at most, because it counts them.
create or replace function pay.max_pending_deliveries()
returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select 20000 $$;

-- Whether an environment is a sandbox with pay.max_pending_deliveries() pending deliveries to
-- enabled endpoints. Those to disabled ones are being cancelled. Internal.
create or replace function pay.has_backlog(p_environment_id text)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_sort = off set enable_bitmapscan = off
as $$
begin
  return exists (
    select from pay.environments e
    join pay.webhook_endpoints t on t.environment_id = e.id and t.status = 'enabled'
    -- The limit and the order make it a scan of the index that ends there.
    cross join lateral (
      select from pay.webhook_deliveries d
      where d.endpoint_id = t.id and d.status = 'pending'
        and d.environment_id is not distinct from p_environment_id
      order by d.subject_id, d.sequence
      limit pay.max_pending_deliveries()
    ) d
    where e.id = p_environment_id and not e.livemode
    offset pay.max_pending_deliveries() - 1
  );
end
$$;

-- Refuses the admitted changes of sandboxes with a backlog that would add deliveries to it: the
-- outcome is backlog. p_events: as pay.commit takes it. Internal.
create or replace function pay.refuse_backlog(p_events json, p_found pay.admission[])
returns pay.admission[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_full constant text[] := array(
    select a.environment_id
    from (select distinct f.environment_id from unnest(p_found) f where f.outcome = 'ok') a
    where pay.has_backlog(a.environment_id));
  v_n integer;
begin
  if v_full = '{}' then
    return p_found;
  end if;
  for v_n in
    select distinct e.n from json_to_recordset(p_events) as e (n integer, type text)
    join pay.webhook_endpoints t
      on t.environment_id = p_found[e.n].environment_id
      and t.status = 'enabled' and t.events && pay.patterns_of(e.type)
    where p_found[e.n].outcome = 'ok' and p_found[e.n].environment_id = any (v_full)
  loop
    p_found[v_n].outcome := 'backlog';
  end loop;
  return p_found;
end
$$;
