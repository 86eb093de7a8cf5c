-- Purpose: small functions for the entry functions that write or read deliveries.

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

-- A time in the format of the contract.
create or replace function pay_internal.wire_time(p_at timestamptz)
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
create or replace function pay_internal.without_second_attempt(p_attempts text)
returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select split_part(p_attempts, '},{', 1) || '},{' || substr(a.others, strpos(a.others, '},{') + 3)
  from (select substr(p_attempts, strpos(p_attempts, '},{') + 3) as others) a
$$;

-- An endpoint as JSON text, with a last member that is there only while its attempts fail. The
-- stored body never has that member, because the relay records a failure in a column only.
create or replace function pay_internal.webhook_endpoint_body(p_endpoint pay.webhook_endpoints)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case when p_endpoint.failing_since is not null and p_endpoint.status = 'enabled'
    then left(p_endpoint.body, -1) || ',"failing":true}'
    else p_endpoint.body end
$$;

-- The delivery that a pending delivery waits for: the first pending one of the same endpoint and
-- subject, if it is earlier. Null: it waits for none. The comparison of the environment uses no
-- index, as in pay.relay_turn.
create or replace function pay_internal.blocking_delivery(p_delivery pay.webhook_deliveries)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select d.id
    from pay.webhook_deliveries d
    where d.status = 'pending'
      and d.environment_id is not distinct from p_delivery.environment_id
      and d.endpoint_id = p_delivery.endpoint_id
      and d.subject_id = p_delivery.subject_id
      and d.sequence < p_delivery.sequence
    order by d.sequence
    limit 1
  );
end
$$;

-- A delivery as JSON text, in the order of the contract (§4). One that waits for another delivery
-- names it in its last member.
create or replace function pay_internal.webhook_delivery_body(p_delivery pay.webhook_deliveries)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case when b.blocked_by is null then b.body
    else left(b.body, -1) || ',"blocked_by":"' || b.blocked_by || '"}' end
  from (
    select row_to_json(t)::text as body,
      case when t.status = 'pending' and p_delivery.sequence is not null
        then pay_internal.blocking_delivery(p_delivery) end as blocked_by
    from (
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
        case when p_delivery.status = 'pending' then pay_internal.wire_time(
          coalesce(p_delivery.due_at, p_delivery.next_attempt_at)) end as next_attempt_at,
        pay_internal.wire_time(p_delivery.created_at) as created_at
    ) t
  ) b
$$;
