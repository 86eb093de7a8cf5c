-- Purpose: the work that waits for a person: calls without a result, facts that match nothing, and
-- findings. "deno task providers" lists it and settles it. A result that the operator decides is
-- recorded as any other fact (pay.record).

-- Operator: the calls of live environments that need a person, oldest first: the service has given
-- up, or only the operator can end the wait. p_all: also the others that have no result yet, for
-- which the service asks again by itself at next_attempt_at.
create or replace function pay.list_unsettled_calls(p_all boolean)
returns table (
  id text, environment_id text, account text, account_id text, op text, subject_id text,
  refund_id text, amount_minor bigint, currency text, state text, attempts integer,
  may_repeat boolean, created_at timestamptz, next_attempt_at timestamptz,
  provider_reference text, last_reply text, subject_status text
)
language plpgsql volatile security definer rows 100
set search_path = pg_catalog, pg_temp set jit = off
as $$
begin
  perform set_config('pay.worker', 'on', true);
  return query
    select c.id, c.environment_id, e.account, c.account_id, c.op, c.subject_id, c.refund_id,
      c.amount_minor, c.currency, c.state, c.attempts, c.may_repeat, c.created_at,
      c.next_attempt_at, c.provider_reference, c.last_reply, coalesce(r.status, s.status)
    from pay.provider_calls c
    join pay.environments e on e.id = c.environment_id and e.livemode and e.retired_at is null
    left join pay_internal.provider_subjects s
      on s.environment_id = c.environment_id and s.id = c.subject_id
    left join pay.refunds r on r.environment_id = c.environment_id and r.id = c.refund_id
    where c.state <> 'settled' and (c.state = 'operator' or c.needs_operator or p_all)
    order by c.created_at, c.id;
end
$$;
grant execute on function pay.list_unsettled_calls(boolean) to pay_operator;

-- Operator: a call of a live environment, also a settled one, as work of the worker; no row if
-- there is none. Takes no lease: pay.record decides between two results of one call.
create or replace function pay.read_provider_call(p_id text)
returns setof pay.provider_work
language plpgsql volatile security definer rows 1
set search_path = pg_catalog, pg_temp set jit = off
as $$
begin
  perform set_config('pay.worker', 'on', true);
  return query
    select 'call', c.environment_id, e.livemode,
      pay_internal.provider_account_json(c.environment_id, c.account_id),
      pay_internal.provider_call_json(c),
      null::json, s.body, s.sequence, r.body, null::json, null::date
    from pay.environments e
    join pay.provider_calls c on c.environment_id = e.id and c.id = p_id
    left join pay_internal.provider_subjects s
      on s.environment_id = c.environment_id and s.id = c.subject_id
    left join pay.refunds r on r.environment_id = c.environment_id and r.id = c.refund_id
    where e.livemode and e.retired_at is null;
end
$$;
grant execute on function pay.read_provider_call(text) to pay_operator;

-- Operator: the facts that a person has to look at and has not dismissed, oldest first, each with
-- the reason.
create or replace function pay.list_reported_facts()
returns table (
  account_id text, reference text, environment_id text, account text, outcome text, op text,
  state text, subject_id text, refund_id text, provider_reference text, amount_minor bigint,
  currency text, booked_minor bigint, happened_at timestamptz, received_at timestamptz, reason text
)
language plpgsql volatile security definer rows 10
set search_path = pg_catalog, pg_temp set jit = off
as $$
begin
  perform set_config('pay.worker', 'on', true);
  return query
    select f.account_id, f.reference, f.environment_id, e.account, f.outcome, f.op, f.state,
      f.subject_id, f.refund_id, f.provider_reference, f.amount_minor, f.currency, f.booked_minor,
      f.happened_at, f.received_at, coalesce(f.finding, case
        when f.subject_id is null
          then 'it names no payment, and no call has made '
            || coalesce(f.provider_reference, 'its object')
        when s.id is null then f.subject_id || ' does not exist in this environment'
        else f.subject_id || ' has another object at the provider, or another account'
      end)
    from pay.provider_facts f
    join pay.environments e on e.id = f.environment_id and e.livemode and e.retired_at is null
    left join pay_internal.provider_subjects s
      on s.environment_id = f.environment_id and s.id = f.subject_id
    where (f.outcome in ('finding', 'unmatched') or f.finding is not null)
      and f.dismissed_at is null
    order by f.received_at, f.account_id, f.reference;
end
$$;
grant execute on function pay.list_reported_facts() to pay_operator;

-- Operator: the unmatched facts and findings with a reference, as work of the worker, with the
-- payment or transfer that the operator assigns to them. p_account_id null: of each account.
-- p_refund_id not null: its payment is the subject. subject_body is null if there is no such
-- subject.
create or replace function pay.read_reported_facts(
  p_account_id text, p_reference text, p_subject_id text, p_refund_id text
)
returns setof pay.provider_work
language plpgsql volatile security definer rows 10
set search_path = pg_catalog, pg_temp set jit = off
as $$
begin
  perform set_config('pay.worker', 'on', true);
  return query
    select 'fact', f.environment_id, e.livemode,
      pay_internal.provider_account_json(f.environment_id, f.account_id), k.call,
      (pay_internal.provider_fact_json(f)::jsonb || jsonb_build_object('dispute_body',
        pay_internal.dispute_body(f.environment_id, s.id, split_part(f.reference, ':', 1)),
        'transfers', pay_internal.transfers_json(f, s.id)))::json,
      s.body, s.sequence, r.body, null::json, null::date
    from pay.environments e
    join pay.provider_facts f on f.environment_id = e.id and f.reference = p_reference
      and f.account_id = coalesce(p_account_id, f.account_id)
    left join pay.refunds r on r.environment_id = e.id and r.id = p_refund_id
    left join pay_internal.provider_subjects s
      on s.environment_id = e.id and s.id = coalesce(r.payment_id, p_subject_id)
    left join lateral (
      select pay_internal.provider_call_json(c) as call from pay.provider_calls c
      where c.environment_id = f.environment_id and c.subject_id = s.id and c.op = f.op
        and c.refund_id is not distinct from p_refund_id
      order by c.id desc limit 1
    ) k on true
    where e.livemode and e.retired_at is null and f.outcome in ('unmatched', 'finding');
end
$$;
grant execute on function pay.read_reported_facts(text, text, text, text) to pay_operator;

-- Operator: dismisses an unmatched fact or a finding: it stays stored and booked, and no oracle and
-- no count shows it any more. p_account_id null: of the only account that has the reference.
-- Returns the number of facts that match; only one is dismissed.
create or replace function pay.dismiss_fact(
  p_account_id text, p_reference text, p_reason text
)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set jit = off
as $$
declare
  v_found bigint;
begin
  perform set_config('pay.worker', 'on', true);
  select count(*) into v_found from pay.list_reported_facts() l
  where l.reference = p_reference and l.account_id = coalesce(p_account_id, l.account_id);
  if v_found = 1 then
    update pay.provider_facts f
    set dismissed_at = pay_internal.server_time(), dismissed_reason = p_reason
    from pay.list_reported_facts() l
    where l.reference = p_reference and l.account_id = coalesce(p_account_id, l.account_id)
      and f.environment_id = l.environment_id and f.account_id = l.account_id
      and f.reference = l.reference;
  end if;
  return v_found;
end
$$;
grant execute on function pay.dismiss_fact(text, text, text) to pay_operator;
