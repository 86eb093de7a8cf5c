-- Purpose: writes events, with their deliveries to the endpoints that subscribe to them.

-- The patterns in the list of an endpoint that match an event type.
create or replace function pay_internal.patterns_of(p_type text)
returns text[]
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select array[p_type, split_part(p_type, '.', 1) || '.*', '*'] $$;

-- The id of a delivery: p_stem, which the deliveries of an event share, and a last character for
-- the slot of the endpoint. For slots from 32 on, the last character of the stem is another one.
create or replace function pay_internal.delivery_id(p_stem text, p_slot smallint)
returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select case when p_slot < 32 then p_stem
    else left(p_stem, -1) || translate(right(p_stem, 1),
      '0123456789abcdefghjkmnpqrstvwxyz', 'ghjkmnpqrstvwxyz0123456789abcdef')
  end || substr('0123456789abcdefghjkmnpqrstvwxyz', p_slot % 32 + 1, 1)
$$;

-- Writes the events of the committed changes, and a delivery for each endpoint that subscribes to
-- them. Returns the number of deliveries.
create or replace function pay_internal.write_events(
  p_events jsonb, p_callers pay_internal.caller[]
)
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := pay_internal.server_time();
  v_deliveries bigint;
begin
  with
  event as materialized (
    select caller.environment_id, caller.ahead, e.*
    from jsonb_to_recordset(p_events) as e (
      n integer, id text, type text, subject_id text, sequence integer, created_at timestamptz,
      delivery_id text, body text, traceparent text
    )
    join unnest(p_callers) caller on caller.n = e.n
  ),
  event_made as (
    insert into pay.events
      (environment_id, id, type, subject_id, sequence, created_at, body, traceparent)
    select environment_id, id, type, subject_id, sequence, created_at, body, traceparent from event
  ),
  delivery_made as (
    insert into pay.webhook_deliveries
      (environment_id, id, event_id, event_type, endpoint_id, subject_id, sequence, status,
        next_attempt_at, created_at, due_at)
    select e.environment_id, pay_internal.delivery_id(e.delivery_id, t.slot), e.id, e.type, t.id,
      e.subject_id, e.sequence, 'pending', least(e.created_at, v_now), e.created_at,
      case when e.ahead is not null then e.created_at end
    from event e
    join pay.webhook_endpoints t
      on t.environment_id = e.environment_id
      and t.status = 'enabled'
      and t.events && pay_internal.patterns_of(e.type)
    returning 1
  )
  select count(*) into v_deliveries from delivery_made;
  return v_deliveries;
end
$$;
