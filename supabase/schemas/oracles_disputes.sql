-- Purpose: oracles over disputes (oracles.sql).

create or replace view pay.oracle_disputes with (security_invoker = true) as
select p.environment_id, p.id as subject_id,
  p.status || ', amount_disputed ' || p.amount_disputed || ': ' || coalesce(d.disputes, 0)
    || ' open or lost disputes of ' || coalesce(d.amount_minor, 0) as detail
from pay.payments p
left join (
  select environment_id, payment_id, count(*) as disputes, sum(amount_minor) as amount_minor
  from pay.disputes where status <> 'won' group by environment_id, payment_id
) d on d.environment_id = p.environment_id and d.payment_id = p.id
left join pay_internal.sandbox_times c on c.environment_id = p.environment_id
where (right(p.id, 26) >= coalesce(c.recent_suffix, (select pay_internal.recent_suffix()))
    or p.environment_id in (select v.id from pay.environments v where v.livemode))
  and (p.status = 'chargeback' or d.payment_id is not null)
  and (p.status <> 'chargeback' or coalesce(d.disputes, 0) = 0
    -- The simulated provider opens one at a time.
    or d.disputes > 1
      and p.environment_id not in (select v.id from pay.environments v where v.livemode)
    or coalesce(d.amount_minor, 0) <> p.amount_disputed);
comment on view pay.oracle_disputes is
  'R5: a payment that is charged back has open or lost disputes, whose sum is its disputed amount';

create or replace view pay.oracle_dispute_bodies with (security_invoker = true) as
select d.environment_id, d.id as subject_id, 'row, body and event differ' as detail
from pay.disputes d
left join pay_internal.sandbox_times c on c.environment_id = d.environment_id
where (right(d.id, 26) >= coalesce(c.recent_suffix, (select pay_internal.recent_suffix()))
    or d.environment_id in (select v.id from pay.environments v where v.livemode))
  and (
    not starts_with(d.body, '{"id":"' || d.id || '",')
    or position('"payment_id":"' || d.payment_id || '",' in d.body) = 0
    or position('"amount_minor":' || d.amount_minor || ',' in d.body) = 0
    or position('"currency":"' || d.currency || '",' in d.body) = 0
    or position('"status":"' || d.status || '",' in d.body) = 0
    or (d.status in ('won', 'lost')) <> (position('"closed_at":null' in d.body) = 0)
    -- In a live environment retention may have deleted the event of the dispute.
    or right(d.id, 26) >= coalesce(c.recent_suffix, (select pay_internal.recent_suffix()))
      and not exists (
      select from pay.events e
      where e.environment_id = d.environment_id and e.subject_id = d.payment_id
        and e.type = any (case d.status
          when 'needs_response' then '{dispute.created,dispute.updated}'::text[]
          when 'under_review' then '{dispute.updated}'
          else array['dispute.' || d.status] end)
        and position('"data":{"object":' || d.body || '}' in e.body) > 0
    )
  );
comment on view pay.oracle_dispute_bodies is
  'R5: the body of a dispute agrees with its row and its event';
