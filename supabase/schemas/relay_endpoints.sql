-- Purpose: cancels the pending deliveries of an endpoint that is deleted or disabled, and disables
-- an endpoint that fails for too long.

-- Cancels at most p_most pending deliveries of a deleted or disabled endpoint, because a statement
-- has a deadline (ADR 0007). Turns of the relay cancel the others. Returns true if there may be
-- more. An attempt under way ends by itself; the relay then cancels the deliveries after it.
-- Concurrency: skips rows that another transaction has locked; a turn of the relay finds them.
create or replace function pay_internal.call_off_deliveries(
  p_environment_id text,
  p_endpoint_id text,
  p_most integer
)
returns boolean
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  with called_off as (
    update pay.webhook_deliveries d
    set status = 'cancelled', next_attempt_at = null, leased_until = null
    from (
      select w.id from pay.webhook_deliveries w
      where w.environment_id = p_environment_id and w.endpoint_id = p_endpoint_id
        and w.status = 'pending'
        and (w.leased_until is null or w.leased_until <= pay_internal.server_time())
      limit p_most
      for update skip locked
    ) waiting
    where d.environment_id = p_environment_id and d.id = waiting.id
    returning d.id
  )
  select count(*) >= p_most from called_off
$$;

-- The maximum number of deliveries that a change of an endpoint cancels: a tenth of a second's
-- work.
create or replace function pay_internal.called_off_at_once()
returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select 5000 $$;

-- Disables an endpoint for the relay. Writes the event, with a delivery to each other endpoint of
-- the environment that subscribes to it. Outcome: committed | stale.
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
set search_path = pg_catalog, pg_temp set jit = off
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
  perform pay_internal.call_off_deliveries(
    p_environment_id, p_id, pay_internal.called_off_at_once());
  insert into pay.events (environment_id, id, type, subject_id, sequence, created_at, body)
  values (p_environment_id, p_event_id, 'webhook_endpoint.disabled', p_id, p_expects_revision + 1,
    p_at, p_event_body);
  insert into pay.webhook_deliveries
    (environment_id, id, event_id, event_type, endpoint_id, subject_id, sequence, status,
      next_attempt_at, created_at, due_at)
  select p_environment_id, pay_internal.delivery_id(p_delivery_id, t.slot), p_event_id,
    'webhook_endpoint.disabled', t.id, p_id, p_expects_revision + 1, 'pending',
    least(p_at, pay_internal.server_time()), p_at,
    (select p_at from pay.sandbox_settings w where w.environment_id = p_environment_id)
  from pay.webhook_endpoints t
  where t.environment_id = p_environment_id
    and t.status = 'enabled'
    and t.events && pay_internal.patterns_of('webhook_endpoint.disabled');
  return 'committed';
end
$$;
grant execute on function pay.disable_webhook_endpoint(
  text, text, integer, timestamptz, text, text, text, text) to pay_api;

-- The data of an endpoint that the relay needs to disable it.
create or replace function pay.load_webhook_endpoint(p_environment_id text, p_id text)
returns table (revision integer, status text, body text)
language plpgsql volatile security definer rows 1
set search_path = pg_catalog, pg_temp set jit = off
as $$
begin
  perform set_config('pay.worker', 'on', true);
  return query
    select t.revision, t.status, t.body from pay.webhook_endpoints t
    where t.environment_id = p_environment_id and t.id = p_id;
end
$$;
grant execute on function pay.load_webhook_endpoint(text, text) to pay_api;
