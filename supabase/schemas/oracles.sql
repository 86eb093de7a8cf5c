-- Purpose: the books check themselves. Each view pay.oracle_* lists what breaks one promise
-- (docs/reliability.md) and is empty while it holds, at any moment and whatever goes on: a view is one
-- statement and so one snapshot.
--
-- Columns of each: environment_id, subject_id, detail.
-- Retention takes rows kind by kind, so they look at what is younger than 29 of its 30 days; of a
-- live environment, whose money is never purged, at all of it. Events go there too: what is older is
-- judged by the events that are left. What no view can tell is in docs/reliability.md.
-- They read whole tables: for an hourly job or an operator, not for a request.

-- What the time-sorted part of an id begins after while retention has not touched what belongs to it.
create or replace function pay.recent_suffix()
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$ select pay.id_floor('', now() - interval '29 days') $$;

-- Movements of each subject by account: credits less debits.
create or replace view pay.subject_accounts with (security_invoker = true) as
select m.environment_id, m.subject_id, m.currency,
  coalesce(sum(s.amount) filter (where s.account = 'available'), 0) as available,
  coalesce(sum(s.amount) filter (where s.account = 'processor'), 0) as processor,
  coalesce(sum(s.amount) filter (where s.account = 'chargebacks'), 0) as chargebacks,
  coalesce(sum(s.amount) filter (where s.account = 'in_transit'), 0) as in_transit,
  coalesce(sum(s.amount) filter (where s.account = 'external'), 0) as external
from pay.ledger_movements m
cross join lateral (
  values (m.debit_account, -m.amount_minor), (m.credit_account, m.amount_minor)
) as s (account, amount)
group by m.environment_id, m.subject_id, m.currency;
comment on view pay.subject_accounts is 'Internal: the sums of each account over the movements of a subject.';

create or replace view pay.oracle_ledger_legs with (security_invoker = true) as
select m.environment_id, m.transaction_id as subject_id,
  count(*) || ' legs up to ' || max(m.leg) || ', of ' || min(m.subject_id)
    || case when min(m.subject_id) <> max(m.subject_id) then ' and ' || max(m.subject_id) else '' end
    as detail
from pay.ledger_movements m
group by m.environment_id, m.transaction_id
having count(*) <> max(m.leg) + 1 or min(m.subject_id) <> max(m.subject_id);
comment on view pay.oracle_ledger_legs is
  'R4: the legs of a ledger transaction are numbered from 0 without a gap, and belong to one subject';

-- Where retention has deleted movements, the total is at least the sum of those that are left.
create or replace view pay.oracle_ledger_totals with (security_invoker = true) as
select x.environment_id, x.currency || ' ' || x.debit_account || ' to ' || x.credit_account as subject_id,
  'total off by ' || sum(x.amount_minor) as detail
from (
  select t.environment_id, t.currency, t.debit_account, t.credit_account, t.amount_minor
  from pay.ledger_totals t
  union all
  select m.environment_id, m.currency, m.debit_account, m.credit_account, -m.amount_minor
  from pay.ledger_movements m
) x
group by x.environment_id, x.currency, x.debit_account, x.credit_account
having sum(x.amount_minor) < 0 or sum(x.amount_minor) > 0 and x.environment_id in (
  select v.id from pay.environments v where v.livemode or v.created_at > now() - interval '29 days'
);
comment on view pay.oracle_ledger_totals is
  'R4: the total of two accounts is the sum of the movements between them';

create or replace view pay.oracle_payment_money with (security_invoker = true) as
select p.environment_id, p.id as subject_id,
  p.status || ': available ' || a.available || ', charged back ' || a.chargebacks || ', processor '
    || a.processor as detail
from pay.payments p
left join pay.subject_accounts s
  on s.environment_id = p.environment_id and s.subject_id = p.id and s.currency = p.currency
cross join lateral (
  select coalesce(s.available, 0) as available, coalesce(s.processor, 0) as processor,
    coalesce(s.chargebacks, 0) as chargebacks
) a
cross join lateral (
  select
    case when p.status in ('completed', 'partially_refunded')
      then p.amount_minor - p.amount_refunded else 0 end as available,
    case p.status when 'chargeback' then p.amount_minor - p.amount_refunded else 0 end as chargebacks
) must
where (right(p.id, 26) >= (select pay.recent_suffix()) or p.environment_id in (select v.id from pay.environments v where v.livemode))
  and (a.available <> must.available or a.chargebacks <> must.chargebacks
    or -a.processor <> must.available + must.chargebacks);
comment on view pay.oracle_payment_money is
  'R4: the money of a payment is where its status says';

