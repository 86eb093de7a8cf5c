-- Purpose: create, rotate, revoke and list API keys. The operator's command does so for every
-- environment; over HTTP a key does so for its own sandbox.
--
-- No function here receives the text of a key, only its hash, its prefix and its last four
-- characters.

-- A key as JSON text, with the secrets that are valid at p_at. The texts of secrets are not in it.
-- A key also ends at a real time (api_key_limits.sql). It is shown by the clock of the sandbox, as
-- the other times of the key are.
create or replace function pay_internal.api_key_body(p_key pay.api_keys, p_at timestamptz)
returns text language sql stable as $$
  select row_to_json(t)::text from (
    select
      p_key.id,
      'api_key' as object,
      p_key.name,
      p_key.scopes,
      p_key.livemode,
      (
        select coalesce(json_agg(json_build_object(
          'prefix', s.prefix,
          'last4', s.last_four,
          'created_at', pay_internal.wire_time(s.created_at),
          'expires_at', pay_internal.wire_time(least(s.expires_at, s.ends_at + c.ahead))
        ) order by s.added_at desc, s.hash desc), '[]'::json)
        from pay.api_key_secrets s
        where s.api_key_id = p_key.id and s.revoked_at is null
          and (s.expires_at is null or s.expires_at > p_at)
          and (s.ends_at is null or s.ends_at > pay_internal.server_time())
      ) as secrets,
      (
        select pay_internal.wire_time(greatest(p_key.last_used_at, max(s.last_used_at)))
        from pay.api_key_secrets s where s.api_key_id = p_key.id
      ) as last_used_at,
      pay_internal.wire_time(p_key.created_at) as created_at,
      pay_internal.wire_time(least(p_key.expires_at, p_key.ends_at + c.ahead)) as expires_at,
      pay_internal.wire_time(p_key.revoked_at) as revoked_at
    from (
      select pay_internal.environment_time(p_key.environment_id)
        - pay_internal.server_time() as ahead
    ) c
  ) t
$$;

-- Adds a secret to a key. The new secret ends with the key. The older secrets expire at
-- p_older_expire_at or at their own expiry, whichever is earlier. If more than
-- pay_internal.max_live_secrets() would be live, the oldest expires now.
-- p_ahead: how far these times are ahead of the real time
-- Updates only rows that change. The caller has locked the row of the key.
create or replace function pay_internal.add_api_key_secret(
  p_id text, p_at timestamptz, p_secret_hash text, p_prefix text, p_last_four text,
  p_older_expire_at timestamptz, p_ahead interval
) returns void language plpgsql volatile as $$
begin
  update pay.api_key_secrets s
  set expires_at = least(s.expires_at, live.until), ends_at = least(s.ends_at, live.until - p_ahead)
  from (
    select o.hash, case
        when row_number() over (order by o.added_at desc, o.hash desc)
          >= pay_internal.max_live_secrets()
          then p_at
        else p_older_expire_at end as until
    from pay.api_key_secrets o
    where o.api_key_id = p_id and o.revoked_at is null
      and (o.expires_at is null or o.expires_at > p_at)
      and (o.ends_at is null or o.ends_at > pay_internal.server_time())
  ) live
  where s.hash = live.hash
    and (s.expires_at is null or s.expires_at > live.until
      or s.ends_at is null or s.ends_at > live.until - p_ahead);
  insert into pay.api_key_secrets
    (hash, api_key_id, environment_id, account, livemode, prefix, last_four, created_at, expires_at,
      ends_at)
  select decode(p_secret_hash, 'hex'), k.id, k.environment_id, e.account, k.livemode, p_prefix,
    p_last_four, p_at, k.expires_at, k.ends_at
  from pay.api_keys k
  join pay.environments e on e.id = k.environment_id
  where k.id = p_id;
  perform pay_internal.drop_ended_secrets(array[p_id], least(p_at, (
    select pay_internal.environment_time(k.environment_id) from pay.api_keys k where k.id = p_id
  )));
end $$;

