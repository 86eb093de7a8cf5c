-- Purpose: operations of providers. pay.commit finds the account of an operation and writes the
-- operation together with the change that it belongs to. The service sends it after that.

-- An operation as the worker needs it, with the dispute that it is about.
create or replace function pay_internal.provider_operation_json(p_operation pay.provider_operations)
returns json language sql stable as $$
  select row_to_json(t) from (
    select p_operation.id, p_operation.environment_id, p_operation.op, p_operation.subject_id,
      p_operation.refund_id, p_operation.amount_minor,
      p_operation.currency, p_operation.request, p_operation.state, p_operation.attempts,
      pay_internal.wire_time(p_operation.created_at) as created_at,
      pay_internal.wire_time(p_operation.first_sent_at) as first_sent_at,
      -- By the database's clock. Stripe forgets an id 24 hours after the first attempt. The cancel
      -- of an abandoned payment and the removal of a card have the same effect without the id.
      p_operation.may_repeat and (p_operation.op in ('abandon', 'detach')
        or coalesce(p_operation.first_sent_at, p_operation.created_at)
          > pay_internal.server_time() - interval '23 hours') as may_repeat,
      p_operation.provider_reference, p_operation.request_id, p_operation.decline_is_error,
      p_operation.traceparent,
      case when p_operation.request ? 'dispute' then pay_internal.dispute_body(
        p_operation.environment_id, p_operation.subject_id,
        p_operation.request -> 'dispute' ->> 'id') end as dispute_body,
      case when p_operation.connector = 'evm' then (
        select json_build_object(
          'index', d.xpub_index, 'expires_at', pay_internal.wire_time(d.expires_at))
        from pay.deposit_addresses d
        where d.environment_id = p_operation.environment_id and d.operation_id = p_operation.id
      ) when p_operation.request ? 'save' then json_build_object(
        'customer', pay_internal.known_customer(p_operation.environment_id,
          p_operation.account_id, p_operation.request #>> '{save,customer_id}'))
      end as reserved,
      -- Without a due_at it is from before the sandbox had a clock of its own.
      pay_internal.wire_time(
        coalesce(p_operation.due_at, p_operation.next_attempt_at)) as due_at,
      (select row_to_json(w) from pay.sandbox_settings w
       where w.environment_id = p_operation.environment_id) as settings
  ) t
$$;

-- Finds the account of each operation of the admitted changes. Outcomes: unconfigured (there is
-- none), incomplete (a live payment needs a token and has none),
-- in_progress (an authorization, capture or cancellation of the same payment has no result yet, or
-- for an operation on a dispute another one of them).
-- p_operations    as pay.commit takes it
-- providers  by n: {account, provider_reference}
-- New payments and transfers go to the enabled account of their method and currency, which must be
-- that of the instrument that a payment uses. Everything
-- else goes to the account of the authorization or transfer, also if that account is disabled,
-- because it holds the money.
-- Concurrency: runs after pay_internal.lock_subjects, so no other transaction writes operations of
-- the subjects.
create or replace function pay_internal.find_providers(
  p_operations jsonb, inout p_found pay.admission[], out providers jsonb
) language plpgsql volatile as $$
declare
  v_one_at_a_time constant text[] :=
    '{authorize,capture,cancel,dispute_evidence,dispute_accept}';
  v_operation record;
begin
  providers := '{}';
  for v_operation in
    select c.n, f.environment_id, o.provider_reference,
      e.livemode and c.op = 'authorize' and c.request ->> 'token' is null
        and pay_internal.rail_needs_token(c.method_kind) as is_incomplete, case
        when not e.livemode then 'sandbox'
        when c.request #>> '{instrument,account}' <> method.account_id then null
        when c.op in ('authorize', 'transfer') then method.account_id
        else o.account_id
      end as account_id,
      c.op = any (v_one_at_a_time) and exists (
        select from (
          -- All operations of the subject. With the condition inside, the planner would read every
          -- pending operation of the service.
          select p.state, p.op from pay.provider_operations p
          where p.subject_id = c.subject_id and p.environment_id = f.environment_id
          offset 0
        ) p
        where p.state = 'pending' and p.op = any (v_one_at_a_time)
          and (p.op like 'dispute%') = (c.op like 'dispute%')
      ) as is_waiting
    from unnest(p_found) f
    join jsonb_to_recordset(p_operations) as c (
      n integer, op text, subject_id text, method_kind text, currency text, request jsonb)
      on c.n = f.n
    join pay.environments e on e.id = f.environment_id
    left join lateral (
      select m.account_id from pay.provider_methods m
      where m.environment_id = f.environment_id and m.method_kind = c.method_kind
        and m.currency in (c.currency, '*')
      -- The account of the currency before that of all others.
      order by m.currency desc limit 1
    ) method on true
    left join lateral (
      select a.account_id, a.provider_reference from pay.provider_operations a
      where a.environment_id = f.environment_id and a.subject_id = c.subject_id
        and a.op in ('authorize', 'transfer')
      order by a.id desc limit 1
    ) o on true
    where f.outcome = 'ok'
  loop
    if v_operation.account_id is null then
      p_found[v_operation.n].outcome := 'unconfigured';
    elsif v_operation.is_incomplete then
      p_found[v_operation.n].outcome := 'incomplete';
    elsif v_operation.is_waiting then
      p_found[v_operation.n].outcome := 'in_progress';
    else
      providers := providers || jsonb_build_object(v_operation.n, jsonb_build_object(
        'account', pay_internal.provider_account_json(
          v_operation.environment_id, v_operation.account_id),
        'provider_reference', v_operation.provider_reference));
    end if;
  end loop;
end $$;

-- Writes the operations of the committed changes. Each is leased to its request, unless it has a
-- delay: then the worker sends it. An operation with a provider_reference of its own is settled.
-- Returns for each change the detail of its response, JSON text, or null.
-- p_operations, p_requests  as pay.commit takes them
-- p_providers          as pay_internal.find_providers returns it
-- Times are those of pay_internal.environment_time.
create or replace function pay_internal.write_operations(
  p_operations jsonb, p_providers jsonb, p_requests pay_internal.request[],
  p_found pay.admission[], out details text[]
) language plpgsql volatile as $$
declare
  v_sync_after constant interval := '10 minutes';
  v_now constant timestamptz := pay_internal.server_time();
  v_deposits jsonb;
begin
  if p_providers @? '$.*.account.connector ? (@ == "evm")' then
    v_deposits := pay_internal.allocate_deposits(p_operations, p_providers, p_found);
  end if;
  with
  operation as materialized (
    select f.environment_id, f.api_key_id, r.idempotency_key, r.request_id, v.account,
      v.provider_reference as known_reference, c.provider_reference is not null as is_settled,
      v_now + coalesce(f.ahead, '0') as made_at, f.ahead is not null as has_clock,
      coalesce(c.due, v_now + coalesce(f.ahead, '0')
        + coalesce(c.delay_ms, c.lease_ms) * interval '1 ms') as due_at,
      c.*
    from unnest(p_found) f
    join jsonb_to_recordset(p_operations) as c (
      n integer, id text, op text, subject_id text, refund_id text, amount_minor bigint,
      currency text, request jsonb, decline_is_error boolean, lease_ms integer, delay_ms bigint,
      due timestamptz, provider_reference text, traceparent text
    ) on c.n = f.n
    join unnest(p_requests) r on r.n = f.n
    join jsonb_each(p_providers) as k (n, found) on k.n = f.n::text
    cross join lateral jsonb_to_record(k.found) as v (account jsonb, provider_reference text)
    where f.outcome = 'ok'
  ),
  made as (
    insert into pay.provider_operations (environment_id, id, account_id, connector, op, subject_id,
      refund_id, amount_minor, currency, request, state, attempts, created_at, first_sent_at,
      next_attempt_at, leased_until, settled_at, next_sync_at, may_repeat, provider_reference,
      api_key_id, idempotency_key, request_id, decline_is_error, due_at, traceparent)
    select c.environment_id, c.id, c.account ->> 'id', c.account ->> 'connector', c.op,
      c.subject_id, c.refund_id, c.amount_minor, c.currency, c.request,
      case when c.is_settled then 'settled' else 'pending' end,
      case when c.delay_ms is null then 1 else 0 end, c.made_at,
      case when c.delay_ms is null then v_now end,
      case when c.is_settled then null
        when c.has_clock then pay_internal.real_due(c.environment_id, c.due_at)
        else c.due_at end,
      case when not c.is_settled and c.delay_ms is null
        then v_now + c.lease_ms * interval '1 ms' end,
      case when c.is_settled then v_now end,
      -- The sandbox and banks report by themselves.
      case when c.account ->> 'connector' not in ('sandbox', 'bank')
        and c.op in ('authorize', 'refund', 'transfer') then v_now + v_sync_after end,
      true, coalesce(c.provider_reference, c.known_reference), c.api_key_id, c.idempotency_key,
      c.request_id, c.decline_is_error,
      case when c.has_clock and not c.is_settled then c.due_at end, c.traceparent
    from operation c
  )
  select array_agg(
    case when c.n is not null then json_build_object(
      'id', c.id, 'account', c.account, 'provider_reference', c.known_reference,
      'created_at', pay_internal.wire_time(c.made_at),
      'reserved', case when c.request ? 'save' then jsonb_build_object(
        'customer', pay_internal.known_customer(c.environment_id, c.account ->> 'id',
          c.request #>> '{save,customer_id}')) else v_deposits -> c.n::text end)::text end
    order by f.n)
  into details
  from unnest(p_found) f
  -- A change can have an operation that the worker sends later beside the one of its request.
  left join (select distinct on (d.n) d.* from operation d order by d.n, d.delay_ms nulls first) c
    on c.n = f.n;
  if p_providers @? '$.*.account.connector ? (@ == "bank")' then
    perform pay_internal.keep_bank_orders(p_operations, p_providers, p_found);
  end if;
end $$;

-- Writes the operations of the recorded records, such as the end of a payment whose payer does
-- nothing. Each goes to the account of the payment's authorization, and has the API key and the
-- request of that operation. Runs after pay_internal.write_operation_results, which learns the
-- provider's id of the payment.
-- p_operations  as pay.commit takes it, each with delay_ms. In a sandbox with a clock of its own
--               the delay begins with the change, which an advance can date before the clock
-- p_payments    the payments that the records change
create or replace function pay_internal.write_later_operations(
  p_operations jsonb, p_payments pay_internal.payment_row[], p_callers pay_internal.caller[]
) returns void language plpgsql volatile as $$
declare
  v_now constant timestamptz := pay_internal.server_time();
begin
  insert into pay.provider_operations (environment_id, id, account_id, connector, op, subject_id,
    amount_minor, currency, request, state, attempts, created_at, next_attempt_at, may_repeat,
    provider_reference, api_key_id, request_id, decline_is_error, due_at, traceparent)
  select o.environment_id, c.id, o.account_id, o.connector, c.op, c.subject_id, c.amount_minor,
    c.currency, c.request, 'pending', 0, m.made_at,
    case when caller.ahead is null then t.due_at
      else pay_internal.real_due(o.environment_id, t.due_at) end, true,
    o.provider_reference, o.api_key_id, o.request_id, false,
    case when caller.ahead is not null then t.due_at end, c.traceparent
  from unnest(p_callers) caller
  join jsonb_to_recordset(p_operations) as c (
    n integer, id text, op text, subject_id text, amount_minor bigint, currency text,
    request jsonb, delay_ms bigint, due timestamptz, traceparent text
  ) on c.n = caller.n
  left join unnest(p_payments) p on p.n = caller.n
  cross join lateral (
    select case when caller.ahead is null then v_now
      else least(v_now + caller.ahead, p.updated_at) end as made_at
  ) m
  cross join lateral (
    select coalesce(c.due, m.made_at + c.delay_ms * interval '1 ms') as due_at
  ) t
  cross join lateral (
    select a.environment_id, a.account_id, a.connector, a.provider_reference, a.api_key_id,
      a.request_id
    from pay.provider_operations a
    where a.environment_id = caller.environment_id and a.subject_id = c.subject_id
      and a.op = 'authorize'
    order by a.id desc limit 1
  ) o;
end $$;

-- Locks the operations of the records. A record of a settled operation is known. If the list has
-- several records of one operation, the first may go on.
create or replace function pay_internal.lock_operations(p_records jsonb, p_found pay.admission[])
returns pay.admission[] language plpgsql volatile as $$
declare
  v_n integer;
begin
  for v_n in
    with
    requested as materialized (
      select r.n, r.operation_id, f.environment_id
      from unnest(p_found) f
      join jsonb_to_recordset(p_records) as r (n integer, operation_id text) on r.n = f.n
      where f.outcome = 'ok' and r.operation_id is not null
    ),
    operation as materialized (
      select a.n, c.id, c.state
      from requested a
      join pay.provider_operations c on c.environment_id = a.environment_id
        and c.id = a.operation_id
      order by c.environment_id, c.id
      for update of c
    )
    select a.n from requested a
    except
    select min(c.n) from operation c where c.state <> 'settled' group by c.id
  loop
    p_found[v_n].outcome := 'known';
  end loop;
  return p_found;
end $$;

-- Writes the results of the recorded records into their operations, and their responses under the
-- idempotency keys of the operations, where the request is still under way.
create or replace function pay_internal.write_operation_results(
  p_records jsonb, p_callers pay_internal.caller[]
) returns void language plpgsql volatile as $$
begin
  perform pay_internal.update_operations((
    select coalesce(
      jsonb_agg(r.operation
        || jsonb_build_object('environment_id', caller.environment_id, 'id', r.operation_id)),
      '[]')
    from unnest(p_callers) caller
    join jsonb_to_recordset(p_records) as r (n integer, operation_id text, operation jsonb)
      on r.n = caller.n
    where r.operation_id is not null and r.operation is not null
  ));
  with replied as materialized (
    select k.environment_id, k.api_key_id, k.key, r.status, r.body
    from unnest(p_callers) caller
    join jsonb_to_recordset(p_records) as r (n integer, operation_id text, status smallint,
      body text)
      on r.n = caller.n
    cross join lateral (
      select c.environment_id, c.api_key_id, c.idempotency_key, c.request_id
      from pay.provider_operations c
      where c.environment_id = caller.environment_id and c.id = r.operation_id limit 1
    ) c
    join pay.idempotency_keys k
      on k.environment_id = c.environment_id and k.api_key_id = c.api_key_id
      and k.key = c.idempotency_key and k.request_id = c.request_id
    where r.status is not null and k.status = 102
    order by k.environment_id, k.api_key_id, k.key
    for update of k
  )
  update pay.idempotency_keys k
  set status = a.status, body = a.body
  from replied a
  where k.environment_id = a.environment_id and k.api_key_id = a.api_key_id and k.key = a.key;
end $$;

-- Hands out again the provider events that nobody could match before an operation knew the
-- provider's id of its payment. p_operations: as pay_internal.update_operations takes it.
-- Concurrency: leaves out provider events that another transaction has locked, so it never waits.
create or replace function pay_internal.reopen_provider_events(p_operations jsonb)
returns void language plpgsql volatile as $$
begin
  with lost as materialized (
    select r.environment_id, c.account_id, f.reference
    from jsonb_to_recordset(p_operations) as r (environment_id text, id text,
      provider_reference text)
    cross join lateral (
      select c.account_id from pay.provider_operations c
      where c.environment_id = r.environment_id and c.id = r.id limit 1
    ) c
    cross join lateral (
      select f.reference from pay.provider_events f
      where f.provider_reference = r.provider_reference and f.account_id = c.account_id
        and f.environment_id = r.environment_id and f.outcome = 'unmatched'
      for update of f skip locked
    ) f
    where r.provider_reference is not null
  )
  update pay.provider_events f
  set outcome = null, exception = null, handled_at = null, leased_until = null,
    dismissed_at = null, dismissed_reason = null
  from lost l
  where f.environment_id = l.environment_id and f.account_id = l.account_id
    and f.reference = l.reference;
end $$;

-- Writes the results of attempts into operations that are not settled. Null leaves a column as it
-- is.
-- p_operations  [{environment_id, id, state, next_attempt_at, provider_reference, last_reply,
--          may_repeat, needs_operator}]; needs_operator is false if it is absent
-- Concurrency: locks the operations in the order of their ids. Ends their leases. Looks each up by
-- its whole key: without statistics a join could read every operation that is not settled.
create or replace function pay_internal.update_operations(p_operations jsonb)
returns void language plpgsql volatile as $$
begin
  with requested as materialized (
    select r.*
    from jsonb_to_recordset(p_operations) as r (
      environment_id text, id text, state text, next_attempt_at timestamptz,
      provider_reference text, last_reply text, may_repeat boolean, needs_operator boolean
    )
    order by r.environment_id collate "C", r.id collate "C"
  ),
  result as materialized (
    select a.*, coalesce(a.state, c.state) as new_state
    from requested a
    cross join lateral (
      select c.state from pay.provider_operations c
      where c.environment_id = a.environment_id and c.id = a.id limit 1
      for update of c
    ) c
    where c.state <> 'settled'
  )
  update pay.provider_operations c
  set state = r.new_state, leased_until = null,
    next_attempt_at = case when r.new_state = 'pending'
      then coalesce(r.next_attempt_at, c.next_attempt_at) end,
    provider_reference = coalesce(r.provider_reference, c.provider_reference),
    last_reply = coalesce(r.last_reply, c.last_reply),
    may_repeat = coalesce(r.may_repeat, c.may_repeat),
    needs_operator = coalesce(r.needs_operator, false),
    settled_at = case when r.new_state = 'settled' then pay_internal.server_time() end
  from result r
  where c.environment_id = r.environment_id and c.id = r.id;
  perform pay_internal.reopen_provider_events(p_operations);
end $$;
