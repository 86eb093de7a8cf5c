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
-- Concurrency: the order of locks of committing.sql, with two more kinds: the sandbox's own lock,
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

-- Locks the calls of the records. A record of a settled call is known. If the list has several
-- records of one call, the first may go on.
create or replace function pay_internal.lock_calls(p_records json, p_found pay.admission[])
returns pay.admission[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_n integer;
begin
  for v_n in
    with
    asked as materialized (
      select r.n, r.call_id, f.environment_id
      from unnest(p_found) f
      join json_to_recordset(p_records) as r (n integer, call_id text) on r.n = f.n
      where f.outcome = 'ok' and r.call_id is not null
    ),
    call as materialized (
      select a.n, c.id, c.state
      from asked a
      join pay.provider_calls c on c.environment_id = a.environment_id and c.id = a.call_id
      order by c.environment_id, c.id
      for update of c
    )
    select a.n from asked a
    except
    select min(c.n) from call c where c.state <> 'settled' group by c.id
  loop
    p_found[v_n].outcome := 'known';
  end loop;
  return p_found;
end
$$;

-- Stores and locks the facts of the records that are not stale. A record that applies a fact that
-- has been applied or ignored is known. An unmatched fact and a finding can still be applied. If
-- the list has several records that handle one fact, the first may go on.
create or replace function pay_internal.lock_facts(p_records json, p_found pay.admission[])
returns pay.admission[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- Without statistics any index of the environment looks as good as the primary key, and the planner
-- would read all its facts. Only the primary key has the order by reference; with "=" in place of
-- "between" the planner would need no order.
set enable_sort = off
as $$
declare
  v_refused record;
begin
  perform pay_internal.keep_facts((
    select coalesce(
      json_agg(t.fact::jsonb || jsonb_build_object('environment_id', f.environment_id,
        'body', t.fact::jsonb
          - array['outcome', 'finding', 'booked_minor', 'was_booked_minor', 'received_at',
            'is_elsewhere', 'follows_unmatched'])),
      '[]')
    from unnest(p_found) f
    join json_to_recordset(p_records) as r (n integer, facts json) on r.n = f.n
    cross join lateral (
      select e.retired_at from pay.environments e where e.id = f.environment_id limit 1
    ) e
    cross join json_array_elements(r.facts) as t (fact)
    where f.outcome <> 'stale' and e.retired_at is null
  ));
  for v_refused in
    with
    asked as materialized (
      select f.n, f.environment_id, o.account_id, o.reference, o.outcome,
        coalesce(o.was_booked_minor, 0) as was_booked_minor
      from unnest(p_found) f
      join json_to_recordset(p_records) as r (n integer, facts json) on r.n = f.n
      cross join json_to_recordset(r.facts) as o (
        account_id text, reference text, outcome text, was_booked_minor bigint)
      where f.outcome = 'ok'
      order by f.environment_id, o.account_id, o.reference
    ),
    locked as materialized (
      select a.n, a.outcome = 'applied' and l.outcome in ('applied', 'ignored') as is_known,
        a.outcome is not null and coalesce(l.outcome, 'unmatched') = 'unmatched'
          and l.booked_minor <> a.was_booked_minor
          or exists (
            select from asked b
            where b.n < a.n and b.environment_id = a.environment_id
              and b.account_id = a.account_id and b.reference = a.reference
              and b.outcome is not null and a.outcome is not null
              and (a.outcome <> 'finding' or b.outcome <> 'finding')
          ) as is_stale
      from asked a
      cross join lateral (
        select k.outcome, k.booked_minor from pay.provider_facts k
        where k.environment_id = a.environment_id and k.account_id = a.account_id
          and k.reference between a.reference and a.reference
        order by k.reference limit 1
        for update of k
      ) l
    )
    select l.n, case when bool_or(l.is_known) then 'known' else 'stale' end as outcome
    from locked l
    where l.is_known or l.is_stale
    group by l.n
  loop
    p_found[v_refused.n].outcome := v_refused.outcome;
  end loop;
  return p_found;
end
$$;

-- Writes the outcomes of the facts of the recorded records. An earlier outcome stays, unless the
-- fact was unmatched, or was a finding and is applied now.
create or replace function pay_internal.handle_facts(p_records json, p_found pay.admission[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- As in pay_internal.lock_facts.
set enable_sort = off
as $$
begin
  -- pay_internal.lock_facts has locked the facts, so none moves.
  with handled as materialized (
    select k.place, r.expects_id, o.*
    from unnest(p_found) f
    join json_to_recordset(p_records) as r (n integer, expects_id text, facts json) on r.n = f.n
    cross join json_to_recordset(r.facts) as o (
      account_id text, reference text, outcome text, finding text, booked_minor bigint,
      refund_id text, at timestamptz)
    cross join lateral (
      select k.ctid as place from pay.provider_facts k
      where k.environment_id = f.environment_id and k.account_id = o.account_id
        and k.reference between o.reference and o.reference
        and (k.outcome is null or k.outcome = 'unmatched'
          or k.outcome = 'finding' and o.outcome = 'applied')
      order by k.reference limit 1
    ) k
    where f.outcome = 'ok' and o.outcome is not null
  )
  update pay.provider_facts k
  set outcome = h.outcome, finding = h.finding, handled_at = pay_internal.server_time(),
    booked_minor = coalesce(h.booked_minor, 0), leased_until = null,
    -- The operator can match a fact with another subject than the one that it names.
    subject_id = coalesce(h.expects_id, k.subject_id),
    refund_id = coalesce(h.refund_id, k.refund_id),
    -- The answer of a call or a look has the time of the movement, which a notification lacks.
    happened_at = coalesce(h.at, k.happened_at),
    dismissed_at = null, dismissed_reason = null
  from handled h
  where k.ctid = h.place;
end
$$;

-- Writes the results of the recorded records into their calls, and their answers under the
-- idempotency keys of the calls, where the request is still under way.
create or replace function pay_internal.settle_calls(p_records json, p_found pay.admission[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pay_internal.update_calls((
    select coalesce(
      json_agg(r.call::jsonb
        || jsonb_build_object('environment_id', f.environment_id, 'id', r.call_id)),
      '[]')
    from unnest(p_found) f
    join json_to_recordset(p_records) as r (n integer, call_id text, call json) on r.n = f.n
    where f.outcome = 'ok' and r.call_id is not null and r.call is not null
  ));
  with answered as materialized (
    select k.environment_id, k.api_key_id, k.key, r.status, r.body
    from unnest(p_found) f
    join json_to_recordset(p_records) as r (n integer, call_id text, status smallint, body text)
      on r.n = f.n
    cross join lateral (
      select c.environment_id, c.api_key_id, c.idempotency_key, c.request_id
      from pay.provider_calls c
      where c.environment_id = f.environment_id and c.id = r.call_id limit 1
    ) c
    join pay.idempotency_keys k
      on k.environment_id = c.environment_id and k.api_key_id = c.api_key_id
      and k.key = c.idempotency_key and k.request_id = c.request_id
    where f.outcome = 'ok' and r.status is not null and k.status = 102
    order by k.environment_id, k.api_key_id, k.key
    for update of k
  )
  update pay.idempotency_keys k
  set status = a.status, body = a.body
  from answered a
  where k.environment_id = a.environment_id and k.api_key_id = a.api_key_id and k.key = a.key;
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
