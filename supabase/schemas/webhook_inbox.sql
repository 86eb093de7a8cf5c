-- Purpose: the inboxes of webhook endpoints (ADR 0017).
--
-- A change writes a delivery to an inbox as it writes every other delivery: pending.
-- pay_internal.fill_inbox gives pending deliveries a position in the inbox, under the lock of the
-- endpoint. So positions become visible in their order, and a reader that has seen a position has
-- seen all before it. Reads fill the inbox that they read; polls of the dispatcher fill the others.

-- The maximum number of deliveries that one call adds to an inbox.
create or replace function pay_internal.inbox_fill()
returns integer language sql immutable parallel safe as $$ select 1000 $$;

-- Adds at most p_most pending deliveries of an endpoint to its inbox, and after them the reordered
-- ones that waited for these. Returns their number; 0 if the endpoint has no inbox.
-- Concurrency: locks the endpoint, then skips deliveries that another transaction has locked. Waits
-- for other transactions that count the same fault.
create or replace function pay_internal.fill_inbox(
  p_environment_id text, p_endpoint_id text, p_most integer
) returns bigint language plpgsql volatile as $$
declare
  v_at constant timestamptz := pay_internal.server_time();
  v_position bigint;
  v_checked text[];
  v_added bigint;
begin
  select t.inbox_position into v_position from pay.webhook_endpoints t
  where t.environment_id = p_environment_id and t.id = p_endpoint_id and t.delivery = 'inbox'
  for update;
  if v_position is null then return 0; end if;
  -- One probe of an index that is mostly empty.
  if exists (
    select from pay.faults fault
    where fault.kind = 'delivery' and fault.environment_id = p_environment_id
      and fault.times_left > 0
  ) then
    v_checked := pay_internal.give_inbox_faults(p_environment_id, p_endpoint_id, p_most, v_at);
  end if;
  v_added := pay_internal.add_to_inbox(
    p_environment_id, p_endpoint_id, v_position, p_most, v_at, v_checked);
  -- If less than p_most were added, few are left, so this reads few rows.
  if v_added < p_most and exists (
    select from pay.webhook_deliveries d
    where d.status = 'pending' and d.endpoint_id = p_endpoint_id
      and d.environment_id is not distinct from p_environment_id and d.fault is not null
  ) then
    if pay_internal.release_reordered(p_environment_id, p_endpoint_id, v_at) then
      v_added := v_added + pay_internal.add_to_inbox(
        p_environment_id, p_endpoint_id, v_position + v_added, p_most, v_at, v_checked);
    end if;
    perform pay_internal.reschedule_behind_held(p_environment_id, p_endpoint_id, v_at);
  end if;
  if v_added > 0 then
    update pay.webhook_endpoints t
    set inbox_position = v_position + v_added
    where t.environment_id = p_environment_id and t.id = p_endpoint_id;
  end if;
  return v_added;
end $$;

-- Adds at most p_most pending deliveries to an inbox, behind a position, without those that a
-- declared fault holds back. Returns their number.
-- p_checked: the deliveries that were given their faults. Others wait for the next call, because
--            they can have been committed since. Null: the sandbox has no faults.
-- Order: a delivery is added only with or after all earlier pending deliveries of its endpoint and
-- subject. An attempt under way from before the change to an inbox ends first.
-- Concurrency: a statement after the lock of the endpoint, so that it sees the deliveries that
-- others have added. Skips deliveries that another transaction has locked.
create or replace function pay_internal.add_to_inbox(
  p_environment_id text, p_endpoint_id text, p_position bigint, p_most integer, p_at timestamptz,
  p_checked text[], out added bigint
) language plpgsql volatile as $$
begin
  with
  found as materialized (
    select d.id, d.subject_id, d.sequence, d.next_attempt_at
    from pay.webhook_deliveries d
    where d.status = 'pending' and d.endpoint_id = p_endpoint_id
      and d.environment_id is not distinct from p_environment_id
      and (d.leased_until is null or d.leased_until <= p_at)
      and (d.next_attempt_at <= p_at or not pay_internal.is_held_back(d, p_at))
      and (p_checked is null or d.id = any (p_checked) or d.fault_attempt = d.attempt_count + 1
        or d.sequence is null and d.attempt_count = 0)
    order by d.subject_id, d.sequence
    limit p_most
    for update skip locked
  ),
  chosen as (
    select f.*,
      max(f.next_attempt_at) over (partition by f.subject_id order by f.sequence, f.id) as due_at
    from found f
    where f.sequence is null or not exists (
      select from pay.webhook_deliveries w
      where w.status = 'pending'
        and w.environment_id is not distinct from p_environment_id
        and w.endpoint_id = p_endpoint_id
        and w.subject_id = f.subject_id
        and w.sequence < f.sequence
        and w.id not in (select o.id from found o)
    )
  ),
  placed as materialized (
    select c.id, p_position + row_number() over (
        order by c.due_at, c.subject_id, c.sequence, c.id) as position
    from chosen c
  ),
  made_available as (
    update pay.webhook_deliveries d
    set status = 'available', next_attempt_at = null, leased_until = null, expired_leases = 0,
      attempt_count = d.attempt_count + 1
    from placed p
    where d.environment_id = p_environment_id and d.id = p.id
  ),
  entered as (
    insert into pay.inbox_entries as entry (environment_id, delivery_id, endpoint_id, position)
    select p_environment_id, p.id, p_endpoint_id, p.position from placed p
    on conflict (environment_id, delivery_id) do update set position = excluded.position
    returning entry.position
  )
  select count(*) into added from entered;
