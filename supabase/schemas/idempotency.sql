-- Purpose: the idempotency keys of requests, one by one and in lists. An operation claims the key
-- together with the response to store before it writes, and releases the key if it refuses.
--
-- Concurrency: a duplicate of a request waits at the unique index until the first transaction has
-- ended. It then finds the first response in a new snapshot, with a statement of its own. A
-- duplicate that waits longer than lock_timeout gets SQLSTATE 55P03.

-- The time for which a response is stored for replays, from the first request (contract §5).
create or replace function pay_internal.idempotency_retention()
returns interval language sql immutable parallel safe as $$ select interval '24 hours' $$;

-- Finds the stored responses of requests and sets their outcomes: replay (status, body), conflict
-- (another fingerprint), in_progress (an operation of a provider or a triggered attempt is under
-- way), expired (the response is over 24 hours old; this function deletes it, so the request can be
-- sent again).
-- p_is_read: true for a load. Then the function ignores responses that have expired, and triggered
--            attempts; the write that follows the load decides about them. An operation is not
--            ignored, because the loaded payment already shows its claim.
create or replace function pay_internal.find_responses(
  p_requests pay_internal.request[], p_found pay.admission[], p_is_read boolean
) returns pay.admission[] language plpgsql volatile as $$
declare
  v_now timestamptz := pay_internal.server_time();
  v_stored record;
begin
  -- Looked up one by one, by the whole key: without statistics a join would read all keys of the
  -- environment.
  for v_stored in
    with requested as materialized (
      select f.n, f.environment_id, f.api_key_id, f.outcome, r.kind, r.idempotency_key as key,
        decode(r.fingerprint, 'hex') as fingerprint,
        v_now + coalesce(f.ahead, '0') - pay_internal.idempotency_retention() as stored_since
      from unnest(p_found) f
      join unnest(p_requests) r on r.n = f.n
      where r.idempotency_key is not null
        and f.outcome not in ('unauthorized', 'resetting', 'outdated', 'forbidden')
        and (p_is_read or f.outcome <> 'ok')
    )
    select a.n, a.environment_id, a.api_key_id, a.key, a.stored_since, i.status, i.stored,
      case
        when i.created_at <= a.stored_since then 'expired'
        when i.fingerprint = a.fingerprint and i.status = 102 then 'in_progress'
        when i.fingerprint = a.fingerprint then 'replay'
        when a.outcome = 'rate_limited' then 'rate_limited'
        else 'conflict'
      end as outcome
    from requested a
    cross join lateral (
      select o.fingerprint, o.status, o.created_at, o as stored
      from pay.idempotency_keys o
      where o.environment_id = a.environment_id and o.api_key_id = a.api_key_id and o.key = a.key
      limit 1
    ) i
    where not (p_is_read
      and (i.status = 102 and a.kind = 'webhook_endpoints'
        or i.created_at <= a.stored_since))
    -- Expired responses are deleted in one order, so that two lists do not deadlock.
    order by a.api_key_id, a.key
  loop
    p_found[v_stored.n].outcome := v_stored.outcome;
    if v_stored.outcome = 'replay' then
      p_found[v_stored.n].status := v_stored.status;
      p_found[v_stored.n].body := pay_internal.response_body(v_stored.stored);
    elsif v_stored.outcome = 'expired' then
      delete from pay.idempotency_keys o
      where o.environment_id = v_stored.environment_id
        and o.api_key_id = v_stored.api_key_id
        and o.key = v_stored.key
        -- A duplicate may have claimed the key meanwhile. Its row is newer and stays.
        and o.created_at <= v_stored.stored_since;
    end if;
  end loop;
  return p_found;
end $$;

-- Claims the idempotency keys of the requests that are still "ok", with the responses to store, and
-- counts all requests. If another request has the key already, the outcome is that of the stored
-- response. The same holds for a request that was refused before (except unauthorized, resetting
-- and forbidden), because a replay comes before these refusals.
-- p_requests    subject_id: the payment, transfer or instrument of the request; null: none, or
--               p_subject_id. sequence: its response is the payment or transfer at it
create or replace function pay_internal.claim(
  p_requests pay_internal.request[], p_found pay.admission[], p_subject_id text default null
) returns pay.admission[] language plpgsql volatile as $$
declare
  v_now timestamptz := pay_internal.server_time();
  v_n integer;
  v_lost integer[];
  v_are_refused boolean;
  v_are_counted boolean;
