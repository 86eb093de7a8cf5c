-- Purpose: the entry function that records the results of operations and provider events. Its
-- caller is the service itself, also after the API key of the request was revoked, so it takes no
-- key. It writes with the same functions as pay.commit.
--
-- Outcomes: recorded
--           stale (the payment or transfer is not at the expected sequence: load and decide again)
--           known (the operation is settled, a provider event to apply is applied already, or the
--           sandbox was reset: load and decide again, or do nothing)
-- A record that is stale or known writes nothing, except that it can store its new provider events
-- without an outcome, so that the worker handles them. A record is also stale if the ledger has
-- booked another amount for a provider event than the record expects (was_booked_minor).
--
-- Concurrency: the order of locks of commit.sql, with two more kinds: the sandbox's own lock,
-- payments by id, transfers by id, checkouts by id, operations by id, provider events by account and
-- reference, instruments, idempotency keys by key, the stripes of totals. Each kind is locked in a
-- statement of its own and read in a later one. So of two transactions that record the same provider
-- event or the same operation, the second one sees the result of the first, and one provider event
-- has one effect.

-- Opens the environments of the records. A record of a sandbox that was reset is known, and one of
-- an environment that has moved to another cell.
-- Concurrency: shares the lock of each sandbox, so no reset runs until the transaction ends.
create or replace function pay_internal.open_records(p_records jsonb)
returns pay.admission[] language plpgsql volatile as $$
declare
  v_environments constant text[] := array(
    select distinct r.environment_id from jsonb_to_recordset(p_records) as r (environment_id text));
begin
  perform set_config('pay.environment_ids', v_environments::text, true);
  perform pg_advisory_xact_lock_shared(hashtextextended('environment ' || e.id, 0))
  from (
    select o.id from pay.environments o
    where o.id = any (v_environments) and not o.livemode
    order by o.id
  ) e;
  return array(
    select row(r.n, case when e.id is null then 'known' else 'ok' end, null, r.environment_id,
      null, null, null, null, null, null, pay_internal.time_ahead(w), null, null)::pay.admission
    from jsonb_to_recordset(p_records) as r (n integer, environment_id text)
    left join pay.environments e on e.id = r.environment_id and e.retired_at is null
      and (e.moving is null or e.moving in ('draining', 'fenced'))
    left join pay.sandbox_settings w on w.environment_id = e.id
    order by r.n);
end $$;

-- p_document    pay_internal.document, without faults. The worker sends each operation after its
--               delay_ms
-- p_payments …  as pay.commit takes them
-- is_settled: the operation of the record is settled now. deliveries is the number of deliveries
-- that the whole list made due.
create or replace function pay.record(
  p_document text, p_payments text default null, p_transfers text default null,
  p_refunds text default null, p_disputes text default null, p_ledger text default null,
  p_events text default null
) returns table (n integer, outcome text, is_settled boolean, deliveries bigint)
language plpgsql volatile security definer rows 10
-- The planner expects a hundred rows from each list. While a table is small, it would then read the
-- whole table into a hash instead of looking up the few rows.
set enable_hashjoin = off set enable_bitmapscan = off set enable_mergejoin = off
set enable_material = off set lock_timeout = '3s' as $$
#variable_conflict use_column
declare
  v_lines constant text[] := string_to_array(p_document, E'\n');
  v_document constant pay_internal.document :=
    jsonb_populate_record(null::pay_internal.document, v_lines[1]::jsonb);
  v_records constant jsonb := v_document.records;
  v_found pay.admission[];
  v_callers pay_internal.caller[];
  v_moved integer[] := '{}';
  v_deliveries bigint := 0;
begin
  v_found := pay_internal.open_records(v_records);
  -- Most documents need only some of these steps.
  if v_document.expects is not null then
    v_moved := array(select e.n from jsonb_to_recordset(v_document.expects) as e (n integer));
    v_found := pay_internal.lock_subjects(v_document.expects, v_found);
  end if;
  if v_document.checkouts is not null then
    v_found := pay_internal.lock_checkouts(v_document.checkouts, v_found);
  end if;
  v_found := pay_internal.lock_operations(v_records, v_found);
  v_found := pay_internal.lock_provider_events(v_records, v_found);
  if v_document.reports is not null then
    v_found := pay_internal.check_transfers(v_document.reports, v_found);
  end if;

  if v_document.instruments is not null then
    perform pay_internal.lock_instruments(v_document.instruments, v_found);
  end if;

  v_callers := pay_internal.callers_of(v_found);
  if v_callers <> '{}' then
    perform pay_internal.handle_provider_events(v_records, v_document.expects, v_callers);
    if v_document.expects is not null then
      perform pay_internal.reopen_bank_entries(v_records, v_document.expects, v_callers);
    end if;
    perform pay_internal.write_operation_results(v_records, v_callers);
    if v_document.operations is not null then
      perform pay_internal.write_later_operations(
        v_document.operations, p_payments::pay_internal.payment_row[], v_callers);
    end if;
    v_deliveries := pay_internal.write_rows(v_document, v_lines, p_payments, p_transfers,
      p_refunds, p_disputes, p_ledger, v_callers, v_moved);
    if p_events is not null then
      v_deliveries := v_deliveries + pay_internal.write_events(
        p_events::pay_internal.event_row[], v_lines, v_callers);
    end if;
    if v_document.counts is not null then
      perform pay_internal.count_results(v_document.counts, v_callers);
    end if;
  end if;
  return query
    select f.n, case f.outcome when 'ok' then 'recorded' else f.outcome end,
      coalesce(c.state = 'settled', false), v_deliveries
    from unnest(v_found) f
    join jsonb_to_recordset(v_records) as r (n integer, operation_id text) on r.n = f.n
    left join lateral (
      select c.state from pay.provider_operations c
      where c.environment_id = f.environment_id and c.id = r.operation_id limit 1
    ) c on true;
end $$;
grant execute on function pay.record to pay_api, pay_operator;

-- A payment or transfer of an environment, a refund of it, the dispute that is the object of a
-- provider event, the amount that is booked for the event, and its transfers
-- (pay_internal.transfers_json); no row if there is no such payment or transfer.
create or replace function pay.read_provider_subject(
  p_environment_id text, p_subject_id text, p_refund_id text, p_account_id text, p_reference text,
  p_object_id text
) returns table (
  subject_body text, refund_body text, dispute_body text, booked_minor bigint, transfers json
) language plpgsql volatile security definer rows 1 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select coalesce(p.body, tr.body), r.body,
      pay_internal.dispute_body(e.id, p.id, p_object_id),
      coalesce(reported.booked_minor, 0),
      pay_internal.transfers_json(reported, p_subject_id)
    from (values (p_environment_id)) e (id)
    left join pay.payments p on p.environment_id = e.id and p.id = p_subject_id
    left join pay.transfers tr on tr.environment_id = e.id and tr.id = p_subject_id
    left join pay.refunds r on r.environment_id = e.id and r.id = p_refund_id
    left join pay.provider_events reported
      on reported.environment_id = e.id and reported.account_id = p_account_id
        and reported.reference = p_reference
    where coalesce(p.body, tr.body) is not null;
end $$;
grant execute on function pay.read_provider_subject to pay_api, pay_operator;
