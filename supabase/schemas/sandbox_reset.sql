-- Purpose: the reset of a sandbox.

-- The maximum number of rows of a kind that a reset counts: a tenth of a second's work. A sandbox
-- with more returns this number (contract §5).
create or replace function pay_internal.most_counted()
returns integer language sql immutable parallel safe as $$ select 250000 $$;

-- The response to a reset: the number of rows of each kind that it deletes. p_with_endpoints: true
-- if the reset deletes the webhook endpoints too. p_has_claim: true if the reset has an idempotency
-- key itself; that key is not counted. Cost: reads each counted row once, without parallel workers.
-- After each table it rests for as long as the table took, so that other requests keep most of the
-- processors (ADR 0022). The rests last ¾ s at most, and end once the statement has taken 2 s,
-- because the caller waits and has a deadline. Each table has its own snapshot, so retention may
-- delete rows in between.
create or replace function pay_internal.sandbox_reset_body(
  p_environment_id text, p_with_endpoints boolean, p_has_claim boolean
) returns text language plpgsql volatile set max_parallel_workers_per_gather = 0 as $$
declare
  v_table text;
  v_began timestamptz;
  v_rest interval := '0';
  v_rests_left interval := '750 ms';
  v_count bigint;
  v_counts text[];
begin
  foreach v_table in array array['payments', 'refunds', 'transfers', 'ledger_entries', 'events',
    'webhook_deliveries', 'idempotency_keys', 'webhook_endpoints', 'instruments',
    'checkouts']
  loop
    if v_rest > '5 ms' and clock_timestamp() < statement_timestamp() + interval '2 s' then
      perform pg_sleep_for(v_rest);
      v_rests_left := v_rests_left - v_rest;
    end if;
    v_began := clock_timestamp();
    execute format(
      'select count(*) from (
         select from pay.%I t where t.environment_id = $1 and $2
         limit pay_internal.most_counted() + 1
       ) counted', v_table)
    into v_count using p_environment_id, v_table <> 'webhook_endpoints' or p_with_endpoints;
    if v_table = 'idempotency_keys' and p_has_claim then v_count := v_count - 1; end if;
    v_counts := v_counts || format('"%s":%s', v_table, least(v_count, pay_internal.most_counted()));
    v_rest := least(clock_timestamp() - v_began, v_rests_left);
  end loop;
  return '{"object":"sandbox_reset","deleted":{' || array_to_string(v_counts, ',') || '}}';
end $$;

-- Replaces an environment by a new one: moves its keys, rate counters, endpoints (unless
-- p_with_endpoints deletes them) and the list of its disposable sandboxes. Deletes a batch of its
-- pending deliveries. The others have no endpoint any more, so nothing more is sent: polls of the
-- dispatcher cancel them (ADR 0004). Attempts under way end by themselves.
create or replace function pay_internal.move_environment(
  p_old text, p_new text, p_at timestamptz, p_with_endpoints boolean
) returns void language plpgsql volatile as $$
declare
  v_was_worker boolean;
  v_environment pay.environments;
begin
  perform set_config('pay.environment_ids', array[p_old, p_new]::text, true);
  perform pay_internal.count_storage(p_old);
  update pay.environments e set retired_at = p_at where e.id = p_old
  returning * into v_environment;
  -- The account's other sandboxes are not open.
  v_was_worker := pay_internal.act_as_worker();
  insert into pay.environments
    (id, public_id, account, livemode, name, ends_at, merchant, stored_gb, resets_until)
  values (p_new, v_environment.public_id, v_environment.account, false, v_environment.name,
    v_environment.ends_at, v_environment.merchant, case when v_environment.stored_gb > 0
      then pay_internal.account_storage(v_environment.account, false, p_old) >> 30 else 0 end,
    greatest(v_environment.resets_until, pay_internal.server_time()) + pay_internal.reset_every());
  perform pay_internal.act_as_worker(v_was_worker);
  update pay.api_keys t set environment_id = p_new where t.environment_id = p_old;
  -- The clock of the sandbox is the real one again, so its keys were last used now at the latest.
  update pay.api_key_secrets t
  set environment_id = p_new, last_used_at = least(t.last_used_at, pay_internal.server_time())
  where t.environment_id = p_old;
  update pay.rate_counters t set environment_id = p_new where t.environment_id = p_old;
  update pay.sandboxes t set environment_id = p_new where t.environment_id = p_old;
  perform pay_internal.delete_pending(p_old);
  if p_with_endpoints then
    delete from pay.webhook_endpoints t where t.environment_id = p_old;
  else
    update pay.webhook_endpoints t set environment_id = p_new where t.environment_id = p_old;
  end if;
  perform pay_internal.restart_seeded(p_old, p_new);