end $$;

-- Fills inboxes for the dispatcher.
-- Concurrency: skips an endpoint that another transaction has locked, because that one fills the
-- inbox, or the next poll does.
create or replace function pay_internal.fill_inboxes(p_environments text[], p_endpoints text[])
returns void language plpgsql volatile as $$
declare
  v_endpoint record;
begin
  for v_endpoint in
    select t.environment_id, t.id
    from unnest(p_environments, p_endpoints) as o (environment_id, id)
    join pay.webhook_endpoints t on t.environment_id = o.environment_id and t.id = o.id
    -- Polls that count faults of several sandboxes lock them in one order.
    order by t.environment_id, t.id
    for update of t skip locked
  loop
    perform pay_internal.fill_inbox(
      v_endpoint.environment_id, v_endpoint.id, pay_internal.inbox_fill());
  end loop;
end $$;

-- Records that the receiver has acknowledged the deliveries up to a position: available ones become
-- delivered, at most 1000 of them. A later call continues.
-- Concurrency: the caller has locked the endpoint.
create or replace function pay_internal.acknowledge_inbox(
  p_environment_id text, p_endpoint_id text, p_from bigint, p_to bigint
) returns void language plpgsql volatile as $$
declare
  v_most constant integer := 1000;
  v_to bigint;
begin
  if p_to - p_from > v_most then
    select entry.position into v_to from pay.inbox_entries entry
    where entry.environment_id = p_environment_id and entry.endpoint_id = p_endpoint_id
      and entry.position > p_from and entry.position <= p_to
    order by entry.position offset v_most - 1 limit 1;
  end if;
  v_to := coalesce(v_to, p_to);
  update pay.webhook_deliveries d
  set status = 'delivered'
  from (
    select entry.delivery_id from pay.inbox_entries entry
    where entry.environment_id = p_environment_id and entry.endpoint_id = p_endpoint_id
      and entry.position > p_from and entry.position <= v_to
    order by entry.delivery_id
  ) read
  where d.environment_id = p_environment_id and d.id = read.delivery_id
    and d.status || '' = 'available';
  update pay.webhook_endpoints t
  set inbox_acknowledged = v_to
  where t.environment_id = p_environment_id and t.id = p_endpoint_id;
end $$;

