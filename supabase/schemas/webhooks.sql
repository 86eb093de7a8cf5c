-- Purpose: small functions for the entry functions that write or read deliveries.

-- The patterns in the list of an endpoint that match an event type.
create or replace function pay.patterns_of(p_type text)
returns text[]
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select array[p_type, split_part(p_type, '.', 1) || '.*', '*'] $$;

-- The last character of a delivery's id, which encodes the slot of its endpoint.
create or replace function pay.slot_character(p_slot smallint)
returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select substr('0123456789abcdef', p_slot + 1, 1) $$;

-- A time in the format of the contract.
create or replace function pay.wire_time(p_at timestamptz)
returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
  return to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
end
$$;

-- Removes the second of the recorded attempts. The first one stays, because an oracle checks the
-- order of deliveries by it. An attempt contains no nested object.
create or replace function pay.without_second_attempt(p_attempts text)
returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select split_part(p_attempts, '},{', 1) || '},{' || substr(a.others, strpos(a.others, '},{') + 3)
  from (select substr(p_attempts, strpos(p_attempts, '},{') + 3) as others) a
$$;

-- A delivery as JSON text, in the order of the contract (§4).
create or replace function pay.webhook_delivery_body(p_delivery pay.webhook_deliveries)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select row_to_json(t)::text from (
    select
      p_delivery.id,
      'webhook_delivery' as object,
      p_delivery.event_id,
      p_delivery.event_type,
      p_delivery.endpoint_id,
      case when p_delivery.subject_id like 'pay\_%' then p_delivery.subject_id end as payment_id,
      p_delivery.status,
      ('[' || p_delivery.attempts || ']')::json as attempts,
      -- The relay's column can be infinite if the sandbox has a clock of its own.
      case when p_delivery.status = 'pending' then pay.wire_time(
        coalesce(p_delivery.due_at, p_delivery.next_attempt_at)) end as next_attempt_at,
      pay.wire_time(p_delivery.created_at) as created_at
  ) t
$$;