end $$;

-- Deletes at most pay_internal.called_off_at_once() pending deliveries of the endpoints of an
-- environment that ends. Concurrency: skips those that another transaction has locked.
create or replace function pay_internal.delete_pending(p_environment_id text)
returns void language plpgsql volatile as $$
begin
  delete from pay.webhook_deliveries d
  where d.ctid = any (array(
    select o.place from pay.webhook_endpoints t
    -- The order makes it a scan of the index that ends at the limit.
    cross join lateral (
      select d.ctid as place from pay.webhook_deliveries d
      where d.endpoint_id = t.id and d.status = 'pending'
        and d.environment_id is not distinct from p_environment_id
      order by d.subject_id, d.sequence
      limit pay_internal.called_off_at_once() for update skip locked
    ) o
    where t.environment_id = p_environment_id
    limit pay_internal.called_off_at_once()
  ));
end $$;

-- Resets the sandbox of a key. Keys stay, and endpoints unless p_with_endpoints deletes them: they
-- move to a new environment, and retention deletes the rows of the old one later, so a reset costs
-- little more than the count (ADR 0022). The response is stored under the idempotency key, which
-- moves as well.
-- p_environment_id  the id of the new environment
-- Outcomes: those of admission.sql, with resetting also while another reset of the sandbox is under
--           way; committed (body) | live | too_often | waiting (pay_internal.judge_reset).
-- Concurrency: holds the lock of the sandbox alone, so it waits for requests that share it, and
-- other requests do not get it. The dispatcher takes no such lock. The reset locks endpoints as the
-- dispatcher does, before deliveries, and skips deliveries that another transaction has locked.
create or replace function pay.reset_sandbox(
  p_request text, p_environment_id text, p_with_endpoints boolean default false
) returns pay.admission language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_request jsonb := p_request::jsonb -> 0;
  v_old text;
  v_access pay.admission;
begin
  v_access := pay_internal.admit_alone(p_request);
  v_old := v_access.environment_id;
  v_access := pay_internal.claim_one(p_request, v_access);
  if v_access.outcome = 'ok' then
    v_access.outcome := pay_internal.judge_reset(v_old, v_request);
    if v_access.outcome <> 'ok' then
      perform pay_internal.release_key(p_request, v_access);
    end if;
  end if;
  if v_access.outcome <> 'ok' then return v_access; end if;

  v_access.outcome := 'committed';
  v_access.body := pay_internal.sandbox_reset_body(
    v_old, p_with_endpoints, v_request ->> 'idempotency_key' is not null);
  -- After the count, which takes time: a poll of the dispatcher may wait for this row.
  perform from pay.webhook_endpoints t where t.environment_id = v_old order by t.id for update;
  perform pay_internal.store_response(p_request, v_access);
  perform pay_internal.move_environment(
    v_old, p_environment_id, pay_internal.server_time(), p_with_endpoints);
  -- Kept for 24 hours from now by the new clock, which can be years behind the old one.
  update pay.idempotency_keys k
  set environment_id = p_environment_id,
    created_at = least(k.created_at, pay_internal.environment_time(p_environment_id))
  where k.environment_id = v_old and k.api_key_id = v_access.api_key_id
    and k.key = v_request ->> 'idempotency_key';
  return v_access;
end $$;
grant execute on function pay.reset_sandbox to pay_api;
