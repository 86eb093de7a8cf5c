-- Purpose: the admission of requests, one mechanism for all entry functions (ADR 0003).
--
-- Each entry function takes its requests as a JSON list, or as the text of an array of
-- pay_internal.request, which PostgreSQL reads in a third of the time. Every request has
--   n                    its place in the list: 1, 2, 3 …
--   key_hash             lower-case hex SHA-256 of the presented key
--   is_payer             true: of the presented token of a checkout (checkout_payers.sql). Absent:
--                        of a key
--   scope                the scope that the operation needs; null if any key will do
--   version              the version of the sandbox's settings that the function knows; absent: it
--                        knows none (sandbox_settings.sql)
--   at                   the time of the request, by the clock of its environment
--   rate                 {requests a second of the key, of the account}; 0 is no limit. Absent:
--                        not limited, or counted by an earlier call
--   storage              [the gigabytes that the sandboxes of an account may store, the bytes that
--                        the request adds, its events]; only the first: the request adds nothing,
--                        as a reset, and is not refused. Absent: no limit
--   request_id, idempotency_key, fingerprint
--                        null without an Idempotency-Key
--   request_line         method and path, stored with the idempotency key
--   status, body         the response to store under the idempotency key
--   subject_id, sequence the payment, transfer or instrument of the request, and its sequence if the
--                        response is its text in place of a body; absent: none
-- and the fields of its operation. p_request of a function is always such a list of one.
--
-- Order of precedence of the outcomes, for every entry function:
--   unauthorized         the key is unknown, revoked or expired, or its sandbox has ended
--   resetting            the sandbox is being reset, or its account is about to leave for another
--                        cell: send the request again
--   outdated             the sandbox has other settings than the function knows: learn them from
--                        detail (null: none), decide again and send the request again
--   rate_limited         except for a replay
--   forbidden            the key lacks the scope
--   storage_full         the sandboxes of the account store too much (storage.sql); except for a
--                        replay
--   expired, replay, rate_limited, conflict, in_progress
--                        the stored response of the idempotency key
--   and then the outcomes of the operation.
-- Replays are never counted. Requests that are sent again (resetting, outdated, stale, expired) are
-- not counted either.
-- Concurrency: a request in a sandbox shares the sandbox's advisory lock ('environment ' and the
-- id) until the transaction ends. A reset holds that lock alone. Live environments have no such
-- lock, because they are never reset. A move to another cell (moves.sql) ends the transactions that
-- have begun before its fence.

-- Records that the secrets of admitted requests are in use: at the server's time, or at the time of
-- a sandbox with a clock of its own. Writes only if the last use is null or an hour old. Skips rows
-- that another transaction has locked, so no request waits here.
create or replace function pay_internal.note_use(p_hashes bytea[], p_found pay.admission[])
returns void language plpgsql volatile as $$
begin
  update pay.api_key_secrets s
  set last_used_at = idle.at
  from (
    select o.hash, u.at from pay.api_key_secrets o
    join (
      select p_hashes[f.n] as hash, max(now() + coalesce(f.ahead, '0')) as at
      from unnest(p_found) f
      where f.outcome not in ('unauthorized', 'outdated', 'resetting')
      group by 1
    ) u on u.hash = o.hash
    where o.last_used_at is null or o.last_used_at < u.at - interval '1 hour'
    for update of o skip locked
  ) idle
  where s.hash = idle.hash;
end $$;

-- Judges the requests of a list whose key had ended at the time of the request. If the function
-- does not know the settings of the key's sandbox, that time is wrong, so the outcome is outdated.
-- It reads the settings without a lock, and opens no environment for its caller.
-- p_hashes: of each request, as in pay_internal.admit
create or replace function pay_internal.judge_ended_keys(
  p_requests pay_internal.request[], p_found pay.admission[], p_hashes bytea[]
) returns pay.admission[] language plpgsql volatile as $$
declare
  v_opened constant text := current_setting('pay.environment_ids', true);
  v_ended record;