-- Ends a key, all its secrets and all disposable sandboxes that it has made at once.
create or replace function pay_internal.end_api_key(p_id text, p_at timestamptz)
returns void language plpgsql volatile as $$
begin
  update pay.api_keys k set revoked_at = coalesce(k.revoked_at, p_at) where k.id = p_id;
  update pay.api_key_secrets s set revoked_at = coalesce(s.revoked_at, p_at)
  where s.api_key_id = p_id;
  perform pay_internal.end_sandboxes_of(p_id);
end $$;

-- Operator: creates an API key with its first secret. The caller passes the hash of the key and not
-- its text. p_environment_id: the public id. p_expires_at: a real time, which is as far away by the
-- clock of a sandbox.
-- Raises program_limit_exceeded if the environment has pay_internal.max_active_keys() active keys.
create or replace function pay.create_api_key(
  p_id text, p_environment_id text, p_name text, p_scopes text[], p_secret_hash text, p_prefix text,
  p_last_four text, p_expires_at timestamptz
) returns void language plpgsql volatile security definer as $$
declare
  v_environment text := pay_internal.hold_environment(p_environment_id);
  v_account text;
  v_livemode boolean;
  v_ends_at timestamptz;
  v_at timestamptz;
  v_expires_at timestamptz;
begin
  perform set_config('pay.environment_ids', array[v_environment]::text, true);
  select e.account, e.livemode, e.ends_at into v_account, v_livemode, v_ends_at
  from pay.environments e where e.id = v_environment;
  if v_livemode is null then
    raise exception 'no environment %', p_environment_id using errcode = 'foreign_key_violation';
  end if;
  v_at := pay_internal.environment_time(v_environment);
  if not pay_internal.take_key_quota(v_environment, v_at) then
    raise exception 'environment % has % active keys already',
      p_environment_id, pay_internal.max_active_keys()
      using errcode = 'program_limit_exceeded';
  end if;
  v_ends_at := least(v_ends_at, p_expires_at);
  v_expires_at := p_expires_at + (v_at - pay_internal.server_time());
  insert into pay.api_keys (id, environment_id, livemode, name, scopes, expires_at, ends_at)
  values (p_id, v_environment, v_livemode, p_name, p_scopes, v_expires_at, v_ends_at);
  insert into pay.api_key_secrets
    (hash, api_key_id, environment_id, account, livemode, prefix, last_four, expires_at, ends_at)
  values
    (decode(p_secret_hash, 'hex'), p_id, v_environment, v_account, v_livemode, p_prefix,
      p_last_four, v_expires_at, v_ends_at);
end $$;
grant execute on function pay.create_api_key to pay_operator;

-- Operator: every key, with its environment's public id. Its expiry is the real time at which it
-- ends, unless the clock of its sandbox is moved.
create or replace function pay.list_api_keys() returns table (
  id text, environment_id text, account text, environment_name text, livemode boolean, name text,
  scopes text[], prefix text, last_four text, secrets integer, last_used_at timestamptz,
  created_at timestamptz, expires_at timestamptz, revoked_at timestamptz
) language plpgsql volatile security definer rows 100 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select k.id, e.public_id, e.account, e.name, k.livemode, k.name, k.scopes, n.prefix,
      n.last_four, n.secrets, greatest(k.last_used_at, n.last_used_at), k.created_at,
      least(k.expires_at - c.ahead, k.ends_at), k.revoked_at
    from pay.api_keys k
    join pay.environments e on e.id = k.environment_id
    cross join lateral (
      select pay_internal.environment_time(k.environment_id) - pay_internal.server_time() as ahead
    ) c
    left join lateral (
      select (array_agg(s.prefix order by s.added_at desc, s.hash desc))[1] as prefix,
        (array_agg(s.last_four order by s.added_at desc, s.hash desc))[1] as last_four,
        (count(*) filter (where s.revoked_at is null
          and (s.expires_at is null or s.expires_at - c.ahead > now())
          and (s.ends_at is null or s.ends_at > now())))::integer as secrets,
        max(s.last_used_at) as last_used_at
      from pay.api_key_secrets s where s.api_key_id = k.id
    ) n on true
    order by e.account, e.public_id, k.id;
