-- Purpose: files of banks. A file is imported whole or not at all: its entries and their provider
-- events are stored in one transaction, and the worker applies the events later (record.sql).

-- Begins the import of a file. Returns null if the file is new, else the result of its import.
-- Concurrency: the files of an account are imported one after the other, because the entries of one
-- are numbered after those of the others.
create or replace function pay.begin_bank_file(p_account_id text, p_sha256 text, p_name text)
returns json language plpgsql volatile security definer as $$
declare
  v_environment_id text;
begin
  perform pay_internal.act_as_worker();
  select a.environment_id into strict v_environment_id
  from pay.provider_accounts a where a.id = p_account_id;
  perform pay_internal.refuse_moving(v_environment_id);
  perform from pay.provider_cursors u where u.account_id = p_account_id for update;
  insert into pay.bank_files (environment_id, account_id, sha256, name, imported_at)
  values (v_environment_id, p_account_id, p_sha256, p_name, pay_internal.server_time())
  on conflict on constraint bank_files_pkey do nothing;
  if found then return null; end if;
  return (
    select f.result from pay.bank_files f
    where f.environment_id = v_environment_id and f.account_id = p_account_id
      and f.sha256 = p_sha256
  );
end $$;
grant execute on function pay.begin_bank_file to pay_operator;

-- Stores a part of a file, after pay.begin_bank_file. Returns the number of new entries.
-- p_rows {entries, statement, proves_balances, provider_events, checks, payers}, as the functions
--        take them that do each step. provider_events belong to no entry. proves_balances: whether
--        the statement ends here, and its entries come to the difference of its balances
create or replace function pay.store_bank_rows(p_account_id text, p_sha256 text, p_rows text)
returns bigint language plpgsql volatile security definer
set plan_cache_mode = force_generic_plan as $$
declare
  v_rows constant jsonb := p_rows;
  v_statement constant jsonb := nullif(v_rows -> 'statement', 'null');
  v_is_proven constant boolean := v_rows ->> 'proves_balances';
  v_entries jsonb;
  v_stored bigint;
begin
  perform pay_internal.act_as_worker();
  v_entries := pay_internal.number_bank_entries(p_account_id, p_sha256, v_rows -> 'entries',
    v_statement);
  perform pay_internal.confirm_bank_entries(p_account_id, p_sha256, v_entries);
  perform pay_internal.note_interim_file(p_account_id, p_sha256, v_entries);
  v_stored := pay_internal.store_bank_entries(p_account_id, p_sha256, v_entries);
  perform pay_internal.keep_payer_details(p_account_id, v_rows -> 'payers');
  perform pay.store_provider_events(p_account_id, v_rows ->> 'provider_events');
  perform pay_internal.note_payee_check(p_account_id, c)
  from jsonb_array_elements(v_rows -> 'checks') c;
  perform pay_internal.split_batch_totals(p_account_id, p_sha256,
    v_rows || jsonb_build_object('entries', v_entries));
  if v_is_proven then
    perform pay_internal.store_statement_balances(p_account_id, p_sha256,
      v_statement -> 'balances');
  end if;
  return v_stored;
end $$;
grant execute on function pay.store_bank_rows to pay_operator;

-- Ends the import of a file: stores what it counted, and the totals of the days of its entries.
-- Returns what is stored.
-- p_result {kind, complete_until, …} as the importer counts it. complete_until: the day up to which
--          its statements have every entry, or null. The books of these days are compared
--          (pay.invariant_provider_totals).
create or replace function pay.end_bank_file(p_account_id text, p_sha256 text, p_result text)
returns json language plpgsql volatile security definer as $$
declare
  v_complete_until constant date := p_result::jsonb ->> 'complete_until';
  v_environment_id text;
  -- Before their sums, which a join of the entries with themselves would compare each with each.
  v_days date[];
  v_pairs bigint;
  v_warnings jsonb;
  v_result jsonb := p_result;
begin
  perform pay_internal.act_as_worker();
  select a.environment_id into strict v_environment_id
  from pay.provider_accounts a where a.id = p_account_id;
  v_days := array(
    select o.booked_on from pay.bank_entries o
    where o.account_id = p_account_id and o.sha256 = p_sha256
    union
    select d.day::date
    from pay.bank_files f cross join jsonb_array_elements_text(f.result -> 'days') as d (day)
    where f.environment_id = v_environment_id and f.account_id = p_account_id
      and f.sha256 = p_sha256
  );
  v_pairs := pay_internal.pair_bank_entries(p_account_id, p_sha256, v_result ->> 'kind');
  v_warnings := pay_internal.unconfirmed_bank_entries(p_account_id, p_sha256, v_complete_until);
  if v_pairs > 0 then
    v_warnings := v_warnings || to_jsonb(format(
      'entries that another file has with another reference or other details: %s', v_pairs));
  end if;
  insert into pay.provider_totals as total (environment_id, account_id, day, currency,
    provider_minor, read_at)
  select v_environment_id, p_account_id, d.day, t.currency, t.sum_minor, pay_internal.server_time()
  from unnest(v_days) as d (day)
  cross join lateral (
    select b.currency, sum(b.amount_minor) as sum_minor from pay.bank_entries b
    where b.account_id = p_account_id and b.booked_on = d.day and b.same_as is null
    group by b.currency
  ) t
  on conflict on constraint provider_totals_pkey
    do update set provider_minor = excluded.provider_minor, read_at = excluded.read_at;
  if v_complete_until is not null then
    v_warnings := v_warnings || (
      select coalesce(jsonb_agg(u.detail), '[]') from pay_internal.unproven_balances u
      where u.account_id = p_account_id);
  end if;
  update pay.bank_files f set result = v_result || jsonb_build_object('warnings',
    v_result -> 'warnings' || coalesce(f.result -> 'warnings', '[]') || v_warnings)
  where f.environment_id = v_environment_id and f.account_id = p_account_id
    and f.sha256 = p_sha256
  returning f.result into v_result;
  update pay.provider_cursors u
  set totals_day = greatest(u.totals_day, v_complete_until),
    polled_at = pay_internal.server_time()
  where u.account_id = p_account_id and v_complete_until is not null;
  return v_result;
