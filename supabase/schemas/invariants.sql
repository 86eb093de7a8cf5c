-- Purpose: invariants, the views that check the data. Each view pay.invariant_* lists the rows that
-- break one promise (docs/reliability.md), with the columns environment_id, subject_id and detail.
-- A view is one statement and reads one snapshot, so it is empty at every moment while the promise
-- holds. This file has the invariants of money and the functions that check all invariants. The
-- other invariants are in the files invariants_*.sql.
--
-- Retention deletes rows kind by kind after 30 days, so the invariants check rows that are younger
-- than 29 days. In live environments retention deletes no payments, refunds, transfers and
-- movements. The invariants check these at any age, against the events that still exist.
-- docs/reliability.md lists the defects that no invariant can detect.
--
-- The invariants read whole tables. They are for an hourly job or an operator, not for a request.

-- The suffix (the id without its prefix) of 29 days ago. Retention deletes no row with a later
-- suffix, so the invariants can rely on these rows. Sandboxes with a clock of their own have
-- another one (pay_internal.sandbox_times).
create or replace function pay_internal.recent_suffix() returns text language sql stable
as $$ select pay_internal.id_floor('', now() - interval '29 days') $$;

-- The sandboxes with a clock of their own: their time, and the suffix of 29 days before it. Other
-- environments have no row, and their time is now().
create or replace view pay_internal.sandbox_times with (security_invoker = true) as
select t.environment_id, t.now,
  pay_internal.id_floor('', t.now - interval '29 days') as recent_suffix
from (
  select w.environment_id, now() + pay_internal.time_ahead(w) as now from pay.sandbox_settings w
) t;
comment on view pay_internal.sandbox_times is 'The time of each sandbox with a clock of its own.';

-- Credits less debits of each account, over the movements of each subject.
create or replace view pay_internal.subject_accounts with (security_invoker = true) as
select m.environment_id, m.subject_id, m.currency,
  coalesce(sum(s.amount) filter (where s.account = 'available'), 0) as available,
  coalesce(sum(s.amount) filter (where s.account = 'processor'), 0) as processor,
  coalesce(sum(s.amount) filter (where s.account = 'chargebacks'), 0) as chargebacks,
  coalesce(sum(s.amount) filter (where s.account = 'in_transit'), 0) as in_transit,
  coalesce(sum(s.amount) filter (where s.account = 'external'), 0) as external,
  coalesce(sum(s.amount) filter (where s.account = 'unapplied'), 0) as unapplied,
  coalesce(sum(s.amount) filter (
    where s.account = 'processor' and m.kind in ('fee', 'fee_reversal')), 0) as fees
from pay.ledger_movements m
cross join lateral (
  values (m.debit_account, -m.amount_minor), (m.credit_account, m.amount_minor)
) as s (account, amount)
group by m.environment_id, m.subject_id, m.currency;
comment on view pay_internal.subject_accounts is
  'The sums of each account over the movements of a subject.';

create or replace view pay.invariant_ledger_legs with (security_invoker = true) as
select m.environment_id, m.transaction_id as subject_id,
  count(*) || ' legs up to ' || max(m.leg) || ', of ' || min(m.subject_id)
    || case when min(m.subject_id) <> max(m.subject_id)
      then ' and ' || max(m.subject_id) else '' end as detail
from pay.ledger_movements m
group by m.environment_id, m.transaction_id
having count(*) <> max(m.leg) + 1 or min(m.subject_id) <> max(m.subject_id);
comment on view pay.invariant_ledger_legs is
  'R4: the legs of a ledger transaction are numbered without a gap and belong to one subject';

-- If retention has deleted movements, the total is at least the sum of the remaining ones.
create or replace view pay.invariant_ledger_totals with (security_invoker = true) as
select x.environment_id,
  x.currency || ' ' || x.debit_account || ' to ' || x.credit_account as subject_id,
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
  select e.id from pay.environments e
  left join pay_internal.sandbox_times clock on clock.environment_id = e.id
  where e.livemode or e.created_at > coalesce(clock.now, now()) - interval '29 days'
);
comment on view pay.invariant_ledger_totals is
  'R4: the total of two accounts is the sum of the movements between them';

create or replace view pay.invariant_payment_money with (security_invoker = true) as
select p.environment_id, p.id as subject_id,
  p.status || ': available ' || a.available || ', charged back ' || a.chargebacks || ', processor '
    || a.processor as detail
from pay.payments p
left join pay_internal.subject_accounts s
  on s.environment_id = p.environment_id and s.subject_id = p.id and s.currency = p.currency
