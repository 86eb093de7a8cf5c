-- Written by "deno task schema" from supabase/schemas: do not edit.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;
set check_function_bodies = off;

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

create or replace function pay_internal.requests_of(p_requests text)
returns pay_internal.request[] language plpgsql stable as $$
begin
  if starts_with(p_requests, '{') then return p_requests; end if;
  return array(
    select r from jsonb_populate_recordset(null::pay_internal.request, p_requests::jsonb) r);
end $$;

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

create or replace function pay_internal.max_active_keys()
returns integer language sql immutable parallel safe as $$ select 100 $$;

create or replace function pay_internal.max_live_secrets()
returns integer language sql immutable parallel safe as $$ select 5 $$;

create or replace function pay_internal.key_has_ended(p_key pay.api_keys, p_at timestamptz)
returns boolean language sql stable as $$
  select coalesce(p_key.expires_at <= p_at, false)
    or coalesce(p_key.ends_at <= pay_internal.server_time(), false)
$$;

create or replace function pay_internal.delete_keys(p_ids text[], out deleted bigint)
language plpgsql volatile as $$
begin
  delete from pay.api_key_secrets s where s.api_key_id = any (p_ids);
  delete from pay.api_keys k where k.id = any (p_ids);
  get diagnostics deleted = row_count;
end $$;

create or replace function pay_internal.take_key_quota(p_environment_id text, p_at timestamptz)
returns boolean language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('keys ' || p_environment_id, 0));
  if (
    select count(*) from pay.api_keys k
    where k.environment_id = p_environment_id and k.revoked_at is null
      and not pay_internal.key_has_ended(k, p_at)
  ) >= pay_internal.max_active_keys() then
    return false;
  end if;
  -- Skips rows that a rotation has locked, because the rotation may wait for this lock.
  perform pay_internal.delete_keys(array(
    select k.id from pay.api_keys k
    where k.id in (
      select o.id from pay.api_keys o
      where o.environment_id = p_environment_id and not o.livemode
        and (o.revoked_at is not null
          or pay_internal.key_has_ended(
            o, least(p_at, pay_internal.environment_time(p_environment_id))))
      order by least(o.revoked_at, o.expires_at, o.ends_at) desc, o.id desc
      offset 1000
    )
    for update skip locked
  ));
  return true;
end $$;

create or replace function pay_internal.drop_ended_secrets(
  p_ids text[], p_at timestamptz, out deleted bigint
) language plpgsql volatile as $$
begin
  with gone as (
    delete from pay.api_key_secrets s
    where s.api_key_id = any (p_ids)
      and (s.expires_at <= p_at or s.ends_at <= pay_internal.server_time())
      and exists (
        select from pay.api_key_secrets newer
        where newer.api_key_id = s.api_key_id
          and (newer.created_at, newer.hash) > (s.created_at, s.hash)
      )
    returning s.api_key_id, s.last_used_at
  ),
  noted as (
    update pay.api_keys k set last_used_at = g.last_used_at
    from (
      select gone.api_key_id, max(gone.last_used_at) as last_used_at from gone group by 1
    ) g
    where k.id = g.api_key_id and g.last_used_at is not null
      and (k.last_used_at is null or k.last_used_at < g.last_used_at)
  )
  select count(*) into deleted from gone;
end $$;

create or replace function pay_internal.purge_keys(
  p_environment_id text, p_at timestamptz, p_batch integer
) returns bigint language plpgsql volatile as $$
declare
  v_at timestamptz := least(p_at, pay_internal.environment_time(p_environment_id));
  v_rows bigint;
  v_total bigint;
begin
  v_total := pay_internal.drop_ended_secrets(array(
    select k.id from pay.api_keys k
    where k.environment_id = p_environment_id and exists (
      select from pay.api_key_secrets s
      where s.api_key_id = k.id
        and (s.expires_at <= v_at or s.ends_at <= pay_internal.server_time())
        and exists (
          select from pay.api_key_secrets newer
          where newer.api_key_id = k.id and (newer.created_at, newer.hash) > (s.created_at, s.hash)
        )
    )
    limit p_batch for update skip locked
  ), v_at);

  v_total := v_total + pay_internal.delete_keys(array(
    select k.id from pay.api_keys k
    where k.environment_id = p_environment_id and not k.livemode
      and least(k.revoked_at, k.expires_at) <= v_at - interval '30 days'
    limit p_batch for update skip locked
  ));

  update pay.webhook_endpoints t
  set secrets = (
    select json_agg(s.source order by s.n)
    from json_array_elements(t.secrets) with ordinality as s (source, n)
    where (s.source ->> 'expires_at' is null or (s.source ->> 'expires_at')::timestamptz > v_at)
      and (s.source ->> 'ends_at' is null
        or (s.source ->> 'ends_at')::timestamptz > pay_internal.server_time())
  )
  where t.id in (
    select o.id from pay.webhook_endpoints o
    where o.environment_id = p_environment_id and exists (
      select from json_array_elements(o.secrets) as s (source)
      where (s.source ->> 'expires_at')::timestamptz <= v_at
        or (s.source ->> 'ends_at')::timestamptz <= pay_internal.server_time()
    )
    for update skip locked
  ) and t.environment_id = p_environment_id;
  get diagnostics v_rows = row_count;
  return v_total + v_rows;
end $$;

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

create or replace function pay_internal.end_api_key(p_id text, p_at timestamptz)
returns void language plpgsql volatile as $$
begin
  update pay.api_keys k set revoked_at = coalesce(k.revoked_at, p_at) where k.id = p_id;
  update pay.api_key_secrets s set revoked_at = coalesce(s.revoked_at, p_at)
  where s.api_key_id = p_id;
  perform pay_internal.end_sandboxes_of(p_id);
end $$;

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

create or replace function pay.list_archives(p_account text) returns table (
  environment_id text, account text, archived_until timestamptz, next_day timestamptz,
  last_day text, last_sha256 text
) language plpgsql volatile security definer rows 10 as $$
begin
  perform pay_internal.act_as_worker();
  return query
  select e.id, e.account, u.archived_until, coalesce(
    u.archived_until,
    date_trunc('day', least(pay_internal.server_time() - interval '8 days', (
      select o.created_at from pay.events o where o.environment_id = e.id order by o.id limit 1
    )), 'UTC')
  ), to_char((a.archived_until at time zone 'UTC') - interval '1 day', 'YYYY-MM-DD'), a.last_sha256
  from pay.environments e
  left join pay.archives a on a.environment_id = e.id
  cross join lateral (select case when not a.is_ended then a.archived_until end) u (archived_until)
  where e.livemode and (p_account is null or e.account = p_account)
  order by e.id;
end $$;
grant execute on function pay.list_archives to pay_operator;

create or replace function pay.read_archive(
  p_environment_id text, p_kind text, p_from timestamptz, p_before timestamptz, p_after text,
  p_limit integer
) returns table (id text, line text) language plpgsql volatile security definer rows 100 as $$
declare
  v_prefix constant text := case p_kind when 'events' then 'evt_' else 'whd_' end;
  v_before constant text := pay_internal.id_floor(v_prefix, p_before);
  -- The next text after an id in the collation of ids.
  v_from constant text := coalesce(p_after || chr(1), pay_internal.id_floor(v_prefix, p_from));
begin
  perform set_config('pay.environment_ids', array[p_environment_id]::text, true);
  if p_kind = 'events' then
    return query select o.id, pay_internal.event_body(o) from pay.events o
    where o.environment_id = p_environment_id and o.id >= v_from and o.id < v_before
    order by o.id limit p_limit;
  else
    return query select d.id, json_build_object(
      'id', d.id, 'event_id', d.event_id, 'event_type', d.event_type,
      'endpoint_id', d.endpoint_id, 'subject_id', d.subject_id, 'status', d.status,
      'attempts', d.attempts, 'created_at', pay_internal.wire_time(d.created_at)
    )::text
    from pay.webhook_deliveries d
    where d.environment_id = p_environment_id and d.id >= v_from and d.id < v_before
    order by d.id limit p_limit;
  end if;
end $$;
grant execute on function pay.read_archive to pay_operator;

create or replace function pay.sum_archive(
  p_environment_id text, p_from timestamptz, p_before timestamptz
) returns table (currency text, debit_account text, credit_account text, amount_minor text)
language plpgsql volatile security definer rows 10 as $$
begin
  perform set_config('pay.environment_ids', array[p_environment_id]::text, true);
  return query
  select m.currency, m.debit_account, m.credit_account, sum(m.amount_minor)::text
  from pay.ledger_movements m
  where m.environment_id = p_environment_id
    and m.transaction_id >= pay_internal.id_floor('txn_', p_from)
    and m.transaction_id < pay_internal.id_floor('txn_', p_before)
  group by 1, 2, 3 order by 1, 2, 3;
end $$;
grant execute on function pay.sum_archive to pay_operator;

create or replace function pay.note_archive(
  p_environment_id text, p_until timestamptz, p_sha256 text
) returns void language plpgsql volatile security definer as $$
declare
  v_until timestamptz;
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving(p_environment_id);
  insert into pay.archives as a (environment_id, archived_until, last_sha256)
  select e.id, p_until, p_sha256 from pay.environments e
  where e.id = p_environment_id and e.livemode
  on conflict (environment_id) do update set
    archived_until = excluded.archived_until, last_sha256 = excluded.last_sha256, is_ended = false
    where a.archived_until <= excluded.archived_until or a.is_ended
  returning a.archived_until into v_until;
  if v_until is null or p_until > pay_internal.server_time() - interval '7 days' then
    raise check_violation using
      message = 'an archive grows, of a live environment, by days that ended a week ago';
  end if;
end $$;
grant execute on function pay.note_archive to pay_operator;

create or replace function pay.end_archive(p_environment_id text) returns boolean
language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving(p_environment_id);
  update pay.archives a set is_ended = true
  where a.environment_id = p_environment_id and not a.is_ended;
  return found;
end $$;
grant execute on function pay.end_archive to pay_operator;

create or replace function pay_internal.split_batch_totals(
  p_account_id text, p_sha256 text, p_rows jsonb
) returns void language plpgsql volatile as $$
declare
  v_batches text[];
  v_total record;
begin
  -- An earlier file can have an entry without the id of its batch.
  update pay.bank_entries b set batch_id = e.batch_id, batch_minor = e.batch_minor
  from (
    select k.place, n.batch ->> 'id' as batch_id, (n.batch ->> 'sum_minor')::bigint as batch_minor
    from pay.provider_accounts a
    cross join jsonb_to_recordset(p_rows -> 'entries') as n (id text, batch jsonb)
    cross join lateral (
      select b.ctid as place from pay.bank_entries b
      where b.environment_id = a.environment_id and b.account_id = a.id
        and b.id between n.id and n.id and b.batch_id is null
      order by b.id offset 0
    ) k
    where a.id = p_account_id and n.batch ->> 'id' is not null
  ) e
  where b.ctid = e.place;
  v_batches := array(
    select e.batch ->> 'id' from jsonb_to_recordset(p_rows -> 'entries') as e (batch jsonb)
    where e.batch ->> 'id' is not null
    union
    select place.id
    from pay.provider_accounts a
    cross join jsonb_to_recordset(p_rows -> 'provider_events') as r (
      subject_id text, refund_id text)
    join pay.bank_orders o on o.environment_id = a.environment_id
      and o.owner_id = coalesce(r.refund_id, r.subject_id)
    cross join lateral (values (o.batch_id), (replace(o.export_id, '_', '-'))) as place (id)
    where a.id = p_account_id
  );
  for v_total in
    select b.id, abs(b.amount_minor) as amount_minor, b.batch_minor, o.ids, o.sum_minor
    from pay.bank_entries b
    cross join lateral (
      select array_agg(f.id) as ids, sum(f.amount_minor) as sum_minor
      from pay.find_bank_orders(p_account_id, b.batch_id) f
      where f.is_open and f.state = 'exported' and f.currency = b.currency
        and (f.kind = 'collection') = (b.amount_minor > 0)
    ) o
    where b.batch_id = any (v_batches) and b.account_id = p_account_id
      and b.details_sha256 is null and b.same_as is null
      and o.sum_minor in (abs(b.amount_minor), b.batch_minor)
    order by b.id
  loop
    perform pay_internal.book_as_orders(p_account_id, p_sha256, event.reference, v_total.ids)
    from pay.provider_accounts a
    join pay.provider_events event on event.environment_id = a.environment_id
      and event.account_id = a.id
      and event.reference between v_total.id || ':0:' and v_total.id || ':0;'
    where a.id = p_account_id;
  end loop;
end $$;

create or replace function pay_internal.book_as_orders(
  p_account_id text, p_sha256 text, p_reference text, p_order_ids text[]
) returns boolean language plpgsql volatile as $$
declare
  v_event pay.provider_events;
  v_part text;
  v_orders jsonb;
  v_charge bigint;
begin
  update pay.provider_events event
  set body = jsonb_set(event.body, '{bank,is_replaced}', 'true'), outcome = null, handled_at = null,
    exception = null, leased_until = null, dismissed_at = null, dismissed_reason = null
  from pay.provider_accounts a
  where a.id = p_account_id and event.environment_id = a.environment_id
    and event.account_id = a.id and event.reference = p_reference
    and (event.op = 'adjustment' and coalesce(event.outcome, 'unmatched') = 'unmatched'
      or event.op = 'payout' and coalesce(event.outcome, 'applied') = 'applied')
    and event.body -> 'bank' ? 'entry' and not event.body -> 'bank' ? 'is_replaced'
  returning event.* into v_event;
  if not found then return false; end if;
  v_part := (v_event.body ->> 'object_id') || ':' || (v_event.body #>> '{bank,entry,part}');
  select jsonb_agg(jsonb_build_object('reference', v_part || '.' || o.place,
      'op', case o.kind when 'collection' then 'authorize' else o.kind end,
      'state', case when o.is_back then 'returned' else 'succeeded' end,
      'failure_code', case when o.is_back then 'bank_return' end,
      'refund_id', case o.kind when 'refund' then o.id end,
      'provider_reference', replace(o.id, '_', '-'), 'amount_minor', o.amount_minor)),
    (v_event.amount_minor - sum(o.amount_minor))
      * case v_event.state when 'succeeded' then 1 else -1 end
  into v_orders, v_charge
  from (
    select s.id, s.kind, s.amount_minor, row_number() over (order by s.id) as place,
      (s.kind = 'collection') <> (v_event.state = 'returned') as is_back
    from pay_internal.bank_orders_shown s
    where s.environment_id = v_event.environment_id and s.id = any (p_order_ids)
  ) o;
  if v_charge <> 0 then
    v_orders := v_orders || jsonb_build_object('reference', v_part || '.0:CHRG',
      'op', 'account_fee', 'state', case when v_charge > 0 then 'succeeded' else 'returned' end,
      'amount_minor', abs(v_charge));
  end if;
  update pay.bank_entries b set details_sha256 = coalesce(p_sha256, b.sha256)
  where b.environment_id = v_event.environment_id and b.account_id = p_account_id
    and b.id = v_event.body ->> 'object_id' and b.details_sha256 is null;
  perform pay_internal.keep_provider_events((
    select jsonb_agg(event.body || jsonb_build_object('environment_id', v_event.environment_id,
      'body', event.body))
    from jsonb_array_elements(v_orders) o
    cross join lateral (
      select (v_event.body - 'reason') #- '{bank,is_replaced}' || o as body
    ) event
  ));
  return true;
end $$;

create or replace function pay.split_bank_entry(
  p_account_id text, p_reference text, p_order_ids text[], p_fee_minor bigint
) returns boolean language plpgsql volatile security definer as $$
declare
  v_fits boolean;
begin
  perform pay_internal.lock_bank_orders(p_account_id);
  -- As an import does (pay.begin_bank_file).
  perform from pay.provider_cursors u where u.account_id = p_account_id for update;
  select count(*) = cardinality(p_order_ids) and sum(f.amount_minor) = min(event.amount_minor)
    + p_fee_minor * case min(event.state) when 'succeeded' then -1 else 1 end
  into v_fits
  from pay.provider_accounts a
  join pay.provider_events event on event.environment_id = a.environment_id
    and event.account_id = a.id and event.reference = p_reference
  cross join unnest(p_order_ids) as o (id)
  cross join lateral pay.find_bank_orders(p_account_id, o.id) f
  where a.id = p_account_id and f.id = o.id and f.state = 'exported'
    and f.currency = event.currency
    and case when (f.kind = 'collection') = (event.state = 'returned') then f.is_open
      else f.status in ('completed', 'partially_refunded', 'refunded') end;
  if v_fits is not true then return false; end if;
  return pay_internal.book_as_orders(p_account_id, null, p_reference, p_order_ids);
end $$;
grant execute on function pay.split_bank_entry to pay_operator;

create or replace function pay.read_sealed_texts(p_environment_id text, p_ids text[])
returns table (id text, key_id text, sealed text)
language plpgsql volatile security definer rows 100 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select d.owner_id, d.key_id, d.sealed
    from pay.bank_details d
    where d.environment_id = p_environment_id and d.owner_id = any (p_ids)
      and d.sealed is not null
    union all
    select x.id, x.key_id, x.sealed
    from pay.bank_exports x
    where x.environment_id = p_environment_id and x.id = any (p_ids) and x.sealed is not null;
end $$;
grant execute on function pay.read_sealed_texts to pay_api, pay_operator;

create or replace function pay.read_payer_details(p_account_id text, p_references text[])
returns table (reference text, key_id text, sealed text)
language plpgsql volatile security definer rows 50 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select c.provider_reference, d.key_id, d.sealed
    from pay.provider_operations c
    join pay.bank_details d on d.environment_id = c.environment_id and d.owner_id = c.subject_id
    where c.provider_reference = any (p_references) and c.account_id = p_account_id
      and c.op = 'authorize' and d.sealed is not null;
end $$;
grant execute on function pay.read_payer_details to pay_api, pay_operator;

create or replace function pay_internal.keep_payer_details(p_account_id text, p_payers jsonb)
returns void language plpgsql volatile as $$
begin
  insert into pay.bank_details (environment_id, owner_id, key_id, sealed, lacks, created_at)
  select c.environment_id, c.subject_id, d.key_id, d.sealed, d.lacks, pay_internal.server_time()
  from jsonb_to_recordset(p_payers) as d (reference text, key_id text, sealed text, lacks text)
  join pay.provider_operations c
    on c.provider_reference = d.reference and c.account_id = p_account_id and c.op = 'authorize'
  order by c.environment_id, c.subject_id
  on conflict on constraint bank_details_pkey
    do update set key_id = null, sealed = null, lacks = null where excluded.sealed is null;
end $$;

create or replace function pay_internal.keep_entry_details(p_events jsonb)
returns void language sql volatile as $$
  insert into pay.bank_details (environment_id, owner_id, key_id, sealed, created_at)
  select e.environment_id, e.account_id || '/' || e.reference, e.bank #>> '{sealed,key_id}',
    e.bank #>> '{sealed,sealed}', pay_internal.server_time()
  from jsonb_to_recordset(p_events) as e (
    environment_id text, account_id text, reference text, bank jsonb)
  where e.bank ? 'sealed'
  order by 1, 2
  on conflict on constraint bank_details_pkey do nothing
$$;

create or replace function pay.settle_entry_details(
  p_account_id text, p_reference text, p_payers text
) returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving_account(p_account_id);
  perform pay_internal.keep_payer_details(p_account_id, p_payers::jsonb);
  delete from pay.bank_details d
  using pay.provider_accounts a
  where a.id = p_account_id and d.environment_id = a.environment_id
    and d.owner_id = p_account_id || '/' || p_reference;
end $$;
grant execute on function pay.settle_entry_details to pay_operator;

create or replace function pay.list_sealed_texts(p_key_ids text[], p_after text[], p_limit integer)
returns table (environment_id text, id text)
language plpgsql volatile security definer rows 100 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select t.environment_id, t.id
    from (
      (select d.environment_id, d.owner_id as id from pay.bank_details d
       where d.sealed is not null and d.key_id = any (p_key_ids)
         and (d.environment_id, d.owner_id) > (coalesce(p_after[1], ''), coalesce(p_after[2], ''))
       order by d.environment_id, d.owner_id limit p_limit)
      union all
      (select x.environment_id, x.id from pay.bank_exports x
       where x.sealed is not null and x.key_id = any (p_key_ids)
         and (x.environment_id, x.id) > (coalesce(p_after[1], ''), coalesce(p_after[2], ''))
       order by x.environment_id, x.id limit p_limit)
    ) t
    join pay.environments e on e.id = t.environment_id
    where coalesce(e.moving, 'draining') = 'draining'
    order by t.environment_id, t.id
    limit p_limit;
end $$;
grant execute on function pay.list_sealed_texts to pay_operator;

create or replace function pay.store_sealed_texts(p_environment_id text, p_texts text)
returns bigint language plpgsql volatile security definer as $$
declare
  v_text record;
  v_rows bigint;
  v_stored bigint := 0;
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving(p_environment_id);
  -- In one order, so that two rotations do not deadlock.
  for v_text in
    select t.* from jsonb_to_recordset(p_texts::jsonb) as t (
      id text, was text, key_id text, sealed text)
    order by t.id
  loop
    update pay.bank_details d set key_id = v_text.key_id, sealed = v_text.sealed
    where d.environment_id = p_environment_id and d.owner_id = v_text.id
      and d.sealed = v_text.was;
    get diagnostics v_rows = row_count;
    v_stored := v_stored + v_rows;
    update pay.bank_exports x set key_id = v_text.key_id, sealed = v_text.sealed
    where x.environment_id = p_environment_id and x.id = v_text.id and x.sealed = v_text.was;
    get diagnostics v_rows = row_count;
    v_stored := v_stored + v_rows;
  end loop;
  return v_stored;
end $$;
grant execute on function pay.store_sealed_texts to pay_operator;

create or replace function pay.count_sealed_texts()
returns table (key_id text, texts bigint, mandates bigint)
language plpgsql volatile security definer rows 10 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select t.key_id, count(*) filter (where t.is_text), count(*) filter (where not t.is_text)
    from (
      select d.key_id, true as is_text from pay.bank_details d where d.sealed is not null
      union all
      select x.key_id, true from pay.bank_exports x where x.sealed is not null
      union all
      select split_part(m.iban, ':', 1), false
      from pay.instruments m
      join pay.environments e on e.id = m.environment_id
      where e.livemode and m.iban is not null and m.status in ('pending', 'active')
    ) t
    group by t.key_id
    order by t.key_id;
end $$;
grant execute on function pay.count_sealed_texts to pay_operator;

create or replace function pay_internal.bank_details_need(p_environment_id text, p_id text)
returns json language sql stable as $$
  with owner as (
    select s.id, s.status from pay_internal.provider_subjects s
    where s.environment_id = p_environment_id and s.id = p_id
    union all
    select r.id, r.status from pay.refunds r
    where r.environment_id = p_environment_id and (r.id = p_id or r.payment_id = p_id)
  )
  select row_to_json(needs) from (
    select o.id, o.status from owner o where pay_internal.has_no_result(o.status)
    union all
    select o.id, b.state
    from owner o
    join pay.bank_orders b on b.environment_id = p_environment_id and b.owner_id = o.id
    join pay.bank_exports x on x.environment_id = p_environment_id and x.id = b.export_id
    where x.written_at is null
    limit 1
  ) needs
$$;

create or replace function pay_internal.forget_bank_details(
  p_environment_id text, p_owner_ids text[]
) returns void language plpgsql volatile as $$
begin
  insert into pay.bank_details (environment_id, owner_id, created_at)
  select p_environment_id, o.id, pay_internal.server_time()
  from unnest(p_owner_ids) o (id)
  where starts_with(o.id, 'pay_')
  order by o.id
  on conflict on constraint bank_details_pkey
    do update set key_id = null, sealed = null, lacks = null;
  delete from pay.bank_details d
  where d.environment_id = p_environment_id and d.owner_id = any (p_owner_ids)
    and not starts_with(d.owner_id, 'pay_');
end $$;

create or replace function pay_internal.delete_bank_details(p_environment_id text, p_id text)
returns void language plpgsql volatile as $$
declare
  v_owner_ids constant text[] := p_id || array(
    select r.id from pay.refunds r
    where r.environment_id = p_environment_id and r.payment_id = p_id);
begin
  perform pay_internal.forget_bank_details(p_environment_id, v_owner_ids);
  update pay.bank_exports x set key_id = null, sealed = null
  from pay.bank_orders b
  where b.environment_id = p_environment_id and b.owner_id = any (v_owner_ids)
    and x.environment_id = p_environment_id and x.id = b.export_id;
end $$;

create or replace function pay.delete_bank_details(p_request text, p_id text) returns pay.admission
language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request);
begin
  if v_access.outcome = 'ok' then
    perform from pay.payments p
    where p.environment_id = v_access.environment_id and p.id = p_id for update;
    if not found then
      perform from pay.transfers t
      where t.environment_id = v_access.environment_id and t.id = p_id for update;
    end if;
    if not found then v_access.outcome := 'not_found'; end if;
  end if;
  v_access := pay_internal.claim_one(p_request, v_access);
  if v_access.outcome <> 'ok' then return v_access; end if;
  v_access.detail := pay_internal.bank_details_need(v_access.environment_id, p_id);
  if v_access.detail is not null then
    v_access.outcome := 'needed';
    perform pay_internal.release_key(p_request, v_access);
    return v_access;
  end if;
  perform pay_internal.delete_bank_details(v_access.environment_id, p_id);
  return v_access;
end $$;
grant execute on function pay.delete_bank_details to pay_api;

create or replace function pay_internal.purge_bank_details(
  p_environment_id text, p_at timestamptz, p_batch integer
) returns bigint language plpgsql volatile as $$
declare
  v_kind record;
  v_owner_ids text[];
  v_rows bigint;
  v_total bigint := 0;
begin
  for v_kind in
    select * from (values
      ('pay_', interval '14 months'), ('re_', interval '30 days'), ('tr_', interval '30 days')
    ) as k (prefix, age)
  loop
    v_owner_ids := array(
      select d.owner_id from pay.bank_details d
      where d.environment_id = p_environment_id and d.sealed is not null
        and d.owner_id >= v_kind.prefix
        and d.owner_id < pay_internal.id_floor(v_kind.prefix, p_at - v_kind.age)
        and pay_internal.bank_details_need(p_environment_id, d.owner_id) is null
      order by d.owner_id limit p_batch for update skip locked
    );
    perform pay_internal.forget_bank_details(p_environment_id, v_owner_ids);
    v_total := v_total + cardinality(v_owner_ids);
  end loop;
  -- Those of entries that nobody has matched or dismissed.
  delete from pay.bank_details d
  where d.environment_id = p_environment_id and d.owner_id = any (array(
    select o.owner_id from pay.bank_details o
    where o.environment_id = p_environment_id and o.sealed is not null
      and o.owner_id between 'pac_' and 'pac`' and o.created_at < p_at - interval '14 months'
    order by o.owner_id limit p_batch for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_total := v_total + v_rows;
  update pay.bank_exports x set key_id = null, sealed = null
  where x.environment_id = p_environment_id and x.id = any (array(
    select o.id from pay.bank_exports o
    where o.environment_id = p_environment_id and o.sealed is not null
      and o.written_at < p_at - interval '30 days'
    order by o.id limit p_batch for update skip locked
  ));
  get diagnostics v_rows = row_count;
  return v_total + v_rows;
end $$;

create or replace function pay_internal.confirm_bank_entries(
  p_account_id text, p_sha256 text, p_entries jsonb
) returns void language plpgsql volatile as $$
declare
  v_warnings jsonb; v_days jsonb; v_apart text[];
begin
  with entry as materialized (
    select a.environment_id, e.id, e.amount_minor, e.booked_on as stated_on
    from pay.provider_accounts a
    cross join jsonb_to_recordset(p_entries) as e (
      id text, amount_minor bigint, booked_on date, kind text)
    where a.id = p_account_id and pay_internal.interim_kind(e.kind) = 0
  ), known as materialized (
    -- Only the primary key has this order.
    select b.*, e.environment_id, e.id, e.amount_minor, e.stated_on
    from entry e
    cross join lateral (
      select b.ctid as place, b.amount_minor as former_minor, b.currency, b.booked_on,
        b.statement_sha256, b.held_events
      from pay.bank_entries b
      where b.environment_id = e.environment_id and b.account_id = p_account_id
        and b.id between e.id and e.id
      order by b.id offset 0 for update of b
    ) b
  ), apart as materialized (
    select other.*
    from known k
    cross join lateral (
      select y.id, y.same_as from pay.bank_entries y
      where y.account_id = p_account_id and y.same_as between k.id and k.id
        and y.statement_sha256 is not null
      order by y.same_as offset 0
    ) other
    union all
    select k.id, null from known k where k.held_events is not null and k.statement_sha256 is null
  ), confirmed as (
    update pay.bank_entries b
    set statement_sha256 = case when k.was_guess then p_sha256
        else coalesce(b.statement_sha256, p_sha256) end,
      amount_minor = k.amount_minor,
      stated_on = coalesce(b.stated_on, nullif(k.stated_on, b.booked_on))
    from (select k.*, k.id in (select p.same_as from apart p) as was_guess from known k) k
    where b.ctid = k.place
      and (k.statement_sha256 is null or k.former_minor <> k.amount_minor or k.was_guess)
      and (k.statement_sha256 is not null or k.held_events is null)
  ), change as (
    select booked_on, format(
      'the entry %s of %s has the other direction: an earlier file had %s %s in minor units',
      id, booked_on, former_minor, currency) as warning
    from known where former_minor <> amount_minor
  )
  select (select jsonb_agg(c.warning) from change c),
    (select jsonb_agg(distinct c.booked_on) from change c),
    (select array_agg(a.id) from apart a)
  into v_warnings, v_days, v_apart;
  perform pay_internal.keep_file_warnings(p_account_id, p_sha256, v_warnings, v_days);
  perform pay_internal.release_bank_entries(p_account_id, p_sha256, v_apart, true);
end $$;

create or replace function pay_internal.keep_file_warnings(
  p_account_id text, p_sha256 text, p_warnings jsonb, p_days jsonb
) returns void language sql volatile as $$
  update pay.bank_files f
  set result = jsonb_build_object(
    'warnings', jsonb_path_query_array(
      coalesce(f.result -> 'warnings', '[]') || p_warnings, '$[0 to 99]'),
    'days', (select jsonb_agg(distinct d.day)
      from jsonb_array_elements(coalesce(f.result -> 'days', '[]') || p_days) as d (day)))
  from pay.provider_accounts a
  where a.id = p_account_id and f.environment_id = a.environment_id and f.account_id = a.id
    and f.sha256 = p_sha256 and p_warnings is not null
$$;

create or replace function pay_internal.replace_bank_totals(p_account_id text, p_ids text[])
returns setof text language sql volatile rows 10 as $$
  with total as materialized (
    -- The bounds are made here, as in pay.bank_file_state.
    select a.environment_id, t.id, t.id || ':0:' as low, t.id || ':0;' as high
    from pay.provider_accounts a
    cross join unnest(p_ids) as t (id)
    where a.id = p_account_id
    order by t.id
  ), found as materialized (
    select t.id, event.place
    from total t
    cross join lateral (
      select k.ctid as place from pay.provider_events k
      where k.environment_id = t.environment_id and k.account_id = p_account_id
        and k.reference between t.low and t.high
        and case k.op when 'payout' then coalesce(k.outcome, 'applied') = 'applied'
          else coalesce(k.outcome, 'unmatched') = 'unmatched' end
      order by k.reference offset 0
      for update of k
    ) event
  )
  update pay.provider_events event
  set body = jsonb_set(event.body, '{bank,is_replaced}', 'true'), outcome = null, handled_at = null,
    exception = null, dismissed_at = null, dismissed_reason = null
  from found f
  where event.ctid = f.place
  returning f.id
$$;

create or replace function pay_internal.store_bank_entries(
  p_account_id text, p_sha256 text, p_entries jsonb, out stored bigint
) language plpgsql volatile as $$
declare
  v_events jsonb;
  v_detailed text[];
begin
  v_detailed := array(select pay_internal.replace_bank_totals(p_account_id, array(
    select e.id
    from pay.provider_accounts a
    cross join jsonb_to_recordset(p_entries) as e (id text, is_total boolean)
    cross join lateral (
      select from pay.bank_entries b
      where b.environment_id = a.environment_id and b.account_id = a.id
        and b.id between e.id and e.id and b.details_sha256 is null and b.same_as is null
      order by b.id offset 0
    ) b
    where a.id = p_account_id and not e.is_total
  )));
  if v_detailed <> '{}' then
    update pay.bank_entries b set details_sha256 = p_sha256
    from (
      select k.place
      from pay.provider_accounts a
      cross join unnest(v_detailed) as d (id)
      cross join lateral (
        select b.ctid as place from pay.bank_entries b
        where b.environment_id = a.environment_id and b.account_id = a.id
          and b.id between d.id and d.id
        order by b.id offset 0
      ) k
      where a.id = p_account_id
    ) f
    where b.ctid = f.place;
  end if;
  with entry as materialized (
    select a.environment_id, e.*, interim.seen_in
    from pay.provider_accounts a
    cross join jsonb_to_recordset(p_entries) as e (
      id text, booked_on date, amount_minor bigint, currency text, is_total boolean,
      kind text, provider_events jsonb)
    cross join lateral pay_internal.interim_kind(e.kind) as interim (seen_in)
    where a.id = p_account_id
  ), stored as (
    insert into pay.bank_entries (environment_id, account_id, id, sha256, details_sha256,
      statement_sha256, booked_on, amount_minor, currency, seen_in)
    select e.environment_id, p_account_id, e.id, p_sha256,
      case when not e.is_total then p_sha256 end, case when e.seen_in = 0 then p_sha256 end,
      e.booked_on, e.amount_minor, e.currency, e.seen_in
    from entry e
    order by e.id
    on conflict on constraint bank_entries_pkey do nothing
    returning id
  )
  select count(distinct s.id), coalesce(jsonb_agg(event.value || jsonb_build_object(
    'environment_id', e.environment_id, 'account_id', p_account_id, 'body', event.value)), '[]')
  into stored, v_events
  from entry e
  left join stored s on s.id = e.id
  cross join jsonb_array_elements(e.provider_events) event
  where s.id is not null or e.id in (select d.id from unnest(v_detailed) as d (id));
  perform pay_internal.keep_provider_events(v_events);
end $$;

create or replace function pay_internal.comparable_bank_entries(
  p_account_id text, p_sha256 text, p_seen_in smallint
) returns table (
  environment_id text, id text, low text, high text, booked_on date, currency text,
  amount_minor bigint, details_sha256 text, is_new boolean
) language sql stable rows 10 as $$
  with new as materialized (
    select distinct b.booked_on, b.amount_minor from pay.bank_entries b
    where b.account_id = p_account_id and b.sha256 = p_sha256
  )
  select u.environment_id, b.id, b.id || ':' as low, b.id || ';' as high, b.booked_on,
    b.currency, b.amount_minor, b.details_sha256, s.is_new
  from pay.provider_cursors u
  cross join new n
  join pay.bank_entries b on b.account_id = p_account_id and b.booked_on = n.booked_on
    and b.amount_minor = n.amount_minor
  cross join lateral (select b.sha256 = p_sha256 as is_new) s
  where u.account_id = p_account_id and b.same_as is null
    and (s.is_new or case when p_seen_in = 0 then b.statement_sha256 is null
      else b.seen_in & p_seen_in = 0
        and (b.statement_sha256 is null or b.booked_on <= u.totals_day)
        and not exists (select from pay.bank_entries y
          where y.account_id = p_account_id and y.same_as between b.id and b.id
            and y.seen_in & p_seen_in <> 0) end)
$$;

create or replace function pay_internal.pair_bank_entries(
  p_account_id text, p_sha256 text, p_kind text
) returns bigint language plpgsql volatile as $$
declare
  v_seen_in constant smallint := pay_internal.interim_kind(p_kind);
  v_pairs jsonb;
  v_replaced text[];
begin
  with entry as materialized (
    select * from pay_internal.comparable_bank_entries(p_account_id, p_sha256, v_seen_in)
  ), told as materialized (
    select e.*, r.told, row_number() over (partition by e.booked_on, e.currency, e.amount_minor,
      r.told, e.is_new order by e.id) as place
    from entry e
    -- Only where there are two to compare.
    join (
      select o.booked_on, o.currency, o.amount_minor from entry o
      group by 1, 2, 3 having bool_or(o.is_new) and not bool_and(o.is_new)
    ) compared using (booked_on, currency, amount_minor)
    cross join lateral (
      -- A split total has them in another order than the bank.
      select string_agg(k.body ->> 'provider_reference', ' '
        order by k.body ->> 'provider_reference') as told
      from (
        select k.body from pay.provider_events k
        where k.environment_id = e.environment_id and k.account_id = p_account_id
          and k.reference between e.low and e.high
        order by k.reference offset 0
      ) k
    ) r
  ), agreed as materialized (
    select array_agg(t.id) as ids, min(t.id) filter (where t.is_new) as new_id,
      min(t.id) filter (where not t.is_new) as known_id,
      bool_or(t.is_new and t.details_sha256 is not null)
        and bool_or(not t.is_new and t.details_sha256 is null) as has_details
    from told t where t.told is not null
    group by t.booked_on, t.currency, t.amount_minor, t.told, t.place
    having count(*) = 2
  ), rest as (
    -- Those that tell something come beside those that tell nothing.
    select t.*, row_number() over (partition by t.booked_on, t.currency, t.amount_minor, t.is_new
      order by (t.told is null) = t.is_new, t.id) as rank
    from told t
    where t.id not in (select unnest(a.ids) from agreed a)
  ), pair as (
    select a.new_id, a.known_id, a.has_details from agreed a
    union all
    select min(t.id) filter (where t.is_new), min(t.id) filter (where not t.is_new),
      bool_or(t.is_new and t.details_sha256 is not null)
        and bool_or(not t.is_new and t.details_sha256 is null)
    from rest t
    group by t.booked_on, t.currency, t.amount_minor, t.rank
    -- Only a camt.053 is complete, so that entries which tell different things can be one.
    having count(*) = 2 and (v_seen_in = 0 or count(t.told) < 2)
  )
  select jsonb_agg(to_jsonb(p)) into v_pairs from pair p;
  if v_pairs is null then return 0; end if;
  v_replaced := array(select pay_internal.replace_bank_totals(p_account_id, array(
    select p.known_id from jsonb_to_recordset(v_pairs) as p (known_id text, has_details boolean)
    where p.has_details
  )));
  select jsonb_agg(case when r.id is null
    then jsonb_build_object('id', p.new_id, 'same_as', p.known_id, 'is_new', true)
    else jsonb_build_object('id', p.known_id, 'same_as', p.new_id, 'is_new', false) end)
  into v_pairs
  from jsonb_to_recordset(v_pairs) as p (new_id text, known_id text)
  left join unnest(v_replaced) as r (id) on r.id = p.known_id;
  perform pay_internal.hold_bank_entries(p_account_id, v_pairs);
  return jsonb_array_length(v_pairs);
end $$;

create or replace function pay_internal.hold_bank_entries(p_account_id text, p_pairs jsonb)
returns void language plpgsql volatile as $$
begin
  -- The bounds are made here, as in pay.bank_file_state, and each lookup names the order of its
  -- index.
  with pair as materialized (
    select a.environment_id, p.id, p.same_as, p.is_new, p.id || ':' as low, p.id || ';' as high
    from pay.provider_accounts a
    cross join jsonb_to_recordset(p_pairs) as p (id text, same_as text, is_new boolean)
    where a.id = p_account_id
  ), found as materialized (
    select p.same_as, other.*, kept.place as kept, event.*
    from pair p
    cross join lateral (
      select b.ctid as place, b.statement_sha256, b.batch_id, b.batch_minor
      from pay.bank_entries b
      where b.environment_id = p.environment_id and b.account_id = p_account_id
        and b.id between p.id and p.id
      order by b.id offset 0
    ) other
    cross join lateral (
      select b.ctid as place from pay.bank_entries b
      where b.environment_id = p.environment_id and b.account_id = p_account_id
        and b.id between p.same_as and p.same_as
      order by b.id offset 0
    ) kept
    cross join lateral (
      select coalesce(jsonb_agg(e.body), '[]') as bodies, array_agg(e.place) as places
      from (
        select k.ctid as place, k.body from pay.provider_events k
        where k.environment_id = p.environment_id and k.account_id = p_account_id
          and k.reference between p.low and p.high and p.is_new
          -- The worker still has to reverse the others.
          and k.booked_minor = 0 and not k.body -> 'bank' ? 'is_replaced'
        order by k.reference offset 0
      ) e
    ) event
  ), taken as (
    delete from pay.provider_events k
    using found f cross join unnest(f.places) as e (place)
    where k.ctid = e.place
  ), same as (
    update pay.bank_entries b set same_as = f.same_as, held_events = f.bodies
    from found f where b.ctid = f.place
  )
  update pay.bank_entries b
  set statement_sha256 = coalesce(b.statement_sha256, f.statement_sha256),
    batch_id = coalesce(b.batch_id, f.batch_id),
    batch_minor = coalesce(b.batch_minor, f.batch_minor)
  from found f where b.ctid = f.kept;
  -- Their own other identities are those of the entry that is booked.
  with pair as materialized (
    select p.* from jsonb_to_recordset(p_pairs) as p (id text, same_as text)
  ), other as materialized (
    select y.place, p.same_as
    from pair p
    cross join lateral (
      select b.ctid as place from pay.bank_entries b
      where b.account_id = p_account_id and b.same_as between p.id and p.id
      order by b.same_as offset 0
    ) y
  )
  update pay.bank_entries b set same_as = o.same_as from other o where b.ctid = o.place;
end $$;

create or replace function pay_internal.unconfirmed_bank_entries(
  p_account_id text, p_sha256 text, p_complete_until date
) returns jsonb language sql stable as $$
  with days as materialized (
    select u.totals_day, greatest(u.totals_day, p_complete_until) as complete_until
    from pay.provider_cursors u where u.account_id = p_account_id
  ), of_file as materialized (
    select b.* from pay.bank_entries b
    where b.account_id = p_account_id and b.sha256 = p_sha256
  ), entry as (
    select b.id, b.booked_on, b.amount_minor, b.currency
    from of_file b
    where b.statement_sha256 is null and b.same_as is null
      and b.booked_on <= (select d.complete_until from days d)
    union all
    (select b.id, b.booked_on, b.amount_minor, b.currency
    from pay.bank_entries b
    where b.account_id = p_account_id and b.sha256 <> p_sha256
      and b.statement_sha256 is null and b.same_as is null
      and b.booked_on <= (select d.complete_until from days d)
      and b.booked_on > (select coalesce(d.totals_day, '-infinity') from days d)
    order by b.booked_on, b.id
    limit 20)
    order by booked_on, id
    limit 20
  )
  select coalesce(jsonb_agg(format('no camt.053 has the entry %s of %s: %s %s in minor units',
    e.id, e.booked_on, e.amount_minor, e.currency)), '[]')
  from entry e
$$;

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

create or replace function pay_internal.interim_kind(p_kind text)
returns smallint language sql immutable as $$
  select case p_kind when 'camt.052' then 1 when 'camt.054' then 2 else 0 end::smallint
$$;

create or replace function pay_internal.release_bank_entries(
  p_account_id text, p_sha256 text, p_ids text[], p_is_statement boolean
) returns void language plpgsql volatile as $$
declare
  v_warnings jsonb; v_events jsonb; v_days jsonb;
begin
  if p_ids is null then return; end if;
  with apart as materialized (
    -- Each lookup names the order of its index.
    select a.environment_id, b.*
    from pay.provider_accounts a
    cross join unnest(p_ids) as i (id)
    cross join lateral (
      select b.ctid as place, b.id, b.booked_on, b.held_events from pay.bank_entries b
      where b.environment_id = a.environment_id and b.account_id = p_account_id
        and b.id between i.id and i.id
      order by b.id offset 0
    ) b
    where a.id = p_account_id
  ), released as (
    update pay.bank_entries b
    set sha256 = p_sha256, same_as = null, held_events = null,
      statement_sha256 = case when p_is_statement then p_sha256 end
    from apart p where b.ctid = p.place
  )
  select jsonb_agg(format('the entry %s of %s was taken for another one', p.id, p.booked_on)),
    jsonb_agg(distinct p.booked_on),
    (select jsonb_agg(event.value || jsonb_build_object('environment_id', o.environment_id,
      'account_id', p_account_id, 'body', event.value))
    from apart o cross join jsonb_array_elements(o.held_events) event)
  into v_warnings, v_days, v_events
  from apart p;
  perform pay_internal.keep_provider_events(coalesce(v_events, '[]'));
  perform pay_internal.keep_file_warnings(p_account_id, p_sha256, v_warnings, v_days);
end $$;

create or replace function pay_internal.note_interim_file(
  p_account_id text, p_sha256 text, p_entries jsonb
) returns void language plpgsql volatile as $$
declare
  v_apart text[];
begin
  -- Each lookup names the order of its index, here and below.
  update pay.bank_entries b set seen_in = b.seen_in | k.seen_in
  from (
    select b.ctid as place, e.seen_in
    from pay.provider_accounts a
    cross join (
      select o.id, pay_internal.interim_kind(o.kind) as seen_in
      from jsonb_to_recordset(p_entries) as o (id text, kind text)
    ) e
    cross join lateral (
      select b.ctid from pay.bank_entries b
      where b.environment_id = a.environment_id and b.account_id = p_account_id
        and b.id between e.id and e.id and b.seen_in & e.seen_in = 0
      order by b.id offset 0 for update of b
    ) b
    where a.id = p_account_id and e.seen_in > 0
  ) k
  where b.ctid = k.place;
  with entry as materialized (
    select a.environment_id, e.id, not e.is_total as has_details
    from pay.provider_accounts a
    cross join jsonb_to_recordset(p_entries) as e (id text, is_total boolean, kind text)
    where a.id = p_account_id and pay_internal.interim_kind(e.kind) > 0
  ), same as materialized (
    select e.environment_id, false as has_details, other.*
    from entry e
    cross join lateral (
      select y.id, y.same_as, y.seen_in, y.details_sha256 from pay.bank_entries y
      where y.account_id = p_account_id and y.same_as between e.id and e.id
      order by y.same_as offset 0
    ) other
    union all
    select e.environment_id, e.has_details, own.*
    from entry e
    cross join lateral (
      select b.id, b.same_as, b.seen_in, b.details_sha256 from pay.bank_entries b
      where b.environment_id = e.environment_id and b.account_id = p_account_id
        and b.id between e.id and e.id and b.same_as is not null
      order by b.id offset 0
    ) own
  )
  select array_agg(distinct s.id) into v_apart
  from same s
  cross join lateral (
    select b.seen_in, b.details_sha256 from pay.bank_entries b
    where b.environment_id = s.environment_id and b.account_id = p_account_id
      and b.id between s.same_as and s.same_as
    order by b.id offset 0
  ) kept
  where kept.seen_in & s.seen_in <> 0
    or s.has_details and s.details_sha256 is null and kept.details_sha256 is null;
  perform pay_internal.release_bank_entries(p_account_id, p_sha256, v_apart, false);
end $$;

create or replace function pay_internal.lock_bank_orders(p_account_id text, out environment text)
language plpgsql volatile as $$
begin
  perform pay_internal.act_as_worker();
  select a.environment_id into strict environment
  from pay.provider_accounts a where a.id = p_account_id;
  perform pay_internal.refuse_moving(environment);
  perform pg_advisory_xact_lock(hashtextextended('bank orders ' || p_account_id, 0));
end $$;

create or replace function pay_internal.keep_bank_orders(
  p_operations jsonb, p_providers jsonb, p_found pay.admission[]
) returns void language sql volatile as $$
  with bank_order as materialized (
    select f.environment_id, coalesce(c.refund_id, c.subject_id) as owner_id, c.id as operation_id,
      v.account ->> 'id' as account_id, c.bank_order as details
    from unnest(p_found) f
    join jsonb_to_recordset(p_operations) as c (
      n integer, id text, subject_id text, refund_id text, bank_order jsonb) on c.n = f.n
    cross join lateral (select p_providers -> f.n::text -> 'account' as account) v
    where f.outcome = 'ok' and c.bank_order is not null and v.account ->> 'connector' = 'bank'
  ), detail as (
    insert into pay.bank_details (environment_id, owner_id, key_id, sealed, created_at)
    select o.environment_id, o.owner_id, o.details ->> 'key_id', o.details ->> 'sealed',
      pay_internal.server_time()
    from bank_order o
    where o.details ? 'sealed'
  )
  insert into pay.bank_orders (environment_id, owner_id, account_id, operation_id, state,
    changed_at)
  select o.environment_id, o.owner_id, o.account_id, o.operation_id, 'waiting',
    pay_internal.server_time()
  from bank_order o
$$;

create or replace function pay_internal.has_no_result(p_status text)
returns boolean language sql immutable parallel safe as $$
  select p_status in (/* open */ 'pending', 'requires_action', 'processing', 'authorized')
$$;

create or replace function pay.list_bank_orders(p_account_id text) returns table (
  id text, subject_id text, kind text, state text, payee_check text, is_approved boolean,
  amount_minor bigint, currency text, status text, is_open boolean, batch_id text, export_id text,
  file_kind text, file_name text, file_created_at text
) language plpgsql volatile security definer rows 100 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select o.id, o.subject_id, o.kind, o.state, o.payee_check, o.is_approved, o.amount_minor,
      o.currency, o.status, o.is_open, o.batch_id, o.export_id, o.file_kind, o.file_name,
      o.file_created_at
    from pay_internal.bank_orders_shown o
    where o.account_id = p_account_id and o.state in ('waiting', 'exported') and o.is_open
    order by o.operation_id;
end $$;
grant execute on function pay.list_bank_orders to pay_operator;

create or replace function pay.find_bank_orders(p_account_id text, p_id text) returns table (
  id text, subject_id text, kind text, state text, payee_check text, is_approved boolean,
  amount_minor bigint, currency text, status text, is_open boolean, batch_id text, export_id text,
  file_kind text, file_name text, file_created_at text
) language plpgsql volatile security definer rows 100 as $$
declare
  v_id constant text := replace(lower(p_id), '-', '_');
  v_environment_id text;
  v_owner_ids text[];
begin
  perform pay_internal.act_as_worker();
  select a.environment_id into strict v_environment_id
  from pay.provider_accounts a where a.id = p_account_id;
  v_owner_ids := array(
    select v_id
    union
    select b.owner_id from pay.bank_orders b
    where b.batch_id = lower(p_id) and b.account_id = p_account_id
    union
    select b.owner_id from pay.bank_orders b
    where b.export_id = v_id and b.account_id = p_account_id
    union
    select b.owner_id from pay.bank_orders b
    where b.uetr = lower(p_id) and b.account_id = p_account_id);
  return query
    -- The references are made here, as in pay.bank_file_state.
    with o as materialized (
      select shown.*, replace(shown.id, '_', '-') || ':rejected' as rejection
      from pay_internal.bank_orders_shown shown
      where shown.environment_id = v_environment_id and shown.id = any (v_owner_ids)
        and shown.account_id = p_account_id
    )
    select o.id, o.subject_id, o.kind, case when k.is_rejected then 'rejected' else o.state end,
      o.payee_check, o.is_approved, o.amount_minor, o.currency, o.status,
      o.is_open and k.is_rejected is null, o.batch_id, o.export_id, o.file_kind, o.file_name,
      o.file_created_at
    from o
    left join lateral (
      select true as is_rejected from pay.provider_events event
      where event.environment_id = v_environment_id and event.account_id = p_account_id
        and event.reference between o.rejection and o.rejection
      order by event.reference limit 1
    ) k on true
    order by o.id;
end $$;
grant execute on function pay.find_bank_orders to pay_api, pay_operator;

create or replace function pay.find_bank_references(p_account_id text, p_beginnings text[])
returns table (
  beginning text, reference text, amount_minor bigint, currency text, is_open boolean
) language plpgsql volatile security definer rows 50 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    -- The bounds are made here, as in pay.bank_file_state. "~" comes behind letters and digits.
    with bound as materialized (
      select a.environment_id, b.low, b.low || '~' as high
      from pay.provider_accounts a cross join unnest(p_beginnings) as b (low)
      where a.id = p_account_id
    )
    select b.low, c.provider_reference, c.amount_minor, c.currency,
      pay_internal.has_no_result(coalesce(r.status, subject.status))
    from bound b
    cross join lateral (
      select o.* from pay.provider_operations o
      where o.provider_reference between b.low and b.high
        and o.account_id = p_account_id and o.environment_id = b.environment_id
        and o.op in ('authorize', 'refund', 'transfer')
      order by o.provider_reference limit 10
    ) c
    join pay_internal.provider_subjects subject
      on subject.environment_id = c.environment_id and subject.id = c.subject_id
    left join pay.refunds r on r.environment_id = c.environment_id and r.id = c.refund_id;
end $$;
grant execute on function pay.find_bank_references to pay_api, pay_operator;

create or replace function pay.bank_orders_to_export(p_account_id text, p_limit integer)
returns table (
  id text, kind text, amount_minor bigint, currency text, speed text, subject_body text
) language plpgsql volatile security definer rows 100 as $$
begin
  perform pay_internal.lock_bank_orders(p_account_id);
  return query
    select o.id, o.kind, o.amount_minor, o.currency,
      coalesce(o.body::json ->> 'speed', 'standard'), o.subject_body
    from pay_internal.bank_orders_shown o
    where o.account_id = p_account_id and o.state = 'waiting' and o.is_open
    order by o.operation_id
    limit p_limit;
end $$;
grant execute on function pay.bank_orders_to_export to pay_api, pay_operator;

create or replace function pay.store_bank_exports(p_account_id text, p_exports text)
returns void language plpgsql volatile security definer as $$
declare
  v_environment_id constant text := pay_internal.lock_bank_orders(p_account_id);
  v_now constant timestamptz := pay_internal.server_time();
  v_orders bigint;
  v_taken bigint;
begin
  select count(*) into v_orders
  from jsonb_to_recordset(p_exports::jsonb) as x (orders jsonb)
  cross join jsonb_array_elements(x.orders);
  insert into pay.bank_exports (environment_id, id, account_id, kind, name, sha256, payments,
    sum_minor, currency, is_opt_out, key_id, sealed, created_at)
  select v_environment_id, x.id, p_account_id, x.kind, x.name, x.sha256, x.payments, x.sum_minor,
    x.currency, x.is_opt_out, x.key_id, x.sealed, v_now
  from jsonb_to_recordset(p_exports::jsonb) as x (
    id text, kind text, name text, sha256 text, payments integer, sum_minor bigint, currency text,
    is_opt_out boolean, key_id text, sealed text)
  on conflict (environment_id, account_id, name) where sealed is not null do nothing;
  update pay.bank_orders b
  set state = 'exported', export_id = x.id, batch_id = o.batch_id, uetr = o.uetr,
    changed_at = v_now
  from jsonb_to_recordset(p_exports::jsonb) as x (id text, orders jsonb)
  cross join jsonb_to_recordset(x.orders) as o (id text, batch_id text, uetr text)
  where b.environment_id = v_environment_id and b.owner_id = o.id and b.state = 'waiting';
  get diagnostics v_taken = row_count;
  if v_taken <> v_orders then
    raise exception 'an order waits no more' using errcode = 'serialization_failure';
  end if;
end $$;
grant execute on function pay.store_bank_exports to pay_api, pay_operator;

create or replace function pay.list_bank_exports(p_account_id text, p_name text) returns table (
  id text, kind text, name text, sha256 text, payments integer, sum_minor bigint, currency text,
  is_opt_out boolean, created_at text, is_written boolean
) language plpgsql volatile security definer rows 100 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select x.id, x.kind, x.name, x.sha256, x.payments, x.sum_minor, x.currency,
      x.is_opt_out, pay_internal.wire_time(x.created_at), x.written_at is not null
    from pay.bank_exports x
    where x.account_id = p_account_id and (p_name is null or x.name = p_name)
      and x.sealed is not null
    order by x.written_at is null desc, x.id desc
    limit 1000;
end $$;
grant execute on function pay.list_bank_exports to pay_api, pay_operator;

create or replace function pay.note_bank_export(p_account_id text, p_id text)
returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving_account(p_account_id);
  update pay.bank_exports x set written_at = coalesce(x.written_at, pay_internal.server_time())
  where x.account_id = p_account_id and x.id = p_id;
end $$;
grant execute on function pay.note_bank_export to pay_api, pay_operator;

create or replace function pay.end_bank_order(p_account_id text, p_id text, p_state text)
returns text language plpgsql volatile security definer as $$
declare
  v_environment_id constant text := pay_internal.lock_bank_orders(p_account_id);
begin
  update pay.bank_orders b set state = p_state, changed_at = pay_internal.server_time()
  where b.environment_id = v_environment_id and b.owner_id = p_id and b.state = 'waiting';
  return (
    select b.state from pay.bank_orders b
    where b.environment_id = v_environment_id and b.owner_id = p_id
      and b.account_id = p_account_id
  );
end $$;
grant execute on function pay.end_bank_order to pay_api, pay_operator;

create or replace function pay_internal.note_payee_check(p_account_id text, p_check jsonb)
returns void language plpgsql volatile as $$
declare
  v_event constant jsonb := p_check -> 'provider_event';
  v_environment_id text;
begin
  update pay.bank_orders b
  set payee_check = p_check ->> 'code', approved_at = null, changed_at = pay_internal.server_time()
  from pay.provider_accounts a
  where a.id = p_account_id and b.environment_id = a.environment_id and b.account_id = a.id
    and b.owner_id = p_check ->> 'id' and b.state = 'exported'
    and b.payee_check is distinct from p_check ->> 'code'
    and (b.payee_check is null or v_event #>> '{bank,payee_check}' <> 'pending')
  returning b.environment_id into v_environment_id;
  if not found then return; end if;
  update pay.provider_events k set outcome = 'ignored', handled_at = pay_internal.server_time()
  where k.environment_id = v_environment_id and k.subject_id = v_event ->> 'subject_id'
    and k.refund_id is not distinct from v_event ->> 'refund_id' and k.op = 'payee_check'
    and k.outcome is null;
  perform pay.store_provider_events(p_account_id, jsonb_build_array(v_event)::text);
end $$;

create or replace function pay.approve_bank_order(p_account_id text, p_id text) returns boolean
language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving_account(p_account_id);
  update pay.bank_orders b
  set approved_at = pay_internal.server_time(), changed_at = pay_internal.server_time()
  from pay.provider_accounts a
  where a.id = p_account_id and b.environment_id = a.environment_id and b.account_id = a.id
    and b.owner_id = p_id and b.payee_check is not null and b.approved_at is null;
  return found;
end $$;
grant execute on function pay.approve_bank_order to pay_operator;

create or replace function pay_internal.adjoining_files(p_account_id text, p_balances jsonb)
returns text[] language sql stable as $$
  with recursive statement as materialized (
    select b.*, t.balances, former.day as former_day,
      pay_internal.outer_balance(former.balances, true) as former_minor
    from jsonb_to_record(p_balances) as b (
      currency text, opened_on date, opening_minor bigint, closed_on date, closing_minor bigint)
    join pay.provider_accounts a on a.id = p_account_id
    join pay.provider_totals t on t.environment_id = a.environment_id and t.account_id = a.id
      and t.day = b.closed_on and t.currency = b.currency and t.balances is not null
    left join lateral (
      select y.day, y.balances from pay.provider_totals y
      where y.environment_id = a.environment_id and y.account_id = a.id
        and y.currency = b.currency and y.day < b.closed_on and y.balances is not null
      order by y.day desc limit 1
    ) former on true
  ), other as materialized (
    select (x.value ->> 0)::bigint as opening_minor, (x.value ->> 1)::bigint as closing_minor,
      x.value ->> 2 as sha256, x.place
    from statement s
    cross join jsonb_array_elements(s.balances) with ordinality as x (value, place)
  ), reached (minor) as (
    select o.closing_minor from statement s join other o on o.opening_minor = s.opening_minor
    union
    select o.closing_minor from reached r join other o on o.opening_minor = r.minor
  ), chain (opening_minor, closing_minor, sha256, place, is_before) as (
    select o.*, o.closing_minor = s.opening_minor
    from statement s
    join other o on o.closing_minor = s.opening_minor or o.opening_minor = s.closing_minor
    union
    select o.*, c.is_before
    from chain c
    join other o on case when c.is_before then o.closing_minor = c.opening_minor
      else o.opening_minor = c.closing_minor end
  )
  select (
    select array_agg(distinct o.sha256)
    from chain c
    -- A later one that had more can have an earlier one as its part.
    join other o on o.sha256 = c.sha256 or o.place < c.place
      and case when c.is_before then o.opening_minor = c.opening_minor
        else o.closing_minor = c.closing_minor end
      and exists (select from pay.bank_entries b
        where b.account_id = p_account_id and b.sha256 = c.sha256)
  )
  from statement s
  -- One of several days overlaps the statements before.
  where (s.former_day is null or s.opened_on >= s.former_day or s.opening_minor = s.former_minor
      or exists (select from chain c where c.is_before and c.opening_minor = s.former_minor))
    -- It overlaps those with which it begins or ends, and those that lead where it leads.
    and (s.opening_minor = s.closing_minor or not exists (select from other o
      where o.opening_minor = s.opening_minor or o.closing_minor = s.closing_minor))
    and not exists (select from reached r where r.minor = s.closing_minor)
$$;

create or replace function pay_internal.store_statement_balances(
  p_account_id text, p_sha256 text, p_balances jsonb
) returns void language sql volatile as $$
  insert into pay.provider_totals as t (environment_id, account_id, day, currency, provider_minor,
    read_at, balances)
  select a.environment_id, a.id, b.closed_on, b.currency, 0, pay_internal.server_time(),
    jsonb_build_array(jsonb_build_array(b.opening_minor, b.closing_minor, p_sha256, b.opened_on))
  from pay.provider_accounts a
  cross join jsonb_to_record(p_balances) as b (
    currency text, opened_on date, opening_minor bigint, closed_on date, closing_minor bigint)
  where a.id = p_account_id
  on conflict on constraint provider_totals_pkey do update
  set balances = coalesce(t.balances, '[]') || excluded.balances
  where t.balances is null or jsonb_array_length(t.balances) < 100 and not exists (
    select from jsonb_array_elements(t.balances) x
    where x.value -> 0 = excluded.balances #> '{0,0}'
      and x.value -> 1 = excluded.balances #> '{0,1}')
$$;

create or replace function pay_internal.outer_balance(p_balances jsonb, p_is_end boolean)
returns bigint language sql immutable as $$
  with side as materialized (
    select (x.value ->> p_is_end::integer)::bigint as minor,
      (x.value ->> (not p_is_end)::integer)::bigint as other_minor
    from jsonb_array_elements(p_balances) x
  ), open as materialized (
    select s.minor from side s
    except
    select s.other_minor from side s where s.minor <> s.other_minor
  )
  select case (select count(*) from open)
    when 1 then (select o.minor from open o)
    when 0 then (select case when min(s.minor) = max(s.minor) then min(s.minor)
      when bool_or(s.minor = 0) then 0 end from side s)
  end
$$;

create or replace function pay_internal.number_bank_entries(
  p_account_id text, p_sha256 text, p_entries jsonb, p_statement jsonb
) returns jsonb language plpgsql stable as $$
declare
  v_ids jsonb;
begin
  with entry as materialized (
    select distinct e.id, e.booked_on, left(e.id, 32) as hash,
      coalesce(nullif(substr(e.id, 34), ''), '1')::bigint as number
    from jsonb_to_recordset(p_entries) as e (id text, booked_on date)
  ), known as materialized (
    select k.*, row_number() over (partition by k.hash, k.day, k.is_apart
      order by length(k.id), k.id) as number
    from pay_internal.known_bank_entries(p_account_id, p_sha256, p_statement,
      (select jsonb_agg(to_jsonb(e)) from entry e)) k
  ), exact as materialized (
    select e.*, k.id as known_id
    from entry e
    left join known k on k.hash = e.hash and k.day = e.booked_on and k.number = e.number
      and not k.is_apart
  ), new as (
    select e.*, row_number() over (partition by e.hash order by e.booked_on, e.number) as place
    from exact e where e.known_id is null
  ), near as (
    select k.*, row_number() over (partition by k.hash order by k.day, length(k.id), k.id) as place
    from known k
    where k.is_open
      and k.id not in (select e.known_id from exact e where e.known_id is not null)
      and exists (select from (select distinct n.hash, n.booked_on from new n) n
        where n.hash = k.hash and abs(n.booked_on - k.day) <= 10)
  ), found as (
    select n.id, n.booked_on, n.hash, n.place, k.id as known_id
    from new n
    left join near k on k.hash = n.hash and k.place = n.place
  ), numbered as (
    select e.id, e.booked_on, e.known_id as new_id from exact e where e.known_id is not null
    union all
    select f.id, f.booked_on, coalesce(f.known_id, f.hash || nullif('-' || coalesce(c.known, 0)
      + row_number() over (partition by f.hash, f.known_id is null order by f.place), '-1'))
    from found f
    left join (select k.hash, count(*) as known from known k group by k.hash) c
      on c.hash = f.hash
  )
  select jsonb_object_agg(n.booked_on || n.id, n.new_id) filter (where n.new_id <> n.id)
  into v_ids
  from numbered n;
  if v_ids is null then return p_entries; end if;
  return (
    select jsonb_agg(case when n.id is null then e.value else e.value || jsonb_build_object(
      'id', n.id, 'provider_events', (
        select jsonb_agg(event.value || jsonb_build_object('object_id', n.id, 'reference',
          n.id || substr(event.value ->> 'reference', length(e.value ->> 'id') + 1)))
        from jsonb_array_elements(e.value -> 'provider_events') event)) end)
    from jsonb_array_elements(p_entries) e
    cross join lateral (
      select v_ids ->> ((e.value ->> 'booked_on') || (e.value ->> 'id')) as id) n
  );
end $$;

create or replace function pay_internal.known_bank_entries(
  p_account_id text, p_sha256 text, p_statement jsonb, p_entries jsonb
) returns table (hash text, id text, day date, is_open boolean, is_apart boolean)
language plpgsql stable rows 100 as $$
declare
  v_balances constant jsonb := nullif(p_statement -> 'balances', 'null');
  v_files constant text[] := pay_internal.adjoining_files(p_account_id, v_balances);
  v_page constant jsonb := nullif(p_statement -> 'page', 'null');
begin
  return query
    -- The bounds are made here, as in pay.bank_file_state. "." comes behind "-".
    with entry as materialized (
      select e.* from jsonb_to_recordset(p_entries) as e (hash text, booked_on date, number bigint)
    ), hash as materialized (
      select a.environment_id, h.low, h.low || '.' as high
      from pay.provider_accounts a cross join (select distinct e.hash as low from entry e) h
      where a.id = p_account_id
    ), known as materialized (
      select h.low as hash, b.id, coalesce(b.stated_on, b.booked_on) as day,
        b.sha256 <> p_sha256 and (b.statement_sha256 is null or p_statement is null and b.is_stated
          -- Its camt.053 has another entry that was taken for it.
          or exists (select from pay.bank_entries o
            where o.account_id = p_account_id and o.same_as between b.id and b.id
              and o.statement_sha256 = b.statement_sha256)) as is_open,
        b.is_stated and b.statement_sha256 = any(v_files) as is_beside,
        b.is_stated and (
          select f.result #>> '{page,statement_id}' = v_page ->> 'statement_id'
            and f.result #> '{page,number}' <> v_page -> 'number'
          from pay.bank_files f
          where v_page is not null and f.environment_id = h.environment_id
            and f.account_id = p_account_id and f.sha256 = b.statement_sha256
        ) as is_on_other_page
      from hash h
      cross join lateral (
        select y.*, y.statement_sha256 <> p_sha256 as is_stated
        from pay.bank_entries y
        where y.environment_id = h.environment_id and y.account_id = p_account_id
          and y.id between h.low and h.high
        order by y.id offset 0
      ) b
    ), contained as (
      -- A statement that comes to nothing can be a part of one that ends with its balance.
      select v_balances -> 'opening_minor' = v_balances -> 'closing_minor'
        and bool_and(e.number <= coalesce(s.count, 0)) as is_contained
      from entry e
      left join (
        select k.hash, k.day, count(*) as count from known k
        where k.is_beside
        group by k.hash, k.day
      ) s on s.hash = e.hash and s.day = e.booked_on
    )
    select k.hash, k.id, k.day, k.is_open,
      (k.is_on_other_page or k.is_beside and c.is_contained is not true) is true
    from known k cross join contained c;
end $$;

create or replace function pay_internal.next_xpub_index(p_xpub text, out given bigint)
language plpgsql volatile as $$
declare
  v_was_worker constant boolean := pay_internal.act_as_worker();
begin
  insert into pay.xpub_counters as x (xpub, next_index) values (p_xpub, 1)
  on conflict on constraint xpub_counters_pkey do update set next_index = x.next_index + 1
    where x.left_at is null
  returning x.next_index - 1 into given;
  if given is null then
    raise exception 'another cell counts the addresses of this extended public key';
  end if;
  perform pay_internal.act_as_worker(v_was_worker);
end $$;

create or replace function pay_internal.allocate_deposits(
  p_operations jsonb, p_providers jsonb, p_found pay.admission[]
) returns jsonb language plpgsql volatile as $$
declare
  v_watch_after constant interval := '30 days';
  v_now constant timestamptz := pay_internal.server_time();
  v_deposits jsonb := '{}';
  v_operation record;
  v_index bigint;
  v_expires_at timestamptz;
begin
  for v_operation in
    select c.n, c.id, c.subject_id, f.environment_id, k.found -> 'account' ->> 'id' as account_id,
      k.found -> 'account' -> 'settings' ->> 'xpub' as xpub,
      coalesce((k.found -> 'account' -> 'settings' ->> 'expires_after_seconds')::integer, 3600)
        * interval '1 second' as expires_after
    from unnest(p_found) f
    join jsonb_to_recordset(p_operations) as c (n integer, id text, op text, subject_id text)
      on c.n = f.n
    join jsonb_each(p_providers) as k (n, found) on k.n = f.n::text
    where f.outcome = 'ok' and c.op = 'authorize' and k.found -> 'account' ->> 'connector' = 'evm'
    order by k.found -> 'account' -> 'settings' ->> 'xpub' collate "C", c.n
  loop
    v_index := pay_internal.next_xpub_index(v_operation.xpub);
    v_expires_at := v_now + v_operation.expires_after;
    insert into pay.deposit_addresses (environment_id, account_id, operation_id, payment_id,
      xpub_index,
      expires_at, watch_until)
    values (v_operation.environment_id, v_operation.account_id, v_operation.id,
      v_operation.subject_id, v_index,
      v_expires_at, v_expires_at + v_watch_after);
    v_deposits := v_deposits || jsonb_build_object(v_operation.n, jsonb_build_object(
      'index', v_index, 'expires_at', pay_internal.wire_time(v_expires_at)));
  end loop;
  return v_deposits;
end $$;

create or replace function pay.watched_deposits(p_account_id text, p_after bigint, p_limit integer)
returns table (
  xpub_index bigint, payment_id text, address text, currency text, expires_at text, is_open boolean,
  has_open_events boolean, unfinal json
) language plpgsql volatile security definer rows 100
-- Looks rows up, as pay.record does.
set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
-- The provider events of a payment: as in pay_internal.lock_provider_events, only their index has
-- the order by payment.
set enable_sort = off as $$
begin
  perform pay_internal.act_as_worker();
  return query
    -- The limits and the offset let the planner look each row up. Without them it reads the whole
    -- environment once for each address.
    with page as materialized (
      select d.environment_id, d.account_id, d.payment_id, d.xpub_index, d.expires_at,
        c.provider_reference, c.currency
      from pay.deposit_addresses d
      cross join lateral (
        select c.provider_reference, c.currency from pay.provider_operations c
        where c.environment_id = d.environment_id and c.id = d.operation_id limit 1
      ) c
      where d.account_id = p_account_id and d.watch_until is not null
        and d.xpub_index > coalesce(p_after, -1)
        -- Here, because a page with fewer rows than p_limit is the last one.
        and c.provider_reference is not null
      order by d.xpub_index
      limit p_limit
    )
    select d.xpub_index, d.payment_id, d.provider_reference, d.currency,
      pay_internal.wire_time(d.expires_at),
      p.status in (/* waits for money */ 'pending', 'processing'),
      coalesce(f.is_open, false), coalesce(f.unfinal, '[]')
    from page d
    cross join lateral (
      select p.status from pay.payments p
      where p.environment_id = d.environment_id and p.id = d.payment_id limit 1
    ) p
    cross join lateral (
      select bool_or(f.outcome is null) as is_open,
        json_agg((f.body -> 'chain')
          || jsonb_build_object('currency', f.currency, 'amount_minor', f.amount_minor)
          order by f.reference)
        filter (where f.state = 'received' and not exists (
          select from pay.provider_events o
          where o.environment_id = f.environment_id and o.account_id = f.account_id
            and o.reference in (f.body ->> 'object_id',
              regexp_replace(f.reference, ':received$', ':reorged'))
        )) as unfinal
      from (
        select event.* from pay.provider_events event
        where event.subject_id between d.payment_id and d.payment_id
          and event.environment_id = d.environment_id
        order by event.subject_id offset 0
      ) f
      where f.account_id = d.account_id
    ) f
    order by d.xpub_index;
end $$;
grant execute on function pay.watched_deposits to pay_api;

create or replace function pay_internal.final_minor(p_environment_id text, p_payment_id text)
returns bigint language plpgsql stable
-- As in pay.watched_deposits.
set enable_sort = off as $$
begin
  return (
    select coalesce(sum(f.amount_minor), 0)::bigint
    from (
      select event.* from pay.provider_events event
      where event.subject_id between p_payment_id and p_payment_id
        and event.environment_id = p_environment_id
      order by event.subject_id offset 0
    ) f
    where f.op = 'authorize' and f.state = 'succeeded' and f.outcome = 'applied'
  );
end $$;

create or replace function pay_internal.transfer_reports(
  p_environment_id text, p_account_id text, p_object_id text,
  p_received_at timestamptz default null
) returns json language plpgsql stable as $$
begin
  return (
    select coalesce(json_agg(json_build_object('state', event.state,
      'block_hash', event.body #> '{chain,block_hash}',
      'is_later', event.received_at >= p_received_at)), '[]')
    from pay.provider_events event
    where event.environment_id = p_environment_id and event.account_id = p_account_id
      -- ";" is the character after ":", so the range has all references that begin with the
      -- transfer.
      and event.reference >= p_object_id and event.reference < p_object_id || ';'
      and (event.reference = p_object_id or starts_with(event.reference, p_object_id || ':'))
      and event.outcome in ('applied', 'ignored')
  );
end $$;

create or replace function pay_internal.transfers_json(
  p_event pay.provider_events, p_payment_id text
) returns json language plpgsql stable as $$
begin
  if p_event.op <> 'authorize' or p_event.state not in ('received', 'succeeded', 'reorged')
    or p_event.body #> '{chain,log_index}' is null then
    return null;
  end if;
  return json_build_object(
    'final_minor', pay_internal.final_minor(p_event.environment_id, p_payment_id),
    'reports',
      pay_internal.transfer_reports(p_event.environment_id, p_event.account_id,
        p_event.body ->> 'object_id', p_event.received_at));
end $$;

create or replace function pay_internal.check_transfers(p_reports jsonb, p_found pay.admission[])
returns pay.admission[] language plpgsql volatile as $$
declare
  v_n integer;
begin
  for v_n in
    select f.n from unnest(p_found) f
    join jsonb_to_recordset(p_reports) as r (n integer, account_id text, object_id text,
      count integer, payment_id text, final_minor bigint) on r.n = f.n
    where f.outcome = 'ok' and (
      r.final_minor <> pay_internal.final_minor(f.environment_id, r.payment_id)
      or r.count <> json_array_length(
        pay_internal.transfer_reports(f.environment_id, r.account_id, r.object_id)))
  loop
    p_found[v_n].outcome := 'stale';
  end loop;
  return p_found;
end $$;

create or replace function pay_internal.end_watches(
  p_environment_id text, p_at timestamptz, p_batch integer, out ended bigint
) language plpgsql volatile as $$
begin
  update pay.deposit_addresses deposit
  set watch_until = null
  where deposit.ctid = any (array(
    select o.ctid from pay.deposit_addresses o
    join pay.payments p on p.environment_id = o.environment_id and p.id = o.payment_id
    where o.watch_until <= p_at
      and p.status not in (/* waits for money */ 'pending', 'processing')
      and (p_environment_id is null or o.environment_id = p_environment_id)
    order by o.watch_until
    limit p_batch for update of o skip locked
  ));
  get diagnostics ended = row_count;
end $$;

create or replace function pay_internal.payout_json(p_payout pay.chain_payouts)
returns json language plpgsql stable as $$
begin
  return (
    select json_build_object('operation_id', c.id, 'op', c.op, 'subject_id', c.subject_id,
      'refund_id', c.refund_id, 'amount_minor', c.amount_minor, 'currency', c.currency,
      'destination', p_payout.destination, 'nonce', p_payout.nonce,
      'tx_hashes', p_payout.tx_hashes, 'max_fee', p_payout.max_fee,
      'priority_fee', p_payout.priority_fee,
      'sent_seconds',
        extract(epoch from pay_internal.server_time() - p_payout.sent_at)::double precision,
      'is_exported', p_payout.exported_at is not null)
    from pay.provider_operations c
    where c.environment_id = p_payout.environment_id and c.id = p_payout.operation_id limit 1
  );
end $$;

create or replace function pay.store_payout(p_account_id text, p_operation_id text,
  p_destination text)
returns json language plpgsql volatile security definer as $$
declare
  v_environment_id text;
  v_payout pay.chain_payouts;
begin
  perform pay_internal.act_as_worker();
  select a.environment_id into v_environment_id
  from pay.provider_accounts a where a.id = p_account_id;
  insert into pay.chain_payouts (environment_id, account_id, operation_id, destination)
  values (v_environment_id, p_account_id, p_operation_id, p_destination)
  on conflict on constraint chain_payouts_pkey do nothing;
  select payout.* into v_payout from pay.chain_payouts payout
  where payout.environment_id = v_environment_id and payout.operation_id = p_operation_id;
  return pay_internal.payout_json(v_payout);
end $$;
grant execute on function pay.store_payout to pay_api;

create or replace function pay.give_nonce(
  p_account_id text, p_operation_id text, p_chain_id bigint, p_signer text, p_count bigint
) returns bigint language plpgsql volatile security definer as $$
declare
  v_payout pay.chain_payouts;
  v_nonce bigint;
begin
  perform pay_internal.act_as_worker();
  select payout.* into strict v_payout from pay.chain_payouts payout
  where payout.account_id = p_account_id and payout.operation_id = p_operation_id for update;
  if v_payout.nonce is not null or v_payout.exported_at is not null then
    return v_payout.nonce;
  end if;
  insert into pay.signer_nonces as n (chain_id, signer, next_nonce)
  values (p_chain_id, p_signer, p_count + 1)
  on conflict on constraint signer_nonces_pkey
    do update set next_nonce = greatest(n.next_nonce, p_count) + 1 where n.left_at is null
  returning n.next_nonce - 1 into v_nonce;
  if v_nonce is null then
    raise exception 'another cell counts the nonces of this signer';
  end if;
  update pay.chain_payouts payout set nonce = v_nonce
  where payout.environment_id = v_payout.environment_id and payout.operation_id = p_operation_id;
  return v_nonce;
end $$;
grant execute on function pay.give_nonce to pay_api;

create or replace function pay.note_payout_fees(
  p_account_id text, p_operation_id text, p_max_fee bigint, p_priority_fee bigint
) returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  update pay.chain_payouts payout
  set sent_at = case when p_max_fee > coalesce(payout.max_fee, -1) then pay_internal.server_time()
      else payout.sent_at end,
    max_fee = greatest(payout.max_fee, p_max_fee),
    priority_fee = greatest(payout.priority_fee, p_priority_fee)
  where payout.account_id = p_account_id and payout.operation_id = p_operation_id
    and payout.nonce is not null;
end $$;
grant execute on function pay.note_payout_fees to pay_api;

create or replace function pay.note_payout_hash(
  p_account_id text, p_operation_id text, p_tx_hash text
) returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  update pay.chain_payouts payout
  set tx_hashes = payout.tx_hashes || p_tx_hash
  where payout.account_id = p_account_id and payout.operation_id = p_operation_id
    and not (payout.tx_hashes @> array[p_tx_hash]);
end $$;
grant execute on function pay.note_payout_hash to pay_api;

create or replace function pay.open_payouts(p_account_id text) returns setof json
language plpgsql volatile security definer rows 10 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select pay_internal.payout_json(payout) from pay.chain_payouts payout
    cross join lateral (
      select c.state, c.op, c.subject_id, c.refund_id, c.settled_at from pay.provider_operations c
      where c.environment_id = payout.environment_id and c.id = payout.operation_id limit 1
    ) c
    where payout.account_id = p_account_id
      and (c.state <> 'settled' or payout.nonce is not null
        and c.settled_at > pay_internal.server_time() - interval '7 days' and exists (
          select from pay.provider_events event
          where event.environment_id = payout.environment_id
            and event.account_id = payout.account_id
            and event.reference = payout.operation_id || ':failed'
        ))
      and not exists (
        select from pay.provider_events event
        where event.environment_id = payout.environment_id and event.subject_id = c.subject_id
          and event.account_id = payout.account_id and event.op = c.op
          and event.refund_id is not distinct from c.refund_id
          and (event.state = 'succeeded' or event.reference like '%:reverted')
      )
    order by payout.operation_id;
end $$;
grant execute on function pay.open_payouts to pay_api, pay_operator;

create or replace function pay.taken_transfers(p_account_id text, p_transfers text)
returns setof text language plpgsql volatile security definer rows 10 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select t.reference
    from json_to_recordset(p_transfers::json) as t (reference text, nonce bigint)
    join pay.provider_accounts own on own.id = p_account_id
    where exists (
      select from pay.provider_accounts a
      join pay.provider_events event on event.environment_id = a.environment_id
        and event.account_id = a.id and event.reference = t.reference
      where a.connector = 'evm'
    ) or exists (
      select from pay.provider_accounts a
      join pay.chain_payouts payout on payout.account_id = a.id and payout.nonce = t.nonce
      where a.connector = 'evm' and a.id <> own.id
        and lower(a.settings ->> 'signer_address') = lower(own.settings ->> 'signer_address')
        and a.settings ->> 'network' = own.settings ->> 'network'
        and a.settings ->> 'chain_id' is not distinct from own.settings ->> 'chain_id'
    );
end $$;
grant execute on function pay.taken_transfers to pay_api;

create or replace function pay.paid_payouts(
  p_account_id text, p_from timestamptz, p_to timestamptz, p_after text, p_limit integer
) returns setof json language plpgsql volatile security definer rows 100 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select json_build_object('reference', event.reference, 'currency', event.currency,
      'tx_hash', event.body #>> '{chain,tx_hash}', 'amount_minor', event.amount_minor)
    from pay.provider_accounts a
    join pay.provider_events event on event.environment_id = a.environment_id
      and event.account_id = a.id and event.reference > p_after
      and event.op in ('refund', 'transfer') and event.state = 'succeeded'
      and event.happened_at >= p_from and event.happened_at < p_to
    where a.id = p_account_id
    order by event.reference
    limit p_limit;
end $$;
grant execute on function pay.paid_payouts to pay_api;

create or replace function pay.export_payouts(p_account_id text, p_again boolean) returns setof json
language plpgsql volatile security definer rows 100 as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving_account(p_account_id);
  perform pg_advisory_xact_lock(hashtextextended('export payouts', 0));
  return query
    with open as materialized (
      select payout.environment_id, payout.operation_id from pay.chain_payouts payout
      join pay.provider_operations c on c.environment_id = payout.environment_id
        and c.id = payout.operation_id
      where payout.account_id = p_account_id and c.state <> 'settled' and payout.nonce is null
        and (p_again or payout.exported_at is null)
        and not exists (
          select from pay.provider_accounts own
          join pay.provider_accounts a on a.connector = 'evm' and a.id <> own.id
            and lower(a.settings ->> 'signer_address') = lower(own.settings ->> 'signer_address')
            and a.settings ->> 'network' = own.settings ->> 'network'
            and a.settings ->> 'chain_id' is not distinct from own.settings ->> 'chain_id'
          join pay.chain_payouts q on q.account_id = a.id and q.exported_at is not null
            and lower(q.destination) = lower(payout.destination)
          join pay.provider_operations d on d.environment_id = q.environment_id
            and d.id = q.operation_id
            and d.state <> 'settled' and d.amount_minor = c.amount_minor
            and d.currency = c.currency
          where own.id = p_account_id
        )
      order by payout.operation_id for update of payout
    ),
    exported as (
      update pay.chain_payouts payout set exported_at = pay_internal.server_time()
      from open o
      where payout.environment_id = o.environment_id and payout.operation_id = o.operation_id
        and payout.nonce is null
      returning payout.*
    )
    select pay_internal.payout_json(x) from exported x order by x.operation_id;
end $$;
grant execute on function pay.export_payouts to pay_operator;

create or replace function pay_internal.admit_payers(
  p_requests pay_internal.request[], p_found pay.admission[], p_hold text, p_is_read boolean
) returns pay.admission[] language plpgsql volatile as $$
declare
  v_opened text[] := nullif(current_setting('pay.environment_ids', true), '')::text[];
  v_row record;
  v_environment record;
  v_is_held boolean;
begin
  for v_row in
    select r.n, r.at, r.version, c.environment_id, c.id,
      case when not p_is_read and r.storage[2] is not null then r.storage end as storage
    from unnest(p_requests) r
    join pay.checkouts c on c.token_hash = decode(r.key_hash, 'hex')
    where r.is_payer and r.scope is null
    order by r.n
  loop
    v_is_held := p_hold = 'none' or pg_try_advisory_xact_lock_shared(
      hashtextextended('environment ' || v_row.environment_id, 0));
    perform set_config(
      'pay.environment_ids', (v_opened || v_row.environment_id)::text, true);
    select e.account, e.livemode, e.stored_gb, (e.moving = 'draining') is not false as is_here,
      w.version, w as settings
    into v_environment
    from pay.environments e
    left join pay.sandbox_settings w on w.environment_id = e.id
    where e.id = v_row.environment_id and e.retired_at is null
      and (e.ends_at is null or e.ends_at > pay_internal.server_time());
    continue when not found;
    if v_is_held then v_opened := v_opened || v_row.environment_id; end if;
    p_found[v_row.n] := row(v_row.n, case
        when not v_is_held or not v_environment.is_here then 'resetting'
        when v_row.version is distinct from v_environment.version then 'outdated'
        when v_environment.stored_gb >= v_row.storage[1] then 'storage_full'
        else 'ok'
      end, v_row.id, v_row.environment_id, v_environment.account, v_environment.livemode, v_row.at,
      null, null, null,
      case when v_environment.version > 0
        then pay_internal.time_ahead(v_environment.settings) end,
      case when v_row.version is distinct from v_environment.version
        then row_to_json(v_environment.settings) end, v_row.storage[2:3])::pay.admission;
  end loop;
  perform set_config('pay.environment_ids', coalesce(v_opened, '{}')::text, true);
  return p_found;
end $$;

create or replace function pay_internal.payer_detail(
  p_checkout pay.checkouts, p_attempt_id text
) returns text language plpgsql stable as $$
declare
  v_detail text;
begin
  select row_to_json(t)::text into v_detail from (
    select pay_internal.merchant_of(e.id) as merchant,
      case when e.livemode then pay_internal.method_accounts(e.id) else '[]' end::json as accounts,
      coalesce((
        select w.requests from pay.sandbox_settings w where w.environment_id = e.id), 0) as requests,
      (
        select p.body::json from pay.payments p
        where p.environment_id = e.id and p.checkout_id = p_checkout.id
          and p.id = case when p_checkout.max_payments is null then p_attempt_id
            else coalesce(p_checkout.payment_id, p_checkout.attempt_id) end
      ) as shown
    from pay.environments e where e.id = p_checkout.environment_id
  ) t;
  return left(pay_internal.checkout_detail(p_checkout), -1) || ',' || substr(v_detail, 2);
end $$;

create or replace function pay_internal.most_open_checkouts()
returns integer language sql immutable parallel safe as $$ select 1000 $$;

create or replace function pay_internal.checkout_retention()
returns interval language sql immutable parallel safe as $$ select interval '30 days' $$;

create or replace function pay_internal.checkout_status(p_checkout pay.checkouts, p_at timestamptz)
returns text language sql immutable as $$
  select case when p_checkout.status = 'open' and p_checkout.expires_at <= p_at then 'expired'
    else p_checkout.status end
$$;

create or replace function pay_internal.checkout_body(p_checkout pay.checkouts, p_at timestamptz)
returns text language sql stable as $$
  select left(pay_internal.checkout_head(p_checkout, p_at), -1) || ','
    || substr(p_checkout.body, 2, length(p_checkout.body) - 2) || ','
    || substr(row_to_json(t)::text, 2)
  from (
    select p_checkout.payments_count, p_checkout.payment_id,
      pay_internal.wire_time(p_checkout.created_at) as created_at,
      pay_internal.wire_time(p_checkout.updated_at) as updated_at
  ) t
$$;

create or replace function pay_internal.checkout_head(p_checkout pay.checkouts, p_at timestamptz)
returns text language sql stable as $$
  select row_to_json(t)::text from (
    select p_checkout.id, 'checkout' as object,
      pay_internal.checkout_status(p_checkout, p_at) as status,
      'checkout_reference:' || p_checkout.id || ':' || p_checkout.salt as url
  ) t
$$;

create or replace function pay_internal.checkout_detail(p_checkout pay.checkouts)
returns text language sql stable as $$
  select row_to_json(t)::text from (
    select p_checkout.revision, p_checkout.attempts, p_checkout.attempt_id,
      (select p.status from pay.payments p
       where p.environment_id = p_checkout.environment_id and p.id = p_checkout.attempt_id
      ) as attempt_status,
      p_checkout.declines, pay_internal.wire_time(p_checkout.declines_since) as declines_since
  ) t
$$;

create or replace function pay_internal.lock_checkouts(p_checkouts jsonb, p_found pay.admission[])
returns pay.admission[] language plpgsql volatile as $$
declare
  v_row record;
  v_last text := '';
begin
  for v_row in
    select k.n, k.revision as expected, f.environment_id || k.id as name, t.revision
    from unnest(p_found) f
    join jsonb_to_recordset(p_checkouts) as k (n integer, id text, revision integer) on k.n = f.n
    left join lateral (
      select c.revision from pay.checkouts c
      where c.environment_id = f.environment_id and c.id = k.id for update
    ) t on true
    where f.outcome = 'ok'
    order by f.environment_id, k.id, k.n
  loop
    continue when v_row.expected is null;
    if v_row.name = v_last or v_row.revision is distinct from v_row.expected then
      p_found[v_row.n].outcome := 'stale';
    end if;
    v_last := v_row.name;
  end loop;
  return p_found;
end $$;

create or replace function pay_internal.write_checkouts(
  p_checkouts jsonb, p_callers pay_internal.caller[]
) returns void language plpgsql volatile as $$
declare
  v_row record;
  v_counts integer;
  v_since timestamptz;
begin
  for v_row in
    select c.environment_id, k.*
    from jsonb_to_recordset(p_checkouts) as k (
      n integer, id text, at timestamptz, payment_id text, is_attempt boolean, is_paid boolean,
      is_declined boolean)
    join unnest(p_callers) c on c.n = k.n
    order by c.environment_id, k.id, k.n
  loop
    v_counts := 0;
    if v_row.is_paid then
      update pay.payments p set is_counted = true
      where p.environment_id = v_row.environment_id and p.id = v_row.payment_id
        and not p.is_counted;
      get diagnostics v_counts = row_count;
    end if;
    v_since := v_row.at - interval '1 hour';
    update pay.checkouts t
    set attempts = t.attempts + coalesce(v_row.is_attempt, false)::integer,
      attempt_id = case when v_row.is_attempt then v_row.payment_id else t.attempt_id end,
      declines = case when v_row.is_declined is null then t.declines
        when t.declines_since > v_since then t.declines + 1 else 1 end,
      declines_since = case when v_row.is_declined is null or t.declines_since > v_since
        then t.declines_since else v_row.at end,
      payments_count = t.payments_count + v_counts,
      payment_id = case v_counts when 1 then v_row.payment_id else t.payment_id end,
      status = case when v_counts = 1 and t.status = 'open' and t.max_payments is not null
        then 'completed' else t.status end,
      expires_at = case when v_counts = 1 and t.max_payments is null
          and t.expires_at is not null and t.body::json ->> 'expires_at' is null
        then v_row.at + pay_internal.checkout_retention() else t.expires_at end,
      updated_at = case v_counts when 1 then v_row.at else t.updated_at end,
      revision = t.revision + 1
    where t.environment_id = v_row.environment_id and t.id = v_row.id;
  end loop;
end $$;

create or replace function pay.create_checkout(p_request text, p_checkout text)
returns pay.admission
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request);
  v_checkout record;
begin
  select * into v_checkout from json_to_record(p_checkout::json) as c (id text, salt text,
    token_hash text, max_payments integer, reference text, customer_id text,
    expires_at timestamptz, created_at timestamptz, body text);
  if v_access.outcome = 'ok' and not v_access.livemode then
    perform pg_advisory_xact_lock(hashtextextended('checkouts ' || v_access.environment_id, 0));
  end if;
  v_access := pay_internal.claim_one(p_request, v_access, v_checkout.id);
  if v_access.outcome <> 'ok' then return v_access; end if;
  if not v_access.livemode and pay_internal.most_open_checkouts() <= (
    select count(*) from (
      select from pay.checkouts t
      where t.environment_id = v_access.environment_id and t.status = 'open'
        and t.expires_at > v_checkout.created_at
      limit pay_internal.most_open_checkouts()
    ) counted)
  then
    perform pay_internal.release_key(p_request, v_access);
    v_access.outcome := 'full';
    return v_access;
  end if;
  insert into pay.checkouts (environment_id, id, salt, token_hash, max_payments, reference,
    customer_id, expires_at, created_at, updated_at, body)
  values (v_access.environment_id, v_checkout.id, v_checkout.salt,
    decode(v_checkout.token_hash, 'hex'), v_checkout.max_payments, v_checkout.reference,
    v_checkout.customer_id, v_checkout.expires_at, v_checkout.created_at, v_checkout.created_at,
    v_checkout.body);
  return v_access;
end $$;
grant execute on function pay.create_checkout to pay_api;

create or replace function pay.cancel_checkout(
  p_request text, p_id text, p_revision integer, p_cancels boolean
) returns pay.admission
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request);
  v_revision integer;
begin
  if v_access.outcome = 'ok' then
    select t.revision into v_revision from pay.checkouts t
    where t.environment_id = v_access.environment_id and t.id = p_id for update;
    if not found then v_access.outcome := 'not_found'; end if;
  end if;
  v_access := pay_internal.claim_one(p_request, v_access, p_id);
  if v_access.outcome <> 'ok' then return v_access; end if;
  if v_revision <> p_revision then
    perform pay_internal.release_key(p_request, v_access);
    v_access.outcome := 'stale';
  elsif p_cancels then
    update pay.checkouts t
    set status = 'cancelled', revision = t.revision + 1,
      updated_at = (p_request::jsonb -> 0 ->> 'at')::timestamptz
    where t.environment_id = v_access.environment_id and t.id = p_id;
  end if;
  return v_access;
end $$;
grant execute on function pay.cancel_checkout to pay_api;

create or replace function pay_internal.checkouts_of_person(
  p_environment_id text, p_customer_id text, p_person bytea
) returns setof pay.checkouts language plpgsql stable rows 10 as $$
begin
  return query
    select t.* from pay.checkouts t
    where t.customer_id = p_customer_id and t.customer_id is not null
      and t.environment_id = p_environment_id
    union all
    select n.* from (
      select t.* from pay.checkouts t where t.environment_id = p_environment_id
      order by t.environment_id desc, t.id desc limit pay_internal.erasure_rows()
    ) n
    where p_customer_id is null and n.customer_id is null
      and pay_internal.person_of(p_environment_id, null, n.body::json #>> '{customer,email}')
        = p_person;
end $$;

create or replace function pay_internal.erase_checkouts(
  p_environment_id text, p_customer_id text, p_person bytea, p_at timestamptz
) returns text[] language plpgsql volatile as $$
declare
  v_ids text[];
begin
  with erased as (
    update pay.checkouts t set body = pay_internal.without_persons(t.body)
    where t.environment_id = p_environment_id and t.id = any (array(
      select c.id from pay_internal.checkouts_of_person(p_environment_id, p_customer_id, p_person) c
      where pay_internal.checkout_status(c, p_at) <> 'open'))
    returning t.id
  )
  select array_agg(e.id) into v_ids from erased e;
  return coalesce(v_ids, '{}');
end $$;

create or replace function pay_internal.purge_checkouts(
  p_environment_id text, p_at timestamptz, p_batch integer, out deleted bigint
) language plpgsql volatile as $$
begin
  delete from pay.checkouts t
  where t.ctid = any (array(
    select o.ctid from pay.checkouts o
    where o.environment_id = p_environment_id
      and case when o.status = 'open' then o.expires_at else o.updated_at end
        < p_at - pay_internal.checkout_retention()
    order by case when o.status = 'open' then o.expires_at else o.updated_at end
    limit p_batch for update skip locked
  ));
  get diagnostics deleted = row_count;
end $$;

create or replace function pay_internal.lock_subjects(p_expects jsonb, p_found pay.admission[])
returns pay.admission[] language plpgsql volatile as $$
declare
  v_n integer;
begin
  for v_n in
    with
    requested as materialized (
      select e.n, e.id, e.sequence, coalesce(e.is_erased, false) as is_erased, f.environment_id
      from unnest(p_found) f
      join jsonb_to_recordset(p_expects)
        as e (n integer, id text, sequence integer, is_erased boolean) on e.n = f.n
      where f.outcome = 'ok'
    ),
    payment as materialized (
      select a.n, p.id
      from requested a
      join pay.payments p
        on p.environment_id = a.environment_id and p.id = a.id and p.sequence = a.sequence
        and p.is_erased = a.is_erased
      order by p.environment_id, p.id
      for update of p
    ),
    transfer as materialized (
      select a.n, tr.id
      from requested a
      join pay.transfers tr
        on tr.environment_id = a.environment_id and tr.id = a.id and tr.sequence = a.sequence
      order by tr.environment_id, tr.id
      for update of tr
    )
    select a.n from requested a
    except
    select min(x.n) from (select * from payment union all select * from transfer) x group by x.id
  loop
    p_found[v_n].outcome := 'stale';
  end loop;
  return p_found;
end $$;

create or replace function pay_internal.write_rows(
  p_document pay_internal.document, p_lines text[], p_payments text, p_transfers text,
  p_refunds text, p_disputes text, p_ledger text, p_callers pay_internal.caller[],
  p_moved integer[]
) returns bigint language plpgsql volatile as $$
begin
  -- Most lists have only some kinds of rows.
  if p_payments is not null then
    perform pay_internal.write_payments(
      p_payments::pay_internal.payment_row[], p_lines, p_callers, p_moved);
  end if;
  if p_transfers is not null then
    perform pay_internal.write_transfers(
      p_transfers::pay_internal.transfer_row[], p_lines, p_callers, p_moved);
  end if;
  if p_refunds is not null then
    perform pay_internal.write_refunds(
      p_refunds::pay_internal.refund_row[], p_lines, p_callers);
  end if;
  if p_disputes is not null then
    perform pay_internal.write_disputes(
      p_disputes::pay_internal.dispute_row[], p_lines, p_callers);
  end if;
  if p_ledger is not null then
    perform pay_internal.record_movements(p_ledger::pay_internal.movement_row[], p_callers);
  end if;
  if p_document.checkouts is not null then
    perform pay_internal.write_checkouts(p_document.checkouts, p_callers);
  end if;
  if p_document.instruments is null then return 0; end if;
  return pay_internal.write_instruments(p_document.instruments, p_callers);
end $$;

create or replace function pay.commit(
  p_document text, p_patience_ms integer, p_requests text, p_payments text default null,
  p_transfers text default null, p_refunds text default null, p_disputes text default null,
  p_ledger text default null, p_events text default null
) returns table (
  n integer, outcome text, api_key_id text, environment_id text, account text, livemode boolean,
  remaining integer, status smallint, body text, detail text, deliveries bigint
) language plpgsql volatile security definer rows 10 set search_path = pg_catalog, pg_temp
set enable_mergejoin = off set enable_material = off
-- During an old snapshot a bitmap would read all versions of a total since then.
set enable_bitmapscan = off
-- A concurrent duplicate waits for the first request for this time (contract §5).
set lock_timeout = '3s' as $$
#variable_conflict use_column
declare
  v_lines constant text[] := string_to_array(p_document, E'\n');
  v_document constant pay_internal.document :=
    jsonb_populate_record(null::pay_internal.document, v_lines[1]::jsonb);
  v_requests constant pay_internal.request[] := pay_internal.requests_of(p_requests);
  v_events constant pay_internal.event_row[] := p_events;
  v_found pay.admission[];
  v_callers pay_internal.caller[];
  v_moved integer[] := '{}';
  v_providers jsonb; v_details text[];
  v_deliveries bigint := 0;
begin
  if p_patience_ms is not null then
    perform set_config('lock_timeout', p_patience_ms::text, true);
  end if;
  v_found := pay_internal.admit(v_requests, 'shared', false);
  -- Most documents need only some of these steps.
  if v_document.expects is not null then
    v_moved := array(select e.n from jsonb_to_recordset(v_document.expects) as e (n integer));
    v_found := pay_internal.lock_subjects(v_document.expects, v_found);
  end if;
  if v_document.checkouts is not null then
    v_found := pay_internal.lock_checkouts(v_document.checkouts, v_found);
  end if;
  if v_document.operations is not null then
    select * into v_found, v_providers
    from pay_internal.find_providers(v_document.operations, v_found);
  end if;
  if v_document.faults is not null then
    v_found := pay_internal.lock_faults(v_document.faults, v_found);
  end if;
  if v_events is not null then
    v_found := pay_internal.find_uncounted(v_requests, v_events, v_found);
  end if;
  if p_transfers is not null then
    v_found := pay_internal.lock_funds(
      v_requests, p_transfers::pay_internal.transfer_row[], v_moved, v_found);
  end if;
  if p_refunds is not null then
    v_found := pay_internal.check_refunds(p_refunds::pay_internal.refund_row[], v_found);
  end if;
  if v_document.instruments is not null then
    v_found := pay_internal.check_instruments(
      v_requests, v_document.instruments, v_found);
  end if;
  v_found := pay_internal.claim(v_requests, v_found);

  v_callers := pay_internal.callers_of(v_found);
  -- A list of replays writes nothing: its rows are not even read.
  if v_callers <> '{}' then
    if v_document.operations is not null then
      v_details := pay_internal.write_operations(
        v_document.operations, v_providers, v_requests, v_found);
    end if;
    v_deliveries := pay_internal.write_rows(v_document, v_lines, p_payments, p_transfers,
      p_refunds, p_disputes, p_ledger, v_callers, v_moved);
    if v_document.faults is not null then
      perform pay_internal.count_faults(v_document.faults, v_callers);
    end if;
    if v_events is not null then
      v_deliveries := v_deliveries + pay_internal.write_events(v_events, v_lines, v_callers);
    end if;
  end if;
  return query
    select f.n, case f.outcome when 'ok' then 'committed' else f.outcome end, f.api_key_id,
      f.environment_id, f.account, f.livemode, f.remaining, f.status,
      -- A duplicate within the list: the resource of its response is written by now.
      case when f.outcome = 'replay' and f.body is null then pay_internal.read_response(
        f.environment_id, f.api_key_id, v_requests[f.n].idempotency_key)
        else f.body end,
      coalesce(v_details[f.n], f.detail), v_deliveries from unnest(v_found) f;
end $$;
grant execute on function pay.commit to pay_api;

create or replace function pay_internal.write_disputes(
  p_disputes pay_internal.dispute_row[], p_lines text[], p_callers pay_internal.caller[]
) returns void language plpgsql volatile as $$
begin
  insert into pay.disputes as t
    (environment_id, id, payment_id, status, amount_minor, currency, provider_reference,
      created_at, body)
  select caller.environment_id, d.id, d.payment_id, d.status, d.amount_minor, d.currency,
    d.provider_reference, d.created_at, p_lines[d.body]
  from unnest(p_disputes) d
  join unnest(p_callers) caller on caller.n = d.n
  on conflict on constraint disputes_pkey
  do update set status = excluded.status, body = excluded.body;
end $$;

create or replace function pay_internal.dispute_body(
  p_environment_id text, p_payment_id text, p_object_id text
) returns text language sql stable as $$
  select dispute.body from pay.disputes dispute
  where dispute.payment_id = p_payment_id and dispute.environment_id = p_environment_id
    and p_object_id in (dispute.id, dispute.provider_reference)
$$;

create or replace function pay_internal.act_as_worker(p_is_worker boolean default true)
returns boolean language plpgsql volatile as $$
declare
  v_was_worker constant boolean := coalesce(current_setting('pay.worker', true), '') = 'on';
begin
  perform set_config('pay.worker', case when p_is_worker then 'on' else '' end, true);
  return v_was_worker;
end $$;

create or replace function pay.create_environment(
  p_id text, p_account text, p_livemode boolean, p_name text
) returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving(e.id) from pay.environments e where e.account = p_account;
  perform set_config('pay.environment_ids', array[p_id]::text, true);
  insert into pay.environments (id, public_id, account, livemode, name, merchant)
  values (p_id, p_id, p_account, p_livemode, p_name, (
    select e.merchant from pay.environments e
    where e.account = p_account and e.merchant is not null limit 1));
end $$;
grant execute on function pay.create_environment to pay_operator;

create or replace function pay_internal.merchant_of(p_environment_id text)
returns json language plpgsql stable as $$
begin
  return (
    select json_build_object('name', coalesce(e.merchant ->> 'name', e.account),
      'color', e.merchant ->> 'color', 'logo', e.merchant ->> 'logo')
    from pay.environments e where e.id = p_environment_id);
end $$;

create or replace function pay.change_merchant(p_account text, p_changed text)
returns json language plpgsql volatile security definer as $$
declare
  v_ids text[];
begin
  perform pay_internal.act_as_worker();
  select array_agg(e.id) into v_ids from pay.environments e
  where e.account = p_account and e.retired_at is null;
  perform pay_internal.refuse_moving(id) from unnest(v_ids) id;
  perform set_config('pay.environment_ids', v_ids::text, true);
  if p_changed <> '{}' then
    update pay.environments e
    set merchant = jsonb_strip_nulls(coalesce(e.merchant, '{}') || p_changed::jsonb)
    where e.id = any (v_ids);
  end if;
  return pay_internal.merchant_of(v_ids[1]);
end $$;
grant execute on function pay.change_merchant to pay_operator;

create or replace function pay_internal.hold_environment(
  p_public_id text, p_is_alone boolean default false
) returns text language plpgsql volatile as $$
declare
  v_held text := '';
  v_environment record;
begin
  perform pay_internal.act_as_worker();
  loop
    select e.id, e.livemode into v_environment from pay.environments e
    where e.public_id = p_public_id and e.retired_at is null;
    perform pay_internal.refuse_moving(v_environment.id);
    exit when v_environment.id is null or v_environment.livemode or v_environment.id = v_held;
    v_held := v_environment.id;
    if p_is_alone then
      perform pg_advisory_xact_lock(hashtextextended('environment ' || v_held, 0));
    else
      perform pg_advisory_xact_lock_shared(hashtextextended('environment ' || v_held, 0));
    end if;
  end loop;
  return v_environment.id;
end $$;

create or replace function pay.find_environment(p_account text, p_livemode boolean)
returns text language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  return (
    select e.public_id from pay.environments e
    where e.account = p_account and e.livemode = p_livemode and e.retired_at is null
      and e.ends_at is null
    order by e.public_id limit 1
  );
end $$;
grant execute on function pay.find_environment to pay_operator;

create or replace function pay_internal.erased_at_once()
returns integer language sql immutable parallel safe as $$ select 1000 $$;

create or replace function pay_internal.erasing_time()
returns interval language sql immutable parallel safe as $$ select interval '2 seconds' $$;

create or replace function pay_internal.erasure_rows()
returns integer language sql immutable parallel safe as $$ select 5000 $$;

create or replace function pay_internal.person_of(p_environment_id text, p_id text, p_email text)
returns bytea language plpgsql stable parallel safe as $$
begin
  return sha256(convert_to(
    p_environment_id || coalesce(' id ' || p_id, ' email ' || p_email), 'UTF8'));
end $$;

create or replace function pay_internal.inner_json(p_text text)
returns json language plpgsql immutable parallel safe as $$
begin
  return (('"' || p_text || '"')::json #>> '{}')::json;
exception when invalid_text_representation then
  return null;
end $$;

create or replace function pay_internal.persons_in(p_text text)
returns table (object text, person json) language plpgsql immutable parallel safe rows 10 as $$
begin
  return query
  select m[1], m[1]::json
  from regexp_matches(p_text,
    '[{,]"(?:customer|payer)":(\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\})', 'g') m
  union all
  select m[1], pay_internal.inner_json(m[1])
  from regexp_matches(p_text,
    '[{,]\\"(?:customer|payer)\\":(\{(?:[^{}"\\]|\\"(?:[^"\\]|\\\\(?:\\"|\\\\|[^"\\]))*\\")*\})',
    'g') m
  where strpos(p_text, '\"customer\"') > 0 or strpos(p_text, '\"payer\"') > 0;
end $$;

create or replace function pay_internal.without_person(
  p_environment_id text, p_text text, p_person bytea
) returns text language plpgsql stable as $$
declare
  v_found record;
  v_erased text;
  v_text text := p_text;
begin
  for v_found in select * from pay_internal.persons_in(p_text) loop
    continue when v_found.person is null or p_person is not null
      and p_person <> pay_internal.person_of(
        p_environment_id, v_found.person ->> 'id', v_found.person ->> 'email');
    v_erased := '{' || coalesce('"id":' || (v_found.person -> 'id')::text || ',', '')
      || '"email":null,"name":null}';
    if v_found.object like '{\\"%' then
      v_erased := btrim(to_json(v_erased)::text, '"');
    end if;
    v_text := replace(v_text, '":' || v_found.object, '":' || v_erased);
  end loop;
  return v_text;
end $$;

create or replace function pay_internal.without_persons(p_text text)
returns text language plpgsql stable as $$
begin
  return pay_internal.without_person(null, p_text, null);
end $$;

create or replace function pay_internal.find_erasable(inout p_erasure pay.erasures, out ids text[])
language plpgsql volatile as $$
declare
  v_most constant integer := pay_internal.erased_at_once();
  v_read text[];
  v_found text[];
begin
  -- Both in the order of an index, so that the planner uses it with any statistics.
  if p_erasure.at_sequence is not null then
    v_found := array[p_erasure.after_id];
  elsif p_erasure.customer_id is not null then
    select array_agg(r.id order by r.id),
      array_agg(r.id order by r.id) filter (where not r.is_erased)
    into v_read, v_found
    from (
      select p.id, p.is_erased from pay.payments p
      where p.customer_id = any (array[p_erasure.customer_id]) and p.customer_id is not null
        and p.environment_id = p_erasure.environment_id
        and p.id > p_erasure.after_id and p.id <= p_erasure.until_id
      order by p.customer_id, p.environment_id, p.id limit pay_internal.erasure_rows()
    ) r;
  else
    select array_agg(r.id order by r.id), array_agg(r.id order by r.id) filter (
      where not r.is_erased and r.customer_id is null
        and pay_internal.person_of(p_erasure.environment_id, null,
          r.body::json #>> '{customer,email}') = p_erasure.person)
    into v_read, v_found
    from (
      select p.id, p.is_erased, p.customer_id, p.body from pay.payments p
      where p.environment_id = any (array[p_erasure.environment_id])
        and p.id > p_erasure.after_id and p.id <= p_erasure.until_id
      order by p.environment_id, p.id limit pay_internal.erasure_rows()
    ) r;
  end if;
  ids := array(
    select p.id from pay.payments p
    where p.environment_id = p_erasure.environment_id and p.id = any (v_found[:v_most])
      and (not p.is_erased or p_erasure.at_sequence is not null)
    order by p.id for update);
  p_erasure.is_done := p_erasure.at_sequence is null and coalesce(cardinality(v_found), 0) <= v_most
    and coalesce(cardinality(v_read), 0) < pay_internal.erasure_rows();
  p_erasure.after_id := case when cardinality(v_found) > v_most then v_found[v_most]
    else coalesce(v_read[cardinality(v_read)], p_erasure.after_id) end;
end $$;

create or replace function pay_internal.open_of_person(
  p_environment_id text, p_customer_id text, p_person bytea, p_ids text[], p_at timestamptz
) returns json language plpgsql stable as $$
declare
  v_open constant text[] := array[
    /* open */ 'pending', 'requires_action', 'processing', 'authorized'];
begin
  return (
    with known as (
      (select p.* from pay.payments p
       where p.environment_id = p_environment_id and p.id = any (p_ids))
      union all
      (select p.* from pay.payments p
       where p.customer_id = any (array[p_customer_id]) and p.customer_id is not null
         and p.environment_id = p_environment_id
       order by p.customer_id desc, p.environment_id desc, p.id desc
       limit 2 * pay_internal.erasure_rows())
      union all
      select p.* from unnest(v_open) o (status)
      cross join lateral (
        select p.* from pay.payments p
        where p.status = o.status and p.status <> 'completed'
          and p.environment_id = p_environment_id
        order by p.status desc, p.environment_id desc, p.id desc
        limit pay_internal.erasure_rows()
      ) p
      where p_customer_id is null and p.customer_id is null
        and pay_internal.person_of(p_environment_id, null, p.body::json #>> '{customer,email}')
          = p_person
    )
    select row_to_json(t) from (
      select k.id, k.status from known k where k.status = any (v_open)
      union all
      select r.id, r.status from known k
      join pay.refunds r on r.payment_id = k.id and r.environment_id = p_environment_id
      where k.amount_refunding > 0 and r.status = 'pending'
      union all
      select d.id, d.status from known k
      join pay.disputes d on d.payment_id = k.id and d.environment_id = p_environment_id
      where d.status in ('needs_response', 'under_review')
      union all
      select c.id, c.status
      from pay_internal.checkouts_of_person(p_environment_id, p_customer_id, p_person) c
      where pay_internal.checkout_status(c, p_at) = 'open'
      limit 1
    ) t
  );
end $$;

create or replace function pay_internal.erase_payment(
  p_environment_id text, p_id text, p_from integer, p_until timestamptz, out at_sequence integer
) language plpgsql volatile as $$
declare
  v_payment pay.payments;
  v_text text;
  v_event record;
  v_is_first boolean := true;
begin
  select * into v_payment from pay.payments p
  where p.environment_id = p_environment_id and p.id = p_id;
  v_text := v_payment.body;
  if p_from is null then
    update pay.payments p set body = pay_internal.without_persons(v_text), is_erased = true
    where p.environment_id = p_environment_id and p.id = p_id;
    -- The words that are not of the person stay. The caller has the lock of the words.
    delete from pay.search_words w
    where w.environment_id = p_environment_id and w.payment_id = p_id;
    perform pay_internal.add_words(p_environment_id, array[p_id]);
    -- Events of triggers.
    update pay.events v set body = pay_internal.without_persons(v.body)
    where v.environment_id = p_environment_id and v.subject_id = p_id and v.sequence is null
      and v.body is not null;
    if pay_internal.rail_is_by_bank(v_payment.method_kind)
      and pay_internal.bank_details_need(p_environment_id, p_id) is null
    then
      perform pay_internal.delete_bank_details(p_environment_id, p_id);
    end if;
  end if;
  for v_event in
    select v.id, v.sequence, v.before from pay.events v
    where v.environment_id = p_environment_id and v.subject_id = p_id
      and v.sequence <= coalesce(p_from, v_payment.sequence) and v.before is not null
    order by v.environment_id desc, v.subject_id desc, v.sequence desc
  loop
    v_text := pay_internal.undo_splices(v_text, v_event.before);
    if clock_timestamp() > p_until and not v_is_first then
      -- The next call begins with this text.
      at_sequence := v_event.sequence;
    end if;
    update pay.events v
    set before = array['0,0,' || case when at_sequence is null
      then pay_internal.without_persons(v_text) else v_text end]
    where v.environment_id = p_environment_id and v.id = v_event.id;
    exit when at_sequence is not null;
    v_is_first := false;
  end loop;
end $$;

create or replace function pay_internal.erase_responses(p_environment_id text, p_ids text[])
returns void language plpgsql volatile as $$
begin
  with stored as materialized (
    select k.api_key_id, k.key from pay.idempotency_keys k
    where k.subject_id = any (p_ids) and k.environment_id = p_environment_id
      and k.body is not null and k.subject_id is not null and k.body <> ''
    order by k.api_key_id, k.key for update
  )
  update pay.idempotency_keys k set body = pay_internal.without_persons(k.body)
  from stored s
  where k.environment_id = p_environment_id and k.api_key_id = s.api_key_id and k.key = s.key;
  with answered as materialized (
    select x.delivery_id, x.slot
    from pay.events v
    cross join lateral pay_internal.deliveries_of(v.environment_id, v.id) d
    join pay.attempt_log x on x.environment_id = d.environment_id and x.delivery_id = d.id
    where v.subject_id = any (p_ids) and v.environment_id = p_environment_id
      and x.response is not null
    order by x.delivery_id, x.slot for update of x
  )
  update pay.attempt_log x set response = null, response_truncated = false
  from answered a
  where x.environment_id = p_environment_id and x.delivery_id = a.delivery_id and x.slot = a.slot;
end $$;

create or replace function pay_internal.erase_instruments(
  p_caller pay_internal.caller, p_customer_id text, p_mandates text[],
  p_at timestamptz, p_request_id text, p_idempotency_key text,
  out ids text[], out deliveries bigint
) language plpgsql volatile as $$
declare
  v_instrument record;
begin
  ids := '{}';
  deliveries := 0;
  for v_instrument in
    select t.id from pay.instruments t
    where t.environment_id = p_caller.environment_id
      and (t.customer_id = p_customer_id and t.customer_id is not null
        or p_customer_id is null and t.customer_id is null
          and upper(t.mandate_id) = any (p_mandates) and t.mandate_id is not null)
      and (t.status = 'active' or coalesce(t.email, t.name) is not null)
    order by t.id limit pay_internal.erased_at_once() for update
  loop
    ids := ids || v_instrument.id;
    update pay.instruments t set email = null, name = null
    where t.environment_id = p_caller.environment_id and t.id = v_instrument.id;
    update pay.events v set object = pay_internal.without_persons(v.object)
    where v.environment_id = p_caller.environment_id and v.subject_id = v_instrument.id
      and v.object is not null;
    deliveries := deliveries + pay_internal.end_instrument(
      p_caller, v_instrument.id, 'erased', p_at, p_request_id, p_idempotency_key);
  end loop;
end $$;

create or replace function pay_internal.exchange_without(
  p_environment_id text, p_customer_id text, p_person bytea, inout request text, inout answer text
) language plpgsql stable as $$
declare
  v_person constant bytea := case when not exists (
    select from pay.instruments t
    where t.environment_id = p_environment_id and t.customer_id = p_customer_id
      and t.id = substring(concat(request, answer) from '"instrument":"(ins_[0-9a-z]{26})"')
  ) then p_person end;
  v_answer constant text := pay_internal.without_person(p_environment_id, answer, v_person);
begin
  request := pay_internal.without_person(p_environment_id, request,
    case when v_answer is not distinct from answer then v_person end);
  answer := case when v_answer <> answer and strpos(answer, ',"exchanges":[') > 0
    then regexp_replace(v_answer,
      ',"response":\{"text":"(?:[^"\\]|\\.)*","truncated":(?:true|false)\}', ',"response":null', 'g')
    else v_answer end;
end $$;

create or replace function pay_internal.transcript_line(p_n bigint, p_request text, p_answer text)
returns text language sql immutable parallel safe as $$
  select '{"n":' || p_n || ',"request":' || p_request || ',"answer":' || p_answer || '}'
$$;

create or replace function pay_internal.lock_logs(p_environment_id text, p_is_erasure boolean)
returns void language plpgsql volatile as $$
declare
  v_lock constant bigint := hashtextextended('logs ' || p_environment_id, 0);
begin
  if p_is_erasure then perform pg_advisory_xact_lock(v_lock);
  else perform pg_advisory_xact_lock_shared(v_lock); end if;
end $$;

create or replace function pay_internal.erase_logs(
  p_email text, p_until timestamptz, inout p_erasure pay.erasures
) language plpgsql volatile as $$
declare
  -- JSON within JSON escapes these characters anew.
  v_known constant text := case
    when coalesce(p_erasure.customer_id, p_email) !~ '["\\[:cntrl:]]'
    then coalesce(p_erasure.customer_id, p_email) else '' end;
  v_line record;
begin
  perform pay_internal.lock_logs(p_erasure.environment_id, true);
  for v_line in
    select t.place, t.n, row_number() over (order by t.place) as nth from (
      select o.id as place, null::bigint as n from pay.requests o
      where o.environment_id = p_erasure.environment_id and o.id > p_erasure.logged_after
        and o.created_at < p_erasure.erased_at + interval '5 seconds'
        and (strpos(concat(o.request_body, o.response_body), v_known) > 0
          or strpos(o.request_body, '"instrument":"ins_') > 0)
      union all
      select 'run_' || lpad(o.n::text, 9, '0'), o.n from pay.transcript_lines o
      where o.environment_id = p_erasure.environment_id and o.n <= p_erasure.run_number
        and (strpos(o.line, v_known) > 0 or strpos(o.line, '"instrument":"ins_') > 0)
    ) t
    where t.place > p_erasure.logged_after
    order by t.place
  loop
    if clock_timestamp() > p_until and v_line.nth > 1 then
      p_erasure.is_done := false;
      exit;
    end if;
    if v_line.n is null then
      update pay.requests r set (request_body, response_body) = (
        select x.request, x.answer from pay_internal.exchange_without(r.environment_id,
          p_erasure.customer_id, p_erasure.person, r.request_body, r.response_body) x)
      where r.environment_id = p_erasure.environment_id and r.id = v_line.place;
    else
      update pay.transcript_lines l set line = (
        select pay_internal.transcript_line(l.n, x.request, x.answer)
        from pay_internal.exchange_without(l.environment_id, p_erasure.customer_id,
          p_erasure.person, l.line::json ->> 'request', l.line::json ->> 'answer') x)
      where l.environment_id = p_erasure.environment_id and l.n = v_line.n;
    end if;
    p_erasure.logged_after := v_line.place;
  end loop;
end $$;

create or replace function pay_internal.without_erased(
  p_environment_id text, p_at timestamptz, p_n bigint, inout request text, inout answer text
) language plpgsql stable as $$
declare
  v_erasure record;
begin
  for v_erasure in
    select e.customer_id, e.person from pay.erasures e
    where e.environment_id = p_environment_id
      and (p_at < e.erased_at + interval '5 seconds' or p_n <= e.run_number)
  loop
    select * into request, answer from pay_internal.exchange_without(
      p_environment_id, v_erasure.customer_id, v_erasure.person, request, answer);
  end loop;
end $$;

create or replace function pay_internal.is_just_erased(p_delivery pay.webhook_deliveries)
returns boolean language plpgsql stable as $$
begin
  return exists (
      select from pay.erasures e where e.environment_id = p_delivery.environment_id)
    and exists (
      select from pay.payments p
      where p.environment_id = p_delivery.environment_id and p.id = p_delivery.subject_id
        and p.is_erased);
end $$;

create or replace function pay_internal.erase_batch(
  p_caller pay_internal.caller, p_ids text[], p_email text, p_at timestamptz, p_request_id text,
  p_idempotency_key text, inout p_erasure pay.erasures,
  out payments integer, out instruments integer, out deliveries bigint
) language plpgsql volatile as $$
declare
  v_environment_id constant text := p_caller.environment_id;
  v_from integer := p_erasure.at_sequence;
  v_until constant timestamptz := clock_timestamp() + pay_internal.erasing_time();
  v_erased text[] := '{}';
  v_mandates text[] := '{}';
  v_id text;
  v_instruments text[];
begin
  perform set_config('pay.erasing', 'on', true);
  perform pg_advisory_xact_lock_shared(pay_internal.words_lock(v_environment_id));
  payments := 0;
  foreach v_id in array p_ids loop
    p_erasure.at_sequence := pay_internal.erase_payment(v_environment_id, v_id, v_from, v_until);
    payments := payments + (v_from is null)::integer;
    v_erased := v_erased || v_id;
    if p_erasure.at_sequence is not null
      or clock_timestamp() > v_until and v_id <> p_ids[cardinality(p_ids)]
    then
      p_erasure.after_id := v_id;
      p_erasure.is_done := false;
      exit;
    end if;
  end loop;
  if p_erasure.customer_id is null then
    v_mandates := array(
      select upper(p.body::json #>> '{method,mandate,id}') from pay.payments p
      where p.environment_id = v_environment_id and p.id = any (v_erased)
        and pay_internal.rail_collects(p.method_kind));
  end if;
  select t.ids, t.deliveries into v_instruments, deliveries
  from pay_internal.erase_instruments(p_caller, p_erasure.customer_id, v_mandates,
    p_at, p_request_id, p_idempotency_key) t;
  instruments := cardinality(v_instruments);
  p_erasure.is_done := p_erasure.is_done and instruments < pay_internal.erased_at_once();
  v_erased := v_erased || pay_internal.erase_checkouts(
    v_environment_id, p_erasure.customer_id, p_erasure.person, p_at);
  perform pay_internal.erase_responses(v_environment_id, v_erased || v_instruments);
  p_erasure := pay_internal.erase_logs(p_email, v_until, p_erasure);
  perform set_config('pay.erasing', '', true);
end $$;

create or replace function pay_internal.begin_erasure(
  p_environment_id text, p_customer_id text, p_person bytea
) returns pay.erasures language plpgsql volatile as $$
declare
  v_erasure pay.erasures;
begin
  select * into v_erasure from pay.erasures e
  where e.environment_id = p_environment_id and e.person = p_person for update;
  if v_erasure.is_done is not false then
    v_erasure.after_id := '';
    v_erasure.at_sequence := null;
    v_erasure.logged_after := '';
  end if;
  v_erasure.environment_id := p_environment_id;
  v_erasure.person := p_person;
  v_erasure.customer_id := p_customer_id;
  v_erasure.erased_at := pay_internal.server_time();
  v_erasure.run_number := (
    select w.requests from pay.sandbox_settings w
    where w.environment_id = p_environment_id and w.seed is not null);
  if p_customer_id is not null then
    select p.id into v_erasure.until_id from pay.payments p
    where p.customer_id = any (array[p_customer_id]) and p.customer_id is not null
      and p.environment_id = p_environment_id
    order by p.customer_id desc, p.environment_id desc, p.id desc limit 1;
  else
    select p.id into v_erasure.until_id from pay.payments p
    where p.environment_id = any (array[p_environment_id])
    order by p.environment_id desc, p.id desc limit 1;
  end if;
  v_erasure.until_id := coalesce(v_erasure.until_id, '');
  return v_erasure;
end $$;

create or replace function pay_internal.note_erasure(p_erasure pay.erasures)
returns void language plpgsql volatile as $$
begin
  if p_erasure.is_done and exists (
    select from pay.environments e where e.id = p_erasure.environment_id and e.livemode
  ) then
    delete from pay.erasures e
    where e.environment_id = p_erasure.environment_id and e.person = p_erasure.person;
  else
    insert into pay.erasures select p_erasure.*
    on conflict on constraint erasures_pkey do update
    set after_id = excluded.after_id, at_sequence = excluded.at_sequence,
      until_id = excluded.until_id, logged_after = excluded.logged_after,
      run_number = excluded.run_number, is_done = excluded.is_done, erased_at = excluded.erased_at;
  end if;
end $$;

create or replace function pay.erase_customer(p_request text, p_customer_id text, p_email text)
returns table (
  outcome text, api_key_id text, environment_id text, account text, livemode boolean,
  remaining integer, status smallint, body text, detail text, deliveries bigint
) language plpgsql volatile security definer rows 1 set lock_timeout = '3s' as $$
#variable_conflict use_column
declare
  v_request jsonb := p_request::jsonb -> 0;
  v_access pay.admission := pay_internal.admit_one(p_request);
  v_environment_id constant text := v_access.environment_id;
  v_person constant bytea :=
    pay_internal.person_of(v_environment_id, p_customer_id, p_email);
  v_erasure pay.erasures;
  v_found record;
  v_open json;
  v_done record;
  v_deliveries bigint := 0;
begin
  if v_access.outcome = 'ok' then
    v_erasure := pay_internal.begin_erasure(v_environment_id, p_customer_id, v_person);
    select * into v_found from pay_internal.find_erasable(v_erasure);
    v_open := pay_internal.open_of_person(v_environment_id, p_customer_id, v_person, v_found.ids,
      (v_request ->> 'at')::timestamptz);
    -- As pay_internal.check_instruments, so that no save of the customer comes between.
    if p_customer_id is not null then
      perform pg_advisory_xact_lock(hashtextextended(
        concat_ws(' ', 'instrument 1', v_environment_id, p_customer_id), 0));
      perform from pay.instruments t
      where t.environment_id = v_environment_id and t.customer_id = p_customer_id
        and t.customer_id is not null and t.status = 'active'
      order by t.id for update;
    end if;
  end if;
  v_access := pay_internal.claim_one(p_request, v_access);
  if v_access.outcome = 'ok' and v_open is not null then
    v_access.outcome := 'open';
    v_access.detail := v_open;
    perform pay_internal.release_key(p_request, v_access);
  elsif v_access.outcome = 'ok' then
    select * into v_done from pay_internal.erase_batch(
      row(1, v_environment_id, v_access.api_key_id, v_access.ahead)::pay_internal.caller,
      v_found.ids, p_email, (v_request ->> 'at')::timestamptz, v_request ->> 'request_id',
      v_request ->> 'idempotency_key', v_found.p_erasure);
    v_erasure := v_done.p_erasure;
    v_deliveries := v_done.deliveries;
    perform pay_internal.note_erasure(v_erasure);
    v_access.body := (select row_to_json(t) from (
      select 'customer' as object, p_customer_id as id, true as deleted, v_done.payments,
        v_done.instruments, not v_erasure.is_done as has_more) t);
    perform pay_internal.store_response(p_request, v_access);
  end if;
  return query select v_access.outcome, v_access.api_key_id, v_access.environment_id,
    v_access.account, v_access.livemode, v_access.remaining, v_access.status, v_access.body,
    v_access.detail, v_deliveries;
end $$;
grant execute on function pay.erase_customer to pay_api;

create or replace function pay_internal.continue_erasures(p_environment_id text)
returns bigint language plpgsql volatile as $$
declare
  v_erasure pay.erasures;
  v_found record;
  v_done record;
begin
  delete from pay.erasures e
  where e.environment_id = p_environment_id and e.is_done
    -- Rows about requests and deliveries from before can be written behind it until then.
    and e.erased_at < pay_internal.server_time() - interval '10 minutes';
  select * into v_erasure from pay.erasures e
  where e.environment_id = p_environment_id and not e.is_done
  order by e.erased_at limit 1 for update skip locked;
  if not found then return 0; end if;
  select * into v_found from pay_internal.find_erasable(v_erasure);
  select * into v_done from pay_internal.erase_batch(
    row(1, p_environment_id, null, (
      select pay_internal.time_ahead(w) from pay.sandbox_settings w
      where w.environment_id = p_environment_id))::pay_internal.caller,
    v_found.ids, null, pay_internal.environment_time(p_environment_id), null, null,
    v_found.p_erasure);
  perform pay_internal.note_erasure(v_done.p_erasure);
  return 1 + v_done.payments + v_done.instruments;
end $$;

create or replace function pay_internal.error_catalogue()
returns table (code text, type text, status integer)
language sql immutable parallel safe rows 21 as $$
  values
    ('invalid_parameter', 'invalid_request', 400),
    ('invalid_json', 'invalid_request', 400),
    ('unauthorized', 'authentication', 401),
    ('payment_declined', 'payment', 402),
    ('insufficient_funds', 'payment', 402),
    ('aml_blocked', 'payment', 402),
    ('authentication_failed', 'payment', 402),
    ('authentication_required', 'payment', 402),
    ('provider_refused', 'payment', 402),
    ('balance_insufficient', 'payment', 402),
    ('test_key_required', 'permission', 403),
    ('permission_denied', 'permission', 403),
    ('origin_not_allowed', 'permission', 403),
    ('not_found', 'invalid_request', 404),
    ('method_not_allowed', 'invalid_request', 405),
    ('idempotency_conflict', 'idempotency', 409),
    ('idempotency_in_progress', 'idempotency', 409),
    ('invalid_state', 'invalid_request', 409),
    ('payload_too_large', 'invalid_request', 413),
    ('unsupported_media_type', 'invalid_request', 415),
    ('rate_limited', 'rate_limit', 429)
$$;

create or replace function pay_internal.patterns_of(p_type text)
returns text[] language sql immutable parallel safe
as $$ select array[p_type, split_part(p_type, '.', 1) || '.*', '*'] $$;

create or replace function pay_internal.delivery_id(p_stem text, p_slot smallint)
returns text language sql immutable parallel safe as $$
  select case when p_slot < 32 then p_stem
    else left(p_stem, -1) || translate(right(p_stem, 1),
      '0123456789abcdefghjkmnpqrstvwxyz', 'ghjkmnpqrstvwxyz0123456789abcdef')
  end || substr('0123456789abcdefghjkmnpqrstvwxyz', p_slot % 32 + 1, 1)
$$;

create or replace function pay_internal.undo_splices(p_text text, p_splices text[])
returns text language plpgsql immutable parallel safe as $$
declare
  -- Then a place counts bytes too, and PostgreSQL need not look for it: a fifth of the time. Splices
  -- come last first, so that no earlier one moves a place.
  v_is_ascii constant boolean := octet_length(p_text) = length(p_text);
  v_text text := p_text;
  v_splice text;
  v_at text;
  v_length text;
begin
  foreach v_splice in array p_splices loop
    v_at := split_part(v_splice, ',', 1);
    v_length := split_part(v_splice, ',', 2);
    v_splice := substr(v_splice, length(v_at) + length(v_length) + 3);
    v_text := case
      when v_at = '0' then v_splice
      when v_is_ascii then convert_from(overlay(
        convert_to(v_text, 'UTF8') placing convert_to(v_splice, 'UTF8')
        from v_at::integer for v_length::integer), 'UTF8')
      else overlay(v_text placing v_splice from v_at::integer for v_length::integer) end;
  end loop;
  return v_text;
end $$;

create or replace function pay_internal.text_at(
  p_environment_id text, p_subject_id text, p_sequence integer
) returns text language plpgsql stable as $$
declare
  v_sequence integer;
  v_text text;
begin
  if starts_with(p_subject_id, 'pay_') then
    select t.body, t.sequence into v_text, v_sequence from pay.payments t
    where t.environment_id = p_environment_id and t.id = p_subject_id;
  else
    select t.body, t.sequence into v_text, v_sequence from pay.transfers t
    where t.environment_id = p_environment_id and t.id = p_subject_id;
  end if;
  return pay_internal.take_back(v_text, v_sequence, p_environment_id, p_subject_id, p_sequence);
end $$;

create or replace function pay_internal.take_back(
  p_text text, p_present integer, p_environment_id text, p_subject_id text, p_sequence integer
) returns text language plpgsql stable as $$
declare
  v_last constant integer := (p_sequence / 32 + 1) * 32;
  v_text text := p_text;
  v_before text[];
begin
  if p_present = p_sequence then return p_text; end if;
  for v_before in
    select v.before from pay.events v
    where v.environment_id = p_environment_id and v.subject_id = p_subject_id
      and v.sequence > p_sequence and v.sequence <= v_last
    order by v.environment_id desc, v.subject_id desc, v.sequence desc
  loop
    v_text := pay_internal.undo_splices(v_text, v_before);
  end loop;
  return v_text;
end $$;

create or replace function pay_internal.event_body(p_event pay.events)
returns text language plpgsql stable as $$
begin
  return coalesce(p_event.body, pay_internal.event_payload(
    p_event,
    coalesce(p_event.object, pay_internal.text_at(
      p_event.environment_id, p_event.subject_id, p_event.sequence)),
    (select e.livemode from pay.environments e where e.id = p_event.environment_id)));
end $$;

create or replace function pay_internal.event_payload(
  p_event pay.events, p_object text, p_livemode boolean
) returns text language plpgsql stable as $$
begin
  return concat(
    '{"id":"', p_event.id, '","object":"event","type":"', p_event.type,
    '","api_version":"v1","created_at":"', pay_internal.wire_time(p_event.created_at),
    '","livemode":', p_livemode::text, ',"sequence":', p_event.sequence, ',"data":{"object":',
    p_object,
    '},"request":{"id":', coalesce(to_json(p_event.request_id)::text, 'null'),
    ',"idempotency_key":', coalesce(to_json(p_event.idempotency_key)::text, 'null'), '}}');
end $$;

create or replace function pay_internal.write_events(
  p_events pay_internal.event_row[], p_lines text[], p_callers pay_internal.caller[],
  out deliveries bigint
) language plpgsql volatile as $$
declare
  v_now timestamptz := pay_internal.server_time();
begin
  with
  event as materialized (
    select caller.environment_id, caller.ahead, e.*
    from unnest(p_events) e
    join unnest(p_callers) caller on caller.n = e.n
  ),
  event_made as (
    insert into pay.events
      (environment_id, id, type, subject_id, sequence, created_at, object, before, request_id,
        idempotency_key, traceparent)
    select environment_id, id, type, subject_id, sequence, created_at, p_lines[object],
      string_to_array(p_lines[before], E'\t'), request_id, idempotency_key, traceparent
    from event
  ),
  delivery_made as (
    insert into pay.webhook_deliveries
      (environment_id, id, event_id, event_type, endpoint_id, subject_id, sequence, status,
        next_attempt_at, created_at, due_at)
    select e.environment_id, pay_internal.delivery_id(e.delivery_id, t.slot), e.id, e.type, t.id,
      e.subject_id, e.sequence, 'pending', least(e.created_at, v_now), e.created_at,
      case when e.ahead is not null then e.created_at end
    from event e
    join pay.webhook_endpoints t
      on t.environment_id = e.environment_id
      and t.status = 'enabled'
      and t.events && pay_internal.patterns_of(e.type)
    returning 1
  )
  select count(*) into deliveries from delivery_made;
end $$;

create or replace function pay_internal.exposed_columns(p_kind text)
returns text language sql immutable as $$
  select case p_kind
    when 'payments' then
      'id object:text status amount=amount_minor amount_minor currency amount_refunded'
      ' amount_refunding amount_captured:bigint amount_disputed amount_received:bigint'
      ' capability:text method_kind method:jsonb instrument_id:text checkout_id:text'
      ' off_session:boolean customer:jsonb payer:jsonb description:text reference metadata:own'
      ' next_action:jsonb return_url:text capture:text capture_before:timestamptz settlement:text'
      ' failure_code:text failure_message:text advice:text return_code:text livemode:boolean'
      ' sequence created_at updated_at completed_at:timestamptz cancelled_at:timestamptz'
    when 'instruments' then
      'id object:text status customer:jsonb method_kind method:jsonb usage mandate:jsonb is_kept'
      ' payment_id ended_reason last_used_at livemode:boolean sequence created_at updated_at'
      ' ended_at customer_id'
    when 'refunds' then
      'id object:text payment_id payment_status:text amount=amount_minor amount_minor currency'
      ' status failure_code:text failure_message:text return_code:text reason:text metadata:own'
      ' destination:jsonb speed:text payee_check:text livemode:boolean created_at'
      ' updated_at:timestamptz'
    when 'disputes' then
      'id object:text payment_id amount_minor currency reason:text status evidence:own'
      ' evidence_due_by:timestamptz created_at closed_at:timestamptz'
    when 'transfers' then
      'id object:text status amount=amount_minor amount_minor currency destination:jsonb speed:text'
      ' payee_check:text description:text metadata:jsonb failure_code:text failure_message:text'
      ' return_code:text livemode:boolean sequence created_at updated_at completed_at:timestamptz'
      ' cancelled_at:timestamptz'
  end
$$;

create or replace function pay_internal.exposed_list(p_kind text)
returns text language sql immutable as $$
  select string_agg(case c.type
      when '' then format('t.%I', c.source)
      when 'text' then format('t.body::json ->> %L', c.name)
      when 'jsonb' then format('nullif((t.body::json -> %L)::text, ''null'')::jsonb', c.name)
      when 'own' then format('case t.reader when ''service_role''
        then nullif((t.body::json -> %L)::text, ''null'')::jsonb end', c.name)
      else format('(t.body::json ->> %L)::%s', c.name, c.type)
    end || format(' as %I', c.name), ', ' order by c.n)
  from (
    select w.n, split_part(split_part(w.word, ':', 1), '=', 1) as name,
      split_part(w.word, ':', 2) as type,
      coalesce(nullif(split_part(w.word, '=', 2), ''), w.word) as source
    from regexp_split_to_table(pay_internal.exposed_columns(p_kind), ' +')
      with ordinality as w (word, n)
  ) c
$$;

create or replace function pay_internal.exposed_body(p_kind text)
returns text language sql immutable as $$
  select case p_kind when 'instruments' then ', json_build_object(
    ''object'', ''instrument'',
    ''customer'', case when t.customer_id is not null or t.email is not null or t.name is not null
      then json_build_object(''id'', t.customer_id, ''email'', t.email, ''name'', t.name) end,
    ''method'', t.method::json,
    ''mandate'', case when t.mandate_id is not null
      then json_build_object(''id'', t.mandate_id, ''signed_at'', t.signed_at) end,
    ''livemode'', (select e.livemode from pay.environments e))::text as body' else '' end
$$;

create or replace function pay_internal.exposed_view(p_kind text)
returns text language sql immutable as $$
  select format(
    'create view payments.%1$I as
     select %2$s from (
       select t.*, name ''service_role'' as reader%4$s from pay.%1$I t %3$s
     ) t
     where t.environment_id = (select e.id from pay.environments e) and t.reader = current_user',
    p_kind, pay_internal.exposed_list(p_kind),
    case
      when p_kind = 'transfers' then ''
      when p_kind in ('payments', 'instruments') then format(
        'union all select t.*, ''authenticated''%s from pay.%I t
         where t.customer_id = (select auth.uid())::text', pay_internal.exposed_body(p_kind), p_kind)
      else format(
        'union all select t.*, ''authenticated'' from pay.payments p
         join pay.%I t on t.payment_id = p.id and t.environment_id = p.environment_id
         where p.customer_id = (select auth.uid())::text', p_kind)
    end, pay_internal.exposed_body(p_kind)
  )
$$;

create or replace function pay_internal.open_to_reader(p_public_id text)
returns void language plpgsql volatile as $$
declare
  v_table text;
begin
  execute format(
    'create policy environments_exposed on pay.environments for select to pay_reader
     using (public_id = %L and retired_at is null)', p_public_id);
  foreach v_table in array array['payments', 'instruments'] loop
    execute format(
      'create policy %I on pay.%I for select to pay_reader using (
         coalesce(environment_id = (select e.id from pay.environments e), false)
         and ((select current_user = ''service_role'')
           or (select current_user = ''authenticated'')
             and customer_id = (select auth.uid())::text)
       )', v_table || '_exposed', v_table);
  end loop;
  foreach v_table in array array['refunds', 'disputes'] loop
    execute format(
      'create policy %1$I on pay.%2$I for select to pay_reader using (
         coalesce(environment_id = (select e.id from pay.environments e), false)
         and ((select current_user = ''service_role'') or payment_id = (
           select p.id from pay.payments p
           where p.environment_id = %2$I.environment_id and p.id = %2$I.payment_id
         ))
       )', v_table || '_exposed', v_table);
  end loop;
  create policy transfers_exposed on pay.transfers for select to pay_reader using (
    coalesce(environment_id = (select e.id from pay.environments e), false)
    and (select current_user = 'service_role')
  );
  grant select on pay.environments, pay.payments, pay.instruments, pay.refunds, pay.disputes,
    pay.transfers to pay_reader;
end $$;

create or replace function pay_internal.broadcast_payment()
returns trigger language plpgsql volatile as $$
begin
  if current_setting('pay.erasing', true) is distinct from 'on' and exists (
    select from pay.environments e where e.id = new.environment_id and e.public_id = tg_argv[0]
  ) then
    call payments.broadcast('payments:' || new.customer_id, jsonb_build_object(
      'object', 'payment', 'id', new.id, 'status', new.status, 'sequence', new.sequence));
  end if;
  return null;
exception when others then
  raise warning 'The broadcast of % failed: % %', new.id, sqlstate, sqlerrm;
  return null;
end $$;

create or replace function pay_internal.make_broadcast(p_public_id text)
returns void language plpgsql volatile as $$
begin
  if to_regprocedure('realtime.send(jsonb, text, text, boolean)') is null then return; end if;
  execute $make$
    create procedure payments.broadcast(p_topic text, p_payload jsonb)
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
    as $body$
    begin
      perform realtime.send(p_payload, 'payment', p_topic, true);
    end
    $body$
  $make$;
  revoke execute on procedure payments.broadcast(text, jsonb) from public;
  grant execute on procedure payments.broadcast(text, jsonb) to pay_owner;
  grant usage on schema payments to pay_owner;
  execute format(
    'create trigger payments_broadcast after insert or update on pay.payments
     for each row when (new.customer_id is not null)
     execute function pay_internal.broadcast_payment(%L)', p_public_id);
  begin
    create policy payments_of_customer on realtime.messages for select to authenticated
      using (extension = 'broadcast'
        and (select realtime.topic()) = 'payments:' || (select auth.uid())::text);
  exception when insufficient_privilege then
    raise warning 'The policy payments_of_customer is not made: this role may not change %',
      'realtime.messages, so nobody can join a channel';
  end;
end $$;

create or replace function pay_internal.lock_exposed()
returns void language plpgsql volatile set lock_timeout = '100ms' as $$
declare
  v_until constant timestamptz := clock_timestamp() + interval '3 seconds';
begin
  loop
    begin
      lock table pay.environments, pay.payments, pay.instruments, pay.refunds, pay.disputes,
        pay.transfers in access exclusive mode;
      if to_regclass('realtime.messages') is not null then
        if has_table_privilege('realtime.messages', 'update') then
          lock table only realtime.messages in access exclusive mode;
        end if;
      end if;
      return;
    exception when lock_not_available then
      if clock_timestamp() > v_until then raise; end if;
    end;
    perform pg_sleep(0.05);
  end loop;
end $$;

create or replace function pay.expose(account text, mode text)
returns text language plpgsql volatile set lock_timeout = '3s' as $$
declare
  v_public_id text;
  v_kind text;
begin
  if mode is null or mode not in ('test', 'live') then
    raise exception 'mode must be test or live' using errcode = 'invalid_parameter_value';
  end if;
  if to_regrole('service_role') is null or to_regrole('authenticated') is null
    or to_regprocedure('auth.uid()') is null
  then
    raise exception
      'pay.expose needs a Supabase project: service_role, authenticated or auth.uid() is missing'
      using errcode = 'undefined_object';
  end if;
  v_public_id := pay.find_environment(account, mode = 'live');
  if v_public_id is null then
    raise exception 'account: there is no % environment of this account', mode
      using errcode = 'invalid_parameter_value',
        hint = 'Its first API key makes it: deno task keys create';
  end if;
  perform pay.unexpose();
  if to_regnamespace('payments') is not null then
    raise exception 'A schema payments exists that is not of pay.expose: rename it first'
      using errcode = 'duplicate_schema';
  end if;
  execute format('grant pay_owner, pay_reader to %I', current_user);
  perform pay_internal.open_to_reader(v_public_id);
  create schema payments authorization pay_reader;
  execute format('comment on schema payments is %L', format(
    'The payments of %s (%s): made by pay.expose, taken away by pay.unexpose.', account, mode));
  foreach v_kind in array array['payments', 'instruments', 'refunds', 'disputes', 'transfers'] loop
    execute pay_internal.exposed_view(v_kind);
    execute format('alter view payments.%I owner to pay_reader', v_kind);
    execute format('grant select on payments.%I to service_role, authenticated', v_kind);
  end loop;
  perform pay_internal.make_broadcast(v_public_id);
  grant usage on schema payments to service_role, authenticated;
  execute format('revoke pay_owner, pay_reader from %I', current_user);
  notify pgrst, 'reload schema';
  return v_public_id;
end $$;
grant execute on function pay.expose to pay_operator;

create or replace function pay.unexpose()
returns void language plpgsql volatile set lock_timeout = '3s' as $$
declare
  v_table text;
begin
  perform pg_advisory_xact_lock(hashtextextended('exposure', 0));
  execute format('grant pay_owner, pay_reader to %I', current_user);
  perform pay_internal.lock_exposed();
  drop trigger if exists payments_broadcast on pay.payments;
  foreach v_table in array array[
    'payments', 'instruments', 'refunds', 'disputes', 'transfers', 'environments'
  ] loop
    execute format('drop policy if exists %I on pay.%I', v_table || '_exposed', v_table);
    execute format('revoke all on pay.%I from pay_reader', v_table);
  end loop;
  if exists (
    select from pg_namespace n where n.nspname = 'payments' and n.nspowner = 'pay_reader'::regrole
  ) then
    drop view payments.payments, payments.instruments, payments.refunds, payments.disputes,
      payments.transfers;
    drop procedure if exists payments.broadcast(text, jsonb);
    drop schema payments;
  end if;
  if to_regclass('realtime.messages') is not null then
    begin
      drop policy if exists payments_of_customer on realtime.messages;
    exception when insufficient_privilege then
      raise warning 'The owner of realtime.messages can drop its policy payments_of_customer';
    end;
  end if;
  execute format('revoke pay_owner, pay_reader from %I', current_user);
  notify pgrst, 'reload schema';
end $$;
grant execute on function pay.unexpose to pay_operator;

create or replace function pay.read_outbox() returns table (
  due_deliveries bigint, oldest_due_seconds double precision, pending_deliveries bigint,
  failed_deliveries_last_hour bigint, failing_endpoints bigint
) language plpgsql volatile security definer rows 1 as $$
declare
  v_most constant integer := 100000;
begin
  perform pay_internal.act_as_worker();
  return query select
    (
      select count(*) from (
        select from pay.webhook_deliveries d
        where d.status = 'pending' and d.next_attempt_at <= now()
          and (d.leased_until is null or d.leased_until <= now())
        limit v_most
      ) due
    ),
    (
      select coalesce(extract(epoch from now() - min(o.since)), 0)::double precision
      from pay.webhook_endpoints t
      join pay.environments e on e.id = t.environment_id and e.livemode
      cross join lateral (
        (
          select d.next_attempt_at as since from pay.webhook_deliveries d
          where d.endpoint_id = t.id and d.next_attempt_at <= now() and d.expired_leases = 0
            and (d.leased_until is null or d.leased_until <= now())
          order by d.next_attempt_at limit 1
        )
        union all
        select d.next_attempt_at from pay.webhook_deliveries d
        where d.endpoint_id = t.id and d.next_attempt_at <= now() and d.expired_leases > 0
          and (d.leased_until is null or d.leased_until <= now())
      ) o
    ),
    (
      select count(*) from (
        select from pay.webhook_deliveries d where d.status = 'pending' limit v_most
      ) pending
    ),
    (
      select count(*) from pay.environments e
      join pay.webhook_deliveries d on d.environment_id = e.id
        and d.id >= pay_internal.id_floor('whd_', now() - interval '1 hour')
      where d.status = 'failed' and e.livemode and e.retired_at is null
    ),
    (
      select count(*) from pay.webhook_endpoints t
      join pay.environments e on e.id = t.environment_id and e.livemode
      where t.status = 'enabled' and t.failing_since is not null
    );
end $$;
grant execute on function pay.read_outbox to pay_operator;

create or replace function pay.read_books() returns table (
  invariant_breaches bigint, books_checked_at timestamptz
) language plpgsql volatile security definer rows 1 as $$
declare
  v_most constant integer := 100000;
begin
  perform pay_internal.act_as_worker();
  return query select
    (
      select case
        when exists (select from pay.settings s where s.name = 'books_checked_at') then count(*)
      end
      from (select from pay.invariant_breaches limit v_most) breaches
    ),
    (
      select to_timestamp(s.value::double precision) from pay.settings s
      where s.name = 'books_checked_at'
    );
end $$;
grant execute on function pay.read_books to pay_operator;

create or replace function pay.read_service() returns table (
  is_retention_behind boolean, waiting_environments bigint, oldest_waiting_seconds double precision,
  largest_storage_bytes bigint, test_keys bigint, live_keys bigint,
  is_dispatcher_configured boolean, waiting_accounts bigint
) language plpgsql volatile security definer rows 1 as $$
declare
  v_most constant integer := 100000;
begin
  perform pay_internal.act_as_worker();
  return query select
    exists (
      select from pay.environments e
      -- Retention obeys the clock of a sandbox, which can stand.
      left join pay_internal.sandbox_times clock on clock.environment_id = e.id
      cross join lateral (
        select v.id from pay.events v where v.environment_id = e.id order by v.id limit 1
      ) oldest
      where oldest.id < pay_internal.id_floor('evt_', coalesce(clock.now, now())
        - interval '31 days')
    ) or coalesce(waiting.oldest < now() - interval '1 hour', false),
    waiting.environments,
    coalesce(extract(epoch from now() - waiting.oldest), 0)::double precision,
    (select coalesce(max(e.stored_gb), 0)::bigint << 30 from pay.environments e),
    (select count(*) from pay.api_keys k where not k.livemode and k.revoked_at is null),
    (select count(*) from pay.api_keys k where k.livemode and k.revoked_at is null),
    (select count(*) = 2 from pay.settings s where s.name in ('relay_url', 'relay_token')),
    (
      select count(distinct e.account) from pay.environments e
      where e.moving is not null and e.moving <> 'arriving'
    )
  from (
    select count(*) as environments, min(e.retired_at) as oldest from (
      select e.retired_at from pay.environments e where e.retired_at is not null limit v_most
    ) e
  ) waiting;
end $$;
grant execute on function pay.read_service to pay_operator;

create or replace function pay.read_cron() returns table (
  last_dispatcher_wake_at timestamptz, last_retention_at timestamptz, failed_cron_runs bigint
) language plpgsql stable rows 1 as $$
begin
  if to_regclass('cron.job_run_details') is null then
    return query select null::timestamptz, null::timestamptz, null::bigint;
    return;
  end if;
  -- The newest runs, by their primary key: some 80 minutes of our jobs.
  return query execute '
    select max(r.start_time) filter (where j.jobname = ''pay-dispatcher''),
      max(r.start_time) filter (where j.jobname = ''pay-retention''),
      count(*) filter (where r.status = ''failed'')
    from (select * from cron.job_run_details order by runid desc limit 1000) r
    join cron.job j on j.jobid = r.jobid and j.jobname like ''pay-%''';
exception when insufficient_privilege then
  return query select null::timestamptz, null::timestamptz, null::bigint;
end $$;
grant execute on function pay.read_cron to pay_operator;

create or replace function pay.read_wakes()
returns table (last_dispatcher_status integer, failed_dispatcher_wakes_last_hour bigint)
language plpgsql volatile rows 1 as $$
begin
  if to_regclass('net._http_response') is null then
    return query select null::integer, null::bigint;
    return;
  end if;
  return query execute '
    with wake as materialized (
      select w.woken_at, r.id is not null as has_response, r.status_code
      from pay.recent_wakes() w
      left join net._http_response r on r.id = w.request_id
        and r.created between w.woken_at and w.woken_at + interval ''5 minutes''
        and r.created >= now() - interval ''1 hour''
    )
    select
      (select k.status_code from wake k where k.has_response order by k.woken_at desc limit 1),
      (
        select count(*) from wake k
        where case
          when k.has_response then coalesce(k.status_code, 0) not between 200 and 299
          else k.woken_at between now() - interval ''10 minutes'' and now() - interval ''1 minute''
        end
      )';
exception when insufficient_privilege then
  return query select null::integer, null::bigint;
end $$;
grant execute on function pay.read_wakes to pay_operator;

create or replace function pay.read_providers() returns table (
  unsettled_operations bigint, oldest_unsettled_operation_seconds double precision,
  unmatched_events bigint, stalled_readings bigint
) language plpgsql volatile security definer rows 1 as $$
declare
  v_most constant integer := 100000;
begin
  perform pay_internal.act_as_worker();
  return query select
    (
      select count(*) from (
        select from pay.provider_operations c
        join pay.environments e on e.id = c.environment_id and e.retired_at is null
        where c.state <> 'settled' and c.first_sent_at is not null and c.account_id <> 'sandbox'
        limit v_most
      ) unsettled
    ),
    (
      select coalesce(extract(epoch from now() - min(o.first_sent_at)), 0)::double precision
      from (
        select c.first_sent_at from pay.provider_operations c
        join pay.environments e on e.id = c.environment_id and e.retired_at is null
        where c.state <> 'settled' and c.first_sent_at is not null and c.account_id <> 'sandbox'
        order by c.first_sent_at limit 1
      ) o
    ),
    (
      select count(*) from (
        select from pay.provider_events reported
        join pay.environments e on e.id = reported.environment_id and e.retired_at is null
        where e.livemode and reported.outcome = 'unmatched' and reported.dismissed_at is null
        limit v_most
      ) unmatched
    ),
    (
      select count(*) from pay.provider_cursors u
      where u.stalled_since < now() - interval '5 minutes'
    );
end $$;
grant execute on function pay.read_providers to pay_operator;

create or replace function pay.read_server() returns table (unfit_parameters text)
language plpgsql stable security definer rows 1 as $$
begin
  return query
    select string_agg(n.name || ' = ' || current_setting(n.name), ', ' order by n.name)
    from unnest(array[
      'default_transaction_isolation', 'fsync', 'full_page_writes', 'synchronous_commit'
    ]) n (name)
    where case n.name
      when 'default_transaction_isolation' then current_setting(n.name) <> 'read committed'
      else current_setting(n.name) = 'off'
    end;
end $$;
grant execute on function pay.read_server to pay_operator;

create or replace function pay.read_metrics()
returns table (name text, help text, value double precision)
language plpgsql volatile security definer rows 20
set enable_seqscan = on set plan_cache_mode = auto as $$
begin
  return query
    select
      case a.atttypid
        when 'timestamptz'::regtype then regexp_replace(a.attname, '_at$', '_timestamp_seconds')
        else regexp_replace(a.attname, '^is_', '')
      end,
      col_description(a.attrelid, a.attnum),
      case a.atttypid
        when 'boolean'::regtype then (read.value::boolean)::integer
        when 'timestamptz'::regtype then extract(epoch from read.value::timestamptz)
        when 'text'::regtype then coalesce(cardinality(string_to_array(read.value, ', ')), 0)
        else read.value::double precision
      end
    from (
      select o.*, b.*, s.*, p.*, v.*
      from pay.read_outbox() o
      cross join pay.read_books() b
      cross join pay.read_service() s
      cross join pay.read_providers() p
      cross join pay.read_server() v
    ) h
    cross join jsonb_each_text(to_jsonb(h)) read
    join pg_attribute a on a.attrelid = 'pay.health'::regclass and a.attname = read.key
    where read.value is not null or a.atttypid = 'text'::regtype
    order by a.attnum;
end $$;
grant execute on function pay.read_metrics to pay_api;

create or replace function pay_internal.idempotency_retention()
returns interval language sql immutable parallel safe as $$ select interval '24 hours' $$;

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

create or replace function pay_internal.claim_one(
  p_request text, p_access pay.admission, p_subject_id text default null
) returns pay.admission language plpgsql volatile as $$
declare
  v_found pay.admission[] :=
    pay_internal.claim(pay_internal.requests_of(p_request), array[p_access], p_subject_id);
begin
  return v_found[1];
end $$;

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

create or replace function pay_internal.release_key(p_request text, p_access pay.admission)
returns void language plpgsql volatile as $$
declare
  v_request jsonb := p_request::jsonb -> 0;
begin
  delete from pay.idempotency_keys k
  where k.environment_id = p_access.environment_id and k.api_key_id = p_access.api_key_id
    and k.key = v_request ->> 'idempotency_key' and k.request_id = v_request ->> 'request_id';
end $$;

create or replace function pay_internal.response_body(p_key pay.idempotency_keys)
returns text language plpgsql stable as $$
begin
  return coalesce(p_key.body,
    pay_internal.text_at(p_key.environment_id, p_key.subject_id, p_key.sequence));
end $$;

create or replace function pay_internal.read_response(
  p_environment_id text, p_api_key_id text, p_key text
) returns text language plpgsql stable as $$
begin
  return (
    select pay_internal.response_body(k) from pay.idempotency_keys k
    where k.environment_id = p_environment_id and k.api_key_id = p_api_key_id and k.key = p_key);
end $$;

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

create or replace function pay_internal.most_kept()
returns integer language sql immutable parallel safe as $$ select 50 $$;

create or replace function pay_internal.idle_time()
returns interval language sql immutable parallel safe as $$ select interval '36 months' $$;

create or replace function pay_internal.instrument_at(p_instrument pay.instruments, p_at timestamptz)
returns pay.instruments language plpgsql immutable as $$
begin
  if p_instrument.status = 'active' and p_instrument.idle_at <= p_at then
    p_instrument.status := 'ended';
    p_instrument.ended_reason := 'idle';
    p_instrument.ended_at := p_instrument.idle_at;
    p_instrument.updated_at := p_instrument.idle_at;
    p_instrument.sequence := p_instrument.sequence + 1;
  end if;
  return p_instrument;
end $$;

create or replace function pay_internal.instrument_body(p_instrument pay.instruments)
returns text language sql stable as $$
  select row_to_json(t)::text from (
    select p_instrument.id, 'instrument' as object, p_instrument.status,
      (select row_to_json(c) from (
        select p_instrument.customer_id as id, p_instrument.email, p_instrument.name
        where coalesce(p_instrument.customer_id, p_instrument.email, p_instrument.name) is not null
      ) c) as customer,
      p_instrument.method_kind, p_instrument.method::json, p_instrument.usage,
      (select row_to_json(m) from (
        select p_instrument.mandate_id as id, p_instrument.signed_at
        where p_instrument.mandate_id is not null
      ) m) as mandate,
      p_instrument.is_kept, p_instrument.payment_id, p_instrument.ended_reason,
      pay_internal.wire_time(p_instrument.last_used_at) as last_used_at,
      p_instrument.test_behaviour is null as livemode,
      p_instrument.sequence, pay_internal.wire_time(p_instrument.created_at) as created_at,
      pay_internal.wire_time(p_instrument.updated_at) as updated_at,
      pay_internal.wire_time(p_instrument.ended_at) as ended_at
  ) t
$$;

create or replace function pay_internal.instrument_detail(p_instrument pay.instruments)
returns text language sql stable as $$
  select row_to_json(t)::text from (
    select p_instrument.test_behaviour, p_instrument.provider, d.key_id, d.sealed
    from (select) nothing
    left join pay.bank_details d on d.environment_id = p_instrument.environment_id
      and d.owner_id = p_instrument.id
  ) t
$$;

create or replace function pay_internal.instrument_of_mandate(
  p_environment_id text, p_mandate_id text
) returns text language plpgsql stable as $$
begin
  return (
    select t.id from pay.instruments t
    where t.environment_id = p_environment_id and upper(t.mandate_id) = upper(p_mandate_id)
      and t.mandate_id is not null and t.status <> 'failed');
end $$;

create or replace function pay_internal.derived_id(p_prefix text, p_at timestamptz, p_from text)
returns text language sql stable as $$
  select left(pay_internal.id_floor(p_prefix, p_at), length(p_prefix) + 9)
    || left(encode(sha256(convert_to(p_from, 'UTF8')), 'hex'), 16) || '0'
$$;

create or replace function pay_internal.check_instruments(
  p_requests pay_internal.request[], p_instruments jsonb, p_found pay.admission[]
) returns pay.admission[] language plpgsql volatile as $$
declare
  v_row record;
  v_key text;
  v_this jsonb; v_last jsonb := '[]';
  v_instrument pay.instruments;
  v_detail text;
begin
  for v_row in
    select r.n, f.environment_id, f.api_key_id, r.idempotency_key, i.*, g.turn,
      case g.turn when 1 then i.customer_id when 2 then upper(i.mandate_id) else i.id end as name
    from unnest(p_found) f
    join unnest(p_requests) r on r.n = f.n
    join jsonb_to_recordset(p_instruments) as i (
      n integer, act text, id text, at timestamptz, sequence integer, customer_id text,
      mandate_id text, mandate_sequence text, signed_at timestamptz, ibans text[]
    ) on i.n = r.n
    join (values (1, 'save'), (2, 'save'), (2, 'mandate'), (3, 'use')) g (turn, act)
      on g.act = i.act
    where f.outcome = 'ok' and (g.turn <> 2 or i.mandate_id is not null)
    order by g.turn, f.environment_id, name, r.n
  loop
    continue when p_found[v_row.n].outcome <> 'ok';
    v_key := concat_ws(' ', v_row.turn, v_row.environment_id, v_row.name);
    v_this := jsonb_build_array(
      v_key, v_row.act, v_row.mandate_sequence, v_row.ibans, v_row.customer_id);
    if v_last ->> 0 = v_key and v_row.turn < 3
      and not (v_row.mandate_sequence = 'recurring' and v_row.act = 'mandate' and v_last = v_this)
    then
      p_found[v_row.n].outcome := 'stale';
      continue;
    end if;
    v_last := v_this;
    if v_row.turn < 3 then
      perform pg_advisory_xact_lock(hashtextextended('instrument ' || v_key, 0));
    end if;
    -- Separate statements after the lock, so that they see what was committed before.
    if v_row.turn = 2 then
      select t.* into v_instrument from pay.instruments t
      where t.environment_id = v_row.environment_id and upper(t.mandate_id) = v_row.name
        and t.mandate_id is not null and t.status <> 'failed' for update;
      if not found then
        select t.* into v_instrument from pay.instruments t
        where t.environment_id = v_row.environment_id and upper(t.mandate_id) = v_row.name
          and t.mandate_id is not null and t.status = 'failed' limit 1;
      end if;
    elsif v_row.turn = 3 then
      select t.* into v_instrument from pay.instruments t
      where t.environment_id = v_row.environment_id and t.id = v_row.id for update;
    end if;
    -- A request whose key is stored uses nothing, because pay_internal.claim finds its response.
    if exists (
      select from pay.idempotency_keys k
      where k.environment_id = v_row.environment_id and k.api_key_id = v_row.api_key_id
        and k.key = v_row.idempotency_key)
    then
      p_found[v_row.n].outcome := 'expired';
      continue;
    end if;
    v_detail := case v_row.turn
      when 1 then case when (
        select count(*) from pay.instruments t
        where t.environment_id = v_row.environment_id and t.customer_id = v_row.customer_id
          and t.is_kept and t.status in ('pending', 'active')
      ) >= pay_internal.most_kept() then 'many' end
      when 2 then case
        when v_instrument.status = 'ended' then v_instrument.ended_reason
        when v_instrument.iban <> all (v_row.ibans) and exists (
          select from unnest(v_row.ibans) as i (iban)
          where split_part(i.iban, ':', 1) = split_part(v_instrument.iban, ':', 1)
        ) then 'iban'
        when v_instrument.customer_id <> v_row.customer_id then 'customer'
        when v_instrument.status <> 'failed' then case
          when v_row.act = 'save' then 'known'
          when v_instrument.iban <> all (v_row.ibans) then 'unreadable'
          when v_instrument.is_kept and v_row.mandate_sequence <> 'recurring' then 'kept'
          when v_row.mandate_sequence in ('first', 'one_off') then 'used'
          when v_instrument.idle_at <= v_row.at then 'idle'
        end
        when v_row.signed_at + pay_internal.idle_time() < v_row.at then 'idle'
      end
      else case
        when v_instrument.id is null or v_instrument.sequence <> v_row.sequence
          or v_instrument.status <> 'active' then 'changed'
        when v_instrument.idle_at <= v_row.at then 'idle'
      end
    end;
    if v_detail is not null then
      p_found[v_row.n].outcome := case v_detail when 'changed' then 'stale' else 'instrument' end;
      p_found[v_row.n].detail := v_detail;
    end if;
  end loop;
  return p_found;
end $$;

create or replace function pay_internal.lock_instruments(
  p_instruments jsonb, p_found pay.admission[]
) returns void language plpgsql volatile as $$
begin
  perform from unnest(p_found) f
  join jsonb_to_recordset(p_instruments) as i (n integer, id text, mandate_id text) on i.n = f.n
  cross join lateral (
    select t.id from pay.instruments t
    where t.environment_id = f.environment_id
      and t.id = coalesce(
        i.id, pay_internal.instrument_of_mandate(f.environment_id, i.mandate_id))
    for update
  ) t
  where f.outcome = 'ok';
end $$;

create or replace function pay_internal.write_instruments(
  p_instruments jsonb, p_callers pay_internal.caller[]
) returns bigint language plpgsql volatile as $$
declare
  v_row record;
  v_id text;
  v_status text;
  v_deliveries bigint := 0;
begin
  for v_row in
    select c as caller, c.environment_id, i.*
    from jsonb_to_recordset(p_instruments) as i (
      n integer, act text, id text, at timestamptz, status text, customer_id text, email text,
      name text, method_kind text, method text, usage text, mandate_id text,
      mandate_sequence text, signed_at text, ibans text[], bank_details jsonb,
      test_behaviour text, provider jsonb, payment_id text, is_use boolean, reason text,
      request_id text, idempotency_key text)
    join unnest(p_callers) c on c.n = i.n
    -- The end of a mandate by its bank comes before the result of the payment that saves it.
    order by c.environment_id, i.act <> 'end', coalesce(i.id, upper(i.mandate_id)), i.n
  loop
    v_id := coalesce(v_row.id, '');
    if v_row.act in ('save', 'mandate') then
      insert into pay.instruments as t (environment_id, id, status, customer_id, email, name,
        method_kind, method, usage, is_kept, mandate_id, signed_at, iban, test_behaviour, provider,
        payment_id, last_used_at, idle_at, touched_at, sequence, created_at, updated_at)
      values (v_row.environment_id, v_row.id, v_row.status, v_row.customer_id, v_row.email,
        v_row.name, v_row.method_kind, v_row.method, v_row.usage, v_row.act = 'save',
        v_row.mandate_id, v_row.signed_at, v_row.ibans[1], v_row.test_behaviour, v_row.provider,
        v_row.payment_id, case when v_row.is_use then v_row.at end,
        case when v_row.mandate_id is not null then greatest(v_row.signed_at::timestamptz,
          case when v_row.is_use then v_row.at end) + pay_internal.idle_time() end,
        pay_internal.server_time(), 1, v_row.at, v_row.at)
      on conflict (environment_id, upper(mandate_id))
        where mandate_id is not null and status <> 'failed'
      do update set iban = excluded.iban,
        email = case when t.customer_id is null then excluded.email else t.email end,
        name = case when t.customer_id is null then excluded.name else t.name end,
        customer_id = coalesce(t.customer_id, excluded.customer_id),
        last_used_at = greatest(t.last_used_at, excluded.last_used_at),
        idle_at = greatest(t.idle_at, excluded.last_used_at + pay_internal.idle_time()),
        touched_at = excluded.touched_at
      returning t.id into v_id;
      insert into pay.bank_details (environment_id, owner_id, key_id, sealed, created_at)
      select v_row.environment_id, v_row.id, v_row.bank_details ->> 'key_id',
        v_row.bank_details ->> 'sealed', pay_internal.server_time()
      where v_row.bank_details is not null;
    elsif v_row.act = 'use' then
      update pay.instruments t
      set iban = coalesce(v_row.ibans[1], t.iban),
        last_used_at = greatest(t.last_used_at, v_row.at),
        idle_at = greatest(t.idle_at, case when t.idle_at is not null
          then v_row.at + pay_internal.idle_time() end),
        touched_at = pay_internal.server_time()
      where t.environment_id = v_row.environment_id and t.id = v_row.id;
    elsif v_row.act = 'result' then
      update pay.instruments t
      set status = v_row.status, method = coalesce(v_row.method, t.method),
        provider = case when v_row.provider is null then t.provider
          else coalesce(t.provider, '{}') || v_row.provider end,
        idle_at = case when v_row.status = 'active' then t.idle_at end,
        sequence = t.sequence + 1, updated_at = v_row.at, touched_at = pay_internal.server_time()
      where t.environment_id = v_row.environment_id and t.id = v_row.id and t.status = 'pending'
      returning t.status into v_status;
      if v_status = 'failed' then
        perform pay_internal.forget_instrument(v_row.environment_id, v_row.id);
      end if;
    elsif v_row.act = 'renew' then
      v_deliveries := v_deliveries
        + pay_internal.renew_instrument(v_row.caller, v_row.id, v_row.method, v_row.at);
    elsif v_row.id is null then
      v_id := pay_internal.instrument_of_mandate(v_row.environment_id, v_row.mandate_id);
    end if;
    if v_row.reason is not null then
      v_deliveries := v_deliveries + pay_internal.end_instrument(
        v_row.caller, v_id, v_row.reason, v_row.at, v_row.request_id, v_row.idempotency_key);
    end if;
  end loop;
  return v_deliveries;
end $$;

create or replace function pay_internal.renew_instrument(
  p_caller pay_internal.caller, p_id text, p_method text, p_at timestamptz
) returns bigint language plpgsql volatile as $$
declare
  v_renewed pay.instruments;
begin
  update pay.instruments t
  set method = p_method, updated_at = p_at, sequence = t.sequence + 1,
    touched_at = pay_internal.server_time()
  where t.environment_id = p_caller.environment_id and t.id = p_id and t.status = 'active'
    and t.method is distinct from p_method
    and coalesce(pay_internal.expiry_month(p_method) >= pay_internal.expiry_month(t.method), true)
  returning t.* into v_renewed;
  if not found then return 0; end if;
  return pay_internal.write_instrument_event(
    p_caller, v_renewed, 'instrument.updated', null, null);
end $$;

create or replace function pay_internal.expiry_month(p_method text)
returns integer language sql immutable as $$
  select (p_method::json #>> '{card,exp_year}')::integer * 12
    + (p_method::json #>> '{card,exp_month}')::integer
$$;

create or replace function pay_internal.known_customer(
  p_environment_id text, p_account_id text, p_customer_id text
) returns text language sql stable as $$
  select t.provider ->> 'customer' from pay.instruments t
  where t.environment_id = p_environment_id and t.customer_id = p_customer_id
    and t.provider ->> 'account' = p_account_id and t.provider ->> 'customer' is not null
    and t.ended_reason is distinct from 'removed_at_provider'
  order by t.id limit 1
$$;

create or replace function pay_internal.find_instrument_payment(
  p_environment_id text, p_account_id text, p_token text
) returns text language sql stable as $$
  select t.payment_id from pay.instruments t
  where t.provider ->> 'token' = p_token and t.environment_id = p_environment_id
    and t.provider ->> 'account' = p_account_id
  order by t.status = 'active' desc, t.id limit 1
$$;

create or replace function pay_internal.detach_instrument(p_instrument pay.instruments)
returns void language plpgsql volatile as $$
declare
  v_now constant timestamptz := pay_internal.server_time();
begin
  insert into pay.provider_operations (environment_id, id, account_id, connector, op, subject_id,
    amount_minor, currency, request, state, attempts, created_at, next_attempt_at, may_repeat,
    api_key_id, request_id, decline_is_error)
  select a.environment_id,
    pay_internal.derived_id('pc_', v_now, p_instrument.environment_id || p_instrument.id),
    a.account_id, a.connector, 'detach', a.subject_id, 0, a.currency,
    jsonb_build_object('token', p_instrument.provider ->> 'token'), 'pending', 0, v_now,
    v_now + interval '15 seconds', true, a.api_key_id, a.request_id, false
  from pay.provider_operations a
  where a.environment_id = p_instrument.environment_id and a.subject_id = p_instrument.payment_id
    and a.op = 'authorize' and not exists (
      select from pay.instruments t
      where t.provider ->> 'token' = p_instrument.provider ->> 'token'
        and t.environment_id = p_instrument.environment_id and t.status = 'active')
  order by a.id desc limit 1;
end $$;

create or replace function pay_internal.forget_instrument(p_environment_id text, p_id text)
returns void language sql volatile as $$
  delete from pay.bank_details d where d.environment_id = p_environment_id and d.owner_id = p_id
$$;

create or replace function pay_internal.end_instrument(
  p_caller pay_internal.caller, p_id text, p_reason text, p_at timestamptz,
  p_request_id text default null, p_idempotency_key text default null
) returns bigint language plpgsql volatile as $$
declare
  v_ended pay.instruments;
begin
  update pay.instruments t
  set status = 'ended', ended_at = least(p_at, t.idle_at), updated_at = least(p_at, t.idle_at),
    ended_reason = case when t.status = 'active' and t.idle_at <= p_at then 'idle' else p_reason end,
    sequence = t.sequence + 1, idle_at = null, touched_at = pay_internal.server_time()
  where t.environment_id = p_caller.environment_id and t.id = p_id and (t.status = 'active'
    or t.status = 'pending' and p_reason in ('revoked', 'account_closed'))
  returning t.* into v_ended;
  if not found then return 0; end if;
  if v_ended.provider ? 'token' and p_reason <> 'removed_at_provider' then
    perform pay_internal.detach_instrument(v_ended);
  end if;
  perform pay_internal.forget_instrument(p_caller.environment_id, p_id);
  return pay_internal.write_instrument_event(
    p_caller, v_ended, 'instrument.ended', p_request_id, p_idempotency_key);
end $$;

create or replace function pay_internal.write_instrument_event(
  p_caller pay_internal.caller, p_instrument pay.instruments, p_type text, p_request_id text,
  p_idempotency_key text
) returns bigint language plpgsql volatile as $$
declare
  v_at constant timestamptz := p_instrument.updated_at;
  v_id constant text :=
    pay_internal.derived_id('evt_', v_at, p_instrument.id || p_instrument.sequence);
begin
  return pay_internal.write_events(
    array[row(p_caller.n, v_id, p_type, p_instrument.id, p_instrument.sequence, v_at,
      pay_internal.delivery_stem(v_id), p_request_id, p_idempotency_key, null, 1, null
    )::pay_internal.event_row],
    array[pay_internal.instrument_body(p_instrument)], array[p_caller]);
end $$;

create or replace function pay_internal.end_idle_instruments(
  p_environment_id text, p_at timestamptz, p_batch integer
) returns bigint language plpgsql volatile as $$
declare
  v_idle record;
  v_rows bigint := 0;
begin
  for v_idle in
    select t.id, t.idle_at from pay.instruments t
    where t.environment_id = p_environment_id and t.idle_at <= p_at
    order by t.idle_at limit p_batch for update skip locked
  loop
    -- One whose payment has no result stays pending.
    update pay.instruments t set idle_at = null
    where t.environment_id = p_environment_id and t.id = v_idle.id and t.status <> 'active';
    perform pay_internal.end_instrument(
      row(1, p_environment_id, null, (
        select pay_internal.time_ahead(w) from pay.sandbox_settings w
        where w.environment_id = p_environment_id))::pay_internal.caller,
      v_idle.id, 'idle', v_idle.idle_at);
    v_rows := v_rows + 1;
  end loop;
  return v_rows;
end $$;

create or replace function pay.end_instrument(p_request text, p_id text, p_refusal text)
returns table (
  outcome text, api_key_id text, environment_id text, account text, livemode boolean,
  remaining integer, status smallint, body text, detail text, deliveries bigint
) language plpgsql volatile security definer rows 1 set lock_timeout = '3s' as $$
#variable_conflict use_column
declare
  v_request jsonb := p_request::jsonb -> 0;
  v_access pay.admission := pay_internal.admit_one(p_request);
  v_instrument pay.instruments;
  v_deliveries bigint := 0;
begin
  if v_access.outcome = 'ok' then
    select t.* into v_instrument from pay.instruments t
    where t.environment_id = v_access.environment_id and t.id = p_id for update;
    if not found then v_access.outcome := 'not_found'; end if;
  end if;
  v_access := pay_internal.claim_one(p_request, v_access, v_instrument.id);
  if v_access.outcome = 'ok' and v_instrument.status = 'pending' then
    v_access.outcome := 'pending';
    perform pay_internal.release_key(p_request, v_access);
  elsif v_access.outcome = 'ok' and v_instrument.status = 'failed' then
    v_access.status := 409;
    v_access.body := p_refusal;
    perform pay_internal.store_response(p_request, v_access);
  elsif v_access.outcome = 'ok' then
    v_access.status := 200;
    v_deliveries := pay_internal.end_instrument(
      row(1, v_access.environment_id, v_access.api_key_id, v_access.ahead)::pay_internal.caller,
      p_id, 'deleted', (v_request ->> 'at')::timestamptz, v_request ->> 'request_id',
      v_request ->> 'idempotency_key');
    select pay_internal.instrument_body(t) into v_access.body from pay.instruments t
    where t.environment_id = v_access.environment_id and t.id = p_id;
    perform pay_internal.store_response(p_request, v_access);
  end if;
  return query select v_access.outcome, v_access.api_key_id, v_access.environment_id,
    v_access.account, v_access.livemode, v_access.remaining, v_access.status, v_access.body,
    v_access.detail, v_deliveries;
end $$;
grant execute on function pay.end_instrument to pay_api;

create or replace function pay_internal.can_be_returned(p_payment pay.payments, p_at timestamptz)
returns boolean language sql stable as $$
  select p_payment.status in ('completed', 'partially_refunded')
    and p_payment.created_at > p_at - interval '14 months'
    and pay_internal.rail_collects(p_payment.method_kind)
    and pay_internal.instrument_of_mandate(
      p_payment.environment_id, p_payment.body::json #>> '{method,mandate,id}') is not null
$$;

create or replace function pay_internal.purge_instruments(
  p_environment_id text, p_at timestamptz, p_batch integer, out deleted bigint
) language plpgsql volatile as $$
declare
  v_before constant timestamptz :=
    least(p_at, pay_internal.server_time()) - interval '30 days';
begin
  delete from pay.instruments t
  where t.ctid = any (array(
    select o.ctid from pay.instruments o
    where o.environment_id = p_environment_id and o.test_behaviour is not null
      and o.touched_at < v_before
    order by o.touched_at limit p_batch for update skip locked
  ));
  get diagnostics deleted = row_count;
end $$;

create or replace function pay_internal.recent_suffix() returns text language sql stable
as $$ select pay_internal.id_floor('', now() - interval '29 days') $$;

create or replace function pay_internal.is_arithmetic(p_invariant text)
returns boolean language sql immutable parallel safe as $$
  select p_invariant in ('invariant_ledger_legs', 'invariant_ledger_totals',
    'invariant_payment_money', 'invariant_transfer_money', 'invariant_refunds', 'invariant_texts')
$$;

create or replace function pay_internal.severity_of(p_invariant text)
returns text language sql immutable parallel safe as $$
  select case p_invariant when 'invariant_reported_events' then 'warning' else 'alarm' end
$$;

create or replace function pay_internal.find_breaches(p_invariant text)
returns table (environment_id text, subject_id text, detail text, severity text)
language plpgsql volatile rows 10 set enable_nestloop = off set enable_mergejoin = off as $$
begin
  return query execute format(
    'select f.environment_id, f.subject_id, f.detail,
       case when $1 or coalesce(e.livemode, true) then $2 else ''note'' end
     from pay.%I f
     left join pay.environments e on e.id = f.environment_id
     where e.retired_at is null and e.moving is null', p_invariant)
  using pay_internal.is_arithmetic(p_invariant), pay_internal.severity_of(p_invariant);
end $$;

create or replace function pay_internal.list_invariants()
returns table (invariant text, promise text) language sql stable rows 100 as $$
  select c.relname::text, obj_description(c.oid, 'pg_class') from pg_class c
  where c.relnamespace = 'pay'::regnamespace and c.relkind = 'v' and c.relname like 'invariant\_%'
$$;

create or replace function pay.check_books() returns table (
  invariant text, promise text, severity text, breaches bigint, examples text[]
) language plpgsql volatile security definer rows 100 as $$
#variable_conflict use_column
declare
  v_invariant record;
begin
  perform pay_internal.act_as_worker();
  for v_invariant in
    select * from pay_internal.list_invariants() i order by i.promise, i.invariant
  loop
    return query
      select v_invariant.invariant, v_invariant.promise, k.severity, count(f.detail), coalesce(
        (array_agg(concat(f.environment_id, ' ', f.subject_id, ': ', f.detail))
          filter (where f.detail is not null))[1:3], '{}')
      from (values (pay_internal.severity_of(v_invariant.invariant)), ('note')) as k (severity)
      left join pay_internal.find_breaches(v_invariant.invariant) f on f.severity = k.severity
      group by k.severity
      having k.severity <> 'note' or count(f.detail) > 0
      order by k.severity = 'note';
  end loop;
end $$;
grant execute on function pay.check_books to pay_operator;

create or replace function pay.note_breaches() returns bigint
language plpgsql volatile security definer as $$
declare
  v_invariant text;
  v_found bigint;
  v_total bigint := 0;
begin
  perform pay_internal.act_as_worker();
  perform set_config('pay.part_of_texts', extract(hour from now())::text, true);
  for v_invariant in select i.invariant from pay_internal.list_invariants() i order by 1 loop
    with
    found as materialized (
      select * from pay_internal.find_breaches(v_invariant) b where b.severity = 'alarm'
    ),
    noted as (
      insert into pay.invariant_breaches (environment_id, invariant, subject_id, detail)
      select f.environment_id, v_invariant, f.subject_id, min(f.detail) from found f
      group by f.environment_id, f.subject_id
      on conflict on constraint invariant_breaches_pkey do nothing
    )
    select count(*) into v_found from found;
    v_total := v_total + v_found;
    if v_found > 0 then
      raise warning '% breaches of pay.%', v_found, v_invariant
        using hint = 'select * from pay.check_books()';
    end if;
  end loop;
  insert into pay.settings (name, value)
  values ('books_checked_at', extract(epoch from now())::text)
  on conflict on constraint settings_pkey do update set value = excluded.value;
  return v_total;
end $$;
grant execute on function pay.note_breaches to pay_operator;

create or replace function pay.note_breaches_hourly()
returns bigint language plpgsql volatile security definer
set enable_seqscan = on set plan_cache_mode = auto as $$
begin
  perform pay_internal.act_as_worker();
  if not pg_try_advisory_xact_lock(hashtextextended('pay.note_breaches', 0)) or exists (
    select from pay.settings s where s.name = 'books_checked_at'
      and to_timestamp(s.value::double precision) > now() - interval '1 hour'
  ) then
    return null;
  end if;
  return pay.note_breaches();
end $$;
grant execute on function pay.note_breaches_hourly to pay_api;

create or replace function pay.forget_breaches() returns bigint
language plpgsql volatile security definer as $$
declare
  v_forgotten bigint;
begin
  perform pay_internal.act_as_worker();
  delete from pay.invariant_breaches;
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end $$;
grant execute on function pay.forget_breaches to pay_operator;

create or replace function pay.reconcile() returns table (
  invariant text, environment_id text, subject_id text, detail text, severity text
) language plpgsql volatile security definer rows 10 as $$
declare
  v_invariant text;
begin
  perform pay_internal.act_as_worker();
  foreach v_invariant in array array[
    'invariant_provider_operations', 'invariant_provider_events', 'invariant_provider_totals',
    'invariant_deposits', 'invariant_instrument_details', 'invariant_reported_events'
  ] loop
    return query
      select v_invariant, f.environment_id, f.subject_id, f.detail, f.severity
      from pay_internal.find_breaches(v_invariant) f where f.severity <> 'note' order by 2, 3, 4;
  end loop;
end $$;
grant execute on function pay.reconcile to pay_operator;

create or replace function pay_internal.received_at(
  p_environment_id text, p_subject_id text, p_sequence integer
) returns bigint language plpgsql stable as $$
begin
  return substring(pay_internal.text_at(p_environment_id, p_subject_id, p_sequence)
    from '"amount_received":(\d+)')::bigint;
end $$;

create or replace function pay_internal.find_broken_text(
  p_environment_id text, p_subject_id text, p_sequence integer, p_body text
) returns text language plpgsql stable as $$
declare
  v_text text := p_body;
  v_sequence integer := p_sequence;
  v_shown jsonb;
  v_status text;
  v_event record;
begin
  -- A null compares as wrong, so a missing member is found.
  v_shown := p_body::jsonb;
  if (v_shown ->> 'id', v_shown ->> 'sequence')
    is distinct from (p_subject_id, p_sequence::text)
  then
    return 'its text has another id or sequence';
  end if;
  -- All columns in this order, so that the planner uses the index of the sequence.
  for v_event in
    select v.sequence, v.type, v.object, v.before from pay.events v
    where v.environment_id = p_environment_id and v.subject_id = p_subject_id
      and v.sequence is not null
    order by v.environment_id desc, v.subject_id desc, v.sequence desc
  loop
    v_sequence := v_event.sequence;
    if v_sequence <> p_sequence then v_shown := v_text::jsonb; end if;
    if (v_shown ->> 'id', v_shown ->> 'sequence')
      is distinct from (p_subject_id, v_sequence::text)
    then
      return format('the text at sequence %s has another id or sequence', v_sequence);
    end if;
    v_status := case split_part(v_event.type, '.', 2)
      when 'created' then 'pending' when 'updated' then 'pending'
      else split_part(v_event.type, '.', 2) end;
    if v_event.object is not null then
      perform v_event.object::json;
    elsif v_shown ->> 'status' is distinct from v_status then
      return format('the text at sequence %s has another status', v_sequence);
    end if;
    -- The first event has none.
    if v_event.before is not null then
      v_text := pay_internal.undo_splices(v_text, v_event.before);
    end if;
  end loop;
  return null;
exception when data_exception then
  return format('the text at sequence %s is not JSON', v_sequence);
end $$;

create or replace function pay_internal.ledger_entry_id(
  p_transaction_id text, p_leg smallint, p_direction text
) returns text language plpgsql immutable parallel safe as $$
declare
  v_ordinals constant text := '0123456789abcdefghjkmnpqrstvwxyz';
begin
  return 'le_' || substr(p_transaction_id, 5, 25) || substr(
    v_ordinals,
    strpos(v_ordinals, substr(p_transaction_id, 30)) + 2 * p_leg
      + case p_direction when 'debit' then 1 else 2 end,
    1
  );
end $$;

create or replace function pay_internal.has_ledger_entry(p_environment_id text, p_id text)
returns boolean language sql stable as $$
  select exists (
    select from pay.ledger_entries e
    where e.environment_id = p_environment_id
      and e.transaction_id >= 'txn_' || substr(p_id, 4, 25)
      and e.transaction_id < 'txn_' || substr(p_id, 4)
      and e.id = p_id
  )
$$;

create or replace function pay_internal.page_movements(
  p_environment_id text, p_subject_id text, p_transaction_id text, p_account text, p_currency text,
  p_before text, p_limit integer
) returns table (movement pay.ledger_movements, n bigint) language plpgsql stable rows 100 as $$
declare
  v_rows constant integer := pay_internal.page_rows() / 2;
  v_before constant text := replace(p_before, 'le_', 'txn_');
  -- The transactions of the change that the entry belongs to begin with this.
  v_change constant text := substr(v_before, 1, 29);
  -- Computed here: in the comparison, below row-level security, a call would be a filter.
  v_first constant text := coalesce(p_transaction_id, '');
  v_last constant text := coalesce(p_transaction_id, '~');
begin
  if p_subject_id is null or p_transaction_id is not null then
    return query
      select r.movement, r.n from (
        select t as movement, t.debit_account, t.credit_account, t.currency,
          row_number() over newest as n
        from pay.ledger_movements t
        where t.environment_id = any (array[p_environment_id])
          and t.transaction_id between v_first and v_last
          and t.transaction_id < v_before
          and (t.transaction_id < v_change
            or pay_internal.ledger_entry_id(t.transaction_id, t.leg, 'debit') < p_before)
          and (p_subject_id is null or t.subject_id = p_subject_id)
        window newest as (order by t.environment_id desc, t.transaction_id desc, t.leg desc)
        order by t.environment_id desc, t.transaction_id desc, t.leg desc
        limit v_rows
      ) r
      where r.n = v_rows or coalesce(p_currency = r.currency, true)
        and coalesce(p_account in (r.debit_account, r.credit_account), true)
      limit p_limit;
  else
    return query
      select r.movement, r.n from (
        select t as movement, t.debit_account, t.credit_account, t.currency,
          row_number() over newest as n
        from pay.ledger_movements t
        where t.subject_id = any (array[p_subject_id]) and t.environment_id = p_environment_id
          and t.transaction_id < v_before
          and (t.transaction_id < v_change
            or pay_internal.ledger_entry_id(t.transaction_id, t.leg, 'debit') < p_before)
        window newest as (order by t.subject_id desc, t.transaction_id desc, t.leg desc)
        order by t.subject_id desc, t.transaction_id desc, t.leg desc
        limit v_rows
      ) r
      where r.n = v_rows or coalesce(p_currency = r.currency, true)
        and coalesce(p_account in (r.debit_account, r.credit_account), true)
      limit p_limit;
  end if;
end $$;

create or replace function pay_internal.ledger_page(
  p_environment_id text, p_limit integer, p_starting_after text, p_filters jsonb, out data text,
  out has_more boolean, out next_cursor text
) language plpgsql stable as $$
declare
  v_before constant text := coalesce(p_starting_after, '~');
  v_account constant text := p_filters ->> 'account';
  v_currency constant text := p_filters ->> 'currency';
  v_is_left boolean;
  v_last_shown text;
  v_last_read text;
begin
  select
    string_agg(p.body, ',' order by p.place) filter (where p.is_shown),
    bool_or(p.is_match and not p.is_shown),
    min(p.id) filter (where p.is_shown),
    min(p.id) filter (where p.n = pay_internal.page_rows() / 2)
  into data, v_is_left, v_last_shown, v_last_read
  from (
    select e.*, b.body,
      e.is_match and (e.place = 1 or (
        e.place <= p_limit
        and sum(octet_length(b.body)) over (order by e.id desc) <= pay_internal.page_bytes()
      )) as is_shown
    from (
      select m.movement, m.n, (m.movement).subject_id, side.direction, side.account, entry.id,
        entry.is_match,
        count(*) filter (where entry.is_match) over (order by entry.id desc) as place
      from pay_internal.page_movements(
        p_environment_id, p_filters ->> 'subject_id', p_filters ->> 'transaction_id', v_account,
        v_currency, v_before, case when v_account is null then p_limit / 2 else p_limit end + 2
      ) m
      cross join lateral (
        values ('debit', (m.movement).debit_account), ('credit', (m.movement).credit_account)
      ) as side (direction, account)
      cross join lateral (
        select coalesce(side.account = v_account, true)
            and coalesce((m.movement).currency = v_currency, true) as is_match,
          pay_internal.ledger_entry_id(
            (m.movement).transaction_id, (m.movement).leg, side.direction) as id
      ) entry
      where entry.id < v_before
    ) e
    -- The body in the order of the contract (§3), only for entries that can be shown.
    left join lateral (
      select row_to_json(w)::text as body from (
        select e.id, 'ledger_entry' as object, (e.movement).transaction_id, e.account, e.direction,
          (e.movement).amount_minor, (e.movement).currency,
          case when e.subject_id like 'pay\_%' then e.subject_id end as payment_id,
          (e.movement).refund_id,
          case when e.subject_id like 'tr\_%' then e.subject_id end as transfer_id,
          pay_internal.wire_time((e.movement).created_at) as created_at
      ) w
    ) b on e.is_match and e.place <= p_limit
  ) p;
  data := coalesce(data, '');
  has_more := coalesce(v_is_left, false) or v_last_read is not null;
  next_cursor := case when v_is_left then v_last_shown else v_last_read end;
end $$;

create or replace function pay_internal.add_to_total(
  p_environment_id text, p_currency text, p_debit_account text, p_credit_account text,
  p_amount_minor numeric
) returns void language plpgsql volatile as $$
declare
  v_max_updates constant smallint := 63;
  v_lock text := concat_ws(
    ' ', 'total', p_environment_id, p_currency, p_debit_account, p_credit_account);
  v_stripe smallint := 0;
begin
  while not pg_try_advisory_xact_lock(hashtextextended(v_lock, v_stripe)) loop
    v_stripe := v_stripe + 1;
    if v_stripe = 64 then
      v_stripe := floor(random() * 64);
      perform pg_advisory_xact_lock(hashtextextended(v_lock, v_stripe));
      exit;
    end if;
  end loop;
  update pay.ledger_totals t
  set amount_minor = t.amount_minor + p_amount_minor,
    updates = case when t.updates < v_max_updates then t.updates + 1 else 0 end,
    generation = case when t.updates < v_max_updates then t.generation else t.generation + 1 end
  where t.ctid = (
    select o.ctid from pay.ledger_totals o
    where o.environment_id = p_environment_id and o.currency = p_currency
      and o.debit_account = p_debit_account and o.credit_account = p_credit_account
      and o.stripe = v_stripe
    order by o.generation desc limit 1
  );
  if not found then
    insert into pay.ledger_totals (
      environment_id, currency, debit_account, credit_account, stripe, generation, updates,
      amount_minor
    )
    values (
      p_environment_id, p_currency, p_debit_account, p_credit_account, v_stripe, 0, 0,
      p_amount_minor
    );
  end if;
end $$;

create or replace function pay_internal.record_movements(
  p_ledger pay_internal.movement_row[], p_callers pay_internal.caller[]
) returns void language plpgsql volatile as $$
declare
  v_total record;
begin
  for v_total in
    with movement as (
      insert into pay.ledger_movements (
        environment_id, transaction_id, leg, kind, subject_id, refund_id, debit_account,
        credit_account, amount_minor, currency, created_at
      )
      select caller.environment_id, l.transaction_id, l.leg, l.kind,
        l.subject_id, l.refund_id, l.debit_account, l.credit_account, l.amount_minor, l.currency,
        l.created_at
      from unnest(p_ledger) l
      join unnest(p_callers) caller on caller.n = l.n
      returning environment_id, currency, debit_account, credit_account, amount_minor
    )
    select m.environment_id, m.currency, m.debit_account, m.credit_account,
      sum(m.amount_minor) as amount_minor
    from movement m
    group by m.environment_id, m.currency, m.debit_account, m.credit_account
    order by m.environment_id, m.currency, m.debit_account, m.credit_account
  loop
    perform pay_internal.add_to_total(v_total.environment_id, v_total.currency,
      v_total.debit_account, v_total.credit_account, v_total.amount_minor);
  end loop;
end $$;

create or replace function pay_internal.read_totals(p_environment_id text)
returns table (currency text, debit_account text, credit_account text, amount_minor numeric)
language sql stable rows 10 as $$
  with recursive newest as (
    (
      select t.currency, t.debit_account, t.credit_account, t.stripe, t.amount_minor
      from pay.ledger_totals t
      where t.environment_id = p_environment_id
      order by t.environment_id desc, t.currency desc, t.debit_account desc, t.credit_account desc,
        t.stripe desc, t.generation desc
      limit 1
    )
    union all
    select o.currency, o.debit_account, o.credit_account, o.stripe, o.amount_minor
    from newest n
    cross join lateral (
      select t.currency, t.debit_account, t.credit_account, t.stripe, t.amount_minor
      from pay.ledger_totals t
      where t.environment_id = p_environment_id
        and (t.currency, t.debit_account, t.credit_account, t.stripe)
          < (n.currency, n.debit_account, n.credit_account, n.stripe)
      order by t.environment_id desc, t.currency desc, t.debit_account desc, t.credit_account desc,
        t.stripe desc, t.generation desc
      limit 1
    ) o
  )
  select n.currency, n.debit_account, n.credit_account, sum(n.amount_minor)
  from newest n
  group by n.currency, n.debit_account, n.credit_account
$$;

create or replace function pay_internal.account_sums(p_environment_id text)
returns table (currency text, account text, debits_minor numeric, credits_minor numeric)
language sql stable rows 10 as $$
  select t.currency, side.account, sum(side.debits_minor), sum(side.credits_minor)
  from pay_internal.read_totals(p_environment_id) t
  cross join lateral (
    values
      (t.debit_account, t.amount_minor, 0::numeric),
      (t.credit_account, 0::numeric, t.amount_minor)
  ) as side (account, debits_minor, credits_minor)
  group by t.currency, side.account
$$;

create or replace function pay_internal.available_minor(p_environment_id text, p_currency text)
returns numeric language sql stable as $$
  select coalesce(sum(s.credits_minor - s.debits_minor), 0)
  from pay_internal.account_sums(p_environment_id) s
  where s.currency = p_currency and s.account = 'available'
$$;

create or replace function pay.balance(p_request text) returns pay.admission
language plpgsql volatile security definer as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request, 'shared', true);
begin
  if v_access.outcome = 'ok' then
    select format(
      '{"object":"balance","livemode":%s,"balances":[%s]}',
      (select e.livemode from pay.environments e where e.id = v_access.environment_id)::text,
      string_agg(row_to_json(b)::text, ',' order by b.currency, b.account)
    )
    into v_access.body
    from (
      select s.currency, s.account, s.debits_minor, s.credits_minor,
        s.credits_minor - s.debits_minor as amount_minor
      from pay_internal.account_sums(v_access.environment_id) s
    ) b;
  end if;
  return v_access;
end $$;
grant execute on function pay.balance to pay_api;

create or replace function pay_internal.page_rows()
returns integer language sql immutable parallel safe as $$ select 2000 $$;

create or replace function pay_internal.counted_rows()
returns integer language sql immutable parallel safe as $$ select 10000 $$;

create or replace function pay_internal.page_bytes()
returns integer language sql immutable parallel safe as $$ select 262144 $$;

create or replace function pay_internal.list_column(p_kind text, p_filters jsonb)
returns text language sql immutable as $$
  select coalesce(
    case p_kind
      when 'payments' then case
        when p_filters ? 'reference' then 'reference'
        when p_filters ? 'customer_id' then 'customer_id'
        when p_filters ? 'instrument_id' then 'instrument_id'
        when p_filters ? 'checkout_id' then 'checkout_id'
        when p_filters ->> 'status' <> 'completed' then 'status'
      end
      when 'refunds' then case when p_filters ? 'payment_id' then 'payment_id' end
      when 'disputes' then case
        when p_filters ? 'payment_id' then 'payment_id'
        when p_filters ? 'status' then 'status'
      end
      when 'instruments' then case when p_filters ? 'customer_id' then 'customer_id' end
      when 'checkouts' then case
        when p_filters ? 'reference' then 'reference'
        when p_filters ? 'customer_id' then 'customer_id'
      end
      when 'transfers' then case when p_filters ? 'status' then 'status' end
      when 'webhook_deliveries' then case when p_filters ? 'endpoint_id' then 'endpoint_id' end
    end,
    'environment_id'
  )
$$;

create or replace function pay_internal.search_condition(p_first text)
returns text language sql immutable as $$
  select format($condition$
    case when strpos(lower(%1$s collate "C"),
        lower(btrim(to_json($2 ->> 'search')::text, '"') collate "C")) > 0
      then exists (
        select from json_to_record(('{' || %2$L || %1$s || '}')::json) r (
          reference text, description text, customer json
        )
        cross join lateral (
          values (r.reference), (r.description), (r.customer ->> 'email'), (r.customer ->> 'name')
        ) v (shown)
        where strpos(lower(v.shown collate "C"), lower($2 ->> 'search' collate "C")) > 0
      ) end $condition$,
    format($part$split_part(split_part(t.body, ',"metadata":{', 1), %L, 2)$part$, p_first),
    p_first)
$$;

create or replace function pay_internal.list_condition(p_kind text, p_name text)
returns text language sql immutable as $$
  select case
    when p_name = 'search' then pay_internal.search_condition(
      case p_kind when 'payments' then '"customer":' else '"description":' end)
    when p_name = 'found' then
      'pay_internal.is_found($1, t.id, t.reference, t.customer_id, $2 -> ''found'')'
    when p_kind = 'payments' and p_name = 'customer' then $condition$
      case when strpos(t.body, $2 ->> 'customer') > 0
        then t.body::json #>> '{customer,email}' end = $2 ->> 'customer' $condition$
    when p_kind = 'instruments' and p_name = 'status' then $condition$
      (pay_internal.instrument_at(t, $6)).status = $2 ->> 'status' $condition$
    when p_kind = 'checkouts' and p_name = 'status' then $condition$
      pay_internal.checkout_status(t, $6) = $2 ->> 'status' $condition$
    when p_kind = 'events' and p_name = 'instrument_id' then $condition$
      (t.subject_id = $2 ->> 'instrument_id' or exists (
        select from pay.payments p
        where p.environment_id = $1 and p.id = t.subject_id
          and p.instrument_id = $2 ->> 'instrument_id')) $condition$
    -- A class of statuses is 4xx. A decline is a result, and no error.
    when p_kind = 'requests' and p_name = 'status' then $condition$
      (t.status::text = $2 ->> 'status' or t.status / 100 || 'xx' = $2 ->> 'status'
        or $2 ->> 'status' = 'error' and t.status >= 400 and t.status <> 402) $condition$
    when p_kind = 'requests' and p_name = 'resource_id' then $condition$
      (t.resource_id = $2 ->> 'resource_id' or strpos(t.path, $2 ->> 'resource_id') > 0) $condition$
    else format('t.%1$I::text = $2 ->> %1$L', p_name)
  end
$$;

create or replace function pay_internal.list_range(p_kind text, p_column text)
returns text language sql immutable as $$
  select case
    when p_column is null then 'true'
    when p_column = 'environment_id' then 't.environment_id = any (array[$1])'
    else format('t.%1$I = any (array[$2 ->> %1$L]) and t.environment_id = $1', p_column)
  end
  || ' and t.id < $3 and t.id >= $4'
  -- The predicates of the partial indexes.
  || case
    when p_column in ('reference', 'customer_id', 'instrument_id', 'checkout_id')
      then format(' and t.%I is not null', p_column)
    when p_kind = 'payments' and p_column = 'status' then ' and t.status <> ''completed'''
    else ''
  end
$$;

create or replace function pay_internal.list_subject(
  p_environment_id text, p_kind text, p_filters jsonb
) returns text language plpgsql stable as $$
declare
  -- A delivery is read with its event.
  v_most constant integer := pay_internal.page_rows()
    / case p_kind when 'webhook_deliveries' then 2 else 1 end;
  v_events constant text := format('select t.* from (%%s) s cross join lateral (
      select t.* from pay.events t
      where t.environment_id = $1 and t.subject_id = s.id
      order by t.sequence limit %1$s
    ) t limit %1$s', v_most + 1);
  v_deliveries constant text := format('select t.* from (%%s) e
    cross join lateral pay_internal.deliveries_of($1, e.id) t limit %s', v_most + 1);
  v_subject constant text := 'select $2 ->> ''subject_id'' as id';
  v_rows constant text := case
    when p_filters ? 'found' then pay_internal.found_rows(p_filters -> 'found')
    when p_kind = 'webhook_deliveries' and p_filters ? 'event_id'
      then format(v_deliveries, 'select $2 ->> ''event_id'' as id')
    when p_kind = 'webhook_deliveries' and p_filters ? 'subject_id'
      then format(v_deliveries, format(v_events, v_subject))
    when p_kind = 'events' and p_filters ? 'subject_id' then format(v_events, v_subject)
    when p_kind = 'events' and p_filters ? 'instrument_id' then format(v_events,
      'select $2 ->> ''instrument_id'' as id union all
      (select p.id from pay.payments p
       where p.instrument_id = any (array[$2 ->> ''instrument_id''])
         and p.instrument_id is not null and p.environment_id = $1
       order by p.instrument_id, p.environment_id, p.id limit pay_internal.page_rows())')
  end;
  -- Of these events the deliveries are read.
  v_read constant text := case
    when p_kind = 'webhook_deliveries' and not p_filters ? 'event_id'
      then format(v_events, v_subject)
    else 'select' end;
  v_are_few boolean;
begin
  if v_rows is null or p_filters ? 'found' then return v_rows; end if;
  execute format('select (select count(*) from (%2$s) read) <= %1$s
    and (select count(*) from (%3$s) few) <= %1$s', v_most, v_read, v_rows)
  into v_are_few
  using p_environment_id, p_filters;
  return case when v_are_few then v_rows end;
end $$;

create or replace function pay_internal.list_query(
  p_source text, p_range text, p_columns text[], p_match text, p_body text
) returns text language sql immutable as $$
  select format(
    'select
       string_agg(page.body, '','' order by page.n) filter (where page.is_shown),
       bool_or(page.body is not null and not page.is_shown),
       min(page.id) filter (where page.is_shown),
       min(page.id) filter (where page.n = pay_internal.page_rows())
     from (
       select t.n, t.id, t.body,
         t.body is not null and (row_number() over shown = 1 or (
           row_number() over shown <= $5
           and sum(octet_length(t.body)) over shown <= pay_internal.page_bytes()
         )) as is_shown
       from (
         select %3$s, case when %5$s then %6$s end as body, row_number() over (order by %4$s) as n
         from %1$s t
         where %2$s
         order by %4$s
         limit pay_internal.page_rows()
       ) t
       where t.body is not null or t.n = pay_internal.page_rows()
       window shown as (order by %4$s rows unbounded preceding)
       limit $5 + 1
     ) page',
    p_source, p_range,
    (select string_agg('t.' || c, ', ') from unnest(p_columns) c),
    (select string_agg('t.' || c || ' desc', ', ') from unnest(p_columns) c),
    p_match, p_body
  )
$$;

create or replace function pay_internal.list_page(
  p_environment_id text, p_at timestamptz, p_kind text, p_limit integer, p_starting_after text,
  p_filters jsonb, p_counts boolean, out data text, out has_more boolean, out next_cursor text,
  out total integer
) language plpgsql stable as $$
declare
  v_filters jsonb := p_filters;
  v_found jsonb;
  v_few text;
  v_column text;
  v_source text;
  -- The filter of which the source has no other rows.
  v_filter text;
  v_match text;
  v_is_left boolean;
  v_last_shown text;
  v_last_read text;
begin
  if p_kind = 'events' and p_filters ? 'request_id' then
    v_filters := v_filters
      || pay_internal.event_bounds(p_environment_id, p_filters ->> 'request_id');
  end if;
  if p_kind = 'payments' and p_filters ? 'search' then
    v_found := pay_internal.sought(p_environment_id, p_filters ->> 'search');
    if v_found is not null then
      v_filters := v_filters - 'search' || jsonb_build_object('found', v_found);
    end if;
  end if;

  v_few := pay_internal.list_subject(p_environment_id, p_kind, v_filters);
  v_column := case when v_few is null then pay_internal.list_column(p_kind, v_filters) end;
  v_source := coalesce('(' || v_few || ')', format('pay.%I', p_kind));
  v_filter := case
    when v_few is null then v_column
    when p_kind <> 'webhook_deliveries' then null
    when v_filters ? 'event_id' then 'event_id'
    else 'subject_id' end;
  select coalesce(
    string_agg(pay_internal.list_condition(p_kind, c), ' and '), 'true'
  )
  into v_match
  from jsonb_object_keys(v_filters - array[coalesce(v_filter, ''), 'id_from', 'id_before']) c;
  execute pay_internal.list_query(
    v_source,
    pay_internal.list_range(p_kind, v_column),
    array_remove(array[v_column, 'id'], null),
    v_match,
    case p_kind
      when 'api_keys' then 'pay_internal.api_key_body(t, $6)'
      when 'faults' then 'pay_internal.fault_body(t)'
      when 'webhook_deliveries' then 'pay_internal.webhook_delivery_body(t)'
      when 'webhook_endpoints' then 'pay_internal.webhook_endpoint_body(t)'
      -- A row without a body is not shown.
      when 'sandboxes' then
        'case when t.expires_at > pay_internal.server_time() then pay_internal.sandbox_body(t) end'
      when 'requests' then 'pay_internal.request_body(t)'
      when 'events' then 'pay_internal.event_body(t)'
      when 'checkouts' then 'pay_internal.checkout_body(t, $6)'
      when 'instruments' then
        'pay_internal.instrument_body(pay_internal.instrument_at(t, $6))'
      else 't.body'
    end
  )
  into data, v_is_left, v_last_shown, v_last_read
  using p_environment_id, v_filters,
    -- Every id sorts before '~'.
    least(coalesce(p_starting_after, '~') collate "C", coalesce(v_filters ->> 'id_before', '~')),
    coalesce(v_filters ->> 'id_from', ''),
    p_limit, p_at;
  if p_counts and v_filter is not null and v_match = 'true' then
    execute format('select count(*) from (select from %s t where %s limit %s) counted', v_source,
      pay_internal.list_range(p_kind, v_column), pay_internal.counted_rows() + 1)
    into total
    using p_environment_id, v_filters, coalesce(v_filters ->> 'id_before', '~'),
      coalesce(v_filters ->> 'id_from', '');
  end if;
  data := coalesce(data, '');
  has_more := coalesce(v_is_left, false) or v_last_read is not null;
  next_cursor := case when v_is_left then v_last_shown else v_last_read end;
end $$;

create or replace function pay_internal.filtered_page(
  p_environment_id text, p_at timestamptz, p_request jsonb, out outcome text, out data text,
  out has_more boolean, out next_cursor text, out total integer
) language plpgsql stable
set enable_hashjoin = off set enable_sort = off set enable_incremental_sort = off as $$
#variable_conflict use_column
declare
  v_kind text := p_request ->> 'kind';
  v_parent_id text := p_request ->> 'parent_id';
  v_limit integer := p_request ->> 'limit';
  v_starting_after text := p_request ->> 'starting_after';
  v_filters jsonb := coalesce(p_request -> 'filters', '{}');
  v_is_known boolean;
begin
  outcome := 'ok';
  if v_parent_id is not null and not exists (
    select from pay.payments t where t.environment_id = p_environment_id and t.id = v_parent_id
  ) then
    outcome := 'not_found';
    return;
  end if;
  if v_starting_after is not null then
    if v_kind = 'ledger_entries' then
      v_is_known := pay_internal.has_ledger_entry(p_environment_id, v_starting_after);
    else
      execute format(
        'select exists (select from pay.%I t where t.environment_id = $1 and t.id = $2)',
        case v_kind when 'payment_totals' then 'payments' else v_kind end
      ) into v_is_known using p_environment_id, v_starting_after;
    end if;
    if not v_is_known then
      outcome := 'unknown_cursor';
      return;
    end if;
  end if;
  if v_kind = 'ledger_entries' then
    select p.data, p.has_more, p.next_cursor into data, has_more, next_cursor
    from pay_internal.ledger_page(p_environment_id, v_limit, v_starting_after, v_filters) p;
  elsif v_kind = 'payment_totals' then
    select p.data, p.has_more, p.next_cursor into data, has_more, next_cursor
    from pay_internal.totals_page(p_environment_id, v_starting_after, v_filters) p;
  else
    select p.data, p.has_more, p.next_cursor, p.total into data, has_more, next_cursor, total
    from pay_internal.list_page(p_environment_id, p_at, v_kind, v_limit, v_starting_after,
      v_filters, p_request -> 'counts' is not null) p;
  end if;
end $$;

create or replace function pay.list(p_requests text, p_pages text) returns table (
  n integer, outcome text, api_key_id text, environment_id text, account text, livemode boolean,
  remaining integer, data text, has_more boolean, next_cursor text, total integer, detail text
) language plpgsql volatile security definer rows 10
set enable_mergejoin = off set enable_material = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
  v_pages constant jsonb := p_pages::jsonb;
  -- The events whose words a search writes.
  v_portion constant integer := 200;
  v_found pay.admission[] := pay_internal.admit(
    pay_internal.requests_of(p_requests), 'shared', true);
begin
  -- A search finds what its client has just made.
  perform pay_internal.write_words(o.environment_id, v_portion, true)
  from (
    select distinct f.environment_id from unnest(v_found) f
    where f.outcome = 'ok' and v_pages -> (f.n - 1) ->> 'kind' = 'payments'
      and v_pages -> (f.n - 1) -> 'filters' ? 'search'
  ) o;
  return query
    with requested as materialized (
      select f.*, r."limit", r.starting_after, r.is_plain,
        -- Every id sorts before 'pay_~'. Computed here: in the comparison, below row-level
        -- security, a coalesce is a filter and not an index condition, and a deep page would read
        -- all rows before it.
        coalesce(r.starting_after, 'pay_~') as before
      from unnest(v_found) f
      join (
        select *, kind = 'payments' and filters is null and parent_id is null and counts is null
          as is_plain
        from jsonb_to_recordset(v_pages) as r (
          n integer, kind text, "limit" integer, starting_after text, filters jsonb, parent_id text,
          counts boolean
        )
      ) r on r.n = f.n
    )
    select a.n, case when c.is_known then coalesce(p.outcome, a.outcome) else 'unknown_cursor' end,
      a.api_key_id, a.environment_id, a.account, a.livemode, a.remaining, p.data, p.has_more,
      p.next_cursor, p.total, a.detail
    from requested a
    cross join lateral (
      select a.outcome <> 'ok' or not a.is_plain or a.starting_after is null or exists (
        select from pay.payments t
        where t.environment_id = a.environment_id and t.id = a.starting_after
      ) as is_known
    ) c
    left join lateral (
      select
        'ok' as outcome,
        coalesce(string_agg(page.body, ',' order by page.id desc) filter (where page.is_shown), '')
          as data,
        coalesce(bool_or(not page.is_shown), false) as has_more,
        case when bool_or(not page.is_shown)
          then min(page.id) filter (where page.is_shown)
        end as next_cursor,
        null::integer as total
      from (
        select t.id, t.body, row_number() over newest = 1 or (
          row_number() over newest <= a."limit"
          and sum(octet_length(t.body)) over newest <= pay_internal.page_bytes()
        ) as is_shown
        from pay.payments t
        where t.environment_id = a.environment_id and t.id < a.before
        window newest as (order by t.id desc rows unbounded preceding)
        order by t.id desc
        limit a."limit" + 1
      ) page
      having a.outcome = 'ok' and a.is_plain and c.is_known
      union all
      select x.outcome, x.data, x.has_more, x.next_cursor, x.total
      from pay_internal.filtered_page(a.environment_id, a.at, v_pages -> (a.n - 1)) x
      where a.outcome = 'ok' and not a.is_plain
    ) p on true;
end $$;
grant execute on function pay.list to pay_api;

create or replace function pay_internal.read_resource(
  p_environment_id text, p_api_key_id text, p_kind text, p_id text, p_at timestamptz, out body text,
  out detail text
) language plpgsql stable as $$
#variable_conflict use_column
begin
  case p_kind
    when 'refunds' then
      select t.body into body from pay.refunds t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'disputes' then
      select t.body, t.provider_reference into body, detail from pay.disputes t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'current_disputes' then
      -- p_id is the id of the payment. A payment of a sandbox has at most one such dispute.
      select t.body into body from pay.disputes t
      where t.payment_id = p_id and t.environment_id = p_environment_id and t.status <> 'won'
      order by t.id desc limit 1;
    when 'transfers' then
      select t.body into body from pay.transfers t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'instruments' then
      select pay_internal.instrument_body(pay_internal.instrument_at(t, p_at)),
        pay_internal.instrument_detail(t)
      into body, detail from pay.instruments t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'checkouts' then
      select pay_internal.checkout_body(t, p_at), pay_internal.checkout_detail(t)
      into body, detail from pay.checkouts t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'method_accounts' then
      body := pay_internal.method_accounts(p_environment_id);
    when 'own_checkout' then
      -- Of the payer who asks. p_id is the attempt that the payer names.
      select pay_internal.checkout_body(t, p_at), pay_internal.payer_detail(t, p_id)
      into body, detail from pay.checkouts t
      where t.environment_id = p_environment_id and t.id = p_api_key_id;
    when 'api_keys' then
      select pay_internal.api_key_body(t, p_at) into body from pay.api_keys t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'own_api_key' then
      select pay_internal.api_key_body(t, p_at) into body from pay.api_keys t
      where t.environment_id = p_environment_id and t.id = p_api_key_id;
    when 'sandboxes' then
      select pay_internal.sandbox_body(t) into body from pay.sandboxes t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'events' then
      select pay_internal.event_body(t) into body from pay.events t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'shown_webhook_endpoints' then
      select pay_internal.webhook_endpoint_body(t) into body from pay.webhook_endpoints t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'webhook_endpoints' then
      select t.body, json_build_object('revision', t.revision, 'secrets', t.secrets,
        'public_id', e.public_id, 'account', e.account)
      into body, detail
      from pay.webhook_endpoints t
      join pay.environments e on e.id = t.environment_id
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'requests' then
      select pay_internal.whole_request_body(t) into body from pay.requests t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'faults' then
      select pay_internal.fault_body(t) into body from pay.faults t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'webhook_deliveries' then
      select pay_internal.whole_delivery_body(t) into body from pay.webhook_deliveries t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'idempotency_keys' then
      body := pay_internal.idempotency_key_body(p_environment_id, p_api_key_id, p_id);
  end case;
end $$;

create or replace function pay.load(p_requests text) returns table (
  n integer, outcome text, api_key_id text, environment_id text, account text, livemode boolean,
  remaining integer, status smallint, body text, detail text
) language plpgsql volatile security definer rows 10 as $$
#variable_conflict use_column
declare
  v_requests constant pay_internal.request[] := pay_internal.requests_of(p_requests);
  v_found pay.admission[] := pay_internal.admit(v_requests, 'shared', true);
begin
  return query
    select f.n,
      case
        when f.outcome = 'ok' and r.kind is not null and coalesce(p.body, o.body) is null
          then 'not_found'
        else f.outcome
      end,
      f.api_key_id, f.environment_id, f.account, f.livemode, f.remaining, f.status,
      coalesce(p.body, o.body, f.body),
      coalesce(o.detail, f.detail)
    from unnest(v_found) f
    join unnest(v_requests) r on r.n = f.n
    left join lateral (
      select t.body from pay.payments t
      where f.outcome = 'ok' and r.kind = 'payments'
        and t.environment_id = f.environment_id and t.id = r.id
      limit 1
    ) p on true
    left join lateral (
      select x.body, x.detail
      from pay_internal.read_resource(f.environment_id, f.api_key_id, r.kind, r.id, r.at) x
      where f.outcome = 'ok' and r.kind <> 'payments'
      -- Without this the function is called before the condition is checked.
      limit 1
    ) o on true;
end $$;
grant execute on function pay.load to pay_api;

create or replace function pay_internal.refuse_moving(p_environment_id text)
returns void language plpgsql volatile as $$
begin
  if exists (
    select from pay.environments e where e.id = p_environment_id and e.moving <> 'draining'
  ) then
    raise exception 'the account is moving to another cell: try again in a minute'
      using errcode = 'lock_not_available';
  end if;
end $$;

create or replace function pay_internal.refuse_moving_account(p_account_id text)
returns void language plpgsql volatile as $$
begin
  perform pay_internal.refuse_moving(a.environment_id)
  from pay.provider_accounts a where a.id = p_account_id;
end $$;

create or replace function pay_internal.totals_rows()
returns integer language sql immutable parallel safe as $$ select 20000 $$;

create or replace function pay_internal.totals_page(
  p_environment_id text, p_starting_after text, p_filters jsonb, out data text,
  out has_more boolean, out next_cursor text
) language plpgsql stable as $$
declare
  v_before constant text := least(coalesce(p_starting_after, '~') collate "C",
    coalesce(p_filters ->> 'id_before', '~'));
  v_from constant text := coalesce(p_filters ->> 'id_from', '');
  v_from_ms constant bigint := p_filters ->> 'from_ms';
  v_bucket_ms constant bigint := (p_filters ->> 'bucket_s')::bigint * 1000;
begin
  with found as materialized (
    select t.id, t.status, t.currency, t.method_kind, t.amount_minor, t.amount_released,
      t.amount_refunded, t.created_at
    from pay.payments t
    where t.environment_id = p_environment_id and t.id < v_before and t.id >= v_from
    order by t.id desc limit pay_internal.totals_rows()
  ), summed as (
    select
      (floor(extract(epoch from f.created_at) * 1000)::bigint - v_from_ms) / v_bucket_ms as bucket,
      f.status, f.currency, count(*) as payments, sum(f.amount_minor) as amount,
      sum(case
        when f.status in (/* paid */ 'completed', 'partially_refunded', 'refunded', 'chargeback')
        then f.amount_minor - f.amount_released else 0 end) as captured,
      sum(f.amount_refunded) as refunded
    from found f
    where (p_filters ->> 'status' is null or f.status = p_filters ->> 'status')
      and (p_filters ->> 'currency' is null or f.currency = p_filters ->> 'currency')
      and (p_filters ->> 'method_kind' is null or f.method_kind = p_filters ->> 'method_kind')
    group by 1, 2, 3
  )
  select
    (
      select coalesce(string_agg(format(
          '{"object":"payment_total","from":%s,"status":%s,"currency":%s,"count":%s,'
          '"amount_minor":%s,"amount_captured":%s,"amount_refunded":%s}',
          coalesce(to_json(pay_internal.wire_time(
            to_timestamp((v_from_ms + s.bucket * v_bucket_ms) / 1000.0)))::text, 'null'),
          to_json(s.status), to_json(s.currency), s.payments, s.amount, s.captured, s.refunded
        ), ',' order by s.bucket desc, s.status, s.currency), '')
      from summed s
    ),
    count(*) = pay_internal.totals_rows(),
    case when count(*) = pay_internal.totals_rows() then min(f.id) end
  into data, has_more, next_cursor
  from found f;
end $$;

create or replace function pay_internal.write_payments(
  p_payments pay_internal.payment_row[], p_lines text[], p_callers pay_internal.caller[],
  p_moved integer[]
) returns void language plpgsql volatile as $$
begin
  insert into pay.payments
    (environment_id, id, status, amount_minor, amount_refunded, amount_refunding, amount_released,
      amount_disputed, currency, method_kind, reference, customer_id, instrument_id, checkout_id,
      sequence, created_at, updated_at, body)
  select caller.environment_id, p.id, p.status, p.amount_minor, p.amount_refunded,
    p.amount_refunding, p.amount_released, p.amount_disputed, p.currency, p.method_kind,
    p.reference, p.customer_id, p.instrument_id, p.checkout_id, p.sequence, p.created_at,
    p.updated_at, p_lines[p.body]
  from unnest(p_payments) p
  join unnest(p_callers) caller on caller.n = p.n
  where p.n <> all (p_moved);
  if p_moved <> '{}' then
    with moved as materialized (
      select p.*, k.place
      from unnest(p_payments) p
      join unnest(p_callers) caller on caller.n = p.n
      cross join lateral (
        select k.ctid as place from pay.payments k
        where k.environment_id = caller.environment_id and k.id = p.id limit 1
      ) k
      where p.n = any (p_moved)
    )
    update pay.payments t
    set status = p.status, amount_refunded = p.amount_refunded,
      amount_refunding = p.amount_refunding, amount_released = p.amount_released,
      amount_disputed = p.amount_disputed,
      sequence = p.sequence, updated_at = p.updated_at, body = p_lines[p.body]
    from moved p
    where t.ctid = p.place;
  end if;
end $$;

create or replace function pay.read_challenge(p_token text)
returns table (environment_id text, merchant text, body text, settings text)
language plpgsql volatile security definer rows 1 as $$
#variable_conflict use_column
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving(c.environment_id) from pay.provider_operations c
  where c.provider_reference = p_token and c.account_id = 'sandbox' and c.op = 'authorize';
  return query
    select c.environment_id, pay_internal.merchant_of(e.id) ->> 'name', p.body, (
      select row_to_json(w)::text from pay.sandbox_settings w where w.environment_id = e.id)
    from pay.provider_operations c
    join pay.environments e on e.id = c.environment_id and not e.livemode and e.retired_at is null
    join pay.payments p on p.environment_id = c.environment_id and p.id = c.subject_id
    where c.provider_reference = p_token and c.account_id = 'sandbox' and c.op = 'authorize';
end $$;
grant execute on function pay.read_challenge to pay_api;

create or replace function pay_internal.provider_account_json(
  p_environment_id text, p_account_id text
) returns json language plpgsql stable as $$
begin
  return (
    select row_to_json(t) from (
      select a.id, a.environment_id, a.connector, a.settings, a.secret_name,
        a.notification_secret_names
      from pay.provider_accounts a
      where a.environment_id = p_environment_id and a.id = p_account_id
      union all
      select p_account_id, p_environment_id, 'sandbox', '{}', null, '{}'
      where p_account_id = 'sandbox'
    ) t);
end $$;

create or replace function pay_internal.method_accounts(p_environment_id text)
returns text language plpgsql stable as $$
begin
  return (
    select coalesce(json_agg(json_build_object('method_kind', m.method_kind,
      'currency', m.currency, 'account',
      pay_internal.provider_account_json(m.environment_id, m.account_id))), '[]')::text
    from pay.provider_methods m where m.environment_id = p_environment_id);
end $$;

create or replace function pay.read_provider_account(p_id text)
returns json language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  return (
    select pay_internal.provider_account_json(a.environment_id, a.id)
    from pay.provider_accounts a where a.id = p_id
  );
end $$;
grant execute on function pay.read_provider_account to pay_api;

create or replace function pay.count_ignored_notification(p_account_id text)
returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving_account(p_account_id);
  update pay.provider_accounts a
  set ignored_notifications = a.ignored_notifications + 1
  where a.id = p_account_id;
end $$;
grant execute on function pay.count_ignored_notification to pay_api;

create or replace function pay.add_provider_account(
  p_id text, p_environment_id text, p_connector text, p_method_kinds text[], p_settings text,
  p_secret_name text, p_notification_secret_names text[]
) returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving(p_environment_id);
  if not exists (select from pay.environments e where e.id = p_environment_id and e.livemode) then
    raise exception 'no such live environment' using errcode = 'foreign_key_violation';
  end if;
  if exists (
    select from pay.xpub_counters x
    where x.left_at is not null and x.xpub = p_settings::jsonb ->> 'xpub'
  ) or exists (
    select from pay.signer_nonces n
    where n.left_at is not null
      and lower(n.signer) = lower(p_settings::jsonb ->> 'signer_address')
  ) then
    raise exception 'its extended public key or signer has moved to another cell with an account'
      using errcode = 'check_violation', constraint = 'counts_in_one_cell';
  end if;
  -- Two accounts would both book the money of one bank account.
  if p_connector = 'bank' then
    perform pg_advisory_xact_lock(hashtextextended('iban ' || (p_settings::jsonb ->> 'iban'), 0));
    if exists (
      select from pay.provider_accounts a
      where a.connector = 'bank' and a.status = 'enabled'
        and a.settings ->> 'iban' = p_settings::jsonb ->> 'iban'
    ) then
      raise exception 'another account has this bank account' using errcode = 'check_violation',
        constraint = 'one_account_for_an_iban';
    end if;
  end if;
  insert into pay.provider_accounts (environment_id, id, connector, settings, secret_name,
    notification_secret_names, status, created_at)
  values (p_environment_id, p_id, p_connector, p_settings::jsonb, p_secret_name,
    p_notification_secret_names, 'enabled', pay_internal.server_time());
  -- An account at a bank has one currency.
  insert into pay.provider_methods (environment_id, method_kind, currency, account_id)
  select p_environment_id, k.kind, coalesce(p_settings::jsonb ->> 'currency', '*'), p_id
  from unnest(p_method_kinds) as k (kind);
  insert into pay.provider_cursors (environment_id, account_id) values (p_environment_id, p_id);
end $$;
grant execute on function pay.add_provider_account to pay_operator;

create or replace function pay.change_provider_settings(
  p_id text, p_before text, p_settings text, p_secret_name text
) returns boolean language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving_account(p_id);
  update pay.provider_accounts a
  set settings = p_settings::jsonb, secret_name = p_secret_name
  where a.id = p_id and a.settings = p_before::jsonb;
  return found;
end $$;
grant execute on function pay.change_provider_settings to pay_operator;

create or replace function pay.list_provider_accounts() returns table (
  id text, environment_id text, account text, connector text, method_kinds text[], settings json,
  secret_name text, notification_secret_names text[], status text, created_at timestamptz,
  disabled_at timestamptz, ignored_notifications bigint, polled_at timestamptz,
  unsettled_operations bigint, stalled_since timestamptz, last_error text
) language plpgsql volatile security definer rows 10 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select a.id, a.environment_id, e.account, a.connector,
      array(
        select method.method_kind from pay.provider_methods method
        where method.environment_id = a.environment_id and method.account_id = a.id
        order by method.method_kind
      ),
      a.settings::json, a.secret_name, a.notification_secret_names, a.status, a.created_at,
      a.disabled_at, a.ignored_notifications, u.polled_at,
      (
        select count(*) from pay.provider_operations c
        where c.environment_id = a.environment_id and c.account_id = a.id and c.state <> 'settled'
          and c.first_sent_at is not null
      ),
      u.stalled_since, u.last_error
    from pay.provider_accounts a
    join pay.environments e on e.id = a.environment_id
    left join pay.provider_cursors u on u.environment_id = a.environment_id and u.account_id = a.id
    order by e.account, a.id;
end $$;
grant execute on function pay.list_provider_accounts to pay_operator;

create or replace function pay.disable_provider_account(p_id text) returns boolean
language plpgsql volatile security definer as $$
declare
  v_environment_id text;
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving_account(p_id);
  update pay.provider_accounts a
  set status = 'disabled', disabled_at = pay_internal.server_time()
  where a.id = p_id and a.status = 'enabled'
  returning a.environment_id into v_environment_id;
  delete from pay.provider_methods method
  where method.environment_id = v_environment_id and method.account_id = p_id;
  return v_environment_id is not null;
end $$;
grant execute on function pay.disable_provider_account to pay_operator;

create or replace function pay_internal.keep_provider_events(p_events jsonb, out stored bigint)
language plpgsql volatile as $$
declare
  v_now constant timestamptz := pay_internal.server_time();
begin
  insert into pay.provider_events (environment_id, account_id, reference, op, state, subject_id,
    refund_id, provider_reference, amount_minor, currency, happened_at, received_at, body)
  select f.environment_id, f.account_id, f.reference, f.op, f.state,
    coalesce(f.subject_id,
      pay_internal.find_event_subject(f.environment_id, f.account_id, f.provider_reference),
      case when f.op in ('detach', 'renewal') then pay_internal.find_instrument_payment(
        f.environment_id, f.account_id, f.body ->> 'object_id') end),
    f.refund_id, f.provider_reference, f.amount_minor, f.currency, f.at, v_now,
    f.body #- '{bank,sealed}'
  from jsonb_to_recordset(p_events) as f (
    environment_id text, account_id text, reference text, op text, state text, subject_id text,
    refund_id text, provider_reference text, amount_minor bigint, currency text, at timestamptz,
    body jsonb
  )
  order by f.environment_id, f.account_id, f.reference
  on conflict on constraint provider_events_pkey do nothing;
  get diagnostics stored = row_count;
  perform pay_internal.keep_entry_details(p_events);
end $$;

create or replace function pay_internal.find_event_subject(
  p_environment_id text, p_account_id text, p_provider_reference text
) returns text language sql stable
-- As in pay_internal.lock_provider_events: only the index of the references has this order. With
-- old statistics the planner would read all operations of the environment.
set enable_sort = off as $$
  select c.subject_id from pay.provider_operations c
  where c.provider_reference between p_provider_reference and p_provider_reference
    and c.account_id = p_account_id and c.environment_id = p_environment_id
  order by c.provider_reference limit 1
$$;

create or replace function pay_internal.has_event_operation(
  p_environment_id text, p_account_id text, p_subject_id text, p_provider_reference text
) returns boolean language sql stable as $$
  select exists (
    select from pay.provider_operations c
    where c.environment_id = p_environment_id and c.subject_id = p_subject_id
      and c.account_id = p_account_id
      and (c.provider_reference is null or p_provider_reference is null
        or c.provider_reference = p_provider_reference)
  )
$$;

create or replace function pay.store_provider_events(p_account_id text, p_events text)
returns bigint language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving_account(p_account_id);
  return pay_internal.keep_provider_events((
    select coalesce(
      jsonb_agg(f.value || jsonb_build_object('environment_id', a.environment_id,
        'account_id', a.id, 'body', f.value)),
      '[]')
    from pay.provider_accounts a
    cross join jsonb_array_elements(p_events::jsonb) f
    where a.id = p_account_id
  ));
end $$;
grant execute on function pay.store_provider_events to pay_api;

create or replace function pay_internal.lock_provider_events(
  p_records jsonb, p_found pay.admission[]
) returns pay.admission[] language plpgsql volatile
-- Without statistics any index of the environment looks as good as the primary key, and the planner
-- would read all its events. Only the primary key has the order by reference; with "=" in place of
-- "between" the planner would need no order.
set enable_sort = off as $$
declare
  v_refused record;
begin
  perform pay_internal.keep_provider_events((
    select coalesce(
      jsonb_agg(t.event || jsonb_build_object('environment_id', f.environment_id,
        'body', t.event
          - array['outcome', 'exception', 'booked_minor', 'was_booked_minor', 'received_at',
            'is_elsewhere', 'follows_unmatched'])),
      '[]')
    from unnest(p_found) f
    join jsonb_to_recordset(p_records) as r (n integer, provider_events jsonb) on r.n = f.n
    cross join lateral (
      select e.retired_at from pay.environments e where e.id = f.environment_id limit 1
    ) e
    cross join jsonb_array_elements(r.provider_events) as t (event)
    where f.outcome <> 'stale' and e.retired_at is null
  ));
  for v_refused in
    with
    requested as materialized (
      select f.n, f.environment_id, o.account_id, o.reference, o.outcome,
        coalesce(o.bank ? 'is_replaced', false) as is_replaced,
        coalesce(o.was_booked_minor, 0) as was_booked_minor
      from unnest(p_found) f
      join jsonb_to_recordset(p_records) as r (n integer, provider_events jsonb) on r.n = f.n
      cross join jsonb_to_recordset(r.provider_events) as o (
        account_id text, reference text, outcome text, was_booked_minor bigint, bank jsonb)
      where f.outcome = 'ok'
      order by f.environment_id, o.account_id, o.reference
    ),
    locked as materialized (
      select a.n, a.outcome = 'applied' and l.outcome in ('applied', 'ignored') as is_known,
        a.outcome is not null and coalesce(l.outcome, 'unmatched') = 'unmatched'
          and (l.booked_minor <> a.was_booked_minor
            or l.is_replaced and not a.is_replaced)
          or exists (
            select from requested b
            where b.n < a.n and b.environment_id = a.environment_id
              and b.account_id = a.account_id and b.reference = a.reference
              and b.outcome is not null and a.outcome is not null
              and (a.outcome <> 'exception' or b.outcome <> 'exception')
          ) as is_stale
      from requested a
      cross join lateral (
        select k.outcome, k.booked_minor,
          coalesce(k.body -> 'bank' ? 'is_replaced', false) as is_replaced
        from pay.provider_events k
        where k.environment_id = a.environment_id and k.account_id = a.account_id
          and k.reference between a.reference and a.reference
        order by k.reference limit 1
        for update of k
      ) l
    )
    select l.n, case when bool_or(l.is_known) then 'known' else 'stale' end as outcome
    from locked l
    where l.is_known or l.is_stale
    group by l.n
  loop
    p_found[v_refused.n].outcome := v_refused.outcome;
  end loop;
  return p_found;
end $$;

create or replace function pay_internal.handle_provider_events(
  p_records jsonb, p_expects jsonb, p_callers pay_internal.caller[]
) returns void language plpgsql volatile
-- As in pay_internal.lock_provider_events.
set enable_sort = off as $$
begin
  -- pay_internal.lock_provider_events has locked the events, so none moves.
  with handled as materialized (
    select k.place, e.id as expects_id, o.*
    from unnest(p_callers) caller
    join jsonb_to_recordset(p_records) as r (n integer, provider_events jsonb) on r.n = caller.n
    left join jsonb_to_recordset(p_expects) as e (n integer, id text) on e.n = caller.n
    cross join jsonb_to_recordset(r.provider_events) as o (
      account_id text, reference text, outcome text, exception text, booked_minor bigint,
      op text, state text, refund_id text, at timestamptz)
    cross join lateral (
      select k.ctid as place from pay.provider_events k
      where k.environment_id = caller.environment_id and k.account_id = o.account_id
        and k.reference between o.reference and o.reference
        and (k.outcome is null or k.outcome = 'unmatched'
          or k.outcome = 'exception' and o.outcome = 'applied')
      order by k.reference limit 1
    ) k
    where o.outcome is not null
  )
  update pay.provider_events k
  set outcome = h.outcome, exception = h.exception, handled_at = pay_internal.server_time(),
    booked_minor = coalesce(h.booked_minor, 0), leased_until = null,
    -- The operator can match an event with another subject than the one that it names, and money
    -- that names none.
    op = case k.op when 'adjustment' then h.op else k.op end,
    state = case k.op when 'adjustment' then h.state else k.state end,
    subject_id = coalesce(h.expects_id, k.subject_id),
    refund_id = coalesce(h.refund_id, k.refund_id),
    -- The response to an operation or a sync has the time of the movement, which a notification
    -- lacks.
    happened_at = coalesce(h.at, k.happened_at),
    dismissed_at = null, dismissed_reason = null
  from handled h
  where k.ctid = h.place;
end $$;

create or replace function pay_internal.reopen_bank_entries(
  p_records jsonb, p_expects jsonb, p_callers pay_internal.caller[]
) returns void language plpgsql volatile as $$
begin
  with changed as materialized (
    select caller.environment_id, e.id
    from unnest(p_callers) caller
    join jsonb_to_recordset(p_records) as r (n integer, provider_events jsonb) on r.n = caller.n
    join jsonb_to_recordset(p_expects) as e (n integer, id text) on e.n = caller.n
    where r.provider_events @> '[{"outcome": "applied"}]'
  ), early as materialized (
    select k.place
    from changed c
    cross join lateral (
      select k.ctid as place from pay.provider_events k
      where k.subject_id between c.id and c.id and k.environment_id = c.environment_id
        and k.outcome = 'unmatched' and k.dismissed_at is null
        and k.body -> 'bank' ? 'entry'
      order by k.subject_id
      for update of k
    ) k
  )
  update pay.provider_events k
  set outcome = null, exception = null, handled_at = null, leased_until = null
  from early e
  where k.ctid = e.place;
end $$;

create or replace function pay_internal.follows_unmatched(p_event pay.provider_events)
returns boolean language sql stable as $$
  select exists (
    select from pay.provider_events event
    where event.environment_id = p_event.environment_id and event.account_id = p_event.account_id
      and event.reference = (p_event.body ->> 'object_id')
        || case p_event.op when 'refund' then ':succeeded' when 'dispute' then ':disputed' end
      and event.reference <> p_event.reference and event.outcome = 'unmatched'
  )
$$;

create or replace function pay_internal.provider_event_json(p_event pay.provider_events)
returns json language sql stable as $$
  select (p_event.body || jsonb_build_object('subject_id', p_event.subject_id,
    'dispute_body', case when p_event.op in ('dispute', 'dispute_evidence')
      then pay_internal.dispute_body(
      p_event.environment_id, p_event.subject_id, p_event.body ->> 'object_id') end,
    'transfers', pay_internal.transfers_json(p_event, p_event.subject_id),
    'refund_id', p_event.refund_id, 'booked_minor', p_event.booked_minor,
    'follows_unmatched', pay_internal.follows_unmatched(p_event),
    'received_at', pay_internal.wire_time(p_event.received_at), 'is_elsewhere',
    exists (
      select from pay.provider_operations c
      where c.provider_reference = p_event.provider_reference
        and c.account_id <> p_event.account_id
    ) or exists (
      select from pay.provider_operations c
      where c.subject_id = p_event.subject_id and c.account_id <> p_event.account_id
    )))::json
$$;

create or replace function pay_internal.find_event_refund(
  p_environment_id text, p_account_id text, p_object_id text
) returns text language sql stable as $$
  select event.refund_id from pay.provider_events event
  where event.environment_id = p_environment_id and event.account_id = p_account_id
    and event.reference = p_object_id || ':succeeded'
$$;

create or replace function pay_internal.accounts_with_events()
returns text[] language plpgsql stable as $$
begin
  return array(
    with recursive account as (
      (select event.account_id from pay.provider_events event
       where event.outcome is null order by event.account_id limit 1)
      union all
      select n.account_id
      from account a
      cross join lateral (
        select event.account_id from pay.provider_events event
        where event.outcome is null and event.account_id > a.account_id
        order by event.account_id limit 1
      ) n
    )
    select a.account_id from account a
  );
end $$;

create or replace function pay_internal.lease_provider_events(
  p_limit integer, p_at timestamptz, p_leased_until timestamptz
) returns table (environment_id text, account_id text, id text, place text)
language plpgsql volatile rows 10 as $$
#variable_conflict use_column
declare
  v_accounts constant text[] := pay_internal.accounts_with_events();
begin
  if v_accounts = '{}' then return; end if;
  return query
    with chosen as materialized (
      select l.environment_id, l.account_id, l.reference
      from unnest(v_accounts) a (id)
      cross join lateral (
        select event.environment_id, event.account_id, event.reference, event.received_at,
          row_number() over (order by event.received_at) as turn
        from pay.provider_events event
        cross join lateral (
          select e.retired_at, e.moving from pay.environments e
          where e.id = event.environment_id limit 1
        ) e
        where e.retired_at is null and e.moving is null and event.outcome is null
          and event.account_id = a.id
          and (event.leased_until is null or event.leased_until <= p_at)
        order by event.received_at
        limit p_limit
      ) l
      order by l.turn, l.received_at
      limit p_limit
    ),
    -- Locks only what is chosen.
    open as materialized (
      select event.environment_id, event.account_id, event.reference
      from chosen c
      join pay.provider_events event on event.environment_id = c.environment_id
        and event.account_id = c.account_id and event.reference = c.reference
      where event.outcome is null
        and (event.leased_until is null or event.leased_until <= p_at)
      for update of event skip locked
    )
    update pay.provider_events event
    set leased_until = p_leased_until,
      subject_id = coalesce(event.subject_id,
        pay_internal.find_event_subject(event.environment_id, event.account_id,
          event.provider_reference)),
      refund_id = coalesce(event.refund_id, case when event.op = 'refund'
        then pay_internal.find_event_refund(event.environment_id, event.account_id,
          event.body ->> 'object_id') end)
    from open o
    where event.environment_id = o.environment_id and event.account_id = o.account_id
      and event.reference = o.reference
    returning event.environment_id, event.account_id, event.reference,
      to_char(event.received_at at time zone 'UTC', 'YYYYMMDDHH24MISSUS');
end $$;

create or replace function pay_internal.provider_operation_json(p_operation pay.provider_operations)
returns json language sql stable as $$
  select row_to_json(t) from (
    select p_operation.id, p_operation.environment_id, p_operation.op, p_operation.subject_id,
      p_operation.refund_id, p_operation.amount_minor,
      p_operation.currency, p_operation.request, p_operation.state, p_operation.attempts,
      pay_internal.wire_time(p_operation.created_at) as created_at,
      pay_internal.wire_time(p_operation.first_sent_at) as first_sent_at,
      -- By the database's clock. Stripe forgets an id 24 hours after the first attempt. The cancel
      -- of an abandoned payment and the removal of a card have the same effect without the id.
      p_operation.may_repeat and (p_operation.op in ('abandon', 'detach')
        or coalesce(p_operation.first_sent_at, p_operation.created_at)
          > pay_internal.server_time() - interval '23 hours') as may_repeat,
      p_operation.provider_reference, p_operation.request_id, p_operation.decline_is_error,
      p_operation.traceparent,
      case when p_operation.request ? 'dispute' then pay_internal.dispute_body(
        p_operation.environment_id, p_operation.subject_id,
        p_operation.request -> 'dispute' ->> 'id') end as dispute_body,
      case when p_operation.connector = 'evm' then (
        select json_build_object(
          'index', d.xpub_index, 'expires_at', pay_internal.wire_time(d.expires_at))
        from pay.deposit_addresses d
        where d.environment_id = p_operation.environment_id and d.operation_id = p_operation.id
      ) when p_operation.request ? 'save' then json_build_object(
        'customer', pay_internal.known_customer(p_operation.environment_id,
          p_operation.account_id, p_operation.request #>> '{save,customer_id}'))
      end as reserved,
      -- Without a due_at it is from before the sandbox had a clock of its own.
      pay_internal.wire_time(
        coalesce(p_operation.due_at, p_operation.next_attempt_at)) as due_at,
      (select row_to_json(w) from pay.sandbox_settings w
       where w.environment_id = p_operation.environment_id) as settings
  ) t
$$;

create or replace function pay_internal.find_providers(
  p_operations jsonb, inout p_found pay.admission[], out providers jsonb
) language plpgsql volatile as $$
declare
  v_one_at_a_time constant text[] :=
    '{authorize,capture,cancel,dispute_evidence,dispute_accept}';
  v_operation record;
begin
  providers := '{}';
  for v_operation in
    select c.n, f.environment_id, o.provider_reference,
      e.livemode and c.op = 'authorize' and c.request ->> 'token' is null
        and pay_internal.rail_needs_token(c.method_kind) as is_incomplete, case
        when not e.livemode then 'sandbox'
        when c.request #>> '{instrument,account}' <> method.account_id then null
        when c.op in ('authorize', 'transfer') then method.account_id
        else o.account_id
      end as account_id,
      c.op = any (v_one_at_a_time) and exists (
        select from (
          -- All operations of the subject. With the condition inside, the planner would read every
          -- pending operation of the service.
          select p.state, p.op from pay.provider_operations p
          where p.subject_id = c.subject_id and p.environment_id = f.environment_id
          offset 0
        ) p
        where p.state = 'pending' and p.op = any (v_one_at_a_time)
          and (p.op like 'dispute%') = (c.op like 'dispute%')
      ) as is_waiting
    from unnest(p_found) f
    join jsonb_to_recordset(p_operations) as c (
      n integer, op text, subject_id text, method_kind text, currency text, request jsonb)
      on c.n = f.n
    join pay.environments e on e.id = f.environment_id
    left join lateral (
      select m.account_id from pay.provider_methods m
      where m.environment_id = f.environment_id and m.method_kind = c.method_kind
        and m.currency in (c.currency, '*')
      -- The account of the currency before that of all others.
      order by m.currency desc limit 1
    ) method on true
    left join lateral (
      select a.account_id, a.provider_reference from pay.provider_operations a
      where a.environment_id = f.environment_id and a.subject_id = c.subject_id
        and a.op in ('authorize', 'transfer')
      order by a.id desc limit 1
    ) o on true
    where f.outcome = 'ok'
  loop
    if v_operation.account_id is null then
      p_found[v_operation.n].outcome := 'unconfigured';
    elsif v_operation.is_incomplete then
      p_found[v_operation.n].outcome := 'incomplete';
    elsif v_operation.is_waiting then
      p_found[v_operation.n].outcome := 'in_progress';
    else
      providers := providers || jsonb_build_object(v_operation.n, jsonb_build_object(
        'account', pay_internal.provider_account_json(
          v_operation.environment_id, v_operation.account_id),
        'provider_reference', v_operation.provider_reference));
    end if;
  end loop;
end $$;

create or replace function pay_internal.write_operations(
  p_operations jsonb, p_providers jsonb, p_requests pay_internal.request[],
  p_found pay.admission[], out details text[]
) language plpgsql volatile as $$
declare
  v_sync_after constant interval := '10 minutes';
  v_now constant timestamptz := pay_internal.server_time();
  v_deposits jsonb;
begin
  if p_providers @? '$.*.account.connector ? (@ == "evm")' then
    v_deposits := pay_internal.allocate_deposits(p_operations, p_providers, p_found);
  end if;
  with
  operation as materialized (
    select f.environment_id, f.api_key_id, r.idempotency_key, r.request_id, v.account,
      v.provider_reference as known_reference, c.provider_reference is not null as is_settled,
      v_now + coalesce(f.ahead, '0') as made_at, f.ahead is not null as has_clock,
      coalesce(c.due, v_now + coalesce(f.ahead, '0')
        + coalesce(c.delay_ms, c.lease_ms) * interval '1 ms') as due_at,
      c.*
    from unnest(p_found) f
    join jsonb_to_recordset(p_operations) as c (
      n integer, id text, op text, subject_id text, refund_id text, amount_minor bigint,
      currency text, request jsonb, decline_is_error boolean, lease_ms integer, delay_ms bigint,
      due timestamptz, provider_reference text, traceparent text
    ) on c.n = f.n
    join unnest(p_requests) r on r.n = f.n
    join jsonb_each(p_providers) as k (n, found) on k.n = f.n::text
    cross join lateral jsonb_to_record(k.found) as v (account jsonb, provider_reference text)
    where f.outcome = 'ok'
  ),
  made as (
    insert into pay.provider_operations (environment_id, id, account_id, connector, op, subject_id,
      refund_id, amount_minor, currency, request, state, attempts, created_at, first_sent_at,
      next_attempt_at, leased_until, settled_at, next_sync_at, may_repeat, provider_reference,
      api_key_id, idempotency_key, request_id, decline_is_error, due_at, traceparent)
    select c.environment_id, c.id, c.account ->> 'id', c.account ->> 'connector', c.op,
      c.subject_id, c.refund_id, c.amount_minor, c.currency, c.request,
      case when c.is_settled then 'settled' else 'pending' end,
      case when c.delay_ms is null then 1 else 0 end, c.made_at,
      case when c.delay_ms is null then v_now end,
      case when c.is_settled then null
        when c.has_clock then pay_internal.real_due(c.environment_id, c.due_at)
        else c.due_at end,
      case when not c.is_settled and c.delay_ms is null
        then v_now + c.lease_ms * interval '1 ms' end,
      case when c.is_settled then v_now end,
      -- The sandbox and banks report by themselves.
      case when c.account ->> 'connector' not in ('sandbox', 'bank')
        and c.op in ('authorize', 'refund', 'transfer') then v_now + v_sync_after end,
      true, coalesce(c.provider_reference, c.known_reference), c.api_key_id, c.idempotency_key,
      c.request_id, c.decline_is_error,
      case when c.has_clock and not c.is_settled then c.due_at end, c.traceparent
    from operation c
  )
  select array_agg(
    case when c.n is not null then json_build_object(
      'id', c.id, 'account', c.account, 'provider_reference', c.known_reference,
      'created_at', pay_internal.wire_time(c.made_at),
      'reserved', case when c.request ? 'save' then jsonb_build_object(
        'customer', pay_internal.known_customer(c.environment_id, c.account ->> 'id',
          c.request #>> '{save,customer_id}')) else v_deposits -> c.n::text end)::text end
    order by f.n)
  into details
  from unnest(p_found) f
  -- A change can have an operation that the worker sends later beside the one of its request.
  left join (select distinct on (d.n) d.* from operation d order by d.n, d.delay_ms nulls first) c
    on c.n = f.n;
  if p_providers @? '$.*.account.connector ? (@ == "bank")' then
    perform pay_internal.keep_bank_orders(p_operations, p_providers, p_found);
  end if;
end $$;

create or replace function pay_internal.write_later_operations(
  p_operations jsonb, p_payments pay_internal.payment_row[], p_callers pay_internal.caller[]
) returns void language plpgsql volatile as $$
declare
  v_now constant timestamptz := pay_internal.server_time();
begin
  insert into pay.provider_operations (environment_id, id, account_id, connector, op, subject_id,
    amount_minor, currency, request, state, attempts, created_at, next_attempt_at, may_repeat,
    provider_reference, api_key_id, request_id, decline_is_error, due_at, traceparent)
  select o.environment_id, c.id, o.account_id, o.connector, c.op, c.subject_id, c.amount_minor,
    c.currency, c.request, 'pending', 0, m.made_at,
    case when caller.ahead is null then t.due_at
      else pay_internal.real_due(o.environment_id, t.due_at) end, true,
    o.provider_reference, o.api_key_id, o.request_id, false,
    case when caller.ahead is not null then t.due_at end, c.traceparent
  from unnest(p_callers) caller
  join jsonb_to_recordset(p_operations) as c (
    n integer, id text, op text, subject_id text, amount_minor bigint, currency text,
    request jsonb, delay_ms bigint, due timestamptz, traceparent text
  ) on c.n = caller.n
  left join unnest(p_payments) p on p.n = caller.n
  cross join lateral (
    select case when caller.ahead is null then v_now
      else least(v_now + caller.ahead, p.updated_at) end as made_at
  ) m
  cross join lateral (
    select coalesce(c.due, m.made_at + c.delay_ms * interval '1 ms') as due_at
  ) t
  cross join lateral (
    select a.environment_id, a.account_id, a.connector, a.provider_reference, a.api_key_id,
      a.request_id
    from pay.provider_operations a
    where a.environment_id = caller.environment_id and a.subject_id = c.subject_id
      and a.op = 'authorize'
    order by a.id desc limit 1
  ) o;
end $$;

create or replace function pay_internal.lock_operations(p_records jsonb, p_found pay.admission[])
returns pay.admission[] language plpgsql volatile as $$
declare
  v_n integer;
begin
  for v_n in
    with
    requested as materialized (
      select r.n, r.operation_id, f.environment_id
      from unnest(p_found) f
      join jsonb_to_recordset(p_records) as r (n integer, operation_id text) on r.n = f.n
      where f.outcome = 'ok' and r.operation_id is not null
    ),
    operation as materialized (
      select a.n, c.id, c.state
      from requested a
      join pay.provider_operations c on c.environment_id = a.environment_id
        and c.id = a.operation_id
      order by c.environment_id, c.id
      for update of c
    )
    select a.n from requested a
    except
    select min(c.n) from operation c where c.state <> 'settled' group by c.id
  loop
    p_found[v_n].outcome := 'known';
  end loop;
  return p_found;
end $$;

create or replace function pay_internal.write_operation_results(
  p_records jsonb, p_callers pay_internal.caller[]
) returns void language plpgsql volatile as $$
begin
  perform pay_internal.update_operations((
    select coalesce(
      jsonb_agg(r.operation
        || jsonb_build_object('environment_id', caller.environment_id, 'id', r.operation_id)),
      '[]')
    from unnest(p_callers) caller
    join jsonb_to_recordset(p_records) as r (n integer, operation_id text, operation jsonb)
      on r.n = caller.n
    where r.operation_id is not null and r.operation is not null
  ));
  with replied as materialized (
    select k.environment_id, k.api_key_id, k.key, r.status, r.body
    from unnest(p_callers) caller
    join jsonb_to_recordset(p_records) as r (n integer, operation_id text, status smallint,
      body text)
      on r.n = caller.n
    cross join lateral (
      select c.environment_id, c.api_key_id, c.idempotency_key, c.request_id
      from pay.provider_operations c
      where c.environment_id = caller.environment_id and c.id = r.operation_id limit 1
    ) c
    join pay.idempotency_keys k
      on k.environment_id = c.environment_id and k.api_key_id = c.api_key_id
      and k.key = c.idempotency_key and k.request_id = c.request_id
    where r.status is not null and k.status = 102
    order by k.environment_id, k.api_key_id, k.key
    for update of k
  )
  update pay.idempotency_keys k
  set status = a.status, body = a.body
  from replied a
  where k.environment_id = a.environment_id and k.api_key_id = a.api_key_id and k.key = a.key;
end $$;

create or replace function pay_internal.reopen_provider_events(p_operations jsonb)
returns void language plpgsql volatile as $$
begin
  with lost as materialized (
    select r.environment_id, c.account_id, f.reference
    from jsonb_to_recordset(p_operations) as r (environment_id text, id text,
      provider_reference text)
    cross join lateral (
      select c.account_id from pay.provider_operations c
      where c.environment_id = r.environment_id and c.id = r.id limit 1
    ) c
    cross join lateral (
      select f.reference from pay.provider_events f
      where f.provider_reference = r.provider_reference and f.account_id = c.account_id
        and f.environment_id = r.environment_id and f.outcome = 'unmatched'
      for update of f skip locked
    ) f
    where r.provider_reference is not null
  )
  update pay.provider_events f
  set outcome = null, exception = null, handled_at = null, leased_until = null,
    dismissed_at = null, dismissed_reason = null
  from lost l
  where f.environment_id = l.environment_id and f.account_id = l.account_id
    and f.reference = l.reference;
end $$;

create or replace function pay_internal.update_operations(p_operations jsonb)
returns void language plpgsql volatile as $$
begin
  with requested as materialized (
    select r.*
    from jsonb_to_recordset(p_operations) as r (
      environment_id text, id text, state text, next_attempt_at timestamptz,
      provider_reference text, last_reply text, may_repeat boolean, needs_operator boolean
    )
    order by r.environment_id collate "C", r.id collate "C"
  ),
  result as materialized (
    select a.*, coalesce(a.state, c.state) as new_state
    from requested a
    cross join lateral (
      select c.state from pay.provider_operations c
      where c.environment_id = a.environment_id and c.id = a.id limit 1
      for update of c
    ) c
    where c.state <> 'settled'
  )
  update pay.provider_operations c
  set state = r.new_state, leased_until = null,
    next_attempt_at = case when r.new_state = 'pending'
      then coalesce(r.next_attempt_at, c.next_attempt_at) end,
    provider_reference = coalesce(r.provider_reference, c.provider_reference),
    last_reply = coalesce(r.last_reply, c.last_reply),
    may_repeat = coalesce(r.may_repeat, c.may_repeat),
    needs_operator = coalesce(r.needs_operator, false),
    settled_at = case when r.new_state = 'settled' then pay_internal.server_time() end
  from result r
  where c.environment_id = r.environment_id and c.id = r.id;
  perform pay_internal.reopen_provider_events(p_operations);
end $$;

create or replace function pay.list_unsettled_operations(p_all boolean) returns table (
  id text, environment_id text, account text, account_id text, op text, subject_id text,
  refund_id text, amount_minor bigint, currency text, state text, attempts integer,
  may_repeat boolean, created_at timestamptz, next_attempt_at timestamptz, provider_reference text,
  last_reply text, subject_status text
) language plpgsql volatile security definer rows 100 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select c.id, c.environment_id, e.account, c.account_id, c.op, c.subject_id, c.refund_id,
      c.amount_minor, c.currency, c.state, c.attempts, c.may_repeat, c.created_at,
      c.next_attempt_at, c.provider_reference, c.last_reply, coalesce(r.status, subject.status)
    from pay.provider_operations c
    join pay.environments e on e.id = c.environment_id and e.livemode and e.retired_at is null
    left join pay_internal.provider_subjects subject
      on subject.environment_id = c.environment_id and subject.id = c.subject_id
    left join pay.refunds r on r.environment_id = c.environment_id and r.id = c.refund_id
    where c.state <> 'settled' and (c.state = 'operator' or c.needs_operator or p_all)
    order by c.created_at, c.id;
end $$;
grant execute on function pay.list_unsettled_operations to pay_operator;

create or replace function pay.read_provider_operation(p_id text) returns setof pay.provider_work
language plpgsql volatile security definer rows 1 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select w.* from pay.environments e
    join pay.provider_operations c on c.environment_id = e.id and c.id = p_id
    cross join lateral pay_internal.read_operations(array[e.id], array[c.id]) w
    where e.livemode and e.retired_at is null;
end $$;
grant execute on function pay.read_provider_operation to pay_operator;

create or replace function pay.list_reported_events() returns table (
  account_id text, reference text, environment_id text, account text, outcome text, op text,
  state text, subject_id text, refund_id text, provider_reference text, amount_minor bigint,
  currency text, booked_minor bigint, happened_at timestamptz, received_at timestamptz, reason text,
  file text, line integer, bank_reference text
) language plpgsql volatile security definer rows 10 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select event.account_id, event.reference, event.environment_id, e.account, event.outcome,
      event.op, event.state, event.subject_id, event.refund_id, event.provider_reference,
      event.amount_minor, event.currency, event.booked_minor, event.happened_at, event.received_at,
      coalesce(event.exception, case
        when event.subject_id is null
          then 'it names no payment, and no operation has made '
            || coalesce(event.provider_reference, 'its object')
        when subject.id is null then event.subject_id || ' does not exist in this environment'
        else event.subject_id || ' has another object at the provider, or another account'
      end),
      f.name, (event.body #>> '{bank,entry,line}')::integer,
      event.body #>> '{bank,entry,bank_reference}'
    from pay.provider_events event
    join pay.environments e on e.id = event.environment_id and e.livemode and e.retired_at is null
    left join pay_internal.provider_subjects subject
      on subject.environment_id = event.environment_id and subject.id = event.subject_id
    left join pay.bank_entries b on b.environment_id = event.environment_id
      and b.account_id = event.account_id and event.body -> 'bank' ? 'entry'
      and b.id = event.body ->> 'object_id'
    left join pay.bank_files f on f.environment_id = b.environment_id
      and f.account_id = b.account_id
      -- A file that tells the orders of a total has no place of their events.
      and f.sha256 = case when event.body #> '{bank,entry,part}' = '0' then b.sha256
        else coalesce(b.details_sha256, b.sha256) end
    where (event.outcome in ('exception', 'unmatched') or event.exception is not null)
      and event.dismissed_at is null
    order by event.received_at, event.account_id, event.reference;
end $$;
grant execute on function pay.list_reported_events to pay_operator;

create or replace function pay.read_reported_events(
  p_account_id text, p_reference text, p_subject_id text, p_refund_id text
) returns setof pay.provider_work language plpgsql volatile security definer rows 10 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select 'event', event.environment_id, e.livemode,
      pay_internal.provider_account_json(event.environment_id, event.account_id), k.operation,
      (pay_internal.provider_event_json(event)::jsonb || jsonb_build_object('dispute_body',
        pay_internal.dispute_body(event.environment_id, subject.id, event.body ->> 'object_id'),
        'transfers', pay_internal.transfers_json(event, subject.id)))::json,
      subject.body, subject.sequence, r.body, null::json, null::date
    from pay.environments e
    join pay.provider_events event on event.environment_id = e.id and event.reference = p_reference
      and event.account_id = coalesce(p_account_id, event.account_id)
    left join pay.refunds r on r.environment_id = e.id and r.id = p_refund_id
    left join pay_internal.provider_subjects subject
      on subject.environment_id = e.id and subject.id = coalesce(r.payment_id, p_subject_id)
    left join lateral (
      select pay_internal.provider_operation_json(c) as operation from pay.provider_operations c
      where c.environment_id = event.environment_id and c.subject_id = subject.id
        and c.op = event.op and c.refund_id is not distinct from p_refund_id
      order by c.id desc limit 1
    ) k on true
    where e.livemode and e.retired_at is null and event.outcome in ('unmatched', 'exception');
end $$;
grant execute on function pay.read_reported_events to pay_operator;

create or replace function pay.dismiss_provider_event(
  p_account_id text, p_reference text, p_reason text
) returns bigint language plpgsql volatile security definer as $$
declare
  v_found bigint; v_account_id text;
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving(l.environment_id) from pay.list_reported_events() l
  where l.reference = p_reference and l.account_id = coalesce(p_account_id, l.account_id);
  select count(*) into v_found from pay.list_reported_events() l
  where l.reference = p_reference and l.account_id = coalesce(p_account_id, l.account_id);
  if v_found = 1 then
    update pay.provider_events event
    set dismissed_at = pay_internal.server_time(), dismissed_reason = p_reason
    from pay.list_reported_events() l
    where l.reference = p_reference and l.account_id = coalesce(p_account_id, l.account_id)
      and event.environment_id = l.environment_id and event.account_id = l.account_id
      and event.reference = l.reference
    returning event.account_id into v_account_id;
    perform pay.settle_entry_details(v_account_id, p_reference, '[]');
  end if;
  return v_found;
end $$;
grant execute on function pay.dismiss_provider_event to pay_operator;

create or replace function pay_internal.read_readings(
  p_environments text[], p_accounts text[], p_at timestamptz
) returns setof pay.provider_work language plpgsql stable rows 10 as $$
begin
  return query
    select case when d.poll_at <= p_at then 'poll' else 'totals' end, u.environment_id, true,
      pay_internal.provider_account_json(u.environment_id, u.account_id), null::json, null::json,
      null::text, null::integer, null::text,
      (case when d.poll_at <= p_at then u.cursor else u.totals_cursor end)::json,
      case when not d.poll_at <= p_at then d.day end
    from unnest(p_environments, p_accounts) as l (environment_id, account_id)
    join pay.provider_cursors u
      on u.environment_id = l.environment_id and u.account_id = l.account_id
    join pay_internal.provider_readings d
      on d.environment_id = u.environment_id and d.account_id = u.account_id;
end $$;

create or replace function pay.save_cursor(p_account_id text, p_cursor text, p_is_done boolean)
returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  update pay.provider_cursors u
  set cursor = p_cursor::jsonb, stalled_since = null, last_error = null,
    polled_at = case when p_is_done then pay_internal.server_time() else u.polled_at end,
    leased_until = case when p_is_done then null else u.leased_until end
  from pay.provider_accounts a
  where a.id = p_account_id and u.environment_id = a.environment_id and u.account_id = a.id;
end $$;
grant execute on function pay.save_cursor to pay_api;

create or replace function pay.save_totals_cursor(p_account_id text, p_day date, p_cursor text)
returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  update pay.provider_cursors u
  set totals_cursor = p_cursor::jsonb
  from pay.provider_accounts a
  where a.id = p_account_id and u.environment_id = a.environment_id and u.account_id = a.id
    and coalesce(u.totals_day < p_day, true);
end $$;
grant execute on function pay.save_totals_cursor to pay_api;

create or replace function pay.reread_account(p_account_id text, p_cursor text) returns boolean
language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving_account(p_account_id);
  update pay.provider_cursors u
  set cursor = p_cursor::jsonb, polled_at = null, leased_until = null, stalled_since = null,
    last_error = null
  from pay.provider_accounts a
  where a.id = p_account_id and u.environment_id = a.environment_id and u.account_id = a.id
    and (u.leased_until is null or u.leased_until <= pay_internal.server_time()
      or u.stalled_since is not null);
  return found;
end $$;
grant execute on function pay.reread_account to pay_operator;

create or replace function pay.list_final_events(p_account_id text, p_since timestamptz)
returns table (
  reference text, payment_id text, address text, amount_minor bigint, currency text, tx_hash text,
  log_index integer
) language plpgsql volatile security definer rows 100 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select event.reference, event.subject_id, event.provider_reference, event.amount_minor,
      event.currency, event.body #>> '{chain,tx_hash}',
      (event.body #>> '{chain,log_index}')::integer
    from pay.provider_accounts a
    join pay.provider_events event on event.environment_id = a.environment_id
      and event.account_id = a.id
      and event.op = 'authorize' and event.state = 'succeeded' and event.happened_at >= p_since
    where a.id = p_account_id
    order by event.happened_at, event.reference;
end $$;
grant execute on function pay.list_final_events to pay_operator;

create or replace function pay.stall_reading(p_account_id text, p_error text)
returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  update pay.provider_cursors u
  set stalled_since = coalesce(u.stalled_since, pay_internal.server_time()),
    last_error = left(p_error, 500)
  from pay.provider_accounts a
  where a.id = p_account_id and u.environment_id = a.environment_id and u.account_id = a.id;
end $$;
grant execute on function pay.stall_reading to pay_api;

create or replace function pay.pause_reading(p_account_id text)
returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  update pay.provider_cursors u
  set leased_until = pay_internal.server_time() + interval '1 second'
  from pay.provider_accounts a
  where a.id = p_account_id and u.environment_id = a.environment_id and u.account_id = a.id;
end $$;
grant execute on function pay.pause_reading to pay_api;

create or replace function pay.store_totals(p_account_id text, p_day date, p_totals text)
returns void language plpgsql volatile security definer as $$
declare
  v_now constant timestamptz := pay_internal.server_time();
begin
  perform pay_internal.act_as_worker();
  update pay.provider_cursors u
  set totals_day = p_day, totals_cursor = null, leased_until = null
  from pay.provider_accounts a
  where a.id = p_account_id and u.environment_id = a.environment_id and u.account_id = a.id
    and coalesce(u.totals_day < p_day, true);
  insert into pay.provider_totals
    (environment_id, account_id, day, currency, provider_minor, read_at)
  select a.environment_id, a.id, p_day, t.currency, t.net_minor, v_now
  from pay.provider_accounts a
  cross join json_to_recordset(p_totals::json) as t (currency text, net_minor bigint)
  where a.id = p_account_id
  on conflict on constraint provider_totals_pkey
    do update set provider_minor = excluded.provider_minor, read_at = excluded.read_at;
end $$;
grant execute on function pay.store_totals to pay_api;

create or replace function pay_internal.provider_work_is_due()
returns boolean language sql stable as $$
  select exists (
      select from pay.provider_operations c
      where c.state = 'pending' and c.next_attempt_at <= now()
        and (c.leased_until is null or c.leased_until <= now())
    )
    or exists (
      select from pay.provider_events event
      where event.outcome is null and (event.leased_until is null or event.leased_until <= now())
    )
    or exists (select from pay.provider_operations c where c.next_sync_at <= now())
    or exists (
      select from pay_internal.provider_readings r
      join pay.provider_cursors u
        on u.environment_id = r.environment_id and u.account_id = r.account_id
      where (r.poll_at <= now() or r.totals_at <= now())
        and (u.leased_until is null or u.leased_until <= now())
    )
$$;

create or replace function pay.lease_provider_work(
  p_limit integer, p_asking_limit integer, p_lease_ms integer, p_at timestamptz
) returns setof pay.provider_work language plpgsql volatile security definer rows 10 as $$
declare
  v_at constant timestamptz := least(p_at, pay_internal.server_time());
  v_leased_until constant timestamptz := pay_internal.server_time() + p_lease_ms * interval '1 ms';
  v_quota constant integer := greatest(p_limit / 4, 1);
  v_left integer := p_limit;
  v_asking_left integer := p_asking_limit;
  v_leased integer;
  v_kind text;
  v_limit integer;
begin
  perform pay_internal.act_as_worker();
  for v_kind, v_limit in
    select k.kind, k.quota from (values
      (1, 'operation', v_quota), (2, 'sync', v_quota), (3, 'reading', v_quota), (4, 'event',
        p_limit),
      (5, 'operation', p_limit), (6, 'sync', p_limit)
    ) as k (rank, kind, quota)
    order by k.rank
  loop
    v_limit := least(v_limit, v_left, case when v_kind <> 'event' then v_asking_left end);
    continue when v_limit <= 0;
    begin
      return query select * from pay_internal.lease_kind(v_kind, v_limit, v_at, v_leased_until);
      get diagnostics v_leased = row_count;
    exception when others then
      return next pay_internal.given_up_work(v_kind, null, 'all', sqlstate, sqlerrm);
      v_leased := 0;
    end;
    v_left := v_left - v_leased;
    if v_kind <> 'event' then v_asking_left := v_asking_left - v_leased; end if;
  end loop;
end $$;
grant execute on function pay.lease_provider_work to pay_api;

create or replace function pay_internal.lease_kind(
  p_kind text, p_limit integer, p_at timestamptz, p_leased_until timestamptz
) returns setof pay.provider_work language plpgsql volatile rows 10 as $$
declare
  v_leased record;
begin
  select array_agg(l.environment_id order by l.place) as environments,
    array_agg(l.account_id order by l.place) as accounts, array_agg(l.id order by l.place) as ids
  into v_leased
  from pay_internal.lease_work(p_kind, p_limit, p_at, p_leased_until) l;
  if v_leased.ids is not null then
    return query select * from pay_internal.read_work_apart(
      p_kind, v_leased.environments, v_leased.accounts, v_leased.ids, p_at);
  end if;
end $$;

create or replace function pay_internal.lease_work(
  p_kind text, p_limit integer, p_at timestamptz, p_leased_until timestamptz
) returns table (environment_id text, account_id text, id text, place text)
language plpgsql volatile rows 10 as $$
#variable_conflict use_column
begin
  case p_kind
    when 'operation' then
      return query
        with due as materialized (
          select c.environment_id, c.id
          from pay.provider_operations c
          cross join lateral (
            select e.retired_at, e.moving from pay.environments e
            where e.id = c.environment_id limit 1
          ) e
          where e.retired_at is null and e.moving is null
            and c.state = 'pending' and c.next_attempt_at <= p_at
            and (c.leased_until is null or c.leased_until <= p_at)
          order by c.next_attempt_at
          limit p_limit
          for update of c skip locked
        )
        update pay.provider_operations c
        set leased_until = p_leased_until, attempts = c.attempts + 1,
          first_sent_at = coalesce(c.first_sent_at, p_at)
        from due d
        where c.environment_id = d.environment_id and c.id = d.id
        returning c.environment_id, c.account_id, c.id, c.id;
    when 'event' then
      return query select * from pay_internal.lease_provider_events(p_limit, p_at, p_leased_until);
    when 'sync' then
      return query
        with due as materialized (
          select c.environment_id, c.id
          from pay.provider_operations c
          cross join lateral (
            select e.moving from pay.environments e where e.id = c.environment_id limit 1
          ) e
          where e.moving is null and c.next_sync_at <= p_at
          order by c.next_sync_at
          limit p_limit
          for update of c skip locked
        )
        update pay.provider_operations c
        set next_sync_at = p_at + interval '1 hour'
        from due d
        where c.environment_id = d.environment_id and c.id = d.id
        returning c.environment_id, c.account_id, c.id, c.id;
    else
      return query
        with due as materialized (
          select u.environment_id, u.account_id
          from pay.provider_cursors u
          join pay_internal.provider_readings d
            on d.environment_id = u.environment_id and d.account_id = u.account_id
          cross join lateral (
            select e.moving from pay.environments e where e.id = u.environment_id limit 1
          ) e
          where e.moving is null and (u.leased_until is null or u.leased_until <= p_at)
            and (d.poll_at <= p_at or d.totals_at <= p_at)
          order by u.polled_at nulls first
          limit p_limit
          for update of u skip locked
        )
        update pay.provider_cursors u
        set leased_until = p_leased_until
        from due d
        where u.environment_id = d.environment_id and u.account_id = d.account_id
        returning u.environment_id, u.account_id, u.account_id, u.account_id;
  end case;
end $$;

create or replace function pay_internal.given_up_work(
  p_kind text, p_environment_id text, p_id text, p_code text, p_message text
) returns pay.provider_work language plpgsql stable as $$
declare
  v_work pay.provider_work;
begin
  raise warning 'gave up % %: % %', p_kind, p_id, p_code, p_message;
  v_work.kind := 'given_up';
  v_work.environment_id := p_environment_id;
  v_work.operation := json_build_object('kind', p_kind, 'id', p_id, 'code', p_code);
  return v_work;
end $$;

create or replace function pay_internal.read_work_apart(
  p_kind text, p_environments text[], p_accounts text[], p_ids text[], p_at timestamptz
) returns setof pay.provider_work language plpgsql volatile rows 10 as $$
begin
  return query
    select * from pay_internal.read_work(p_kind, p_environments, p_accounts, p_ids, p_at);
exception when others then
  if cardinality(p_ids) = 1 then
    return next pay_internal.given_up_work(p_kind, p_environments[1], p_ids[1], sqlstate, sqlerrm);
    return;
  end if;
  for v_n in 1..cardinality(p_ids) loop
    return query select * from pay_internal.read_work_apart(
      p_kind, p_environments[v_n:v_n], p_accounts[v_n:v_n], p_ids[v_n:v_n], p_at);
  end loop;
end $$;

create or replace function pay_internal.read_work(
  p_kind text, p_environments text[], p_accounts text[], p_ids text[], p_at timestamptz
) returns setof pay.provider_work language plpgsql volatile rows 10 as $$
begin
  case p_kind
    when 'operation' then
      return query select * from pay_internal.read_operations(p_environments, p_ids);
    when 'event' then
      return query select * from pay_internal.read_provider_events(
        p_environments, p_accounts, p_ids);
    when 'sync' then
      return query select * from pay_internal.read_syncs(p_environments, p_ids);
    else
      return query select * from pay_internal.read_readings(p_environments, p_ids, p_at);
  end case;
end $$;

create or replace function pay_internal.read_operations(p_environments text[], p_ids text[])
returns setof pay.provider_work language plpgsql stable rows 10 as $$
begin
  return query
    select 'operation', c.environment_id, e.livemode,
      pay_internal.provider_account_json(c.environment_id, c.account_id),
      pay_internal.provider_operation_json(c),
      null::json, subject.body, subject.sequence, r.body, null::json, null::date
    from unnest(p_environments, p_ids) with ordinality as l (environment_id, id, n)
    join pay.provider_operations c on c.environment_id = l.environment_id and c.id = l.id
    join pay.environments e on e.id = c.environment_id
    left join pay_internal.provider_subjects subject
      on subject.environment_id = c.environment_id and subject.id = c.subject_id
    left join pay.refunds r on r.environment_id = c.environment_id and r.id = c.refund_id
    order by l.n;
end $$;

create or replace function pay_internal.read_provider_events(
  p_environments text[], p_accounts text[], p_references text[]
) returns setof pay.provider_work language plpgsql stable rows 10 as $$
begin
  return query
  select 'event', event.environment_id, e.livemode,
    pay_internal.provider_account_json(event.environment_id, event.account_id), k.operation,
    pay_internal.provider_event_json(event),
    subject.body, subject.sequence, r.body, null::json, null::date
  from unnest(p_environments, p_accounts, p_references) with ordinality
    as o (environment_id, account_id, reference, n)
  join pay.provider_events event
    on event.environment_id = o.environment_id and event.account_id = o.account_id
    and event.reference = o.reference
  join pay.environments e on e.id = event.environment_id
  left join pay_internal.provider_subjects subject
    on subject.environment_id = event.environment_id and subject.id = event.subject_id
    and pay_internal.has_event_operation(
      event.environment_id, event.account_id, event.subject_id, event.provider_reference)
  left join pay.refunds r
    on r.environment_id = event.environment_id and r.id = event.refund_id
      and r.payment_id = subject.id
  left join lateral (
    select pay_internal.provider_operation_json(c) as operation from pay.provider_operations c
    where c.environment_id = event.environment_id and c.subject_id = event.subject_id
      and c.refund_id is not distinct from event.refund_id
      -- Somebody can capture at the provider. Then the authorization finds the payment there.
      and (c.op = event.op or event.op = 'capture' and c.op = 'authorize')
    order by c.op = event.op desc, c.id desc limit 1
  ) k on true
  order by o.n;
end $$;

create or replace function pay_internal.read_syncs(p_environments text[], p_ids text[])
returns setof pay.provider_work language plpgsql volatile rows 10 as $$
begin
  return query
  with
  found as materialized (
    select c.environment_id, c.id, subject.body, subject.sequence, r.body as refund_body,
      case c.op
        when 'authorize' then pay_internal.has_no_result(subject.status)
        when 'transfer' then subject.status = 'pending'
        else r.status = 'pending'
      end as is_open
    from unnest(p_environments, p_ids) as d (environment_id, id)
    join pay.provider_operations c on c.environment_id = d.environment_id and c.id = d.id
    left join pay_internal.provider_subjects subject
      on subject.environment_id = c.environment_id and subject.id = c.subject_id
    left join pay.refunds r on r.environment_id = c.environment_id and r.id = c.refund_id
  ),
  synced as (
    update pay.provider_operations c
    set next_sync_at = case when f.is_open then c.next_sync_at end
    from found f
    where c.environment_id = f.environment_id and c.id = f.id
    returning c.environment_id, c.account_id, c.state, c.next_sync_at,
      pay_internal.provider_operation_json(c) as operation, f.body, f.sequence, f.refund_body
  )
  select 'sync', c.environment_id, true,
    pay_internal.provider_account_json(c.environment_id, c.account_id), c.operation, null::json,
    c.body, c.sequence, c.refund_body, null::json, null::date
  from synced c
  where c.next_sync_at is not null and c.state <> 'pending';
end $$;

create or replace function pay_internal.rail_needs_token(p_method_kind text)
returns boolean language plpgsql immutable parallel safe
as $$ begin return p_method_kind in (/* rails with a token */ 'card'); end $$;

create or replace function pay_internal.rail_collects(p_method_kind text)
returns boolean language plpgsql immutable parallel safe
as $$ begin return p_method_kind in (/* rails that collect */ 'sepa'); end $$;

create or replace function pay_internal.rail_is_by_bank(p_method_kind text)
returns boolean language plpgsql immutable parallel safe
as $$ begin return p_method_kind in (/* rails of banks */ 'sepa', 'swift'); end $$;

create or replace function pay_internal.max_windows_ahead()
returns integer language sql immutable parallel safe as $$ select 150 $$;

create or replace function pay_internal.requests_used(
  p_account text, p_livemode boolean, p_at timestamptz
) returns table (api_key_id text, used numeric) language plpgsql volatile rows 10 as $$
declare
  v_seconds numeric := extract(epoch from p_at) / 2;
  v_window bigint := floor(v_seconds);
  -- The account's other sandboxes are not open.
  v_was_worker constant boolean := pay_internal.act_as_worker();
begin
  return query
    select c.api_key_id,
      sum(case when c.window_number >= v_window then c.current_count else 0 end)
      + (1 - (v_seconds - v_window))
        * sum(case when c.window_number >= v_window then c.previous_count else c.current_count end)
    from pay.rate_counters c
    where c.account = p_account and c.livemode = p_livemode
      and c.window_number between v_window - 1 and v_window + pay_internal.max_windows_ahead()
    group by c.api_key_id;
  perform pay_internal.act_as_worker(v_was_worker);
end $$;

create or replace function pay_internal.limit_requests(
  p_found pay.admission[], p_key_rates integer[], p_account_rates integer[], p_counts boolean
) returns pay.admission[] language plpgsql volatile as $$
declare
  v_request record;
  v_account text;
  v_livemode boolean;
  v_keys text[];
  v_used numeric[];
  v_total numeric;
  v_key integer;
  v_left integer;
begin
  for v_request in
    select f.n, f.account, f.livemode, f.api_key_id, f.outcome,
      -- Limits are in real time.
      max(f.at - coalesce(f.ahead, '0')) over () as at,
      nullif(p_key_rates[f.n], 0) as key_rate,
      nullif(p_account_rates[f.n], 0) as account_rate
    from unnest(p_found) f
    where f.outcome not in ('unauthorized', 'resetting', 'outdated')
      and (p_key_rates[f.n] > 0 or p_account_rates[f.n] > 0)
    order by f.account, f.livemode, f.n
  loop
    if (v_request.account, v_request.livemode) is distinct from (v_account, v_livemode) then
      v_account := v_request.account;
      v_livemode := v_request.livemode;
      select array_agg(u.api_key_id), array_agg(u.used), coalesce(sum(u.used), 0)
      into v_keys, v_used, v_total
      from pay_internal.requests_used(v_account, v_livemode, v_request.at) u;
    end if;
    v_key := array_position(v_keys, v_request.api_key_id);
    if v_key is null then
      v_keys := v_keys || v_request.api_key_id;
      v_used := v_used || 0::numeric;
      v_key := cardinality(v_keys);
    end if;
    -- least() ignores null, which stands for no limit.
    v_left := floor(least(
      2 * v_request.key_rate - 1 - v_used[v_key], 2 * v_request.account_rate - 1 - v_total));
    p_found[v_request.n].remaining := v_left;
    continue when v_request.outcome = 'replay';
    if v_left >= 0 then
      v_used[v_key] := v_used[v_key] + 1;
      v_total := v_total + 1;
    elsif v_request.outcome <> 'forbidden' then
      p_found[v_request.n].outcome := 'rate_limited';
    end if;
  end loop;
  return case when p_counts then pay_internal.count_requests(p_found) else p_found end;
end $$;

create or replace function pay_internal.limit_list(
  p_requests pay_internal.request[], p_found pay.admission[], p_key_rates integer[],
  p_account_rates integer[], p_is_read boolean
) returns pay.admission[] language plpgsql volatile as $$
declare
  v_limited pay.admission[] := pay_internal.limit_requests(
    p_found, p_key_rates, p_account_rates, p_is_read);
begin
  if not p_is_read and cardinality(p_found) > 1 and exists (
    select from unnest(v_limited) f where f.outcome = 'rate_limited'
  ) then
    v_limited := pay_internal.limit_requests(
      pay_internal.find_responses(p_requests, p_found, true), p_key_rates, p_account_rates, false);
  end if;
  return v_limited;
end $$;

create or replace function pay_internal.add_requests(
  p_access pay.admission, p_at timestamptz, p_requests integer, p_bytes bigint
) returns void language plpgsql volatile as $$
declare
  v_window bigint := floor(extract(epoch from p_at) / 2);
  v_stripe smallint;
begin
  select c.stripe into v_stripe
  from pay.rate_counters c
  where c.environment_id = p_access.environment_id and c.api_key_id = p_access.api_key_id
  order by c.stripe limit 1
  for update skip locked;
  if v_stripe is not null then
    update pay.rate_counters c
    set window_number = case
        when c.window_number between v_window and v_window + pay_internal.max_windows_ahead()
          then c.window_number
        else v_window
      end,
      current_count = p_requests + case
        when c.window_number between v_window and v_window + pay_internal.max_windows_ahead()
          then c.current_count
        else 0
      end,
      previous_count = case
        when c.window_number between v_window and v_window + pay_internal.max_windows_ahead()
          then c.previous_count
        when c.window_number = v_window - 1 then c.current_count
        else 0
      end,
      stored_bytes = c.stored_bytes + p_bytes
    where c.environment_id = p_access.environment_id and c.api_key_id = p_access.api_key_id
      and c.stripe = v_stripe;
    return;
  end if;
  -- All stripes are locked: insert another. If 64 are locked, these requests are not counted.
  for v_stripe in
    select free.n from generate_series(0, 63) as free (n)
    where not exists (
      select from pay.rate_counters c
      where c.environment_id = p_access.environment_id and c.api_key_id = p_access.api_key_id
        and c.stripe = free.n
    )
    order by free.n
  loop
    continue when not pg_try_advisory_xact_lock(
      hashtextextended('stripe ' || p_access.api_key_id, v_stripe));
    insert into pay.rate_counters
      (environment_id, account, livemode, api_key_id, stripe, window_number, current_count,
        previous_count, stored_bytes)
    values (p_access.environment_id, p_access.account, p_access.livemode, p_access.api_key_id,
      v_stripe, v_window, p_requests, 0, p_bytes)
    on conflict on constraint rate_counters_pkey do nothing;
    exit when found;
  end loop;
end $$;

create or replace function pay_internal.count_requests(p_found pay.admission[])
returns pay.admission[] language plpgsql volatile as $$
declare
  v_told record;
begin
  perform pay_internal.add_requests(c.access, c.at, c.requests,
    coalesce(c.bytes + pay_internal.delivery_bytes((c.access).environment_id, c.events), 0))
  from (
    select (array_agg(f))[1] as access, max(f.at - coalesce(f.ahead, '0')) as at,
      (count(*) filter (where f.remaining >= 0))::integer as requests,
      sum(f.stored[1]) filter (where f.outcome = 'ok') as bytes,
      sum(f.stored[2]) filter (where f.outcome = 'ok') as events
    from unnest(p_found) f
    where (f.remaining >= 0 or f.stored is not null and f.remaining is null)
      and f.outcome not in ('replay', 'resetting', 'outdated', 'stale', 'expired', 'uncounted')
    group by f.environment_id, f.api_key_id
  ) c;
  for v_told in
    select f.n, f.outcome, f.remaining from unnest(p_found) f
    where f.remaining < 0 or (f.remaining is not null
      and f.outcome in ('replay', 'resetting', 'outdated', 'stale', 'expired', 'uncounted'))
  loop
    if v_told.outcome = 'forbidden' then p_found[v_told.n].outcome := 'rate_limited'; end if;
    p_found[v_told.n].remaining := case
      when v_told.outcome in ('resetting', 'outdated', 'stale', 'expired', 'uncounted') then null
      when v_told.outcome = 'replay' then greatest(0, v_told.remaining + 1)
      else 0
    end;
  end loop;
  return p_found;
end $$;

create or replace function pay_internal.purge_counters(
  p_environment_id text, p_batch integer, out deleted bigint
) language plpgsql volatile as $$
begin
  delete from pay.rate_counters c
  where c.ctid = any (array(
    select o.ctid from pay.rate_counters o
    where o.window_number < floor(extract(epoch from pay_internal.server_time()) / 2) - 1800
      and (p_environment_id is null or o.environment_id = p_environment_id)
    limit p_batch for update skip locked
  ));
  get diagnostics deleted = row_count;
end $$;

create or replace function pay_internal.open_records(p_records jsonb)
returns pay.admission[] language plpgsql volatile as $$
declare
  v_environments constant text[] := array(
    select distinct r.environment_id from jsonb_to_recordset(p_records) as r (environment_id text));
begin
  perform set_config('pay.environment_ids', v_environments::text, true);
  perform pg_advisory_xact_lock_shared(hashtextextended('environment ' || e.id, 0))
  from (
    select o.id from pay.environments o
    where o.id = any (v_environments) and not o.livemode
    order by o.id
  ) e;
  return array(
    select row(r.n, case when e.id is null then 'known' else 'ok' end, null, r.environment_id,
      null, null, null, null, null, null, pay_internal.time_ahead(w), null, null)::pay.admission
    from jsonb_to_recordset(p_records) as r (n integer, environment_id text)
    left join pay.environments e on e.id = r.environment_id and e.retired_at is null
      and (e.moving is null or e.moving in ('draining', 'fenced'))
    left join pay.sandbox_settings w on w.environment_id = e.id
    order by r.n);
end $$;

create or replace function pay.record(
  p_document text, p_payments text default null, p_transfers text default null,
  p_refunds text default null, p_disputes text default null, p_ledger text default null,
  p_events text default null
) returns table (n integer, outcome text, is_settled boolean, deliveries bigint)
language plpgsql volatile security definer rows 10
-- The planner expects a hundred rows from each list. While a table is small, it would then read the
-- whole table into a hash instead of looking up the few rows.
set enable_hashjoin = off set enable_bitmapscan = off set enable_mergejoin = off
set enable_material = off set lock_timeout = '3s' as $$
#variable_conflict use_column
declare
  v_lines constant text[] := string_to_array(p_document, E'\n');
  v_document constant pay_internal.document :=
    jsonb_populate_record(null::pay_internal.document, v_lines[1]::jsonb);
  v_records constant jsonb := v_document.records;
  v_found pay.admission[];
  v_callers pay_internal.caller[];
  v_moved integer[] := '{}';
  v_deliveries bigint := 0;
begin
  v_found := pay_internal.open_records(v_records);
  -- Most documents need only some of these steps.
  if v_document.expects is not null then
    v_moved := array(select e.n from jsonb_to_recordset(v_document.expects) as e (n integer));
    v_found := pay_internal.lock_subjects(v_document.expects, v_found);
  end if;
  if v_document.checkouts is not null then
    v_found := pay_internal.lock_checkouts(v_document.checkouts, v_found);
  end if;
  v_found := pay_internal.lock_operations(v_records, v_found);
  v_found := pay_internal.lock_provider_events(v_records, v_found);
  if v_document.reports is not null then
    v_found := pay_internal.check_transfers(v_document.reports, v_found);
  end if;

  if v_document.instruments is not null then
    perform pay_internal.lock_instruments(v_document.instruments, v_found);
  end if;

  v_callers := pay_internal.callers_of(v_found);
  if v_callers <> '{}' then
    perform pay_internal.handle_provider_events(v_records, v_document.expects, v_callers);
    if v_document.expects is not null then
      perform pay_internal.reopen_bank_entries(v_records, v_document.expects, v_callers);
    end if;
    perform pay_internal.write_operation_results(v_records, v_callers);
    if v_document.operations is not null then
      perform pay_internal.write_later_operations(
        v_document.operations, p_payments::pay_internal.payment_row[], v_callers);
    end if;
    v_deliveries := pay_internal.write_rows(v_document, v_lines, p_payments, p_transfers,
      p_refunds, p_disputes, p_ledger, v_callers, v_moved);
    if p_events is not null then
      v_deliveries := v_deliveries + pay_internal.write_events(
        p_events::pay_internal.event_row[], v_lines, v_callers);
    end if;
    if v_document.counts is not null then
      perform pay_internal.count_results(v_document.counts, v_callers);
    end if;
  end if;
  return query
    select f.n, case f.outcome when 'ok' then 'recorded' else f.outcome end,
      coalesce(c.state = 'settled', false), v_deliveries
    from unnest(v_found) f
    join jsonb_to_recordset(v_records) as r (n integer, operation_id text) on r.n = f.n
    left join lateral (
      select c.state from pay.provider_operations c
      where c.environment_id = f.environment_id and c.id = r.operation_id limit 1
    ) c on true;
end $$;
grant execute on function pay.record to pay_api, pay_operator;

create or replace function pay.read_provider_subject(
  p_environment_id text, p_subject_id text, p_refund_id text, p_account_id text, p_reference text,
  p_object_id text
) returns table (
  subject_body text, refund_body text, dispute_body text, booked_minor bigint, transfers json
) language plpgsql volatile security definer rows 1 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select coalesce(p.body, tr.body), r.body,
      pay_internal.dispute_body(e.id, p.id, p_object_id),
      coalesce(reported.booked_minor, 0),
      pay_internal.transfers_json(reported, p_subject_id)
    from (values (p_environment_id)) e (id)
    left join pay.payments p on p.environment_id = e.id and p.id = p_subject_id
    left join pay.transfers tr on tr.environment_id = e.id and tr.id = p_subject_id
    left join pay.refunds r on r.environment_id = e.id and r.id = p_refund_id
    left join pay.provider_events reported
      on reported.environment_id = e.id and reported.account_id = p_account_id
        and reported.reference = p_reference
    where coalesce(p.body, tr.body) is not null;
end $$;
grant execute on function pay.read_provider_subject to pay_api, pay_operator;

create or replace function pay_internal.check_refunds(
  p_refunds pay_internal.refund_row[], p_found pay.admission[]
) returns pay.admission[] language plpgsql volatile as $$
declare
  v_refund record;
begin
  for v_refund in
    select r.n, d.lacks
    from unnest(p_found) f
    join unnest(p_refunds) r on r.n = f.n
    left join pay.bank_details d
      on d.environment_id = f.environment_id and d.owner_id = r.payment_id
    where f.outcome = 'ok' and r.is_to_payer
      -- A sandbox keeps no details, only that they were deleted.
      and (f.livemode or d.owner_id is not null) and (d.sealed is null or d.lacks is not null)
  loop
    p_found[v_refund.n].outcome := 'undirected';
    p_found[v_refund.n].detail := v_refund.lacks;
  end loop;
  return p_found;
end $$;

create or replace function pay_internal.write_refunds(
  p_refunds pay_internal.refund_row[], p_lines text[], p_callers pay_internal.caller[]
) returns void language plpgsql volatile as $$
begin
  insert into pay.refunds as t
    (environment_id, id, payment_id, status, amount_minor, currency, created_at, body)
  select caller.environment_id, r.id, r.payment_id, r.status, r.amount_minor,
    r.currency, r.created_at, p_lines[r.body]
  from unnest(p_refunds) r
  join unnest(p_callers) caller on caller.n = r.n
  on conflict on constraint refunds_pkey
  do update set status = excluded.status, body = excluded.body;
end $$;

create or replace function pay_internal.purge_retired(p_environment_id text, p_batch integer)
returns bigint language plpgsql volatile as $$
declare
  v_table text;
  v_rows bigint;
  v_is_empty boolean := true;
  v_total bigint := 0;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('purge ' || p_environment_id, 0))
    or not pg_try_advisory_xact_lock_shared(pay_internal.words_lock(p_environment_id))
  then
    return 0;
  end if;
  foreach v_table in array array[
    'webhook_deliveries', 'attempt_log', 'inbox_entries', 'events', 'ledger_movements',
    'ledger_totals', 'provider_events', 'deposit_addresses', 'chain_payouts',
    'provider_operations', 'transfers', 'refunds', 'disputes', 'payments', 'instruments',
    'checkouts', 'bank_details', 'faults', 'idempotency_keys', 'webhook_endpoints', 'requests',
    'sandbox_settings', 'transcript_lines', 'erasures', 'search_words', 'search_cursors'
  ] loop
    -- Deletes by ctid, which needs no index.
    execute format(
      'delete from pay.%1$I t
       where t.ctid = any (array(
         select o.ctid from pay.%1$I o where o.environment_id = $1 limit $2
       ))',
      v_table
    ) using p_environment_id, p_batch;
    get diagnostics v_rows = row_count;
    v_total := v_total + v_rows;
    if v_is_empty then
      execute format(
        'select not exists (select from pay.%I o where o.environment_id = $1)', v_table)
      into v_is_empty using p_environment_id;
    end if;
  end loop;
  if v_is_empty then
    v_rows := pay_internal.delete_keys(array(
      select k.id from pay.api_keys k where k.environment_id = p_environment_id limit p_batch
    ));
    v_total := v_total + v_rows;
    v_is_empty := v_rows < p_batch;
  end if;
  if v_is_empty then
    -- What the environment stores counts as waiting until nothing of it is left.
    delete from pay.sandbox_storage s where s.environment_id = p_environment_id;
    perform set_config('pay.environment_ids', array[p_environment_id]::text, true);
    delete from pay.environments e where e.id = p_environment_id;
    v_total := v_total + 1;
  end if;
  return v_total;
end $$;

create or replace function pay_internal.environments_in_turn(p_is_retired boolean)
returns table (id text) language plpgsql volatile rows 100 as $$
begin
  return query
    select t.id from (
      select e.id, row_number() over (partition by e.account order by random()) as turn
      from pay.environments e
      where (e.retired_at is not null) = p_is_retired and e.moving is null
    ) t
    order by t.turn, random();
end $$;

create or replace function pay.purge(
  p_at timestamptz default now(), p_batch integer default 3000
) returns bigint language plpgsql volatile security definer
set enable_seqscan = on set plan_cache_mode = auto as $$
declare
  v_at constant timestamptz := least(p_at, pay_internal.server_time());
  v_until constant timestamptz := clock_timestamp() + interval '2 seconds';
  v_step text;
  v_environment_id text;
  v_rows bigint := 0;
  v_total bigint := 0;
begin
  perform pay_internal.act_as_worker();
  foreach v_step in array array[
    'ends', 'sandboxes', 'attempt_log', 'watches', 'counters'
  ] loop
    -- A move of an account compares all its rows with those of the other cell.
    continue when v_step <> 'counters'
      and exists (select from pay.environments e where e.moving is not null);
    v_total := v_total + pay_internal.purge_apart(v_step, null, v_at, p_batch);
  end loop;
  for v_environment_id in
    select e.id from pay_internal.environments_in_turn(false) e
  loop
    exit when clock_timestamp() > v_until;
    v_total := v_total + pay_internal.purge_apart('environment', v_environment_id, v_at, p_batch);
  end loop;
  for v_environment_id in
    select e.id from pay_internal.environments_in_turn(true) e limit 50
  loop
    v_rows := v_rows + pay_internal.purge_apart('retired', v_environment_id, v_at, p_batch);
    exit when v_rows >= p_batch;
  end loop;
  return v_total + v_rows + pay_internal.purge_apart('storage', null, v_at, p_batch);
end $$;
grant execute on function pay.purge to pay_api, pay_operator;

create or replace function pay_internal.purge_apart(
  p_step text, p_environment_id text, p_at timestamptz, p_batch integer
) returns bigint language plpgsql volatile as $$
declare
  v_until constant timestamptz := clock_timestamp() + interval '1 second';
  v_environment_id text;
  v_total bigint := 0;
begin
  return case p_step
    when 'ends' then pay_internal.retire_ended_sandboxes(p_environment_id, p_at)
    when 'sandboxes' then pay_internal.purge_sandboxes(p_environment_id, p_at, p_batch)
    when 'attempt_log' then pay_internal.purge_attempt_log(p_environment_id, p_at, p_batch)
    when 'watches' then pay_internal.end_watches(p_environment_id, p_at, p_batch)
    when 'counters' then pay_internal.purge_counters(p_environment_id, p_batch)
    when 'environment' then pay_internal.purge_environment(p_environment_id, p_at, p_batch)
      + pay_internal.purge_requests(p_environment_id, p_at, p_batch)
      + pay_internal.continue_erasures(p_environment_id)
    when 'retired' then pay_internal.purge_retired(p_environment_id, p_batch)
    when 'storage' then pay_internal.note_storage()
  end;
exception when others then
  raise warning 'retention of % (%) failed: % %',
    coalesce(p_environment_id, 'all environments'), p_step, sqlstate, sqlerrm;
  if p_environment_id is not null or p_step = 'storage' then return 0; end if;
  for v_environment_id in
    select e.id from pay.environments e where e.moving is null order by random()
  loop
    exit when clock_timestamp() > v_until;
    v_total := v_total + pay_internal.purge_apart(p_step, v_environment_id, p_at, p_batch);
  end loop;
  return v_total;
end $$;

create or replace function pay_internal.purge_environment(
  p_environment_id text, p_at timestamptz, p_batch integer
) returns bigint language plpgsql volatile as $$
declare
  v_environment record;
  v_at timestamptz := p_at;
begin
  select e.livemode, e.ends_at, w.environment_id is not null as has_clock into v_environment
  from pay.environments e
  left join pay.sandbox_settings w on w.environment_id = e.id
  where e.id = p_environment_id;
  if v_environment.has_clock then
    v_at := pay_internal.environment_time(p_environment_id);
  end if;
  return pay_internal.purge_idempotency_keys(p_environment_id, v_at, p_batch) + case
    -- A disposable sandbox ends before any other row is old, unless it has a clock of its own.
    when v_environment.ends_at is not null and not v_environment.has_clock then 0
    else pay_internal.purge_keys(p_environment_id, v_at, p_batch)
      + case when v_environment.livemode
        then pay_internal.purge_bank_details(p_environment_id, p_at, p_batch)
        else pay_internal.purge_instruments(p_environment_id, p_at, p_batch) end
      + pay_internal.purge_checkouts(p_environment_id, v_at, p_batch)
      + pay_internal.end_idle_instruments(p_environment_id, v_at, p_batch)
      + pay_internal.purge_old(p_environment_id, v_environment.livemode, v_at, p_batch)
  end;
end $$;

create or replace function pay_internal.purge_old(
  p_environment_id text, p_livemode boolean, p_at timestamptz, p_batch integer
) returns bigint language plpgsql volatile as $$
declare
  v_kind record;
  v_rows bigint;
  v_total bigint := 0;
  -- Whatever is younger has events. Otherwise each batch would look at all of it.
  v_first_event text;
  v_before constant timestamptz := least(p_at - interval '30 days', case when p_livemode then
    (select a.archived_until from pay.archives a
     where a.environment_id = p_environment_id and not a.is_ended)
  end);
begin
  if not pg_try_advisory_xact_lock(hashtextextended('purge ' || p_environment_id, 0)) then
    return 0;
  end if;
  for v_kind in
    select * from (values
      ('webhook_deliveries', 'id', 'whd_', true, 'for update skip locked'),
      ('inbox_entries', 'delivery_id', 'whd_', true, 'for update skip locked'),
      ('events', 'id', 'evt_', true, 'for update skip locked'),
      -- Not locked: a lock would need a policy that lets someone update, and nobody may.
      ('ledger_movements', 'transaction_id', 'txn_', false, ''),
      ('provider_operations', 'id', 'pc_', false, 'for update skip locked'),
      ('transfers', 'id', 'tr_', false, 'for update skip locked'),
      ('refunds', 'id', 're_', false, 'for update skip locked'),
      ('disputes', 'id', 'dp_', false, 'for update skip locked'),
      ('payments', 'id', 'pay_', false, 'for update skip locked'),
      ('search_words', 'payment_id', 'pay_', false, 'for update skip locked'),
      ('bank_details', 'owner_id', 'pay_', false, 'for update skip locked'),
      ('faults', 'id', 'flt_', false, 'for update skip locked')
    ) as k (table_name, id_column, prefix, of_live_too, lock)
    where k.of_live_too or not p_livemode
  loop
    if v_kind.table_name = 'ledger_movements' then
      select v.id into v_first_event from pay.events v
      where v.environment_id = p_environment_id order by v.id limit 1;
    end if;
    -- The primary key is in the order of time, so the oldest rows are found without a search.
    -- The batch is an array, so that it is read once.
    execute format(
      'delete from pay.%1$I t
       where t.environment_id = $1 and t.%3$I = any (array(
         select o.%3$I from pay.%1$I o
         where o.environment_id = $1 and o.%3$I < $2 %4$s
         order by o.%3$I limit $3 %2$s
       ))',
      v_kind.table_name, v_kind.lock, v_kind.id_column, concat(
        -- A refund or dispute goes with its payment, whose state can depend on it.
        'and not exists (select from pay.events v
          where v.environment_id = o.environment_id and v.subject_id = o.' || case
            when v_kind.table_name in ('payments', 'transfers') then 'id'
            when v_kind.table_name in ('refunds', 'disputes') then 'payment_id' end || ') ',
        case when v_kind.table_name = 'search_words' then 'and not exists (select from pay.payments p
          where p.environment_id = o.environment_id and p.id = o.payment_id)' end,
        case
          when p_at <= pay_internal.server_time() then ''
          when v_kind.table_name = 'payments' then 'and not pay_internal.can_be_returned(o, $4)'
          when v_kind.table_name = 'refunds' then 'and not exists (select from pay.payments p
            where p.environment_id = o.environment_id and p.id = o.payment_id
              and pay_internal.can_be_returned(p, $4))'
        end)
    ) using
      p_environment_id, least(pay_internal.id_floor(v_kind.prefix, v_before) collate "C",
        case when v_kind.table_name in
            ('transfers', 'refunds', 'disputes', 'payments', 'search_words')
          then v_kind.prefix || substr(v_first_event, 5) end), p_batch, p_at;
    get diagnostics v_rows = row_count;
    v_total := v_total + v_rows;
  end loop;
  return v_total + case when p_livemode then 0
    else pay_internal.purge_provider_events(p_environment_id, p_at, p_batch) end;
end $$;

create or replace function pay_internal.purge_provider_events(
  p_environment_id text, p_at timestamptz, p_batch integer, out deleted bigint
) language plpgsql volatile as $$
begin
  delete from pay.provider_events t
  where t.ctid = any (array(
    select reported.ctid from pay.provider_events reported
    where reported.environment_id = p_environment_id
      -- The time of receipt is real.
      and reported.received_at < least(p_at, pay_internal.server_time()) - interval '30 days'
    order by reported.received_at limit p_batch for update skip locked
  ));
  get diagnostics deleted = row_count;
end $$;

create or replace function pay_internal.sandbox_position(p_environment_id text)
returns text language plpgsql stable as $$
declare
  v_most constant integer := 32;
begin
  return (
    select 'chg_' || md5(string_agg(o.id || ' ' || o.xmin, ',' order by o.id))
    from (
      select p_environment_id as id, '' as xmin
      union all
      (select v.id, '' from pay.events v
        where v.environment_id = p_environment_id order by v.id desc limit v_most)
      union all
      (select r.id, '' from pay.requests r
        where r.environment_id = p_environment_id order by r.id desc limit v_most)
      union all
      select t.id, t.xmin::text from pay.webhook_endpoints t
      where t.environment_id = p_environment_id
      union all
      select d.id, d.xmin from pay.webhook_endpoints t
      cross join lateral (
        select d.id, d.xmin::text from pay.webhook_deliveries d
        where d.endpoint_id = t.id and d.expired_leases = 0 and d.next_attempt_at is not null
          and d.environment_id is not distinct from p_environment_id
        order by d.next_attempt_at, d.subject_id, d.sequence limit v_most
      ) d
      where t.environment_id = p_environment_id
      union all
      (select f.id, f.xmin::text from pay.faults f
        where f.environment_id = p_environment_id order by f.id desc limit v_most)
      union all
      (select k.id, k.xmin::text from pay.api_keys k
        where k.environment_id = p_environment_id order by k.id desc limit v_most)
      union all
      (select s.id, s.xmin::text from pay.sandboxes s
        where s.environment_id = p_environment_id order by s.id desc limit v_most)
      union all
      select 'settings', w.xmin::text from pay.sandbox_settings w
      where w.environment_id = p_environment_id
    ) o
  );
end $$;

create or replace function pay.read_position(p_request text) returns pay.admission
language plpgsql volatile security definer as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request, 'shared', true);
begin
  if v_access.outcome = 'ok' then
    v_access.body := pay_internal.sandbox_position(v_access.environment_id);
  end if;
  return v_access;
end $$;
grant execute on function pay.read_position to pay_api;

create or replace function pay.sandbox_positions(p_environments text[])
returns table (environment_id text, "position" text)
language plpgsql volatile security definer rows 10 as $$
begin
  perform pay_internal.act_as_worker();
  return query select o.id, pay_internal.sandbox_position(o.id) from unnest(p_environments) as o (id);
end $$;
grant execute on function pay.sandbox_positions to pay_api;

create or replace function pay_internal.longest_advance()
returns interval language sql immutable parallel safe as $$ select interval '400 days' $$;

create or replace function pay_internal.clock_body(
  p_settings pay.sandbox_settings, p_is_advance boolean
) returns text language plpgsql stable as $$
declare
  v_ahead interval := coalesce(pay_internal.time_ahead(p_settings), '0');
  v_counts jsonb := case when p_is_advance then pay_internal.advance_counts(p_settings) end;
begin
  return format('{"object":"clock","now":%s,"mode":%s,"offset_seconds":%s,"target":%s',
    to_json(pay_internal.wire_time(pay_internal.server_time() + v_ahead)),
    case when p_settings.frozen_at is null then '"real"' else '"frozen"' end,
    -- A clock that stands has no constant distance to the real time.
    case when p_settings.frozen_at is null
      then round(extract(epoch from v_ahead))::text else 'null' end,
    coalesce(to_json(pay_internal.wire_time(p_settings.target_at))::text, 'null'))
    || case when p_is_advance then format(',"did":{"deliveries":%s,"expired_payments":%s,'
        '"disputes_closed":%s,"purged":%s},"has_more":%s',
      coalesce(v_counts ->> 'deliveries', '0'),
      coalesce(v_counts ->> 'expired_payments', '0'),
      coalesce(v_counts ->> 'disputes_closed', '0'),
      coalesce(v_counts ->> 'purged', '0'),
      (p_settings.target_at is not null)::text) else '' end
    || '}';
end $$;

create or replace function pay_internal.inbox_positions(p_environment_id text)
returns jsonb language plpgsql stable as $$
begin
  return coalesce((
    select jsonb_object_agg(t.id, t.inbox_position) from pay.webhook_endpoints t
    where t.environment_id = p_environment_id and t.inbox_position > 0
  ), '{}');
end $$;

create or replace function pay_internal.advance_counts(p_settings pay.sandbox_settings)
returns jsonb language plpgsql stable as $$
declare
  v_begun constant jsonb := p_settings.counts -> 'inboxes';
begin
  if v_begun is null then return p_settings.counts; end if;
  return (p_settings.counts - 'inboxes') || jsonb_build_object('deliveries',
    coalesce((p_settings.counts ->> 'deliveries')::bigint, 0) + (
      select coalesce(sum(o.value::bigint - coalesce((v_begun ->> o.key)::bigint, 0)), 0)
      from jsonb_each_text(pay_internal.inbox_positions(p_settings.environment_id)) o
    ));
end $$;

create or replace function pay.read_clock(p_request text) returns pay.admission
language plpgsql volatile security definer as $$
declare
  v_access pay.admission := pay_internal.refuse_live(
    pay_internal.admit_one(p_request, 'shared', true));
  v_settings pay.sandbox_settings;
begin
  if v_access.outcome = 'ok' then
    select * into v_settings from pay.sandbox_settings w
    where w.environment_id = v_access.environment_id;
    v_access.body := pay_internal.clock_body(v_settings, false);
  end if;
  return v_access;
end $$;
grant execute on function pay.read_clock to pay_api;

create or replace function pay_internal.count_advance(
  p_environment_id text, p_name text, p_count bigint
) returns void language plpgsql volatile as $$
begin
  update pay.sandbox_settings w
  set counts = w.counts ||
    jsonb_build_object(p_name, coalesce((w.counts ->> p_name)::bigint, 0) + p_count)
  where w.environment_id = p_environment_id and w.target_at is not null;
end $$;

create or replace function pay_internal.count_attempts(p_ended jsonb)
returns void language plpgsql volatile as $$
begin
  perform pay_internal.count_advance(r.environment_id, 'deliveries', r.attempts)
  from (
    select r.environment_id, count(*) as attempts
    from jsonb_to_recordset(p_ended) as r (environment_id text, due_at timestamptz)
    where r.due_at is not null
    group by r.environment_id order by r.environment_id
  ) r;
end $$;

create or replace function pay_internal.count_results(
  p_counts jsonb, p_callers pay_internal.caller[]
) returns void language plpgsql volatile as $$
begin
  perform pay_internal.count_advance(r.environment_id, r.counted_as, r.records)
  from (
    select caller.environment_id, c.counted_as, count(*) as records
    from unnest(p_callers) caller
    join jsonb_to_recordset(p_counts) as c (n integer, counted_as text) on c.n = caller.n
    group by caller.environment_id, c.counted_as order by caller.environment_id, c.counted_as
  ) r;
end $$;

create or replace function pay_internal.write_clock(p_settings pay.sandbox_settings)
returns pay.sandbox_settings language plpgsql volatile as $$
declare
  v_counts constant jsonb := case when p_settings.target_at is null then '{}'
    else jsonb_build_object('inboxes', pay_internal.inbox_positions(p_settings.environment_id)) end;
  v_written pay.sandbox_settings;
begin
  insert into pay.sandbox_settings as w
    (environment_id, version, offset_ms, frozen_at, target_at, runs_after, is_stopping, counts)
  values (p_settings.environment_id, pay_internal.new_settings_version(), p_settings.offset_ms,
    p_settings.frozen_at, p_settings.target_at, p_settings.runs_after, p_settings.is_stopping,
    v_counts)
  on conflict on constraint sandbox_settings_pkey do update
  set version = excluded.version, offset_ms = excluded.offset_ms, frozen_at = excluded.frozen_at,
    target_at = excluded.target_at, runs_after = excluded.runs_after,
    is_stopping = excluded.is_stopping,
    counts = case when w.target_at is null then excluded.counts else w.counts end
  returning * into v_written;
  return v_written;
end $$;

create or replace function pay.set_clock(p_request text, p_command text) returns pay.admission
language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_request jsonb := p_request::jsonb -> 0;
  v_access pay.admission := pay_internal.admit_alone(p_request);
  v_before pay.sandbox_settings;
  v_clock pay.sandbox_settings;
  v_now timestamptz;
begin
  if v_access.outcome = 'ok' then
    select * into v_before from pay.sandbox_settings w
    where w.environment_id = v_access.environment_id;
    v_now := date_trunc('milliseconds', pay_internal.environment_time(v_access.environment_id));
    v_clock := pay_internal.planned_clock(v_before, p_command::json, v_now);
    v_access.outcome := case
      when (p_command::json ->> 'to')::timestamptz < v_now then 'behind'
      when v_clock.target_at > pay_internal.clock_ceiling() then 'beyond'
      when v_clock.target_at > v_now + pay_internal.longest_advance() then 'too_far'
      else 'ok' end;
    if v_access.outcome <> 'ok' then v_access.detail := pay_internal.wire_time(v_now); end if;
  end if;
  v_access := pay_internal.claim_one(p_request, v_access);
  if v_access.outcome <> 'ok' then return v_access; end if;
  v_clock.environment_id := v_access.environment_id;
  if pay_internal.stop_waiting(v_clock) then
    -- Some still have real times. A command that moves no clock stops them on its way too.
    v_clock.target_at := coalesce(v_clock.target_at, v_now);
  end if;
  v_clock := pay_internal.write_clock(v_clock);
  v_access.outcome := 'committed';
  v_access.status := 200;
  v_access.body := pay_internal.clock_body(v_clock, true);
  v_access.detail := row_to_json(v_clock)::text;
  perform pay_internal.store_response(p_request, v_access);
  -- Kept for 24 hours after the advance, and not after its beginning.
  update pay.idempotency_keys k
  set created_at = greatest(k.created_at, v_clock.target_at), advances_to = v_clock.target_at
  where k.environment_id = v_access.environment_id and k.api_key_id = v_access.api_key_id
    and k.key = v_request ->> 'idempotency_key';
  return v_access;
end $$;
grant execute on function pay.set_clock to pay_api;

create or replace function pay_internal.clock_target(
  p_command json, p_now timestamptz, p_pending timestamptz
) returns timestamptz language sql stable as $$
  select case
    when p_command ->> 'to' is not null
      then greatest((p_command ->> 'to')::timestamptz, p_pending)
    when p_command ->> 'advance_s' is not null
      then coalesce(p_pending, p_now) + (p_command ->> 'advance_s')::bigint * interval '1 second'
    when p_command ->> 'mode' = 'real' then coalesce(p_pending, p_now)
    else p_pending
  end
$$;

create or replace function pay_internal.planned_clock(
  p_before pay.sandbox_settings, p_command json, p_now timestamptz
) returns pay.sandbox_settings language plpgsql stable as $$
declare
  v_clock pay.sandbox_settings := p_before;
begin
  v_clock.offset_ms := 0;
  v_clock.frozen_at := p_now;
  -- Attempts under way can leave deliveries that wait by the real time, so the next step looks too.
  v_clock.is_stopping := p_before.is_stopping is not false or p_before.frozen_at is null
    or p_before.offset_ms > 0;
  v_clock.target_at := pay_internal.clock_target(p_command, p_now, p_before.target_at);
  v_clock.runs_after := v_clock.target_at is not null and case
    when p_command ->> 'mode' is not null then p_command ->> 'mode' = 'real'
    else p_before.frozen_at is null or p_before.runs_after
  end;
  -- A clock that runs is never behind the real time: one that has stood until now catches up.
  if v_clock.runs_after then
    v_clock.target_at := greatest(
      v_clock.target_at, date_trunc('milliseconds', pay_internal.server_time()));
  end if;
  return v_clock;
end $$;

create or replace function pay_internal.due_rows()
returns integer language sql immutable parallel safe as $$ select 10000 $$;

create or replace function pay_internal.due_kind(
  p_op text, p_payment_status text, p_method_kind text, p_has_open_dispute boolean
) returns text language sql immutable as $$
  select case p_op
    when 'authorize' then
      case when p_payment_status in (/* waits for money */ 'pending', 'processing')
        then 'payment_result' end
    when 'abandon' then
      case when p_payment_status in (
          /* waits for the payer */ 'pending', 'requires_action', 'processing')
        then case when pay_internal.rail_needs_token(p_method_kind)
          then 'authentication_end' else 'payment_end' end end
    when 'expire' then
      case when p_payment_status in (/* waits for its capture */ 'authorized')
        then 'authorization_end' end
    when 'dispute_expire' then case when p_has_open_dispute then 'dispute_loss' end
    when 'return' then case when p_payment_status <> 'failed' then 'payment_return' end
    when 'transfer' then 'transfer_result'
    when 'refund' then 'refund_result'
    when 'dispute_evidence' then 'dispute_result'
    when 'dispute_accept' then 'dispute_result'
    when 'capture' then 'payment_result'
    when 'cancel' then 'payment_result'
  end
$$;

create or replace function pay_internal.due_operations(
  p_environment_id text, p_until timestamptz
) returns table (kind text, id text, at timestamptz, rows_read bigint)
language plpgsql stable rows 100 set enable_sort = off set enable_bitmapscan = off as $$
begin
  return query
    with waiting as materialized (
      (select c.op, c.subject_id, c.due_at as at from pay.provider_operations c
       where c.environment_id = any (array[p_environment_id]) and c.state = 'pending'
         and c.account_id = 'sandbox' and c.next_attempt_at = 'infinity' and c.due_at <= p_until
       order by c.environment_id, c.next_attempt_at, c.due_at limit pay_internal.due_rows())
      union all
      (select c.op, c.subject_id, coalesce(c.due_at, c.next_attempt_at)
       from pay.provider_operations c
       where c.environment_id = any (array[p_environment_id]) and c.state = 'pending'
         and c.account_id = 'sandbox' and c.next_attempt_at < 'infinity'
       order by c.environment_id, c.next_attempt_at, c.due_at limit pay_internal.due_rows())
    )
    select pay_internal.due_kind(w.op, p.status, p.method_kind, w.op = 'dispute_expire' and exists (
        select from pay.disputes d
        where d.environment_id = p_environment_id and d.payment_id = w.subject_id
          and d.status = 'needs_response' and d.provider_reference is null
      )), w.subject_id, w.at, (select count(*) from waiting)
    from waiting w
    left join pay.payments p on p.environment_id = p_environment_id and p.id = w.subject_id
    where w.at <= p_until;
end $$;

create or replace function pay_internal.due_deliveries(
  p_environment_id text, p_until timestamptz
) returns table (kind text, id text, at timestamptz, rows_read bigint)
language plpgsql stable rows 100 set enable_sort = off set enable_bitmapscan = off as $$
begin
  return query
    with waiting as materialized (
      (select d.id, d.due_at as at from pay.webhook_deliveries d
       where d.environment_id = any (array[p_environment_id]) and d.next_attempt_at = 'infinity'
         and d.due_at <= p_until
       order by d.environment_id, d.due_at limit pay_internal.due_rows())
      union all
      (select d.id, coalesce(d.due_at, d.next_attempt_at) from pay.webhook_endpoints t
       cross join lateral (
         select o.id, o.due_at, o.next_attempt_at from pay.webhook_deliveries o
         where o.endpoint_id = t.id and o.expired_leases = 0 and o.next_attempt_at < 'infinity'
           and o.environment_id is not distinct from p_environment_id
         order by o.next_attempt_at limit pay_internal.due_rows()
       ) d
       where t.environment_id = p_environment_id limit pay_internal.due_rows())
    )
    select 'delivery', w.id, w.at, (select count(*) from waiting) from waiting w
    where w.at <= p_until;
end $$;

create or replace function pay.read_due(p_request text, p_until text, p_sends boolean)
returns pay.admission language plpgsql volatile security definer as $$
declare
  v_access pay.admission := pay_internal.refuse_live(
    pay_internal.admit_one(p_request, 'shared', true));
  v_until constant timestamptz := coalesce(p_until::timestamptz, 'infinity');
begin
  if v_access.outcome = 'ok' then
    select format('{"object":"due","now":%s,"until":%s,"data":[%s],"has_more":%s}',
      to_json(pay_internal.wire_time(pay_internal.environment_time(v_access.environment_id))),
      coalesce(to_json(pay_internal.wire_time(p_until::timestamptz))::text, 'null'),
      coalesce(string_agg(format('{"kind":%s,"count":%s,"first_at":%s,"first_id":%s}',
        to_json(k.kind), k.things, to_json(pay_internal.wire_time(k.first_at)),
        to_json(k.first_id)), ',' order by k.first_at, k.kind), ''),
      to_json(coalesce(bool_or(k.rows_read >= pay_internal.due_rows()), false)))
    into v_access.body
    from (
      select d.kind, count(*) as things, min(d.at) as first_at,
        (array_agg(d.id order by d.at, d.id))[1] as first_id, max(d.rows_read) as rows_read
      from (
        select * from pay_internal.due_operations(v_access.environment_id, v_until)
        union all
        select * from pay_internal.due_deliveries(v_access.environment_id, v_until) where p_sends
        union all
        select 'instrument_end', t.id, t.idle_at, count(*) over () from (
          select i.id, i.idle_at from pay.instruments i
          where i.environment_id = any (array[v_access.environment_id])
            and i.idle_at is not null and i.idle_at <= v_until
          order by i.environment_id, i.idle_at limit pay_internal.due_rows()
        ) t
      ) d
      where d.kind is not null
      group by d.kind
    ) k;
  end if;
  return v_access;
end $$;
grant execute on function pay.read_due to pay_api;

create or replace function pay.step_clock(
  p_environment_id text, p_response text, p_sends boolean
) returns table (state text, body text, detail text)
language plpgsql volatile security definer rows 1 set lock_timeout = '3s' as $$
declare
  v_response json := p_response::json;
  v_target timestamptz := (v_response ->> 'target')::timestamptz;
  v_clock pay.sandbox_settings;
  v_state text;
  v_has_arrived boolean := false;
  v_body text;
begin
  perform set_config('pay.environment_ids', array[p_environment_id]::text, true);
  perform pg_advisory_xact_lock(hashtextextended('environment ' || p_environment_id, 0));
  perform pay_internal.refuse_moving(p_environment_id);
  if not exists (
    select from pay.environments e where e.id = p_environment_id and e.retired_at is null
  ) then
    return;
  end if;
  select * into v_clock from pay.sandbox_settings w where w.environment_id = p_environment_id;
  if v_clock.target_at is null or v_target is null then
    v_state := 'done';
  elsif pay_internal.has_due_work(p_environment_id, p_sends) then
    v_state := 'waiting';
  elsif v_target <= v_clock.frozen_at and v_target < v_clock.target_at then
    v_state := 'done';
  else
    v_state := pay_internal.move_clock(v_clock, p_sends);
    v_has_arrived := v_state = 'done';
    select * into v_clock from pay.sandbox_settings w where w.environment_id = p_environment_id;
  end if;
  v_body := pay_internal.step_response(
    v_clock, v_response, case when v_state <> 'done' then v_target end);
  if v_has_arrived then
    -- Advances that others have begun and not ended, because they have died or had no more time. No
    -- more than a step changes: the few that are left keep a response that asks to go on.
    update pay.idempotency_keys k set body = v_body, advances_to = null
    where k.ctid = any (array(
      select o.ctid from pay.idempotency_keys o
      where o.environment_id = p_environment_id and o.advances_to is not null
      limit pay_internal.clock_batch() for update
    ));
  end if;
  return query select v_state, v_body, row_to_json(v_clock)::text;
end $$;
grant execute on function pay.step_clock to pay_api;

create or replace function pay_internal.step_response(
  p_clock pay.sandbox_settings, p_response json, p_target timestamptz
) returns text language plpgsql volatile as $$
declare
  v_shown pay.sandbox_settings := p_clock;
  v_body text;
begin
  v_shown.target_at := p_target;
  v_body := pay_internal.clock_body(v_shown, true);
  update pay.idempotency_keys k
  set body = case when k.advances_to is not null then v_body else k.body end,
    advances_to = case when k.advances_to is not null then p_target end
  where k.environment_id = p_clock.environment_id and k.api_key_id = p_response ->> 'api_key_id'
    and k.key = p_response ->> 'idempotency_key' and k.request_id = p_response ->> 'request_id'
  returning k.body into v_body;
  return coalesce(v_body, pay_internal.clock_body(v_shown, true));
end $$;

create or replace function pay_internal.has_due_work(p_environment_id text, p_sends boolean)
returns boolean language plpgsql stable set enable_sort = off set enable_bitmapscan = off as $$
begin
  return exists (
    select from pay.provider_operations c
    where c.environment_id = any (array[p_environment_id]) and c.state = 'pending'
      and c.account_id = 'sandbox' and c.next_attempt_at <= pay_internal.server_time()
    order by c.environment_id, c.next_attempt_at, c.due_at limit 1
  ) or p_sends and exists (
    -- Without poison deliveries, because the dispatcher sends one such at a time.
    select from pay.webhook_endpoints t
    join pay.webhook_deliveries d
      on d.endpoint_id = t.id and d.expired_leases = 0
        and d.next_attempt_at <= pay_internal.server_time()
      and d.environment_id = p_environment_id
    where t.environment_id = p_environment_id and t.status = 'enabled'
  );
end $$;

create or replace function pay_internal.move_clock(p_clock pay.sandbox_settings, p_sends boolean)
returns text language plpgsql volatile as $$
declare
  v_clock pay.sandbox_settings := p_clock;
  v_next timestamptz;
  v_changed bigint;
begin
  if p_clock.is_stopping and pay_internal.stop_waiting(p_clock) then return 'moved'; end if;
  v_clock.is_stopping := false;
  if pay_internal.end_idle_instruments(
    p_clock.environment_id, p_clock.frozen_at, pay_internal.clock_batch()) > 0
  then
    return pay_internal.write_step(v_clock);
  end if;
  v_next := pay_internal.next_due(p_clock.environment_id, p_sends);
  select g.changed, g.reached into v_changed, v_clock.frozen_at
  from pay_internal.give_real_times(v_clock, case
    when v_next <= p_clock.target_at then greatest(p_clock.frozen_at, pay_internal.last_due(
      p_clock.environment_id, v_next, p_clock.target_at, p_sends))
    else p_clock.target_at end) g;
  if v_changed > 0 or v_clock.frozen_at > p_clock.frozen_at then
    -- Those that were left at the end of a batch can be due before the time of the clock.
    v_clock.frozen_at := greatest(v_clock.frozen_at, p_clock.frozen_at);
    return pay_internal.write_step(v_clock);
  end if;
  v_changed := pay_internal.purge_environment(
    p_clock.environment_id, pay_internal.server_time(), pay_internal.clock_batch());
  if v_changed > 0 then
    perform pay_internal.count_advance(p_clock.environment_id, 'purged', v_changed);
    return 'moved';
  end if;
  v_clock.target_at := null;
  v_clock.runs_after := false;
  if p_clock.runs_after then
    -- Rounded up, so that the clock does not go back. It runs from the first of these steps on.
    v_clock.offset_ms := coalesce(nullif(p_clock.offset_ms, 0), greatest(0,
      ceil(extract(epoch from p_clock.target_at - pay_internal.server_time()) * 1000)));
    v_clock.frozen_at := null;
    v_changed := (
      select g.changed from pay_internal.give_real_times(v_clock, pay_internal.clock_ceiling()) g
    );
    if v_changed >= pay_internal.clock_batch() then
      v_clock.frozen_at := p_clock.frozen_at;
      v_clock.target_at := p_clock.target_at;
      v_clock.runs_after := true;
    end if;
  end if;
  return pay_internal.write_step(v_clock);
end $$;

create or replace function pay_internal.write_step(p_clock pay.sandbox_settings)
returns text language plpgsql volatile as $$
begin
  update pay.sandbox_settings w
  set version = pay_internal.new_settings_version(), frozen_at = p_clock.frozen_at,
    target_at = p_clock.target_at, runs_after = p_clock.runs_after, offset_ms = p_clock.offset_ms,
    is_stopping = p_clock.is_stopping,
    counts = case
      when p_clock.target_at is null then pay_internal.advance_counts(w) else w.counts
    end
  where w.environment_id = p_clock.environment_id;
  return case when p_clock.target_at is null then 'done' else 'moved' end;
end $$;

create or replace function pay_internal.next_due(p_environment_id text, p_sends boolean)
returns timestamptz language plpgsql stable set enable_sort = off set enable_bitmapscan = off as $$
begin
  return least((
    select c.due_at from pay.provider_operations c
    where c.environment_id = any (array[p_environment_id]) and c.state = 'pending'
      and c.account_id = 'sandbox' and c.next_attempt_at = 'infinity'
    order by c.environment_id, c.next_attempt_at, c.due_at limit 1
  ), (
    select d.due_at from pay.webhook_deliveries d
    where d.environment_id = any (array[p_environment_id]) and d.next_attempt_at = 'infinity'
      and p_sends
    order by d.environment_id, d.due_at limit 1
  ), (
    select t.idle_at from pay.instruments t
    where t.environment_id = any (array[p_environment_id]) and t.idle_at is not null
    order by t.environment_id, t.idle_at limit 1
  ));
end $$;

create or replace function pay_internal.last_due(
  p_environment_id text, p_first timestamptz, p_last timestamptz, p_sends boolean
) returns timestamptz language plpgsql stable
set enable_sort = off set enable_bitmapscan = off as $$
declare
  v_together constant interval := interval '1 second';
  v_most constant integer := 64;
  v_last timestamptz := least(p_first + v_together, p_last);
begin
  if not exists (
    select from pay.webhook_endpoints t
    where t.environment_id = p_environment_id and t.status = 'enabled'
  ) then
    select greatest(v_last, max(e.due_at)) into v_last
    from (
      select c.due_at, bool_or(c.op = 'authorize') over (order by c.due_at) as makes_more
      from (
        select o.due_at, o.op from pay.provider_operations o
        where o.environment_id = any (array[p_environment_id]) and o.state = 'pending'
          and o.account_id = 'sandbox' and o.next_attempt_at = 'infinity'
          and o.due_at between p_first and p_last
        order by o.environment_id, o.next_attempt_at, o.due_at limit v_most
      ) c
    ) e
    where not e.makes_more;
  end if;
  return greatest(p_first, (
    select c.due_at from pay.provider_operations c
    where c.environment_id = any (array[p_environment_id]) and c.state = 'pending'
      and c.account_id = 'sandbox' and c.next_attempt_at = 'infinity'
      and c.due_at between p_first and v_last
    order by c.environment_id desc, c.next_attempt_at desc, c.due_at desc limit 1
  ), (
    select d.due_at from pay.webhook_deliveries d
    where d.environment_id = any (array[p_environment_id]) and d.next_attempt_at = 'infinity'
      and d.due_at between p_first and v_last and p_sends
    order by d.environment_id desc, d.due_at desc limit 1
  ));
end $$;

create or replace function pay_internal.clock_batch()
returns integer language sql immutable parallel safe as $$ select 1000 $$;

create or replace function pay_internal.stop_waiting(p_clock pay.sandbox_settings)
returns boolean language plpgsql volatile set enable_sort = off set enable_bitmapscan = off as $$
declare
  v_now constant timestamptz := pay_internal.server_time();
  v_deliveries text[];
  v_operations text[];
begin
  select array_agg(w.id) into v_deliveries from (
    select w.id from pay.webhook_endpoints t
    cross join lateral (
      (select d.id, d.next_attempt_at from pay.webhook_deliveries d
       where d.endpoint_id = t.id and d.expired_leases = 0
         and d.environment_id is not distinct from p_clock.environment_id
         and d.next_attempt_at > v_now and d.next_attempt_at < 'infinity'
       order by d.next_attempt_at limit pay_internal.clock_batch())
      union all
      (select d.id, d.next_attempt_at from pay.webhook_deliveries d
       where d.endpoint_id = t.id and d.expired_leases > 0
         and d.environment_id is not distinct from p_clock.environment_id
         and d.next_attempt_at > v_now and d.next_attempt_at < 'infinity'
       limit pay_internal.clock_batch())
    ) w
    where t.environment_id = p_clock.environment_id
    order by w.next_attempt_at limit pay_internal.clock_batch()
  ) w;
  v_operations := array(
    select c.id from pay.provider_operations c
    where c.environment_id = any (array[p_clock.environment_id]) and c.state = 'pending'
      and c.account_id = 'sandbox' and c.next_attempt_at > v_now and c.next_attempt_at < 'infinity'
    order by c.environment_id, c.next_attempt_at, c.due_at limit pay_internal.clock_batch()
  );
  perform set_config('enable_sort', 'on', true);
  with waiting as materialized (
    select d.id, coalesce(d.due_at, d.next_attempt_at) as due_at from pay.webhook_deliveries d
    where d.environment_id = p_clock.environment_id and d.id = any (v_deliveries)
      and d.status || '' = 'pending' and d.next_attempt_at > v_now
    order by d.id for update of d
  )
  update pay.webhook_deliveries d
  set due_at = w.due_at, next_attempt_at = pay_internal.real_due_at(p_clock, w.due_at)
  from waiting w
  where d.environment_id = p_clock.environment_id and d.id = w.id;
  with waiting as materialized (
    select c.id, coalesce(c.due_at, c.next_attempt_at) as due_at from pay.provider_operations c
    where c.environment_id = p_clock.environment_id and c.id = any (v_operations)
      and c.state || '' = 'pending' and c.next_attempt_at > v_now
    order by c.id for update of c
  )
  update pay.provider_operations c
  set due_at = w.due_at, next_attempt_at = pay_internal.real_due_at(p_clock, w.due_at)
  from waiting w
  where c.environment_id = p_clock.environment_id and c.id = w.id;
  return pay_internal.clock_batch() in (cardinality(v_deliveries), cardinality(v_operations));
end $$;

create or replace function pay_internal.give_real_times(
  p_clock pay.sandbox_settings, p_to timestamptz, out changed bigint, out reached timestamptz
) language plpgsql volatile set enable_sort = off set enable_bitmapscan = off as $$
declare
  v_clock pay.sandbox_settings := p_clock;
  v_deliveries text[];
  v_operations text[];
  v_last timestamptz[];
begin
  select array_agg(w.id), array_agg(w.due_at) into v_deliveries, v_last from (
    select d.id, d.due_at from pay.webhook_deliveries d
    where d.environment_id = any (array[p_clock.environment_id])
      and d.next_attempt_at = 'infinity' and d.due_at <= p_to
    order by d.environment_id, d.due_at limit pay_internal.clock_batch()
  ) w;
  reached := case when cardinality(v_deliveries) = pay_internal.clock_batch()
    then v_last[pay_internal.clock_batch()] else p_to end;
  select array_agg(w.id), array_agg(w.due_at) into v_operations, v_last from (
    select c.id, c.due_at from pay.provider_operations c
    where c.environment_id = any (array[p_clock.environment_id]) and c.state = 'pending'
      and c.account_id = 'sandbox' and c.next_attempt_at = 'infinity' and c.due_at <= reached
    order by c.environment_id, c.next_attempt_at, c.due_at limit pay_internal.clock_batch()
  ) w;
  if cardinality(v_operations) = pay_internal.clock_batch() then
    reached := v_last[pay_internal.clock_batch()];
  end if;
  if v_clock.frozen_at is not null then v_clock.frozen_at := reached; end if;
  perform set_config('enable_sort', 'on', true);
  with waiting as materialized (
    select d.id from pay.webhook_deliveries d
    where d.environment_id = p_clock.environment_id and d.id = any (v_deliveries)
      and d.next_attempt_at = 'infinity' and d.due_at <= reached
    order by d.id for update of d
  )
  update pay.webhook_deliveries d
  set next_attempt_at = pay_internal.real_due_at(v_clock, d.due_at)
  from waiting w
  where d.environment_id = p_clock.environment_id and d.id = w.id;
  get diagnostics changed = row_count;
  with waiting as materialized (
    select c.id from pay.provider_operations c
    where c.environment_id = p_clock.environment_id and c.id = any (v_operations)
      and c.next_attempt_at = 'infinity'
    order by c.id for update of c
  )
  update pay.provider_operations c
  set next_attempt_at = pay_internal.real_due_at(v_clock, c.due_at)
  from waiting w
  where c.environment_id = p_clock.environment_id and c.id = w.id;
  changed := changed + cardinality(coalesce(v_operations, '{}'));
end $$;

create or replace function pay_internal.fault_body(p_fault pay.faults)
returns text language sql stable as $$
  select row_to_json(t)::text from (
    select
      p_fault.id,
      'fault' as object,
      p_fault.kind as "on",
      p_fault.fault,
      p_fault.times,
      p_fault.times_left as "left",
      p_fault.filter as "where",
      p_fault.delay_ms,
      pay_internal.wire_time(p_fault.created_at) as created_at
  ) t
$$;

create or replace function pay_internal.fault_matches(p_filter jsonb, p_target jsonb)
returns boolean language plpgsql immutable parallel safe as $$
begin
  return not exists (
    select from jsonb_each(p_filter) w
    -- A list contains each of its texts, and a text contains itself.
    where not coalesce(p_target -> w.key @> w.value, false)
  );
end $$;

create or replace function pay_internal.next_fault(
  p_environment_id text, p_kind text, p_target jsonb, p_takes boolean, p_without text default null
) returns pay.faults language plpgsql volatile as $$
declare
  v_fault pay.faults;
begin
  if not p_takes then
    select fault.* into v_fault from pay.faults fault
    where fault.environment_id = p_environment_id and fault.kind = p_kind and fault.times_left > 0
      and pay_internal.fault_matches(fault.filter::jsonb, p_target)
    order by fault.id limit 1;
    return v_fault;
  end if;
  -- If another transaction uses the fault up while this one waits, the next one is locked.
  select fault.* into v_fault from pay.faults fault
  where fault.environment_id = p_environment_id and fault.kind = p_kind and fault.times_left > 0
    and fault.fault is distinct from p_without
      and pay_internal.fault_matches(fault.filter::jsonb, p_target)
  order by fault.id limit 1 for update;
  update pay.faults fault set times_left = fault.times_left - 1
  where fault.environment_id = p_environment_id and fault.id = v_fault.id;
  return v_fault;
end $$;

create or replace function pay_internal.note_fault_kinds(p_environment_id text)
returns void language plpgsql volatile as $$
declare
  v_kinds text[] := array(
    select distinct fault.kind from pay.faults fault
    where fault.environment_id = p_environment_id and fault.times_left > 0
      and fault.kind <> 'delivery'
    order by 1);
begin
  update pay.sandbox_settings w
  set fault_kinds = v_kinds, version = pay_internal.new_settings_version()
  where w.environment_id = p_environment_id and w.fault_kinds <> v_kinds;
  if not found and v_kinds <> '{}' then
    insert into pay.sandbox_settings (environment_id, version, fault_kinds)
    values (p_environment_id, pay_internal.new_settings_version(), v_kinds)
    on conflict on constraint sandbox_settings_pkey do nothing;
  end if;
end $$;

create or replace function pay.match_fault(
  p_request text, p_kind text, p_target text, p_takes boolean
) returns pay.admission language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request, 'shared', true);
  v_fault pay.faults;
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  v_fault := pay_internal.next_fault(v_access.environment_id, p_kind, p_target::jsonb, p_takes);
  if v_fault.id is not null then
    v_access.body := json_build_object(
      'id', v_fault.id, 'fault', v_fault.fault, 'delay_ms', v_fault.delay_ms);
  elsif not exists (
    select from pay.faults fault
    where fault.environment_id = v_access.environment_id and fault.times_left > 0
      and fault.kind in ('request', 'provider')
  ) and pg_try_advisory_xact_lock(
    hashtextextended('environment ' || v_access.environment_id, 0)
  ) then
    perform pay_internal.note_fault_kinds(v_access.environment_id);
  end if;
  return v_access;
end $$;
grant execute on function pay.match_fault to pay_api;

create or replace function pay.create_fault(p_request text, p_fault text, p_limit integer)
returns pay.admission language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.claim_one(p_request, pay_internal.admit_alone(p_request));
  v_fault pay.faults := json_populate_record(null::pay.faults, p_fault::json);
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  if (
    select count(*) from pay.faults fault
    where fault.environment_id = v_access.environment_id and fault.times_left > 0
  ) >= p_limit then
    v_access.outcome := 'full';
    perform pay_internal.release_key(p_request, v_access);
    return v_access;
  end if;
  v_fault.environment_id := v_access.environment_id;
  v_fault.times_left := v_fault.times;
  v_fault.created_at := v_access.at;
  insert into pay.faults select v_fault.*;
  perform pay_internal.note_fault_kinds(v_access.environment_id);
  v_access.outcome := 'committed';
  v_access.body := pay_internal.fault_body(v_fault);
  perform pay_internal.store_response(p_request, v_access);
  return v_access;
end $$;
grant execute on function pay.create_fault to pay_api;

create or replace function pay.delete_fault(p_request text, p_id text) returns pay.admission
language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.claim_one(p_request, pay_internal.admit_alone(p_request));
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  delete from pay.faults fault where fault.environment_id = v_access.environment_id
    and fault.id = p_id;
  if not found then
    v_access.outcome := 'not_found';
    perform pay_internal.release_key(p_request, v_access);
    return v_access;
  end if;
  perform pay_internal.note_fault_kinds(v_access.environment_id);
  v_access.outcome := 'committed';
  v_access.body := json_build_object('id', p_id, 'object', 'fault', 'deleted', true);
  perform pay_internal.store_response(p_request, v_access);
  return v_access;
end $$;
grant execute on function pay.delete_fault to pay_api;

create or replace function pay_internal.lock_faults(p_faults jsonb, p_found pay.admission[])
returns pay.admission[] language plpgsql volatile as $$
declare
  v_n integer;
begin
  for v_n in
    with
    requested as materialized (
      select u.n, f.environment_id, u.id,
        row_number() over (partition by f.environment_id, u.id order by u.n) as place
      from unnest(p_found) f
      join jsonb_to_recordset(p_faults) as u (n integer, id text) on u.n = f.n
      where f.outcome = 'ok'
    ),
    locked as materialized (
      select fault.environment_id, fault.id, fault.times_left
      from pay.faults fault
      where (fault.environment_id, fault.id) in (select a.environment_id, a.id from requested a)
      order by fault.environment_id, fault.id
      for update of fault
    )
    select a.n from requested a
    left join locked l on l.environment_id = a.environment_id and l.id = a.id
    where l.id is null or a.place > l.times_left
  loop
    p_found[v_n].outcome := 'stale';
  end loop;
  return p_found;
end $$;

create or replace function pay_internal.count_faults(
  p_faults jsonb, p_callers pay_internal.caller[]
) returns void language plpgsql volatile as $$
begin
  update pay.faults fault
  set times_left = fault.times_left - u.times
  from (
    select caller.environment_id, f.id, count(*) as times
    from jsonb_to_recordset(p_faults) as f (n integer, id text)
    join unnest(p_callers) caller on caller.n = f.n
    group by caller.environment_id, f.id
  ) u
  where fault.environment_id = u.environment_id and fault.id = u.id;
end $$;

create or replace function pay_internal.enter_sandbox(p_access pay.admission, p_id text)
returns pay.api_keys language plpgsql volatile as $$
declare
  v_sandbox pay.sandboxes;
  v_caller pay.api_keys;
  v_remaining interval;
begin
  select * into v_sandbox from pay.sandboxes sandbox
  where sandbox.environment_id = p_access.environment_id and sandbox.id = p_id for share;
  if v_sandbox.id is null then return null; end if;
  select * into v_caller from pay.api_keys k where k.id = p_access.api_key_id;
  v_remaining := least(
    v_caller.expires_at - p_access.at, v_caller.ends_at - pay_internal.server_time());
  v_caller.environment_id := case when v_sandbox.expires_at > pay_internal.server_time()
    then pay_internal.hold_environment(p_id) end;
  perform pay_internal.act_as_worker(false);
  perform set_config('pay.environment_ids',
    array[p_access.environment_id, v_caller.environment_id]::text, true);
  v_caller.expires_at := pay_internal.environment_time(v_caller.environment_id) + v_remaining;
  v_caller.ends_at := least(v_sandbox.expires_at, pay_internal.server_time() + v_remaining);
  return v_caller;
end $$;

create or replace function pay.make_sandbox_key(
  p_request text, p_sandbox_id text, p_key text, p_secrets text, p_refusal text
) returns pay.admission language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.claim_one(p_request, pay_internal.admit_one(p_request));
  v_caller pay.api_keys;
  v_key pay.api_keys;
  v_at timestamptz;
  v_has_seed boolean;
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  v_caller := pay_internal.enter_sandbox(v_access, p_sandbox_id);
  v_at := pay_internal.environment_time(v_caller.environment_id);
  v_has_seed := exists (
    select from pay.sandbox_settings w
    where w.environment_id = v_caller.environment_id and w.seed is not null
  );
  if v_caller.id is not null then
    v_key := json_populate_record(null::pay.api_keys, p_key::json);
    -- In the precision of responses, so that the key ends at the time that they show.
    v_key.expires_at := date_trunc('milliseconds', v_at)
      + make_interval(secs => (p_key::json ->> 'expires_in')::integer);
  end if;
  return pay_internal.respond_key_change(
    p_request, v_access, v_caller, v_key, 'create', v_at, v_at - pay_internal.server_time(),
    p_secrets::json -> case when v_has_seed then 'seeded' else 'plain' end, null, p_refusal);
end $$;
grant execute on function pay.make_sandbox_key to pay_api;

create or replace function pay_internal.stored_requests()
returns integer language sql immutable parallel safe as $$ select 1000 $$;

create or replace function pay_internal.request_body(p_request pay.requests)
returns text language sql stable as $$
  select row_to_json(t)::text from (
    select
      p_request.id,
      'request' as object,
      p_request.method,
      p_request.path,
      p_request.query,
      p_request.status,
      p_request.error_code,
      p_request.idempotency_key,
      p_request.is_replay as idempotent_replay,
      round(p_request.duration_us / 1000.0, 2) as duration_ms,
      p_request.api_key_id,
      p_request.source,
      p_request.resource_id,
      p_request.fault,
      p_request.fault_id,
      pay_internal.wire_time(p_request.created_at) as created_at
  ) t
$$;

create or replace function pay_internal.whole_request_body(p_request pay.requests)
returns text language sql stable as $$
  select left(pay_internal.request_body(p_request), -1)
    || ',"request_body":' || coalesce(p_request.request_body, 'null')
    || ',"response_body":' || coalesce(p_request.response_body, 'null') || '}'
$$;

create or replace function pay.log_requests(
  p_keys text, p_requests text, p_replays text, p_storage_gb integer default null
) returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform set_config('synchronous_commit', 'off', true);
  if p_replays <> '[]' then
    with replayed as materialized (
      select k.environment_id, k.api_key_id, k.key, r.count
      from json_to_recordset(p_replays::json) as r (
        environment_id text, api_key_id text, key text, count integer
      )
      join pay.idempotency_keys k
        on k.environment_id = r.environment_id and k.api_key_id = r.api_key_id and k.key = r.key
      join pay.environments e on e.id = k.environment_id and e.moving is null
      order by k.api_key_id, k.key
      for no key update of k
    )
    update pay.idempotency_keys k set replays = k.replays + r.count
    from replayed r
    where k.environment_id = r.environment_id and k.api_key_id = r.api_key_id and k.key = r.key;
  end if;
  if p_requests is not null then
    -- A row lock needs the right to change the row.
    perform set_config('pay.environment_ids', (
      select array_agg(distinct a.environment_id)::text
      from json_to_recordset(p_keys::json) as a (environment_id text)), true);
    perform pay_internal.lock_logs(e.id, false)
    from unnest(current_setting('pay.environment_ids')::text[]) e (id) order by e.id;
    -- Materialized, so that each key is looked up once.
    with known as materialized (
      select a.k, k.environment_id, k.id, (e.stored_gb >= p_storage_gb) is true as is_full,
        exists (select from pay.erasures x where x.environment_id = e.id) as has_erasures
      from json_to_recordset(p_keys::json) as a (k integer, environment_id text, api_key_id text)
      join pay.api_keys k
        on k.id = a.api_key_id and k.environment_id = a.environment_id and not k.livemode
      join pay.environments e
        on e.id = k.environment_id and e.retired_at is null and e.moving is null
      for share of e skip locked
    )
    insert into pay.requests (environment_id, id, api_key_id, method, path, query, status,
      error_code, idempotency_key, is_replay, duration_us, source, created_at, resource_id, fault,
      fault_id, decided_at, request_body, response_body)
    select k.environment_id, r.id, k.id, r.method, r.path, r.query, r.status, r.error_code,
      r.idempotency_key, coalesce(r.is_replay, false), r.duration_us,
      coalesce(r.source, 'program'), r.at, r.resource_id, r.fault, r.fault_id, r.decided_at,
      case when k.is_full then null when k.has_erasures then x.request else r.request_body end,
      case when k.is_full then null when k.has_erasures then x.answer else r.response_body end
    from unnest(p_requests::pay_internal.logged_request[]) r
    join known k on k.k = r.k
    -- The limit keeps the condition before the function: 15 us a request where nobody was erased.
    left join lateral (
      select w.request, w.answer
      from pay_internal.without_erased(
        k.environment_id, r.at, null, r.request_body, r.response_body) w
      where k.has_erasures limit 1
    ) x on true
    on conflict on constraint requests_pkey do nothing;
  end if;
end $$;
grant execute on function pay.log_requests to pay_api;

create or replace function pay_internal.event_bounds(p_environment_id text, p_request_id text)
returns jsonb language sql stable as $$
  select coalesce(jsonb_object_agg(bound.name, 'evt_' || left(t.id, 9) || bound.rest)
    filter (where t.id is not null), '{}')
  from (
    select case when e.livemode then substr(p_request_id, 5)
      else (select pay_internal.id_floor('', r.decided_at) from pay.requests r
        where r.environment_id = p_environment_id and r.id = p_request_id) end as id
    from pay.environments e where e.id = p_environment_id
  ) t
  cross join (values ('id_from', ''), ('id_before', '~')) bound (name, rest)
$$;

create or replace function pay_internal.purge_requests(
  p_environment_id text, p_at timestamptz, p_batch integer, out deleted bigint
) language plpgsql volatile as $$
declare
  v_oldest text := greatest(pay_internal.id_floor('req_', p_at - interval '30 days'), (
    select o.id from pay.requests o where o.environment_id = p_environment_id
    order by o.id desc offset pay_internal.stored_requests() - 1 limit 1
  ));
begin
  delete from pay.requests t
  where t.environment_id = p_environment_id and t.id = any (array(
    select o.id from pay.requests o
    where o.environment_id = p_environment_id and o.id < v_oldest
    order by o.id limit p_batch for update skip locked
  ));
  get diagnostics deleted = row_count;
end $$;

create or replace function pay_internal.most_counted()
returns integer language sql immutable parallel safe as $$ select 250000 $$;

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

create or replace function pay_internal.max_transcript_lines()
returns integer language sql immutable parallel safe as $$ select 10000 $$;

create or replace function pay_internal.max_transcript_bytes()
returns bigint language sql immutable parallel safe as $$ select 16777216 $$;

create or replace function pay_internal.seed_root(p_account text, p_seed text)
returns text language sql immutable parallel safe
as $$ select encode(sha256(convert_to(p_account || E'\n' || p_seed, 'UTF8')), 'hex') $$;

create or replace function pay_internal.begin_seeded(
  p_environment_id text, p_seed text, p_root text
) returns void language plpgsql volatile as $$
begin
  insert into pay.sandbox_settings (environment_id, version, frozen_at, seed, seed_root)
  values (
    p_environment_id, pay_internal.new_settings_version(), '2030-01-01T00:00:00Z', p_seed, p_root);
end $$;

create or replace function pay_internal.free_seed(
  p_root text, p_at timestamptz, out is_free boolean
) language plpgsql volatile as $$
declare
  v_opened constant text := current_setting('pay.environment_ids', true);
  v_holder record;
begin
  perform pay_internal.act_as_worker();
  select e.public_id, e.ends_at into v_holder
  from pay.sandbox_settings w join pay.environments e on e.id = w.environment_id
  where w.seed_root = p_root;
  is_free := v_holder.public_id is null or v_holder.ends_at <= p_at;
  if is_free and v_holder.public_id is not null then
    perform pay_internal.retire_sandbox(v_holder.public_id, p_at);
  end if;
  perform pay_internal.act_as_worker(false);
  perform set_config('pay.environment_ids', v_opened, true);
end $$;

create or replace function pay_internal.restart_seeded(p_old text, p_new text)
returns void language plpgsql volatile as $$
declare
  v_settings pay.sandbox_settings;
begin
  delete from pay.sandbox_settings w where w.environment_id = p_old and w.seed is not null
  returning * into v_settings;
  if v_settings.seed is not null then
    perform pay_internal.begin_seeded(p_new, v_settings.seed, v_settings.seed_root);
    delete from pay.webhook_endpoints t where t.environment_id = p_new;
  end if;
end $$;

create or replace function pay_internal.open_by_hash(p_key_hash text, out environment text)
language plpgsql volatile as $$
declare
  v_hash constant bytea := decode(p_key_hash, 'hex');
  v_held text := '';
begin
  perform set_config('pay.key_hashes', array[v_hash]::text, true);
  loop
    environment := (
      select s.environment_id from pay.api_key_secrets s
      where s.hash = v_hash and s.revoked_at is null and not s.livemode
        and (s.ends_at is null or s.ends_at > pay_internal.server_time())
    );
    exit when environment is null or environment = v_held;
    v_held := environment;
    perform pg_advisory_xact_lock_shared(hashtextextended('environment ' || v_held, 0));
  end loop;
  if environment is not null then
    perform set_config('pay.environment_ids', array[environment]::text, true);
  end if;
end $$;

create or replace function pay.number_request(p_key_hash text)
returns text language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_environment constant text := pay_internal.open_by_hash(p_key_hash);
  v_settings text;
begin
  if v_environment is not null then
    perform pay_internal.refuse_moving(v_environment);
    update pay.sandbox_settings w set requests = w.requests + 1
    where w.environment_id = v_environment and w.seed is not null
    returning row_to_json(w)::text into v_settings;
  end if;
  return v_settings;
end $$;
grant execute on function pay.number_request to pay_api;

create or replace function pay.store_transcript_line(
  p_key_hash text, p_n bigint, p_line text, p_storage_gb integer default null
) returns void language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_environment constant text := pay_internal.open_by_hash(p_key_hash);
begin
  update pay.sandbox_settings w set transcript_bytes = w.transcript_bytes + octet_length(p_line)
  where w.environment_id = v_environment and w.seed is not null and w.requests >= p_n
    and w.transcript_bytes < pay_internal.max_transcript_bytes()
    and p_n <= pay_internal.max_transcript_lines()
    and not exists (select from pay.environments e
      where e.id = v_environment
        and (e.moving in ('sealed', 'arriving') or e.stored_gb >= p_storage_gb));
  if found then
    perform pay_internal.lock_logs(v_environment, false);
    insert into pay.transcript_lines (environment_id, n, line)
    select v_environment, p_n, coalesce(pay_internal.transcript_line(p_n, x.request, x.answer),
      p_line)
    from pay_internal.without_erased(v_environment, null, p_n,
      p_line::json ->> 'request', p_line::json ->> 'answer') x
    on conflict on constraint transcript_lines_pkey do nothing;
  end if;
end $$;
grant execute on function pay.store_transcript_line to pay_api;

create or replace function pay.transcript(p_request text, p_after bigint) returns pay.admission
language plpgsql volatile security definer as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request, 'shared', true);
  v_most_bytes constant integer := 256 * 1024;
  v_bytes integer := 0;
  v_lines text[] := '{}';
  v_line record;
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  if not exists (
    select from pay.sandbox_settings w
    where w.environment_id = v_access.environment_id and w.seed is not null
  ) then
    v_access.outcome := 'not_seeded';
    return v_access;
  end if;
  for v_line in
    select t.n, t.line from pay.transcript_lines t
    where t.environment_id = v_access.environment_id and t.n > p_after
    order by t.n
  loop
    v_lines := v_lines || (v_line.line || E'\n');
    v_bytes := v_bytes + octet_length(v_line.line);
    if v_bytes >= v_most_bytes then
      v_access.detail := v_line.n;
      exit;
    end if;
  end loop;
  v_access.body := array_to_string(v_lines, '');
  return v_access;
end $$;
grant execute on function pay.transcript to pay_api;

create or replace function pay_internal.clock_ceiling()
returns timestamptz language sql immutable parallel safe
as $$ select timestamptz '2200-01-01T00:00:00Z' $$;

create or replace function pay_internal.time_ahead(p_settings pay.sandbox_settings)
returns interval language sql stable as $$
  select coalesce(p_settings.frozen_at, least(
    pay_internal.server_time() + p_settings.offset_ms * interval '1 ms',
    case when p_settings.version > 0 then pay_internal.clock_ceiling() end))
      - pay_internal.server_time()
$$;

create or replace function pay_internal.environment_time(p_environment_id text)
returns timestamptz language plpgsql stable as $$
begin
  return pay_internal.server_time() + coalesce((
    select pay_internal.time_ahead(w) from pay.sandbox_settings w
    where w.environment_id = p_environment_id
  ), '0');
end $$;

create or replace function pay_internal.real_due_at(
  p_settings pay.sandbox_settings, p_due_at timestamptz
) returns timestamptz language sql stable as $$
  select case
    when p_due_at > coalesce(p_settings.frozen_at, pay_internal.clock_ceiling()) then 'infinity'
    when p_settings.frozen_at is null then p_due_at - p_settings.offset_ms * interval '1 ms'
    else pay_internal.server_time() - (p_settings.frozen_at - p_due_at)
  end
$$;

create or replace function pay_internal.real_due(p_environment_id text, p_due_at timestamptz)
returns timestamptz language plpgsql stable as $$
begin
  return coalesce((
    select pay_internal.real_due_at(w, p_due_at)
    from pay.sandbox_settings w where w.environment_id = p_environment_id
  ), p_due_at);
end $$;

create or replace function pay_internal.new_settings_version()
returns bigint language sql volatile as $$ select pg_current_xact_id()::text::bigint $$;

create or replace function pay_internal.max_sandboxes()
returns integer language sql immutable parallel safe as $$ select 1000 $$;

create or replace function pay_internal.max_stored_sandboxes()
returns integer language sql immutable parallel safe as $$ select 10000 $$;

create or replace function pay_internal.sandbox_body(p_sandbox pay.sandboxes)
returns text language sql stable as $$
  select row_to_json(t)::text from (
    select
      p_sandbox.id,
      'sandbox' as object,
      p_sandbox.name,
      p_sandbox.seed,
      pay_internal.wire_time(p_sandbox.created_at) as created_at,
      pay_internal.wire_time(p_sandbox.expires_at) as expires_at
  ) t
$$;

create or replace function pay_internal.take_sandbox_quota(p_account text, p_at timestamptz)
returns boolean language plpgsql volatile as $$
declare
  -- The account's other sandboxes can have made some as well.
  v_was_worker constant boolean := pay_internal.act_as_worker();
  v_count bigint;
begin
  perform pg_advisory_xact_lock(hashtextextended('sandboxes ' || p_account, 0));
  select case
      when exists (
        select from pay.sandboxes sandbox where sandbox.account = p_account
        offset pay_internal.max_stored_sandboxes() - 1
      ) then pay_internal.max_sandboxes()
      else count(*)
    end
  into v_count
  from pay.sandboxes sandbox
  where sandbox.account = p_account and sandbox.expires_at > p_at;
  perform pay_internal.act_as_worker(v_was_worker);
  return v_count < pay_internal.max_sandboxes();
end $$;

create or replace function pay_internal.write_sandbox(p_sandbox pay.sandboxes, p_secret json)
returns void language plpgsql volatile as $$
begin
  perform set_config('pay.environment_ids',
    array[p_sandbox.environment_id, p_sandbox.id]::text, true);
  with made_environment as (
    insert into pay.environments
      (id, public_id, account, livemode, name, created_at, ends_at, merchant)
    select p_sandbox.id, p_sandbox.id, p_sandbox.account, false,
      coalesce(p_sandbox.name, 'Disposable sandbox'), p_sandbox.created_at, p_sandbox.expires_at,
      e.merchant
    from pay.environments e where e.id = p_sandbox.environment_id
  ),
  made_key as (
    insert into pay.api_keys (id, environment_id, livemode, name, created_at, ends_at)
    values (p_secret ->> 'key_id', p_sandbox.id, false, 'Made with the sandbox',
      p_sandbox.created_at, p_sandbox.expires_at)
  ),
  made_secret as (
    insert into pay.api_key_secrets
      (hash, api_key_id, environment_id, account, livemode, prefix, last_four, created_at, ends_at)
    values (decode(p_secret ->> 'hash', 'hex'), p_secret ->> 'key_id', p_sandbox.id,
      p_sandbox.account, false, p_secret ->> 'prefix', p_secret ->> 'last_four',
      p_sandbox.created_at, p_sandbox.expires_at)
  )
  insert into pay.sandboxes
    (environment_id, id, account, made_by, name, seed, created_at, expires_at)
  values (p_sandbox.environment_id, p_sandbox.id, p_sandbox.account, p_sandbox.made_by,
    p_sandbox.name, p_sandbox.seed, p_sandbox.created_at, p_sandbox.expires_at);
  if p_sandbox.seed is not null then
    perform pay_internal.begin_seeded(
      p_sandbox.id, p_sandbox.seed, pay_internal.seed_root(p_sandbox.account, p_sandbox.seed));
  end if;
end $$;

create or replace function pay.make_sandbox(p_request text, p_sandbox text, p_secret text)
returns pay.admission language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request);
  v_requested json := p_sandbox::json;
  v_secret json := p_secret::json;
  v_caller record;
  v_sandbox pay.sandboxes;
  v_body text;
begin
  select e.account, e.livemode, e.ends_at,
    least(k.expires_at - v_access.at, k.ends_at - pay_internal.server_time()) as remaining
  into v_caller
  from pay.environments e
  join pay.api_keys k on k.id = v_access.api_key_id and k.revoked_at is null
  where e.id = v_access.environment_id
  for share of k skip locked;
  if v_access.outcome = 'ok' and v_caller.account is null then
    v_access.outcome := case when exists (
      select from pay.api_keys k where k.id = v_access.api_key_id and k.revoked_at is null
    ) then 'resetting' else 'unauthorized' end;
  end if;
  -- In the precision of responses, so that the sandbox ends at the time that they show.
  v_sandbox.created_at := date_trunc('milliseconds', pay_internal.server_time());
  v_sandbox.environment_id := v_access.environment_id;
  v_sandbox.id := v_requested ->> 'id';
  v_sandbox.account := v_caller.account;
  v_sandbox.made_by := v_access.api_key_id;
  v_sandbox.name := v_requested ->> 'name';
  v_sandbox.seed := v_requested ->> 'seed';
  v_sandbox.expires_at := v_sandbox.created_at
    + least(make_interval(secs => (v_requested ->> 'expires_in')::integer),
      date_trunc('milliseconds', v_caller.remaining));
  v_body := left(pay_internal.sandbox_body(v_sandbox), -1) || ',"test_key":'
    || to_json(v_secret ->> 'reference')::text || '}';
  -- The claim stores the response, which a later update would write a second time.
  v_access := pay_internal.claim_one(
    jsonb_set(p_request::jsonb, '{0,body}', to_jsonb(v_body))::text, v_access);
  if v_access.outcome <> 'ok' then return v_access; end if;
  v_access.outcome := case
    when v_caller.livemode then 'live'
    when v_caller.ends_at is not null then 'disposable'
    when not pay_internal.take_sandbox_quota(v_caller.account, v_sandbox.created_at) then 'full'
    when v_sandbox.seed is not null and not pay_internal.free_seed(
      pay_internal.seed_root(v_caller.account, v_sandbox.seed), v_sandbox.created_at)
      then 'seed_taken'
    else 'committed'
  end;
  if v_access.outcome <> 'committed' then
    perform pay_internal.release_key(p_request, v_access);
    return v_access;
  end if;
  perform pay_internal.write_sandbox(v_sandbox, v_secret);
  v_access.body := v_body;
  return v_access;
end $$;
grant execute on function pay.make_sandbox to pay_api;

create or replace function pay_internal.retire_sandbox(p_public_id text, p_at timestamptz)
returns void language plpgsql volatile as $$
declare
  v_environment text := pay_internal.hold_environment(p_public_id, true);
begin
  if v_environment is null then return; end if;
  perform set_config('pay.environment_ids', array[v_environment]::text, true);
  update pay.environments e set retired_at = p_at, ends_at = least(e.ends_at, p_at)
  where e.id = v_environment and e.ends_at is not null;
  if not found then raise exception '% is no disposable sandbox', p_public_id; end if;
  update pay.api_key_secrets s set ends_at = least(s.ends_at, p_at)
  where s.environment_id = v_environment;
  delete from pay.sandbox_settings w where w.environment_id = v_environment and w.seed is not null;
  update pay.webhook_endpoints t set status = 'disabled'
  where t.environment_id = v_environment and t.status = 'enabled';
  perform pay_internal.delete_pending(v_environment);
end $$;

create or replace function pay_internal.end_sandboxes_of(p_api_key_id text)
returns void language plpgsql volatile as $$
declare
  v_opened constant text := coalesce(current_setting('pay.environment_ids', true), '');
  -- pay_internal.max_sandboxes() at most, because the account has no more that have not ended.
  v_was_worker constant boolean := pay_internal.act_as_worker();
  v_now constant timestamptz := date_trunc('milliseconds', pay_internal.server_time());
  v_environments text[];
begin
  with ended as (
    update pay.sandboxes s set expires_at = v_now
    where s.made_by = p_api_key_id and s.expires_at > v_now
    returning s.id
  )
  select array_agg(e.id) into v_environments
  from ended join pay.environments e on e.public_id = ended.id and e.retired_at is null;
  if v_environments is not null then
    -- Of the environments only the opened ones can be changed.
    perform set_config('pay.environment_ids', v_environments::text, true);
    update pay.environments e set ends_at = v_now where e.id = any (v_environments);
    update pay.api_key_secrets s set ends_at = v_now where s.environment_id = any (v_environments);
    perform set_config('pay.environment_ids', v_opened, true);
  end if;
  perform pay_internal.act_as_worker(v_was_worker);
end $$;

create or replace function pay.end_sandbox(p_request text, p_id text) returns pay.admission
language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.claim_one(p_request, pay_internal.admit_one(p_request));
  v_sandbox pay.sandboxes;
  v_now timestamptz := date_trunc('milliseconds', pay_internal.server_time());
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  select * into v_sandbox from pay.sandboxes sandbox
  where sandbox.environment_id = v_access.environment_id and sandbox.id = p_id for update;
  if v_sandbox.id is null then
    v_access.outcome := 'not_found';
    perform pay_internal.release_key(p_request, v_access);
    return v_access;
  end if;
  if v_sandbox.expires_at > v_now then
    v_sandbox.expires_at := v_now;
    update pay.sandboxes sandbox set expires_at = v_now
    where sandbox.environment_id = v_access.environment_id and sandbox.id = p_id;
  end if;
  v_access.outcome := 'committed';
  v_access.body := pay_internal.sandbox_body(v_sandbox);
  perform pay_internal.store_response(p_request, v_access);
  perform pay_internal.retire_sandbox(p_id, v_now);
  return v_access;
end $$;
grant execute on function pay.end_sandbox to pay_api;

create or replace function pay_internal.retire_ended_sandboxes(
  p_environment_id text, p_at timestamptz
) returns bigint language plpgsql volatile as $$
declare
  v_id text;
  v_public_id text;
  v_total bigint := 0;
begin
  for v_id, v_public_id in
    select e.id, e.public_id from pay.environments e
    where e.ends_at <= p_at and e.retired_at is null
      and (p_environment_id is null or e.id = p_environment_id)
    order by e.ends_at limit 50
  loop
    if pg_try_advisory_xact_lock(hashtextextended('environment ' || v_id, 0)) then
      perform pay_internal.retire_sandbox(v_public_id, p_at);
      v_total := v_total + 1;
    end if;
  end loop;
  return v_total;
end $$;

create or replace function pay_internal.purge_sandboxes(
  p_environment_id text, p_at timestamptz, p_batch integer, out deleted bigint
) language plpgsql volatile as $$
begin
  delete from pay.sandboxes sandbox
  where sandbox.ctid = any (array(
    select o.ctid from pay.sandboxes o
    where o.expires_at <= p_at - pay_internal.idempotency_retention()
      and (p_environment_id is null or o.environment_id = p_environment_id)
    order by o.expires_at limit p_batch for update skip locked
  ));
  get diagnostics deleted = row_count;
end $$;

create or replace function pay_internal.sought_amounts(p_text text)
returns text[] language plpgsql immutable parallel safe as $$
declare
  v_number constant text := substring(p_text
    from '^(?:[A-Za-z]{3,4}|[€$£¥])?\s*([0-9][0-9., '']{0,19})\s*(?:[A-Za-z]{3,4}|[€$£¥])?$');
begin
  return array(
    select '#' || trim_scale(r.amount::numeric) from (values
      (replace(v_number, ',', '.'), '^[0-9]+([.,][0-9]{1,6})?$'),
      (regexp_replace(v_number, '[., '']', '', 'g'), '^[0-9]{1,3}([., ''])[0-9]{3}(\1[0-9]{3})*$'),
      (replace(regexp_replace(v_number, '[. '']', '', 'g'), ',', '.'),
        '^[0-9]{1,3}([. ''])[0-9]{3}(\1[0-9]{3})*,[0-9]{1,6}$'),
      (regexp_replace(v_number, '[, '']', '', 'g'),
        '^[0-9]{1,3}([, ''])[0-9]{3}(\1[0-9]{3})*[.][0-9]{1,6}$')
    ) r (amount, form)
    where btrim(v_number) ~ r.form);
end $$;

create or replace function pay_internal.word_rows(
  p_environment_id text, p_word bigint, p_most integer
) returns setof text language plpgsql stable rows 10 as $$
begin
  return query
    (select s.payment_id from pay.search_words s where s.words[1] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[1] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[2] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[2] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[3] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[3] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[4] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[4] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[5] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[5] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[6] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[6] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[7] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[7] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[8] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[8] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[9] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[9] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[10] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[10] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[11] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[11] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[12] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[12] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[13] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[13] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[14] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[14] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[15] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[15] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[16] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[16] desc limit p_most)
    limit p_most;
end $$;

create or replace function pay_internal.sought(p_environment_id text, p_text text)
returns jsonb language plpgsql stable as $$
declare
  v_text constant text := btrim(p_text);
  v_body constant text := substring(upper(regexp_replace(v_text, '[^A-Za-z0-9]', '', 'g'))
    from '^RF[0-9]{2}([0-9A-HJKMNP-TV-Z]{16})$');
  v_words constant bigint[] :=
    pay_internal.word_hashes(p_environment_id, pay_internal.text_words(v_text));
  v_values constant bigint[] := pay_internal.word_hashes(p_environment_id,
    array_remove(array['=' || pay_internal.plain_text(v_text), '=' || lower(v_body)], null)
    || pay_internal.sought_amounts(v_text));
  v_most constant integer :=
    pay_internal.counted_rows() / (cardinality(v_words) + cardinality(v_values));
  v_found jsonb;
  v_is_common boolean;
  v_is_known boolean;
begin
  with counted as materialized (
    select w.word, c.rows from unnest(v_words || v_values) w (word)
    cross join lateral (
      select count(*) as rows from pay_internal.word_rows(p_environment_id, w.word, v_most + 1)
    ) c
  )
  select jsonb_build_object('rarest', case when k.rows > 0 then k.word end),
    coalesce(k.rows > v_most, false)
      or exists (select from counted c where c.word = any (v_values) and c.rows > v_most)
  into v_found, v_is_common
  from (select) one
  left join (
    select * from counted c where c.word = any (v_words) order by c.rows limit 1
  ) k on true;
  v_found := v_found || jsonb_build_object('text', v_text, 'words', v_words,
    'values', v_values, 'most', v_most, 'is_common', v_is_common);
  if v_is_common then return v_found; end if;
  execute format('select exists (select from (%s) t where pay_internal.is_found($1, t.id,
      t.reference, t.customer_id, $2))', pay_internal.found_rows(v_found))
  into v_is_known using p_environment_id, v_found, '~', '';
  return case when v_is_known then v_found end;
end $$;

create or replace function pay_internal.found_rows(p_found jsonb)
returns text language sql immutable as $$
  select case when not (p_found -> 'is_common')::boolean then format('select p.* from (
      select u.id from (%s union all select w.id from (
        select jsonb_array_elements_text(%L)::bigint as word
      ) v cross join lateral pay_internal.word_rows($1, v.word, %s) w (id) where w.id < $3 and w.id >= $4) u
      group by u.id order by u.id desc limit pay_internal.page_rows()
    ) c
    cross join lateral (
      select p.* from pay.payments p where p.environment_id = $1 and p.id = c.id offset 0
    ) p',
    format('(select %1$L as id where %1$L < $3 and %1$L >= $4)', p_found ->> 'text')
    || (select string_agg(format(' union all (select t.id from pay.payments t
        where t.%1$s = any (array[%2$L]) and t.%1$s is not null and t.environment_id = $1
          and t.id < $3 and t.id >= $4
        order by t.%1$s desc, t.environment_id desc, t.id desc limit pay_internal.page_rows())',
        name, p_found ->> 'text'), '')
     from unnest(array['reference', 'customer_id']) name),
    (p_found -> 'values') || coalesce(nullif(p_found -> 'rarest', 'null'), '[]'),
    p_found ->> 'most') end
$$;

create or replace function pay_internal.is_found(
  p_environment_id text, p_id text, p_reference text, p_customer_id text, p_found jsonb
) returns boolean language plpgsql stable as $$
declare
  v_words constant bigint[] := array(select jsonb_array_elements_text(p_found -> 'words')::bigint);
  v_own constant bigint[] := array(
    select unnest(w.words) from pay.search_words w
    where w.environment_id = p_environment_id and w.payment_id = p_id);
begin
  return p_found ->> 'text' in (p_id, p_reference, p_customer_id)
    or v_own && array(select jsonb_array_elements_text(p_found -> 'values')::bigint)
    or v_words <> '{}' and v_own @> v_words;
end $$;

create or replace function pay_internal.words_of_row()
returns integer language sql immutable parallel safe as $$ select 16 $$;

create or replace function pay_internal.most_keys()
returns integer language sql immutable parallel safe as $$ select 20 $$;

create or replace function pay_internal.most_seen()
returns integer language sql immutable parallel safe as $$ select 10000 $$;

create or replace function pay_internal.environments_of_job()
returns integer language sql immutable parallel safe as $$ select 200 $$;

create or replace function pay_internal.job_time()
returns interval language sql immutable parallel safe as $$ select interval '1 second' $$;

create or replace function pay_internal.words_lock(p_environment_id text)
returns bigint language sql immutable parallel safe as $$
  select hashtextextended('words ' || p_environment_id, 0)
$$;

create or replace function pay_internal.plain_text(p_text text)
returns text language plpgsql immutable parallel safe as $$
declare
  v_text text := lower(btrim(p_text) collate "C");
begin
  if octet_length(v_text) = length(v_text) then return v_text; end if;
  v_text := regexp_replace(normalize(v_text, nfkd), '[\u0300-\u036f]', '', 'g');
  v_text := translate(lower(v_text collate "C"),
    'ØøŁłĐđıΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩςАБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ',
    'oollddiαβγδεζηθικλμνξοπρστυφχψωσабвгдежзиклмнопрстуфхцчшщъыьэюя');
  return replace(replace(replace(replace(replace(replace(replace(v_text,
    'ß', 'ss'), 'ẞ', 'ss'), 'æ', 'ae'), 'Æ', 'ae'), 'œ', 'oe'), 'Œ', 'oe'), 'þ', 'th');
end $$;

create or replace function pay_internal.text_words(p_text text)
returns text[] language plpgsql immutable parallel safe as $$
declare
  v_text text := pay_internal.plain_text(p_text);
  v_word text;
  v_words text[] := '{}';
  -- Of the texts of a payment, or of a search.
  v_most constant integer := 16;
begin
  v_text := replace(replace(replace(v_text, 'ae', 'a'), 'oe', 'o'), 'ue', 'u');
  if octet_length(v_text) > length(v_text) then
    v_text := translate(v_text, '«»¡¿·•–—…‘’“”„', repeat(' ', 14));
  end if;
  foreach v_word in array string_to_array(
    translate(v_text, e'!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~\t\n\r', repeat(' ', 35)), ' ')
  loop
    if v_word <> '' and v_word <> all (v_words) then
      v_words := v_words || v_word;
      exit when cardinality(v_words) = v_most;
    end if;
  end loop;
  return v_words;
end $$;

create or replace function pay_internal.minor_digits(p_currency text)
returns integer language plpgsql immutable parallel safe as $$
begin
  return case
    when p_currency = any ('{BIF,CLP,DJF,GNF,ISK,JPY,KMF,KRW,PYG,RWF,UGX,VND,VUV,XAF,XOF,XPF}')
      then 0
    when p_currency = any ('{BHD,IQD,JOD,KWD,LYD,OMR,TND}') then 3
    when p_currency = any ('{USDC,USDT}') then 6
    else 2 end;
end $$;

create or replace function pay_internal.reference_body(p_id text)
returns text language plpgsql immutable parallel safe as $$
declare
  v_hash constant bytea := sha256(convert_to('creditor reference ' || p_id, 'UTF8'));
begin
  return (select string_agg(
      substr('0123456789abcdefghjkmnpqrstvwxyz', get_byte(v_hash, n) % 32 + 1, 1), '' order by n)
    from generate_series(0, 15) n);
end $$;

create or replace function pay_internal.words_of(p_payment pay.payments)
returns text[] language plpgsql stable as $$
declare
  v_body jsonb;
  v_method jsonb;
  v_email text;
begin
  v_body := p_payment.body::jsonb;
  v_method := v_body -> 'method';
  v_email := v_body #>> '{customer,email}';
  return array(
    select '=' || pay_internal.plain_text(v.value) from unnest(array[
      v_email, v_body #>> '{metadata,order_id}', v_body #>> '{metadata,order}',
      v_body #>> '{metadata,orderId}', v_method #>> '{card,last4}', v_method #>> '{iban,last4}',
      v_method #>> '{mandate,id}', v_method #>> '{wallet,address}', v_method #>> '{wallet,tx_hash}',
      v_body #>> '{next_action,address}', case when pay_internal.rail_is_by_bank(
        p_payment.method_kind) then pay_internal.reference_body(p_payment.id) end
    ]) v (value) where v.value <> ''
  ) || ('#' || trim_scale(p_payment.amount_minor
    * ('1e-' || pay_internal.minor_digits(p_payment.currency))::numeric))
  || pay_internal.text_words(concat_ws(' ', v_body #>> '{customer,name}',
    split_part(v_email, '@', 1), p_payment.reference, v_body ->> 'description'));
exception when data_exception then
  raise warning 'payment % has no words: %', p_payment.id, sqlerrm;
  return '{}';
end $$;

create or replace function pay_internal.word_hashes(p_environment_id text, p_words text[])
returns bigint[] language plpgsql immutable parallel safe as $$
begin
  return array(
    select ('x' || encode(substr(sha256(convert_to(p_environment_id || ' ' || w.word, 'UTF8')),
      1, 8), 'hex'))::bit(64)::bigint
    from unnest(p_words) w (word));
end $$;

create or replace function pay_internal.add_words(p_environment_id text, p_ids text[])
returns void language plpgsql volatile as $$
begin
  insert into pay.search_words as s (environment_id, payment_id, part, words)
  select p_environment_id, w.id, r.part, r.words
  from (
    select p.id, pay_internal.word_hashes(p_environment_id, pay_internal.words_of(p.row) || array(
      select distinct '=' || pay_internal.plain_text(v.key) from (
        select v.idempotency_key as key from pay.events v
        where v.environment_id = p_environment_id and v.subject_id = p.id
        order by v.environment_id desc, v.subject_id desc, v.sequence desc
        limit pay_internal.most_keys()
      ) v
      where v.key is not null)) as words
    from unnest(p_ids) i (id)
    cross join lateral (
      select p.id, p as row from pay.payments p
      where p.environment_id = p_environment_id and p.id = i.id offset 0
    ) p
    -- The order of the primary key, whose pages are then full.
    order by p.id offset 0
  ) w
  cross join lateral (
    select n as part,
      w.words[n * pay_internal.words_of_row() + 1:(n + 1) * pay_internal.words_of_row()] as words
    from generate_series(0, (cardinality(w.words) - 1) / pay_internal.words_of_row()) n
  ) r
  where r.words <> '{}' and not exists (
    select from pay.search_words o
    where o.environment_id = p_environment_id and o.payment_id = w.id and o.part = r.part
      and o.words = r.words offset 0
  )
  on conflict on constraint search_words_pkey do update set words = excluded.words;
end $$;

create or replace function pay_internal.write_words(
  p_environment_id text, p_most integer, p_waits boolean default false
) returns integer language plpgsql volatile as $$
declare
  v_now constant timestamptz := pay_internal.server_time();
  v_cursor pay.search_cursors;
  v_after text;
  v_new text[];
  v_is_over boolean;
  v_has_lock boolean;
  -- Events are not committed in the order of their ids. The job looks at those of this time again,
  -- at most at pay_internal.most_seen(), and remembers those that it has read.
  v_late constant interval := '20 seconds';
begin
  for v_try in 1..case when p_waits then 11 else 1 end loop
    if v_try > 1 then perform pg_sleep(0.02); end if;
    v_has_lock := pg_try_advisory_xact_lock(pay_internal.words_lock(p_environment_id));
    exit when v_has_lock;
  end loop;
  if not v_has_lock or not exists (
    select from pay.environments e
    where e.id = p_environment_id and e.retired_at is null and e.moving is null
  ) then
    return 0;
  end if;
  select * into v_cursor from pay.search_cursors c where c.environment_id = p_environment_id;
  v_cursor.environment_id := p_environment_id;
  v_after := coalesce(v_cursor.after_id, '');
  v_cursor.seen := coalesce(v_cursor.seen, '{}');
  v_new := array(
    select r.id from (
      select v.id from pay.events v
      where v.environment_id = any (array[p_environment_id]) and v.id > v_after
      order by v.environment_id, v.id limit cardinality(v_cursor.seen) + p_most
    ) r
    except select unnest(v_cursor.seen));
  v_is_over := v_now not between v_cursor.marked_at and v_cursor.marked_at + v_late
    or cardinality(v_cursor.seen) > pay_internal.most_seen();
  if v_new = '{}' and v_is_over is not true then return 0; end if;
  perform pay_internal.add_words(p_environment_id, array(
    select distinct v.subject_id from unnest(v_new) n (id)
    -- So that the planner uses the primary key with any statistics: see pay_internal.add_words.
    cross join lateral (
      select v.subject_id from pay.events v
      where v.environment_id = p_environment_id and v.id = n.id offset 0
    ) v
    where starts_with(v.subject_id, 'pay_')));
  v_cursor.seen := v_cursor.seen || v_new;
  if v_is_over then
    v_after := v_cursor.marked_id;
    v_cursor.seen := array(select s.id from unnest(v_cursor.seen) s (id) where s.id > v_after);
  end if;
  if v_is_over is not false then
    v_cursor.marked_id := (select max(s.id) from unnest(v_cursor.seen) s (id));
    v_cursor.marked_at := case when v_cursor.marked_id is not null then v_now end;
  end if;
  v_cursor.after_id := v_after;
  insert into pay.search_cursors select v_cursor.*
  on conflict on constraint search_cursors_pkey do update set after_id = excluded.after_id,
    seen = excluded.seen, marked_id = excluded.marked_id, marked_at = excluded.marked_at;
  return cardinality(v_new);
end $$;

create or replace function pay.write_search_words()
returns bigint language plpgsql volatile security definer as $$
declare
  v_until timestamptz;
  v_environment_id text;
  v_events bigint := 0;
  -- The events whose words are written for one environment before the next has its turn.
  v_portion constant integer := 2000;
begin
  perform pay_internal.act_as_worker();
  for v_environment_id in
    select t.id from (
      select e.id, row_number() over (partition by e.account order by random()) as turn
      from pay.environments e
      left join pay.search_cursors c on c.environment_id = e.id
      -- Computed here, because a coalesce in the comparison is no condition of an index.
      cross join lateral (select coalesce(c.after_id, '') as after_id offset 0) a
      -- In the order of the primary key, so that the planner uses it with any statistics.
      left join lateral (
        select v.id from pay.events v
        where v.environment_id = any (array[e.id]) and v.id > a.after_id
        order by v.environment_id, v.id limit 1
      ) v on true
      where e.retired_at is null and e.moving is null
        and coalesce(v.id, c.marked_id) is not null
    ) t
    order by t.turn, random() limit pay_internal.environments_of_job()
  loop
    v_until := coalesce(v_until, clock_timestamp() + pay_internal.job_time());
    begin
      v_events := v_events
        + pay_internal.write_words(v_environment_id, v_portion);
    exception when others then
      raise warning 'the search words of % failed: % %', v_environment_id, sqlstate, sqlerrm;
    end;
    exit when clock_timestamp() > v_until;
  end loop;
  return v_events;
end $$;
grant execute on function pay.write_search_words to pay_api, pay_operator;

create or replace function pay_internal.delivery_bytes(p_environment_id text, p_events bigint)
returns bigint language plpgsql stable as $$
begin
  if p_events > 0 then
    return p_events * 2000 * (
      select count(*) from pay.webhook_endpoints t
      where t.environment_id = p_environment_id and t.status = 'enabled');
  end if;
  return 0;
end $$;

create or replace function pay_internal.count_storage(p_environment_id text)
returns text[] language plpgsql volatile as $$
declare
  v_accounts text[];
begin
  with counted as materialized (
    select c.ctid as place, c.environment_id, c.account, c.stored_bytes as bytes
    from pay.rate_counters c
    join pay.environments e on e.id = c.environment_id and e.moving is null
    where c.stored_bytes > 0 and (p_environment_id is null or c.environment_id = p_environment_id)
    for update of c skip locked
  ),
  cleared as (
    update pay.rate_counters c set stored_bytes = 0 from counted o where c.ctid = o.place
  ),
  added as (
    insert into pay.sandbox_storage (environment_id, day, account, bytes)
    select o.environment_id, (pay_internal.server_time() at time zone 'UTC')::date,
      min(o.account), sum(o.bytes)
    from counted o group by o.environment_id order by o.environment_id
    on conflict on constraint sandbox_storage_pkey
    do update set bytes = sandbox_storage.bytes + excluded.bytes
  )
  select array_agg(distinct o.account) into v_accounts from counted o;
  return coalesce(v_accounts, '{}');
end $$;

create or replace function pay_internal.account_storage(
  p_account text, p_is_retired boolean, p_except text default null
) returns bigint language sql stable as $$
  select coalesce(sum(s.bytes), 0)::bigint
  from pay.sandbox_storage s join pay.environments e on e.id = s.environment_id
  where s.account = p_account and (e.retired_at is not null) = p_is_retired
    and e.id is distinct from p_except
$$;

create or replace function pay_internal.note_storage(p_every interval default '10 seconds')
returns bigint language plpgsql volatile as $$
declare
  v_now constant timestamptz := pay_internal.server_time();
  v_accounts text[];
  v_changed text[];
  v_gbs integer[];
begin
  if not pg_try_advisory_xact_lock(hashtextextended('pay.sandbox_storage', 0)) then
    return 0;
  end if;
  insert into pay.settings (name, value)
  values ('storage_counted_at', extract(epoch from v_now)::text)
  on conflict on constraint settings_pkey do update set value = excluded.value
    where to_timestamp(settings.value::double precision) not between v_now - p_every and v_now;
  if not found then return 0; end if;
  v_accounts := pay_internal.count_storage(null);
  with active as materialized (
    select c.environment_id, min(c.account) as account from pay.rate_counters c
    join pay.environments e
      on e.id = c.environment_id and e.moving is null and e.retired_at is null and not e.livemode
    where c.window_number > floor(extract(epoch from v_now) / 2) - 60
    group by c.environment_id order by random() limit 200
  )
  insert into pay.sandbox_storage (environment_id, day, account, bytes)
  select a.environment_id, 'infinity', a.account, coalesce(w.transcript_bytes, 0) + (
      select coalesce(sum(500 + coalesce(pg_column_size(r.request_body), 0)
        + coalesce(pg_column_size(r.response_body), 0)), 0)
      from pay.requests r where r.environment_id = a.environment_id
    )
  from active a left join pay.sandbox_settings w on w.environment_id = a.environment_id
  order by a.environment_id
  on conflict on constraint sandbox_storage_pkey do update set bytes = excluded.bytes;
  with ended as (
    delete from pay.sandbox_storage s
    where s.day < (v_now at time zone 'UTC')::date - 31
      and exists (select from pay.environments e where e.id = s.environment_id and e.moving is null)
      and not exists (select from pay.sandbox_settings w where w.environment_id = s.environment_id)
    returning s.account
  )
  select array_agg(distinct t.account) into v_accounts from (
    select unnest(v_accounts) as account
    union all select s.account from ended s
    -- They may store less by now.
    union all select e.account from pay.environments e where e.stored_gb > 0
  ) t;
  select array_agg(e.id), array_agg(coalesce(t.gb, 0)) into v_changed, v_gbs
  from pay.environments e
  left join (
    select s.account, sum(s.bytes)::bigint >> 30 as gb from pay.sandbox_storage s
    join pay.environments o on o.id = s.environment_id and o.retired_at is null
    where s.account = any (v_accounts)
    group by s.account
  ) t on t.account = e.account
  where e.account = any (v_accounts) and not e.livemode and e.retired_at is null
    and e.moving is null and e.stored_gb <> coalesce(t.gb, 0);
  if v_changed is not null then
    perform set_config('pay.environment_ids', v_changed::text, true);
    update pay.environments e set stored_gb = c.gb
    from unnest(v_changed, v_gbs) as c (id, gb)
    where e.id = c.id and e.moving is null;
  end if;
  return 0;
end $$;

create or replace function pay_internal.reset_every()
returns interval language sql immutable parallel safe as $$ select interval '200 milliseconds' $$;

create or replace function pay_internal.max_waiting_environments()
returns integer language sql immutable parallel safe as $$ select 1000 $$;

create or replace function pay_internal.judge_reset(p_environment_id text, p_request jsonb)
returns text language plpgsql volatile as $$
declare
  -- The account's other sandboxes are not open.
  v_was_worker constant boolean := pay_internal.act_as_worker();
  v_storage_gb constant bigint := (p_request -> 'storage' ->> 0)::bigint;
  -- The resets that are possible at once.
  v_at_once constant integer := 300;
  v_environment pay.environments;
  v_outcome text := 'ok';
begin
  select * into v_environment from pay.environments e where e.id = p_environment_id;
  if (p_request -> 'rate' ->> 1)::integer > 0 then
    v_outcome := case
      when v_environment.resets_until
        > pay_internal.server_time() + v_at_once * pay_internal.reset_every()
        then 'too_often'
      when (select count(*) from (
          select from pay.environments e
          where e.account = v_environment.account and e.retired_at is not null
          limit pay_internal.max_waiting_environments()
        ) waiting) >= pay_internal.max_waiting_environments() then 'waiting'
      else 'ok' end;
  end if;
  if v_outcome = 'ok' and v_storage_gb is not null
    and pay_internal.account_storage(v_environment.account, true) >> 30 >= v_storage_gb
  then
    v_outcome := 'waiting';
  end if;
  perform pay_internal.act_as_worker(v_was_worker);
  return v_outcome;
end $$;

create or replace function pay_internal.server_time()
returns timestamptz language plpgsql stable parallel safe as $$
begin
  return now();
end $$;

create or replace function pay_internal.wire_time(p_at timestamptz)
returns text language plpgsql stable parallel safe as $$
begin
  return to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
end $$;

create or replace function pay_internal.id_floor(p_prefix text, p_at timestamptz)
returns text language plpgsql immutable as $$
declare
  v_rest bigint := floor(extract(epoch from p_at) * 1000);
  v_time text := '';
begin
  for v_character in 1..9 loop
    v_time := substr('0123456789abcdefghjkmnpqrstvwxyz', (v_rest % 32)::integer + 1, 1) || v_time;
    v_rest := v_rest / 32;
  end loop;
  return p_prefix || v_time || repeat('0', 17);
end $$;

create or replace function pay_internal.lock_funds(
  p_requests pay_internal.request[], p_transfers pay_internal.transfer_row[], p_moved integer[],
  p_found pay.admission[]
) returns pay.admission[] language plpgsql volatile as $$
declare
  v_draw record;
  v_fund text := '';
  v_left numeric;
  v_keys text[];
begin
  for v_draw in
    select r.n, f.environment_id, f.api_key_id, t.currency, t.amount_minor, r.idempotency_key,
      f.api_key_id || ' ' || r.idempotency_key as whole_key
    from unnest(p_found) f
    join unnest(p_requests) r on r.n = f.n
    join unnest(p_transfers) t on t.n = r.n
    where f.outcome = 'ok' and r.n <> all (p_moved)
    order by f.environment_id, t.currency, r.n
  loop
    if v_fund <> v_draw.environment_id || v_draw.currency then
      v_fund := v_draw.environment_id || v_draw.currency;
      perform pg_advisory_xact_lock(hashtextextended(v_fund, 0));
      -- A separate statement after the lock, so that it sees the transfers committed before.
      v_left := pay_internal.available_minor(v_draw.environment_id, v_draw.currency);
    end if;
    if v_draw.whole_key = any (v_keys) or exists (
      select from pay.idempotency_keys k
      where k.environment_id = v_draw.environment_id and k.api_key_id = v_draw.api_key_id
        and k.key = v_draw.idempotency_key
    ) then
      -- If pay_internal.claim finds no response, the request is sent again. Nothing was drawn.
      p_found[v_draw.n].outcome := 'expired';
    elsif v_draw.amount_minor > v_left then
      p_found[v_draw.n].outcome := 'insufficient';
    else
      v_left := v_left - v_draw.amount_minor;
      v_keys := v_keys || v_draw.whole_key;
    end if;
  end loop;
  return p_found;
end $$;

create or replace function pay_internal.write_transfers(
  p_transfers pay_internal.transfer_row[], p_lines text[], p_callers pay_internal.caller[],
  p_moved integer[]
) returns void language plpgsql volatile as $$
begin
  insert into pay.transfers
    (environment_id, id, status, amount_minor, currency, sequence, created_at, updated_at, body)
  select caller.environment_id, r.id, r.status, r.amount_minor, r.currency, r.sequence,
    r.created_at, r.updated_at, p_lines[r.body]
  from unnest(p_transfers) r
  join unnest(p_callers) caller on caller.n = r.n
  where r.n <> all (p_moved);
  if p_moved <> '{}' then
    with moved as materialized (
      select r.*, k.place
      from unnest(p_transfers) r
      join unnest(p_callers) caller on caller.n = r.n
      cross join lateral (
        select k.ctid as place from pay.transfers k
        where k.environment_id = caller.environment_id and k.id = r.id limit 1
      ) k
      where r.n = any (p_moved)
    )
    update pay.transfers tr
    set status = r.status, sequence = r.sequence, updated_at = r.updated_at,
      body = p_lines[r.body]
    from moved r
    where tr.ctid = r.place;
  end if;
end $$;

create or replace function pay_internal.max_pending_deliveries()
returns integer language sql immutable parallel safe as $$ select 20000 $$;

create or replace function pay_internal.few_pending_deliveries()
returns integer language sql immutable parallel safe as $$ select 100 $$;

create or replace function pay_internal.count_pending(p_environment_id text, p_most integer)
returns bigint language plpgsql stable as $$
begin
  return (
    select count(*) from (
      select from pay.environments e
      join pay.webhook_endpoints t on t.environment_id = e.id and t.status = 'enabled'
      -- The limit and the order make it a scan of the index that ends there.
      cross join lateral (
        select from pay.webhook_deliveries d
        where d.endpoint_id = t.id and d.status = 'pending'
          and d.environment_id is not distinct from p_environment_id
        order by d.subject_id, d.sequence
        limit p_most
      ) d
      where e.id = p_environment_id and not e.livemode
      limit p_most
    ) counted
  );
end $$;

create or replace function pay_internal.has_backlog(p_environment_id text)
returns boolean language plpgsql stable as $$
begin
  return pay_internal.count_pending(p_environment_id, pay_internal.max_pending_deliveries())
    >= pay_internal.max_pending_deliveries();
end $$;

create or replace function pay.read_pending_quota(p_request text) returns pay.admission
language plpgsql volatile security definer as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request, 'shared', true);
  v_quota bigint;
begin
  if v_access.outcome = 'ok' then
    v_quota := pay_internal.max_pending_deliveries()
      - pay_internal.count_pending(v_access.environment_id, pay_internal.max_pending_deliveries());
    v_access.outcome := case when v_quota > 0 then 'ok' else 'backlog' end;
    v_access.body := v_quota;
  end if;
  return v_access;
end $$;
grant execute on function pay.read_pending_quota to pay_api;

create or replace function pay_internal.find_uncounted(
  p_requests pay_internal.request[], p_events pay_internal.event_row[], p_found pay.admission[]
) returns pay.admission[] language plpgsql volatile as $$
declare
  v_many constant text[] := array(
    select a.environment_id
    -- The offset keeps the planner from counting for each request.
    from (
      select distinct f.environment_id from unnest(p_found) f
      where f.outcome = 'ok' and p_requests[f.n].has_quota is not true offset 0
    ) a
    where pay_internal.count_pending(a.environment_id, pay_internal.few_pending_deliveries())
      >= pay_internal.few_pending_deliveries());
  v_n integer;
begin
  if v_many = '{}' then return p_found; end if;
  for v_n in
    select distinct e.n from unnest(p_events) e
    join pay.webhook_endpoints t
      on t.environment_id = p_found[e.n].environment_id
      and t.status = 'enabled' and t.events && pay_internal.patterns_of(e.type)
    where p_found[e.n].outcome = 'ok' and p_found[e.n].environment_id = any (v_many)
      and p_requests[e.n].has_quota is not true
  loop
    p_found[v_n].outcome := 'uncounted';
  end loop;
  return p_found;
end $$;

create or replace function pay_internal.delivery_stem(p_event_id text)
returns text language plpgsql immutable parallel safe as $$
begin
  return 'whd_' || substr(p_event_id, 5, 23) || right(p_event_id, 1) || substr(p_event_id, 28, 1);
end $$;

create or replace function pay_internal.deliveries_of(p_environment_id text, p_event_id text)
returns setof pay.webhook_deliveries language plpgsql stable rows 2 as $$
declare
  v_stem constant text := left(pay_internal.delivery_stem(p_event_id), -1);
begin
  return query
    select d.* from pay.webhook_deliveries d
    where d.environment_id = p_environment_id and d.event_id = p_event_id
      and d.id > v_stem and d.id < v_stem || '~';
end $$;

create or replace function pay_internal.blocking_delivery(p_delivery pay.webhook_deliveries)
returns text language plpgsql stable as $$
begin
  return (
    select d.id
    from pay.webhook_deliveries d
    where d.status = 'pending'
      and d.environment_id is not distinct from p_delivery.environment_id
      and d.endpoint_id = p_delivery.endpoint_id
      and d.subject_id = p_delivery.subject_id
      and d.sequence < p_delivery.sequence
    order by d.sequence
    limit 1
  );
end $$;

create or replace function pay_internal.webhook_delivery_body(p_delivery pay.webhook_deliveries)
returns text language sql stable as $$
  select case when b.blocked_by is null then b.body
    else left(b.body, -1) || ',"blocked_by":"' || b.blocked_by || '"}' end
  from (
    select row_to_json(t)::text as body,
      case when t.status = 'pending' and p_delivery.sequence is not null
        then pay_internal.blocking_delivery(p_delivery) end as blocked_by
    from (
      select
        p_delivery.id,
        'webhook_delivery' as object,
        p_delivery.event_id,
        p_delivery.event_type,
        p_delivery.endpoint_id,
        case when p_delivery.subject_id like 'pay\_%' then p_delivery.subject_id end as payment_id,
        p_delivery.status,
        array_to_json(p_delivery.attempts) as attempts,
        -- The dispatcher's column can be infinite if the sandbox has a clock of its own.
        case when p_delivery.status = 'pending' then pay_internal.wire_time(
          coalesce(p_delivery.due_at, p_delivery.next_attempt_at)) end as next_attempt_at,
        pay_internal.wire_time(p_delivery.created_at) as created_at
    ) t
  ) b
$$;

create or replace function pay_internal.log_attempts(p_entries jsonb)
returns void language plpgsql volatile as $$
declare
  -- Mostly false, so that no entry is looked up.
  v_are_erased constant boolean := exists (select from pay.erasures);
  -- The newest attempts of a delivery.
  v_logged constant integer := 5;
begin
  insert into pay.attempt_log as x (environment_id, delivery_id, slot, attempt, url, headers,
    response, response_truncated, stored_at)
  select distinct on (d.environment_id, d.id)
    d.environment_id, d.id, r.attempt % v_logged, r.attempt, r.url, r.headers,
    a.response, a.response is not null and r.response_truncated is true,
    pay_internal.server_time()
  from jsonb_to_recordset(p_entries) as r (
    environment_id text, id text, attempt integer, url text, headers text, response text,
    response_truncated boolean
  )
  join pay.webhook_deliveries d
    on d.environment_id = r.environment_id and d.id = r.id and d.attempt_count = r.attempt
  join pay.environments e
    on e.id = d.environment_id and not e.livemode and e.retired_at is null
  cross join lateral (
    -- A receiver can repeat what it got before an erasure.
    select case when not (v_are_erased and pay_internal.is_just_erased(d)) then r.response end
      as response offset 0
  ) a
  order by d.environment_id, d.id
  on conflict on constraint attempt_log_pkey do update
  set attempt = excluded.attempt, url = excluded.url, headers = excluded.headers,
    response = excluded.response, response_truncated = excluded.response_truncated,
    stored_at = excluded.stored_at
  where x.attempt < excluded.attempt;
end $$;

create or replace function pay_internal.whole_delivery_body(p_delivery pay.webhook_deliveries)
returns text language plpgsql stable as $$
declare
  v_body constant text := pay_internal.webhook_delivery_body(p_delivery);
  v_entries text;
begin
  select string_agg(row_to_json(t)::text, ',' order by t.attempt) into v_entries
  from (
    select x.attempt,
      (select row_to_json(q) from (
        select x.url, x.headers::json as headers, pay_internal.event_body(v) as body
      ) q) as request,
      (select row_to_json(a) from (
        select x.response as text, x.response_truncated as truncated
      ) a where x.response is not null) as response
    from pay.attempt_log x
    join pay.events v on v.environment_id = x.environment_id and v.id = p_delivery.event_id
    where x.environment_id = p_delivery.environment_id and x.delivery_id = p_delivery.id
  ) t;
  return case when v_entries is null then v_body
    else left(v_body, -1) || ',"exchanges":[' || v_entries || ']}' end;
end $$;

create or replace function pay_internal.purge_attempt_log(
  p_environment_id text, p_at timestamptz, p_batch integer, out deleted bigint
) language plpgsql volatile as $$
begin
  -- In order, because with a limit alone a scan of the table looks cheap while its statistics are
  -- old.
  with old as materialized (
    select o.environment_id, o.delivery_id, o.slot
    from pay.attempt_log o
    where o.stored_at < p_at - interval '7 days'
      and (p_environment_id is null or o.environment_id = p_environment_id)
    order by o.stored_at
    limit p_batch for update skip locked
  )
  delete from pay.attempt_log t using old
  where t.environment_id = old.environment_id and t.delivery_id = old.delivery_id
    and t.slot = old.slot;
  get diagnostics deleted = row_count;
end $$;

create or replace function pay_internal.webhook_endpoint_body(p_endpoint pay.webhook_endpoints)
returns text language sql immutable as $$
  select case when p_endpoint.failing_since is not null and p_endpoint.status = 'enabled'
    then left(p_endpoint.body, -1) || ',"failing":true}'
    else p_endpoint.body end
$$;

create or replace function pay_internal.insert_webhook_endpoint(p_endpoint pay.webhook_endpoints)
returns boolean language plpgsql volatile as $$
declare
  v_endpoint pay.webhook_endpoints := p_endpoint;
begin
  perform pg_advisory_xact_lock(hashtextextended(v_endpoint.environment_id, 0));
  select min(free.slot) into v_endpoint.slot
  from pay.environments e
  cross join generate_series(0, case when e.livemode then 15 else 63 end) as free (slot)
  where e.id = v_endpoint.environment_id and not exists (
    select from pay.webhook_endpoints t
    where t.environment_id = e.id and t.slot = free.slot
  );
  if v_endpoint.slot is null then return false; end if;
  insert into pay.webhook_endpoints
    (environment_id, id, slot, delivery, url, events, status, secrets, revision, created_at, body)
  values
    (v_endpoint.environment_id, v_endpoint.id, v_endpoint.slot, v_endpoint.delivery, v_endpoint.url,
      v_endpoint.events, v_endpoint.status, v_endpoint.secrets, v_endpoint.revision,
      v_endpoint.created_at, v_endpoint.body);
  return true;
end $$;

create or replace function pay_internal.max_sandbox_endpoints()
returns integer language sql immutable parallel safe as $$ select 2000 $$;

create or replace function pay_internal.take_endpoint_quota(p_environment_id text)
returns boolean language plpgsql volatile as $$
declare
  v_was_worker boolean;
  v_account text;
  v_count bigint;
begin
  select e.account into v_account from pay.environments e
  where e.id = p_environment_id and e.ends_at is not null;
  if v_account is null then return true; end if;
  perform pg_advisory_xact_lock(hashtextextended('endpoints ' || v_account, 0));
  v_was_worker := pay_internal.act_as_worker();
  select count(*) into v_count from (
    select from pay.sandboxes sandbox
    join pay.environments e on e.public_id = sandbox.id and e.retired_at is null
    join pay.webhook_endpoints t on t.environment_id = e.id
    where sandbox.account = v_account and sandbox.expires_at > pay_internal.server_time()
    limit pay_internal.max_sandbox_endpoints()
  ) l;
  perform pay_internal.act_as_worker(v_was_worker);
  return v_count < pay_internal.max_sandbox_endpoints();
end $$;

create or replace function pay_internal.write_webhook_endpoint(
  p_environment_id text, p_id text, p_before pay.webhook_endpoints, p_endpoint pay.webhook_endpoints
) returns text language plpgsql volatile as $$
declare
  v_is_deleted boolean := p_endpoint.id is null;
begin
  if p_before.status = 'disabled' and p_before.delivery = 'url' and p_endpoint.status = 'enabled'
    and pay_internal.call_off_deliveries(p_environment_id, p_id, pay_internal.called_off_at_once())
  then
    return 'calling_off';
  end if;
  if p_before.delivery = 'inbox' and v_is_deleted
    and not pay_internal.call_off_inbox(p_environment_id, p_id)
  then
    return 'calling_off';
  end if;
  if p_before.delivery = 'inbox' and p_endpoint.delivery = 'url'
    and not pay_internal.empty_inbox(p_environment_id, p_id)
  then
    return 'unread';
  end if;
  if v_is_deleted then
    delete from pay.webhook_endpoints t where t.environment_id = p_environment_id and t.id = p_id;
  elsif p_before.id is null then
    if not pay_internal.take_endpoint_quota(p_environment_id) then return 'crowded'; end if;
    if not pay_internal.insert_webhook_endpoint(p_endpoint) then return 'full'; end if;
  else
    update pay.webhook_endpoints t
    set delivery = p_endpoint.delivery, url = p_endpoint.url, events = p_endpoint.events,
      status = p_endpoint.status,
      secrets = p_endpoint.secrets, revision = p_endpoint.revision, body = p_endpoint.body,
      failing_since = case
        when p_endpoint.status = t.status and p_endpoint.url = t.url then t.failing_since
      end
    where t.environment_id = p_environment_id and t.id = p_id;
  end if;
  -- A disabled inbox keeps the deliveries from before.
  if v_is_deleted or (p_endpoint.status = 'disabled' and p_endpoint.delivery = 'url') then
    perform pay_internal.call_off_deliveries(
      p_environment_id, p_id, pay_internal.called_off_at_once());
  end if;
  return 'committed';
end $$;

create or replace function pay.change_webhook_endpoint(
  p_request text, p_id text, p_expects_revision integer, p_endpoint text
) returns pay.admission language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request);
  v_before pay.webhook_endpoints;
  v_endpoint pay.webhook_endpoints;
begin
  if v_access.outcome = 'ok' and p_expects_revision is not null then
    select * into v_before from pay.webhook_endpoints t
    where t.environment_id = v_access.environment_id and t.id = p_id
    for update;
    -- Stale also if it is gone: the caller loads it again and is told that it is not there.
    if v_before.revision is distinct from p_expects_revision then
      v_access.outcome := 'stale';
    end if;
  end if;
  v_access := pay_internal.claim_one(p_request, v_access);
  if v_access.outcome <> 'ok' then return v_access; end if;
  if p_endpoint is not null then
    v_endpoint := json_populate_record(null::pay.webhook_endpoints, p_endpoint::json);
    v_endpoint.environment_id := v_access.environment_id;
  end if;
  v_access.outcome := pay_internal.write_webhook_endpoint(
    v_access.environment_id, p_id, v_before, v_endpoint);
  if v_access.outcome <> 'committed' then
    perform pay_internal.release_key(p_request, v_access);
  end if;
  return v_access;
end $$;
grant execute on function pay.change_webhook_endpoint to pay_api;

create or replace function pay.begin_trigger(p_request text, p_trigger text) returns pay.admission
language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request);
  v_request jsonb := p_request::jsonb -> 0;
  v_trigger record;
  v_delivery pay.webhook_deliveries;
  v_leased_until timestamptz;
begin
  select *, t.leased_until - v_access.at as lease into v_trigger
  from json_to_record(p_trigger::json) as t (
    endpoint_id text, event_id text, type text, subject_id text, body text, request_id text,
    traceparent text, delivery_id text, leased_until timestamptz
  );
  v_leased_until := pay_internal.server_time() + v_trigger.lease;
  if v_access.outcome = 'ok' then
    delete from pay.idempotency_keys k
    where k.environment_id = v_access.environment_id and k.api_key_id = v_access.api_key_id
      and k.key = v_request ->> 'idempotency_key' and k.status = 102
      -- Not a request with the same key that waits for a provider.
      and k.fingerprint = decode(v_request ->> 'fingerprint', 'hex')
      and k.created_at <= pay_internal.server_time() + coalesce(v_access.ahead, '0')
        - v_trigger.lease;
    if not exists (
      select from pay.webhook_endpoints t
      where t.environment_id = v_access.environment_id and t.id = v_trigger.endpoint_id
    ) then
      v_access.outcome := 'not_found';
    end if;
    -- Waits for an erasure, which does not see the event, or makes it wait.
    if exists (
      select from pay.payments p
      where p.environment_id = v_access.environment_id and p.id = v_trigger.subject_id
        and p.is_erased for share
    ) then
      v_trigger.body := pay_internal.without_persons(v_trigger.body);
    end if;
  end if;
  v_access := pay_internal.claim_one(p_request, v_access);
  if v_access.outcome = 'ok' then
    insert into pay.events
      (environment_id, id, type, subject_id, sequence, created_at, body, request_id, traceparent)
    values (v_access.environment_id, v_trigger.event_id, v_trigger.type, v_trigger.subject_id, null,
      v_access.at, v_trigger.body, v_trigger.request_id, v_trigger.traceparent);
    insert into pay.webhook_deliveries
      (environment_id, id, event_id, event_type, endpoint_id, subject_id, sequence, status,
        attempt_count, next_attempt_at, leased_until, created_at, due_at)
    values
      (v_access.environment_id, v_trigger.delivery_id, v_trigger.event_id, v_trigger.type,
        v_trigger.endpoint_id, v_trigger.subject_id, null, 'pending',
        case when v_leased_until is null then 0 else 1 end,
        coalesce(v_leased_until, pay_internal.server_time()), v_leased_until, v_access.at,
        case when v_access.ahead is not null then v_access.at end);
    v_access.outcome := 'committed';
  end if;
  if v_access.outcome = 'committed' and v_leased_until is null then
    perform pay_internal.fill_inbox(
      v_access.environment_id, v_trigger.endpoint_id, pay_internal.inbox_fill());
    select * into v_delivery from pay.webhook_deliveries d
    where d.environment_id = v_access.environment_id and d.id = v_trigger.delivery_id;
    v_access.status := 200;
    v_access.body := pay_internal.webhook_delivery_body(v_delivery);
    perform pay_internal.store_response(p_request, v_access);
  end if;
  return v_access;
end $$;
grant execute on function pay.begin_trigger to pay_api;

create or replace function pay.end_trigger(
  p_request text, p_delivery_id text, p_delivered boolean, p_attempt text, p_entry text default null
) returns pay.admission language plpgsql volatile security definer as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request);
  v_delivery pay.webhook_deliveries;
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  update pay.webhook_deliveries d
  set status = case when p_delivered then 'delivered' else 'failed' end,
    attempts = array[p_attempt::json], next_attempt_at = null, leased_until = null
  where d.environment_id = v_access.environment_id and d.id = p_delivery_id
    and d.attempt_count = 1
  returning * into v_delivery;
  if v_delivery.id is null then
    v_access.outcome := 'not_found';
    return v_access;
  end if;
  if p_entry is not null then
    perform pay_internal.log_attempts(jsonb_build_array(p_entry::jsonb || jsonb_build_object(
      'environment_id', v_delivery.environment_id, 'id', v_delivery.id,
      'attempt', v_delivery.attempt_count)));
  end if;
  v_access.outcome := 'committed';
  v_access.status := 200;
  v_access.body := pay_internal.webhook_delivery_body(v_delivery);
  perform pay_internal.store_response(p_request, v_access);
  return v_access;
end $$;
grant execute on function pay.end_trigger to pay_api;

create or replace function pay_internal.called_off_at_once()
returns integer language sql immutable parallel safe as $$ select 5000 $$;

create or replace function pay_internal.call_off_deliveries(
  p_environment_id text, p_endpoint_id text, p_most integer
) returns boolean language sql volatile as $$
  with called_off as (
    update pay.webhook_deliveries d
    set status = 'cancelled', next_attempt_at = null, leased_until = null
    from (
      select w.id from pay.webhook_deliveries w
      where w.environment_id = p_environment_id and w.endpoint_id = p_endpoint_id
        and w.status = 'pending'
        and (w.leased_until is null or w.leased_until <= pay_internal.server_time())
      limit p_most
      for update skip locked
    ) waiting
    where d.environment_id = p_environment_id and d.id = waiting.id
    returning d.id
  )
  select count(*) >= p_most from called_off
$$;

create or replace function pay.load_webhook_endpoint(p_environment_id text, p_id text)
returns table (revision integer, status text, body text)
language plpgsql volatile security definer rows 1 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select t.revision, t.status, t.body from pay.webhook_endpoints t
    where t.environment_id = p_environment_id and t.id = p_id;
end $$;
grant execute on function pay.load_webhook_endpoint to pay_api;

create or replace function pay.disable_webhook_endpoint(
  p_environment_id text, p_id text, p_expects_revision integer, p_at timestamptz,
  p_endpoint_body text, p_event_id text, p_delivery_id text
) returns text language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  update pay.webhook_endpoints t
  set status = 'disabled', revision = t.revision + 1, body = p_endpoint_body
  where t.environment_id = p_environment_id and t.id = p_id
    and t.revision = p_expects_revision and t.status = 'enabled';
  if not found then return 'stale'; end if;
  perform pay_internal.call_off_deliveries(
    p_environment_id, p_id, pay_internal.called_off_at_once());
  perform pay_internal.write_events(
    array[row(1, p_event_id, 'webhook_endpoint.disabled', p_id, p_expects_revision + 1, p_at,
      p_delivery_id, null, null, null, 1, null)::pay_internal.event_row], array[p_endpoint_body],
    array[row(1, p_environment_id, null, (
      select pay_internal.time_ahead(w) from pay.sandbox_settings w
      where w.environment_id = p_environment_id))::pay_internal.caller]);
  return 'committed';
end $$;
grant execute on function pay.disable_webhook_endpoint to pay_api;

create or replace function pay_internal.give_faults(
  p_due pay_internal.due_delivery[], p_at timestamptz
) returns pay_internal.due_delivery[] language plpgsql volatile as $$
declare
  v_delivery record;
  v_fault pay.faults;
  v_kept text[] := '{}';
begin
  for v_delivery in
    select d.environment_id, d.id, d.endpoint_id, d.event_type, d.subject_id,
      d.attempt_count + 1 as attempt, d.sequence is null as has_no_order
    from unnest(p_due) c
    join pay.webhook_deliveries d on d.environment_id = c.environment_id and d.id = c.id
    where not c.is_expired and d.fault_attempt is distinct from d.attempt_count + 1
      and exists (
        select from pay.faults f
        where f.kind = 'delivery' and f.environment_id = c.environment_id and f.times_left > 0
      )
    order by d.endpoint_id, d.subject_id, d.sequence, d.id
  loop
    v_fault := pay_internal.next_fault(v_delivery.environment_id, 'delivery',
      jsonb_build_object(
        'endpoint_id', v_delivery.endpoint_id, 'event_type', v_delivery.event_type),
      true,
      case when v_delivery.has_no_order
        or pay_internal.reordered_delivery(v_delivery.environment_id, v_delivery.endpoint_id,
          v_delivery.subject_id) is not null then 'reorder' end);
    continue when v_fault.id is null;
    update pay.webhook_deliveries d
    set fault = v_fault.fault, fault_attempt = v_delivery.attempt,
      status = case v_fault.fault when 'drop_until_recovered' then 'failed' else d.status end,
      next_attempt_at =
        case when v_fault.fault <> 'drop_until_recovered' then d.next_attempt_at end,
      due_at = case when v_fault.fault <> 'drop_until_recovered' then d.due_at end
    where d.environment_id = v_delivery.environment_id and d.id = v_delivery.id;
    case v_fault.fault
      when 'delay' then
        perform pay_internal.delay_delivery(v_delivery.environment_id, v_delivery.id,
          p_at, v_fault.delay_ms * interval '1 ms');
        v_kept := v_kept || v_delivery.id;
      when 'drop_until_recovered' then
        v_kept := v_kept || v_delivery.id;
        -- The reordered delivery that waits for the next one.
        perform pay_internal.release_next_deliveries(array[v_delivery.environment_id], array[
          pay_internal.reordered_delivery(v_delivery.environment_id, v_delivery.endpoint_id,
            v_delivery.subject_id)], p_at);
      when 'reorder' then
        v_kept := array_remove(v_kept || v_delivery.id
          || pay_internal.put_after_next(v_delivery.environment_id, v_delivery.id, p_at), null);
      else
        null;
    end case;
  end loop;
  return array(select c from unnest(p_due) c where c.id <> all (v_kept));
end $$;

create or replace function pay_internal.delay_delivery(
  p_environment_id text, p_id text, p_at timestamptz, p_wait interval
) returns void language plpgsql volatile as $$
declare
  v_due_at constant timestamptz := pay_internal.environment_time(p_environment_id) + p_wait;
begin
  update pay.webhook_deliveries d
  set due_at = case when d.due_at is not null then v_due_at end,
    next_attempt_at = case when d.due_at is null then p_at + p_wait
      else pay_internal.real_due(p_environment_id, v_due_at) end
  where d.environment_id = p_environment_id and d.id = p_id;
end $$;

create or replace function pay_internal.reordered_delivery(
  p_environment_id text, p_endpoint_id text, p_subject_id text
) returns text language plpgsql stable as $$
begin
  return (
    select d.id from pay.webhook_deliveries d
    where d.status = 'pending'
      and d.environment_id is not distinct from p_environment_id
      and d.endpoint_id = p_endpoint_id
      and d.subject_id = p_subject_id
      and d.fault = 'reorder' and d.fault_attempt = d.attempt_count + 1
    limit 1
  );
end $$;

create or replace function pay_internal.put_after_next(
  p_environment_id text, p_id text, p_at timestamptz
) returns text language plpgsql volatile as $$
declare
  v_longest_wait constant interval := '1 minute';
  v_behind_all constant integer := 1000000000;
  v_delivery pay.webhook_deliveries;
  v_next record;
begin
  select * into v_delivery from pay.webhook_deliveries d
  where d.environment_id = p_environment_id and d.id = p_id;
  select w.id, w.sequence into v_next
  from pay.webhook_deliveries w
  where w.status = 'pending'
    and w.environment_id is not distinct from v_delivery.environment_id
    and w.endpoint_id = v_delivery.endpoint_id
    and w.subject_id = v_delivery.subject_id
    and w.sequence > v_delivery.sequence
  order by w.sequence
  limit 1
  for update skip locked;
  if v_next.id is null then
    update pay.webhook_deliveries d set sequence = v_behind_all
    where d.environment_id = p_environment_id and d.id = p_id;
    perform pay_internal.delay_delivery(p_environment_id, p_id, p_at, v_longest_wait);
  else
    update pay.webhook_deliveries d
    set sequence = case d.id when p_id then v_next.sequence else v_delivery.sequence end
    where d.environment_id = p_environment_id and d.id in (p_id, v_next.id);
  end if;
  return v_next.id;
end $$;

create or replace function pay_internal.waits_for_fault(p_delivery pay.webhook_deliveries)
returns boolean language plpgsql stable as $$
begin
  if p_delivery.fault_attempt <> p_delivery.attempt_count + 1 then return false; end if;
  return p_delivery.fault = 'delay' or (p_delivery.fault = 'reorder' and not exists (
    select from pay.events v
    join pay.events o
      on o.environment_id = v.environment_id and o.subject_id = v.subject_id
      and o.sequence > v.sequence
    cross join lateral pay_internal.deliveries_of(o.environment_id, o.id) w
    where v.environment_id = p_delivery.environment_id and v.id = p_delivery.event_id
      and w.endpoint_id = p_delivery.endpoint_id and w.status <> 'pending'
  ));
end $$;

create or replace function pay_internal.give_inbox_faults(
  p_environment_id text, p_endpoint_id text, p_most integer, p_at timestamptz
) returns text[] language plpgsql volatile as $$
declare
  v_due pay_internal.due_delivery[];
begin
  select array_agg(row(p_environment_id, c.id, p_endpoint_id, c.subject_id, c.sequence, c.event_id,
    0, false)::pay_internal.due_delivery)
  into v_due
  from (
    select d.id, d.subject_id, d.sequence, d.event_id
    from pay.webhook_deliveries d
    where d.status = 'pending' and d.endpoint_id = p_endpoint_id
      and d.environment_id is not distinct from p_environment_id
      and (d.leased_until is null or d.leased_until <= p_at)
      and (d.next_attempt_at <= p_at or not pay_internal.is_held_back(d, p_at))
      and (d.sequence is not null or d.attempt_count > 0)
    order by d.subject_id, d.sequence
    limit p_most
    for update skip locked
  ) c;
  if v_due is not null then perform pay_internal.give_faults(v_due, p_at); end if;
  return array(select c.id from unnest(v_due) c);
end $$;

create or replace function pay_internal.is_held_back(
  p_delivery pay.webhook_deliveries, p_at timestamptz
) returns boolean language plpgsql stable as $$
begin
  if p_delivery.next_attempt_at > p_at and pay_internal.waits_for_fault(p_delivery) then
    return true;
  end if;
  return exists (
    select from pay.webhook_deliveries w
    where w.status = 'pending'
      and w.environment_id is not distinct from p_delivery.environment_id
      and w.endpoint_id = p_delivery.endpoint_id
      and w.subject_id = p_delivery.subject_id
      and w.sequence < p_delivery.sequence
      and w.fault is not null and w.next_attempt_at > p_at and pay_internal.waits_for_fault(w)
  );
end $$;

create or replace function pay_internal.release_reordered(
  p_environment_id text, p_endpoint_id text, p_at timestamptz
) returns boolean language plpgsql volatile as $$
declare
  v_ids text[];
begin
  select array_agg(d.id) into v_ids from pay.webhook_deliveries d
  where d.status = 'pending' and d.endpoint_id = p_endpoint_id
    and d.environment_id is not distinct from p_environment_id
    and d.fault = 'reorder' and d.fault_attempt = d.attempt_count + 1 and d.next_attempt_at > p_at;
  if v_ids is null then return false; end if;
  perform pay_internal.release_next_deliveries(
    array_fill(p_environment_id, array[cardinality(v_ids)]), v_ids, p_at);
  return true;
end $$;

create or replace function pay_internal.reschedule_behind_held(
  p_environment_id text, p_endpoint_id text, p_at timestamptz
) returns void language plpgsql volatile as $$
begin
  with behind as materialized (
    select d.id, h.next_attempt_at, h.due_at
    from pay.webhook_deliveries h
    join pay.webhook_deliveries d
      on d.status = 'pending'
      and d.environment_id is not distinct from p_environment_id
      and d.endpoint_id = p_endpoint_id
      and d.subject_id = h.subject_id
      and d.sequence > h.sequence
      and d.next_attempt_at <= p_at
    where h.status = 'pending' and h.endpoint_id = p_endpoint_id
      and h.environment_id is not distinct from p_environment_id
      and h.fault is not null and h.next_attempt_at > p_at and pay_internal.waits_for_fault(h)
    order by d.id
    for update of d skip locked
  )
  update pay.webhook_deliveries d
  set next_attempt_at = b.next_attempt_at, due_at = greatest(d.due_at, b.due_at)
  from (
    select o.id, max(o.next_attempt_at) as next_attempt_at, max(o.due_at) as due_at
    from behind o group by o.id
  ) b
  where d.environment_id = p_environment_id and d.id = b.id;
end $$;

create or replace function pay_internal.inbox_fill()
returns integer language sql immutable parallel safe as $$ select 1000 $$;

create or replace function pay_internal.fill_inbox(
  p_environment_id text, p_endpoint_id text, p_most integer
) returns bigint language plpgsql volatile as $$
declare
  v_at constant timestamptz := pay_internal.server_time();
  v_position bigint;
  v_checked text[];
  v_added bigint;
begin
  select t.inbox_position into v_position from pay.webhook_endpoints t
  where t.environment_id = p_environment_id and t.id = p_endpoint_id and t.delivery = 'inbox'
  for update;
  if v_position is null then return 0; end if;
  -- One probe of an index that is mostly empty.
  if exists (
    select from pay.faults fault
    where fault.kind = 'delivery' and fault.environment_id = p_environment_id
      and fault.times_left > 0
  ) then
    v_checked := pay_internal.give_inbox_faults(p_environment_id, p_endpoint_id, p_most, v_at);
  end if;
  v_added := pay_internal.add_to_inbox(
    p_environment_id, p_endpoint_id, v_position, p_most, v_at, v_checked);
  -- If less than p_most were added, few are left, so this reads few rows.
  if v_added < p_most and exists (
    select from pay.webhook_deliveries d
    where d.status = 'pending' and d.endpoint_id = p_endpoint_id
      and d.environment_id is not distinct from p_environment_id and d.fault is not null
  ) then
    if pay_internal.release_reordered(p_environment_id, p_endpoint_id, v_at) then
      v_added := v_added + pay_internal.add_to_inbox(
        p_environment_id, p_endpoint_id, v_position + v_added, p_most, v_at, v_checked);
    end if;
    perform pay_internal.reschedule_behind_held(p_environment_id, p_endpoint_id, v_at);
  end if;
  if v_added > 0 then
    update pay.webhook_endpoints t
    set inbox_position = v_position + v_added
    where t.environment_id = p_environment_id and t.id = p_endpoint_id;
  end if;
  return v_added;
end $$;

create or replace function pay_internal.add_to_inbox(
  p_environment_id text, p_endpoint_id text, p_position bigint, p_most integer, p_at timestamptz,
  p_checked text[], out added bigint
) language plpgsql volatile as $$
begin
  with
  found as materialized (
    select d.id, d.subject_id, d.sequence, d.next_attempt_at
    from pay.webhook_deliveries d
    where d.status = 'pending' and d.endpoint_id = p_endpoint_id
      and d.environment_id is not distinct from p_environment_id
      and (d.leased_until is null or d.leased_until <= p_at)
      and (d.next_attempt_at <= p_at or not pay_internal.is_held_back(d, p_at))
      and (p_checked is null or d.id = any (p_checked) or d.fault_attempt = d.attempt_count + 1
        or d.sequence is null and d.attempt_count = 0)
    order by d.subject_id, d.sequence
    limit p_most
    for update skip locked
  ),
  chosen as (
    select f.*,
      max(f.next_attempt_at) over (partition by f.subject_id order by f.sequence, f.id) as due_at
    from found f
    where f.sequence is null or not exists (
      select from pay.webhook_deliveries w
      where w.status = 'pending'
        and w.environment_id is not distinct from p_environment_id
        and w.endpoint_id = p_endpoint_id
        and w.subject_id = f.subject_id
        and w.sequence < f.sequence
        and w.id not in (select o.id from found o)
    )
  ),
  placed as materialized (
    select c.id, p_position + row_number() over (
        order by c.due_at, c.subject_id, c.sequence, c.id) as position
    from chosen c
  ),
  made_available as (
    update pay.webhook_deliveries d
    set status = 'available', next_attempt_at = null, leased_until = null, expired_leases = 0,
      attempt_count = d.attempt_count + 1
    from placed p
    where d.environment_id = p_environment_id and d.id = p.id
  ),
  entered as (
    insert into pay.inbox_entries as entry (environment_id, delivery_id, endpoint_id, position)
    select p_environment_id, p.id, p_endpoint_id, p.position from placed p
    on conflict (environment_id, delivery_id) do update set position = excluded.position
    returning entry.position
  )
  select count(*) into added from entered;
end $$;

create or replace function pay_internal.fill_inboxes(p_environments text[], p_endpoints text[])
returns void language plpgsql volatile as $$
declare
  v_endpoint record;
begin
  for v_endpoint in
    select t.environment_id, t.id
    from unnest(p_environments, p_endpoints) as o (environment_id, id)
    join pay.webhook_endpoints t on t.environment_id = o.environment_id and t.id = o.id
    -- Polls that count faults of several sandboxes lock them in one order.
    order by t.environment_id, t.id
    for update of t skip locked
  loop
    perform pay_internal.fill_inbox(
      v_endpoint.environment_id, v_endpoint.id, pay_internal.inbox_fill());
  end loop;
end $$;

create or replace function pay_internal.acknowledge_inbox(
  p_environment_id text, p_endpoint_id text, p_from bigint, p_to bigint
) returns void language plpgsql volatile as $$
declare
  v_most constant integer := 1000;
  v_to bigint;
begin
  if p_to - p_from > v_most then
    select entry.position into v_to from pay.inbox_entries entry
    where entry.environment_id = p_environment_id and entry.endpoint_id = p_endpoint_id
      and entry.position > p_from and entry.position <= p_to
    order by entry.position offset v_most - 1 limit 1;
  end if;
  v_to := coalesce(v_to, p_to);
  update pay.webhook_deliveries d
  set status = 'delivered'
  from (
    select entry.delivery_id from pay.inbox_entries entry
    where entry.environment_id = p_environment_id and entry.endpoint_id = p_endpoint_id
      and entry.position > p_from and entry.position <= v_to
    order by entry.delivery_id
  ) read
  where d.environment_id = p_environment_id and d.id = read.delivery_id
    and d.status || '' = 'available';
  update pay.webhook_endpoints t
  set inbox_acknowledged = v_to
  where t.environment_id = p_environment_id and t.id = p_endpoint_id;
end $$;

create or replace function pay_internal.inbox_page(
  p_endpoint pay.webhook_endpoints, p_after bigint, p_most integer
) returns text language plpgsql stable as $$
begin
  return (
    with
    entry as materialized (
      select e.delivery_id, e.position from pay.inbox_entries e
      where e.environment_id = p_endpoint.environment_id and e.endpoint_id = p_endpoint.id
        and e.position > p_after
      order by e.position limit p_most
    ),
    shown as (
      select e.position, d.id, d.event_id, d.attempt_count as attempt, b.body, v.traceparent,
        case d.fault_attempt when d.attempt_count then d.fault end as fault,
        row_number() over (order by e.position) as n,
        sum(octet_length(b.body)) over (order by e.position) as bytes
      from entry e
      join pay.webhook_deliveries d
        on d.environment_id = p_endpoint.environment_id and d.id = e.delivery_id
        -- A delivery that is pending again gets a new position.
        and d.status || '' in ('available', 'delivered')
      join pay.events v on v.environment_id = p_endpoint.environment_id and v.id = d.event_id
      cross join lateral (select pay_internal.event_body(v) as body offset 0) b
    )
    select json_build_object(
      'public_id', (
        select e.public_id from pay.environments e where e.id = p_endpoint.environment_id),
      'account', (select e.account from pay.environments e where e.id = p_endpoint.environment_id),
      'position', case
        when bool_or(s.n > 1 and s.bytes > pay_internal.page_bytes())
          or (select count(*) from entry) = p_most
          then coalesce(
            min(s.position) filter (where s.n > 1 and s.bytes > pay_internal.page_bytes()) - 1,
            (select max(e.position) from entry e))
        else greatest(p_endpoint.inbox_position, p_after)
      end,
      'newest', p_endpoint.inbox_position,
      'secrets', p_endpoint.secrets,
      'data', coalesce(
        json_agg(
          json_build_object('id', s.id, 'event_id', s.event_id, 'attempt', s.attempt,
            'fault', s.fault, 'body', s.body, 'traceparent', s.traceparent)
          order by s.position
        ) filter (where s.n = 1 or s.bytes <= pay_internal.page_bytes()), '[]')
    )::text
    from shown s
  );
end $$;

create or replace function pay.read_inbox(
  p_request text, p_id text, p_after bigint, p_most integer
) returns pay.admission language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request, 'shared', true);
  v_endpoint pay.webhook_endpoints;
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  if exists (
    select from pay.webhook_deliveries d
    where d.status = 'pending' and d.endpoint_id = p_id
      and d.environment_id is not distinct from v_access.environment_id
  ) then
    perform pay_internal.fill_inbox(v_access.environment_id, p_id, pay_internal.inbox_fill());
  end if;
  select * into v_endpoint from pay.webhook_endpoints t
  where t.environment_id = v_access.environment_id and t.id = p_id;
  v_access.outcome := case
    when v_endpoint.id is null then 'not_found'
    when v_endpoint.delivery <> 'inbox' then 'no_inbox'
    when p_after > v_endpoint.inbox_position then 'unknown_position'
    else 'ok'
  end;
  if v_access.outcome = 'ok' then
    if p_after > v_endpoint.inbox_acknowledged then
      select * into v_endpoint from pay.webhook_endpoints t
      where t.environment_id = v_access.environment_id and t.id = p_id
      for update;
      if p_after > v_endpoint.inbox_acknowledged then
        perform pay_internal.acknowledge_inbox(
          v_access.environment_id, p_id, v_endpoint.inbox_acknowledged, p_after);
      end if;
    end if;
    v_access.body := pay_internal.inbox_page(
      v_endpoint, coalesce(p_after, v_endpoint.inbox_acknowledged), p_most);
  end if;
  return v_access;
end $$;
grant execute on function pay.read_inbox to pay_api;

create or replace function pay_internal.has_entries(p_endpoint_id text)
returns boolean language plpgsql stable as $$
declare
  v_now constant timestamptz := pay_internal.server_time();
begin
  return exists (
    select from pay.webhook_deliveries d
    where d.endpoint_id = p_endpoint_id and d.expired_leases = 0 and d.next_attempt_at <= v_now
      and (d.leased_until is null or d.leased_until <= v_now)
  ) or exists (
    select from (
      select d from pay.webhook_deliveries d
      where d.status = 'pending' and d.endpoint_id = p_endpoint_id
        and (d.leased_until is null or d.leased_until <= v_now)
      limit 100
    ) w
    where not pay_internal.is_held_back(w.d, v_now)
  );
end $$;

create or replace function pay.changed_inboxes(p_waiting text) returns table (endpoint_id text)
language plpgsql volatile security definer rows 10 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select w.endpoint_id
    from json_to_recordset(p_waiting::json) as w (
      environment_id text, endpoint_id text, after bigint
    )
    left join pay.webhook_endpoints t
      on t.environment_id = w.environment_id and t.id = w.endpoint_id and t.delivery = 'inbox'
    where t.id is null or t.inbox_position > w.after or pay_internal.has_entries(w.endpoint_id);
end $$;
grant execute on function pay.changed_inboxes to pay_api;

create or replace function pay_internal.empty_inbox(p_environment_id text, p_endpoint_id text)
returns boolean language plpgsql volatile as $$
declare
  v_unread text[] := pay_internal.unread_deliveries(p_environment_id, p_endpoint_id);
begin
  if cardinality(v_unread) > pay_internal.called_off_at_once() then return false; end if;
  update pay.webhook_deliveries d
  set status = 'pending', next_attempt_at = least(d.created_at, pay_internal.server_time()),
    due_at = null
  where d.environment_id = p_environment_id and d.id = any (v_unread);
  update pay.webhook_endpoints t set inbox_acknowledged = t.inbox_position
  where t.environment_id = p_environment_id and t.id = p_endpoint_id;
  return true;
end $$;

create or replace function pay_internal.call_off_inbox(p_environment_id text, p_endpoint_id text)
returns boolean language plpgsql volatile as $$
declare
  v_unread constant text[] := pay_internal.unread_deliveries(p_environment_id, p_endpoint_id);
  v_cancelled constant text[] := v_unread[:pay_internal.called_off_at_once()];
begin
  update pay.webhook_deliveries d
  set status = 'cancelled'
  where d.environment_id = p_environment_id and d.id = any (v_cancelled);
  update pay.webhook_endpoints t
  set inbox_acknowledged = entry.position
  from pay.inbox_entries entry
  where t.environment_id = p_environment_id and t.id = p_endpoint_id
    and entry.environment_id = p_environment_id
    and entry.delivery_id = v_cancelled[cardinality(v_cancelled)];
  return cardinality(v_unread) <= pay_internal.called_off_at_once();
end $$;

create or replace function pay_internal.unread_deliveries(p_environment_id text, p_endpoint_id text)
returns text[] language plpgsql volatile as $$
declare
  v_acknowledged constant bigint := (
    select t.inbox_acknowledged from pay.webhook_endpoints t
    where t.environment_id = p_environment_id and t.id = p_endpoint_id);
begin
  return array(
    select entry.delivery_id from pay.inbox_entries entry
    cross join lateral (
      select from pay.webhook_deliveries d
      where d.environment_id = p_environment_id and d.id = entry.delivery_id
        and d.status || '' = 'available' limit 1
    ) d
    where entry.environment_id = p_environment_id and entry.endpoint_id = p_endpoint_id
      and entry.position > v_acknowledged
    order by entry.position
    limit pay_internal.called_off_at_once() + 1
  );
end $$;

create or replace function pay_internal.lock_due(
  p_endpoints text[], p_capacity integer[], p_quotas integer[], p_reads integer[], p_at timestamptz,
  out due pay_internal.due_delivery[]
) language plpgsql volatile as $$
declare
  v_is_any_expired boolean;
begin
  select
    array_agg(row(c.environment_id, c.id, c.endpoint_id, c.subject_id, c.sequence, c.event_id,
      c.rank - c.quota, c.is_expired)::pay_internal.due_delivery),
    bool_or(c.is_expired)
  into due, v_is_any_expired
  from (
    select l.*, o.capacity, o.quota,
      rank() over (partition by l.endpoint_id order by l.next_attempt_at, l.subject_id) as rank
    from unnest(p_endpoints, p_capacity, p_quotas, p_reads)
      as o (endpoint_id, capacity, quota, reads)
    cross join lateral (
      select d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.event_id,
        d.next_attempt_at, d.leased_until is not null as is_expired
      from pay.webhook_deliveries d
      where d.endpoint_id = o.endpoint_id and d.next_attempt_at <= p_at and d.expired_leases = 0
        and (d.leased_until is null or d.leased_until <= p_at)
      order by d.next_attempt_at, d.subject_id, d.sequence
      limit o.reads
      for update skip locked
    ) l
  ) c
  where c.rank <= c.capacity;

  if v_is_any_expired then
    update pay.webhook_deliveries d
    set expired_leases = 1, leased_until = null
    from unnest(due) c
    where c.is_expired and d.environment_id = c.environment_id and d.id = c.id;
  end if;
end $$;

create or replace function pay_internal.within_capacity(
  p_due pay_internal.due_delivery[], p_capacity jsonb, p_limit integer, p_per_environment integer,
  p_per_account integer
) returns table (
  environment_id text, id text, endpoint_id text, subject_id text, sequence integer, event_id text,
  rank_of_endpoint bigint, url text, secrets text, failing_since timestamptz, livemode boolean,
  public_id text, account text
) language plpgsql stable rows 10 as $$
#variable_conflict use_column
begin
  return query
  with
  shared as (
    select c.*, t.url, t.secrets, t.failing_since, e.livemode, e.public_id, e.account,
      rank() over (partition by e.public_id order by c.rank_of_endpoint, c.endpoint_id)
        <= coalesce((p_capacity -> 'environments' ->> e.public_id)::integer, p_per_environment)
      and rank() over (partition by e.account order by c.rank_of_endpoint, c.endpoint_id)
        <= coalesce((p_capacity -> 'accounts' ->> e.account)::integer, p_per_account) as is_within
    from unnest(p_due) c
    join pay.webhook_endpoints t
      on t.environment_id = c.environment_id and t.id = c.endpoint_id and t.status = 'enabled'
        and t.delivery = 'url'
    join pay.environments e on e.id = c.environment_id
    where not c.is_expired
  )
  select s.environment_id, s.id, s.endpoint_id, s.subject_id, s.sequence, s.event_id,
    s.rank_of_endpoint, s.url, s.secrets::text, s.failing_since, s.livemode, s.public_id, s.account
  from shared s
  where s.is_within
  order by s.rank_of_endpoint, s.endpoint_id
  fetch first (p_limit) rows with ties;
end $$;

create or replace function pay_internal.lease_due(
  p_due pay_internal.due_delivery[], p_capacity jsonb, p_limit integer, p_per_environment integer,
  p_per_account integer, p_leased_until timestamptz, p_ahead interval
) returns setof pay.leased_delivery language plpgsql volatile rows 10 as $$
begin
  return query
  with
  counted as (
    select k.*, count(*) over (
        partition by k.endpoint_id, k.subject_id order by k.sequence
        range between unbounded preceding and 1 preceding
      ) as taken_before
    from pay_internal.within_capacity(
      p_due, p_capacity, p_limit, p_per_environment, p_per_account) k
  ),
  judged as materialized (
    select k.*,
      -- All earlier events are taken as well.
      k.sequence is null or (k.taken_before < 100 and earlier.known = k.taken_before) as is_next,
      min(k.rank_of_endpoint) over (partition by k.endpoint_id, k.subject_id) as rank_of_chain
    from counted k
    cross join lateral (
      select count(*) as known from (
        select from pay.webhook_deliveries d
        where d.status = 'pending'
          and d.environment_id is not distinct from k.environment_id
          and d.endpoint_id = k.endpoint_id
          and d.subject_id = k.subject_id
          and d.sequence < k.sequence
        -- One more than those that are taken is enough.
        limit least(k.taken_before, 99) + 1
      ) l
    ) earlier
  ),
  leased as (
    update pay.webhook_deliveries d
    set attempt_count = d.attempt_count + 1, leased_until = p_leased_until
    from judged j
    where j.is_next and d.environment_id = j.environment_id and d.id = j.id
    returning j.*, d.attempt_count,
      case d.fault_attempt when d.attempt_count then d.fault end as fault
  )
  select c.environment_id, c.public_id, c.account, c.id, c.endpoint_id, c.event_id, c.subject_id,
    c.attempt_count, c.url, c.secrets, c.livemode,
    -- In the caller's time, because the caller computes how long the endpoint has been failing.
    c.failing_since + p_ahead, false, false,
    -- As pay_internal.event_body, with the payments of the list read together.
    coalesce(v.body, pay_internal.event_payload(v, coalesce(v.object, case
      when p.body is null then pay_internal.text_at(v.environment_id, v.subject_id, v.sequence)
      else pay_internal.take_back(
        p.body, p.sequence, v.environment_id, v.subject_id, v.sequence) end), c.livemode)), (
      select row_to_json(w)::text from pay.sandbox_settings w
      where w.environment_id = c.environment_id), c.fault, v.traceparent, p_leased_until::text
  from leased c
  join pay.events v on v.environment_id = c.environment_id and v.id = c.event_id
  left join lateral (
    select t.body, t.sequence from pay.payments t
    where t.environment_id = c.environment_id and t.id = c.subject_id limit 1
  ) p on true
  order by c.rank_of_chain, c.endpoint_id, c.subject_id, c.sequence;
end $$;

create or replace function pay_internal.reschedule_deliveries(
  p_due pay_internal.due_delivery[], p_at timestamptz
) returns void language plpgsql volatile as $$
begin
  with
  left_over as materialized (
    select d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.next_attempt_at
    from unnest(p_due) c
    join pay.webhook_deliveries d on d.environment_id = c.environment_id and d.id = c.id
    where d.leased_until is null or d.leased_until <= p_at
  ),
  judged as materialized (
    select l.*, t.status = 'enabled' or t.delivery = 'inbox' as enabled, blocker.id as blocker_id,
      blocker.next_attempt_at as blocked_until, blocker.leased_until as blocker_leased_until,
      blocker.due_at as blocker_due_at,
      l.sequence - blocker.sequence as distance
    from left_over l
    left join pay.webhook_endpoints t
      on t.environment_id = l.environment_id and t.id = l.endpoint_id
    left join lateral (
      select d.id, d.sequence, d.next_attempt_at, d.leased_until, d.due_at
      from pay.webhook_deliveries d
      where d.status = 'pending'
        and d.environment_id is not distinct from l.environment_id
        and d.endpoint_id = l.endpoint_id
        and d.subject_id = l.subject_id
        and d.sequence < l.sequence
      order by d.sequence
      limit 1
    ) blocker on true
  ),
  called_off as (
    update pay.webhook_deliveries d
    set status = 'cancelled', next_attempt_at = null, leased_until = null
    from judged j
    where j.enabled is not true and d.environment_id = j.environment_id and d.id = j.id
  )
  update pay.webhook_deliveries d
  set next_attempt_at = case
      -- The earlier delivery releases this one. A short wait would check thousands of rows often.
      when j.blocker_leased_until > p_at and j.distance > 100 then p_at + interval '1 minute'
      when j.blocker_leased_until > p_at then p_at + interval '5 seconds'
      else greatest(j.blocked_until, p_at + interval '1 second')
    end,
    -- The clock of a sandbox that stands makes both due at the same time.
    due_at = case when j.blocker_leased_until > p_at then d.due_at
      else greatest(d.due_at, j.blocker_due_at) end
  from judged j
  where j.enabled and j.blocker_id is not null
    and (
      -- A poll has leased the blocker: this one or another.
      (j.environment_id, j.blocker_id) not in (select o.environment_id, o.id from left_over o)
      -- The blocker is due later: every poll would look at this one in its place.
      or j.blocked_until > j.next_attempt_at
    )
    and d.environment_id = j.environment_id and d.id = j.id;
end $$;

create or replace function pay_internal.lease_poison(
  p_poison_ahead jsonb, p_at timestamptz, p_leased_until timestamptz, p_ahead interval,
  p_excluded text[], p_only text
) returns setof pay.leased_delivery language plpgsql volatile rows 10 as $$
declare
  v_longest_look constant interval := '200 ms';
  v_due pay_internal.due_delivery[];
  v_is_leased boolean;
begin
  loop
    v_due := pay_internal.lock_poison(p_poison_ahead, p_at, p_excluded, p_only);
    exit when v_due is null;
    return query select * from pay_internal.lease_first_poison(v_due, p_leased_until, p_ahead);
    v_is_leased := found;
    -- Postpones poison deliveries that wait for an earlier delivery, and cancels those of disabled
    -- endpoints.
    perform pay_internal.reschedule_deliveries(v_due, p_at);
    exit when v_is_leased or clock_timestamp() > statement_timestamp() + v_longest_look;
  end loop;
end $$;

create or replace function pay_internal.lock_poison(
  p_ahead jsonb, p_at timestamptz, p_excluded text[], p_only text
) returns pay_internal.due_delivery[] language plpgsql volatile as $$
begin
  return (
    with recursive poisoned as (
      (select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
       where d.next_attempt_at is not null and d.expired_leases > 0
         and d.endpoint_id >= coalesce(p_only, '')
       order by d.endpoint_id limit 1)
      union all
      select n.environment_id, n.endpoint_id
      from poisoned s
      cross join lateral (
        select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
        where d.next_attempt_at is not null and d.expired_leases > 0
          and d.endpoint_id > s.endpoint_id
        order by d.endpoint_id limit 1
      ) n
      where p_only is null
    )
    select array_agg(
      row(l.environment_id, l.id, l.endpoint_id, l.subject_id, l.sequence, l.event_id, null,
        l.leased_until is not null)::pay_internal.due_delivery
      order by coalesce((p_ahead ->> e.account)::float8, 0), e.account,
        l.expired_leases, l.next_attempt_at, l.subject_id, l.sequence
    )
    from poisoned s
    join pay.environments e on e.id = s.environment_id and e.moving is null
    -- A delivery that moves to an inbox is a poison delivery until it is there.
    left join pay.webhook_endpoints t
      on t.environment_id = s.environment_id and t.id = s.endpoint_id
    cross join lateral (
      select d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.event_id,
        d.leased_until, d.expired_leases, d.next_attempt_at
      from pay.webhook_deliveries d
      where d.endpoint_id = s.endpoint_id and d.next_attempt_at <= p_at and d.expired_leases > 0
        and (d.leased_until is null or d.leased_until <= p_at)
      order by d.expired_leases, d.next_attempt_at, d.subject_id, d.sequence
      limit 2
      for update skip locked
    ) l
    where t.delivery is distinct from 'inbox'
      and s.endpoint_id <> all (p_excluded) and s.endpoint_id = coalesce(p_only, s.endpoint_id)
  );
end $$;

create or replace function pay_internal.lease_first_poison(
  p_due pay_internal.due_delivery[], p_leased_until timestamptz, p_ahead interval
) returns setof pay.leased_delivery language plpgsql volatile rows 10 as $$
declare
  v_most_expired constant integer := 3;
begin
  return query
  with
  chosen as materialized (
    select d.environment_id, d.id, t.url, t.secrets, t.failing_since, e.livemode, e.public_id,
      e.account, c.is_expired, c.is_expired and d.expired_leases + 1 >= v_most_expired as crashed
    from unnest(p_due) with ordinality as c
      (environment_id, id, endpoint_id, subject_id, sequence, event_id, rank, is_expired, n)
    join pay.webhook_deliveries d on d.environment_id = c.environment_id and d.id = c.id
    join pay.webhook_endpoints t
      on t.environment_id = d.environment_id and t.id = d.endpoint_id and t.status = 'enabled'
        and t.delivery = 'url'
    join pay.environments e on e.id = d.environment_id
    where pay_internal.blocking_delivery(d) is null
    order by c.n
    limit 1
  ),
  leased as (
    update pay.webhook_deliveries d
    set attempt_count = d.attempt_count + case when c.crashed then 0 else 1 end,
      expired_leases = d.expired_leases + case when c.is_expired then 1 else 0 end,
      leased_until = p_leased_until
    from chosen c
    where d.environment_id = c.environment_id and d.id = c.id
    returning c.*, d.endpoint_id, d.event_id, d.subject_id, d.attempt_count
  )
  select c.environment_id, c.public_id, c.account, c.id, c.endpoint_id, c.event_id, c.subject_id,
    c.attempt_count, c.url, c.secrets::text, c.livemode, c.failing_since + p_ahead, true, c.crashed,
    pay_internal.event_body(v), (
      select row_to_json(w)::text from pay.sandbox_settings w
      where w.environment_id = c.environment_id), null, v.traceparent, p_leased_until::text
  from leased c
  join pay.events v on v.environment_id = c.environment_id and v.id = c.event_id;
end $$;

create or replace function pay.poll_deliveries(
  p_results text, p_capacity text, p_limit integer, p_per_endpoint integer,
  p_per_environment integer, p_per_account integer, p_poison_ahead text, p_at timestamptz,
  p_leased_until timestamptz, p_excluded text default '[]', p_only text default null
) returns setof pay.leased_delivery
language plpgsql volatile security definer rows 10 set search_path = pg_catalog, pg_temp
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off
-- Each delivery is looked up once. A bitmap of the pending ones would read all of them: the first
-- plan is made while there is none.
set enable_memoize = off set enable_bitmapscan = off as $$
declare
  v_longest_look constant interval := '100 ms';
  -- The lead of the caller's clock over the server's.
  v_ahead constant interval := greatest(p_at - pay_internal.server_time(), '0');
  v_at constant timestamptz := p_at - v_ahead;
  -- By the server's time: other dispatchers would find a lease of a slow clock expired.
  v_leased_until constant timestamptz := pay_internal.server_time() + (p_leased_until - p_at);
  v_capacity constant jsonb := p_capacity::jsonb;
  v_excluded constant text[] := array(select json_array_elements_text(p_excluded::json));
  v_waiting record;
  v_due pay_internal.due_delivery[];
  v_leased integer;
begin
  perform pay_internal.act_as_worker();
  if p_results <> '{}' then
    perform pay_internal.record_attempts(p_results::jsonb, v_at, v_ahead);
  end if;
  if p_limit <= 0 then return; end if;

  select * into v_waiting
  from pay_internal.find_capacity(
    v_capacity, p_limit, p_per_endpoint, p_per_environment, p_per_account, v_excluded, p_only);
  if v_waiting.inbox_endpoints is not null then
    perform pay_internal.fill_inboxes(v_waiting.inbox_environments, v_waiting.inbox_endpoints);
  end if;
  if v_waiting.off_endpoint is not null then
    -- Fewer if results wait for the end of this poll.
    perform pay_internal.call_off_deliveries(v_waiting.off_environment, v_waiting.off_endpoint,
      case when p_results = '{}' then 2000 else 250 end);
  end if;

  -- If all due deliveries wait for earlier ones, the poll looks at those behind them, for as long
  -- as others can wait for it. Postponed deliveries stay postponed, and the next poll continues.
  loop
    v_due := pay_internal.lock_due(
      v_waiting.endpoints, v_waiting.capacity, v_waiting.quotas, v_waiting.reads, v_at);
    exit when v_due is null;
    -- One probe of an index that is mostly empty.
    if exists (select from pay.faults fault where fault.kind = 'delivery'
      and fault.times_left > 0) then
      v_due := pay_internal.give_faults(v_due, v_at);
    end if;
    return query select * from pay_internal.lease_due(
      v_due, v_capacity, p_limit, p_per_environment, p_per_account, v_leased_until, v_ahead);
    get diagnostics v_leased = row_count;
    if v_leased < cardinality(v_due) then
      perform pay_internal.reschedule_deliveries(v_due, v_at);
    end if;
    exit when v_leased > 0 or clock_timestamp() > statement_timestamp() + v_longest_look;
  end loop;

  -- Checked first, because there is usually none and the function costs a third of an empty poll.
  if p_poison_ahead is not null and exists (
    select from pay.webhook_deliveries d
    where d.next_attempt_at is not null and d.expired_leases > 0
  ) then
    return query
      select * from pay_internal.lease_poison(
        p_poison_ahead::jsonb, v_at, v_leased_until, v_ahead, v_excluded, p_only);
  end if;
end $$;
grant execute on function pay.poll_deliveries to pay_api;

create or replace function pay.find_failing_endpoints(p_at timestamptz, p_after text)
returns table (endpoint_id text, code text)
language plpgsql volatile security definer rows 10 set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  v_until constant timestamptz := clock_timestamp() + interval '2 seconds';
  v_undone constant text := 'PY000';
  v_last text := p_after;
begin
  perform pay_internal.act_as_worker();
  loop
    select d.endpoint_id into v_last from pay.webhook_deliveries d
    where d.status = 'pending' and d.endpoint_id > v_last
    order by d.endpoint_id limit 1;
    exit when v_last is null;
    begin
      perform pay.poll_deliveries(
        '{}', '{}', 1000, 1000, 1000, 1000, '{}', p_at, p_at, '[]', v_last);
      raise exception using errcode = v_undone;
    exception when others then
      if sqlstate <> v_undone then
        raise warning 'a poll of the dispatcher for % fails: % %', v_last, sqlstate, sqlerrm;
        return query select v_last, sqlstate;
      end if;
    end;
    if clock_timestamp() > v_until then
      return query select v_last, null::text;
      return;
    end if;
  end loop;
end $$;
grant execute on function pay.find_failing_endpoints to pay_api;

create or replace function pay_internal.waiting_endpoints(p_excluded text[], p_only text)
returns table (
  environment_id text, endpoint_id text, public_id text, account text, is_failing boolean,
  is_on boolean, is_inbox boolean, has_entries boolean, of_environment bigint, of_account bigint,
  of_all bigint
) language plpgsql stable rows 10 as $$
#variable_conflict use_column
begin
  return query
  with recursive waiting as (
    (select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
     where d.status = 'pending' and d.endpoint_id >= coalesce(p_only, '')
     order by d.endpoint_id limit 1)
    union all
    select n.environment_id, n.endpoint_id
    from waiting w
    cross join lateral (
      select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
      where d.status = 'pending' and d.endpoint_id > w.endpoint_id
      order by d.endpoint_id limit 1
    ) n
    where p_only is null
  )
  select w.environment_id, w.endpoint_id, e.public_id, e.account, k.is_failing, k.is_on, k.is_inbox,
    k.is_inbox and pay_internal.has_entries(w.endpoint_id),
    count(*) filter (where k.shares) over (partition by e.public_id),
    count(*) filter (where k.shares) over (partition by e.account),
    count(*) filter (where k.shares) over ()
  from waiting w
  join pay.environments e on e.id = w.environment_id and e.moving is null
  left join pay.webhook_endpoints t on t.environment_id = w.environment_id and t.id = w.endpoint_id
  cross join lateral (
    select t.failing_since is not null as is_failing,
      coalesce(t.status = 'enabled' and t.delivery = 'url', false) as is_on,
      coalesce(t.delivery = 'inbox', false) as is_inbox,
      t.status = 'enabled' and t.delivery = 'url' and t.failing_since is null as shares
  ) k
  where w.endpoint_id <> all (p_excluded) and w.endpoint_id = coalesce(p_only, w.endpoint_id);
end $$;

create or replace function pay_internal.find_capacity(
  p_capacity jsonb, p_limit integer, p_per_endpoint integer, p_per_environment integer,
  p_per_account integer, p_excluded text[], p_only text, out endpoints text[],
  out capacity integer[], out quotas integer[], out reads integer[], out off_environment text,
  out off_endpoint text, out inbox_environments text[], out inbox_endpoints text[]
) language plpgsql stable as $$
declare
  -- As many rows as one request makes due at a moment, except the first.
  v_rest constant integer := 4;
begin
  select array_agg(w.endpoint_id) filter (where w.is_on and r.capacity > 0),
    array_agg(r.capacity) filter (where w.is_on and r.capacity > 0),
    -- An endpoint that has leases comes after those that have none, however quick it is.
    array_agg(
      case when r.left_of_endpoint is null then p_per_endpoint
        else least(r.left_of_endpoint, p_per_endpoint - 1)
      end
    ) filter (where w.is_on and r.capacity > 0),
    -- The poll would give back most deliveries that it leases of a failing endpoint.
    array_agg(r.capacity + case when w.is_failing then 0 else v_rest end)
      filter (where w.is_on and r.capacity > 0),
    (array_agg(w.environment_id) filter (where not w.is_on and not w.is_inbox))[1],
    (array_agg(w.endpoint_id) filter (where not w.is_on and not w.is_inbox))[1],
    (array_agg(w.environment_id) filter (where w.has_entries))[:16],
    (array_agg(w.endpoint_id) filter (where w.has_entries))[:16]
  into endpoints, capacity, quotas, reads, off_environment, off_endpoint, inbox_environments,
    inbox_endpoints
  from pay_internal.waiting_endpoints(p_excluded, p_only) w
  cross join lateral (
    select o.left_of_endpoint, least(
      coalesce(o.left_of_endpoint, p_per_endpoint),
      -- Twice the share of each limit: what the others do not need, the next poll gives.
      min(least(l.free, (2 * l.free + l.sharers - 1) / l.sharers)),
      case when w.is_failing then 2 end
    ) as capacity
    from (select (p_capacity -> 'endpoints' ->> w.endpoint_id)::integer as left_of_endpoint) o
    cross join lateral (values
      (coalesce((p_capacity -> 'environments' ->> w.public_id)::integer, p_per_environment),
        greatest(w.of_environment, 1)),
      (coalesce((p_capacity -> 'accounts' ->> w.account)::integer, p_per_account),
        greatest(w.of_account, 1)),
      (p_limit, greatest(w.of_all, 1))
    ) l (free, sharers)
    group by o.left_of_endpoint
  ) r;
end $$;

create or replace function pay.redeliver(p_request text, p_id text, p_refusal text)
returns pay.admission language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.claim_one(p_request, pay_internal.admit_one(p_request));
  v_delivery pay.webhook_deliveries;
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  select * into v_delivery from pay.webhook_deliveries d
  where d.environment_id = v_access.environment_id and d.id = p_id
  for update;
  if v_delivery.id is null then
    v_access.outcome := 'not_found';
    perform pay_internal.release_key(p_request, v_access);
    return v_access;
  end if;
  if v_delivery.status <> 'pending' and pay_internal.has_backlog(v_access.environment_id) then
    v_access.outcome := 'backlog';
    perform pay_internal.release_key(p_request, v_access);
    return v_access;
  end if;
  if exists (
    select from pay.webhook_endpoints t
    where t.environment_id = v_access.environment_id and t.id = v_delivery.endpoint_id
      and t.status = 'enabled'
  ) then
    -- An attempt that is under way goes on; the delivery is then due again only if it fails.
    if v_delivery.status <> 'available'
      and (v_delivery.leased_until is null
        or v_delivery.leased_until <= v_access.at - coalesce(v_access.ahead, '0'))
    then
      update pay.webhook_deliveries d
      set status = 'pending', next_attempt_at = least(v_access.at, pay_internal.server_time()),
        due_at = case when v_access.ahead is not null then v_access.at end
      where d.environment_id = v_access.environment_id and d.id = p_id
      returning * into v_delivery;
    end if;
    v_access.outcome := 'committed';
    v_access.status := 200;
    v_access.body := pay_internal.webhook_delivery_body(v_delivery);
  else
    v_access.outcome := 'off';
    v_access.status := 409;
    v_access.body := p_refusal;
  end if;
  perform pay_internal.store_response(p_request, v_access);
  return v_access;
end $$;
grant execute on function pay.redeliver to pay_api;

create or replace function pay.recover_deliveries(
  p_request text, p_id text, p_from text, p_before text, p_after text, p_statuses text[],
  p_refusal text
) returns pay.admission language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_most_read constant integer := 20000;
  v_access pay.admission := pay_internal.claim_one(p_request, pay_internal.admit_one(p_request));
  v_status text;
  v_ids text[];
  v_cursor text;
  v_count bigint;
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  select t.status into v_status from pay.webhook_endpoints t
  where t.environment_id = v_access.environment_id and t.id = p_id;
  if v_status is null then
    v_access.outcome := 'not_found';
    perform pay_internal.release_key(p_request, v_access);
    return v_access;
  end if;
  if v_status = 'disabled' then
    v_access.outcome := 'off';
    v_access.status := 409;
    v_access.body := p_refusal;
    perform pay_internal.store_response(p_request, v_access);
    return v_access;
  end if;

  if pay_internal.has_backlog(v_access.environment_id) then
    v_access.outcome := 'backlog';
    perform pay_internal.release_key(p_request, v_access);
    return v_access;
  end if;

  select m.ids, m.cursor into v_ids, v_cursor
  from pay_internal.missed_deliveries(
    v_access.environment_id, p_id, p_from, p_before, p_after, p_statuses, v_most_read) m;
  with locked as materialized (
    select d.id from pay.webhook_deliveries d
    where d.environment_id = v_access.environment_id and d.id = any (v_ids)
      and d.status || '' = any (p_statuses)
    order by d.id
    for update of d
  ),
  recovered as (
    update pay.webhook_deliveries d
    set status = 'pending', next_attempt_at = pay_internal.server_time(),
      due_at = case when v_access.ahead is not null then v_access.at end
    from locked l
    where d.environment_id = v_access.environment_id and d.id = l.id
    returning 1
  )
  select count(*) into v_count from recovered;
  v_access.outcome := 'committed';
  v_access.status := 202;
  v_access.body := json_build_object('object', 'recovery', 'endpoint_id', p_id, 'count', v_count,
    'has_more', v_cursor is not null, 'next_cursor', v_cursor);
  perform pay_internal.store_response(p_request, v_access);
  return v_access;
end $$;
grant execute on function pay.recover_deliveries to pay_api;

create or replace function pay_internal.missed_deliveries(
  p_environment_id text, p_endpoint_id text, p_from text, p_before text, p_after text,
  p_statuses text[], p_most_read integer, out ids text[], out cursor text
) language sql stable as $$
  with
  read as materialized (
    select d.id, d.status from pay.webhook_deliveries d
    where d.endpoint_id = p_endpoint_id and d.environment_id = p_environment_id
      and d.id >= p_from and d.id < p_before and d.id > coalesce(p_after, '')
    order by d.id
    limit p_most_read
  ),
  missed as materialized (
    select r.id from read r
    where r.status = any (p_statuses)
    order by r.id
    limit pay_internal.called_off_at_once()
  )
  select array_agg(m.id order by m.id),
    case
      when count(*) = pay_internal.called_off_at_once() then max(m.id)
      when (select count(*) from read) = p_most_read then (select max(r.id) from read r)
    end
  from missed m
$$;

create or replace function pay_internal.record_attempts(
  p_results jsonb, p_at timestamptz, p_ahead interval
) returns void language plpgsql volatile as $$
declare
  v_ended constant jsonb := p_results -> 'ended';
  v_released constant jsonb := p_results -> 'released';
  v_log_entries constant jsonb := p_results -> 'log_entries';
  v_recorded record;
begin
  if v_released <> '[]' then
    update pay.webhook_deliveries d
    set attempt_count = d.attempt_count - 1, leased_until = null
    from jsonb_to_recordset(v_released) as r (
      environment_id text, id text, attempt integer, leased_until timestamptz
    )
    where d.environment_id = r.environment_id and d.id = r.id
      and d.attempt_count = r.attempt and d.leased_until = r.leased_until;
  end if;

  select * into v_recorded from pay_internal.record_results(v_ended, p_at, p_ahead);
  if v_recorded.next_ids is not null then
    perform pay_internal.release_next_deliveries(
      v_recorded.next_environments, v_recorded.next_ids, p_at);
  end if;
  perform pay_internal.count_attempts(v_ended);
  if v_log_entries <> '[]' then perform pay_internal.log_attempts(v_log_entries); end if;
  if v_recorded.turned_ids is not null then
    perform pay_internal.note_failing_endpoints(
      v_recorded.turned_environments, v_recorded.turned_ids, v_recorded.turned_to_success, p_at);
  end if;
end $$;

create or replace function pay_internal.ended_attempts(p_ended jsonb, p_ahead interval)
returns table (
  environment_id text, id text, attempt integer, leased_until timestamptz, outcome text,
  next_attempt_at timestamptz, record text, due_at timestamptz
) language plpgsql stable rows 16 as $$
#variable_conflict use_column
begin
  return query
    select r.environment_id, r.id, r.attempt, r.leased_until, r.outcome, r.next_attempt_at,
      r.record,
      -- The sandbox can have got a clock of its own in the attempt.
      coalesce(r.due_at, r.next_attempt_at - p_ahead + (
        select pay_internal.time_ahead(w) from pay.sandbox_settings w
        where w.environment_id = r.environment_id and r.next_attempt_at is not null
      ))
    from jsonb_to_recordset(p_ended) as r (
      environment_id text, id text, attempt integer, leased_until timestamptz, outcome text,
      next_attempt_at timestamptz, record text, due_at timestamptz
    );
end $$;

create or replace function pay_internal.record_results(
  p_ended jsonb, p_at timestamptz, p_ahead interval, out next_environments text[],
  out next_ids text[], out turned_environments text[], out turned_ids text[],
  out turned_to_success boolean[]
) language plpgsql volatile as $$
declare
  v_most constant integer := 50;
begin
  with
  result as materialized (
    select * from pay_internal.ended_attempts(p_ended, p_ahead) r order by r.environment_id, r.id
  ),
  recorded as (
    update pay.webhook_deliveries d
    set status = case
        when r.outcome = 'delivered' then 'delivered'
        when r.next_attempt_at is null then 'failed'
        else 'pending'
      end,
      next_attempt_at = case
        when r.next_attempt_at is null or r.due_at is null then r.next_attempt_at - p_ahead
        else pay_internal.real_due(r.environment_id, r.due_at) end,
      due_at = case when r.next_attempt_at is not null then r.due_at end,
      leased_until = null,
      -- The process survived the attempt. A crashed delivery stays a poison delivery.
      expired_leases = case when d.expired_leases < 3 then 0 else d.expired_leases end,
      -- At most v_most, because a delivery can be redelivered any number of times, and each record
      -- rewrites the row. The first one stays, because an invariant checks the order by it.
      attempts = case when cardinality(d.attempts) < v_most then d.attempts
        else d.attempts[:1] || d.attempts[3:] end || r.record::json
    from result r
    where d.environment_id = r.environment_id and d.id = r.id
      and d.attempt_count = r.attempt and d.leased_until = r.leased_until
    returning d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.status, r.outcome
  ),
  next as (
    select array_agg(r.environment_id) as environments, array_agg(n.id) as ids
    from recorded r
    cross join lateral (
      select w.id, w.leased_until
      from pay.webhook_deliveries w
      where w.status = 'pending'
        and w.environment_id is not distinct from r.environment_id
        and w.endpoint_id = r.endpoint_id
        and w.subject_id = r.subject_id
        and w.sequence > r.sequence
      order by w.sequence
      limit 1
    ) n
    where r.status <> 'pending' and (n.leased_until is null or n.leased_until <= p_at)
  ),
  turned as (
    select array_agg(t.environment_id) as environments, array_agg(t.id) as ids,
      array_agg(e.any_delivered) as to_success
    from (
      select r.environment_id, r.endpoint_id, bool_or(r.outcome = 'delivered') as any_delivered
      from recorded r group by r.environment_id, r.endpoint_id
    ) e
    join pay.webhook_endpoints t on t.environment_id = e.environment_id and t.id = e.endpoint_id
    where (t.failing_since is null) <> e.any_delivered
  )
  select n.environments, n.ids, t.environments, t.ids, t.to_success
  into next_environments, next_ids, turned_environments, turned_ids, turned_to_success
  from next n cross join turned t;
end $$;

create or replace function pay_internal.release_next_deliveries(
  p_environments text[], p_ids text[], p_at timestamptz
) returns void language plpgsql volatile as $$
begin
  with waiting as materialized (
    select d.environment_id, d.id
    from unnest(p_environments, p_ids) as n (environment_id, id)
    join pay.webhook_deliveries d on d.environment_id = n.environment_id and d.id = n.id
    where d.status || '' = 'pending' and (d.leased_until is null or d.leased_until <= p_at)
      and (d.fault is null or not pay_internal.waits_for_fault(d))
    order by d.environment_id, d.id
    for update of d
  )
  update pay.webhook_deliveries d
  set next_attempt_at = least(d.created_at, p_at),
    due_at = case when d.due_at is not null then d.created_at end
  from waiting w
  where d.environment_id = w.environment_id and d.id = w.id;
end $$;

create or replace function pay_internal.note_failing_endpoints(
  p_environments text[], p_ids text[], p_to_success boolean[], p_at timestamptz
) returns void language plpgsql volatile as $$
begin
  with turned as materialized (
    select t.environment_id, t.id, u.to_success
    from unnest(p_environments, p_ids, p_to_success) as u (environment_id, id, to_success)
    join pay.webhook_endpoints t on t.environment_id = u.environment_id and t.id = u.id
    for update of t skip locked
  )
  update pay.webhook_endpoints t
  set failing_since = case when not u.to_success then p_at end
  from turned u
  where t.environment_id = u.environment_id and t.id = u.id
    and (t.failing_since is null) <> u.to_success;
end $$;

create or replace function pay.configure_relay(p_url text, p_token text)
returns void language plpgsql volatile security definer as $$
begin
  if p_url !~ '^https?://[^[:space:]]+/api-v1-payments/internal/relay$' then
    raise exception 'relay url must end in /api-v1-payments/internal/relay'
      using errcode = 'invalid_parameter_value';
  end if;
  if p_token !~ '^[!-~]{16,200}$' then
    raise exception 'relay token must be 16 to 200 visible ASCII characters'
      using errcode = 'invalid_parameter_value';
  end if;
  perform pay_internal.act_as_worker();
  insert into pay.settings (name, value)
  values ('relay_url', p_url), ('relay_token', p_token)
  on conflict on constraint settings_pkey do update set value = excluded.value;
end $$;
grant execute on function pay.configure_relay to pay_operator;

create or replace function pay.due_wake() returns table (url text, token text)
language plpgsql volatile security definer rows 1 as $$
begin
  perform pay_internal.act_as_worker();
  if not exists (
    select from pay.webhook_deliveries d
    where d.status = 'pending' and d.next_attempt_at <= now()
      and (d.leased_until is null or d.leased_until <= now())
  ) and not pay_internal.provider_work_is_due() then
    return;
  end if;
  return query
    select u.value, t.value
    from pay.settings u
    join pay.settings t on t.name = 'relay_token'
    where u.name = 'relay_url';
end $$;
grant execute on function pay.due_wake to pay_operator;

create or replace function pay.note_wake(p_request_id bigint)
returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  delete from pay.dispatcher_wakes wake where wake.woken_at < now() - interval '1 hour';
  insert into pay.dispatcher_wakes (request_id) values (p_request_id::text)
  on conflict on constraint dispatcher_wakes_pkey do update set woken_at = excluded.woken_at;
end $$;
grant execute on function pay.note_wake to pay_operator;

create or replace function pay.recent_wakes()
returns table (request_id bigint, woken_at timestamptz)
language plpgsql volatile security definer rows 100 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select wake.request_id::bigint, wake.woken_at from pay.dispatcher_wakes wake
    where wake.woken_at >= now() - interval '1 hour';
end $$;
grant execute on function pay.recent_wakes to pay_operator;

create or replace function pay.wake_dispatcher() returns void language plpgsql volatile as $$
declare
  v_wake record;
  v_request_id bigint;
begin
  for v_wake in select * from pay.due_wake() loop
    -- Dynamic, so that this function can be created without pg_net.
    execute
      'select net.http_post(url := $1, body := $2, params := $3, headers := $4,
         timeout_milliseconds := $5)'
    into v_request_id
    using
      v_wake.url,
      '{}'::jsonb,
      '{}'::jsonb,
      jsonb_build_object(
        'Content-Type', 'application/json',
        'Authorization', 'Bearer ' || v_wake.token
      ),
      2000;
    perform pay.note_wake(v_request_id);
  end loop;
end $$;
grant execute on function pay.wake_dispatcher to pay_operator;

create or replace view pay_internal.provider_subjects with (security_invoker = true) as
select p.environment_id, p.id, p.status, p.sequence, p.body from pay.payments p
union all
select tr.environment_id, tr.id, tr.status, tr.sequence, tr.body from pay.transfers tr;
comment on view pay_internal.provider_subjects is 'Payments and transfers.';

create or replace view pay_internal.bank_orders_shown with (security_invoker = true) as
select b.environment_id, b.account_id, b.owner_id as id, b.operation_id,
  case c.op when 'authorize' then 'collection' else c.op end as kind, b.state, b.payee_check,
  b.approved_at is not null as is_approved, b.batch_id, b.export_id, x.kind as file_kind,
  x.name as file_name, pay_internal.wire_time(x.created_at) as file_created_at,
  c.subject_id, c.amount_minor, c.currency, subject.body as subject_body,
  coalesce(r.status, subject.status) as status,
  pay_internal.has_no_result(coalesce(r.status, subject.status)) as is_open,
  coalesce(r.body, subject.body) as body
from pay.bank_orders b
join pay.provider_operations c on c.environment_id = b.environment_id and c.id = b.operation_id
join pay_internal.provider_subjects subject
  on subject.environment_id = b.environment_id and subject.id = c.subject_id
left join pay.refunds r on r.environment_id = c.environment_id and r.id = c.refund_id
left join pay.bank_exports x on x.environment_id = b.environment_id and x.id = b.export_id;
comment on view pay_internal.bank_orders_shown is 'Orders to banks, with what they are about.';

create or replace view pay_internal.unproven_balances with (security_invoker = true) as
select x.environment_id, x.account_id,
  'the balances of the statements since ' || min(x.day) filter (where x.is_last) || ' differ by '
    || max(x.last_minor) || ' ' || x.currency || ' in minor units from the entries: a statement is '
    || 'missing, or an entry was taken for another one' as detail
from (
  select d.*, bool_and(d.difference_minor = d.last_minor) over rest as is_last
  from (
    select c.*, last_value(c.difference_minor) over rest as last_minor
    from (
      select t.environment_id, t.account_id, t.currency, t.day, t.is_end,
        t.balance_minor - first_value(t.balance_minor) over w
          - (t.moved_minor - first_value(t.moved_minor) over w) as difference_minor
      from (
        select y.environment_id, y.account_id, y.currency, y.day, p.is_end,
          pay_internal.outer_balance(y.balances, p.is_end) as balance_minor,
          y.moved_minor - case when p.is_end then 0 else y.provider_minor end as moved_minor
        from (
          select f.*, sum(f.provider_minor) over w as moved_minor, lag(f.day) over w as former_day,
            count(f.balances) over w as place
          from pay.provider_totals f
          where f.day > (now() - interval '90 days')::date
          window w as (partition by f.environment_id, f.account_id, f.currency order by f.day)
        ) y
        -- The first day also has its beginning, unless that is days ago.
        join (values (false), (true)) as p (is_end) on p.is_end or y.place = 1
          and (y.former_day is null or y.former_day < (
            select min((x.value ->> 3)::date) from jsonb_array_elements(y.balances) x))
        where y.balances is not null
      ) t
      where t.balance_minor is not null
      window w as (partition by t.environment_id, t.account_id, t.currency
        order by t.day, t.is_end)
    ) c
    window rest as (partition by c.environment_id, c.account_id, c.currency
      order by c.day, c.is_end rows between current row and unbounded following)
  ) d
  window rest as (partition by d.environment_id, d.account_id, d.currency
    order by d.day, d.is_end rows between current row and unbounded following)
) x
where x.last_minor <> 0
group by x.environment_id, x.account_id, x.currency;
comment on view pay_internal.unproven_balances is
  'Accounts at banks whose balances change by another amount than their entries.';

create or replace view pay.health with (security_invoker = true) as
  select o.*, b.*, s.*, c.*, w.*, p.*, v.*
  from pay.read_outbox() o
  cross join pay.read_books() b
  cross join pay.read_service() s
  cross join pay.read_cron() c
  cross join pay.read_wakes() w
  cross join pay.read_providers() p
  cross join pay.read_server() v;
comment on view pay.health is 'One row about the state of the service.';
comment on column pay.health.due_deliveries is 'Deliveries that could be sent now, up to 100 000.';
comment on column pay.health.oldest_due_seconds is
  'For how many seconds the oldest due live delivery has been due; 0 if none is due.';
comment on column pay.health.pending_deliveries is
  'Deliveries that are due, under way or waiting for a retry, up to 100 000.';
comment on column pay.health.failed_deliveries_last_hour is
  'Live deliveries created in the last hour that have failed.';
comment on column pay.health.failing_endpoints is
  'Enabled live endpoints whose last attempt failed.';
comment on column pay.health.invariant_breaches is
  'Alarms of the check of the books. Should be 0. Null if the check has never run.';
comment on column pay.health.books_checked_at is 'Time of the last run of pay.note_breaches.';
comment on column pay.health.is_retention_behind is
  'True if there are events older than 31 days, or environments that have waited for an hour.';
comment on column pay.health.waiting_environments is
  'Environments that wait for their deletion after a reset or their end, up to 100 000.';
comment on column pay.health.oldest_waiting_seconds is
  'For how many seconds the oldest of them has waited; 0 if there is none.';
comment on column pay.health.largest_storage_bytes is
  'Bytes that the sandboxes of one account store at most, by estimate, in steps of 2^30.';
comment on column pay.health.test_keys is 'Number of API keys of sandboxes that are not revoked.';
comment on column pay.health.live_keys is 'Number of live API keys that are not revoked.';
comment on column pay.health.is_dispatcher_configured is 'True if pay.configure_relay was called.';
comment on column pay.health.waiting_accounts is
  'Accounts whose jobs or requests wait, because they move to another cell. Should be 0 soon.';
comment on column pay.health.last_dispatcher_wake_at is
  'Time of the last run of the job that wakes the dispatcher. Null if none is visible.';
comment on column pay.health.last_retention_at is
  'Time of the last run of the retention job. Null if none is visible.';
comment on column pay.health.failed_cron_runs is
  'Failed runs of the jobs of this service, among the last 1000 runs of all jobs.';
comment on column pay.health.last_dispatcher_status is
  'HTTP status of the response to the last wake of the dispatcher. Null if there is no response.';
comment on column pay.health.failed_dispatcher_wakes_last_hour is
  'Wakes without a 2xx response. Null if pg_net is not installed or not readable.';
comment on column pay.health.unsettled_operations is
  'Sent operations of providers whose result is not recorded, up to 100 000.';
comment on column pay.health.oldest_unsettled_operation_seconds is
  'Seconds since the first attempt of the oldest of them; 0 if there is none.';
comment on column pay.health.unmatched_events is
  'Provider events without a payment or transfer, not dismissed, up to 100 000. Should be 0.';
comment on column pay.health.stalled_readings is
  'Accounts of providers whose readings have failed for five minutes. Should be 0.';
comment on column pay.health.unfit_parameters is
  'Parameters of the server whose values do not fit the service. Should be null.';
grant select on pay.health to pay_operator;

create or replace view pay_internal.sandbox_times with (security_invoker = true) as
select t.environment_id, t.now,
  pay_internal.id_floor('', t.now - interval '29 days') as recent_suffix
from (
  select w.environment_id, now() + pay_internal.time_ahead(w) as now from pay.sandbox_settings w
) t;
comment on view pay_internal.sandbox_times is 'The time of each sandbox with a clock of its own.';

create or replace view pay_internal.subject_accounts with (security_invoker = true) as
select m.environment_id, m.subject_id, m.currency,
  coalesce(sum(s.amount) filter (where s.account = 'available'), 0) as available,
  coalesce(sum(s.amount) filter (where s.account = 'processor'), 0) as processor,
  coalesce(sum(s.amount) filter (where s.account = 'chargebacks'), 0) as chargebacks,
  coalesce(sum(s.amount) filter (where s.account = 'in_transit'), 0) as in_transit,
  coalesce(sum(s.amount) filter (where s.account = 'external'), 0) as external,
  coalesce(sum(s.amount) filter (where s.account = 'unapplied'), 0) as unapplied,
  coalesce(sum(s.amount) filter (
    where s.account = 'processor' and m.kind in ('fee', 'fee_reversal')), 0) as fees
from pay.ledger_movements m
cross join lateral (
  values (m.debit_account, -m.amount_minor), (m.credit_account, m.amount_minor)
) as s (account, amount)
group by m.environment_id, m.subject_id, m.currency;
comment on view pay_internal.subject_accounts is
  'The sums of each account over the movements of a subject.';

create or replace view pay.invariant_ledger_legs with (security_invoker = true) as
select m.environment_id, m.transaction_id as subject_id,
  count(*) || ' legs up to ' || max(m.leg) || ', of ' || min(m.subject_id)
    || case when min(m.subject_id) <> max(m.subject_id)
      then ' and ' || max(m.subject_id) else '' end as detail
from pay.ledger_movements m
group by m.environment_id, m.transaction_id
having count(*) <> max(m.leg) + 1 or min(m.subject_id) <> max(m.subject_id);
comment on view pay.invariant_ledger_legs is
  'R4: the legs of a ledger transaction are numbered without a gap and belong to one subject';

create or replace view pay.invariant_ledger_totals with (security_invoker = true) as
select x.environment_id,
  x.currency || ' ' || x.debit_account || ' to ' || x.credit_account as subject_id,
  'total off by ' || sum(x.amount_minor) as detail
from (
  select t.environment_id, t.currency, t.debit_account, t.credit_account, t.amount_minor
  from pay.ledger_totals t
  union all
  select m.environment_id, m.currency, m.debit_account, m.credit_account, -m.amount_minor
  from pay.ledger_movements m
) x
group by x.environment_id, x.currency, x.debit_account, x.credit_account
having sum(x.amount_minor) < 0 or sum(x.amount_minor) > 0 and x.environment_id in (
  select e.id from pay.environments e
  left join pay_internal.sandbox_times clock on clock.environment_id = e.id
  where e.livemode or e.created_at > coalesce(clock.now, now()) - interval '29 days'
);
comment on view pay.invariant_ledger_totals is
  'R4: the total of two accounts is the sum of the movements between them';

create or replace view pay.invariant_payment_money with (security_invoker = true) as
select p.environment_id, p.id as subject_id,
  p.status || ': available ' || a.available || ', charged back ' || a.chargebacks || ', processor '
    || a.processor as detail
from pay.payments p
left join pay_internal.subject_accounts s
  on s.environment_id = p.environment_id and s.subject_id = p.id and s.currency = p.currency
cross join lateral (
  -- The provider takes its fees out of the available money.
  select coalesce(s.available + s.fees, 0) as available,
    coalesce(s.processor - s.fees + s.unapplied, 0) as processor,
    coalesce(s.chargebacks, 0) as chargebacks
) a
cross join lateral (
  select
    case when p.status in (/* paid */ 'completed', 'partially_refunded', 'refunded', 'chargeback')
      then p.amount_minor - p.amount_released - p.amount_refunded - p.amount_disputed
      -- The bank has returned the whole payment, and its refunds stay.
      else -p.amount_refunded end as available,
    p.amount_disputed as chargebacks
) must
left join pay_internal.sandbox_times clock on clock.environment_id = p.environment_id
where (right(p.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    or p.environment_id in (select e.id from pay.environments e where e.livemode))
  and (a.available <> must.available or a.chargebacks <> must.chargebacks
    or -a.processor <> must.available + must.chargebacks);
comment on view pay.invariant_payment_money is
  'R4: each account holds the amount of a payment that the status of the payment requires';

create or replace view pay.invariant_transfer_money with (security_invoker = true) as
select tr.environment_id, tr.id as subject_id,
  tr.status || ': taken ' || a.taken || ', in transit ' || a.in_transit || ', paid out '
    || a.external as detail
from pay.transfers tr
left join pay_internal.subject_accounts s
  on s.environment_id = tr.environment_id and s.subject_id = tr.id and s.currency = tr.currency
cross join lateral (
  -- The bank can have taken its fee out of a payout.
  select -coalesce(s.available + s.fees, 0) as taken, coalesce(s.in_transit, 0) as in_transit,
    coalesce(s.external, 0) as external
) a
left join pay_internal.sandbox_times clock on clock.environment_id = tr.environment_id
where (right(tr.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    or tr.environment_id in (select e.id from pay.environments e where e.livemode))
  and (
    a.taken <> case when tr.status in ('pending', 'completed') then tr.amount_minor else 0 end
    or a.in_transit <> case tr.status when 'pending' then tr.amount_minor else 0 end
    or a.external <> case tr.status when 'completed' then tr.amount_minor else 0 end
  );
comment on view pay.invariant_transfer_money is
  'R4: each account holds the amount of a transfer that the status of the transfer requires';

create or replace view pay.invariant_refunds with (security_invoker = true) as
select p.environment_id, p.id as subject_id,
  'refunds ' || coalesce(r.completed, 0) || ' and pending ' || coalesce(r.pending, 0)
    || ', amount_refunded ' || p.amount_refunded || ' and amount_refunding '
    || p.amount_refunding || ' of ' || p.amount_minor - p.amount_released as detail
from pay.payments p
left join (
  select environment_id, payment_id,
    sum(amount_minor) filter (where status = 'completed') as completed,
    sum(amount_minor) filter (where status = 'pending') as pending
  from pay.refunds group by environment_id, payment_id
) r on r.environment_id = p.environment_id and r.payment_id = p.id
left join pay_internal.sandbox_times clock on clock.environment_id = p.environment_id
where (right(p.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    or p.environment_id in (select e.id from pay.environments e where e.livemode))
  and (coalesce(r.completed, 0) <> p.amount_refunded
    or coalesce(r.pending, 0) <> p.amount_refunding
    or p.amount_refunded + p.amount_refunding > p.amount_minor - p.amount_released);
comment on view pay.invariant_refunds is
  'R5: the refunds of a payment add up to its sums of refunds, at most to the captured amount';

create or replace view pay.invariant_outbox with (security_invoker = true) as
select v.environment_id, v.id as subject_id, v.type || ' has no delivery to ' || t.id as detail
from pay.events v
join pay.webhook_endpoints t
  on t.environment_id = v.environment_id
  and t.events && pay_internal.patterns_of(v.type)
  -- The endpoint was never changed, so it was always enabled. The margin of 10 seconds is for
  -- requests that were under way when it was created.
  and t.revision = 1
  and v.created_at > t.created_at + interval '10 seconds'
left join pay_internal.sandbox_times clock on clock.environment_id = v.environment_id
where v.sequence is not null
  and right(v.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
  and not exists (
    select from pay_internal.deliveries_of(v.environment_id, v.id) d where d.endpoint_id = t.id
  );
comment on view pay.invariant_outbox is
  'R6: every event has a delivery to every endpoint that subscribes to it';

create or replace view pay.invariant_endless_deliveries with (security_invoker = true) as
select d.environment_id, d.id as subject_id,
  'next attempt at ' || greatest(coalesce(d.due_at, d.next_attempt_at), d.leased_until) as detail
from pay.webhook_deliveries d
left join pay_internal.sandbox_times clock on clock.environment_id = d.environment_id
where d.status = 'pending'
  -- The longest delay of the schedule is 24 hours and a fifth, and twice that if the receiver asks
  -- for it. A lease lasts seconds. Infinity is the time of a clock that stands.
  and (coalesce(case when clock.now is not null then d.due_at end, d.next_attempt_at)
      > coalesce(clock.now, now()) + interval '58 hours'
    or d.leased_until > now() + interval '1 hour')
union all
select d.environment_id, d.id, 'due by the clock of its sandbox since ' || d.due_at
from pay.webhook_deliveries d
join pay_internal.sandbox_times clock on clock.environment_id = d.environment_id
where d.next_attempt_at = 'infinity' and d.due_at <= clock.now
  -- No step of an advance is still to make it due.
  and not exists (
    select from pay.sandbox_settings w
    where w.environment_id = d.environment_id and w.target_at is not null
  )
  and pay_internal.blocking_delivery(d) is null
union all
select d.environment_id, d.id, 'due since ' || d.next_attempt_at
from pay.webhook_deliveries d
where d.status = 'pending'
  and greatest(d.next_attempt_at, d.leased_until) < now() - interval '1 hour'
  -- A slow receiver has a long queue, which is no defect. So only endpoints without an attempt in
  -- this hour or the last are listed.
  and (d.environment_id, d.endpoint_id) not in (
    select o.environment_id, o.endpoint_id
    from pay.webhook_deliveries o
    left join pay_internal.sandbox_times clock on clock.environment_id = o.environment_id
    where o.leased_until > now() - interval '1 hour'
      or (o.attempts[cardinality(o.attempts)] ->> 'at')::timestamptz
        >= date_trunc('hour', coalesce(clock.now, now()), 'UTC') - interval '1 hour'
  );
comment on view pay.invariant_endless_deliveries is
  'R6: no delivery waits longer than the retry schedule allows';

create or replace view pay.invariant_delivery_order with (security_invoker = true) as
select d.environment_id, d.id as subject_id, 'attempted before the earlier ' || d.before as detail
from (
  select w.environment_id, w.id, w.attempt_count, a.first_at,
    lag(w.id) over earlier as before,
    lag(w.status) over earlier as status_before,
    lag(w.attempt_count) over earlier as attempt_count_before,
    lag(a.first_at) over earlier as first_at_before
  from pay.webhook_deliveries w
  -- The endpoint was never changed, so no delivery was cancelled and redelivered later.
  join pay.webhook_endpoints t
    on t.environment_id = w.environment_id and t.id = w.endpoint_id and t.revision = 1
  -- The record of the first attempt can be lost with its dispatcher.
  cross join lateral (
    select case when (w.attempts[1] ->> 'number')::integer = 1
      then (w.attempts[1] ->> 'at')::timestamptz end as first_at
  ) a
  where w.sequence is not null
    -- A declared fault can change the order.
    and w.fault is null
  window earlier as (partition by w.environment_id, w.endpoint_id, w.subject_id order by w.sequence)
) d
-- Each time is from the clock of the isolate that made the attempt. These clocks differ a little.
where d.first_at_before > d.first_at + interval '1 second'
  or (d.status_before = 'pending' and d.attempt_count_before = 0 and d.attempt_count > 0);
comment on view pay.invariant_delivery_order is
  'R7: for each endpoint and payment, first attempts are made in the order of sequence';

create or replace view pay.invariant_inboxes with (security_invoker = true) as
select d.environment_id, d.id as subject_id,
  'is available, but no read of its inbox would show it' as detail
from pay.webhook_deliveries d
join pay.environments v on v.id = d.environment_id and v.retired_at is null
where d.status = 'available'
  and not exists (
    select from pay.inbox_entries entry
    join pay.webhook_endpoints t
      on t.environment_id = entry.environment_id and t.id = entry.endpoint_id
      and t.delivery = 'inbox'
    where entry.environment_id = d.environment_id and entry.delivery_id = d.id
      and entry.endpoint_id = d.endpoint_id
      and entry.position > t.inbox_acknowledged and entry.position <= t.inbox_position
  );
comment on view pay.invariant_inboxes is
  'R6: every delivery that waits in an inbox is behind the acknowledged position';

create or replace view pay.invariant_provider_operations with (security_invoker = true) as
select c.environment_id, c.id as subject_id,
  c.op || ' of ' || c.subject_id || ': no attempt since ' || c.next_attempt_at as detail
from pay.provider_operations c
where c.state = 'pending'
  -- A sandbox without a worker, such as one of an old backup, loses no money.
  and c.account_id <> 'sandbox'
  and greatest(c.next_attempt_at, c.leased_until) < now() - interval '1 hour'
union all
select c.environment_id, c.id,
  c.op || ' of ' || c.subject_id || ': the result is unknown, decide by hand: '
    || coalesce(c.last_reply, 'no reply')
from pay.provider_operations c
where c.state = 'operator'
union all
select c.environment_id, c.id, c.op || ' of ' || c.subject_id || ' is settled, but it is pending'
from pay.provider_operations c
join pay.payments p on p.environment_id = c.environment_id and p.id = c.subject_id
where c.op = 'authorize' and c.state = 'settled' and p.status = 'pending'
  -- A payment by bank transfer waits for its payer, and one by stablecoin at its address.
  and c.account_id not in (select a.id from pay.provider_accounts a where a.connector = 'bank')
  and not exists (
    select from pay.deposit_addresses deposit
    where deposit.environment_id = c.environment_id and deposit.operation_id = c.id
  )
union all
select p.environment_id, p.id, p.status || ' without an operation of a provider'
from pay.payments p
where p.environment_id in (select e.id from pay.environments e where e.livemode)
  and not exists (
    select from pay.provider_operations c
    where c.environment_id = p.environment_id and c.subject_id = p.id and c.op = 'authorize'
  )
union all
select p.environment_id, p.id, p.status || ' without a provider event that the money has come in'
from pay.payments p
where p.environment_id in (select e.id from pay.environments e where e.livemode)
  and p.status in (/* paid */ 'completed', 'partially_refunded', 'refunded', 'chargeback')
  and p.amount_minor > 0
  and not exists (
    select from pay.provider_events event
    where event.environment_id = p.environment_id and event.subject_id = p.id
      and event.op in ('authorize', 'capture') and event.state = 'succeeded'
      and event.outcome = 'applied'
  );
comment on view pay.invariant_provider_operations is
  'R14: every live payment has an operation, and each gets a result that the payment shows';

create or replace view pay.invariant_provider_events with (security_invoker = true) as
select event.environment_id, event.account_id || ' ' || event.reference as subject_id,
  'not handled since ' || event.received_at as detail
from pay.provider_events event
where event.outcome is null and event.received_at < now() - interval '10 minutes'
union all
select b.environment_id, b.subject_id,
  'provider events of ' || b.booked || ' ' || b.currency || ', ledger '
    || coalesce(-(a.processor + a.chargebacks + a.external), 0)
from (
  select o.environment_id, o.subject_id, o.currency, sum(o.booked_minor) as booked
  from (
    -- Money that matches no payment is booked for the account.
    select event.environment_id, event.currency, event.booked_minor,
      case when event.outcome = 'applied' then coalesce(event.subject_id, event.account_id)
        else event.account_id end as subject_id
    from pay.provider_events event
    where (event.outcome = 'applied' or event.booked_minor <> 0)
      and event.environment_id in (select e.id from pay.environments e where e.livemode)
  ) o
  group by o.environment_id, o.subject_id, o.currency
) b
left join pay_internal.subject_accounts a
  on a.environment_id = b.environment_id and a.subject_id = b.subject_id
  and a.currency = b.currency
where b.booked <> coalesce(-(a.processor + a.chargebacks + a.external), 0)
union all
-- A poll is due every hour, and a statement of a bank after each day of business. Without them
-- nobody knows which provider events are missing.
select a.environment_id, a.id, 'not read since ' || coalesce(u.polled_at, a.created_at)
from pay.provider_accounts a
left join pay.provider_cursors u on u.environment_id = a.environment_id and u.account_id = a.id
where a.status = 'enabled'
  and coalesce(u.polled_at, a.created_at)
    < now() - case a.connector when 'bank' then interval '7 days' else interval '3 hours' end;
comment on view pay.invariant_provider_events is
  'R14: every provider event is read and applied once, and the ledger moved by its amount';

create or replace view pay.invariant_reported_events with (security_invoker = true) as
select event.environment_id, event.account_id || ' ' || event.reference as subject_id,
  event.outcome || ': ' || coalesce(event.exception, event.op || ' ' || event.state || ' of '
    || coalesce(event.subject_id, event.provider_reference, 'an unknown subject')) as detail
from pay.provider_events event
where (event.outcome in ('exception', 'unmatched') or event.exception is not null)
  and event.dismissed_at is null;
comment on view pay.invariant_reported_events is
  'R14: a person has matched or dismissed every provider event that tells something unexpected';

create or replace view pay_internal.provider_readings with (security_invoker = true) as
select u.environment_id, u.account_id,
  coalesce(u.polled_at + case
    -- An address is open until the worker has applied the expiry to the payment.
    when a.connector = 'evm' and exists (
      select from pay.deposit_addresses d
      where d.account_id = u.account_id and d.expires_at > now() - interval '1 hour'
      union all
      select from pay.chain_payouts payout
      join pay.provider_operations c on c.environment_id = payout.environment_id
        and c.id = payout.operation_id
      where payout.account_id = u.account_id and c.state <> 'settled'
    ) then interval '15 seconds'
    else interval '1 hour'
  end, '-infinity') as poll_at,
  d.day,
  (d.day + 1)::timestamp at time zone 'UTC' + interval '2 hours' as totals_at
from pay.provider_cursors u
-- A bank sends files, which somebody imports.
join pay.provider_accounts a on a.environment_id = u.environment_id and a.id = u.account_id
  and a.connector <> 'bank'
cross join lateral (
  select coalesce(u.totals_day, (a.created_at at time zone 'UTC')::date) + 1 as day
) d;
comment on view pay_internal.provider_readings is
  'When each account of a provider is read next.';

create or replace view pay.invariant_provider_totals with (security_invoker = true) as
select x.environment_id, x.account_id as subject_id,
  x.day || ': provider ' || sum(x.provider_minor) || ' ' || x.currency || ', ledger '
    || sum(x.booked_minor) as detail
from (
  select t.environment_id, t.account_id, t.day, t.currency, t.provider_minor, 0 as booked_minor
  from pay.provider_totals t
  union all
  select event.environment_id, event.account_id, (event.happened_at at time zone 'UTC')::date,
    event.currency, 0, event.booked_minor
  from pay.provider_events event
  where event.booked_minor <> 0
) x
join pay.provider_cursors u on u.environment_id = x.environment_id and u.account_id = x.account_id
join pay.provider_accounts a on a.environment_id = x.environment_id and a.id = x.account_id
where x.day > (a.created_at at time zone 'UTC')::date and x.day <= u.totals_day
group by x.environment_id, x.account_id, x.day, x.currency
having sum(x.provider_minor) <> sum(x.booked_minor)
union all
select u.environment_id, u.account_id, u.detail from pay_internal.unproven_balances u
union all
select r.environment_id, r.account_id, r.day || ': the totals of the provider are not read'
from pay_internal.provider_readings r
join pay.provider_accounts a on a.environment_id = r.environment_id and a.id = r.account_id
where a.status = 'enabled' and r.totals_at < now() - interval '2 days';
comment on view pay.invariant_provider_totals is
  'R14: each day''s movements at a provider are those that the ledger booked, as balances prove';

create or replace view pay.invariant_deposits with (security_invoker = true) as
select x.environment_id, x.payment_id as subject_id,
  x.status || ' with ' || x.final_minor || ' final and ' || coalesce(x.received_minor::text, 'no')
    || ' received of ' || x.amount_minor as detail
from (
  select deposit.environment_id, deposit.payment_id, p.status, p.amount_minor,
    (p.body::json ->> 'amount_received')::bigint as received_minor,
    pay_internal.final_minor(deposit.environment_id, deposit.payment_id) as final_minor
  from pay.deposit_addresses deposit
  join pay.payments p on p.environment_id = deposit.environment_id and p.id = deposit.payment_id
  -- A settled operation has given the payment its address.
  join pay.provider_operations c
    on c.environment_id = deposit.environment_id and c.id = deposit.operation_id
      and c.state = 'settled'
) x
where case
  when x.status = 'pending' then x.received_minor is distinct from 0 or x.final_minor > 0
  when x.status = 'processing' then x.received_minor < greatest(x.final_minor, 1)
    or x.final_minor >= x.amount_minor
  when x.status in (/* paid */ 'completed', 'partially_refunded', 'refunded', 'chargeback')
    then x.final_minor < x.amount_minor
  else false
end;
comment on view pay.invariant_deposits is
  'R14: a payment to an address is completed exactly when its final transfers reach its amount';

create or replace view pay.invariant_instrument_details with (security_invoker = true) as
select t.environment_id, t.id as subject_id,
  t.status || case when d.sealed is null then ' without' else ' with' end || ' bank details'
    as detail
from pay.instruments t
left join pay.bank_details d on d.environment_id = t.environment_id and d.owner_id = t.id
where t.is_kept and t.mandate_id is not null
  -- Those of sandboxes have none.
  and t.test_behaviour is null
  and (t.status in ('pending', 'active')) <> (d.sealed is not null);
comment on view pay.invariant_instrument_details is
  'R14: a live mandate that is kept has its sealed bank details until it ends, and no longer';

create or replace view pay.invariant_sequences with (security_invoker = true) as
select x.environment_id, x.id as subject_id,
  'at ' || x.sequence || ', events ' || coalesce(e.first || ' to ' || e.last, 'none') || ', '
    || coalesce(e.events, 0) || ' of them' as detail
from (
  select environment_id, id, sequence, updated_at from pay.payments
  union all
  select environment_id, id, sequence, updated_at from pay.transfers
) x
left join (
  select environment_id, subject_id, min(sequence) as first, max(sequence) as last,
    count(*) as events
  from pay.events where sequence is not null group by environment_id, subject_id
) e on e.environment_id = x.environment_id and e.subject_id = x.id
left join pay_internal.sandbox_times clock on clock.environment_id = x.environment_id
where case
  when right(x.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    then e.first is distinct from 1 or e.last is distinct from x.sequence
      or e.events is distinct from x.sequence::bigint
  -- Retention may have deleted the first events of the resource, and all events if the resource has
  -- not changed for that long.
  when x.environment_id in (select v.id from pay.environments v where v.livemode)
    then coalesce(e.last <> x.sequence or e.events <> e.last - e.first + 1,
      x.updated_at >= now() - interval '29 days')
  else false
end;
comment on view pay.invariant_sequences is
  'R5: the events of a payment or transfer are numbered 1, 2, 3 … without a gap, to its sequence';

create or replace view pay.invariant_moves with (security_invoker = true) as
select m.environment_id, m.subject_id,
  m.sequence || ': ' || coalesce(m.before, 'nothing') || ', then ' || m.type as detail
from (
  -- Events of refunds stand between those of their payment, in any order, and so do those of
  -- disputes, each of which has events of its own.
  select e.environment_id, e.subject_id, e.sequence, e.type, e.directly_before,
    lag(e.type) over same as before, lag(e.sequence) over same as sequence_before
  from (
    select v.environment_id, v.subject_id, v.sequence, v.type,
      case when v.type like 'dispute.%' then substr(v.object, 8, 29) end as dispute_id,
      lag(v.type) over (partition by v.environment_id, v.subject_id order by v.sequence)
        as directly_before
    from pay.events v
    left join pay_internal.sandbox_times clock on clock.environment_id = v.environment_id
    where v.sequence is not null
      and (right(v.subject_id, 26)
          >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
      or v.environment_id in (select n.id from pay.environments n where n.livemode))
      and (v.subject_id like 'pay\_%' or v.subject_id like 'tr\_%')
  ) e
  window same as (
    partition by e.environment_id, e.subject_id, split_part(e.type, '.', 1), e.dispute_id
    order by e.sequence
  )
) m
left join pay_internal.sandbox_times clock on clock.environment_id = m.environment_id
-- Retention may have deleted earlier events of an old resource.
where (m.directly_before is not null or m.sequence = 1
    or right(m.subject_id, 26) >= coalesce(clock.recent_suffix,
      (select pay_internal.recent_suffix())))
  and case
    -- A bank has booked a further transfer of the payer. "=" of a null would compute the amounts.
    when m.type is not distinct from m.before and m.type like 'payment.%'
      and pay_internal.received_at(m.environment_id, m.subject_id, m.sequence)
        > pay_internal.received_at(m.environment_id, m.subject_id, m.sequence_before) then false
    when m.type like 'refund.%' then m.directly_before is null
      or m.directly_before in ('payment.created',
        /* events without money */ 'payment.pending', 'payment.requires_action',
        'payment.processing', 'payment.authorized', 'payment.declined', 'payment.cancelled')
    -- The end of a dispute stands before that of the chargeback.
    when m.type = 'dispute.created' then m.directly_before is null or m.before is not null
    when m.type like 'dispute.%' then case
      when m.before is null
        then right(m.subject_id, 26)
          >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
      else m.before not in ('dispute.created', 'dispute.updated')
        -- A bank can give up a dispute that was lost before.
        and not (m.type = 'dispute.won' and m.before = 'dispute.lost')
      end
    when m.directly_before = 'dispute.created' then m.type <> 'payment.chargeback'
      or m.before not in ('payment.completed', 'payment.partially_refunded', 'payment.refunded',
        'payment.chargeback')
    -- Another dispute of the payment can still be open or lost.
    when m.directly_before = 'dispute.won' then m.before <> 'payment.chargeback'
      or m.type not in ('payment.completed', 'payment.partially_refunded', 'payment.refunded',
        'payment.chargeback')
    -- The refund had completed before.
    when m.directly_before = 'refund.failed'
      and m.type in ('payment.completed', 'payment.partially_refunded')
      then m.before not in ('payment.partially_refunded', 'payment.refunded')
    when m.before = 'payment.chargeback'
      and m.directly_before not in ('dispute.won', 'payment.chargeback') then true
    when m.directly_before = 'refund.completed'
      then m.type not in ('payment.partially_refunded', 'payment.refunded')
    when m.before is null and m.sequence > 1
      then right(m.subject_id, 26)
        >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    when m.type in ('payment.partially_refunded', 'payment.refunded')
      and m.before <> 'payment.chargeback' then true
    else coalesce(m.before, '') || '>' || split_part(m.type, '.', 2) not in (
      '>created',
      'transfer.created>updated', 'transfer.created>completed', 'transfer.created>failed',
      'transfer.created>cancelled', 'transfer.updated>updated', 'transfer.updated>completed',
      'transfer.updated>failed', 'transfer.updated>cancelled', 'transfer.completed>failed',
      -- At an address a further transfer has come, or one of several was undone. A bank can return
      -- a payment that is refunded.
      'payment.processing>processing', 'payment.refunded>failed',
      /* moves of payments */ 'payment.created>pending', 'payment.pending>processing',
      'payment.pending>completed', 'payment.pending>failed', 'payment.pending>cancelled',
      'payment.created>requires_action', 'payment.created>processing', 'payment.created>authorized',
      'payment.created>completed', 'payment.created>declined', 'payment.created>failed',
      'payment.created>cancelled', 'payment.requires_action>processing',
      'payment.requires_action>authorized', 'payment.requires_action>completed',
      'payment.requires_action>declined', 'payment.requires_action>failed',
      'payment.requires_action>cancelled', 'payment.processing>pending',
      'payment.processing>requires_action', 'payment.processing>authorized',
      'payment.processing>completed', 'payment.processing>declined', 'payment.processing>failed',
      'payment.processing>cancelled', 'payment.authorized>completed', 'payment.authorized>failed',
      'payment.authorized>cancelled', 'payment.completed>partially_refunded',
      'payment.completed>refunded', 'payment.completed>chargeback', 'payment.completed>failed',
      'payment.partially_refunded>partially_refunded', 'payment.partially_refunded>refunded',
      'payment.partially_refunded>chargeback', 'payment.partially_refunded>failed',
      'payment.chargeback>completed', 'payment.chargeback>partially_refunded'
    )
  end;
comment on view pay.invariant_moves is
  'R5: each event of a payment or transfer is a legal move after the event before it';

create or replace view pay.invariant_bodies with (security_invoker = true) as
select x.environment_id, x.id as subject_id, 'row, body and newest event differ' as detail
from (
  select environment_id, id, status, sequence, amount_minor, amount_refunded, amount_refunding,
    amount_disputed, amount_released, currency, updated_at, body, 'payment.' as kind
  from pay.payments
  union all
  select environment_id, id, status, sequence, amount_minor, null, null, null, null, currency,
    updated_at, body, 'transfer.'
  from pay.transfers
) x
left join pay.events e
  on e.environment_id = x.environment_id and e.subject_id = x.id and e.sequence = x.sequence
left join pay_internal.sandbox_times clock on clock.environment_id = x.environment_id
where (right(x.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    or x.environment_id in (select v.id from pay.environments v where v.livemode))
  and (
    case
      -- An event of a refund or dispute shows that, and not the payment.
      when e.type like 'refund.%' or e.type like 'dispute.%' then x.kind <> 'payment.'
      when e.id is not null then
        e.type <> x.kind || x.status
          and (x.status <> 'pending' or e.type not in (x.kind || 'created', x.kind || 'updated'))
          or e.object is not null
      -- Retention may have deleted the newest event of a resource that has not changed for so long.
      else right(x.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
        or x.updated_at >= coalesce(clock.now, now()) - interval '29 days'
    end
    -- Compared as text, which is four times as fast as JSON. JSON escapes the quotes inside of a
    -- string, so no string can contain these member names.
    or not starts_with(x.body, '{"id":"' || x.id || '",')
    or position('"status":"' || x.status || '",' in x.body) = 0
    or position('"sequence":' || x.sequence || ',' in x.body) = 0
    or position('"amount_minor":' || x.amount_minor || ',' in x.body) = 0
    or position('"amount_refunded":' || x.amount_refunded || ',' in x.body) = 0
    -- Null for a transfer, which has none of these three.
    or position('"amount_refunding":' || x.amount_refunding || ',' in x.body) = 0
    or position('"amount_disputed":' || x.amount_disputed || ',' in x.body) = 0
    or position('"amount_captured":' || x.amount_minor - x.amount_released || ',' in x.body) = 0
      and (x.status in (/* paid */ 'completed', 'partially_refunded', 'refunded', 'chargeback')
        or position('"amount_captured":0,' in x.body) = 0)
    or position('"currency":"' || x.currency || '",' in x.body) = 0
  );
comment on view pay.invariant_bodies is
  'R5: the body of a payment or transfer agrees with its row and its newest event';

create or replace view pay.invariant_refund_bodies with (security_invoker = true) as
select r.environment_id, r.id as subject_id, 'row, body and event differ' as detail
from pay.refunds r
left join pay_internal.sandbox_times clock on clock.environment_id = r.environment_id
where (right(r.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    or r.environment_id in (select v.id from pay.environments v where v.livemode))
  and (
    not starts_with(r.body, '{"id":"' || r.id || '",')
    or position('"payment_id":"' || r.payment_id || '",' in r.body) = 0
    or position('"amount_minor":' || r.amount_minor || ',' in r.body) = 0
    or position('"currency":"' || r.currency || '",' in r.body) = 0
    or position('"status":"' || r.status || '",' in r.body) = 0
    -- In a live environment retention may have deleted the event of the refund.
    or right(r.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
      and not exists (
      select from pay.events e
      where e.environment_id = r.environment_id and e.subject_id = r.payment_id
        and e.type = any (case r.status
          when 'pending' then '{refund.created,refund.updated}'::text[]
          else array['refund.' || r.status] end)
        and e.object = r.body
    )
  );
comment on view pay.invariant_refund_bodies is
  'R5: the body of a refund agrees with its row and its event';

create or replace view pay.invariant_orphans with (security_invoker = true) as
select x.environment_id, x.id as subject_id,
  'belongs to ' || x.owner_id || ', which does not exist' as detail
from (
  select environment_id, id, payment_id as owner_id from pay.refunds
  union all
  select environment_id, id, payment_id from pay.disputes
  union all
  select environment_id, transaction_id, subject_id from pay.ledger_movements
  union all
  select environment_id, id, subject_id from pay.events
  union all
  select environment_id, id, subject_id from pay.webhook_deliveries
) x
left join pay_internal.sandbox_times clock on clock.environment_id = x.environment_id
where (x.owner_id like 'pay\_%' or x.owner_id like 'tr\_%')
  and (right(x.owner_id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    or x.environment_id in (select e.id from pay.environments e where e.livemode))
  and not exists (
    select from pay.payments p where p.environment_id = x.environment_id and p.id = x.owner_id)
  and not exists (
    select from pay.transfers tr where tr.environment_id = x.environment_id and tr.id = x.owner_id);
comment on view pay.invariant_orphans is
  'R1, R9: every refund, dispute, movement, event and delivery belongs to an existing subject';

create or replace view pay.invariant_effects with (security_invoker = true) as
select e.environment_id, e.id as subject_id,
  e.type || ' of ' || e.subject_id || ': its request has no stored response' as detail
from (
  -- "offset 0" makes narrow rows before the join. A join of whole bodies would use temporary files.
  select environment_id, id, type, subject_id, request_id, idempotency_key
  from pay.events
  where sequence is not null
    -- A subquery, so that it is computed once and not for each row.
    and id >= (select pay_internal.id_floor('evt_', least(now(), min(clock.now))
      - interval '23 hours')
      from pay_internal.sandbox_times clock)
  offset 0
) e
left join pay_internal.sandbox_times clock on clock.environment_id = e.environment_id
where e.id >= coalesce(
    (select pay_internal.id_floor('evt_', clock.now - interval '23 hours')
      where clock.now is not null),
    (select pay_internal.id_floor('evt_', now() - interval '23 hours')))
  and e.idempotency_key is not null
  and not exists (
    select from (
      select environment_id, request_id, key,
        case when status = 102 then null when subject_id is not null then subject_id
          when starts_with(body, '{"id":"tr_') then substr(body, 8, 29)
          else 'pay_' || left(split_part(body, '"pay_', 2), 26) end as subject_id
      from pay.idempotency_keys
      offset 0
    ) k
    where k.environment_id = e.environment_id and k.request_id = e.request_id
      and k.key = e.idempotency_key
      -- A request that waits for a provider has no response yet.
      -- A payment that is the last one of its mandate ends the instrument.
      and (k.subject_id is null or k.subject_id = e.subject_id or e.subject_id like 'ins\_%')
  );
comment on view pay.invariant_effects is
  'R2, R3: every event of a keyed request belongs to a request whose response is stored';

create or replace view pay.invariant_stored_responses with (security_invoker = true) as
select k.environment_id, k.request_id as subject_id,
  'returned ' || k.status || ' with ' || coalesce(k.id || case
    when x.id is null then ', which does not exist' else ', which never had this state' end,
    'an unknown body') as detail
from (
  select o.*, v.livemode,
    case when o.sequence is not null then o.subject_id
      -- A deletion names the payment or transfer whose bank details it has deleted.
      when o.object ~ '^\{"id":"[^"]*","object":"bank_details",' then null
      when starts_with(o.object, '{"id":"pay_') or starts_with(o.object, '{"id":"tr_')
      or starts_with(o.object, '{"id":"re_') or starts_with(o.object, '{"id":"dp_')
      then split_part(o.object, '"', 4) end as id
  from (
    select a.environment_id, a.request_id, a.status, a.body, a.subject_id, a.sequence,
      coalesce(starts_with(a.body, '{"error":'), false) as is_error,
      case when not starts_with(a.body, '{"error":') then a.body
        -- An error ends with the payment that was stored, if there is one.
        else left(substring(a.body from '"payment":(\{.*)'), -2) end as object
    from pay.idempotency_keys a
    left join pay_internal.sandbox_times clock on clock.environment_id = a.environment_id
    where a.created_at > coalesce(clock.now, now()) - interval '23 hours'
  ) o
  join pay.environments v on v.id = o.environment_id
  offset 0
) k
left join (
  select environment_id, id, id as subject_id, sequence, body from pay.payments
  union all
  select environment_id, id, id, sequence, body from pay.transfers
  union all
  -- The events of a refund or dispute belong to its payment.
  select environment_id, id, payment_id, null, body from pay.refunds
  union all
  select environment_id, id, payment_id, null, body from pay.disputes
) x on x.environment_id = k.environment_id and x.id = k.id
left join pay_internal.sandbox_times clock on clock.environment_id = k.environment_id
where case
  when k.status = 102 then k.body <> ''
  when k.is_error and not exists (
    select from pay_internal.error_catalogue() e
    where e.status = k.status
      and starts_with(k.body, '{"error":{"type":"' || e.type || '","code":"' || e.code || '",')
  ) then true
  when k.id is null then case
    when k.is_error then false
    when k.status in (200, 201)
      then k.body !~
        '^\{("id" ?: ?"(whe|whd|key|env|flt|ins|chk)_[0-9a-z]{26}"|"object":"(sandbox_reset|clock|customer)"),?'
      and k.body !~ '^\{"id":"(pay|tr)_[0-9a-z]{26}","object":"bank_details",'
    when k.status = 202 then k.body !~ '^\{"object" ?: ?"recovery",'
    else true
  end
  when right(k.id, 26) < coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    and not k.livemode then false
  when not k.is_error and k.status not in (200, 201) then true
  when x.id is null then true
  -- The response is the text of the resource at this sequence (pay_internal.text_at).
  when k.sequence is not null then k.sequence <> x.sequence and not exists (
    select from pay.events e
    where e.environment_id = k.environment_id and e.subject_id = k.id and e.sequence = k.sequence
  )
  else x.body <> k.object and not exists (
    select from pay.events e
    where e.environment_id = k.environment_id and e.subject_id = x.subject_id
      and (coalesce(e.object, pay_internal.text_at(e.environment_id, e.subject_id, e.sequence))
          = k.object
        -- An event of a refund or dispute shows that, and not the payment.
        or (e.type like 'refund.%' or e.type like 'dispute.%') and x.id = x.subject_id
          and position('"sequence":' || e.sequence || ',' in k.object) > 0)
  )
end;
comment on view pay.invariant_stored_responses is
  'R1, R2: the resource in each stored response exists, and had the state that the response shows';

create or replace view pay.invariant_disputes with (security_invoker = true) as
select p.environment_id, p.id as subject_id,
  p.status || ', amount_disputed ' || p.amount_disputed || ': ' || coalesce(d.disputes, 0)
    || ' open or lost disputes of ' || coalesce(d.amount_minor, 0) as detail
from pay.payments p
left join (
  select environment_id, payment_id, count(*) as disputes, sum(amount_minor) as amount_minor
  from pay.disputes where status <> 'won' group by environment_id, payment_id
) d on d.environment_id = p.environment_id and d.payment_id = p.id
left join pay_internal.sandbox_times clock on clock.environment_id = p.environment_id
where (right(p.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    or p.environment_id in (select e.id from pay.environments e where e.livemode))
  and (p.status = 'chargeback' or d.payment_id is not null)
  and (p.status <> 'chargeback' or coalesce(d.disputes, 0) = 0
    -- The simulated provider opens one at a time.
    or d.disputes > 1
      and p.environment_id not in (select e.id from pay.environments e where e.livemode)
    or coalesce(d.amount_minor, 0) <> p.amount_disputed);
comment on view pay.invariant_disputes is
  'R5: a payment that is charged back has open or lost disputes, whose sum is its disputed amount';

create or replace view pay.invariant_dispute_bodies with (security_invoker = true) as
select dispute.environment_id, dispute.id as subject_id, 'row, body and event differ' as detail
from pay.disputes dispute
left join pay_internal.sandbox_times clock on clock.environment_id = dispute.environment_id
where (right(dispute.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
    or dispute.environment_id in (select v.id from pay.environments v where v.livemode))
  and (
    not starts_with(dispute.body, '{"id":"' || dispute.id || '",')
    or position('"payment_id":"' || dispute.payment_id || '",' in dispute.body) = 0
    or position('"amount_minor":' || dispute.amount_minor || ',' in dispute.body) = 0
    or position('"currency":"' || dispute.currency || '",' in dispute.body) = 0
    or position('"status":"' || dispute.status || '",' in dispute.body) = 0
    or (dispute.status in ('won', 'lost')) <> (position('"closed_at":null' in dispute.body) = 0)
    -- In a live environment retention may have deleted the event of the dispute.
    or right(dispute.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
      and not exists (
      select from pay.events e
      where e.environment_id = dispute.environment_id and e.subject_id = dispute.payment_id
        and e.type = any (case dispute.status
          when 'needs_response' then '{dispute.created,dispute.updated}'::text[]
          when 'under_review' then '{dispute.updated}'
          else array['dispute.' || dispute.status] end)
        and e.object = dispute.body
    )
  );
comment on view pay.invariant_dispute_bodies is
  'R5: the body of a dispute agrees with its row and its event';

create or replace view pay.invariant_checkouts with (security_invoker = true) as
select t.environment_id, t.id as subject_id,
  t.payments_count || ' payments of ' || coalesce(p.successful, 0) || ' successful ones' as detail
from pay.checkouts t
left join (
  select environment_id, checkout_id, count(*) filter (where is_counted) as successful
  from pay.payments where checkout_id is not null group by environment_id, checkout_id
) p on p.environment_id = t.environment_id and p.checkout_id = t.id
left join pay_internal.sandbox_times clock on clock.environment_id = t.environment_id
where t.payments_count < coalesce(p.successful, 0)
  -- Retention may have deleted payments of an older link.
  or t.payments_count > coalesce(p.successful, 0)
    and t.created_at > coalesce(clock.now, now()) - interval '29 days'
union all
select p.environment_id, p.id, p.status || ', and is_counted is ' || p.is_counted
from pay.payments p
where case
  when p.checkout_id is null
    or p.status in (/* waits for money or an authentication */ 'pending', 'requires_action')
    then p.is_counted
  when p.status in (/* waits for its result */ 'processing') then false
  when p.status in (/* unpaid */ 'declined', 'failed', 'cancelled') then false
  else not p.is_counted end;
comment on view pay.invariant_checkouts is
  'R5: a checkout counts the payments that were successful, each once';

create or replace view pay.invariant_instruments with (security_invoker = true) as
select p.environment_id, p.id as subject_id, 'a payment of 0 with movements or refunds' as detail
from pay.payments p
where p.amount_minor = 0 and (
  exists (select from pay.ledger_movements m
    where m.environment_id = p.environment_id and m.subject_id = p.id)
  or exists (select from pay.refunds r
    where r.environment_id = p.environment_id and r.payment_id = p.id))
union all
select t.environment_id, t.id, t.status || ', but ' || p.id || ' is ' || p.status
from pay.instruments t
join pay.payments p on p.environment_id = t.environment_id and p.id = t.payment_id
-- An instrument stays active when its payment fails or is cancelled later.
where t.is_kept and not case
  when p.status in (/* waits for money or an authentication */ 'pending', 'requires_action')
    or p.status in (/* waits for its result */ 'processing')
      and not pay_internal.rail_collects(p.method_kind)
    then t.status = 'pending' or t.ended_reason in ('revoked', 'account_closed')
  when p.status = 'declined' and not pay_internal.rail_collects(p.method_kind)
    then t.status = 'failed'
  when p.status in (/* unpaid */ 'declined', 'failed', 'cancelled') then t.status <> 'pending'
  else t.status in ('active', 'ended')
end
union all
select t.environment_id, t.id, t.status || ' with ' || coalesce(e.events, 0) || ' events of its end'
from pay.instruments t
left join (
  select environment_id, subject_id, count(*) as events
  from pay.events where type = 'instrument.ended' group by environment_id, subject_id
) e on e.environment_id = t.environment_id and e.subject_id = t.id
left join pay_internal.sandbox_times clock on clock.environment_id = t.environment_id
where case when t.status <> 'ended' then e.events > 0
  when t.ended_at > coalesce(clock.now, now()) - interval '29 days'
    then e.events is distinct from 1
  else e.events > 1 end
union all
select t.environment_id, min(t.id), count(*) || ' instruments of a mandate'
from pay.instruments t where t.mandate_id is not null and t.status <> 'failed'
group by t.environment_id, upper(t.mandate_id) having count(*) > 1;
comment on view pay.invariant_instruments is
  'R5: an instrument agrees with the payment that saved it, ends with one event, and has its mandate alone; a payment of 0 moves no money';

create or replace view pay.invariant_texts with (security_invoker = true) as
select t.environment_id, t.id as subject_id, t.detail
from (
  select x.environment_id, x.id,
    pay_internal.find_broken_text(x.environment_id, x.id, x.sequence, x.body) as detail
  from (
    select environment_id, id, sequence, updated_at, body from pay.payments
    union all
    select environment_id, id, sequence, updated_at, body from pay.transfers
  ) x
  left join pay_internal.sandbox_times clock on clock.environment_id = x.environment_id
  where (right(x.id, 26) >= coalesce(clock.recent_suffix, (select pay_internal.recent_suffix()))
      or x.environment_id in (select e.id from pay.environments e where e.livemode))
    and ((select coalesce(current_setting('pay.part_of_texts', true), '')) = ''
      or x.updated_at >= coalesce(clock.now, now()) - interval '2 hours'
      or abs(hashtext(x.id) % 24)
        = (select nullif(current_setting('pay.part_of_texts', true), '')::integer))
  offset 0
) t
where t.detail is not null;
comment on view pay.invariant_texts is
  'R2, R5: the text of a payment or transfer as of each of its events is JSON with its sequence';

create or replace view pay.ledger_entries with (security_invoker = true) as
select m.environment_id,
  pay_internal.ledger_entry_id(m.transaction_id, m.leg, side.direction) as id,
  m.transaction_id, m.subject_id, m.refund_id, side.account, side.direction, m.amount_minor,
  m.currency, m.created_at
from pay.ledger_movements m
cross join lateral (
  values ('debit', m.debit_account), ('credit', m.credit_account)
) as side (direction, account);
comment on view pay.ledger_entries is 'The two entries of each movement of the ledger.';


do $settings$
declare
  v_shared record;
begin
  for v_shared in
    select p.oid::regprocedure as function, s.name, s.value
    from (values
      -- Supabase's advisors warn of a function without it.
      ('any', 'search_path', 'pg_catalog, pg_temp'),
      -- Its compilation (JIT) takes longer than any statement of the service.
      ('pay', 'jit', 'off'),
      -- The functions of the service look rows up. A session keeps the plan that it has made while
      -- a table was empty or small, so that plan must not read the whole table. With the values of
      -- parameters it would plan at each call: 600 µs for a page of payments instead of 270.
      ('pay_api', 'enable_seqscan', 'off'),
      ('pay_api', 'plan_cache_mode', 'force_generic_plan')
    ) as s (scope, name, value)
    join pg_catalog.pg_proc p
      on p.pronamespace in ('pay'::regnamespace, 'pay_internal'::regnamespace)
    where not exists (select from unnest(p.proconfig) c where starts_with(c, s.name || '='))
      and case s.scope when 'pay' then p.pronamespace = 'pay'::regnamespace
        when 'pay_api' then has_function_privilege('pay_api', p.oid, 'execute') else true end
  loop
    execute pg_catalog.format(
      'alter function %s set %I = %s', v_shared.function, v_shared.name, v_shared.value);
  end loop;
end
$settings$;

reset check_function_bodies;
do $$ begin execute pg_catalog.format('set role %I',
  pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