create or replace view pay.oracle_transfer_money with (security_invoker = true) as
select t.environment_id, t.id as subject_id,
  t.status || ': taken ' || a.taken || ', in transit ' || a.in_transit || ', paid out ' || a.external as detail
from pay.transfers t
left join pay.subject_accounts s
  on s.environment_id = t.environment_id and s.subject_id = t.id and s.currency = t.currency
cross join lateral (
  select -coalesce(s.available, 0) as taken, coalesce(s.in_transit, 0) as in_transit,
    coalesce(s.external, 0) as external
) a
where (right(t.id, 26) >= (select pay.recent_suffix()) or t.environment_id in (select v.id from pay.environments v where v.livemode))
  and (
    a.taken <> case when t.status in ('pending', 'completed') then t.amount_minor else 0 end
    or a.in_transit <> case t.status when 'pending' then t.amount_minor else 0 end
    or a.external <> case t.status when 'completed' then t.amount_minor else 0 end
  );
comment on view pay.oracle_transfer_money is
  'R4: the money of a transfer is where its status says';

create or replace view pay.oracle_refunds with (security_invoker = true) as
select p.environment_id, p.id as subject_id,
  'refunds ' || coalesce(r.total, 0) || ', amount_refunded ' || p.amount_refunded || ' of '
    || p.amount_minor as detail
from pay.payments p
left join (
  select environment_id, payment_id, sum(amount_minor) as total
  from pay.refunds group by environment_id, payment_id
) r on r.environment_id = p.environment_id and r.payment_id = p.id
where (right(p.id, 26) >= (select pay.recent_suffix()) or p.environment_id in (select v.id from pay.environments v where v.livemode))
  and (coalesce(r.total, 0) <> p.amount_refunded or p.amount_refunded > p.amount_minor);
comment on view pay.oracle_refunds is
  'R5: the refunds of a payment are what it says, and no more than its amount';

create or replace view pay.oracle_sequences with (security_invoker = true) as
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
where case
  when right(x.id, 26) >= (select pay.recent_suffix())
    then e.first is distinct from 1 or e.last is distinct from x.sequence
      or e.events is distinct from x.sequence::bigint
  -- Its first events may have been purged, and all of them once it has stood still for so long.
  when x.environment_id in (select v.id from pay.environments v where v.livemode)
    then coalesce(e.last <> x.sequence or e.events <> e.last - e.first + 1,
      x.updated_at >= now() - interval '29 days')
  else false
end;
comment on view pay.oracle_sequences is
  'R5: the events of a payment or transfer are numbered 1, 2, 3 … without a gap, up to where it stands';

create or replace view pay.oracle_moves with (security_invoker = true) as
select m.environment_id, m.subject_id,
  m.sequence || ': ' || coalesce(m.before, 'nothing') || ', then ' || m.type as detail
from (
  select e.environment_id, e.subject_id, e.sequence, e.type,
    lag(e.type) over (partition by e.environment_id, e.subject_id order by e.sequence) as before
  from pay.events e
  where e.sequence is not null
    and (right(e.subject_id, 26) >= (select pay.recent_suffix()) or e.environment_id in (select v.id from pay.environments v where v.livemode))
    and (e.subject_id like 'pay\_%' or e.subject_id like 'tr\_%')
) m
-- Of an old one the events before may have been purged.
where (m.before is not null or m.sequence = 1 or right(m.subject_id, 26) >= (select pay.recent_suffix()))
  and not exists (
  select from (values
    (null, '{payment.created,transfer.created}'::text[]),
    ('payment.created', '{payment.requires_action,payment.processing,payment.completed,payment.declined,payment.failed,payment.cancelled}'),
    ('payment.requires_action', '{payment.completed,payment.declined,payment.failed,payment.cancelled}'),
    ('payment.processing', '{payment.completed,payment.declined,payment.failed}'),
    ('payment.completed', '{refund.completed,payment.chargeback,payment.failed}'),
    ('payment.partially_refunded', '{refund.completed,payment.chargeback}'),
    ('refund.completed', '{payment.partially_refunded,payment.refunded}'),
    ('transfer.created', '{transfer.completed,transfer.failed,transfer.cancelled}')
  ) as legal (before, types)
  where legal.before is not distinct from m.before and m.type = any (legal.types)
);
comment on view pay.oracle_moves is
  'R5: a payment or transfer has made legal moves only';

