-- Purpose: access

-- Notes that secrets are in use. Called when the last note is an hour old; a row that someone else
-- is noting is left to them, so no request waits here.
create or replace function pay.note_use(p_hashes bytea[], p_at timestamptz)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  update pay.api_key_secrets s
  set last_used_at = p_at
  from (
    select o.hash from pay.api_key_secrets o
    where o.hash = any (p_hashes)
      and o.revoked_at is null
      and (o.last_used_at is null or o.last_used_at < p_at - interval '1 hour')
    for update skip locked
  ) idle
  where s.hash = idle.hash;
end
$$;
comment on function pay.note_use is 'Internal.';

-- Opens the environments of the keys of a list of requests, [{key_hash}], for the rest of the
-- transaction: what row-level security then shows of all of them. Returns those that are open. One that is
-- being reset is not: its requests would hold up the others of the list. Keys are looked up again
-- afterwards, in a new snapshot; one whose environment is then not among these has to be asked again.
-- Concurrency: whoever reads or writes in a sandbox shares its advisory lock ('environment ' and its id), a reset
-- has it alone. Live environments are never reset, and nobody locks them.
create or replace function pay.open_environments(p_requests json)
returns text[]
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hashes bytea[];
  v_environments text[];
  v_is_idle boolean;
begin
  select array_agg(distinct decode(c.key_hash, 'hex')) into v_hashes
  from json_to_recordset(p_requests) as c (key_hash text);
  perform set_config('pay.key_hashes', v_hashes::text, true);
  select
    array_agg(e.environment_id) filter (
      where e.livemode or pg_try_advisory_xact_lock_shared(
        hashtextextended('environment ' || e.environment_id, 0))),
    bool_or(e.is_idle)
  into v_environments, v_is_idle
  from (
    select s.environment_id, s.livemode,
      bool_or(s.revoked_at is null
        and (s.last_used_at is null or s.last_used_at < now() - interval '1 hour')) as is_idle
    from pay.api_key_secrets s where s.hash = any (v_hashes)
    group by s.environment_id, s.livemode
  ) e;
  perform set_config('pay.environment_ids', coalesce(v_environments::text, ''), true);
  if v_is_idle then
    perform pay.note_use(v_hashes, now());
  end if;
  return coalesce(v_environments, '{}');
end
$$;
comment on function pay.open_environments is 'Internal.';

