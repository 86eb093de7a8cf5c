-- Purpose: the life of API keys: issue, rotate, revoke, list, by the operator's command for every
-- environment, and over HTTP by a key for its own sandbox.
--
-- No function here ever sees a key's text: only its hash, its shown prefix and its last four.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;


-- A key as JSON text, without the text of any secret.
create function pay.api_key_body(k pay.api_keys)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select row_to_json(t)::text from (
    select
      k.id,
      'api_key' as object,
      k.name,
      k.scopes,
      k.livemode,
      (
        select coalesce(json_agg(json_build_object(
          'prefix', s.prefix,
          'last4', s.last_four,
          'created_at', pay.wire_time(s.created_at),
          'expires_at', pay.wire_time(s.expires_at)
        ) order by s.created_at desc, s.hash), '[]'::json)
        from pay.api_key_secrets s
        where s.api_key_id = k.id and s.revoked_at is null
      ) as secrets,
      (
        select pay.wire_time(max(s.last_used_at)) from pay.api_key_secrets s where s.api_key_id = k.id
      ) as last_used_at,
      pay.wire_time(k.created_at) as created_at,
      pay.wire_time(k.revoked_at) as revoked_at
  ) t
$$;

-- Adds a secret to a key; those it had end at p_older_expire_at, if they do not sooner. A key that was
-- made to expire still does: the new secret lives no longer than the longest of the others. Internal.
create function pay.add_api_key_secret(
  p_id text,
  p_at timestamptz,
  p_secret_hash text,
  p_prefix text,
  p_last_four text,
  p_expires_at timestamptz,
  p_older_expire_at timestamptz
)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_expires_at timestamptz;
begin
  select case when bool_or(s.expires_at is null) then null else max(s.expires_at) end
  into v_expires_at
  from pay.api_key_secrets s
  where s.api_key_id = p_id and s.revoked_at is null;
  v_expires_at := least(p_expires_at, v_expires_at);
  update pay.api_key_secrets s
  set expires_at = least(coalesce(s.expires_at, p_older_expire_at), p_older_expire_at)
  where s.api_key_id = p_id and s.revoked_at is null;
  insert into pay.api_key_secrets
    (hash, api_key_id, environment_id, livemode, prefix, last_four, created_at, expires_at)
  select decode(p_secret_hash, 'hex'), k.id, k.environment_id, k.livemode, p_prefix, p_last_four,
    p_at, v_expires_at
  from pay.api_keys k where k.id = p_id;
end
$$;

-- Ends a key and all its secrets at once. Internal.
create function pay.end_api_key(p_id text, p_at timestamptz)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  update pay.api_keys k set revoked_at = coalesce(k.revoked_at, p_at) where k.id = p_id;
  update pay.api_key_secrets s set revoked_at = coalesce(s.revoked_at, p_at)
  where s.api_key_id = p_id;
end
$$;

