-- Purpose: a step of pay.relay_turn: the endpoints that the turn serves.

-- The endpoints with pending deliveries, and how many more of each the relay may claim. Finds each
-- endpoint by one index probe. Parameters: as in pay.relay_turn.
-- endpoints, rooms, shares, reads: the endpoints, and for each of them how many deliveries to claim
-- at most, its part of the free places, and how many due deliveries to read.
-- off_environment, off_endpoint: a deleted or disabled endpoint with pending deliveries.
-- inbox_environments, inbox_endpoints: endpoints with an inbox to which something can be added, 16
-- at most.
create or replace function pay_internal.find_room(
  p_rooms jsonb,
  p_limit integer,
  p_per_endpoint integer,
  p_per_environment integer,
  p_per_account integer,
  p_aside text[], p_only text,
  out endpoints text[], out rooms integer[],
  out shares integer[],
  out reads integer[],
  out off_environment text,
  out off_endpoint text,
  out inbox_environments text[],
  out inbox_endpoints text[]
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  -- As many rows as one request makes due at a moment, except the first.
  v_rest constant integer := 4;
begin
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
  select array_agg(w.endpoint_id) filter (where k.is_on and r.room > 0),
    array_agg(r.room) filter (where k.is_on and r.room > 0),
    -- An endpoint that has claims comes after those that have none, however quick it is.
    array_agg(
      case when k.left_of_endpoint is null then p_per_endpoint
        else least(k.left_of_endpoint, p_per_endpoint - 1)
      end
    ) filter (where k.is_on and r.room > 0),
    -- The turn would give back most deliveries that it claims of a failing endpoint.
    array_agg(r.room + case when k.is_failing then 0 else v_rest end)
      filter (where k.is_on and r.room > 0),
    (array_agg(w.environment_id) filter (where not k.is_on and not k.is_inbox))[1],
    (array_agg(w.endpoint_id) filter (where not k.is_on and not k.is_inbox))[1],
    (array_agg(w.environment_id) filter (where k.has_entries))[:16],
    (array_agg(w.endpoint_id) filter (where k.has_entries))[:16]
  into endpoints, rooms, shares, reads, off_environment, off_endpoint, inbox_environments,
    inbox_endpoints
  from waiting w
  join pay.environments e on e.id = w.environment_id
  left join pay.webhook_endpoints t on t.environment_id = w.environment_id and t.id = w.endpoint_id
  cross join lateral (
    select (p_rooms -> 'endpoints' ->> w.endpoint_id)::integer as left_of_endpoint,
      t.failing_since is not null as is_failing,
      coalesce(t.status = 'enabled' and t.delivery = 'url', false) as is_on,
      coalesce(t.delivery = 'inbox', false) as is_inbox,
      t.delivery = 'inbox' and pay_internal.has_entries(w.endpoint_id) as has_entries
  ) k
  cross join lateral (
    select least(
      coalesce(k.left_of_endpoint, p_per_endpoint),
      coalesce((p_rooms -> 'environments' ->> e.public_id)::integer, p_per_environment),
      coalesce((p_rooms -> 'accounts' ->> e.account)::integer, p_per_account),
      p_limit,
      case when k.is_failing then 2 end
    ) as room
  ) r
  where w.endpoint_id <> all (p_aside) and w.endpoint_id = coalesce(p_only, w.endpoint_id);
end
$$;
