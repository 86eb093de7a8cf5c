-- Purpose: invariants over payments, transfers, refunds, disputes, events and stored responses
-- (invariants.sql).

create or replace view pay.invariant_sequences with (security_invoker = true) as
select x.environment_id, x.id as subject_id,
  'at ' || x.sequence || ', events ' || coalesce(e.first || ' to ' || e.last, 'none') || ', '
    || coalesce(e.events, 0) || ' of them' as detail
from (
  select environment_id, id, sequence, updated_at from pay.payments
  union all
  select environment_id, id, sequence, updated_at from pay.transfers
) x
left join (
  select environment_id, subject_id, min(sequence) as first, max(sequence) as last,
    count(*) as events
  from pay.events where sequence is not null group by environment_id, subject_id
) e on e.environment_id = x.environment_id and e.subject_id = x.id
left join pay_internal.sandbox_times clock on clock.environment_id = x.environment_id
where case
  when right(x.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    then e.first is distinct from 1 or e.last is distinct from x.sequence
      or e.events is distinct from x.sequence::bigint
  -- Retention may have deleted the first events of the resource, and all events if the resource has
  -- not changed for that long.
  when x.environment_id in (select v.id from pay.environments v where v.livemode)
    then coalesce(e.last <> x.sequence or e.events <> e.last - e.first + 1,
      x.updated_at >= now() - interval '29 days')
  else false
end;
comment on view pay.invariant_sequences is
  'R5: the events of a payment or transfer are numbered 1, 2, 3 … without a gap, to its sequence';

-- The amount that a payment had received as of one of its events.
create or replace function pay_internal.received_at(
  p_environment_id text, p_subject_id text, p_sequence integer
) returns bigint language plpgsql stable as $$
begin
  return substring(pay_internal.text_at(p_environment_id, p_subject_id, p_sequence)
    from '"amount_received":(\d+)')::bigint;
end $$;

create or replace view pay.invariant_moves with (security_invoker = true) as
select m.environment_id, m.subject_id,
  m.sequence || ': ' || coalesce(m.before, 'nothing') || ', then ' || m.type as detail
from (
  -- Events of refunds stand between those of their payment, in any order, and so do those of
  -- disputes, each of which has events of its own.
  select e.environment_id, e.subject_id, e.sequence, e.type, e.directly_before,
    lag(e.type) over same as before, lag(e.sequence) over same as sequence_before
  from (
    select v.environment_id, v.subject_id, v.sequence, v.type,
      case when v.type like 'dispute.%' then substr(v.object, 8, 29) end as dispute_id,
      lag(v.type) over (partition by v.environment_id, v.subject_id order by v.sequence)
        as directly_before
    from pay.events v
    left join pay_internal.sandbox_times clock on clock.environment_id = v.environment_id
    where v.sequence is not null
      and (right(v.subject_id, 26)
          >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
      or v.environment_id in (select n.id from pay.environments n where n.livemode))
      and (v.subject_id like 'pay\_%' or v.subject_id like 'tr\_%')
  ) e
  window same as (
    partition by e.environment_id, e.subject_id, split_part(e.type, '.', 1), e.dispute_id
    order by e.sequence
  )
) m
left join pay_internal.sandbox_times clock on clock.environment_id = m.environment_id
-- Retention may have deleted earlier events of an old resource.
where (m.directly_before is not null or m.sequence = 1
    or right(m.subject_id, 26) >= coalesce(clock.recent_suffix,
      (select pay_internal.recent_suffix())))
  and case
    -- A bank has booked a further transfer of the payer. "=" of a null would compute the amounts.
    when m.type is not distinct from m.before and m.type like 'payment.%'
      and pay_internal.received_at(m.environment_id, m.subject_id, m.sequence)
        > pay_internal.received_at(m.environment_id, m.subject_id, m.sequence_before) then false
    when m.type like 'refund.%' then m.directly_before is null
      or m.directly_before in ('payment.created',
        /* events without money */ 'payment.pending', 'payment.requires_action',
        'payment.processing', 'payment.authorized', 'payment.declined', 'payment.cancelled')
    -- The end of a dispute stands before that of the chargeback.
    when m.type = 'dispute.created' then m.directly_before is null or m.before is not null
    when m.type like 'dispute.%' then case
      when m.before is null
        then right(m.subject_id, 26)
          >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
      else m.before not in ('dispute.created', 'dispute.updated')
        -- A bank can give up a dispute that was lost before.
        and not (m.type = 'dispute.won' and m.before = 'dispute.lost')
      end
    when m.directly_before = 'dispute.created' then m.type <> 'payment.chargeback'
      or m.before not in ('payment.completed', 'payment.partially_refunded', 'payment.refunded',
        'payment.chargeback')
    -- Another dispute of the payment can still be open or lost.
    when m.directly_before = 'dispute.won' then m.before <> 'payment.chargeback'
      or m.type not in ('payment.completed', 'payment.partially_refunded', 'payment.refunded',
        'payment.chargeback')
    -- The refund had completed before.
    when m.directly_before = 'refund.failed'
      and m.type in ('payment.completed', 'payment.partially_refunded')
      then m.before not in ('payment.partially_refunded', 'payment.refunded')
    when m.before = 'payment.chargeback'
      and m.directly_before not in ('dispute.won', 'payment.chargeback') then true
    when m.directly_before = 'refund.completed'
      then m.type not in ('payment.partially_refunded', 'payment.refunded')
    when m.before is null and m.sequence > 1
      then right(m.subject_id, 26)
        >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    when m.type in ('payment.partially_refunded', 'payment.refunded')
      and m.before <> 'payment.chargeback' then true
    else coalesce(m.before, '') || '>' || split_part(m.type, '.', 2) not in (
      '>created',
      'transfer.created>updated', 'transfer.created>completed', 'transfer.created>failed',
      'transfer.created>cancelled', 'transfer.updated>updated', 'transfer.updated>completed',
      'transfer.updated>failed', 'transfer.updated>cancelled', 'transfer.completed>failed',
      -- At an address a further transfer has come, or one of several was undone. A bank can return
      -- a payment that is refunded.
      'payment.processing>processing', 'payment.refunded>failed',
      /* moves of payments */ 'payment.created>pending', 'payment.pending>processing',
      'payment.pending>completed', 'payment.pending>failed', 'payment.pending>cancelled',
      'payment.created>requires_action', 'payment.created>processing', 'payment.created>authorized',
      'payment.created>completed', 'payment.created>declined', 'payment.created>failed',
      'payment.created>cancelled', 'payment.requires_action>processing',
      'payment.requires_action>authorized', 'payment.requires_action>completed',
      'payment.requires_action>declined', 'payment.requires_action>failed',
      'payment.requires_action>cancelled', 'payment.processing>pending',
      'payment.processing>requires_action', 'payment.processing>authorized',
      'payment.processing>completed', 'payment.processing>declined', 'payment.processing>failed',
      'payment.processing>cancelled', 'payment.authorized>completed', 'payment.authorized>failed',
      'payment.authorized>cancelled', 'payment.completed>partially_refunded',
      'payment.completed>refunded', 'payment.completed>chargeback', 'payment.completed>failed',
      'payment.partially_refunded>partially_refunded', 'payment.partially_refunded>refunded',
      'payment.partially_refunded>chargeback', 'payment.partially_refunded>failed',
      'payment.chargeback>completed', 'payment.chargeback>partially_refunded'
    )
  end;
comment on view pay.invariant_moves is
  'R5: each event of a payment or transfer is a legal move after the event before it';

create or replace view pay.invariant_bodies with (security_invoker = true) as
select x.environment_id, x.id as subject_id, 'row, body and newest event differ' as detail
from (
  select environment_id, id, status, sequence, amount_minor, amount_refunded, amount_refunding,
    amount_disputed, amount_released, currency, updated_at, body, 'payment.' as kind
  from pay.payments
  union all
  select environment_id, id, status, sequence, amount_minor, null, null, null, null, currency,
    updated_at, body, 'transfer.'
  from pay.transfers
) x
left join pay.events e
  on e.environment_id = x.environment_id and e.subject_id = x.id and e.sequence = x.sequence
left join pay_internal.sandbox_times clock on clock.environment_id = x.environment_id
where (right(x.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    or x.environment_id in (select v.id from pay.environments v where v.livemode))
  and (
    case
      -- An event of a refund or dispute shows that, and not the payment.
      when e.type like 'refund.%' or e.type like 'dispute.%' then x.kind <> 'payment.'
      when e.id is not null then
        e.type <> x.kind || x.status
          and (x.status <> 'pending' or e.type not in (x.kind || 'created', x.kind || 'updated'))
          or e.object is not null
      -- Retention may have deleted the newest event of a resource that has not changed for so long.
      else right(x.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
        or x.updated_at >= coalesce(clock.now, now()) - interval '29 days'
    end
    -- Compared as text, which is four times as fast as JSON. JSON escapes the quotes inside of a
    -- string, so no string can contain these member names.
    or not starts_with(x.body, '{"id":"' || x.id || '",')
    or position('"status":"' || x.status || '",' in x.body) = 0
    or position('"sequence":' || x.sequence || ',' in x.body) = 0
    or position('"amount_minor":' || x.amount_minor || ',' in x.body) = 0
    or position('"amount_refunded":' || x.amount_refunded || ',' in x.body) = 0
    -- Null for a transfer, which has none of these three.
    or position('"amount_refunding":' || x.amount_refunding || ',' in x.body) = 0
    or position('"amount_disputed":' || x.amount_disputed || ',' in x.body) = 0
    or position('"amount_captured":' || x.amount_minor - x.amount_released || ',' in x.body) = 0
      and (x.status in (/* paid */ 'completed', 'partially_refunded', 'refunded', 'chargeback')
        or position('"amount_captured":0,' in x.body) = 0)
    or position('"currency":"' || x.currency || '",' in x.body) = 0
  );
comment on view pay.invariant_bodies is
  'R5: the body of a payment or transfer agrees with its row and its newest event';

create or replace view pay.invariant_refund_bodies with (security_invoker = true) as
select r.environment_id, r.id as subject_id, 'row, body and event differ' as detail
from pay.refunds r
left join pay_internal.sandbox_times clock on clock.environment_id = r.environment_id
where (right(r.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    or r.environment_id in (select v.id from pay.environments v where v.livemode))
  and (
    not starts_with(r.body, '{"id":"' || r.id || '",')
    or position('"payment_id":"' || r.payment_id || '",' in r.body) = 0
    or position('"amount_minor":' || r.amount_minor || ',' in r.body) = 0
    or position('"currency":"' || r.currency || '",' in r.body) = 0
    or position('"status":"' || r.status || '",' in r.body) = 0
    -- In a live environment retention may have deleted the event of the refund.
    or right(r.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
      and not exists (
      select from pay.events e
      where e.environment_id = r.environment_id and e.subject_id = r.payment_id
        and e.type = any (case r.status
          when 'pending' then '{refund.created,refund.updated}'::text[]
          else array['refund.' || r.status] end)
        and e.object = r.body
    )
  );
comment on view pay.invariant_refund_bodies is
  'R5: the body of a refund agrees with its row and its event';

create or replace view pay.invariant_orphans with (security_invoker = true) as
select x.environment_id, x.id as subject_id,
  'belongs to ' || x.owner_id || ', which does not exist' as detail
from (
  select environment_id, id, payment_id as owner_id from pay.refunds
  union all
  select environment_id, id, payment_id from pay.disputes
  union all
  select environment_id, transaction_id, subject_id from pay.ledger_movements
  union all
  select environment_id, id, subject_id from pay.events
  union all
  select environment_id, id, subject_id from pay.webhook_deliveries
) x
left join pay_internal.sandbox_times clock on clock.environment_id = x.environment_id
where (x.owner_id like 'pay\_%' or x.owner_id like 'tr\_%')
  and (right(x.owner_id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    or x.environment_id in (select e.id from pay.environments e where e.livemode))
  and not exists (
    select from pay.payments p where p.environment_id = x.environment_id and p.id = x.owner_id)
  and not exists (
    select from pay.transfers tr where tr.environment_id = x.environment_id and tr.id = x.owner_id);
comment on view pay.invariant_orphans is
  'R1, R9: every refund, dispute, movement, event and delivery belongs to an existing subject';

create or replace view pay.invariant_effects with (security_invoker = true) as
select e.environment_id, e.id as subject_id,
  e.type || ' of ' || e.subject_id || ': its request has no stored response' as detail
from (
  -- "offset 0" makes narrow rows before the join. A join of whole bodies would use temporary files.
  select environment_id, id, type, subject_id, request_id, idempotency_key
  from pay.events
  where sequence is not null
    -- A subquery, so that it is computed once and not for each row.
    and id >= (select pay_internal.id_floor('evt_', least(now(), min(clock.now))
      - interval '23 hours')
      from pay_internal.sandbox_times clock)
  offset 0
) e
left join pay_internal.sandbox_times clock on clock.environment_id = e.environment_id
where e.id >= coalesce(
    (select pay_internal.id_floor('evt_', clock.now - interval '23 hours')
      where clock.now is not null),
    (select pay_internal.id_floor('evt_', now() - interval '23 hours')))
  and e.idempotency_key is not null
  and not exists (
    select from (
      select environment_id, request_id, key,
        case when status = 102 then null when subject_id is not null then subject_id
          when starts_with(body, '{"id":"tr_') then substr(body, 8, 29)
          else 'pay_' || left(split_part(body, '"pay_', 2), 26) end as subject_id
      from pay.idempotency_keys
      offset 0
    ) k
    where k.environment_id = e.environment_id and k.request_id = e.request_id
      and k.key = e.idempotency_key
      -- A request that waits for a provider has no response yet.
      -- A payment that is the last one of its mandate ends the instrument.
      and (k.subject_id is null or k.subject_id = e.subject_id or e.subject_id like 'ins\_%')
  );
comment on view pay.invariant_effects is
  'R2, R3: every event of a keyed request belongs to a request whose response is stored';

-- The reverse of invariant_effects: from the stored responses to the resources. subject_id is the
-- id of the request, because an idempotency key is the merchant's own text.
create or replace view pay.invariant_stored_responses with (security_invoker = true) as
select k.environment_id, k.request_id as subject_id,
  'returned ' || k.status || ' with ' || coalesce(k.id || case
    when x.id is null then ', which does not exist' else ', which never had this state' end,
    'an unknown body') as detail
from (
  select o.*, v.livemode,
    case when o.sequence is not null then o.subject_id
      -- A deletion names the payment or transfer whose bank details it has deleted.
      when o.object ~ '^\{"id":"[^"]*","object":"bank_details",' then null
      when starts_with(o.object, '{"id":"pay_') or starts_with(o.object, '{"id":"tr_')
      or starts_with(o.object, '{"id":"re_') or starts_with(o.object, '{"id":"dp_')
      then split_part(o.object, '"', 4) end as id
  from (
    select a.environment_id, a.request_id, a.status, a.body, a.subject_id, a.sequence,
      coalesce(starts_with(a.body, '{"error":'), false) as is_error,
      case when not starts_with(a.body, '{"error":') then a.body
        -- An error ends with the payment that was stored, if there is one.
        else left(substring(a.body from '"payment":(\{.*)'), -2) end as object
    from pay.idempotency_keys a
    left join pay_internal.sandbox_times clock on clock.environment_id = a.environment_id
    where a.created_at > coalesce(clock.now, now()) - interval '23 hours'
  ) o
  join pay.environments v on v.id = o.environment_id
  offset 0
) k
left join (
  select environment_id, id, id as subject_id, sequence, body from pay.payments
  union all
  select environment_id, id, id, sequence, body from pay.transfers
  union all
  -- The events of a refund or dispute belong to its payment.
  select environment_id, id, payment_id, null, body from pay.refunds
  union all
  select environment_id, id, payment_id, null, body from pay.disputes
) x on x.environment_id = k.environment_id and x.id = k.id
left join pay_internal.sandbox_times clock on clock.environment_id = k.environment_id
where case
  when k.status = 102 then k.body <> ''
  when k.is_error and not exists (
    select from pay_internal.error_catalogue() e
    where e.status = k.status
      and starts_with(k.body, '{"error":{"type":"' || e.type || '","code":"' || e.code || '",')
  ) then true
  when k.id is null then case
    when k.is_error then false
    when k.status in (200, 201)
      then k.body !~
        '^\{("id" ?: ?"(whe|whd|key|env|flt|ins|chk)_[0-9a-z]{26}"|"object":"(sandbox_reset|clock|customer)"),?'
      and k.body !~ '^\{"id":"(pay|tr)_[0-9a-z]{26}","object":"bank_details",'
    when k.status = 202 then k.body !~ '^\{"object" ?: ?"recovery",'
    else true
  end
  when right(k.id, 26) < coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    and not k.livemode then false
  when not k.is_error and k.status not in (200, 201) then true
  when x.id is null then true
  -- The response is the text of the resource at this sequence (pay_internal.text_at).
  when k.sequence is not null then k.sequence <> x.sequence and not exists (
    select from pay.events e
    where e.environment_id = k.environment_id and e.subject_id = k.id and e.sequence = k.sequence
  )
  else x.body <> k.object and not exists (
    select from pay.events e
    where e.environment_id = k.environment_id and e.subject_id = x.subject_id
      and (coalesce(e.object, pay_internal.text_at(e.environment_id, e.subject_id, e.sequence))
          = k.object
        -- An event of a refund or dispute shows that, and not the payment.
        or (e.type like 'refund.%' or e.type like 'dispute.%') and x.id = x.subject_id
          and position('"sequence":' || e.sequence || ',' in k.object) > 0)
  )
end;
comment on view pay.invariant_stored_responses is
  'R1, R2: the resource in each stored response exists, and had the state that the response shows';

create or replace view pay.invariant_disputes with (security_invoker = true) as
select p.environment_id, p.id as subject_id,
  p.status || ', amount_disputed ' || p.amount_disputed || ': ' || coalesce(d.disputes, 0)
    || ' open or lost disputes of ' || coalesce(d.amount_minor, 0) as detail
from pay.payments p
left join (
  select environment_id, payment_id, count(*) as disputes, sum(amount_minor) as amount_minor
  from pay.disputes where status <> 'won' group by environment_id, payment_id
) d on d.environment_id = p.environment_id and d.payment_id = p.id
left join pay_internal.sandbox_times clock on clock.environment_id = p.environment_id
where (right(p.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    or p.environment_id in (select e.id from pay.environments e where e.livemode))
  and (p.status = 'chargeback' or d.payment_id is not null)
  and (p.status <> 'chargeback' or coalesce(d.disputes, 0) = 0
    -- The simulated provider opens one at a time.
    or d.disputes > 1
      and p.environment_id not in (select e.id from pay.environments e where e.livemode)
    or coalesce(d.amount_minor, 0) <> p.amount_disputed);
comment on view pay.invariant_disputes is
  'R5: a payment that is charged back has open or lost disputes, whose sum is its disputed amount';

create or replace view pay.invariant_dispute_bodies with (security_invoker = true) as
select dispute.environment_id, dispute.id as subject_id, 'row, body and event differ' as detail
from pay.disputes dispute
left join pay_internal.sandbox_times clock on clock.environment_id = dispute.environment_id
where (right(dispute.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    or dispute.environment_id in (select v.id from pay.environments v where v.livemode))
  and (
    not starts_with(dispute.body, '{"id":"' || dispute.id || '",')
    or position('"payment_id":"' || dispute.payment_id || '",' in dispute.body) = 0
    or position('"amount_minor":' || dispute.amount_minor || ',' in dispute.body) = 0
    or position('"currency":"' || dispute.currency || '",' in dispute.body) = 0
    or position('"status":"' || dispute.status || '",' in dispute.body) = 0
    or (dispute.status in ('won', 'lost')) <> (position('"closed_at":null' in dispute.body) = 0)
    -- In a live environment retention may have deleted the event of the dispute.
    or right(dispute.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
      and not exists (
      select from pay.events e
      where e.environment_id = dispute.environment_id and e.subject_id = dispute.payment_id
        and e.type = any (case dispute.status
          when 'needs_response' then '{dispute.created,dispute.updated}'::text[]
          when 'under_review' then '{dispute.updated}'
          else array['dispute.' || dispute.status] end)
        and e.object = dispute.body
    )
  );
comment on view pay.invariant_dispute_bodies is
  'R5: the body of a dispute agrees with its row and its event';

create or replace view pay.invariant_checkouts with (security_invoker = true) as
select t.environment_id, t.id as subject_id,
  t.payments_count || ' payments of ' || coalesce(p.successful, 0) || ' successful ones' as detail
from pay.checkouts t
left join (
  select environment_id, checkout_id, count(*) filter (where is_counted) as successful
  from pay.payments where checkout_id is not null group by environment_id, checkout_id
) p on p.environment_id = t.environment_id and p.checkout_id = t.id
left join pay_internal.sandbox_times clock on clock.environment_id = t.environment_id
where t.payments_count < coalesce(p.successful, 0)
  -- Retention may have deleted payments of an older link.
  or t.payments_count > coalesce(p.successful, 0)
    and t.created_at > coalesce(clock.now, now()) - interval '29 days'
union all
select p.environment_id, p.id, p.status || ', and is_counted is ' || p.is_counted
from pay.payments p
where case
  when p.checkout_id is null
    or p.status in (/* waits for money or an authentication */ 'pending', 'requires_action')
    then p.is_counted
  when p.status in (/* waits for its result */ 'processing') then false
  when p.status in (/* unpaid */ 'declined', 'failed', 'cancelled') then false
  else not p.is_counted end;
comment on view pay.invariant_checkouts is
  'R5: a checkout counts the payments that were successful, each once';

create or replace view pay.invariant_instruments with (security_invoker = true) as
select p.environment_id, p.id as subject_id, 'a payment of 0 with movements or refunds' as detail
from pay.payments p
where p.amount_minor = 0 and (
  exists (select from pay.ledger_movements m
    where m.environment_id = p.environment_id and m.subject_id = p.id)
  or exists (select from pay.refunds r
    where r.environment_id = p.environment_id and r.payment_id = p.id))
union all
select t.environment_id, t.id, t.status || ', but ' || p.id || ' is ' || p.status
from pay.instruments t
join pay.payments p on p.environment_id = t.environment_id and p.id = t.payment_id
-- An instrument stays active when its payment fails or is cancelled later.
where t.is_kept and not case
  when p.status in (/* waits for money or an authentication */ 'pending', 'requires_action')
    or p.status in (/* waits for its result */ 'processing')
      and not pay_internal.rail_collects(p.method_kind)
    then t.status = 'pending' or t.ended_reason in ('revoked', 'account_closed')
  when p.status = 'declined' and not pay_internal.rail_collects(p.method_kind)
    then t.status = 'failed'
  when p.status in (/* unpaid */ 'declined', 'failed', 'cancelled') then t.status <> 'pending'
  else t.status in ('active', 'ended')
end
union all
select t.environment_id, t.id, t.status || ' with ' || coalesce(e.events, 0) || ' events of its end'
from pay.instruments t
left join (
  select environment_id, subject_id, count(*) as events
  from pay.events where type = 'instrument.ended' group by environment_id, subject_id
) e on e.environment_id = t.environment_id and e.subject_id = t.id
left join pay_internal.sandbox_times clock on clock.environment_id = t.environment_id
where case when t.status <> 'ended' then e.events > 0
  when t.ended_at > coalesce(clock.now, now()) - interval '29 days'
    then e.events is distinct from 1
  else e.events > 1 end
union all
select t.environment_id, min(t.id), count(*) || ' instruments of a mandate'
from pay.instruments t where t.mandate_id is not null and t.status <> 'failed'
group by t.environment_id, upper(t.mandate_id) having count(*) > 1;
comment on view pay.invariant_instruments is
  'R5: an instrument agrees with the payment that saved it, ends with one event, and has its mandate alone; a payment of 0 moves no money';