-- Operator: every key, with its environment's public id.
create function pay.list_api_keys()
returns table (
  id text, environment_id text, account text, environment_name text, livemode boolean, name text,
  scopes text[], prefix text, last_four text, secrets integer, last_used_at timestamptz,
  created_at timestamptz, revoked_at timestamptz
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('pay.worker', 'on', true);
  return query
    select k.id, e.public_id, e.account, e.name, k.livemode, k.name, k.scopes, n.prefix,
      n.last_four, n.secrets, n.last_used_at, k.created_at, k.revoked_at
    from pay.api_keys k
    join pay.environments e on e.id = k.environment_id
    left join lateral (
      select (array_agg(s.prefix order by s.created_at desc))[1] as prefix,
        (array_agg(s.last_four order by s.created_at desc))[1] as last_four,
        (count(*) filter (where s.revoked_at is null
          and (s.expires_at is null or s.expires_at > now())))::integer as secrets,
        max(s.last_used_at) as last_used_at
      from pay.api_key_secrets s where s.api_key_id = k.id
    ) n on true
    order by e.account, e.public_id, k.id;
end
$$;

-- Operator: the public id of the environment of a mode of an account, or none. Of several sandboxes the
-- first.
create function pay.find_environment(p_account text, p_livemode boolean)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('pay.worker', 'on', true);
  return (
    select e.public_id from pay.environments e
    where e.account = p_account and e.livemode = p_livemode and e.retired_at is null
    order by e.public_id limit 1
  );
end
$$;

-- Operator: adds a secret to a key. False when there is no such key, or it is revoked.
create function pay.rotate_api_key(
  p_id text,
  p_secret_hash text,
  p_prefix text,
  p_last_four text,
  p_older_expire_at timestamptz
)
returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('pay.worker', 'on', true);
  perform from pay.api_keys k where k.id = p_id and k.revoked_at is null for update;
  if not found then
    return false;
  end if;
  perform pay.add_api_key_secret(
    p_id, now(), p_secret_hash, p_prefix, p_last_four, null, p_older_expire_at);
  return true;
end
$$;

-- Operator: ends a key. False when there is no such key, or it is revoked already.
create function pay.revoke_api_key(p_id text)
returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('pay.worker', 'on', true);
  perform from pay.api_keys k where k.id = p_id and k.revoked_at is null for update;
  if not found then
    return false;
  end if;
  perform pay.end_api_key(p_id, now());
  return true;
end
$$;

-- Over HTTP, for the caller's own environment: p_action is create, rotate or revoke.
-- p_secret is what stands for the new secret's text in the answer that is kept; p_scopes a JSON list
-- or null for all.
-- Outcomes: committed (body) | replay | conflict | expired | not_found | wider (the key would have, or
--           has, a scope that the caller lacks) | unauthorized | forbidden | rate_limited.
create function pay.change_api_key(
  p_key_hash text,
  p_scope text,
  p_at timestamptz,
  p_rate integer,
  p_request_id text,
  p_idempotency_key text,
  p_fingerprint text,
  p_status smallint,
  p_action text,
  p_id text,
  p_name text,
  p_scopes text,
  p_secret_hash text,
  p_prefix text,
  p_last_four text,
  p_expires_at timestamptz,
  p_older_expire_at timestamptz,
  p_secret text
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
  v_environment text;
  v_caller pay.api_keys;
  v_caller_expires_at timestamptz;
  v_key pay.api_keys;
  v_scopes text[];
begin
  select * into outcome, api_key_id, v_environment, remaining
  from pay.enter(p_key_hash, p_scope, p_at, 0, 'shared');
  if outcome = 'ok' then
    select * into outcome, remaining, status, body from pay.claim_idempotency_key(
      v_environment, api_key_id, p_at, p_rate, p_request_id, p_idempotency_key, p_fingerprint,
      p_status, '');
  end if;
  if outcome <> 'ok' then
    return next;
    return;
  end if;

  select * into v_caller from pay.api_keys k where k.id = change_api_key.api_key_id;
  -- Nothing that a secret makes outlives it.
  select least(p_expires_at, s.expires_at) into v_caller_expires_at
  from pay.api_key_secrets s where s.hash = decode(p_key_hash, 'hex');
  if p_action = 'create' then
    v_scopes := case when p_scopes is not null then
      array(select json_array_elements_text(p_scopes::json))
    end;
  else
    select * into v_key from pay.api_keys k
    where k.environment_id = v_environment and k.id = p_id and k.revoked_at is null
    for update;
    v_scopes := v_key.scopes;
  end if;
  outcome := case
    when p_action <> 'create' and v_key.id is null then 'not_found'
    -- Null is every scope.
    when v_caller.scopes is not null and (v_scopes is null or not v_scopes <@ v_caller.scopes)
      then 'wider'
    else 'committed'
  end;
  if outcome <> 'committed' then
    perform pay.release_idempotency_key(v_environment, api_key_id, p_request_id, p_idempotency_key);
    return next;
    return;
  end if;

  case p_action
    when 'create' then
      insert into pay.api_keys (id, environment_id, livemode, name, scopes, created_at)
      values (p_id, v_environment, v_caller.livemode, p_name, v_scopes, p_at);
      perform pay.add_api_key_secret(
        p_id, p_at, p_secret_hash, p_prefix, p_last_four, v_caller_expires_at, p_at);
    when 'rotate' then
      perform pay.add_api_key_secret(
        p_id, p_at, p_secret_hash, p_prefix, p_last_four, v_caller_expires_at, p_older_expire_at);
    when 'revoke' then
      perform pay.end_api_key(p_id, p_at);
  end case;
  select * into v_key from pay.api_keys k
  where k.environment_id = v_environment and k.id = p_id;
  body := pay.api_key_body(v_key);
  if p_secret is not null then
    body := left(body, -1) || ',"secret":' || to_json(p_secret)::text || '}';
  end if;
  perform pay.keep_answer(
    v_environment, api_key_id, p_request_id, p_idempotency_key, p_status, body);
  return next;
end
$$;

grant execute on function pay.list_api_keys() to pay_operator;
grant execute on function pay.find_environment(text, boolean) to pay_operator;
grant execute on function pay.rotate_api_key(text, text, text, text, timestamptz) to pay_operator;
grant execute on function pay.revoke_api_key(text) to pay_operator;
grant execute on function pay.change_api_key(
  text, text, timestamptz, integer, text, text, text, smallint, text, text, text, text, text, text,
  text, timestamptz, timestamptz, text) to pay_api;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
