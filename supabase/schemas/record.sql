-- Purpose: the entry function that records the results of calls and the facts of providers. Its
-- caller is the service itself, also after the API key of the request was revoked, so it takes no
-- key. It writes with the same functions as pay.commit.
--
-- Outcomes: recorded
--           stale (the payment or transfer is not at the expected sequence: load and decide again)
--           known (the call is settled, a fact to apply is applied already, or the sandbox was
--           reset: load and decide again, or do nothing)
-- A record that is stale or known writes nothing, except that it can store its new facts without an
-- outcome, so that the worker handles them. A record is also stale if the ledger has booked another
-- amount for a fact than the record expects (was_booked_minor).
--
-- Concurrency: the order of locks of commit.sql, with two more kinds: the sandbox's own lock,
-- payments by id, transfers by id, calls by id, facts by account and reference, idempotency keys by
-- key, the stripes of totals. Each kind is locked in a statement of its own and read in a later
-- one. So of two transactions that record the same fact or the same call, the second one sees the
-- result of the first, and one fact has one effect.

-- Opens the environments of the records. A record of a sandbox that was reset is known.
-- Concurrency: shares the lock of each sandbox, so no reset runs until the transaction ends.
create or replace function pay_internal.open_records(p_records json)
returns pay.admission[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_environments constant text[] := array(
    select distinct r.environment_id from json_to_recordset(p_records) as r (environment_id text));
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
      null, null, null, null, null, null, pay_internal.time_ahead(w), null)::pay.admission
    from json_to_recordset(p_records) as r (n integer, environment_id text)
    left join pay.environments e on e.id = r.environment_id and e.retired_at is null
    left join pay.sandbox_settings w on w.environment_id = e.id
    order by r.n);
end
$$;

-- p_records  [{n, environment_id, call_id, call, facts, expects_id, expects_sequence, status,
--            body}]
--            call_id: the call with this result; null: none
--            call: {state, next_attempt_at, provider_reference, last_reply, may_repeat}, as
--            pay_internal.update_calls takes it; null: it stays as it is
--            facts: facts as connectors make them, with outcome, finding, booked_minor (the sum
--            of all movements for the fact) and was_booked_minor (the part that is booked already)
--            expects_id, expects_sequence: the payment or transfer that changes; null: none
--            expects_reports: the number of handled facts about the transfer of the first fact;
--            absent: any
--            expects_final_minor, with expects_reports: the sum of the payment's final transfers;
--            absent: any
--            status, body: the answer to store under the idempotency key of the call; null: none
--            did: the number of pay.sandbox_settings.did that counts this record; absent: none
-- p_payments, p_transfers, p_refunds, p_ledger, p_events, p_calls, p_disputes
--            as pay.commit takes them; the worker sends each call after its delay_ms
-- is_settled: the call of the record is settled now. deliveries is the number of deliveries that
-- the whole list made due.
create or replace function pay.record(
  p_records text,
  p_payments text,
  p_transfers text,
  p_refunds text,
  p_ledger text,
  p_events text,
  p_calls text,
  p_disputes text default '[]'
)
returns table (n integer, outcome text, is_settled boolean, deliveries bigint)
language plpgsql volatile security definer rows 10
set search_path = pg_catalog, pg_temp set jit = off
-- The planner expects a hundred rows from each list. While a table is small, it would then read the
-- whole table into a hash instead of looking up the few rows.
set enable_hashjoin = off set enable_bitmapscan = off
set enable_seqscan = off set enable_mergejoin = off set enable_material = off
set plan_cache_mode = force_generic_plan set lock_timeout = '3s'
as $$
#variable_conflict use_column
declare
  v_records constant json := p_records::json;
  v_moved constant integer[] := array(
    select r.n from json_to_recordset(v_records) as r (n integer, expects_id text)
    where r.expects_id is not null);
  v_found pay.admission[];
  v_won integer[];
  v_environments text[];
  v_deliveries bigint := 0;
begin
  v_found := pay_internal.open_records(v_records);
  v_found := pay_internal.lock_subjects(v_records, v_found);
  v_found := pay_internal.lock_calls(v_records, v_found);
  v_found := pay_internal.lock_facts(v_records, v_found);
  if strpos(p_records, '"expects_reports"') > 0 then
    v_found := pay_internal.check_transfers(v_records, v_found);
  end if;

  select array_agg(f.n), array_agg(f.environment_id) into v_won, v_environments
  from unnest(v_found) f where f.outcome = 'ok';
  if v_won is not null then
    perform pay_internal.handle_facts(v_records, v_found);
    -- Most lists of records need only some of these steps.
    if p_payments <> '[]' then
      perform pay_internal.write_payments(p_payments::json, v_won, v_environments, v_moved);
    end if;
    if p_transfers <> '[]' then
      perform pay_internal.write_transfers(p_transfers::json, v_won, v_environments, v_moved);
    end if;
    if p_refunds <> '[]' then
      perform pay_internal.write_refunds(p_refunds::json, v_won, v_environments);
    end if;
    if p_disputes <> '[]' then
      perform pay_internal.write_disputes(p_disputes::json, v_won, v_environments);
    end if;
    perform pay_internal.settle_calls(v_records, v_found);
    if p_calls <> '[]' then
      perform pay_internal.write_later_calls(p_calls::json, v_found);
    end if;
    if p_ledger <> '[]' then
      perform pay_internal.record_movements(p_ledger::json, v_won, v_environments);
    end if;
    if p_events <> '[]' then
      v_deliveries := pay_internal.write_events(p_events::json, v_found);
    end if;
    if strpos(p_records, '"did"') > 0 then
      perform pay_internal.count_results(v_records, v_found);
    end if;
  end if;
  return query
    select f.n, case f.outcome when 'ok' then 'recorded' else f.outcome end,
      coalesce(c.state = 'settled', false), v_deliveries
    from unnest(v_found) f
    join json_to_recordset(v_records) as r (n integer, call_id text) on r.n = f.n
    left join lateral (
      select c.state from pay.provider_calls c
      where c.environment_id = f.environment_id and c.id = r.call_id limit 1
    ) c on true;
end
$$;
grant execute on function pay.record(text, text, text, text, text, text, text, text)
  to pay_api, pay_operator;

-- A payment or transfer of an environment, a refund of it, the dispute of a fact, the amount that
-- is booked for the fact, and its transfers (pay_internal.transfers_json); no row if there is no
-- such payment or transfer.
create or replace function pay.read_provider_subject(
  p_environment_id text, p_subject_id text, p_refund_id text, p_account_id text, p_reference text
)
returns table (
  subject_body text, refund_body text, dispute_body text, booked_minor bigint, transfers json
)
language plpgsql volatile security definer rows 1
set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
begin
  perform set_config('pay.worker', 'on', true);
  return query
    select coalesce(p.body, t.body), r.body,
      pay_internal.dispute_body(e.id, p.id, split_part(p_reference, ':', 1)),
      coalesce(f.booked_minor, 0),
      case when f.reference is not null then pay_internal.transfers_json(f, p_subject_id) end
    from (values (p_environment_id)) e (id)
    left join pay.payments p on p.environment_id = e.id and p.id = p_subject_id
    left join pay.transfers t on t.environment_id = e.id and t.id = p_subject_id
    left join pay.refunds r on r.environment_id = e.id and r.id = p_refund_id
    left join pay.provider_facts f
      on f.environment_id = e.id and f.account_id = p_account_id and f.reference = p_reference
    where coalesce(p.body, t.body) is not null;
end
$$;
grant execute on function pay.read_provider_subject(text, text, text, text, text)
  to pay_api, pay_operator;