end $$;
grant execute on function pay.list_api_keys to pay_operator;

-- Operator: adds a secret to a key. Removes an expiry that has passed and keeps one in the future.
-- p_older_expire_at: a real time, as in pay.create_api_key.
-- Returns false if the key does not exist or is revoked. Raises program_limit_exceeded if an
-- expired key would exceed pay_internal.max_active_keys().
create or replace function pay.rotate_api_key(
  p_id text, p_secret_hash text, p_prefix text, p_last_four text, p_older_expire_at timestamptz
) returns boolean language plpgsql volatile security definer as $$
declare
  v_key pay.api_keys;
  v_at timestamptz;
  v_ahead interval;
begin
  perform pay_internal.act_as_worker();
  select * into v_key from pay.api_keys k where k.id = p_id and k.revoked_at is null for update;
  if v_key.id is null then return false; end if;
  perform pay_internal.refuse_moving(v_key.environment_id);
  v_at := pay_internal.environment_time(v_key.environment_id);
  v_ahead := v_at - pay_internal.server_time();
  if pay_internal.key_has_ended(v_key, v_at) then
    if not pay_internal.take_key_quota(v_key.environment_id, v_at) then
      raise exception 'the environment of % has % active keys already', p_id,
        pay_internal.max_active_keys()
        using errcode = 'program_limit_exceeded';
    end if;
    update pay.api_keys k
    set expires_at = null, ends_at = (
      select e.ends_at from pay.environments e where e.id = k.environment_id)
    where k.id = p_id;
  end if;
  perform pay_internal.add_api_key_secret(
    p_id, v_at, p_secret_hash, p_prefix, p_last_four, p_older_expire_at + v_ahead, v_ahead);
  return true;
end $$;
grant execute on function pay.rotate_api_key to pay_operator;

-- Operator: revokes a key. Returns false if the key does not exist or is already revoked.
create or replace function pay.revoke_api_key(p_id text) returns boolean
language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving(k.environment_id) from pay.api_keys k
  where k.id = p_id and k.revoked_at is null for update;
  if not found then return false; end if;
  perform pay_internal.end_api_key(p_id, now());
  return true;
end $$;
grant execute on function pay.revoke_api_key to pay_operator;

-- Decides whether a caller's key may create, rotate or revoke p_key. Returns committed, or an
-- outcome of pay.change_api_key: not_found | wider | ended | outlives | full. p_caller has no
-- environment if the sandbox of the new key has ended.
create or replace function pay_internal.judge_key_change(
  p_action text, p_caller pay.api_keys, p_key pay.api_keys, p_at timestamptz
) returns text language sql volatile as $$
  select case
    when p_key.id is null then 'not_found'
    when p_caller.environment_id is null then 'ended'
    -- Null is every scope.
    when p_caller.scopes is not null
      and (p_key.scopes is null or not p_key.scopes <@ p_caller.scopes) then 'wider'
    when p_action = 'rotate'
      and (p_key.revoked_at is not null or pay_internal.key_has_ended(p_key, p_at)) then 'ended'
    -- The caller learns the new secret, which must not outlive the caller's key.
    when p_action = 'rotate' and (p_caller.expires_at < coalesce(p_key.expires_at, 'infinity')
      or p_caller.ends_at < coalesce(p_key.ends_at, 'infinity')) then 'outlives'
    when p_action = 'create' and not pay_internal.take_key_quota(p_caller.environment_id, p_at)
      then 'full'
    else 'committed'
  end
$$;

