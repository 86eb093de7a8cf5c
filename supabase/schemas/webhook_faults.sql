-- Purpose: step of pay.poll_deliveries and of pay_internal.fill_inbox that gives due deliveries the
-- faults that tests have declared (ADR 0023).
--
-- A fault belongs to the next attempt of a delivery: fault_attempt is the number of that attempt,
-- and such a delivery matches no further fault before it. So a delayed delivery is not delayed
-- again, and a dropped one that is sent again is not dropped again.
-- In an inbox, a delivery that a fault delays or reorders is held back until its time, and those
-- behind it wait for it. Other deliveries enter their inbox without regard to their times. The
-- faults duplicate and wrong_signature show at the reads.

-- The due deliveries without those that this poll does not lease because of their fault:
--   delay                 due again after the delay
--   reorder               goes after the next delivery of its endpoint and subject
--   drop_until_recovered  failed without an attempt
-- The dispatcher sends the others with their fault (duplicate, wrong_signature), and an inbox shows
-- it. A triggered event has no order, and a subject has one reordered delivery at a time: those
-- match no reorder.
-- Concurrency: runs after the statement that has locked the deliveries. Waits for other polls that
-- count the same fault.
create or replace function pay_internal.give_faults(
  p_due pay_internal.due_delivery[], p_at timestamptz
) returns pay_internal.due_delivery[] language plpgsql volatile as $$
declare
  v_delivery record;
  v_fault pay.faults;
  v_kept text[] := '{}';
begin
  for v_delivery in
    select d.environment_id, d.id, d.endpoint_id, d.event_type, d.subject_id,
      d.attempt_count + 1 as attempt, d.sequence is null as has_no_order
    from unnest(p_due) c
    join pay.webhook_deliveries d on d.environment_id = c.environment_id and d.id = c.id
    where not c.is_expired and d.fault_attempt is distinct from d.attempt_count + 1
      and exists (
        select from pay.faults f
        where f.kind = 'delivery' and f.environment_id = c.environment_id and f.times_left > 0
      )
    order by d.endpoint_id, d.subject_id, d.sequence, d.id
  loop
    v_fault := pay_internal.next_fault(v_delivery.environment_id, 'delivery',
      jsonb_build_object(
        'endpoint_id', v_delivery.endpoint_id, 'event_type', v_delivery.event_type),
      true,
      case when v_delivery.has_no_order
        or pay_internal.reordered_delivery(v_delivery.environment_id, v_delivery.endpoint_id,
          v_delivery.subject_id) is not null then 'reorder' end);
    continue when v_fault.id is null;
    update pay.webhook_deliveries d
    set fault = v_fault.fault, fault_attempt = v_delivery.attempt,
      status = case v_fault.fault when 'drop_until_recovered' then 'failed' else d.status end,
      next_attempt_at =
        case when v_fault.fault <> 'drop_until_recovered' then d.next_attempt_at end,
      due_at = case when v_fault.fault <> 'drop_until_recovered' then d.due_at end
    where d.environment_id = v_delivery.environment_id and d.id = v_delivery.id;
    case v_fault.fault
      when 'delay' then
        perform pay_internal.delay_delivery(v_delivery.environment_id, v_delivery.id,
          p_at, v_fault.delay_ms * interval '1 ms');
        v_kept := v_kept || v_delivery.id;
      when 'drop_until_recovered' then
        v_kept := v_kept || v_delivery.id;
        -- The reordered delivery that waits for the next one.
        perform pay_internal.release_next_deliveries(array[v_delivery.environment_id], array[
          pay_internal.reordered_delivery(v_delivery.environment_id, v_delivery.endpoint_id,
            v_delivery.subject_id)], p_at);
      when 'reorder' then
        v_kept := array_remove(v_kept || v_delivery.id
          || pay_internal.put_after_next(v_delivery.environment_id, v_delivery.id, p_at), null);
      else
        null;
    end case;
  end loop;
  return array(select c from unnest(p_due) c where c.id <> all (v_kept));
end $$;

-- Makes a delivery due after some time, by the clock of its sandbox if that has one.
create or replace function pay_internal.delay_delivery(
  p_environment_id text, p_id text, p_at timestamptz, p_wait interval
) returns void language plpgsql volatile as $$
declare
  v_due_at constant timestamptz := pay_internal.environment_time(p_environment_id) + p_wait;
begin
  update pay.webhook_deliveries d
  set due_at = case when d.due_at is not null then v_due_at end,
    next_attempt_at = case when d.due_at is null then p_at + p_wait
      else pay_internal.real_due(p_environment_id, v_due_at) end
  where d.environment_id = p_environment_id and d.id = p_id;
end $$;

-- The pending delivery of a subject to an endpoint that was reordered and not sent since.
create or replace function pay_internal.reordered_delivery(
  p_environment_id text, p_endpoint_id text, p_subject_id text
) returns text language plpgsql stable as $$
begin
  return (
    select d.id from pay.webhook_deliveries d
    where d.status = 'pending'
      and d.environment_id is not distinct from p_environment_id
      and d.endpoint_id = p_endpoint_id
      and d.subject_id = p_subject_id
      and d.fault = 'reorder' and d.fault_attempt = d.attempt_count + 1
    limit 1
  );
