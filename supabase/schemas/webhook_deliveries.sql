-- Purpose: a delivery as JSON text, with the requests that it has sent in a sandbox and the
-- beginnings of the responses (ADR 0018).

-- The stem of the ids of an event's deliveries (shared/domain/changes/event.ts).
create or replace function pay_internal.delivery_stem(p_event_id text)
returns text language plpgsql immutable parallel safe as $$
begin
  return 'whd_' || substr(p_event_id, 5, 23) || right(p_event_id, 1) || substr(p_event_id, 28, 1);
end $$;

-- The deliveries of an event. The primary key finds them, because pay_internal.delivery_id changes
-- the last character of the stem only and adds one. In plpgsql, so that no plan of a caller begins
-- with the deliveries.
create or replace function pay_internal.deliveries_of(p_environment_id text, p_event_id text)
returns setof pay.webhook_deliveries language plpgsql stable rows 2 as $$
declare
  v_stem constant text := left(pay_internal.delivery_stem(p_event_id), -1);
begin
  return query
    select d.* from pay.webhook_deliveries d
    where d.environment_id = p_environment_id and d.event_id = p_event_id
      and d.id > v_stem and d.id < v_stem || '~';
end $$;

-- The delivery that a pending delivery waits for: the first pending one of the same endpoint and
-- subject, if it is earlier. Null: it waits for none. The comparison of the environment uses no
-- index, as in pay.poll_deliveries.
create or replace function pay_internal.blocking_delivery(p_delivery pay.webhook_deliveries)
returns text language plpgsql stable as $$
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
end $$;

-- A delivery as JSON text, in the order of the contract (§4). One that waits for another delivery
-- names it in its last member.
create or replace function pay_internal.webhook_delivery_body(p_delivery pay.webhook_deliveries)
returns text language sql stable as $$
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
        array_to_json(p_delivery.attempts) as attempts,
        -- The dispatcher's column can be infinite if the sandbox has a clock of its own.
        case when p_delivery.status = 'pending' then pay_internal.wire_time(
          coalesce(p_delivery.due_at, p_delivery.next_attempt_at)) end as next_attempt_at,
        pay_internal.wire_time(p_delivery.created_at) as created_at
    ) t
  ) b
$$;

-- Adds ended attempts to the log. Leaves out one that is not the newest of its delivery,
-- and those of live and of retired environments. Distinct, because an error here would make the
-- dispatcher send its results again and again.
-- p_entries  [{environment_id, id, attempt, url, headers, response, response_truncated}], where
--            headers is JSON text
-- Concurrency: runs after the statement that has locked and changed the deliveries.
create or replace function pay_internal.log_attempts(p_entries jsonb)
returns void language plpgsql volatile as $$
declare
  -- Mostly false, so that no entry is looked up.
  v_are_erased constant boolean := exists (select from pay.erasures);
  -- The newest attempts of a delivery.
  v_logged constant integer := 5;
begin
  insert into pay.attempt_log as x (environment_id, delivery_id, slot, attempt, url, headers,
    response, response_truncated, stored_at)
  select distinct on (d.environment_id, d.id)
    d.environment_id, d.id, r.attempt % v_logged, r.attempt, r.url, r.headers,
    a.response, a.response is not null and r.response_truncated is true,
    pay_internal.server_time()
  from jsonb_to_recordset(p_entries) as r (
    environment_id text, id text, attempt integer, url text, headers text, response text,
    response_truncated boolean
  )
  join pay.webhook_deliveries d
    on d.environment_id = r.environment_id and d.id = r.id and d.attempt_count = r.attempt
  join pay.environments e
    on e.id = d.environment_id and not e.livemode and e.retired_at is null
  cross join lateral (
    -- A receiver can repeat what it got before an erasure.
    select case when not (v_are_erased and pay_internal.is_just_erased(d)) then r.response end
      as response offset 0
  ) a
  order by d.environment_id, d.id
  on conflict on constraint attempt_log_pkey do update
  set attempt = excluded.attempt, url = excluded.url, headers = excluded.headers,
    response = excluded.response, response_truncated = excluded.response_truncated,
    stored_at = excluded.stored_at
  where x.attempt < excluded.attempt;
end $$;

-- A delivery as JSON text with its attempts in the log, oldest first. Without one it is the
-- delivery alone.
create or replace function pay_internal.whole_delivery_body(p_delivery pay.webhook_deliveries)
returns text language plpgsql stable as $$
declare
  v_body constant text := pay_internal.webhook_delivery_body(p_delivery);
  v_entries text;
begin
  select string_agg(row_to_json(t)::text, ',' order by t.attempt) into v_entries
  from (
    select x.attempt,
      (select row_to_json(q) from (
        select x.url, x.headers::json as headers, pay_internal.event_body(v) as body
      ) q) as request,
      (select row_to_json(a) from (
        select x.response as text, x.response_truncated as truncated
      ) a where x.response is not null) as response
    from pay.attempt_log x
    join pay.events v on v.environment_id = x.environment_id and v.id = p_delivery.event_id
    where x.environment_id = p_delivery.environment_id and x.delivery_id = p_delivery.id
  ) t;
  return case when v_entries is null then v_body
    else left(v_body, -1) || ',"exchanges":[' || v_entries || ']}' end;
end $$;

-- Deletes one batch of the entries that have outlived their retention. p_environment_id: null is
-- all. Returns the number of deleted rows. Their times are the database's, so an advance of a
-- sandbox's clock deletes none, and its count does not depend on receivers.
create or replace function pay_internal.purge_attempt_log(
  p_environment_id text, p_at timestamptz, p_batch integer, out deleted bigint
) language plpgsql volatile as $$
begin
  -- In order, because with a limit alone a scan of the table looks cheap while its statistics are
  -- old.
  with old as materialized (
    select o.environment_id, o.delivery_id, o.slot
    from pay.attempt_log o
    where o.stored_at < p_at - interval '7 days'
      and (p_environment_id is null or o.environment_id = p_environment_id)
    order by o.stored_at
    limit p_batch for update skip locked
  )
  delete from pay.attempt_log t using old
  where t.environment_id = old.environment_id and t.delivery_id = old.delivery_id
    and t.slot = old.slot;
  get diagnostics deleted = row_count;
end $$;
