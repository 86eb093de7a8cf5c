-- Purpose: the work that waits for a person: operations without a result, provider events that
-- match nothing, and exceptions. "deno task providers" lists it and settles it. A result that the
-- operator decides is recorded as any other provider event (pay.record).

-- Operator: the operations of live environments that need a person, oldest first: the service has
-- given up, or only the operator can end the wait. p_all: also the others that have no result yet,
-- for which the service asks again by itself at next_attempt_at.
create or replace function pay.list_unsettled_operations(p_all boolean) returns table (
  id text, environment_id text, account text, account_id text, op text, subject_id text,
  refund_id text, amount_minor bigint, currency text, state text, attempts integer,
  may_repeat boolean, created_at timestamptz, next_attempt_at timestamptz, provider_reference text,
  last_reply text, subject_status text
) language plpgsql volatile security definer rows 100 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select c.id, c.environment_id, e.account, c.account_id, c.op, c.subject_id, c.refund_id,
      c.amount_minor, c.currency, c.state, c.attempts, c.may_repeat, c.created_at,
      c.next_attempt_at, c.provider_reference, c.last_reply, coalesce(r.status, subject.status)
    from pay.provider_operations c
    join pay.environments e on e.id = c.environment_id and e.livemode and e.retired_at is null
    left join pay_internal.provider_subjects subject
      on subject.environment_id = c.environment_id and subject.id = c.subject_id
    left join pay.refunds r on r.environment_id = c.environment_id and r.id = c.refund_id
    where c.state <> 'settled' and (c.state = 'operator' or c.needs_operator or p_all)
    order by c.created_at, c.id;
end $$;
grant execute on function pay.list_unsettled_operations to pay_operator;

-- Operator: an operation of a live environment, also a settled one, as work of the worker; no row
-- if there is none. Takes no lease: pay.record decides between two results of one operation.
create or replace function pay.read_provider_operation(p_id text) returns setof pay.provider_work
language plpgsql volatile security definer rows 1 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select w.* from pay.environments e
    join pay.provider_operations c on c.environment_id = e.id and c.id = p_id
    cross join lateral pay_internal.read_operations(array[e.id], array[c.id]) w
    where e.livemode and e.retired_at is null;
end $$;
grant execute on function pay.read_provider_operation to pay_operator;

-- Operator: the provider events that a person has to look at and has not dismissed, oldest first,
-- each with the reason. file, line, bank_reference: of an entry of a bank, else null.
create or replace function pay.list_reported_events() returns table (
  account_id text, reference text, environment_id text, account text, outcome text, op text,
  state text, subject_id text, refund_id text, provider_reference text, amount_minor bigint,
  currency text, booked_minor bigint, happened_at timestamptz, received_at timestamptz, reason text,
  file text, line integer, bank_reference text
) language plpgsql volatile security definer rows 10 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select event.account_id, event.reference, event.environment_id, e.account, event.outcome,
      event.op, event.state, event.subject_id, event.refund_id, event.provider_reference,
      event.amount_minor, event.currency, event.booked_minor, event.happened_at, event.received_at,
      coalesce(event.exception, case
        when event.subject_id is null
          then 'it names no payment, and no operation has made '
            || coalesce(event.provider_reference, 'its object')
        when subject.id is null then event.subject_id || ' does not exist in this environment'
        else event.subject_id || ' has another object at the provider, or another account'
      end),
      f.name, (event.body #>> '{bank,entry,line}')::integer,
      event.body #>> '{bank,entry,bank_reference}'
    from pay.provider_events event
    join pay.environments e on e.id = event.environment_id and e.livemode and e.retired_at is null
    left join pay_internal.provider_subjects subject
      on subject.environment_id = event.environment_id and subject.id = event.subject_id
    left join pay.bank_entries b on b.environment_id = event.environment_id
      and b.account_id = event.account_id and event.body -> 'bank' ? 'entry'
      and b.id = event.body ->> 'object_id'
    left join pay.bank_files f on f.environment_id = b.environment_id
      and f.account_id = b.account_id
      -- A file that tells the orders of a total has no place of their events.
      and f.sha256 = case when event.body #> '{bank,entry,part}' = '0' then b.sha256
        else coalesce(b.details_sha256, b.sha256) end
    where (event.outcome in ('exception', 'unmatched') or event.exception is not null)
      and event.dismissed_at is null
    order by event.received_at, event.account_id, event.reference;
end $$;
grant execute on function pay.list_reported_events to pay_operator;

-- Operator: the unmatched provider events and exceptions with a reference, as work of the worker,
-- with the payment or transfer that the operator assigns to them. p_account_id null: of each
-- account.
-- p_refund_id not null: its payment is the subject. subject_body is null if there is no such
-- subject.
create or replace function pay.read_reported_events(
  p_account_id text, p_reference text, p_subject_id text, p_refund_id text
) returns setof pay.provider_work language plpgsql volatile security definer rows 10 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select 'event', event.environment_id, e.livemode,
      pay_internal.provider_account_json(event.environment_id, event.account_id), k.operation,
      (pay_internal.provider_event_json(event)::jsonb || jsonb_build_object('dispute_body',
        pay_internal.dispute_body(event.environment_id, subject.id, event.body ->> 'object_id'),
        'transfers', pay_internal.transfers_json(event, subject.id)))::json,
      subject.body, subject.sequence, r.body, null::json, null::date
    from pay.environments e
    join pay.provider_events event on event.environment_id = e.id and event.reference = p_reference
      and event.account_id = coalesce(p_account_id, event.account_id)
    left join pay.refunds r on r.environment_id = e.id and r.id = p_refund_id
    left join pay_internal.provider_subjects subject
      on subject.environment_id = e.id and subject.id = coalesce(r.payment_id, p_subject_id)
    left join lateral (
      select pay_internal.provider_operation_json(c) as operation from pay.provider_operations c
      where c.environment_id = event.environment_id and c.subject_id = subject.id
        and c.op = event.op and c.refund_id is not distinct from p_refund_id
      order by c.id desc limit 1
    ) k on true
    where e.livemode and e.retired_at is null and event.outcome in ('unmatched', 'exception');
end $$;
grant execute on function pay.read_reported_events to pay_operator;

-- Operator: dismisses an unmatched provider event or an exception: it stays stored and booked, and
-- no invariant and no count shows it any more. p_account_id null: of the only account that has the
-- reference. Returns the number of provider events that match; only one is dismissed.
create or replace function pay.dismiss_provider_event(
  p_account_id text, p_reference text, p_reason text
) returns bigint language plpgsql volatile security definer as $$
declare
  v_found bigint; v_account_id text;
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving(l.environment_id) from pay.list_reported_events() l
  where l.reference = p_reference and l.account_id = coalesce(p_account_id, l.account_id);
  select count(*) into v_found from pay.list_reported_events() l
  where l.reference = p_reference and l.account_id = coalesce(p_account_id, l.account_id);
  if v_found = 1 then
    update pay.provider_events event
    set dismissed_at = pay_internal.server_time(), dismissed_reason = p_reason
    from pay.list_reported_events() l
    where l.reference = p_reference and l.account_id = coalesce(p_account_id, l.account_id)
      and event.environment_id = l.environment_id and event.account_id = l.account_id
      and event.reference = l.reference
    returning event.account_id into v_account_id;
    perform pay.settle_entry_details(v_account_id, p_reference, '[]');
  end if;
  return v_found;
end $$;
grant execute on function pay.dismiss_provider_event to pay_operator;
