-- Purpose: the reset of a sandbox.

-- What a reset will have deleted, as its answer.
-- p_has_claim: the reset has a key in there itself, which is not counted.
-- Cost: reads each row once, in this process alone, and rests between tables as long as it has read, so
-- that others keep most of two processors (measured: 0.66 of their creates without the rests). ¾ s of
-- rests at most, and none once the statement has taken 2 s: the caller waits, and has a deadline.
-- Each table is counted as it is then: retention may delete what is over 30 days old in between.
create or replace function pay.sandbox_reset_body(p_environment_id text, p_has_claim boolean)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set max_parallel_workers_per_gather = 0
as $$
declare
  v_table text;
  v_began timestamptz;
  v_rest interval := '0';
  v_rests_left interval := '750 ms';
  v_count bigint;
  v_counts text[];
begin
  foreach v_table in array array['payments', 'refunds', 'transfers', 'ledger_entries', 'events',
    'webhook_deliveries', 'idempotency_keys']
  loop
    if v_rest > '5 ms' and clock_timestamp() < statement_timestamp() + interval '2 s' then
      perform pg_sleep_for(v_rest);
      v_rests_left := v_rests_left - v_rest;
    end if;
    v_began := clock_timestamp();
    execute format('select count(*) from pay.%I t where t.environment_id = $1', v_table)
    into v_count using p_environment_id;
    if v_table = 'idempotency_keys' and p_has_claim then
      v_count := v_count - 1;
    end if;
    v_counts := v_counts || format('"%s":%s', v_table, v_count);
    v_rest := least(clock_timestamp() - v_began, v_rests_left);
  end loop;
  return '{"object":"sandbox_reset","deleted":{' || array_to_string(v_counts, ',') || '}}';
end
$$;

-- Empties the sandbox of a key; keys and endpoints stay. They move to a new environment in a moment, and
-- retention deletes the old one, so that a reset costs little more than counting what there was. The
-- answer is kept under the idempotency key, which moves as well.
-- p_environment_id: the new one.
-- Outcomes: committed (body) | replay | conflict | expired | unauthorized | forbidden | rate_limited |
--           live | resetting (another is under way: send again soon).
-- Concurrency: alone in the environment: waits for those that share it, and they for it. The relay
-- does not ask: endpoints are locked before deliveries, deliveries by id, as it does.
create or replace function pay.reset_sandbox(
  p_key_hash text,
  p_scope text,
  p_at timestamptz,
  p_rate integer[],
  p_request_id text,
  p_idempotency_key text,
  p_fingerprint text,
  p_environment_id text
)
returns table (
  outcome text, api_key_id text, remaining integer, status smallint, body text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
as $$
#variable_conflict use_column
declare
  v_access record;
  v_old text;
  v_environment pay.environments;
begin
  -- Who may not is told so before anyone has to wait.
  select * into v_access from pay.enter(p_key_hash, p_scope, p_at, null, null);
  if v_access.outcome = 'ok' and p_rate is not null and pay.count_request(
      v_access.environment_id, v_access.api_key_id, p_at, p_rate, false) < 0
    -- A replay is never refused.
    and not exists (
      select from pay.idempotency_keys k
      where k.environment_id = v_access.environment_id and k.api_key_id = v_access.api_key_id
        and k.key = p_idempotency_key
    )
  then
    v_access.outcome := 'rate_limited';
    remaining := 0;
  elsif v_access.outcome = 'ok' then
    select * into v_access from pay.enter(p_key_hash, p_scope, p_at, null, 'alone');
  else
    -- Asked again where no other reset can come between two looks. If one had, this is sent again: who
    -- shares a lock cannot have it alone.
    select * into v_access from pay.enter(p_key_hash, p_scope, p_at, null, 'shared');
    if v_access.outcome = 'ok' then
      v_access.outcome := 'resetting';
    end if;
  end if;
  outcome := v_access.outcome;
  api_key_id := v_access.api_key_id;
  v_old := v_access.environment_id;
  if outcome = 'ok' and exists (
    select from pay.environments e where e.id = v_old and e.livemode
  ) then
    outcome := 'live';
  end if;
  if outcome = 'ok' then
    select * into outcome, remaining, status, body from pay.claim_idempotency_key(
      v_old, api_key_id, p_at, p_rate, p_request_id, p_idempotency_key, p_fingerprint,
      200::smallint, '');
  end if;
  if outcome <> 'ok' then
    return next;
    return;
  end if;

  perform from pay.webhook_endpoints t where t.environment_id = v_old order by t.id for update;
  outcome := 'committed';
  body := pay.sandbox_reset_body(v_old, p_idempotency_key is not null);
  -- After the count, which takes time: a turn of the relay may wait for these rows.
  perform from pay.webhook_deliveries d
  join pay.webhook_endpoints t on t.environment_id = v_old and t.id = d.endpoint_id
  where d.environment_id = v_old and d.status = 'pending'
  order by d.id for update of d;

  perform set_config('pay.environment_ids', array[v_old, p_environment_id]::text, true);
  update pay.environments e set retired_at = p_at where e.id = v_old
  returning * into v_environment;
  insert into pay.environments (id, public_id, account, livemode, name)
  values (p_environment_id, v_environment.public_id, v_environment.account, false, v_environment.name);
  update pay.api_keys t set environment_id = p_environment_id where t.environment_id = v_old;
  update pay.api_key_secrets t set environment_id = p_environment_id where t.environment_id = v_old;
  update pay.rate_counters t set environment_id = p_environment_id where t.environment_id = v_old;
  update pay.webhook_endpoints t set environment_id = p_environment_id
  where t.environment_id = v_old;
  -- Nothing more is sent of what is gone; an attempt under way ends by itself.
  delete from pay.webhook_deliveries d using pay.webhook_endpoints t
  where t.environment_id = p_environment_id and d.endpoint_id = t.id
    and d.environment_id = v_old and d.status = 'pending';
  update pay.idempotency_keys k
  set environment_id = p_environment_id, body = reset_sandbox.body
  where k.environment_id = v_old
    and k.api_key_id = v_access.api_key_id
    and k.key = p_idempotency_key;
  return next;
end
$$;

grant execute on function
  pay.reset_sandbox(text, text, timestamptz, integer[], text, text, text, text) to pay_api;