-- Opens the environment of one presented key for the rest of the transaction, and counts the request.
-- p_rate: {requests a second of the key, of the environment}; null: not limited, or counted
--   elsewhere.
-- p_hold: 'shared' prevents a reset of the sandbox until the transaction ends, so that each
-- statement
--   finds the data of the key in the same environment; 'alone' is the reset, which waits for all
--   transactions that share. Null: the caller only checks whether the key may.
-- outcome: ok | unauthorized (unknown, revoked or expired) | forbidden (the scope is missing) |
--          rate_limited | resetting (ask again soon).
-- remaining: requests that are left for now; null when not limited.
create or replace function pay.enter(
  p_key_hash text,
  p_scope text,
  p_at timestamptz,
  p_rate integer[],
  p_hold text,
  out outcome text,
  out api_key_id text,
  out environment_id text,
  out remaining integer
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off
as $$
declare
  v_hash bytea := decode(p_key_hash, 'hex');
  v_used_at timestamptz;
  v_livemode boolean;
  v_held text := '';
begin
  perform set_config('pay.key_hashes', array[v_hash]::text, true);
  loop
    select s.api_key_id, s.environment_id, s.last_used_at, s.livemode
    into api_key_id, environment_id, v_used_at, v_livemode
    from pay.api_key_secrets s
    where s.hash = v_hash
      and s.revoked_at is null
      and (s.expires_at is null or s.expires_at > p_at);
    -- Once more under the lock: a reset may have moved the key before.
    exit when api_key_id is null or v_livemode or p_hold is null or environment_id = v_held;
    v_held := environment_id;
    if p_hold = 'alone' then
      perform pg_advisory_xact_lock(hashtextextended('environment ' || v_held, 0));
    elsif not pg_try_advisory_xact_lock_shared(hashtextextended('environment ' || v_held, 0)) then
      -- Not waited for: a connection that waits is one that others have not.
      outcome := 'resetting';
      return;
    end if;
  end loop;
  if api_key_id is null then
    perform set_config('pay.environment_ids', '', true);
    outcome := 'unauthorized';
    return;
  end if;
  perform set_config('pay.environment_ids', array[environment_id]::text, true);
  outcome := case
    when p_scope is null then 'ok'
    when exists (
      select from pay.api_keys k
      where k.id = enter.api_key_id and (k.scopes is null or p_scope = any (k.scopes))
    ) then 'ok'
    else 'forbidden'
  end;
  if v_used_at is null or v_used_at < p_at - interval '1 hour' then
    perform pay.note_use(array[v_hash], p_at);
  end if;
  if p_rate is not null then
    remaining := pay.count_request(environment_id, api_key_id, p_at, p_rate, true);
    if remaining < 0 then
      outcome := 'rate_limited';
      remaining := 0;
    end if;
  end if;
end
$$;
comment on function pay.enter is 'Internal: authenticates a key hash and opens its environment.';

-- Operator: makes an environment. Raises unique_violation for a second live one of an account.
create or replace function pay.create_environment(p_id text, p_account text, p_livemode boolean, p_name text)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('pay.environment_ids', array[p_id]::text, true);
  insert into pay.environments (id, public_id, account, livemode, name)
  values (p_id, p_id, p_account, p_livemode, p_name);
end
$$;

-- The id that an environment has at the moment, by its public one; null if there is none. A sandbox
-- is not reset until the transaction ends. Internal.
create or replace function pay.hold_environment(p_public_id text)
returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_held text := '';
  v_environment record;
begin
  perform set_config('pay.worker', 'on', true);
  loop
    select e.id, e.livemode into v_environment from pay.environments e
    where e.public_id = p_public_id and e.retired_at is null;
    exit when v_environment.id is null or v_environment.livemode or v_environment.id = v_held;
    v_held := v_environment.id;
    perform pg_advisory_xact_lock_shared(hashtextextended('environment ' || v_held, 0));
  end loop;
  return v_environment.id;
end
$$;

-- Operator: makes an API key with its first secret. The key text itself never gets here.
-- p_environment_id: the public one.
-- Raises program_limit_exceeded if the environment has pay.max_live_keys() live keys.
create or replace function pay.create_api_key(
  p_id text,
  p_environment_id text,
  p_name text,
  p_scopes text[],
  p_secret_hash text,
  p_prefix text,
  p_last_four text,
  p_expires_at timestamptz
)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_environment text := pay.hold_environment(p_environment_id);
  v_livemode boolean;
begin
  perform set_config('pay.environment_ids', array[v_environment]::text, true);
  select livemode into v_livemode from pay.environments where id = v_environment;
  if v_livemode is null then
    raise exception 'no environment %', p_environment_id using errcode = 'foreign_key_violation';
  end if;
  if not pay.take_key_place(v_environment, now()) then
    raise exception 'environment % has % live keys already', p_environment_id, pay.max_live_keys()
      using errcode = 'program_limit_exceeded';
  end if;
  insert into pay.api_keys (id, environment_id, livemode, name, scopes, expires_at)
  values (p_id, v_environment, v_livemode, p_name, p_scopes, p_expires_at);
  insert into pay.api_key_secrets
    (hash, api_key_id, environment_id, livemode, prefix, last_four, expires_at)
  values
    (decode(p_secret_hash, 'hex'), p_id, v_environment, v_livemode, p_prefix, p_last_four, p_expires_at);
end
$$;

grant execute on function pay.create_environment(text, text, boolean, text) to pay_operator;
grant execute on function
  pay.create_api_key(text, text, text, text[], text, text, text, timestamptz) to pay_operator;
