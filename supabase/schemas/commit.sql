-- Purpose: the entry function that writes payments, refunds, disputes and transfers. The file
-- of each resource has the function that writes its rows.
--
-- pay.commit takes a list of changes and commits them in one statement: it admits the requests,
-- locks the rows that they change, claims their idempotency keys, and writes payments, refunds,
-- transfers, the ledger, events and deliveries. A change that is refused writes nothing and does
-- not affect the other changes of the list.
--
-- Outcomes: those of admission.sql, and
--           committed
--           stale (the payment or transfer is not at the expected sequence, the checkout of a new
--           payment not at the expected revision, the fault of the change
--           cannot happen any more, its instrument has changed, or another change of the list uses its
--           mandate: load and decide again)
--           insufficient (a new transfer is more than the available balance)
--           instrument (the instrument of a new payment does not allow it; detail says why)
--           uncounted (the sandbox has some pending deliveries, and the change would add some:
--           count them by pay.read_pending_quota, and send the change again with has_quota)
--           unconfigured (no provider is configured for the operation of the change)
--           undirected (no order could be written to the account of the payer of a refund;
--           pay_internal.check_refunds)
--           in_progress also while another operation of the payment has no result
--           (provider_operations.sql)
-- remaining: how many requests the rate limits of the key and of its account still allow, the
-- smaller of both. Null without a limit, and for changes that are sent or decided again (stale,
-- expired, resetting, uncounted).
--
-- Concurrency (READ COMMITTED). Order of locks: the sandbox's own lock (pay_internal.admit),
-- payments by id, transfers by id, checkouts by id, declared faults by id, the balances that new
-- transfers draw on, customers, mandates and instruments by id (pay_internal.check_instruments), then
-- idempotency keys by key, then the stripes of totals (pay_internal.record_movements). pay.record locks operations and provider events after transfers;
-- a commit waits for neither, because it only adds operations of payments and transfers that it has
-- locked or made. No transaction waits for one kind while it holds a later one, so commits do not
-- deadlock. A request that is refused at admission takes no row lock. Transfers out of one balance
-- queue: each sees the balance after the one before it. A concurrent duplicate of a keyed request
-- waits as idempotency.sql describes. A change of a payment waits for the row lock; if the sequence
-- is then another, the change is stale.

-- Locks the payments and transfers that the admitted changes expect at a sequence. p_expects:
-- [{n, id, sequence, is_erased}]. A change whose resource is at another sequence is stale, and one
-- that was decided with personal data that are erased. If the list has several changes of one
-- resource, the first is committed and the others are stale.
create or replace function pay_internal.lock_subjects(p_expects jsonb, p_found pay.admission[])
returns pay.admission[] language plpgsql volatile as $$
declare
  v_n integer;
begin
  for v_n in
    with
    requested as materialized (
      select e.n, e.id, e.sequence, coalesce(e.is_erased, false) as is_erased, f.environment_id
      from unnest(p_found) f
      join jsonb_to_recordset(p_expects)
        as e (n integer, id text, sequence integer, is_erased boolean) on e.n = f.n
      where f.outcome = 'ok'
    ),
    payment as materialized (
      select a.n, p.id
      from requested a
      join pay.payments p
        on p.environment_id = a.environment_id and p.id = a.id and p.sequence = a.sequence
        and p.is_erased = a.is_erased
      order by p.environment_id, p.id
      for update of p
    ),
    transfer as materialized (
      select a.n, tr.id
      from requested a
      join pay.transfers tr
        on tr.environment_id = a.environment_id and tr.id = a.id and tr.sequence = a.sequence
      order by tr.environment_id, tr.id
      for update of tr
    )
    select a.n from requested a
    except
    select min(x.n) from (select * from payment union all select * from transfer) x group by x.id
  loop
    p_found[v_n].outcome := 'stale';
  end loop;
  return p_found;
end $$;

-- Writes the rows of the committed changes, except operations and events. p_lines: the lines of the
-- document. p_callers: the callers of the committed changes. p_moved: the n of those that change a
-- payment or transfer. Returns the number of deliveries of instruments that have ended.
create or replace function pay_internal.write_rows(
  p_document pay_internal.document, p_lines text[], p_payments text, p_transfers text,
  p_refunds text, p_disputes text, p_ledger text, p_callers pay_internal.caller[],
  p_moved integer[]
) returns bigint language plpgsql volatile as $$
begin
  -- Most lists have only some kinds of rows.
  if p_payments is not null then
    perform pay_internal.write_payments(
      p_payments::pay_internal.payment_row[], p_lines, p_callers, p_moved);
  end if;
  if p_transfers is not null then
    perform pay_internal.write_transfers(
      p_transfers::pay_internal.transfer_row[], p_lines, p_callers, p_moved);
  end if;
  if p_refunds is not null then
    perform pay_internal.write_refunds(
      p_refunds::pay_internal.refund_row[], p_lines, p_callers);
  end if;
  if p_disputes is not null then
    perform pay_internal.write_disputes(
      p_disputes::pay_internal.dispute_row[], p_lines, p_callers);
  end if;
  if p_ledger is not null then
    perform pay_internal.record_movements(p_ledger::pay_internal.movement_row[], p_callers);
  end if;
  if p_document.checkouts is not null then
    perform pay_internal.write_checkouts(p_document.checkouts, p_callers);
  end if;
  if p_document.instruments is null then return 0; end if;
  return pay_internal.write_instruments(p_document.instruments, p_callers);