create or replace view pay.oracle_bodies with (security_invoker = true) as
select x.environment_id, x.id as subject_id, 'row, body and newest event differ' as detail
from (
  select environment_id, id, status, sequence, amount_minor, amount_refunded, currency, updated_at,
    body, 'payment.' as kind
  from pay.payments
  union all
  select environment_id, id, status, sequence, amount_minor, null, currency, updated_at, body,
    'transfer.'
  from pay.transfers
) x
left join pay.events e
  on e.environment_id = x.environment_id and e.subject_id = x.id and e.sequence = x.sequence
where (right(x.id, 26) >= (select pay.recent_suffix()) or x.environment_id in (select v.id from pay.environments v where v.livemode))
  and (
    case
      when e.id is not null then
        e.type <> x.kind || case x.status when 'pending' then 'created' else x.status end
          or position('"data":{"object":' || x.body || '}' in e.body) = 0
      -- The newest event of what has stood still for so long may have been purged.
      else right(x.id, 26) >= (select pay.recent_suffix())
        or x.updated_at >= now() - interval '29 days'
    end
    -- Text, not JSON: four times as fast, and no quoted text has a name and a colon like these.
    or not starts_with(x.body, '{"id":"' || x.id || '",')
    or position('"status":"' || x.status || '",' in x.body) = 0
    or position('"sequence":' || x.sequence || ',' in x.body) = 0
    or position('"amount_minor":' || x.amount_minor || ',' in x.body) = 0
    or position('"amount_refunded":' || x.amount_refunded || ',' in x.body) = 0
    or position('"currency":"' || x.currency || '",' in x.body) = 0
  );
comment on view pay.oracle_bodies is
  'R5: what is answered of a payment or transfer is what its row and its newest event say';

create or replace view pay.oracle_refund_bodies with (security_invoker = true) as
select r.environment_id, r.id as subject_id, 'row, body and event differ' as detail
from pay.refunds r
where (right(r.id, 26) >= (select pay.recent_suffix()) or r.environment_id in (select v.id from pay.environments v where v.livemode))
  and (
    not starts_with(r.body, '{"id":"' || r.id || '",')
    or position('"payment_id":"' || r.payment_id || '",' in r.body) = 0
    or position('"amount_minor":' || r.amount_minor || ',' in r.body) = 0
    or position('"currency":"' || r.currency || '",' in r.body) = 0
    -- Its event may have been purged, in a live environment.
    or right(r.id, 26) >= (select pay.recent_suffix()) and not exists (
      select from pay.events e
      where e.environment_id = r.environment_id and e.subject_id = r.payment_id
        and e.type = 'refund.completed'
        and position('"data":{"object":' || r.body || '}' in e.body) > 0
    )
  );
comment on view pay.oracle_refund_bodies is
  'R5: what is answered of a refund is what its row and its event say';

create or replace view pay.oracle_orphans with (security_invoker = true) as
select x.environment_id, x.id as subject_id, 'belongs to ' || x.owner_id || ', which is not there' as detail
from (
  select environment_id, id, payment_id as owner_id from pay.refunds
  union all
  select environment_id, transaction_id, subject_id from pay.ledger_movements
  union all
  select environment_id, id, subject_id from pay.events
  union all
  select environment_id, id, subject_id from pay.webhook_deliveries
) x
where (x.owner_id like 'pay\_%' or x.owner_id like 'tr\_%')
  and (right(x.owner_id, 26) >= (select pay.recent_suffix()) or x.environment_id in (select v.id from pay.environments v where v.livemode))
  and not exists (
    select from pay.payments p where p.environment_id = x.environment_id and p.id = x.owner_id)
  and not exists (
    select from pay.transfers t where t.environment_id = x.environment_id and t.id = x.owner_id);
comment on view pay.oracle_orphans is
  'R1, R9: a payment or transfer is there with all that belongs to it, or gone with all of it';

create or replace view pay.oracle_effects with (security_invoker = true) as
select e.environment_id, e.id as subject_id,
  e.type || ' of ' || e.subject_id || ': its request is not the one whose answer is kept' as detail
from (
  -- Narrow rows first ("offset 0"): a join of whole bodies would go through files.
  select environment_id, id, type, subject_id,
    -- An event ends with its request.
    split_part(body, '"request":{"id":"', -1) as request
  from pay.events
  where sequence is not null
    -- Below a select: once, not for each row.
    and id >= (select pay.id_floor('evt_', now() - interval '23 hours'))
  offset 0
) e
where right(e.request, 24) <> '"idempotency_key":null}}'
  and not exists (
    select from (
      select environment_id, request_id || '","idempotency_key":' || to_json(key) || '}}' as request,
        case when starts_with(body, '{"id":"tr_') then substr(body, 8, 29)
          else 'pay_' || left(split_part(body, '"pay_', 2), 26) end as subject_id
      from pay.idempotency_keys
      offset 0
    ) k
    where k.environment_id = e.environment_id and k.request = e.request
      and k.subject_id = e.subject_id
  );
