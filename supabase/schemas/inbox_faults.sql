-- Purpose: declared faults of deliveries to inboxes (inbox.sql, ADR 0029).
--
-- pay_internal.give_faults gives the faults as in a turn of the relay (relay_faults.sql). A
-- delivery that a fault delays or reorders is held back until its time, and those behind it wait
-- for it. Other deliveries enter their inbox without regard to their times. The faults duplicate
-- and wrong_signature show at the reads.

-- Gives faults to the pending deliveries that pay_internal.add_to_inbox would add next, and returns
-- the ids of these deliveries. A triggered event has no fault, because the trigger is the test's
-- own delivery.
-- Concurrency: the caller has locked the endpoint. Skips deliveries that another transaction has
-- locked.
create or replace function pay_internal.give_inbox_faults(
  p_environment_id text, p_endpoint_id text, p_most integer, p_at timestamptz
)
returns text[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_due pay_internal.due_delivery[];
begin
  select array_agg(row(p_environment_id, c.id, p_endpoint_id, c.subject_id, c.sequence, c.event_id,
    0, false)::pay_internal.due_delivery)
  into v_due
  from (
    select d.id, d.subject_id, d.sequence, d.event_id
    from pay.webhook_deliveries d
    where d.status = 'pending' and d.endpoint_id = p_endpoint_id
      and d.environment_id is not distinct from p_environment_id
      and (d.leased_until is null or d.leased_until <= p_at)
      and (d.next_attempt_at <= p_at or not pay_internal.is_held_back(d, p_at))
      and (d.sequence is not null or d.attempt_count > 0)
    order by d.subject_id, d.sequence
    limit p_most
    for update skip locked
  ) c;
  if v_due is not null then
    perform pay_internal.give_faults(v_due, p_at);
  end if;
  return array(select c.id from unnest(v_due) c);
end
$$;

-- Whether a pending delivery must not enter its inbox yet, because a fault delays or reorders it or
-- an earlier delivery of its endpoint and subject.
create or replace function pay_internal.is_held_back(
  p_delivery pay.webhook_deliveries, p_at timestamptz
)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_delivery.next_attempt_at > p_at and pay_internal.waits_for_fault(p_delivery) then
    return true;
  end if;
  return exists (
    select from pay.webhook_deliveries w
    where w.status = 'pending'
      and w.environment_id is not distinct from p_delivery.environment_id
      and w.endpoint_id = p_delivery.endpoint_id
      and w.subject_id = p_delivery.subject_id
      and w.sequence < p_delivery.sequence
      and w.fault is not null and w.next_attempt_at > p_at and pay_internal.waits_for_fault(w)
  );
end
$$;

-- Makes the reordered deliveries of an inbox due whose later event has entered it. Returns whether
-- the inbox has any that were not due.
create or replace function pay_internal.release_reordered(
  p_environment_id text, p_endpoint_id text, p_at timestamptz
)
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids text[];
begin
  select array_agg(d.id) into v_ids from pay.webhook_deliveries d
  where d.status = 'pending' and d.endpoint_id = p_endpoint_id
    and d.environment_id is not distinct from p_environment_id
    and d.fault = 'reorder' and d.fault_attempt = d.attempt_count + 1 and d.next_attempt_at > p_at;
  if v_ids is null then
    return false;
  end if;
  perform pay_internal.release_next_deliveries(
    array_fill(p_environment_id, array[cardinality(v_ids)]), v_ids, p_at);
  return true;
end
$$;

-- Postpones the deliveries of an inbox that wait behind one that is held back, until that one is
-- due. Otherwise every turn of the relay would look at them, and an advance of the clock would wait
-- for them. They enter the inbox with that one, whatever their own time is.
-- Concurrency: skips deliveries that another transaction has locked.
create or replace function pay_internal.put_off_behind_held(
  p_environment_id text, p_endpoint_id text, p_at timestamptz
)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  with behind as materialized (
    select d.id, h.next_attempt_at, h.due_at
    from pay.webhook_deliveries h
    join pay.webhook_deliveries d
      on d.status = 'pending'
      and d.environment_id is not distinct from p_environment_id
      and d.endpoint_id = p_endpoint_id
      and d.subject_id = h.subject_id
      and d.sequence > h.sequence
      and d.next_attempt_at <= p_at
    where h.status = 'pending' and h.endpoint_id = p_endpoint_id
      and h.environment_id is not distinct from p_environment_id
      and h.fault is not null and h.next_attempt_at > p_at and pay_internal.waits_for_fault(h)
    order by d.id
    for update of d skip locked
  )
  update pay.webhook_deliveries d
  set next_attempt_at = b.next_attempt_at, due_at = greatest(d.due_at, b.due_at)
  from (
    select o.id, max(o.next_attempt_at) as next_attempt_at, max(o.due_at) as due_at
    from behind o group by o.id
  ) b
  where d.environment_id = p_environment_id and d.id = b.id;
end
$$;
