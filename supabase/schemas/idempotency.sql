-- Purpose: the idempotency keys of requests that are written one by one: claimed before the work, kept
-- with its answer, or released with its refusal.

-- Claims the idempotency key of a request that is written one by one, with the answer to keep, and
-- counts the request unless it is a replay. remaining as in pay.commit.
-- outcome: ok | replay (status, body) | conflict | expired | rate_limited. Waits for a twin as
-- pay.commit does. Internal.
create or replace function pay.claim_idempotency_key(
  p_environment_id text,
  p_api_key_id text,
  p_at timestamptz,
  p_rate integer[],
  p_request_id text,
  p_key text,
  p_fingerprint text,
  p_status smallint,
  p_body text,
  out outcome text,
  out remaining integer,
  out status smallint,
  out body text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pay.server_time();
  v_kept record;
begin
  outcome := 'ok';
  if p_rate is not null then
    remaining := pay.count_request(p_environment_id, p_api_key_id, p_at, p_rate, false);
  end if;
  if p_key is not null and (remaining is null or remaining >= 0) then
    insert into pay.idempotency_keys
      (environment_id, api_key_id, key, fingerprint, request_id, status, body, created_at)
    values
      (p_environment_id, p_api_key_id, p_key, decode(p_fingerprint, 'hex'), p_request_id, p_status,
        p_body, v_now)
    on conflict on constraint idempotency_keys_pkey do nothing;
  end if;
  -- FOUND is of the insert; without one (the limit is reached) there is nothing new to find.
  if p_key is null or (found and (remaining is null or remaining >= 0)) then
    if remaining < 0 then
      outcome := 'rate_limited';
      remaining := 0;
    elsif remaining is not null then
      perform pay.add_requests(p_environment_id, p_api_key_id, p_at, 1);
    end if;
    return;
  end if;
  select k.fingerprint = decode(p_fingerprint, 'hex') as same, k.status, k.body, k.created_at
  into v_kept
  from pay.idempotency_keys k
  where k.environment_id = p_environment_id and k.api_key_id = p_api_key_id and k.key = p_key;
  if v_kept.created_at > v_now - pay.idempotency_retention() then
    if v_kept.same then
      outcome := 'replay';
      remaining := remaining + 1;
      status := v_kept.status;
      body := v_kept.body;
      return;
    end if;
    outcome := 'conflict';
  end if;
  if remaining < 0 then
    outcome := 'rate_limited';
    remaining := 0;
    return;
  end if;
  if outcome = 'conflict' then
    if remaining is not null then
      perform pay.add_requests(p_environment_id, p_api_key_id, p_at, 1);
    end if;
    return;
  end if;
  delete from pay.idempotency_keys k
  where k.environment_id = p_environment_id and k.api_key_id = p_api_key_id and k.key = p_key
    and k.created_at <= v_now - pay.idempotency_retention();
  outcome := 'expired';
end
$$;

-- Keeps the answer of a request under the key that it has claimed. Internal.
create or replace function pay.keep_answer(
  p_environment_id text,
  p_api_key_id text,
  p_request_id text,
  p_key text,
  p_status smallint,
  p_body text
)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  update pay.idempotency_keys k set status = p_status, body = p_body
  where k.environment_id = p_environment_id and k.api_key_id = p_api_key_id and k.key = p_key
    and k.request_id = p_request_id
$$;

-- Gives back the key that a request has claimed: its refusal is not kept. Internal.
create or replace function pay.release_idempotency_key(
  p_environment_id text,
  p_api_key_id text,
  p_request_id text,
  p_key text
)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  delete from pay.idempotency_keys k
  where k.environment_id = p_environment_id and k.api_key_id = p_api_key_id and k.key = p_key
    and k.request_id = p_request_id
$$;
