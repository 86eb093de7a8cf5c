-- Purpose: writes events, with their deliveries to the endpoints that subscribe to them, and
-- composes what they show.
--
-- The text of a payment or transfer is stored once, with its row. Each event stores the splices
-- that undo it in this text, so the text as of any event can be composed
-- (docs/decisions/0002-each-text-once.md).

-- The patterns in the list of an endpoint that match an event type.
create or replace function pay_internal.patterns_of(p_type text)
returns text[] language sql immutable parallel safe
as $$ select array[p_type, split_part(p_type, '.', 1) || '.*', '*'] $$;

-- The id of a delivery: p_stem, which the deliveries of an event share, and a last character for
-- the slot of the endpoint. For slots from 32 on, the last character of the stem is another one.
create or replace function pay_internal.delivery_id(p_stem text, p_slot smallint)
returns text language sql immutable parallel safe as $$
  select case when p_slot < 32 then p_stem
    else left(p_stem, -1) || translate(right(p_stem, 1),
      '0123456789abcdefghjkmnpqrstvwxyz', 'ghjkmnpqrstvwxyz0123456789abcdef')
  end || substr('0123456789abcdefghjkmnpqrstvwxyz', p_slot % 32 + 1, 1)
$$;

-- The text of a payment or transfer before an event with these splices: the places come last first,
-- each as "at,length,text". At 0 it is the whole text.
create or replace function pay_internal.undo_splices(p_text text, p_splices text[])
returns text language plpgsql immutable parallel safe as $$
declare
  -- Then a place counts bytes too, and PostgreSQL need not look for it: a fifth of the time. Splices
  -- come last first, so that no earlier one moves a place.
  v_is_ascii constant boolean := octet_length(p_text) = length(p_text);
  v_text text := p_text;
  v_splice text;
  v_at text;
  v_length text;
begin
  foreach v_splice in array p_splices loop
    v_at := split_part(v_splice, ',', 1);
    v_length := split_part(v_splice, ',', 2);
    v_splice := substr(v_splice, length(v_at) + length(v_length) + 3);
    v_text := case
      when v_at = '0' then v_splice
      when v_is_ascii then convert_from(overlay(
        convert_to(v_text, 'UTF8') placing convert_to(v_splice, 'UTF8')
        from v_at::integer for v_length::integer), 'UTF8')
      else overlay(v_text placing v_splice from v_at::integer for v_length::integer) end;
  end loop;
  return v_text;
end $$;

-- The text of a payment or transfer as of one of its events: the present text, taken back event by
-- event. An event whose sequence is a multiple of 32 has the whole text before it
-- (shared/domain/changes/resource_text.ts), so no more events are read. Retention deletes a
-- resource after its events, and an event before later ones.
create or replace function pay_internal.text_at(
  p_environment_id text, p_subject_id text, p_sequence integer
) returns text language plpgsql stable as $$
declare
  v_sequence integer;
  v_text text;
begin
  if starts_with(p_subject_id, 'pay_') then
    select t.body, t.sequence into v_text, v_sequence from pay.payments t
    where t.environment_id = p_environment_id and t.id = p_subject_id;
  else
    select t.body, t.sequence into v_text, v_sequence from pay.transfers t
    where t.environment_id = p_environment_id and t.id = p_subject_id;
  end if;
  return pay_internal.take_back(v_text, v_sequence, p_environment_id, p_subject_id, p_sequence);
end $$;

-- Takes the present text of a payment or transfer, which is at p_present, back to one of its events.
create or replace function pay_internal.take_back(
  p_text text, p_present integer, p_environment_id text, p_subject_id text, p_sequence integer
) returns text language plpgsql stable as $$
declare
  v_last constant integer := (p_sequence / 32 + 1) * 32;
  v_text text := p_text;
  v_before text[];
begin
  if p_present = p_sequence then return p_text; end if;
  for v_before in
    select v.before from pay.events v
    where v.environment_id = p_environment_id and v.subject_id = p_subject_id
      and v.sequence > p_sequence and v.sequence <= v_last
    order by v.environment_id desc, v.subject_id desc, v.sequence desc
  loop
    v_text := pay_internal.undo_splices(v_text, v_before);
  end loop;
  return v_text;
end $$;

-- The payload of an event as JSON text: the bytes that are signed and sent (contract §4).
create or replace function pay_internal.event_body(p_event pay.events)
returns text language plpgsql stable as $$
begin
  return coalesce(p_event.body, pay_internal.event_payload(
    p_event,
    coalesce(p_event.object, pay_internal.text_at(
      p_event.environment_id, p_event.subject_id, p_event.sequence)),
    (select e.livemode from pay.environments e where e.id = p_event.environment_id)));
end $$;

-- The payload of an event of a change, from its object.
create or replace function pay_internal.event_payload(
  p_event pay.events, p_object text, p_livemode boolean
) returns text language plpgsql stable as $$
begin
  return concat(
    '{"id":"', p_event.id, '","object":"event","type":"', p_event.type,
    '","api_version":"v1","created_at":"', pay_internal.wire_time(p_event.created_at),
    '","livemode":', p_livemode::text, ',"sequence":', p_event.sequence, ',"data":{"object":',
    p_object,
    '},"request":{"id":', coalesce(to_json(p_event.request_id)::text, 'null'),
    ',"idempotency_key":', coalesce(to_json(p_event.idempotency_key)::text, 'null'), '}}');
end $$;

-- Writes the events of the committed changes, and a delivery for each endpoint that subscribes to
-- them. p_lines: the document. Returns the number of deliveries.
create or replace function pay_internal.write_events(
  p_events pay_internal.event_row[], p_lines text[], p_callers pay_internal.caller[],
  out deliveries bigint
) language plpgsql volatile as $$
declare
  v_now timestamptz := pay_internal.server_time();
begin
  with
  event as materialized (
    select caller.environment_id, caller.ahead, e.*
    from unnest(p_events) e
    join unnest(p_callers) caller on caller.n = e.n
  ),
  event_made as (
    insert into pay.events
      (environment_id, id, type, subject_id, sequence, created_at, object, before, request_id,
        idempotency_key, traceparent)
    select environment_id, id, type, subject_id, sequence, created_at, p_lines[object],
      string_to_array(p_lines[before], E'\t'), request_id, idempotency_key, traceparent
    from event
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
  select count(*) into deliveries from delivery_made;
end $$;