begin
  perform set_config('pay.environment_ids', array(
    select s.environment_id from unnest(p_found) f
    join pay.api_key_secrets s on s.hash = p_hashes[f.n]
    where f.outcome = 'unauthorized' and s.revoked_at is null and not s.livemode)::text, true);
  for v_ended in
    select f.n, s.environment_id, row_to_json(w)::text as detail
    from unnest(p_found) f
    join pay.api_key_secrets s on s.hash = p_hashes[f.n]
    left join pay.sandbox_settings w on w.environment_id = s.environment_id
    where f.outcome = 'unauthorized' and s.revoked_at is null and not s.livemode
      and p_requests[f.n].version is distinct from w.version
  loop
    p_found[v_ended.n].outcome := 'outdated';
    p_found[v_ended.n].detail := v_ended.detail;
  end loop;
  perform set_config('pay.environment_ids', v_opened, true);
  return p_found;
end $$;

-- The requests of a call.
create or replace function pay_internal.requests_of(p_requests text)
returns pay_internal.request[] language plpgsql stable as $$
begin
  if starts_with(p_requests, '{') then return p_requests; end if;
  return array(
    select r from jsonb_populate_recordset(null::pay_internal.request, p_requests::jsonb) r);
end $$;

-- Admits the requests of a list: finds the keys that they present, opens the environments of the
-- valid ones for row-level security until the transaction ends, records that they are in use, and
-- decides the outcome of each request as described above. Element n belongs to request n. Only this
-- function decides which key opens an environment, and pay_internal.admit_payers which token.
-- p_hold     "shared": tries to share the lock of each sandbox. If that fails, the sandbox stays
--            closed and its requests do not wait, because they would block the connection.
--            "alone": waits for the lock. "none": takes no lock
-- p_is_read  true: looks for the stored responses of idempotency keys, and counts the requests.
--            false: pay_internal.claim does both later
create or replace function pay_internal.admit(
  p_requests pay_internal.request[], p_hold text, p_is_read boolean, out admitted pay.admission[]
) language plpgsql volatile as $$
declare v_hashes bytea[]; v_key_rates integer[]; v_account_rates integer[];
  v_api_keys text[]; v_environments text[]; v_accounts text[]; v_livemodes boolean[];
  v_opened text[]; v_set text;
  v_has_keys boolean; v_is_idle boolean;
begin
  select array_agg(decode(r.key_hash, 'hex') order by r.n),
    bool_or(r.idempotency_key is not null),
    array_agg(r.rate[1] order by r.n), array_agg(r.rate[2] order by r.n)
  into v_hashes, v_has_keys, v_key_rates, v_account_rates
  from unnest(p_requests) r;
  v_set := set_config('pay.key_hashes', v_hashes::text, true);
  select array_agg(s.api_key_id order by a.n), array_agg(s.environment_id order by a.n),
    array_agg(s.account order by a.n), array_agg(s.livemode order by a.n),
    array_agg(distinct s.environment_id) filter (where s.is_held),
    bool_or(s.hash is not null and coalesce(s.last_used_at, '-infinity') < a.at - interval '1 hour')
  into v_api_keys, v_environments, v_accounts, v_livemodes, v_opened, v_is_idle
  from unnest(p_requests) a
  left join lateral (
    select s.*, s.livemode or case p_hold
        when 'shared' then pg_try_advisory_xact_lock_shared(
          hashtextextended('environment ' || s.environment_id, 0))
        when 'alone' then pg_advisory_xact_lock(
          hashtextextended('environment ' || s.environment_id, 0)) is not null
        else true end as is_held
    from pay.api_key_secrets s
    where s.hash = v_hashes[a.n] and s.revoked_at is null
      and (s.expires_at is null or s.expires_at > a.at)
      and (s.ends_at is null or s.ends_at > pay_internal.server_time()) limit 1
  ) s on true;
  v_set := set_config('pay.environment_ids', coalesce(v_opened, '{}')::text, true);
  -- A new snapshot under the locks, for the settings too. It does not find a key whose environment
  -- is not open, or which a reset has moved in the meantime.
  admitted := array(
    select row(a.n, case
        when v_api_keys[a.n] is null then 'unauthorized'
        when k.id is null then 'resetting'
        when a.version is distinct from k.version then 'outdated'
        when a.scope <> all (k.scopes) then 'forbidden'
        when not p_is_read and a.storage[2] is not null and k.stored_gb >= a.storage[1]
          then 'storage_full'
        else 'ok'
      end, v_api_keys[a.n], v_environments[a.n], v_accounts[a.n], v_livemodes[a.n], a.at, null,
      null, null,
      case when k.version > 0 then pay_internal.time_ahead(k.settings) end, case
        when a.version is distinct from k.version then row_to_json(k.settings) end,
      case when not p_is_read and a.storage[2] is not null then a.storage[2:3] end)::pay.admission
    from unnest(p_requests) a
    left join lateral (
      select k.id, k.scopes, e.stored_gb, w.version, w as settings from pay.api_keys k
      join pay.environments e on e.id = k.environment_id and (e.moving = 'draining') is not false
      left join pay.sandbox_settings w on w.environment_id = k.environment_id
      where k.id = v_api_keys[a.n] and k.environment_id = v_environments[a.n] limit 1
    ) k on true order by a.n);
  if array_position(v_api_keys, null) is not null then
    admitted := pay_internal.judge_ended_keys(p_requests, admitted, v_hashes);
    admitted := pay_internal.admit_payers(p_requests, admitted, p_hold, p_is_read);
  end if;
  if v_is_idle then perform pay_internal.note_use(v_hashes, admitted); end if;
  if p_is_read and v_has_keys then
    admitted := pay_internal.find_responses(p_requests, admitted, true);
  end if;
  if 0 < any (v_key_rates) or 0 < any (v_account_rates) then
    admitted := pay_internal.limit_list(
      p_requests, admitted, v_key_rates, v_account_rates, p_is_read);
  end if;