comment on view pay.oracle_effects is
  'R2, R3: whatever a keyed request has done, its answer is kept, so that no twin can do it again';

-- The other way round: from what was answered to what is there. subject_id is the request's id, since
-- a key is the merchant's own text.
create or replace view pay.oracle_kept_answers with (security_invoker = true) as
select k.environment_id, k.request_id as subject_id,
  'answered ' || k.status || ' with ' || coalesce(k.id || case
    when x.id is null then ', which is not there' else ', which has never been so' end,
    'what nobody answers') as detail
from (
  select o.*, v.livemode,
    case when starts_with(o.object, '{"id":"pay_') or starts_with(o.object, '{"id":"tr_')
      or starts_with(o.object, '{"id":"re_') then split_part(o.object, '"', 4) end as id
  from (
    select a.environment_id, a.request_id, a.status, a.body,
      case when a.status <> 402 then a.body
        -- A refusal ends with the payment that was stored.
        else left(substr(a.body, position('"payment":{' in a.body) + 10), -2) end as object
    from pay.idempotency_keys a
    where a.created_at > now() - interval '23 hours'
  ) o
  join pay.environments v on v.id = o.environment_id
  offset 0
) k
left join (
  select environment_id, id, body from pay.payments
  union all
  select environment_id, id, body from pay.transfers
  union all
  select environment_id, id, body from pay.refunds
) x on x.environment_id = k.environment_id and x.id = k.id
where case
  when k.status = 102 then k.body <> ''
  when k.id is null then case
    when k.status in (200, 201)
      then k.body !~ '^\{("id":"(whe|whd|key)_[0-9a-z]{26}",|"object":"sandbox_reset",)'
    when k.status in (402, 409) then k.body not like '{"error":{"type":"%'
    else true
  end
  when right(k.id, 26) < (select pay.recent_suffix()) and not k.livemode then false
  when k.status not in (200, 201, 402) then true
  when x.id is null then true
  else x.body <> k.object and not exists (
    select from pay.events e
    where e.environment_id = k.environment_id and e.subject_id = k.id
      and position('"data":{"object":' || k.object || '}' in e.body) > 0
  )
end;
comment on view pay.oracle_kept_answers is
  'R1, R2: what the answer to a keyed request tells of is there, and was as it tells';

create or replace view pay.oracle_outbox with (security_invoker = true) as
select e.environment_id, e.id as subject_id, e.type || ' has no delivery to ' || t.id as detail
from pay.events e
join pay.webhook_endpoints t
  on t.environment_id = e.environment_id
  and t.events && pay.patterns_of(e.type)
  -- Never changed, so it has been enabled all along; the margin is for requests that were under way.
  and t.revision = 1
  and e.created_at > t.created_at + interval '10 seconds'
where e.sequence is not null
  and right(e.id, 26) >= (select pay.recent_suffix())
  and not exists (
    select from pay.webhook_deliveries d
    where d.environment_id = e.environment_id and d.event_id = e.id and d.endpoint_id = t.id
      -- Deliveries are found by what their event is of.
      and d.subject_id = e.subject_id
  );
comment on view pay.oracle_outbox is
  'R6: every event is on its way to, or was delivered to, every endpoint that wanted it';

create or replace view pay.oracle_endless_deliveries with (security_invoker = true) as
select d.environment_id, d.id as subject_id,
  'next looked at ' || greatest(d.next_attempt_at, d.leased_until) as detail
from pay.webhook_deliveries d
where d.status = 'pending'
  -- The longest wait is 24 hours and a fifth, twice that if the receiver asks for it; a lease lasts seconds.
  and (d.next_attempt_at > now() + interval '58 hours' or d.leased_until > now() + interval '1 hour')
union all
select d.environment_id, d.id, 'due since ' || d.next_attempt_at
from pay.webhook_deliveries d
where d.status = 'pending'
  and greatest(d.next_attempt_at, d.leased_until) < now() - interval '1 hour'
  -- Behind a slow receiver there is a queue, which moves: not one attempt in this hour or the last.
  and (d.environment_id, d.endpoint_id) not in (
    select o.environment_id, o.endpoint_id
    from pay.webhook_deliveries o
    cross join (
      select '%"at":"' || to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:') || '%' as this_hour,
        '%"at":"' || to_char((now() - interval '1 hour') at time zone 'UTC', 'YYYY-MM-DD"T"HH24:')
          || '%' as last_hour
    ) h
    where o.leased_until > now() - interval '1 hour'
      or o.attempts like h.this_hour or o.attempts like h.last_hour
  );