-- A page of an inbox as JSON text: {public_id, account, position, newest, secrets, data: [{id,
-- event_id, attempt, fault, body, traceparent}]}. position: the end of the page; all deliveries up
-- to it are in this page or before it. newest: the position of the newest delivery. A page has at
-- most p_most deliveries and pay_internal.page_bytes() bytes of bodies, but at least one delivery
-- if there is any.
create or replace function pay_internal.inbox_page(
  p_endpoint pay.webhook_endpoints, p_after bigint, p_most integer
) returns text language plpgsql stable as $$
begin
  return (
    with
    entry as materialized (
      select e.delivery_id, e.position from pay.inbox_entries e
      where e.environment_id = p_endpoint.environment_id and e.endpoint_id = p_endpoint.id
        and e.position > p_after
      order by e.position limit p_most
    ),
    shown as (
      select e.position, d.id, d.event_id, d.attempt_count as attempt, b.body, v.traceparent,
        case d.fault_attempt when d.attempt_count then d.fault end as fault,
        row_number() over (order by e.position) as n,
        sum(octet_length(b.body)) over (order by e.position) as bytes
      from entry e
      join pay.webhook_deliveries d
        on d.environment_id = p_endpoint.environment_id and d.id = e.delivery_id
        -- A delivery that is pending again gets a new position.
        and d.status || '' in ('available', 'delivered')
      join pay.events v on v.environment_id = p_endpoint.environment_id and v.id = d.event_id
      cross join lateral (select pay_internal.event_body(v) as body offset 0) b
    )
    select json_build_object(
      'public_id', (
        select e.public_id from pay.environments e where e.id = p_endpoint.environment_id),
      'account', (select e.account from pay.environments e where e.id = p_endpoint.environment_id),
      'position', case
        when bool_or(s.n > 1 and s.bytes > pay_internal.page_bytes())
          or (select count(*) from entry) = p_most
          then coalesce(
            min(s.position) filter (where s.n > 1 and s.bytes > pay_internal.page_bytes()) - 1,
            (select max(e.position) from entry e))
        else greatest(p_endpoint.inbox_position, p_after)
      end,
      'newest', p_endpoint.inbox_position,
      'secrets', p_endpoint.secrets,
      'data', coalesce(
        json_agg(
          json_build_object('id', s.id, 'event_id', s.event_id, 'attempt', s.attempt,
            'fault', s.fault, 'body', s.body, 'traceparent', s.traceparent)
          order by s.position
        ) filter (where s.n = 1 or s.bytes <= pay_internal.page_bytes()), '[]')
    )::text
    from shown s
  );
end $$;

-- Reads the inbox of an endpoint and acknowledges the deliveries up to p_after.
-- p_after    the position that the receiver has read; null: the one that it has acknowledged
-- Outcomes: ok (body: pay_internal.inbox_page) | not_found | no_inbox | unknown_position (p_after
-- is beyond
--           the newest delivery).
-- Concurrency: locks the endpoint only if there is something to add or to acknowledge.
create or replace function pay.read_inbox(
  p_request text, p_id text, p_after bigint, p_most integer
) returns pay.admission language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request, 'shared', true);
  v_endpoint pay.webhook_endpoints;
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  if exists (
    select from pay.webhook_deliveries d
    where d.status = 'pending' and d.endpoint_id = p_id
      and d.environment_id is not distinct from v_access.environment_id
  ) then
    perform pay_internal.fill_inbox(v_access.environment_id, p_id, pay_internal.inbox_fill());
  end if;
  select * into v_endpoint from pay.webhook_endpoints t
  where t.environment_id = v_access.environment_id and t.id = p_id;
  v_access.outcome := case
    when v_endpoint.id is null then 'not_found'
    when v_endpoint.delivery <> 'inbox' then 'no_inbox'
    when p_after > v_endpoint.inbox_position then 'unknown_position'
    else 'ok'
  end;
  if v_access.outcome = 'ok' then
    if p_after > v_endpoint.inbox_acknowledged then
      select * into v_endpoint from pay.webhook_endpoints t
      where t.environment_id = v_access.environment_id and t.id = p_id
      for update;
      if p_after > v_endpoint.inbox_acknowledged then
        perform pay_internal.acknowledge_inbox(
          v_access.environment_id, p_id, v_endpoint.inbox_acknowledged, p_after);
      end if;
    end if;
    v_access.body := pay_internal.inbox_page(
      v_endpoint, coalesce(p_after, v_endpoint.inbox_acknowledged), p_most);
  end if;
  return v_access;
end $$;
grant execute on function pay.read_inbox to pay_api;

-- Whether an inbox has something to add: a delivery that is due, or one that no fault holds back.
-- Looks at 100 of the latter, because a sandbox can have many that are held back, and every poll of
-- the dispatcher asks. Those behind them enter when they are due, or at the next read.
create or replace function pay_internal.has_entries(p_endpoint_id text)
returns boolean language plpgsql stable as $$
declare
  v_now constant timestamptz := pay_internal.server_time();