end $$;

-- p_document     pay_internal.document, without records, reports and counts
-- p_requests     as pay_internal.requests_of takes them. Without a body, the response is the body of
--                the payment or transfer
-- p_payments …   texts of arrays of pay_internal.payment_row and so on; null: none
-- p_patience_ms  how long the statement waits for a lock; null for the 3 s of a concurrent
--                duplicate
-- detail is JSON text for a change with an operation: {id, account, provider_reference, created_at,
-- reserved}, and for an outdated change its sandbox's settings. deliveries is the number of
-- deliveries that the whole list made due.
create or replace function pay.commit(
  p_document text, p_patience_ms integer, p_requests text, p_payments text default null,
  p_transfers text default null, p_refunds text default null, p_disputes text default null,
  p_ledger text default null, p_events text default null
) returns table (
  n integer, outcome text, api_key_id text, environment_id text, account text, livemode boolean,
  remaining integer, status smallint, body text, detail text, deliveries bigint
) language plpgsql volatile security definer rows 10 set search_path = pg_catalog, pg_temp
set enable_mergejoin = off set enable_material = off
-- During an old snapshot a bitmap would read all versions of a total since then.
set enable_bitmapscan = off
-- A concurrent duplicate waits for the first request for this time (contract §5).
set lock_timeout = '3s' as $$
#variable_conflict use_column
declare
  v_lines constant text[] := string_to_array(p_document, E'\n');
  v_document constant pay_internal.document :=
    jsonb_populate_record(null::pay_internal.document, v_lines[1]::jsonb);
  v_requests constant pay_internal.request[] := pay_internal.requests_of(p_requests);
  v_events constant pay_internal.event_row[] := p_events;
  v_found pay.admission[];
  v_callers pay_internal.caller[];
  v_moved integer[] := '{}';
  v_providers jsonb; v_details text[];
  v_deliveries bigint := 0;
begin
  if p_patience_ms is not null then
    perform set_config('lock_timeout', p_patience_ms::text, true);
  end if;
  v_found := pay_internal.admit(v_requests, 'shared', false);
  -- Most documents need only some of these steps.
  if v_document.expects is not null then
    v_moved := array(select e.n from jsonb_to_recordset(v_document.expects) as e (n integer));
    v_found := pay_internal.lock_subjects(v_document.expects, v_found);
  end if;
  if v_document.checkouts is not null then
    v_found := pay_internal.lock_checkouts(v_document.checkouts, v_found);
  end if;
  if v_document.operations is not null then
    select * into v_found, v_providers
    from pay_internal.find_providers(v_document.operations, v_found);
  end if;
  if v_document.faults is not null then
    v_found := pay_internal.lock_faults(v_document.faults, v_found);
  end if;
  if v_events is not null then
    v_found := pay_internal.find_uncounted(v_requests, v_events, v_found);
  end if;
  if p_transfers is not null then
    v_found := pay_internal.lock_funds(
      v_requests, p_transfers::pay_internal.transfer_row[], v_moved, v_found);
  end if;
  if p_refunds is not null then
    v_found := pay_internal.check_refunds(p_refunds::pay_internal.refund_row[], v_found);
  end if;
  if v_document.instruments is not null then
    v_found := pay_internal.check_instruments(
      v_requests, v_document.instruments, v_found);
  end if;
  v_found := pay_internal.claim(v_requests, v_found);

  v_callers := pay_internal.callers_of(v_found);
  -- A list of replays writes nothing: its rows are not even read.
  if v_callers <> '{}' then
    if v_document.operations is not null then
      v_details := pay_internal.write_operations(
        v_document.operations, v_providers, v_requests, v_found);
    end if;
    v_deliveries := pay_internal.write_rows(v_document, v_lines, p_payments, p_transfers,
      p_refunds, p_disputes, p_ledger, v_callers, v_moved);
    if v_document.faults is not null then
      perform pay_internal.count_faults(v_document.faults, v_callers);
    end if;
    if v_events is not null then
      v_deliveries := v_deliveries + pay_internal.write_events(v_events, v_lines, v_callers);
    end if;
  end if;
  return query
    select f.n, case f.outcome when 'ok' then 'committed' else f.outcome end, f.api_key_id,
      f.environment_id, f.account, f.livemode, f.remaining, f.status,
      -- A duplicate within the list: the resource of its response is written by now.
      case when f.outcome = 'replay' and f.body is null then pay_internal.read_response(
        f.environment_id, f.api_key_id, v_requests[f.n].idempotency_key)
        else f.body end,
      coalesce(v_details[f.n], f.detail), v_deliveries from unnest(v_found) f;
end $$;
grant execute on function pay.commit to pay_api;
