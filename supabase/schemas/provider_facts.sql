-- Purpose: facts, the reports of providers. Each fact is stored once, before it is applied
-- (provider_records.sql).

-- Stores facts that are not stored yet. Returns their number. A fact without a subject gets the
-- subject of the calls with the same object of the provider.
-- p_facts  [{environment_id, account_id, reference, op, state, subject_id, refund_id,
--          provider_reference, amount_minor, currency, at, body}]; body is the whole fact
-- Concurrency: inserts in the order of account and reference. A second transaction that stores the
-- same fact waits for the end of the first one.
create or replace function pay_internal.keep_facts(p_facts json)
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := pay_internal.server_time();
  v_kept bigint;
begin
  insert into pay.provider_facts (environment_id, account_id, reference, op, state, subject_id,
    refund_id, provider_reference, amount_minor, currency, happened_at, received_at, body)
  select f.environment_id, f.account_id, f.reference, f.op, f.state,
    coalesce(f.subject_id,
      pay_internal.find_fact_subject(f.environment_id, f.account_id, f.provider_reference)),
    f.refund_id, f.provider_reference, f.amount_minor, f.currency, f.at, v_now, f.body
  from json_to_recordset(p_facts) as f (
    environment_id text, account_id text, reference text, op text, state text, subject_id text,
    refund_id text, provider_reference text, amount_minor bigint, currency text, at timestamptz,
    body jsonb
  )
  order by f.environment_id, f.account_id, f.reference
  on conflict on constraint provider_facts_pkey do nothing;
  get diagnostics v_kept = row_count;
  return v_kept;
end
$$;

-- The subject of the calls with an object of the provider; null if there is none.
create or replace function pay_internal.find_fact_subject(
  p_environment_id text, p_account_id text, p_provider_reference text
)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select c.subject_id from pay.provider_calls c
  where c.provider_reference = p_provider_reference and c.account_id = p_account_id
    and c.environment_id = p_environment_id
  order by c.id limit 1
$$;

-- Whether an account has a call for a subject that can concern an object of the provider. Another
-- account, or another object that names the subject, must not settle it.
create or replace function pay_internal.has_fact_call(
  p_environment_id text, p_account_id text, p_subject_id text, p_provider_reference text
)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from pay.provider_calls c
    where c.environment_id = p_environment_id and c.subject_id = p_subject_id
      and c.account_id = p_account_id
      and (c.provider_reference is null or p_provider_reference is null
        or c.provider_reference = p_provider_reference)
  )
$$;

-- Stores the facts of a notification, poll or look. Returns the number of new facts. p_facts: a
-- list of facts as connectors make them. The worker applies them later.
create or replace function pay.store_facts(p_account_id text, p_facts text)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
begin
  perform set_config('pay.worker', 'on', true);
  return pay_internal.keep_facts((
    select coalesce(
      json_agg(f.value::jsonb || jsonb_build_object('environment_id', a.environment_id,
        'account_id', a.id, 'body', f.value::jsonb)),
      '[]')
    from pay.provider_accounts a
    cross join json_array_elements(p_facts::json) f
    where a.id = p_account_id
  ));
end
$$;
grant execute on function pay.store_facts(text, text) to pay_api;
