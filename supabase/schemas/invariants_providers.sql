-- Purpose: invariants over the operations, provider events and totals of providers
-- (invariants.sql). They compare our books with the provider's.

create or replace view pay.invariant_provider_operations with (security_invoker = true) as
select c.environment_id, c.id as subject_id,
  c.op || ' of ' || c.subject_id || ': no attempt since ' || c.next_attempt_at as detail
from pay.provider_operations c
where c.state = 'pending'
  -- A sandbox without a worker, such as one of an old backup, loses no money.
  and c.account_id <> 'sandbox'
  and greatest(c.next_attempt_at, c.leased_until) < now() - interval '1 hour'
union all
select c.environment_id, c.id,
  c.op || ' of ' || c.subject_id || ': the result is unknown, decide by hand: '
    || coalesce(c.last_reply, 'no reply')
from pay.provider_operations c
where c.state = 'operator'
union all
select c.environment_id, c.id, c.op || ' of ' || c.subject_id || ' is settled, but it is pending'
from pay.provider_operations c
join pay.payments p on p.environment_id = c.environment_id and p.id = c.subject_id
where c.op = 'authorize' and c.state = 'settled' and p.status = 'pending'
  -- A payment by bank transfer waits for its payer, and one by stablecoin at its address.
  and c.account_id not in (select a.id from pay.provider_accounts a where a.connector = 'bank')
  and not exists (
    select from pay.deposit_addresses deposit
    where deposit.environment_id = c.environment_id and deposit.operation_id = c.id
  )
union all
select p.environment_id, p.id, p.status || ' without an operation of a provider'
from pay.payments p
where p.environment_id in (select e.id from pay.environments e where e.livemode)
  and not exists (
    select from pay.provider_operations c
    where c.environment_id = p.environment_id and c.subject_id = p.id and c.op = 'authorize'
  )
union all
select p.environment_id, p.id, p.status || ' without a provider event that the money has come in'
from pay.payments p
where p.environment_id in (select e.id from pay.environments e where e.livemode)
  and p.status in (/* paid */ 'completed', 'partially_refunded', 'refunded', 'chargeback')
  and p.amount_minor > 0
  and not exists (
    select from pay.provider_events event
    where event.environment_id = p.environment_id and event.subject_id = p.id
      and event.op in ('authorize', 'capture') and event.state = 'succeeded'
      and event.outcome = 'applied'
  );
comment on view pay.invariant_provider_operations is
  'R14: every live payment has an operation, and each gets a result that the payment shows';

-- The balance at a provider is the sum of these accounts: amounts there, amounts that payers have
-- disputed, and amounts that have left it as transfers.
create or replace view pay.invariant_provider_events with (security_invoker = true) as
select event.environment_id, event.account_id || ' ' || event.reference as subject_id,
  'not handled since ' || event.received_at as detail
from pay.provider_events event
where event.outcome is null and event.received_at < now() - interval '10 minutes'
union all
select b.environment_id, b.subject_id,
  'provider events of ' || b.booked || ' ' || b.currency || ', ledger '
    || coalesce(-(a.processor + a.chargebacks + a.external), 0)
from (
  select o.environment_id, o.subject_id, o.currency, sum(o.booked_minor) as booked
  from (
    -- Money that matches no payment is booked for the account.
    select event.environment_id, event.currency, event.booked_minor,
      case when event.outcome = 'applied' then coalesce(event.subject_id, event.account_id)
        else event.account_id end as subject_id
    from pay.provider_events event
    where (event.outcome = 'applied' or event.booked_minor <> 0)
      and event.environment_id in (select e.id from pay.environments e where e.livemode)
  ) o
  group by o.environment_id, o.subject_id, o.currency
) b
left join pay_internal.subject_accounts a
  on a.environment_id = b.environment_id and a.subject_id = b.subject_id
  and a.currency = b.currency
where b.booked <> coalesce(-(a.processor + a.chargebacks + a.external), 0)
union all
-- A poll is due every hour, and a statement of a bank after each day of business. Without them
-- nobody knows which provider events are missing.
select a.environment_id, a.id, 'not read since ' || coalesce(u.polled_at, a.created_at)
from pay.provider_accounts a
left join pay.provider_cursors u on u.environment_id = a.environment_id and u.account_id = a.id
where a.status = 'enabled'
  and coalesce(u.polled_at, a.created_at)
    < now() - case a.connector when 'bank' then interval '7 days' else interval '3 hours' end;
comment on view pay.invariant_provider_events is
  'R14: every provider event is read and applied once, and the ledger moved by its amount';

-- A warning: the money of these is booked, and only a person can tell what it is.
create or replace view pay.invariant_reported_events with (security_invoker = true) as
select event.environment_id, event.account_id || ' ' || event.reference as subject_id,
  event.outcome || ': ' || coalesce(event.exception, event.op || ' ' || event.state || ' of '
    || coalesce(event.subject_id, event.provider_reference, 'an unknown subject')) as detail
