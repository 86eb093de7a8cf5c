-- Purpose: an endpoint gets again one delivery, or those that it has missed in a period.

-- Makes a delivery due at once. Its earlier attempts stay recorded. A delivery that is available in
-- an inbox stays as it is.
-- p_refusal  the 409 to return and to store if the endpoint is deleted or disabled
-- Outcomes: committed (body) | not_found | off | backlog (webhook_backlog.sql).
create or replace function pay.redeliver(p_request text, p_id text, p_refusal text)
returns pay.admission language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.claim_one(p_request, pay_internal.admit_one(p_request));
  v_delivery pay.webhook_deliveries;
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  select * into v_delivery from pay.webhook_deliveries d
  where d.environment_id = v_access.environment_id and d.id = p_id
  for update;
  if v_delivery.id is null then
    v_access.outcome := 'not_found';
    perform pay_internal.release_key(p_request, v_access);
    return v_access;
  end if;
  if v_delivery.status <> 'pending' and pay_internal.has_backlog(v_access.environment_id) then
    v_access.outcome := 'backlog';
    perform pay_internal.release_key(p_request, v_access);
    return v_access;
  end if;
  if exists (
    select from pay.webhook_endpoints t
    where t.environment_id = v_access.environment_id and t.id = v_delivery.endpoint_id
      and t.status = 'enabled'
  ) then
    -- An attempt that is under way goes on; the delivery is then due again only if it fails.
    if v_delivery.status <> 'available'
      and (v_delivery.leased_until is null
        or v_delivery.leased_until <= v_access.at - coalesce(v_access.ahead, '0'))
    then
      update pay.webhook_deliveries d
      set status = 'pending', next_attempt_at = least(v_access.at, pay_internal.server_time()),
        due_at = case when v_access.ahead is not null then v_access.at end
      where d.environment_id = v_access.environment_id and d.id = p_id
      returning * into v_delivery;
    end if;
    v_access.outcome := 'committed';
    v_access.status := 200;
    v_access.body := pay_internal.webhook_delivery_body(v_delivery);
  else
    v_access.outcome := 'off';
    v_access.status := 409;
    v_access.body := p_refusal;
  end if;
  perform pay_internal.store_response(p_request, v_access);
  return v_access;
end $$;
grant execute on function pay.redeliver to pay_api;

-- Makes the deliveries of an endpoint pending again that were created in a period. A delivery that
-- is pending, or available in an inbox, stays as it is. The response is
-- {object, endpoint_id, count, has_more, next_cursor}.
-- p_request   the request, as pay_internal.admit takes it, in a list of one, with status 202
-- p_from, p_before, p_after
--             bounds of the ids: from p_from, before p_before, and after p_after unless it is null
-- p_statuses  the statuses of the deliveries to recover
-- p_refusal   the 409 to return and to store if the endpoint is disabled
-- Outcomes: committed (body) | not_found | off | backlog (webhook_backlog.sql).
-- Cost: reads at most 20000 deliveries and changes at most 5000 of them, because a statement has a
-- deadline (ADR 0004). next_cursor is the last delivery that it has read, or null at the end.
-- Concurrency: locks deliveries in the order of their ids, as the dispatcher does.
create or replace function pay.recover_deliveries(
  p_request text, p_id text, p_from text, p_before text, p_after text, p_statuses text[],
  p_refusal text
) returns pay.admission language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_most_read constant integer := 20000;
  v_access pay.admission := pay_internal.claim_one(p_request, pay_internal.admit_one(p_request));
  v_status text;
  v_ids text[];
  v_cursor text;
  v_count bigint;
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  select t.status into v_status from pay.webhook_endpoints t
  where t.environment_id = v_access.environment_id and t.id = p_id;
  if v_status is null then
    v_access.outcome := 'not_found';
    perform pay_internal.release_key(p_request, v_access);
    return v_access;
  end if;
  if v_status = 'disabled' then
    v_access.outcome := 'off';
    v_access.status := 409;
    v_access.body := p_refusal;
    perform pay_internal.store_response(p_request, v_access);
    return v_access;
  end if;

  if pay_internal.has_backlog(v_access.environment_id) then
    v_access.outcome := 'backlog';
    perform pay_internal.release_key(p_request, v_access);
    return v_access;
  end if;

  select m.ids, m.cursor into v_ids, v_cursor
  from pay_internal.missed_deliveries(
    v_access.environment_id, p_id, p_from, p_before, p_after, p_statuses, v_most_read) m;
  with locked as materialized (
    select d.id from pay.webhook_deliveries d
    where d.environment_id = v_access.environment_id and d.id = any (v_ids)
      and d.status || '' = any (p_statuses)
    order by d.id
    for update of d
  ),
  recovered as (
    update pay.webhook_deliveries d
    set status = 'pending', next_attempt_at = pay_internal.server_time(),
      due_at = case when v_access.ahead is not null then v_access.at end
    from locked l
    where d.environment_id = v_access.environment_id and d.id = l.id
    returning 1
  )
  select count(*) into v_count from recovered;
  v_access.outcome := 'committed';
  v_access.status := 202;
  v_access.body := json_build_object('object', 'recovery', 'endpoint_id', p_id, 'count', v_count,
    'has_more', v_cursor is not null, 'next_cursor', v_cursor);
  perform pay_internal.store_response(p_request, v_access);
  return v_access;
end $$;
grant execute on function pay.recover_deliveries to pay_api;

-- The oldest deliveries of an endpoint within bounds that have one of some statuses, and the cursor
-- of pay.recover_deliveries. Reads at most p_most_read deliveries.
create or replace function pay_internal.missed_deliveries(
  p_environment_id text, p_endpoint_id text, p_from text, p_before text, p_after text,
  p_statuses text[], p_most_read integer, out ids text[], out cursor text
) language sql stable as $$
  with
  read as materialized (
    select d.id, d.status from pay.webhook_deliveries d
    where d.endpoint_id = p_endpoint_id and d.environment_id = p_environment_id
      and d.id >= p_from and d.id < p_before and d.id > coalesce(p_after, '')
    order by d.id
    limit p_most_read
  ),
  missed as materialized (
    select r.id from read r
    where r.status = any (p_statuses)
    order by r.id
    limit pay_internal.called_off_at_once()
  )
  select array_agg(m.id order by m.id),
    case
      when count(*) = pay_internal.called_off_at_once() then max(m.id)
      when (select count(*) from read) = p_most_read then (select max(r.id) from read r)
    end
  from missed m
$$;