comment on view pay.oracle_endless_deliveries is
  'R6: no delivery waits for ever';

create or replace view pay.oracle_delivery_order with (security_invoker = true) as
select d.environment_id, d.id as subject_id, 'came before ' || d.before as detail
from (
  select w.environment_id, w.id, w.attempt_count, a.first_at,
    lag(w.id) over earlier as before,
    lag(w.status) over earlier as status_before,
    lag(w.attempt_count) over earlier as attempt_count_before,
    lag(a.first_at) over earlier as first_at_before
  from pay.webhook_deliveries w
  -- Never changed, so nothing was called off and sent later on demand.
  join pay.webhook_endpoints t
    on t.environment_id = w.environment_id and t.id = w.endpoint_id and t.revision = 1
  cross join lateral (
    select (('[' || w.attempts || ']')::json -> 0 ->> 'at')::timestamptz as first_at
  ) a
  where w.sequence is not null
  window earlier as (partition by w.environment_id, w.endpoint_id, w.subject_id order by w.sequence)
) d
-- Each time is that of the isolate that made the attempt: their clocks differ a little.
where d.first_at_before > d.first_at + interval '1 second'
  or (d.status_before = 'pending' and d.attempt_count_before = 0 and d.attempt_count > 0);
comment on view pay.oracle_delivery_order is
  'R7: per endpoint and payment, the first attempts come in the order of sequence';

-- The rows of one oracle. What a reset has left behind is being taken apart and is not looked at.
-- Internal.
create or replace function pay.find_breaches(p_oracle text)
returns table (environment_id text, subject_id text, detail text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query execute format(
    'select f.environment_id, f.subject_id, f.detail from pay.%I f
     where f.environment_id not in (
       select e.id from pay.environments e where e.retired_at is not null
     )', p_oracle);
end
$$;

-- The oracles, and the promise that each checks. Internal.
create or replace function pay.list_oracles()
returns table (oracle text, promise text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select c.relname::text, obj_description(c.oid, 'pg_class') from pg_class c
  where c.relnamespace = 'pay'::regnamespace and c.relkind = 'v' and c.relname like 'oracle\_%'
$$;

-- Operator: runs every oracle. findings: how many; examples: some of them.
create or replace function pay.check_books()
returns table (oracle text, promise text, findings bigint, examples text[])
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  perform set_config('pay.worker', 'on', true);
  for oracle, promise in select o.oracle, o.promise from pay.list_oracles() o order by 2, 1 loop
    select count(*), coalesce((array_agg(concat(f.environment_id, ' ', f.subject_id, ': ', f.detail)))[1:3], '{}')
    into findings, examples
    from pay.find_breaches(oracle) f;
    return next;
  end loop;
end
$$;

-- Operator: runs every oracle and notes what is new; how many findings there are now. For the hourly
-- job, whose log gets the warning.
create or replace function pay.note_findings()
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_oracle text;
  v_found bigint;
  v_total bigint := 0;
begin
  perform set_config('pay.worker', 'on', true);
  for v_oracle in select o.oracle from pay.list_oracles() o order by 1 loop
    with found as materialized (select * from pay.find_breaches(v_oracle)),
    noted as (
      insert into pay.oracle_findings (environment_id, oracle, subject_id, detail)
      select f.environment_id, v_oracle, f.subject_id, min(f.detail) from found f
      group by f.environment_id, f.subject_id
      on conflict on constraint oracle_findings_pkey do nothing
    )
    select count(*) into v_found from found;
    v_total := v_total + v_found;
    if v_found > 0 then
      raise warning '% findings of pay.%', v_found, v_oracle
        using hint = 'select * from pay.check_books()';
    end if;
  end loop;
  insert into pay.settings (name, value)
  values ('books_checked_at', extract(epoch from now())::text)
  on conflict on constraint settings_pkey do update set value = excluded.value;
  return v_total;
end
$$;

-- Operator: forgets what was noted, once it is understood; how many. What is still so is noted again.
create or replace function pay.forget_findings()
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_forgotten bigint;
begin
  perform set_config('pay.worker', 'on', true);
  delete from pay.oracle_findings;
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end
$$;

grant execute on function pay.check_books() to pay_operator;
grant execute on function pay.note_findings() to pay_operator;
grant execute on function pay.forget_findings() to pay_operator;