end $$;
grant execute on function pay.end_bank_file to pay_operator;

-- What the worker has made of the provider events of a file: how many wait for it, how many have
-- moved money in the ledger, and how many an operator has to look at.
create or replace function pay.bank_file_state(p_account_id text, p_sha256 text)
returns table (waiting bigint, booked bigint, exceptions bigint)
language plpgsql volatile security definer rows 1 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    -- The bounds are made here: under row policies no operator that can fail reaches an index.
    with entry as materialized (
      select b.id || ':' as low, b.id || ';' as high from pay.bank_entries b
      where b.sha256 = p_sha256 and b.account_id = p_account_id
      union all
      select b.id || ':', b.id || ';' from pay.bank_entries b
      where b.details_sha256 = p_sha256 and b.account_id = p_account_id
        and b.details_sha256 <> b.sha256
    )
    select count(*) filter (where event.outcome is null),
      count(*) filter (where event.booked_minor <> 0),
      count(*) filter (where event.exception is not null
        or event.outcome in ('exception', 'unmatched'))
    from pay.provider_accounts a
    join pay.bank_files f on f.environment_id = a.environment_id and f.account_id = a.id
      and f.sha256 = p_sha256
    cross join entry
    cross join lateral (
      select k.outcome, k.booked_minor, k.exception from pay.provider_events k
      where k.environment_id = a.environment_id and k.account_id = a.id
        and k.reference between entry.low and entry.high
        and k.received_at >= f.imported_at
      order by k.reference
      -- Keeps the order.
      offset 0
    ) event
    where a.id = p_account_id;
end $$;
grant execute on function pay.bank_file_state to pay_api, pay_operator;

-- Imports a file whose rows fit in one statement. Returns {is_new, result}: that of its import.
-- p_file {sha256, name, result, parts}. parts: p_rows of pay.store_bank_rows, in order
create or replace function pay.import_bank_file(p_account_id text, p_file text)
returns json language plpgsql volatile security definer as $$
declare
  v_file constant jsonb := p_file::jsonb - 'parts';
  v_sha256 constant text := v_file ->> 'sha256';
  v_known constant json := pay.begin_bank_file(p_account_id, v_sha256, v_file ->> 'name');
begin
  if v_known is not null then return json_build_object('is_new', false, 'result', v_known); end if;
  perform pay.store_bank_rows(p_account_id, v_sha256, part.value::text)
  from json_array_elements(p_file::json -> 'parts') part;
  return json_build_object('is_new', true, 'result',
    pay.end_bank_file(p_account_id, v_sha256, v_file ->> 'result'));
end $$;
grant execute on function pay.import_bank_file to pay_api;

-- The hash of the token of an account's bridge; null: it has none.
create or replace function pay.read_bridge_hash(p_account_id text)
returns text language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  return (
    select a.bridge_token_hash from pay.provider_accounts a
    where a.id = p_account_id and a.connector = 'bank'
  );
end $$;
grant execute on function pay.read_bridge_hash to pay_api;

-- Counts a request of a bridge as one of a live key of its account. Returns false if a limit is
-- reached.
-- p_key_rate, p_account_rate  as in pay_internal.limit_requests
create or replace function pay.count_bridge_request(
  p_account_id text, p_key_rate integer, p_account_rate integer
) returns boolean language plpgsql volatile security definer as $$
declare
  v_found pay.admission[];
begin
  perform pay_internal.act_as_worker();
  select array[jsonb_populate_record(null::pay.admission, jsonb_build_object('n', 1,
    'outcome', 'ok', 'api_key_id', a.id, 'environment_id', e.id, 'account', e.account,
    'livemode', e.livemode, 'at', pay_internal.server_time()))]
  into v_found
  from pay.provider_accounts a join pay.environments e on e.id = a.environment_id
  where a.id = p_account_id;
  v_found := pay_internal.limit_requests(v_found, array[p_key_rate], array[p_account_rate], true);
  return v_found[1].outcome = 'ok';
end $$;
grant execute on function pay.count_bridge_request to pay_api;

-- Operator: gives the bridge of an account a new token, by its hash. The former one opens nothing
-- any more. Returns false if there is no such account at a bank.
create or replace function pay.set_bridge_hash(p_account_id text, p_hash text) returns boolean
language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving_account(p_account_id);
  update pay.provider_accounts a set bridge_token_hash = p_hash
  where a.id = p_account_id and a.connector = 'bank';
  return found;
end $$;
grant execute on function pay.set_bridge_hash to pay_operator;