from pay.provider_events event
where (event.outcome in ('exception', 'unmatched') or event.exception is not null)
  and event.dismissed_at is null;
comment on view pay.invariant_reported_events is
  'R14: a person has matched or dismissed every provider event that tells something unexpected';

-- Compares only days whose totals are read. The others are breaches two days after they were due.
create or replace view pay.invariant_provider_totals with (security_invoker = true) as
select x.environment_id, x.account_id as subject_id,
  x.day || ': provider ' || sum(x.provider_minor) || ' ' || x.currency || ', ledger '
    || sum(x.booked_minor) as detail
from (
  select t.environment_id, t.account_id, t.day, t.currency, t.provider_minor, 0 as booked_minor
  from pay.provider_totals t
  union all
  select event.environment_id, event.account_id, (event.happened_at at time zone 'UTC')::date,
    event.currency, 0, event.booked_minor
  from pay.provider_events event
  where event.booked_minor <> 0
) x
join pay.provider_cursors u on u.environment_id = x.environment_id and u.account_id = x.account_id
join pay.provider_accounts a on a.environment_id = x.environment_id and a.id = x.account_id
where x.day > (a.created_at at time zone 'UTC')::date and x.day <= u.totals_day
group by x.environment_id, x.account_id, x.day, x.currency
having sum(x.provider_minor) <> sum(x.booked_minor)
union all
select u.environment_id, u.account_id, u.detail from pay_internal.unproven_balances u
union all
select r.environment_id, r.account_id, r.day || ': the totals of the provider are not read'
from pay_internal.provider_readings r
join pay.provider_accounts a on a.environment_id = r.environment_id and a.id = r.account_id
where a.status = 'enabled' and r.totals_at < now() - interval '2 days';
comment on view pay.invariant_provider_totals is
  'R14: each day''s movements at a provider are those that the ledger booked, as balances prove';

-- Checks that the final transfers to the address of a payment decide its status.
create or replace view pay.invariant_deposits with (security_invoker = true) as
select x.environment_id, x.payment_id as subject_id,
  x.status || ' with ' || x.final_minor || ' final and ' || coalesce(x.received_minor::text, 'no')
    || ' received of ' || x.amount_minor as detail
from (
  select deposit.environment_id, deposit.payment_id, p.status, p.amount_minor,
    (p.body::json ->> 'amount_received')::bigint as received_minor,
    pay_internal.final_minor(deposit.environment_id, deposit.payment_id) as final_minor
  from pay.deposit_addresses deposit
  join pay.payments p on p.environment_id = deposit.environment_id and p.id = deposit.payment_id
  -- A settled operation has given the payment its address.
  join pay.provider_operations c
    on c.environment_id = deposit.environment_id and c.id = deposit.operation_id
      and c.state = 'settled'
) x
where case
  when x.status = 'pending' then x.received_minor is distinct from 0 or x.final_minor > 0
  when x.status = 'processing' then x.received_minor < greatest(x.final_minor, 1)
    or x.final_minor >= x.amount_minor
  when x.status in (/* paid */ 'completed', 'partially_refunded', 'refunded', 'chargeback')
    then x.final_minor < x.amount_minor
  else false
end;
comment on view pay.invariant_deposits is
  'R14: a payment to an address is completed exactly when its final transfers reach its amount';

-- Without its details no payment could be collected, and later than its end nobody needs them.
create or replace view pay.invariant_instrument_details with (security_invoker = true) as
select t.environment_id, t.id as subject_id,
  t.status || case when d.sealed is null then ' without' else ' with' end || ' bank details'
    as detail
from pay.instruments t
left join pay.bank_details d on d.environment_id = t.environment_id and d.owner_id = t.id
where t.is_kept and t.mandate_id is not null
  -- Those of sandboxes have none.
  and t.test_behaviour is null
  and (t.status in ('pending', 'active')) <> (d.sealed is not null);
comment on view pay.invariant_instrument_details is
  'R14: a live mandate that is kept has its sealed bank details until it ends, and no longer';

-- Operator: the breaches of the invariants of this file: alarms, then warnings.
create or replace function pay.reconcile() returns table (
  invariant text, environment_id text, subject_id text, detail text, severity text
) language plpgsql volatile security definer rows 10 as $$
declare
  v_invariant text;
begin
  perform pay_internal.act_as_worker();
  foreach v_invariant in array array[
    'invariant_provider_operations', 'invariant_provider_events', 'invariant_provider_totals',
    'invariant_deposits', 'invariant_instrument_details', 'invariant_reported_events'
  ] loop
    return query
      select v_invariant, f.environment_id, f.subject_id, f.detail, f.severity
      from pay_internal.find_breaches(v_invariant) f where f.severity <> 'note' order by 2, 3, 4;
  end loop;
end $$;
grant execute on function pay.reconcile to pay_operator;
