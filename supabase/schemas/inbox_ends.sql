-- Purpose: the end of an inbox: its endpoint gets a URL or is deleted (inbox.sql, ADR 0021).

-- Sends the deliveries of an inbox that are not acknowledged to the URL that its endpoint now has.
-- Returns false, and changes nothing, if there are more than pay_internal.called_off_at_once().
-- Concurrency: the caller has locked the endpoint.
create or replace function pay_internal.empty_inbox(p_environment_id text, p_endpoint_id text)
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_unread text[] := pay_internal.unread_deliveries(p_environment_id, p_endpoint_id);
begin
  if cardinality(v_unread) > pay_internal.called_off_at_once() then
    return false;
  end if;
  update pay.webhook_deliveries d
  set status = 'pending', next_attempt_at = least(d.created_at, pay_internal.server_time()),
    due_at = null
  where d.environment_id = p_environment_id and d.id = any (v_unread);
  update pay.webhook_endpoints t set inbox_acknowledged = t.inbox_position
  where t.environment_id = p_environment_id and t.id = p_endpoint_id;
  return true;
end
$$;

-- Cancels the deliveries of an inbox that are not acknowledged, because its endpoint is deleted.
-- Returns false if some are left, because a statement has a deadline (ADR 0007). Moves the position
-- behind those that it has cancelled, so that the next call does not read them again.
-- Concurrency: as pay_internal.empty_inbox.
create or replace function pay_internal.call_off_inbox(p_environment_id text, p_endpoint_id text)
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_unread constant text[] := pay_internal.unread_deliveries(p_environment_id, p_endpoint_id);
  v_cancelled constant text[] := v_unread[:pay_internal.called_off_at_once()];
begin
  update pay.webhook_deliveries d
  set status = 'cancelled'
  where d.environment_id = p_environment_id and d.id = any (v_cancelled);
  update pay.webhook_endpoints t
  set inbox_acknowledged = e.position
  from pay.inbox_entries e
  where t.environment_id = p_environment_id and t.id = p_endpoint_id
    and e.environment_id = p_environment_id
    and e.delivery_id = v_cancelled[cardinality(v_cancelled)];
  return cardinality(v_unread) <= pay_internal.called_off_at_once();
end
$$;

-- The oldest deliveries of an inbox that are not acknowledged: at most one more than
-- pay_internal.called_off_at_once(). Reads them in the order of the inbox, one by one, because a
-- join would read all of them.
create or replace function pay_internal.unread_deliveries(p_environment_id text, p_endpoint_id text)
returns text[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_acknowledged constant bigint := (
    select t.inbox_acknowledged from pay.webhook_endpoints t
    where t.environment_id = p_environment_id and t.id = p_endpoint_id);
begin
  return array(
    select e.delivery_id from pay.inbox_entries e
    cross join lateral (
      select from pay.webhook_deliveries d
      where d.environment_id = p_environment_id and d.id = e.delivery_id
        and d.status || '' = 'available' limit 1
    ) d
    where e.environment_id = p_environment_id and e.endpoint_id = p_endpoint_id
      and e.position > v_acknowledged
    order by e.position
    limit pay_internal.called_off_at_once() + 1
  );
end
$$;
