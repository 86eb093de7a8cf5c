-- Purpose: step of pay.relay_turn and of pay_internal.fill_inbox that gives due deliveries the
-- faults that tests have declared (ADR 0029).
--
-- A fault belongs to the next attempt of a delivery: fault_attempt is the number of that attempt,
-- and such a delivery matches no further fault before it. So a delayed delivery is not delayed
-- again, and a dropped one that is sent again is not dropped again.

-- The due deliveries without those that this turn does not claim because of their fault:
--   delay                 due again after the delay
--   reorder               goes after the next delivery of its endpoint and subject
--   drop_until_recovered  failed without an attempt
-- The relay sends the others with their fault (duplicate, wrong_signature), and an inbox shows it.
-- A triggered event has no order, and a subject has one reordered delivery at a time: those match
-- no reorder.
-- Concurrency: runs after the statement that has locked the deliveries. Waits for other turns that
-- count the same fault.
create or replace function pay_internal.give_faults(
  p_due pay_internal.due_delivery[], p_at timestamptz
)
returns pay_internal.due_delivery[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
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
    where not c.is_lost and d.fault_attempt is distinct from d.attempt_count + 1
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
      case when v_delivery.has_no_order or pay_internal.is_reordered(v_delivery.environment_id,
        v_delivery.endpoint_id, v_delivery.subject_id) then 'reorder' end);
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
        perform pay_internal.release_overtaken(
          v_delivery.environment_id, v_delivery.endpoint_id, v_delivery.subject_id, p_at);
      when 'reorder' then
        v_kept := array_remove(v_kept || v_delivery.id
          || pay_internal.put_after_next(v_delivery.environment_id, v_delivery.id, p_at), null);
      else
        null;
    end case;
  end loop;
  return array(select c from unnest(p_due) c where c.id <> all (v_kept));
end
$$;

-- Makes a delivery due after some time, by the clock of its sandbox if that has one.
create or replace function pay_internal.delay_delivery(
  p_environment_id text, p_id text, p_at timestamptz, p_wait interval
)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_due_at constant timestamptz := pay_internal.environment_time(p_environment_id) + p_wait;
begin
  update pay.webhook_deliveries d
  set due_at = case when d.due_at is not null then v_due_at end,
    next_attempt_at = case when d.due_at is null then p_at + p_wait
      else pay_internal.real_due(p_environment_id, v_due_at) end
  where d.environment_id = p_environment_id and d.id = p_id;
end
$$;

-- Whether a subject has a pending delivery to an endpoint that was reordered and not sent since.
create or replace function pay_internal.is_reordered(
  p_environment_id text, p_endpoint_id text, p_subject_id text
)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select from pay.webhook_deliveries d
    where d.status = 'pending'
      and d.environment_id is not distinct from p_environment_id
      and d.endpoint_id = p_endpoint_id
      and d.subject_id = p_subject_id
      and d.fault = 'reorder' and d.fault_attempt = d.attempt_count + 1
  );
end
$$;

-- Puts a delivery after the next one of its endpoint and subject: the two exchange their places in
-- the order. Returns the id of that one. If there is none yet, or another transaction has it, the
-- delivery goes behind all of them and waits until one of them is sent
-- (pay_internal.release_overtaken), for a minute at most. Returns null then.
create or replace function pay_internal.put_after_next(
  p_environment_id text, p_id text, p_at timestamptz
)
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
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
end
$$;

-- Makes the reordered delivery of a subject due that waits for the next one, if a later event of
-- the subject has been sent or given up.
create or replace function pay_internal.release_overtaken(
  p_environment_id text, p_endpoint_id text, p_subject_id text, p_at timestamptz
)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pay_internal.release_next_deliveries(array[d.environment_id], array[d.id], p_at)
  from pay.webhook_deliveries d
  where d.status = 'pending'
    and d.environment_id is not distinct from p_environment_id
    and d.endpoint_id = p_endpoint_id
    and d.subject_id = p_subject_id
    and d.fault = 'reorder' and d.fault_attempt = d.attempt_count + 1;
end
$$;

-- Whether a delivery still waits because of its fault, so that the end of an earlier delivery does
-- not make it due: the delay is not over, or no later event has been sent or given up. The events
-- have the order, because reordered deliveries have exchanged their places.
create or replace function pay_internal.waits_for_fault(p_delivery pay.webhook_deliveries)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_delivery.fault_attempt <> p_delivery.attempt_count + 1 then
    return false;
  end if;
  return p_delivery.fault = 'delay' or (p_delivery.fault = 'reorder' and not exists (
    select from pay.events v
    join pay.webhook_deliveries w
      on w.environment_id = v.environment_id and w.subject_id = v.subject_id
      and w.endpoint_id = p_delivery.endpoint_id and w.status <> 'pending'
    join pay.events o
      on o.environment_id = w.environment_id and o.id = w.event_id and o.sequence > v.sequence
    where v.environment_id = p_delivery.environment_id and v.id = p_delivery.event_id
  ));
end
$$;