end $$;

-- Puts a delivery after the next one of its endpoint and subject: the two swap their positions in
-- the order. Returns the id of that one. If there is none yet, or another transaction has it, the
-- delivery goes behind all of them and waits until one of them is sent
-- (pay_internal.waits_for_fault), for a minute at most. Returns null then.
create or replace function pay_internal.put_after_next(
  p_environment_id text, p_id text, p_at timestamptz
) returns text language plpgsql volatile as $$
declare
  v_longest_wait constant interval := '1 minute';
  v_behind_all constant integer := 1000000000;
  v_delivery pay.webhook_deliveries;
  v_next record;
begin
  select * into v_delivery from pay.webhook_deliveries d
  where d.environment_id = p_environment_id and d.id = p_id;
  select w.id, w.sequence into v_next
  from pay.webhook_deliveries w
  where w.status = 'pending'
    and w.environment_id is not distinct from v_delivery.environment_id
    and w.endpoint_id = v_delivery.endpoint_id
    and w.subject_id = v_delivery.subject_id
    and w.sequence > v_delivery.sequence
  order by w.sequence
  limit 1
  for update skip locked;
  if v_next.id is null then
    update pay.webhook_deliveries d set sequence = v_behind_all
    where d.environment_id = p_environment_id and d.id = p_id;
    perform pay_internal.delay_delivery(p_environment_id, p_id, p_at, v_longest_wait);
  else
    update pay.webhook_deliveries d
    set sequence = case d.id when p_id then v_next.sequence else v_delivery.sequence end
    where d.environment_id = p_environment_id and d.id in (p_id, v_next.id);
  end if;
  return v_next.id;
end $$;

-- Whether a delivery still waits because of its fault, so that the end of an earlier delivery does
-- not make it due: the delay is not over, or no later event has been sent or given up. The events
-- have the order, because reordered deliveries have swapped their positions.
create or replace function pay_internal.waits_for_fault(p_delivery pay.webhook_deliveries)
returns boolean language plpgsql stable as $$
begin
  if p_delivery.fault_attempt <> p_delivery.attempt_count + 1 then return false; end if;
  return p_delivery.fault = 'delay' or (p_delivery.fault = 'reorder' and not exists (
    select from pay.events v
    join pay.events o
      on o.environment_id = v.environment_id and o.subject_id = v.subject_id
      and o.sequence > v.sequence
    cross join lateral pay_internal.deliveries_of(o.environment_id, o.id) w
    where v.environment_id = p_delivery.environment_id and v.id = p_delivery.event_id
      and w.endpoint_id = p_delivery.endpoint_id and w.status <> 'pending'
  ));
end $$;

-- Gives faults to the pending deliveries that pay_internal.add_to_inbox would add next, and returns
-- the ids of these deliveries. A triggered event has no fault, because the trigger is the test's
-- own delivery.
-- Concurrency: the caller has locked the endpoint. Skips deliveries that another transaction has
-- locked.
create or replace function pay_internal.give_inbox_faults(
  p_environment_id text, p_endpoint_id text, p_most integer, p_at timestamptz
) returns text[] language plpgsql volatile as $$
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
  if v_due is not null then perform pay_internal.give_faults(v_due, p_at); end if;
  return array(select c.id from unnest(v_due) c);
end $$;

-- Whether a pending delivery must not enter its inbox yet, because a fault delays or reorders it or
-- an earlier delivery of its endpoint and subject.
create or replace function pay_internal.is_held_back(
  p_delivery pay.webhook_deliveries, p_at timestamptz
) returns boolean language plpgsql stable as $$
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
end $$;

-- Makes the reordered deliveries of an inbox due whose later event has entered it. Returns whether
-- the inbox has any that were not due.
create or replace function pay_internal.release_reordered(
  p_environment_id text, p_endpoint_id text, p_at timestamptz
) returns boolean language plpgsql volatile as $$
declare
  v_ids text[];
begin
  select array_agg(d.id) into v_ids from pay.webhook_deliveries d
  where d.status = 'pending' and d.endpoint_id = p_endpoint_id
    and d.environment_id is not distinct from p_environment_id
    and d.fault = 'reorder' and d.fault_attempt = d.attempt_count + 1 and d.next_attempt_at > p_at;
  if v_ids is null then return false; end if;
  perform pay_internal.release_next_deliveries(
    array_fill(p_environment_id, array[cardinality(v_ids)]), v_ids, p_at);
  return true;
end $$;

-- Postpones the deliveries of an inbox that wait behind one that is held back, until that one is
-- due. Otherwise every poll of the dispatcher would look at them, and an advance of the clock would
-- wait for them. They enter the inbox with that one, whatever their own time is.
-- Concurrency: skips deliveries that another transaction has locked.
create or replace function pay_internal.reschedule_behind_held(
  p_environment_id text, p_endpoint_id text, p_at timestamptz
) returns void language plpgsql volatile as $$
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
end $$;