-- Writes a change that pay_internal.judge_key_change permits, and returns the key as JSON text.
-- p_caller is the caller's key, p_ahead is how far its sandbox is ahead of the real time; the other
-- parameters are those of pay.change_api_key.
create or replace function pay_internal.write_key_change(
  p_caller pay.api_keys, p_key pay.api_keys, p_action text, p_at timestamptz, p_secret json,
  p_older_expire_at timestamptz, p_ahead interval
) returns text language plpgsql volatile as $$
begin
  if p_action = 'create' then
    insert into pay.api_keys
      (id, environment_id, livemode, name, scopes, created_at, expires_at, ends_at)
    values
      (p_key.id, p_caller.environment_id, p_caller.livemode, p_key.name, p_key.scopes, p_at,
        least(p_key.expires_at, p_caller.expires_at),
        least(p_key.expires_at - p_ahead, p_caller.ends_at));
  end if;
  if p_action = 'revoke' then
    perform pay_internal.end_api_key(p_key.id, p_at);
  else
    perform pay_internal.add_api_key_secret(
      p_key.id, p_at, p_secret ->> 'hash', p_secret ->> 'prefix', p_secret ->> 'last_four',
      coalesce(p_older_expire_at, p_at), p_ahead);
  end if;
  return (
    select pay_internal.api_key_body(k, p_at) from pay.api_keys k
    where k.environment_id = p_caller.environment_id and k.id = p_key.id
  );
end $$;

-- The last step of a request that changes a key: judges the change, writes it if it is permitted,
-- and stores the response. The parameters are those of pay_internal.write_key_change and of
-- pay.change_api_key.
create or replace function pay_internal.respond_key_change(
  p_request text, p_access pay.admission, p_caller pay.api_keys, p_key pay.api_keys, p_action text,
  p_at timestamptz, p_ahead interval, p_secret json, p_older_expire_at timestamptz, p_refusal text
) returns pay.admission language plpgsql volatile as $$
begin
  p_access.outcome := pay_internal.judge_key_change(p_action, p_caller, p_key, p_at);
  case p_access.outcome
    when 'ended' then
      p_access.status := 409;
      p_access.body := p_refusal;
    when 'committed' then
      p_access.body := pay_internal.write_key_change(
        p_caller, p_key, p_action, p_at, p_secret, p_older_expire_at, p_ahead);
      if p_secret is not null then
        p_access.body := left(p_access.body, -1) || ',"secret":'
          || to_json(p_secret ->> 'reference')::text || '}';
      end if;
    else
      perform pay_internal.release_key(p_request, p_access);
      return p_access;
  end case;
  perform pay_internal.store_response(p_request, p_access);
  return p_access;
end $$;

-- Creates, rotates or revokes a key in the caller's own environment. The service calls it. To
-- revoke a revoked key changes nothing.
-- p_action           create | rotate | revoke
-- p_key              for a create: {name, scopes, expires_at}; scopes is null for all
-- p_secret           {hash, prefix, last_four, reference} of a new secret; the reference replaces
--                    the secret's text in the stored response. Null for a revocation
-- p_older_expire_at  the latest expiry of the older secrets
-- p_refusal          the 409 to return and to store if the key to rotate has ended
-- Outcomes: those of admission.sql, and
--           committed (body)
--           not_found
--           wider (the key would have, or has, a scope that the caller lacks)
--           outlives (the caller's key ends before the key to rotate)
--           ended (the key to rotate is revoked or has expired)
--           full (the environment has pay_internal.max_active_keys() active keys).
create or replace function pay.change_api_key(
  p_request text, p_action text, p_id text, p_key text, p_secret text,
  p_older_expire_at timestamptz, p_refusal text
) returns pay.admission language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.claim_one(p_request, pay_internal.admit_one(p_request));
  v_caller pay.api_keys;
  v_key pay.api_keys;
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  select * into v_caller from pay.api_keys k where k.id = v_access.api_key_id;
  if p_action = 'create' then
    v_key := json_populate_record(null::pay.api_keys, p_key::json);
    v_key.id := p_id;
  else
    select * into v_key from pay.api_keys k
    where k.environment_id = v_access.environment_id and k.id = p_id
    for update;
  end if;
  return pay_internal.respond_key_change(
    p_request, v_access, v_caller, v_key, p_action, v_access.at, coalesce(v_access.ahead, '0'),
    p_secret::json, p_older_expire_at, p_refusal);
end $$;
grant execute on function pay.change_api_key to pay_api;
