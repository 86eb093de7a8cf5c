-- Purpose: the admission of requests, one mechanism for all entry functions (ADR 0037).
--
-- Each entry function takes its requests as a JSON list. Every request has
--   n                    its place in the list: 1, 2, 3 …
--   key_hash             lower-case hex SHA-256 of the presented key
--   scope                the scope that the operation needs; null if any key will do
--   at                   the time of the request
--   rate                 {requests a second of the key, of the environment}; 0 is no limit. Absent:
--                        not limited, or counted by an earlier call
--   request_id, idempotency_key, fingerprint
--                        null without an Idempotency-Key
--   request_line         method and path, stored with the idempotency key
--   status, body         the answer to store under the idempotency key
-- and the fields of its operation. A function that writes one request takes a list of one.
--
-- Order of precedence of the outcomes, for every entry function:
--   unauthorized         the key is unknown, revoked or expired, or its sandbox has ended
--   resetting            the sandbox is being reset: send the request again
--   rate_limited         except for a replay
--   forbidden            the key lacks the scope
--   expired, replay, rate_limited, conflict, in_progress
--                        the stored answer of the idempotency key
--   and then the outcomes of the operation.
-- Replays are never counted. Requests that are sent again (resetting, stale, expired) are not
-- counted either.
-- Concurrency: a request in a sandbox shares the sandbox's advisory lock ('environment ' and the
-- id) until the transaction ends. A reset holds that lock alone. Live environments have no such
-- lock, because they are never reset.

-- Records that secrets are in use. pay.admit calls it for secrets whose last_used_at is null or an
-- hour old. It skips rows that another transaction has locked, so no request waits here. Internal.
create or replace function pay.note_use(p_hashes bytea[], p_at timestamptz)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  update pay.api_key_secrets s
  set last_used_at = p_at
  from (
    select o.hash from pay.api_key_secrets o
    where o.hash = any (p_hashes)
      and (o.last_used_at is null or o.last_used_at < p_at - interval '1 hour')
    for update skip locked
  ) idle
  where s.hash = idle.hash;
end
$$;

-- Admits the requests of a list: finds the keys that they present, opens the environments of the
-- valid ones for row-level security until the transaction ends, records that they are in use, and
-- decides the outcome of each request as described above. Element n belongs to request n. Only this
-- function decides which key opens an environment. Internal.
-- p_hold     "shared": tries to share the lock of each sandbox. If that fails, the sandbox stays
--            closed and its requests do not wait, because they would block the connection.
--            "alone": waits for the lock. "none": takes no lock
-- p_is_read  true: looks for the stored answers of idempotency keys, and counts the requests.
--            false: pay.claim does both later
create or replace function pay.admit(p_requests json, p_hold text, p_is_read boolean)
returns pay.admission[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_found pay.admission[];
  v_hashes bytea[];
  v_ats timestamptz[];
  v_scopes text[];
  v_has_keys boolean;
  v_key_rates integer[];
  v_environment_rates integer[];
  v_api_keys text[];
  v_environments text[];
  v_opened text[];
  v_idle bytea[];
  v_set text;
begin
  select array_agg(decode(r.key_hash, 'hex') order by r.n), array_agg(r.at order by r.n),
    array_agg(r.scope order by r.n), bool_or(r.idempotency_key is not null),
    array_agg(r.rate[1] order by r.n), array_agg(r.rate[2] order by r.n)
  into v_hashes, v_ats, v_scopes, v_has_keys, v_key_rates, v_environment_rates
  from json_to_recordset(p_requests) as r (
    n integer, key_hash text, at timestamptz, scope text, idempotency_key text, rate integer[]);
  v_set := set_config('pay.key_hashes', v_hashes::text, true);
  select array_agg(s.api_key_id order by a.n), array_agg(s.environment_id order by a.n),
    array_agg(distinct s.environment_id) filter (where s.is_held),
    array_agg(s.hash) filter (
      where s.last_used_at is null or s.last_used_at < now() - interval '1 hour')
  into v_api_keys, v_environments, v_opened, v_idle
  from unnest(v_hashes, v_ats) with ordinality as a (hash, at, n)
  left join lateral (
    select s.*, s.livemode or case p_hold
        when 'shared' then pg_try_advisory_xact_lock_shared(
          hashtextextended('environment ' || s.environment_id, 0))
        when 'alone' then pg_advisory_xact_lock(
          hashtextextended('environment ' || s.environment_id, 0)) is not null
        else true
      end as is_held
    from pay.api_key_secrets s
    where s.hash = a.hash
      and s.revoked_at is null
      and (s.expires_at is null or s.expires_at > a.at)
      and (s.ends_at is null or s.ends_at > pay.server_time())
    limit 1
  ) s on true;
  v_set := set_config('pay.environment_ids', coalesce(v_opened, '{}')::text, true);
  -- A new snapshot under the locks. This statement does not find a key whose environment is not
  -- open, or which a reset has moved in the meantime.
  v_found := array(
    select row(a.n, case
        when a.api_key_id is null then 'unauthorized'
        when k.id is null then 'resetting'
        when a.scope is null or k.scopes is null or a.scope = any (k.scopes) then 'ok'
        else 'forbidden'
      end, a.api_key_id, a.environment_id, a.at, null, null, null)::pay.admission
    from unnest(v_scopes, v_ats, v_api_keys, v_environments) with ordinality
      as a (scope, at, api_key_id, environment_id, n)
    left join lateral (
      select k.id, k.scopes from pay.api_keys k
      where k.id = a.api_key_id and k.environment_id = a.environment_id limit 1
    ) k on true
    order by a.n);
  if v_idle is not null then
    perform pay.note_use(v_idle, now());
  end if;
  if p_is_read and v_has_keys then
    v_found := pay.find_answers(p_requests, v_found, true);
  end if;
  if 0 < any (v_key_rates) or 0 < any (v_environment_rates) then
    v_found := case
      when p_is_read then pay.limit_requests(v_found, v_key_rates, v_environment_rates, true)
      else pay.limit_writes(p_requests, v_found, v_key_rates, v_environment_rates)
    end;
  end if;
  return v_found;
end
$$;