end $$;

-- The callers of the requests that may go on.
create or replace function pay_internal.callers_of(p_found pay.admission[])
returns pay_internal.caller[] language plpgsql immutable as $$
begin
  return array(
    select row(f.n, f.environment_id, f.api_key_id, f.ahead)::pay_internal.caller
    from unnest(p_found) f where f.outcome = 'ok' order by f.n);
end $$;

create or replace function pay_internal.admit_one(
  p_request text, p_hold text default 'shared', p_is_read boolean default false
) returns pay.admission language plpgsql volatile as $$
begin
  return (pay_internal.admit(pay_internal.requests_of(p_request), p_hold, p_is_read))[1];
end $$;

-- The access to a sandbox: an admitted request of a live environment has the outcome live.
create or replace function pay_internal.refuse_live(p_access pay.admission)
returns pay.admission language plpgsql stable as $$
begin
  if p_access.outcome = 'ok' and exists (
    select from pay.environments e where e.id = p_access.environment_id and e.livemode
  ) then
    p_access.outcome := 'live';
  end if;
  return p_access;
end $$;

-- Admits a single request that needs its sandbox alone.
create or replace function pay_internal.admit_alone(p_request text)
returns pay.admission language plpgsql volatile as $$
declare
  v_request jsonb := p_request::jsonb -> 0;
  v_access pay.admission;
begin
  -- Takes no lock, so that a caller without the right does not wait and delays nobody. A replay is
  -- never refused, so a caller at its limit does wait if its idempotency key has a stored response.
  v_access := pay_internal.admit_one(p_request, 'none');
  if v_access.outcome = 'ok' or (v_access.outcome = 'rate_limited' and exists (
    select from pay.idempotency_keys k
    where k.environment_id = v_access.environment_id and k.api_key_id = v_access.api_key_id
      and k.key = v_request ->> 'idempotency_key'
  )) then
    v_access := pay_internal.admit_one(p_request, 'alone');
  else
    -- Without a lock a key that another reset is moving can look like one that lacks the scope.
    v_access := pay_internal.admit_one(p_request, 'shared');
    if v_access.outcome = 'ok' then v_access.outcome := 'resetting'; end if;
  end if;
  return pay_internal.refuse_live(v_access);
end $$;