begin
  return exists (
    select from pay.webhook_deliveries d
    where d.endpoint_id = p_endpoint_id and d.expired_leases = 0 and d.next_attempt_at <= v_now
      and (d.leased_until is null or d.leased_until <= v_now)
  ) or exists (
    select from (
      select d from pay.webhook_deliveries d
      where d.status = 'pending' and d.endpoint_id = p_endpoint_id
        and (d.leased_until is null or d.leased_until <= v_now)
      limit 100
    ) w
    where not pay_internal.is_held_back(w.d, v_now)
  );
end $$;

-- The inboxes for which a reader waits and that have changed: a delivery is after the position that
-- the reader has read, or pending and not held back by a fault, or the endpoint has no inbox any
-- more. One statement for all readers of a process.
-- p_waiting  [{environment_id, endpoint_id, after}]
create or replace function pay.changed_inboxes(p_waiting text) returns table (endpoint_id text)
language plpgsql volatile security definer rows 10 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select w.endpoint_id
    from json_to_recordset(p_waiting::json) as w (
      environment_id text, endpoint_id text, after bigint
    )
    left join pay.webhook_endpoints t
      on t.environment_id = w.environment_id and t.id = w.endpoint_id and t.delivery = 'inbox'
    where t.id is null or t.inbox_position > w.after or pay_internal.has_entries(w.endpoint_id);
end $$;
grant execute on function pay.changed_inboxes to pay_api;

-- Sends the deliveries of an inbox that are not acknowledged to the URL that its endpoint now has.
-- Returns false, and changes nothing, if there are more than pay_internal.called_off_at_once().
-- Concurrency: the caller has locked the endpoint.
create or replace function pay_internal.empty_inbox(p_environment_id text, p_endpoint_id text)
returns boolean language plpgsql volatile as $$
declare
  v_unread text[] := pay_internal.unread_deliveries(p_environment_id, p_endpoint_id);
begin
  if cardinality(v_unread) > pay_internal.called_off_at_once() then return false; end if;
  update pay.webhook_deliveries d
  set status = 'pending', next_attempt_at = least(d.created_at, pay_internal.server_time()),
    due_at = null
  where d.environment_id = p_environment_id and d.id = any (v_unread);
  update pay.webhook_endpoints t set inbox_acknowledged = t.inbox_position
  where t.environment_id = p_environment_id and t.id = p_endpoint_id;
  return true;
end $$;

-- Cancels the deliveries of an inbox that are not acknowledged, because its endpoint is deleted.
-- Returns false if some are left, because a statement has a deadline (ADR 0004). Moves the position
-- behind those that it has cancelled, so that the next call does not read them again.
-- Concurrency: as pay_internal.empty_inbox.
create or replace function pay_internal.call_off_inbox(p_environment_id text, p_endpoint_id text)
returns boolean language plpgsql volatile as $$
declare
  v_unread constant text[] := pay_internal.unread_deliveries(p_environment_id, p_endpoint_id);
  v_cancelled constant text[] := v_unread[:pay_internal.called_off_at_once()];
begin
  update pay.webhook_deliveries d
  set status = 'cancelled'
  where d.environment_id = p_environment_id and d.id = any (v_cancelled);
  update pay.webhook_endpoints t
  set inbox_acknowledged = entry.position
  from pay.inbox_entries entry
  where t.environment_id = p_environment_id and t.id = p_endpoint_id
    and entry.environment_id = p_environment_id
    and entry.delivery_id = v_cancelled[cardinality(v_cancelled)];
  return cardinality(v_unread) <= pay_internal.called_off_at_once();
end $$;

-- The oldest deliveries of an inbox that are not acknowledged: at most one more than
-- pay_internal.called_off_at_once(). Reads them in the order of the inbox, one by one, because a
-- join would read all of them.
create or replace function pay_internal.unread_deliveries(p_environment_id text, p_endpoint_id text)
returns text[] language plpgsql volatile as $$
declare
  v_acknowledged constant bigint := (
    select t.inbox_acknowledged from pay.webhook_endpoints t
    where t.environment_id = p_environment_id and t.id = p_endpoint_id);
begin
  return array(
    select entry.delivery_id from pay.inbox_entries entry
    cross join lateral (
      select from pay.webhook_deliveries d
      where d.environment_id = p_environment_id and d.id = entry.delivery_id
        and d.status || '' = 'available' limit 1
    ) d
    where entry.environment_id = p_environment_id and entry.endpoint_id = p_endpoint_id
      and entry.position > v_acknowledged
    order by entry.position
    limit pay_internal.called_off_at_once() + 1
  );
end $$;