cross join lateral (
  -- The provider takes its fees out of the available money.
  select coalesce(s.available + s.fees, 0) as available,
    coalesce(s.processor - s.fees + s.unapplied, 0) as processor,
    coalesce(s.chargebacks, 0) as chargebacks
) a
cross join lateral (
  select
    case when p.status in (/* paid */ 'completed', 'partially_refunded', 'refunded', 'chargeback')
      then p.amount_minor - p.amount_released - p.amount_refunded - p.amount_disputed
      -- The bank has returned the whole payment, and its refunds stay.
      else -p.amount_refunded end as available,
    p.amount_disputed as chargebacks
) must
left join pay_internal.sandbox_times clock on clock.environment_id = p.environment_id
where (right(p.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    or p.environment_id in (select e.id from pay.environments e where e.livemode))
  and (a.available <> must.available or a.chargebacks <> must.chargebacks
    or -a.processor <> must.available + must.chargebacks);
comment on view pay.invariant_payment_money is
  'R4: each account holds the amount of a payment that the status of the payment requires';

create or replace view pay.invariant_transfer_money with (security_invoker = true) as
select tr.environment_id, tr.id as subject_id,
  tr.status || ': taken ' || a.taken || ', in transit ' || a.in_transit || ', paid out '
    || a.external as detail
from pay.transfers tr
left join pay_internal.subject_accounts s
  on s.environment_id = tr.environment_id and s.subject_id = tr.id and s.currency = tr.currency
cross join lateral (
  -- The bank can have taken its fee out of a payout.
  select -coalesce(s.available + s.fees, 0) as taken, coalesce(s.in_transit, 0) as in_transit,
    coalesce(s.external, 0) as external
) a
left join pay_internal.sandbox_times clock on clock.environment_id = tr.environment_id
where (right(tr.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    or tr.environment_id in (select e.id from pay.environments e where e.livemode))
  and (
    a.taken <> case when tr.status in ('pending', 'completed') then tr.amount_minor else 0 end
    or a.in_transit <> case tr.status when 'pending' then tr.amount_minor else 0 end
    or a.external <> case tr.status when 'completed' then tr.amount_minor else 0 end
  );
comment on view pay.invariant_transfer_money is
  'R4: each account holds the amount of a transfer that the status of the transfer requires';

create or replace view pay.invariant_refunds with (security_invoker = true) as
select p.environment_id, p.id as subject_id,
  'refunds ' || coalesce(r.completed, 0) || ' and pending ' || coalesce(r.pending, 0)
    || ', amount_refunded ' || p.amount_refunded || ' and amount_refunding '
    || p.amount_refunding || ' of ' || p.amount_minor - p.amount_released as detail
from pay.payments p
left join (
  select environment_id, payment_id,
    sum(amount_minor) filter (where status = 'completed') as completed,
    sum(amount_minor) filter (where status = 'pending') as pending
  from pay.refunds group by environment_id, payment_id
) r on r.environment_id = p.environment_id and r.payment_id = p.id
left join pay_internal.sandbox_times clock on clock.environment_id = p.environment_id
where (right(p.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    or p.environment_id in (select e.id from pay.environments e where e.livemode))
  and (coalesce(r.completed, 0) <> p.amount_refunded
    or coalesce(r.pending, 0) <> p.amount_refunding
    or p.amount_refunded + p.amount_refunding > p.amount_minor - p.amount_released);
comment on view pay.invariant_refunds is
  'R5: the refunds of a payment add up to its sums of refunds, at most to the captured amount';

-- Whether an invariant checks the service's own arithmetic, or the texts that it composes. A breach
-- is then an alarm in sandboxes too, because no request and no declared fault can cause it. What
-- the other invariants find in a sandbox can follow from what its tester does, such as a receiver
-- that hangs, so it is no alarm (docs/operations/monitoring.md).
create or replace function pay_internal.is_arithmetic(p_invariant text)
returns boolean language sql immutable parallel safe as $$
  select p_invariant in ('invariant_ledger_legs', 'invariant_ledger_totals',
    'invariant_payment_money', 'invariant_transfer_money', 'invariant_refunds', 'invariant_texts')
$$;

-- The severity of the breaches of an invariant: alarm, or warning if no promise is broken and a
-- person has to look.
create or replace function pay_internal.severity_of(p_invariant text)
returns text language sql immutable parallel safe as $$
  select case p_invariant when 'invariant_reported_events' then 'warning' else 'alarm' end
$$;

-- The rows of one invariant, without retired environments, from which retention deletes rows table
-- by table. severity: alarm, warning (pay_internal.severity_of), or note: the breach of a sandbox,
-- which is shown apart.
-- Invariants join whole tables, by hashes. PostgreSQL expects few rows if it has no statistics or
-- knows few environments. It would compare each row with each then, for hours.
create or replace function pay_internal.find_breaches(p_invariant text)
returns table (environment_id text, subject_id text, detail text, severity text)
language plpgsql volatile rows 10 set enable_nestloop = off set enable_mergejoin = off as $$
begin
  return query execute format(
    'select f.environment_id, f.subject_id, f.detail,
       case when $1 or coalesce(e.livemode, true) then $2 else ''note'' end
     from pay.%I f
     left join pay.environments e on e.id = f.environment_id
     where e.retired_at is null and e.moving is null', p_invariant)
  using pay_internal.is_arithmetic(p_invariant), pay_internal.severity_of(p_invariant);
end $$;

-- The invariants, and the promise that each checks.
create or replace function pay_internal.list_invariants()
returns table (invariant text, promise text) language sql stable rows 100 as $$
  select c.relname::text, obj_description(c.oid, 'pg_class') from pg_class c
  where c.relnamespace = 'pay'::regnamespace and c.relkind = 'v' and c.relname like 'invariant\_%'
$$;

-- Operator: checks every invariant. Returns for each the number of breaches of its severity, with
-- up to three examples, and one more row if it has breaches that are only notes.
create or replace function pay.check_books() returns table (
  invariant text, promise text, severity text, breaches bigint, examples text[]
) language plpgsql volatile security definer rows 100 as $$
#variable_conflict use_column
declare
  v_invariant record;
begin
  perform pay_internal.act_as_worker();
  for v_invariant in
    select * from pay_internal.list_invariants() i order by i.promise, i.invariant
  loop
    return query
      select v_invariant.invariant, v_invariant.promise, k.severity, count(f.detail), coalesce(
        (array_agg(concat(f.environment_id, ' ', f.subject_id, ': ', f.detail))
          filter (where f.detail is not null))[1:3], '{}')
      from (values (pay_internal.severity_of(v_invariant.invariant)), ('note')) as k (severity)
      left join pay_internal.find_breaches(v_invariant.invariant) f on f.severity = k.severity
      group by k.severity
      having k.severity <> 'note' or count(f.detail) > 0
      order by k.severity = 'note';
  end loop;
end $$;
grant execute on function pay.check_books to pay_operator;

-- Operator: checks every invariant, records new alarms, and returns the present number of alarms.
-- For the hourly job, whose log gets the warnings.
create or replace function pay.note_breaches() returns bigint
language plpgsql volatile security definer as $$
declare
  v_invariant text;
  v_found bigint;
  v_total bigint := 0;
begin
  perform pay_internal.act_as_worker();
  perform set_config('pay.part_of_texts', extract(hour from now())::text, true);
  for v_invariant in select i.invariant from pay_internal.list_invariants() i order by 1 loop
    with
    found as materialized (
      select * from pay_internal.find_breaches(v_invariant) b where b.severity = 'alarm'
    ),
    noted as (
      insert into pay.invariant_breaches (environment_id, invariant, subject_id, detail)
      select f.environment_id, v_invariant, f.subject_id, min(f.detail) from found f
      group by f.environment_id, f.subject_id
      on conflict on constraint invariant_breaches_pkey do nothing
    )
    select count(*) into v_found from found;
    v_total := v_total + v_found;
    if v_found > 0 then
      raise warning '% breaches of pay.%', v_found, v_invariant
        using hint = 'select * from pay.check_books()';
    end if;
  end loop;
  insert into pay.settings (name, value)
  values ('books_checked_at', extract(epoch from now())::text)
  on conflict on constraint settings_pkey do update set value = excluded.value;
  return v_total;
end $$;
grant execute on function pay.note_breaches to pay_operator;

-- The hourly check where no pg_cron runs it. Every instance of the service calls it; one of them
-- checks. Returns the number of alarms, or null if this call did not check.
create or replace function pay.note_breaches_hourly()
returns bigint language plpgsql volatile security definer
set enable_seqscan = on set plan_cache_mode = auto as $$
begin
  perform pay_internal.act_as_worker();
  if not pg_try_advisory_xact_lock(hashtextextended('pay.note_breaches', 0)) or exists (
    select from pay.settings s where s.name = 'books_checked_at'
      and to_timestamp(s.value::double precision) > now() - interval '1 hour'
  ) then
    return null;
  end if;
  return pay.note_breaches();
end $$;
grant execute on function pay.note_breaches_hourly to pay_api;

-- Operator: deletes the recorded breaches, once their cause is understood. Returns their number.
-- The next check records breaches that still exist.
create or replace function pay.forget_breaches() returns bigint
language plpgsql volatile security definer as $$
declare
  v_forgotten bigint;
begin
  perform pay_internal.act_as_worker();
  delete from pay.invariant_breaches;
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end $$;
grant execute on function pay.forget_breaches to pay_operator;
