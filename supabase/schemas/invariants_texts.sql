-- Purpose: the invariant over the texts that events and stored responses are composed from
-- (invariants.sql, ADR 0002).

-- What is wrong with the texts of a payment or transfer, from the present one back to that of its
-- oldest event; null: nothing. Each must be JSON with the id of the resource, the sequence of the
-- event, and the status that its type names. An event of a refund or dispute names none, and its
-- own object must be JSON.
-- p_sequence, p_body: of the row
create or replace function pay_internal.find_broken_text(
  p_environment_id text, p_subject_id text, p_sequence integer, p_body text
) returns text language plpgsql stable as $$
declare
  v_text text := p_body;
  v_sequence integer := p_sequence;
  v_shown jsonb;
  v_status text;
  v_event record;
begin
  -- A null compares as wrong, so a missing member is found.
  v_shown := p_body::jsonb;
  if (v_shown ->> 'id', v_shown ->> 'sequence')
    is distinct from (p_subject_id, p_sequence::text)
  then
    return 'its text has another id or sequence';
  end if;
  -- All columns in this order, so that the planner uses the index of the sequence.
  for v_event in
    select v.sequence, v.type, v.object, v.before from pay.events v
    where v.environment_id = p_environment_id and v.subject_id = p_subject_id
      and v.sequence is not null
    order by v.environment_id desc, v.subject_id desc, v.sequence desc
  loop
    v_sequence := v_event.sequence;
    if v_sequence <> p_sequence then v_shown := v_text::jsonb; end if;
    if (v_shown ->> 'id', v_shown ->> 'sequence')
      is distinct from (p_subject_id, v_sequence::text)
    then
      return format('the text at sequence %s has another id or sequence', v_sequence);
    end if;
    v_status := case split_part(v_event.type, '.', 2)
      when 'created' then 'pending' when 'updated' then 'pending'
      else split_part(v_event.type, '.', 2) end;
    if v_event.object is not null then
      perform v_event.object::json;
    elsif v_shown ->> 'status' is distinct from v_status then
      return format('the text at sequence %s has another status', v_sequence);
    end if;
    -- The first event has none.
    if v_event.before is not null then
      v_text := pay_internal.undo_splices(v_text, v_event.before);
    end if;
  end loop;
  return null;
exception when data_exception then
  return format('the text at sequence %s is not JSON', v_sequence);
end $$;

-- The hourly check reads one text in 24, by the hour, and those that have changed in two hours.
create or replace view pay.invariant_texts with (security_invoker = true) as
select t.environment_id, t.id as subject_id, t.detail
from (
  select x.environment_id, x.id,
    pay_internal.find_broken_text(x.environment_id, x.id, x.sequence, x.body) as detail
  from (
    select environment_id, id, sequence, updated_at, body from pay.payments
    union all
    select environment_id, id, sequence, updated_at, body from pay.transfers
  ) x
  left join pay_internal.sandbox_times clock on clock.environment_id = x.environment_id
  where (right(x.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
      or x.environment_id in (select e.id from pay.environments e where e.livemode))
    and ((select coalesce(current_setting('pay.part_of_texts', true), '')) = ''
      or x.updated_at >= coalesce(clock.now, now()) - interval '2 hours'
      or abs(hashtext(x.id) % 24)
        = (select nullif(current_setting('pay.part_of_texts', true), '')::integer))
  offset 0
) t
where t.detail is not null;
comment on view pay.invariant_texts is
  'R2, R5: the text of a payment or transfer as of each of its events is JSON with its sequence';