begin
  with
  requested as materialized (
    select f.environment_id, f.api_key_id, f.ahead, r.*
    from unnest(p_found) f
    join unnest(p_requests) r on r.n = f.n
    where f.outcome = 'ok' and r.idempotency_key is not null
  ),
  claimed as (
    insert into pay.idempotency_keys
      (environment_id, api_key_id, key, fingerprint, request_id, request_line, status, body,
        subject_id, sequence, created_at)
    select a.environment_id, a.api_key_id, a.idempotency_key, decode(a.fingerprint, 'hex'),
      a.request_id, a.request_line, a.status, a.body, coalesce(a.subject_id, p_subject_id),
      a.sequence, v_now + coalesce(a.ahead, '0')
    from requested a
    order by a.api_key_id, a.idempotency_key, a.n
    on conflict on constraint idempotency_keys_pkey do nothing
    returning api_key_id, key, request_id
  )
  -- The lost keys are looked for only if there is one.
  select case when (select count(*) from requested) > (select count(*) from claimed) then (
      select array_agg(a.n) from requested a
      where not exists (
        select from claimed k
        where k.api_key_id = a.api_key_id and k.key = a.idempotency_key
          and k.request_id = a.request_id)
    ) else '{}' end,
    bool_or(f.outcome <> 'ok'), bool_or(f.remaining is not null or f.stored is not null)
  into v_lost, v_are_refused, v_are_counted
  from unnest(p_found) f;
  -- If no response is found below, another transaction has deleted it: the request is sent again.
  foreach v_n in array v_lost loop
    p_found[v_n].outcome := 'expired';
  end loop;
  if v_are_refused or v_lost <> '{}' then
    p_found := pay_internal.find_responses(p_requests, p_found, false);
  end if;
  if v_are_counted then p_found := pay_internal.count_requests(p_found); end if;
  return p_found;
end $$;

-- Claims the idempotency key of a single request that writes, and counts the request. p_subject_id:
-- the payment, transfer or instrument of the request; null: none.
create or replace function pay_internal.claim_one(
  p_request text, p_access pay.admission, p_subject_id text default null
) returns pay.admission language plpgsql volatile as $$
declare
  v_found pay.admission[] :=
    pay_internal.claim(pay_internal.requests_of(p_request), array[p_access], p_subject_id);
begin
  return v_found[1];
end $$;

-- Stores the response of a request under the key that the request has claimed. If p_access has no
-- status, the status of the claim stays.
create or replace function pay_internal.store_response(p_request text, p_access pay.admission)
returns void language plpgsql volatile as $$
declare
  v_request jsonb := p_request::jsonb -> 0;
begin
  update pay.idempotency_keys k
  set status = coalesce(p_access.status, k.status), body = p_access.body
  where k.environment_id = p_access.environment_id and k.api_key_id = p_access.api_key_id
    and k.key = v_request ->> 'idempotency_key' and k.request_id = v_request ->> 'request_id';
end $$;

-- Releases the key that a request has claimed, because its refusal is not stored.
create or replace function pay_internal.release_key(p_request text, p_access pay.admission)
returns void language plpgsql volatile as $$
declare
  v_request jsonb := p_request::jsonb -> 0;
begin
  delete from pay.idempotency_keys k
  where k.environment_id = p_access.environment_id and k.api_key_id = p_access.api_key_id
    and k.key = v_request ->> 'idempotency_key' and k.request_id = v_request ->> 'request_id';
end $$;

-- The stored response of an idempotency key; null if its resource is not written yet.
create or replace function pay_internal.response_body(p_key pay.idempotency_keys)
returns text language plpgsql stable as $$
begin
  return coalesce(p_key.body,
    pay_internal.text_at(p_key.environment_id, p_key.subject_id, p_key.sequence));
end $$;

-- The same of a key by its name.
create or replace function pay_internal.read_response(
  p_environment_id text, p_api_key_id text, p_key text
) returns text language plpgsql stable as $$
begin
  return (
    select pay_internal.response_body(k) from pay.idempotency_keys k
    where k.environment_id = p_environment_id and k.api_key_id = p_api_key_id and k.key = p_key);
end $$;

-- An idempotency key of an API key as JSON text, with its stored response; null if it is unknown or
-- over 24 hours old. While the first request is under way, status and body are null.
create or replace function pay_internal.idempotency_key_body(
  p_environment_id text, p_api_key_id text, p_key text
) returns text language sql stable as $$
  select row_to_json(t)::text from (
    select
      k.key,
      'idempotency_key' as object,
      k.request_id as first_request_id,
      split_part(k.request_line, ' ', 1) as method,
      split_part(k.request_line, ' ', 2) as path,
      nullif(k.status, 102) as status,
      pay_internal.wire_time(k.created_at) as created_at,
      pay_internal.wire_time(k.created_at + pay_internal.idempotency_retention()) as expires_at,
      k.replays,
      case when k.status <> 102 then pay_internal.response_body(k)::json end as body
    from pay.idempotency_keys k
    where k.environment_id = p_environment_id and k.api_key_id = p_api_key_id and k.key = p_key
      and k.created_at > pay_internal.environment_time(p_environment_id)
        - pay_internal.idempotency_retention()
  ) t
$$;

-- Deletes one batch of the idempotency keys of an environment that are older than a day.
create or replace function pay_internal.purge_idempotency_keys(
  p_environment_id text, p_at timestamptz, p_batch integer, out deleted bigint
) language plpgsql volatile as $$
begin
  delete from pay.idempotency_keys t
  where t.ctid = any (array(
    select o.ctid from pay.idempotency_keys o
    where o.environment_id = p_environment_id
      and o.created_at <= p_at - pay_internal.idempotency_retention()
      -- The predicate of the index.
      and o.created_at > '-infinity'
    order by o.created_at
    limit p_batch for update skip locked
  ));
  get diagnostics deleted = row_count;
end $$;
