-- Written by "deno task schema --release functions" from supabase/schemas: do not edit.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

set check_function_bodies = off;

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
grant execute on function pay.create_environment(text, text, boolean, text) to pay_operator;

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
grant execute on function
  pay.create_api_key(text, text, text, text[], text, text, text, timestamptz) to pay_operator;

create or replace function pay.api_key_body(k pay.api_keys, p_at timestamptz)
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
        ) order by s.created_at desc, s.hash desc), '[]'::json)
        from pay.api_key_secrets s
        where s.api_key_id = k.id and s.revoked_at is null
          and (s.expires_at is null or s.expires_at > p_at)
      ) as secrets,
      (
        select pay.wire_time(greatest(k.last_used_at, max(s.last_used_at)))
        from pay.api_key_secrets s where s.api_key_id = k.id
      ) as last_used_at,
      pay.wire_time(k.created_at) as created_at,
      pay.wire_time(k.expires_at) as expires_at,
      pay.wire_time(k.revoked_at) as revoked_at
  ) t
$$;

create or replace function pay.add_api_key_secret(
  p_id text,
  p_at timestamptz,
  p_secret_hash text,
  p_prefix text,
  p_last_four text,
  p_older_expire_at timestamptz
)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  update pay.api_key_secrets s
  set expires_at = case
    when live.rank >= pay.max_live_secrets() then p_at
    else p_older_expire_at
  end
  from (
    select o.hash, row_number() over (order by o.created_at desc, o.hash desc) as rank
    from pay.api_key_secrets o
    where o.api_key_id = p_id and o.revoked_at is null
      and (o.expires_at is null or o.expires_at > p_at)
  ) live
  where s.hash = live.hash
    and (live.rank >= pay.max_live_secrets()
      or s.expires_at is null or s.expires_at > p_older_expire_at);
  insert into pay.api_key_secrets
    (hash, api_key_id, environment_id, livemode, prefix, last_four, created_at, expires_at)
  select decode(p_secret_hash, 'hex'), k.id, k.environment_id, k.livemode, p_prefix, p_last_four,
    p_at, k.expires_at
  from pay.api_keys k where k.id = p_id;
  perform pay.drop_ended_secrets(array[p_id], least(p_at, pay.server_time()));
end
$$;

create or replace function pay.end_api_key(p_id text, p_at timestamptz)
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

create or replace function pay.list_api_keys()
returns table (
  id text, environment_id text, account text, environment_name text, livemode boolean, name text,
  scopes text[], prefix text, last_four text, secrets integer, last_used_at timestamptz,
  created_at timestamptz, expires_at timestamptz, revoked_at timestamptz
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('pay.worker', 'on', true);
  return query
    select k.id, e.public_id, e.account, e.name, k.livemode, k.name, k.scopes, n.prefix,
      n.last_four, n.secrets, greatest(k.last_used_at, n.last_used_at), k.created_at, k.expires_at,
      k.revoked_at
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
grant execute on function pay.list_api_keys() to pay_operator;

create or replace function pay.find_environment(p_account text, p_livemode boolean)
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
grant execute on function pay.find_environment(text, boolean) to pay_operator;

create or replace function pay.rotate_api_key(
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
declare
  v_key pay.api_keys;
begin
  perform set_config('pay.worker', 'on', true);
  select * into v_key from pay.api_keys k where k.id = p_id and k.revoked_at is null for update;
  if v_key.id is null then
    return false;
  end if;
  if v_key.expires_at <= now() then
    if not pay.take_key_place(v_key.environment_id, now()) then
      raise exception 'the environment of % has % live keys already', p_id, pay.max_live_keys()
        using errcode = 'program_limit_exceeded';
    end if;
    update pay.api_keys k set expires_at = null where k.id = p_id;
  end if;
  perform pay.add_api_key_secret(
    p_id, now(), p_secret_hash, p_prefix, p_last_four, p_older_expire_at);
  return true;
end
$$;
grant execute on function pay.rotate_api_key(text, text, text, text, timestamptz) to pay_operator;

create or replace function pay.revoke_api_key(p_id text)
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
grant execute on function pay.revoke_api_key(text) to pay_operator;

create or replace function pay.judge_key_change(
  p_action text,
  p_caller pay.api_keys,
  p_key pay.api_keys,
  p_at timestamptz
)
returns text
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select case
    when p_key.id is null then 'not_found'
    -- Null is every scope.
    when p_caller.scopes is not null
      and (p_key.scopes is null or not p_key.scopes <@ p_caller.scopes) then 'wider'
    -- The caller learns the new secret, which must not outlive the caller's key.
    when p_action = 'rotate' and p_caller.expires_at < coalesce(p_key.expires_at, 'infinity')
      then 'outlives'
    when p_action = 'rotate' and p_key.expires_at <= p_at then 'ended'
    when p_action = 'create' and not pay.take_key_place(p_caller.environment_id, p_at) then 'full'
    else 'committed'
  end
$$;

create or replace function pay.change_api_key(
  p_key_hash text,
  p_scope text,
  p_at timestamptz,
  p_rate integer[],
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
  p_secret text,
  p_refusal text
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
  v_key pay.api_keys;
begin
  select * into outcome, api_key_id, v_environment, remaining
  from pay.enter(p_key_hash, p_scope, p_at, null, 'shared');
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
  if p_action = 'create' then
    v_key.id := p_id;
    v_key.scopes := case when p_scopes is not null then
      array(select json_array_elements_text(p_scopes::json))
    end;
  else
    select * into v_key from pay.api_keys k
    where k.environment_id = v_environment and k.id = p_id and k.revoked_at is null
    for update;
  end if;
  outcome := pay.judge_key_change(p_action, v_caller, v_key, p_at);
  if outcome = 'ended' then
    status := 409;
    body := p_refusal;
    perform pay.keep_answer(
      v_environment, api_key_id, p_request_id, p_idempotency_key, status, body);
  elsif outcome <> 'committed' then
    perform pay.release_idempotency_key(v_environment, api_key_id, p_request_id, p_idempotency_key);
  end if;
  if outcome <> 'committed' then
    return next;
    return;
  end if;

  if p_action = 'create' then
    insert into pay.api_keys
      (id, environment_id, livemode, name, scopes, created_at, expires_at)
    values
      (p_id, v_environment, v_caller.livemode, p_name, v_key.scopes, p_at,
        least(p_expires_at, v_caller.expires_at));
  end if;
  if p_action = 'revoke' then
    perform pay.end_api_key(p_id, p_at);
  else
    perform pay.add_api_key_secret(
      p_id, p_at, p_secret_hash, p_prefix, p_last_four, coalesce(p_older_expire_at, p_at));
  end if;
  select pay.api_key_body(k, p_at) into body from pay.api_keys k
  where k.environment_id = v_environment and k.id = p_id;
  if p_secret is not null then
    body := left(body, -1) || ',"secret":' || to_json(p_secret)::text || '}';
  end if;
  perform pay.keep_answer(
    v_environment, api_key_id, p_request_id, p_idempotency_key, p_status, body);
  return next;
end
$$;
grant execute on function pay.change_api_key(
  text, text, timestamptz, integer[], text, text, text, smallint, text, text, text, text, text, text,
  text, timestamptz, timestamptz, text, text) to pay_api;

create or replace function pay.lock_funds(p_changes json, p_transfers json)
returns integer[]
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_draw record;
  v_fund text := '';
  v_left numeric;
  v_short integer[] := '{}';
begin
  for v_draw in
    with asked as materialized (
      select c.n, decode(c.key_hash, 'hex') as hash
      from json_to_recordset(p_changes) as c (n integer, key_hash text, expects_id text)
      where c.expects_id is null
    )
    select c.n, s.environment_id, t.currency, t.amount_minor
    from asked c
    join pay.api_key_secrets s on s.hash = c.hash
    join json_to_recordset(p_transfers) as t (n integer, currency text, amount_minor bigint)
      on t.n = c.n
    order by s.environment_id, t.currency, c.n
  loop
    if v_fund <> v_draw.environment_id || v_draw.currency then
      v_fund := v_draw.environment_id || v_draw.currency;
      perform pg_advisory_xact_lock(hashtextextended(v_fund, 0));
      -- A statement after the lock, so that it sees what the one before has taken.
      v_left := pay.available_minor(v_draw.environment_id, v_draw.currency);
    end if;
    if v_draw.amount_minor > v_left then
      v_short := v_short || v_draw.n;
    else
      v_left := v_left - v_draw.amount_minor;
    end if;
  end loop;
  return v_short;
end
$$;

create or replace function pay.commit(
  p_changes text,
  p_payments text,
  p_transfers text,
  p_refunds text,
  p_ledger text,
  p_events text,
  p_patience_ms integer default null
)
returns table (
  n integer, outcome text, api_key_id text, environment_id text, remaining integer, status smallint,
  body text, deliveries bigint
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_mergejoin = off
set enable_material = off
-- How long a twin waits for the first request (contract §5).
set lock_timeout = '3s'
as $$
#variable_conflict use_column
declare
  v_changes json := p_changes::json;
  v_now timestamptz := pay.server_time();
  v_opened text[];
  v_environments text[];
  v_committed integer[];
  v_api_keys text[];
  v_ats timestamptz[];
  v_deliveries bigint := 0;
  v_locked integer[] := '{}';
  v_short integer[] := '{}';
  -- The remainder for each request of the list, by its n; null without a limit.
  v_left integer[];
  v_limited integer[] := '{}';
  -- Asked once: the text is long.
  v_has_rates boolean := p_changes like '%"rate":%';
  v_request record;
begin
  if p_patience_ms is not null then
    perform set_config('lock_timeout', p_patience_ms::text, true);
  end if;
  v_opened := pay.open_environments(v_changes);

  -- What most changes need not pay for stands in statements of its own, here and below.
  if exists (
    select from json_to_recordset(v_changes) as c (expects_id text) where c.expects_id is not null
  ) then
    with
    asked as materialized (
      select c.n, c.expects_id, c.expects_sequence, decode(c.key_hash, 'hex') as hash
      from json_to_recordset(v_changes) as c (
        n integer, key_hash text, expects_id text, expects_sequence integer
      )
      where c.expects_id is not null
    ),
    payment as materialized (
      select c.n, p.id
      from asked c
      join pay.api_key_secrets s on s.hash = c.hash
      join pay.payments p
        on p.environment_id = s.environment_id
        and p.id = c.expects_id
        and p.sequence = c.expects_sequence
      order by p.environment_id, p.id
      for update of p
    ),
    transfer as materialized (
      select c.n, t.id
      from asked c
      join pay.api_key_secrets s on s.hash = c.hash
      join pay.transfers t
        on t.environment_id = s.environment_id
        and t.id = c.expects_id
        and t.sequence = c.expects_sequence
      order by t.environment_id, t.id
      for update of t
    )
    -- Of several changes of one resource in the list the first goes through.
    select coalesce(array_agg(l.n), '{}') into v_locked
    from (
      select min(x.n) as n from (select * from payment union all select * from transfer) x group by x.id
    ) l;
  end if;
  if v_has_rates then
    v_left := pay.requests_left(v_changes);
    v_limited := array(
      select l.n from unnest(v_left) with ordinality as l (requests, n) where l.requests < 0);
  end if;
  if p_transfers <> '[]' then
    v_short := pay.lock_funds(v_changes, p_transfers::json);
  end if;

  with
  -- Decoded here: in a join with a table under row-level security the call would bar the index.
  asked as materialized (
    select c.*, decode(c.key_hash, 'hex') as hash, decode(c.fingerprint, 'hex') as fingerprint_hash
    from json_to_recordset(v_changes) as c (
      n integer, key_hash text, scope text, at timestamptz, request_id text, idempotency_key text,
      fingerprint text, status smallint, body text,
      expects_id text, expects_sequence integer
    )
  ),
  change as materialized (
    select c.*, s.api_key_id, s.environment_id
    from asked c
    join pay.api_key_secrets s
      on s.hash = c.hash
      and s.revoked_at is null
      and (s.expires_at is null or s.expires_at > c.at)
      and s.environment_id = any (v_opened)
    join pay.api_keys k
      on k.id = s.api_key_id and (k.scopes is null or c.scope = any (k.scopes))
  ),
  ready as materialized (
    select * from change c
    where (c.expects_id is null or c.n = any (v_locked))
      and c.n <> all (v_short) and c.n <> all (v_limited)
  ),
  claimed as (
    insert into pay.idempotency_keys
      (environment_id, api_key_id, key, fingerprint, request_id, status, body, created_at)
    select c.environment_id, c.api_key_id, c.idempotency_key, c.fingerprint_hash,
      c.request_id, c.status, c.body, v_now
    from ready c
    where c.idempotency_key is not null
    order by c.api_key_id, c.idempotency_key, c.n
    on conflict on constraint idempotency_keys_pkey do nothing
    returning api_key_id, key, request_id
  ),
  won as (
    select * from ready c
    where c.idempotency_key is null or exists (
      select from claimed k
      where k.api_key_id = c.api_key_id
        and k.key = c.idempotency_key
        and k.request_id = c.request_id
    )
  )
  select array_agg(w.n), array_agg(w.api_key_id), array_agg(w.environment_id), array_agg(w.at)
  into v_committed, v_api_keys, v_environments, v_ats
  from won w;

  -- A list of replays writes nothing: what it would have written is not even read.
  if v_committed is not null then
    with
    won as materialized (
      select * from unnest(v_committed, v_environments) as w (n, environment_id)
    ),
    payment_made as (
      insert into pay.payments
        (environment_id, id, status, amount_minor, amount_refunded, currency, method_kind, reference,
          sequence, created_at, updated_at, body)
      select w.environment_id, p.id, p.status, p.amount_minor, p.amount_refunded, p.currency,
        p.method_kind, p.reference, p.sequence, p.created_at, p.updated_at, p.body
      from json_to_recordset(p_payments::json) as p (
        n integer, id text, status text, amount_minor bigint, amount_refunded bigint, currency text,
        method_kind text, reference text, sequence integer, created_at timestamptz,
        updated_at timestamptz, body text
      )
      join won w on w.n = p.n and w.n <> all (v_locked)
    ),
    event as materialized (
      select w.environment_id, e.*
      from json_to_recordset(p_events::json) as e (
        n integer, id text, type text, subject_id text, sequence integer, created_at timestamptz,
        delivery_id text, body text
      )
      join won w on w.n = e.n
    ),
    event_made as (
      insert into pay.events (environment_id, id, type, subject_id, sequence, created_at, body)
      select environment_id, id, type, subject_id, sequence, created_at, body from event
    ),
    delivery_made as (
      insert into pay.webhook_deliveries
        (environment_id, id, event_id, event_type, endpoint_id, subject_id, sequence, status,
          next_attempt_at, created_at)
      select e.environment_id, e.delivery_id || pay.slot_character(t.slot), e.id, e.type, t.id,
        e.subject_id, e.sequence, 'pending', least(e.created_at, v_now), e.created_at
      from event e
      join pay.webhook_endpoints t
        on t.environment_id = e.environment_id
        and t.status = 'enabled'
        and t.events && pay.patterns_of(e.type)
      returning 1
    )
    select count(*) into v_deliveries from delivery_made;
    if p_ledger <> '[]' then
      perform pay.record_movements(p_ledger::json, v_committed, v_environments);
    end if;
  end if;

  if v_locked <> '{}' and p_payments <> '[]' then
    update pay.payments t
    set status = p.status, amount_refunded = p.amount_refunded, sequence = p.sequence,
      updated_at = p.updated_at, body = p.body
    from json_to_recordset(p_payments::json) as p (
      n integer, id text, status text, amount_refunded bigint, sequence integer,
      updated_at timestamptz, body text
    )
    join unnest(v_committed, v_environments) as w (n, environment_id) on w.n = p.n
    where p.n = any (v_locked) and t.environment_id = w.environment_id and t.id = p.id;
  end if;
  if p_refunds <> '[]' then
    insert into pay.refunds (environment_id, id, payment_id, amount_minor, currency, created_at, body)
    select w.environment_id, r.id, r.payment_id, r.amount_minor, r.currency, r.created_at, r.body
    from json_to_recordset(p_refunds::json) as r (
      n integer, id text, payment_id text, amount_minor bigint, currency text,
      created_at timestamptz, body text
    )
    join unnest(v_committed, v_environments) as w (n, environment_id) on w.n = r.n;
  end if;
  if p_transfers <> '[]' then
    insert into pay.transfers
      (environment_id, id, status, amount_minor, currency, sequence, created_at, updated_at, body)
    select w.environment_id, r.id, r.status, r.amount_minor, r.currency, r.sequence, r.created_at,
      r.updated_at, r.body
    from json_to_recordset(p_transfers::json) as r (
      n integer, id text, status text, amount_minor bigint, currency text, sequence integer,
      created_at timestamptz, updated_at timestamptz, body text
    )
    join unnest(v_committed, v_environments) as w (n, environment_id) on w.n = r.n
    where r.n <> all (v_locked);
    update pay.transfers t
    set status = r.status, sequence = r.sequence, updated_at = r.updated_at, body = r.body
    from json_to_recordset(p_transfers::json) as r (
      n integer, id text, status text, sequence integer, updated_at timestamptz, body text
    )
    join unnest(v_committed, v_environments) as w (n, environment_id) on w.n = r.n
    where r.n = any (v_locked) and t.environment_id = w.environment_id and t.id = r.id;
  end if;

  if cardinality(v_committed) = json_array_length(v_changes) then
    if v_has_rates then
      perform pay.add_requests(t.environment_id, t.api_key_id, max(t.at), count(*)::integer)
      from unnest(v_committed, v_api_keys, v_environments, v_ats)
        as t (n, api_key_id, environment_id, at)
      where v_left[t.n] is not null
      group by t.environment_id, t.api_key_id;
    end if;
    return query
      select t.n, 'committed', t.api_key_id, t.environment_id, v_left[t.n], null::smallint,
        null::text, v_deliveries
      from unnest(v_committed, v_api_keys, v_environments) as t (n, api_key_id, environment_id);
    return;
  end if;

  -- A new statement and so a new snapshot: it sees the answers that the losers waited for. Looked up
  -- one by one, by the whole key: without statistics a join would read all keys of the environment.
  for v_request in
    with asked as materialized (
      select c.*, decode(c.key_hash, 'hex') as hash, decode(c.fingerprint, 'hex') as fingerprint_hash
      from json_to_recordset(v_changes) as c (
        n integer, key_hash text, scope text, at timestamptz, idempotency_key text,
        fingerprint text, expects_id text
      )
    )
    select c.n, c.at, c.idempotency_key, s.environment_id, s.api_key_id, i.status, i.body,
      i.created_at as kept_at,
      case
        when c.n = any (v_committed) then 'committed'
        when s.hash is null then 'unauthorized'
        when s.environment_id <> all (v_opened) then 'resetting'
        when k.id is null and c.n = any (v_limited) then 'rate_limited'
        when k.id is null then 'forbidden'
        when i.created_at <= v_now - pay.idempotency_retention() then 'expired'
        when i.key is not null and i.fingerprint = c.fingerprint_hash then 'replay'
        when c.n = any (v_limited) then 'rate_limited'
        when i.key is not null then 'conflict'
        when c.n = any (v_short) then 'insufficient'
        when c.expects_id is not null then 'stale'
        else 'expired'
      end as outcome
    from asked c
    left join pay.api_key_secrets s
      on s.hash = c.hash
      and s.revoked_at is null
      and (s.expires_at is null or s.expires_at > c.at)
    left join pay.api_keys k
      on k.id = s.api_key_id and (k.scopes is null or c.scope = any (k.scopes))
    left join lateral (
      select o.key, o.fingerprint, o.status, o.body, o.created_at
      from pay.idempotency_keys o
      where o.environment_id = s.environment_id
        and o.api_key_id = s.api_key_id
        and o.key = c.idempotency_key
      limit 1
    ) i on true
  loop
    n := v_request.n;
    outcome := v_request.outcome;
    api_key_id := v_request.api_key_id;
    environment_id := v_request.environment_id;
    status := v_request.status;
    body := v_request.body;
    remaining := null;
    deliveries := v_deliveries;
    if outcome in ('committed', 'forbidden', 'conflict', 'insufficient', 'replay') then
      if v_left[n] is not null then
        remaining := greatest(0, v_left[n] + case outcome when 'replay' then 1 else 0 end);
        if outcome <> 'replay' then
          perform pay.add_requests(environment_id, api_key_id, v_request.at, 1);
        end if;
      end if;
    elsif outcome = 'rate_limited' then
      remaining := 0;
    elsif outcome = 'expired' then
      delete from pay.idempotency_keys o
      where o.environment_id = v_request.environment_id
        and o.api_key_id = v_request.api_key_id
        and o.key = v_request.idempotency_key
        -- Not one that a twin has claimed meanwhile.
        and o.created_at = v_request.kept_at;
    end if;
    return next;
  end loop;
end
$$;
grant execute on function pay.commit(text, text, text, text, text, text, integer) to pay_api;

create or replace function pay.read_health()
returns table (
  due_deliveries bigint,
  oldest_due_seconds double precision,
  pending_deliveries bigint,
  failed_deliveries_last_hour bigint,
  failing_endpoints bigint,
  oracle_findings bigint,
  books_checked_at timestamptz,
  is_retention_behind boolean,
  test_keys bigint,
  live_keys bigint,
  is_relay_configured boolean
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_most constant integer := 100000;
  v_hour_ago constant timestamptz := now() - interval '1 hour';
begin
  perform set_config('pay.worker', 'on', true);
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
      cross join lateral (
        (
          select d.next_attempt_at as since from pay.webhook_deliveries d
          where d.endpoint_id = t.id and d.next_attempt_at <= now() and d.lost_claims = 0
            and (d.leased_until is null or d.leased_until <= now())
          order by d.next_attempt_at limit 1
        )
        union all
        select d.next_attempt_at from pay.webhook_deliveries d
        where d.endpoint_id = t.id and d.next_attempt_at <= now() and d.lost_claims > 0
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
        and d.id >= pay.id_floor('whd_', v_hour_ago)
      where d.status = 'failed' and e.retired_at is null
    ),
    (
      select count(*) from pay.webhook_endpoints t
      where t.status = 'enabled' and t.failing_since is not null
    ),
    (
      select case
        when exists (select from pay.settings s where s.name = 'books_checked_at') then count(*)
      end
      from (select from pay.oracle_findings limit v_most) findings
    ),
    (
      select to_timestamp(s.value::double precision) from pay.settings s
      where s.name = 'books_checked_at'
    ),
    exists (
      select from pay.environments e
      cross join lateral (
        select v.id from pay.events v where v.environment_id = e.id order by v.id limit 1
      ) oldest
      where oldest.id < pay.id_floor('evt_', now() - interval '31 days')
    ),
    (select count(*) from pay.api_keys k where not k.livemode and k.revoked_at is null),
    (select count(*) from pay.api_keys k where k.livemode and k.revoked_at is null),
    (select count(*) = 2 from pay.settings s where s.name in ('relay_url', 'relay_token'));
end
$$;
grant execute on function pay.read_health() to pay_operator;

create or replace function pay.read_cron()
returns table (
  last_relay_wake_at timestamptz,
  last_retention_at timestamptz,
  failed_cron_runs bigint
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if to_regclass('cron.job_run_details') is null then
    return query select null::timestamptz, null::timestamptz, null::bigint;
    return;
  end if;
  -- The newest runs, by their primary key: some 80 minutes of our jobs.
  return query execute '
    select max(r.start_time) filter (where j.jobname = ''pay-relay''),
      max(r.start_time) filter (where j.jobname = ''pay-retention''),
      count(*) filter (where r.status = ''failed'')
    from (select * from cron.job_run_details order by runid desc limit 1000) r
    join cron.job j on j.jobid = r.jobid and j.jobname like ''pay-%''';
exception when insufficient_privilege then
  return query select null::timestamptz, null::timestamptz, null::bigint;
end
$$;
grant execute on function pay.read_cron() to pay_operator;

create or replace function pay.read_wakes()
returns table (last_relay_status integer, failed_relay_wakes_last_hour bigint)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if to_regclass('net._http_response') is null then
    return query select null::integer, null::bigint;
    return;
  end if;
  return query execute '
    with wake as materialized (
      select w.woken_at, r.id is not null as is_answered, r.status_code
      from pay.recent_wakes() w
      left join net._http_response r on r.id = w.request_id
        and r.created between w.woken_at and w.woken_at + interval ''5 minutes''
        and r.created >= now() - interval ''1 hour''
    )
    select
      (select k.status_code from wake k where k.is_answered order by k.woken_at desc limit 1),
      (
        select count(*) from wake k
        where case
          when k.is_answered then coalesce(k.status_code, 0) not between 200 and 299
          else k.woken_at between now() - interval ''10 minutes'' and now() - interval ''1 minute''
        end
      )';
exception when insufficient_privilege then
  return query select null::integer, null::bigint;
end
$$;
grant execute on function pay.read_wakes() to pay_operator;

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

create or replace function pay.max_live_keys()
returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select 100 $$;

create or replace function pay.max_live_secrets()
returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select 5 $$;

create or replace function pay.delete_keys(p_ids text[])
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rows bigint;
begin
  delete from pay.api_key_secrets s where s.api_key_id = any (p_ids);
  delete from pay.api_keys k where k.id = any (p_ids);
  get diagnostics v_rows = row_count;
  return v_rows;
end
$$;

create or replace function pay.take_key_place(p_environment_id text, p_at timestamptz)
returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('keys ' || p_environment_id, 0));
  if (
    select count(*) from pay.api_keys k
    where k.environment_id = p_environment_id and k.revoked_at is null
      and (k.expires_at is null or k.expires_at > p_at)
  ) >= pay.max_live_keys() then
    return false;
  end if;
  -- Skips rows that a rotation has locked, because the rotation may wait for this lock.
  perform pay.delete_keys(array(
    select k.id from pay.api_keys k
    where k.id in (
      select o.id from pay.api_keys o
      where o.environment_id = p_environment_id and not o.livemode
        and least(o.revoked_at, o.expires_at) <= least(p_at, pay.server_time())
      order by least(o.revoked_at, o.expires_at) desc, o.id desc
      offset 1000
    )
    for update skip locked
  ));
  return true;
end
$$;

create or replace function pay.drop_ended_secrets(p_ids text[], p_at timestamptz)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rows bigint;
begin
  with gone as (
    delete from pay.api_key_secrets s
    where s.api_key_id = any (p_ids) and s.expires_at <= p_at
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
  select count(*) into v_rows from gone;
  return v_rows;
end
$$;

create or replace function pay.purge_keys(p_environment_id text, p_at timestamptz, p_batch integer)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_at timestamptz := least(p_at, pay.server_time());
  v_rows bigint;
  v_total bigint;
begin
  v_total := pay.drop_ended_secrets(array(
    select k.id from pay.api_keys k
    where k.environment_id = p_environment_id and exists (
      select from pay.api_key_secrets s
      where s.api_key_id = k.id and s.expires_at <= v_at and exists (
        select from pay.api_key_secrets newer
        where newer.api_key_id = k.id and (newer.created_at, newer.hash) > (s.created_at, s.hash)
      )
    )
    limit p_batch for update skip locked
  ), v_at);

  v_total := v_total + pay.delete_keys(array(
    select k.id from pay.api_keys k
    where k.environment_id = p_environment_id and not k.livemode
      and least(k.revoked_at, k.expires_at) <= v_at - interval '30 days'
    limit p_batch for update skip locked
  ));

  update pay.webhook_endpoints t
  set secrets = (
    select json_agg(s.source order by s.n)
    from json_array_elements(t.secrets) with ordinality as s (source, n)
    where s.source ->> 'expires_at' is null or (s.source ->> 'expires_at')::timestamptz > v_at
  )
  where t.id in (
    select o.id from pay.webhook_endpoints o
    where o.environment_id = p_environment_id and exists (
      select from json_array_elements(o.secrets) as s (source)
      where (s.source ->> 'expires_at')::timestamptz <= v_at
    )
    for update skip locked
  ) and t.environment_id = p_environment_id;
  get diagnostics v_rows = row_count;
  v_total := v_total + v_rows;

  delete from pay.rate_counters c
  where c.ctid = any (array(
    select o.ctid from pay.rate_counters o
    where o.environment_id = p_environment_id
      and o.window_number < floor(extract(epoch from v_at) / 2) - 1800
    limit p_batch for update skip locked
  ));
  get diagnostics v_rows = row_count;
  return v_total + v_rows;
end
$$;

create or replace function pay.ledger_entry_id(
  p_transaction_id text, p_leg smallint, p_direction text
)
returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ordinals constant text := '0123456789abcdefghjkmnpqrstvwxyz';
begin
  return 'le_' || substr(p_transaction_id, 5, 25) || substr(
    v_ordinals,
    strpos(v_ordinals, substr(p_transaction_id, 30)) + 2 * p_leg
      + case p_direction when 'debit' then 1 else 2 end,
    1
  );
end
$$;

create or replace function pay.has_ledger_entry(p_environment_id text, p_id text)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from pay.ledger_entries e
    where e.environment_id = p_environment_id
      and e.transaction_id >= 'txn_' || substr(p_id, 4, 25)
      and e.transaction_id < 'txn_' || substr(p_id, 4)
      and e.id = p_id
  )
$$;

create or replace function pay.page_movements(
  p_environment_id text, p_subject_id text, p_transaction_id text, p_account text, p_before text,
  p_limit integer
)
returns table (movement pay.ledger_movements, n bigint)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_rows constant integer := pay.page_rows() / 2;
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
        select t as movement, t.debit_account, t.credit_account, row_number() over newest as n
        from pay.ledger_movements t
        where t.environment_id = any (array[p_environment_id])
          and t.transaction_id between v_first and v_last
          and t.transaction_id < v_before
          and (t.transaction_id < v_change
            or pay.ledger_entry_id(t.transaction_id, t.leg, 'debit') < p_before)
          and (p_subject_id is null or t.subject_id = p_subject_id)
        window newest as (order by t.environment_id desc, t.transaction_id desc, t.leg desc)
        order by t.environment_id desc, t.transaction_id desc, t.leg desc
        limit v_rows
      ) r
      where p_account is null or p_account in (r.debit_account, r.credit_account) or r.n = v_rows
      limit p_limit;
  else
    return query
      select r.movement, r.n from (
        select t as movement, t.debit_account, t.credit_account, row_number() over newest as n
        from pay.ledger_movements t
        where t.subject_id = any (array[p_subject_id]) and t.environment_id = p_environment_id
          and t.transaction_id < v_before
          and (t.transaction_id < v_change
            or pay.ledger_entry_id(t.transaction_id, t.leg, 'debit') < p_before)
        window newest as (order by t.subject_id desc, t.transaction_id desc, t.leg desc)
        order by t.subject_id desc, t.transaction_id desc, t.leg desc
        limit v_rows
      ) r
      where p_account is null or p_account in (r.debit_account, r.credit_account) or r.n = v_rows
      limit p_limit;
  end if;
end
$$;

create or replace function pay.ledger_page(
  p_environment_id text, p_limit integer, p_starting_after text, p_filters jsonb,
  out data text, out has_more boolean, out next_cursor text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before constant text := coalesce(p_starting_after, '~');
  v_account constant text := p_filters ->> 'account';
  v_is_left boolean;
  v_last_shown text;
  v_last_read text;
begin
  select
    string_agg(p.body, ',' order by p.place) filter (where p.is_shown),
    bool_or(p.is_match and not p.is_shown),
    min(p.id) filter (where p.is_shown),
    min(p.id) filter (where p.n = pay.page_rows() / 2)
  into data, v_is_left, v_last_shown, v_last_read
  from (
    select e.*, b.body,
      e.is_match and (e.place = 1 or (
        e.place <= p_limit
        and sum(octet_length(b.body)) over (order by e.id desc) <= pay.page_bytes()
      )) as is_shown
    from (
      select m.movement, m.n, (m.movement).subject_id, side.direction, side.account, entry.id,
        entry.is_match,
        count(*) filter (where entry.is_match) over (order by entry.id desc) as place
      from pay.page_movements(
        p_environment_id, p_filters ->> 'subject_id', p_filters ->> 'transaction_id', v_account,
        v_before, case when v_account is null then p_limit / 2 else p_limit end + 2
      ) m
      cross join lateral (
        values ('debit', (m.movement).debit_account), ('credit', (m.movement).credit_account)
      ) as side (direction, account)
      cross join lateral (
        select coalesce(side.account = v_account, true) as is_match,
          pay.ledger_entry_id((m.movement).transaction_id, (m.movement).leg, side.direction) as id
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
          pay.wire_time((e.movement).created_at) as created_at
      ) w
    ) b on e.is_match and e.place <= p_limit
  ) p;
  data := coalesce(data, '');
  has_more := coalesce(v_is_left, false) or v_last_read is not null;
  next_cursor := case when v_is_left then v_last_shown else v_last_read end;
end
$$;

create or replace function pay.add_to_total(
  p_environment_id text, p_currency text, p_debit_account text, p_credit_account text,
  p_amount_minor numeric
)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
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
end
$$;

create or replace function pay.record_movements(
  p_ledger json, p_changes integer[], p_environments text[]
)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_total record;
begin
  for v_total in
    with movement as (
      insert into pay.ledger_movements (
        environment_id, transaction_id, leg, kind, subject_id, refund_id, debit_account,
        credit_account, amount_minor, currency, created_at
      )
      select p_environments[array_position(p_changes, l.n)], l.transaction_id, l.leg, l.kind,
        l.subject_id, l.refund_id, l.debit_account, l.credit_account, l.amount_minor, l.currency,
        l.created_at
      from json_to_recordset(p_ledger) as l (
        n integer, transaction_id text, leg smallint, kind text, subject_id text, refund_id text,
        debit_account text, credit_account text, amount_minor bigint, currency text,
        created_at timestamptz
      )
      where l.n = any (p_changes)
      returning environment_id, currency, debit_account, credit_account, amount_minor
    )
    select m.environment_id, m.currency, m.debit_account, m.credit_account,
      sum(m.amount_minor) as amount_minor
    from movement m
    group by m.environment_id, m.currency, m.debit_account, m.credit_account
    order by m.environment_id, m.currency, m.debit_account, m.credit_account
  loop
    perform pay.add_to_total(v_total.environment_id, v_total.currency, v_total.debit_account,
      v_total.credit_account, v_total.amount_minor);
  end loop;
end
$$;

create or replace function pay.read_totals(p_environment_id text)
returns table (currency text, debit_account text, credit_account text, amount_minor numeric)
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
as $$
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

create or replace function pay.account_sums(p_environment_id text)
returns table (currency text, account text, debits_minor numeric, credits_minor numeric)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select t.currency, side.account, sum(side.debits_minor), sum(side.credits_minor)
  from pay.read_totals(p_environment_id) t
  cross join lateral (
    values (t.debit_account, t.amount_minor, 0::numeric), (t.credit_account, 0::numeric, t.amount_minor)
  ) as side (account, debits_minor, credits_minor)
  group by t.currency, side.account
$$;

create or replace function pay.available_minor(p_environment_id text, p_currency text)
returns numeric
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(sum(s.credits_minor - s.debits_minor), 0)
  from pay.account_sums(p_environment_id) s
  where s.currency = p_currency and s.account = 'available'
$$;

create or replace function pay.page_rows()
returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select 2000 $$;

create or replace function pay.page_bytes()
returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select 262144 $$;

create or replace function pay.list_column(p_kind text, p_filters jsonb)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    case p_kind
      when 'payments' then case
        when p_filters ? 'reference' then 'reference'
        when p_filters ->> 'status' <> 'completed' then 'status'
      end
      when 'refunds' then case when p_filters ? 'payment_id' then 'payment_id' end
      when 'transfers' then case when p_filters ? 'status' then 'status' end
      when 'webhook_deliveries' then case
        when p_filters ? 'subject_id' then 'subject_id'
        when p_filters ? 'endpoint_id' then 'endpoint_id'
      end
    end,
    'environment_id'
  )
$$;

create or replace function pay.list_range(p_kind text, p_column text)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when p_column is null then 'true'
    when p_column = 'environment_id' then 't.environment_id = any (array[$1])'
    else format('t.%1$I = any (array[$2 ->> %1$L]) and t.environment_id = $1', p_column)
  end
  || ' and t.id < $3 and t.id >= $4'
  -- The predicates of the partial indexes.
  || case
    when p_column = 'reference' then ' and t.reference is not null'
    when p_kind = 'payments' and p_column = 'status' then ' and t.status <> ''completed'''
    else ''
  end
$$;

create or replace function pay.list_subject(p_environment_id text, p_kind text, p_filters jsonb)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rows text := 'select t.* from pay.events t
    where t.environment_id = $1 and t.subject_id = $2 ->> ''subject_id''
    order by t.sequence limit pay.page_rows() + 1';
  v_are_few boolean;
begin
  if p_kind <> 'events' or not p_filters ? 'subject_id' then
    return null;
  end if;
  execute format('select count(*) <= pay.page_rows() from (%s) few', v_rows)
  into v_are_few
  using p_environment_id, p_filters;
  return case when v_are_few then v_rows end;
end
$$;

create or replace function pay.list_query(
  p_source text, p_range text, p_columns text[], p_match text, p_body text
)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select format(
    'select
       string_agg(page.body, '','' order by page.n) filter (where page.is_shown),
       bool_or(page.body is not null and not page.is_shown),
       min(page.id) filter (where page.is_shown),
       min(page.id) filter (where page.n = pay.page_rows())
     from (
       select t.n, t.id, t.body,
         t.body is not null and (row_number() over shown = 1 or (
           row_number() over shown <= $5
           and sum(octet_length(t.body)) over shown <= pay.page_bytes()
         )) as is_shown
       from (
         select %3$s, case when %5$s then %6$s end as body, row_number() over (order by %4$s) as n
         from %1$s t
         where %2$s
         order by %4$s
         limit pay.page_rows()
       ) t
       where t.body is not null or t.n = pay.page_rows()
       window shown as (order by %4$s rows unbounded preceding)
       limit $5 + 1
     ) page',
    p_source, p_range,
    (select string_agg('t.' || c, ', ') from unnest(p_columns) c),
    (select string_agg('t.' || c || ' desc', ', ') from unnest(p_columns) c),
    p_match, p_body
  )
$$;

create or replace function pay.list_page(
  p_environment_id text, p_at timestamptz, p_kind text, p_limit integer, p_starting_after text,
  p_filters jsonb,
  out data text, out has_more boolean, out next_cursor text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_filters jsonb := p_filters;
  v_subject text;
  v_few text;
  v_column text;
  v_match text;
  v_is_left boolean;
  v_last_shown text;
  v_last_read text;
begin
  -- The subject of an event's deliveries has an index.
  if p_kind = 'webhook_deliveries' and p_filters ? 'event_id' then
    select coalesce(min(x.subject_id), '') into v_subject from pay.events x
    where x.environment_id = p_environment_id and x.id = p_filters ->> 'event_id';
  end if;
  if v_subject <> coalesce(p_filters ->> 'subject_id', v_subject) then
    data := '';
    has_more := false;
    return;
  end if;
  if v_subject is not null then
    v_filters := p_filters || jsonb_build_object('subject_id', v_subject);
  end if;

  v_few := pay.list_subject(p_environment_id, p_kind, v_filters);
  v_column := case when v_few is null then pay.list_column(p_kind, v_filters) end;
  select coalesce(string_agg(format('t.%I = $2 ->> %L', c, c), ' and '), 'true') into v_match
  from jsonb_object_keys(v_filters - array[coalesce(v_column, ''), 'id_from', 'id_before']) c;
  execute pay.list_query(
    coalesce('(' || v_few || ')', format('pay.%I', p_kind)),
    pay.list_range(p_kind, v_column),
    array_remove(array[v_column, 'id'], null),
    v_match,
    case p_kind
      when 'api_keys' then 'pay.api_key_body(t, $6)'
      when 'webhook_deliveries' then 'pay.webhook_delivery_body(t)'
      else 't.body'
    end
  )
  into data, v_is_left, v_last_shown, v_last_read
  using p_environment_id, v_filters,
    -- Every id sorts before '~'.
    least(coalesce(p_starting_after, '~') collate "C", coalesce(v_filters ->> 'id_before', '~')),
    coalesce(v_filters ->> 'id_from', ''),
    p_limit, p_at;
  data := coalesce(data, '');
  has_more := coalesce(v_is_left, false) or v_last_read is not null;
  next_cursor := case when v_is_left then v_last_shown else v_last_read end;
end
$$;

create or replace function pay.list(
  p_key_hash text,
  p_scope text,
  p_at timestamptz,
  p_rate integer[],
  p_kind text,
  p_limit integer,
  p_starting_after text,
  p_filters text,
  p_parent_id text
)
returns table (
  outcome text, api_key_id text, environment_id text, remaining integer, data text,
  has_more boolean, next_cursor text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off set enable_bitmapscan = off set enable_sort = off
set enable_incremental_sort = off set jit = off
as $$
#variable_conflict use_column
declare
  v_access record;
  v_known boolean;
begin
  select * into v_access from pay.enter(p_key_hash, p_scope, p_at, p_rate, 'shared');
  outcome := v_access.outcome;
  api_key_id := v_access.api_key_id;
  environment_id := v_access.environment_id;
  remaining := v_access.remaining;
  if outcome = 'ok' and p_parent_id is not null and not exists (
    select from pay.payments t
    where t.environment_id = v_access.environment_id and t.id = p_parent_id
  ) then
    outcome := 'not_found';
  end if;
  if outcome = 'ok' and p_starting_after is not null then
    if p_kind = 'ledger_entries' then
      v_known := pay.has_ledger_entry(v_access.environment_id, p_starting_after);
    else
      execute format(
        'select exists (select from pay.%I t where t.environment_id = $1 and t.id = $2)', p_kind
      ) into v_known using v_access.environment_id, p_starting_after;
    end if;
    if not v_known then
      outcome := 'unknown_cursor';
    end if;
  end if;
  if outcome = 'ok' and p_kind = 'ledger_entries' then
    select p.data, p.has_more, p.next_cursor into data, has_more, next_cursor
    from pay.ledger_page(
      v_access.environment_id, p_limit, p_starting_after, coalesce(p_filters, '{}')::jsonb
    ) p;
  elsif outcome = 'ok' then
    select p.data, p.has_more, p.next_cursor into data, has_more, next_cursor
    from pay.list_page(
      v_access.environment_id, p_at, p_kind, p_limit, p_starting_after,
      coalesce(p_filters, '{}')::jsonb
    ) p;
  end if;
  return next;
end
$$;
grant execute on function
  pay.list(text, text, timestamptz, integer[], text, integer, text, text, text) to pay_api;

create or replace function pay.list_payments(p_requests text)
returns table (
  n integer, outcome text, api_key_id text, environment_id text, remaining integer, data text,
  has_more boolean, next_cursor text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  v_has_rates boolean := p_requests like '%"rate":%';
  v_opened text[] := pay.open_environments(p_requests::json);
  v_row record;
begin
  for v_row in
    with asked as materialized (
      select c.*, decode(c.key_hash, 'hex') as hash,
        -- Every id sorts before 'pay_~'. Computed here: in the comparison, below row-level
        -- security, a coalesce is a filter and not an index condition, and a deep page would read
        -- all rows before it.
        coalesce(c.starting_after, 'pay_~') as before
      from json_to_recordset(p_requests::json) as c (
        n integer, key_hash text, scope text, at timestamptz, rate integer[], "limit" integer,
        starting_after text
      )
    )
    select c.n, c.at, c.rate, s.environment_id, s.api_key_id, l.data, l.has_more, l.next_cursor,
      case
        when s.hash is null then 'unauthorized'
        when s.environment_id <> all (v_opened) then 'resetting'
        when k.id is null then 'forbidden'
        when not cursor.is_known then 'unknown_cursor'
        else 'ok'
      end as outcome
    from asked c
    left join pay.api_key_secrets s
      on s.hash = c.hash
      and s.revoked_at is null
      and (s.expires_at is null or s.expires_at > c.at)
    left join pay.api_keys k
      on k.id = s.api_key_id and (k.scopes is null or c.scope = any (k.scopes))
    left join lateral (
      select c.starting_after is null or exists (
        select from pay.payments t
        where t.environment_id = s.environment_id and t.id = c.starting_after
      ) as is_known
    ) cursor on true
    left join lateral (
      select
        string_agg(page.body, ',' order by page.id desc) filter (where page.is_shown) as data,
        bool_or(not page.is_shown) as has_more,
        min(page.id) filter (where page.is_shown) as next_cursor
      from (
        select t.id, t.body, row_number() over newest = 1 or (
          row_number() over newest <= c.limit
          and sum(octet_length(t.body)) over newest <= pay.page_bytes()
        ) as is_shown
        from pay.payments t
        where t.environment_id = s.environment_id and t.id < c.before
        window newest as (order by t.id desc rows unbounded preceding)
        order by t.id desc
        limit c.limit + 1
      ) page
    ) l on k.id is not null and cursor.is_known
  loop
    n := v_row.n;
    outcome := v_row.outcome;
    api_key_id := v_row.api_key_id;
    environment_id := v_row.environment_id;
    data := coalesce(v_row.data, '');
    has_more := coalesce(v_row.has_more, false);
    next_cursor := case when has_more then v_row.next_cursor end;
    remaining := null;
    if v_has_rates and v_row.rate is not null and outcome not in ('unauthorized', 'resetting') then
      remaining := pay.count_request(environment_id, api_key_id, v_row.at, v_row.rate, true);
      if remaining < 0 then
        outcome := 'rate_limited';
        remaining := 0;
        data := null;
      end if;
    end if;
    return next;
  end loop;
end
$$;
grant execute on function pay.list_payments(text) to pay_api;

create or replace function pay.recent_suffix()
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$ select pay.id_floor('', now() - interval '29 days') $$;

create or replace function pay.find_breaches(p_oracle text)
returns table (environment_id text, subject_id text, detail text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query execute format(
    'select f.environment_id, f.subject_id, f.detail from pay.%I f
     where f.environment_id not in (
       select e.id from pay.environments e where e.retired_at is not null
     )', p_oracle);
end
$$;

create or replace function pay.list_oracles()
returns table (oracle text, promise text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select c.relname::text, obj_description(c.oid, 'pg_class') from pg_class c
  where c.relnamespace = 'pay'::regnamespace and c.relkind = 'v' and c.relname like 'oracle\_%'
$$;

create or replace function pay.check_books()
returns table (oracle text, promise text, findings bigint, examples text[])
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  perform set_config('pay.worker', 'on', true);
  for oracle, promise in select o.oracle, o.promise from pay.list_oracles() o order by 2, 1 loop
    select count(*), coalesce((array_agg(concat(f.environment_id, ' ', f.subject_id, ': ', f.detail)))[1:3], '{}')
    into findings, examples
    from pay.find_breaches(oracle) f;
    return next;
  end loop;
end
$$;
grant execute on function pay.check_books() to pay_operator;

create or replace function pay.note_findings()
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_oracle text;
  v_found bigint;
  v_total bigint := 0;
begin
  perform set_config('pay.worker', 'on', true);
  for v_oracle in select o.oracle from pay.list_oracles() o order by 1 loop
    with found as materialized (select * from pay.find_breaches(v_oracle)),
    noted as (
      insert into pay.oracle_findings (environment_id, oracle, subject_id, detail)
      select f.environment_id, v_oracle, f.subject_id, min(f.detail) from found f
      group by f.environment_id, f.subject_id
      on conflict on constraint oracle_findings_pkey do nothing
    )
    select count(*) into v_found from found;
    v_total := v_total + v_found;
    if v_found > 0 then
      raise warning '% findings of pay.%', v_found, v_oracle
        using hint = 'select * from pay.check_books()';
    end if;
  end loop;
  insert into pay.settings (name, value)
  values ('books_checked_at', extract(epoch from now())::text)
  on conflict on constraint settings_pkey do update set value = excluded.value;
  return v_total;
end
$$;
grant execute on function pay.note_findings() to pay_operator;

create or replace function pay.forget_findings()
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_forgotten bigint;
begin
  perform set_config('pay.worker', 'on', true);
  delete from pay.oracle_findings;
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end
$$;
grant execute on function pay.forget_findings() to pay_operator;

create or replace function pay.max_windows_ahead()
returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select 150 $$;

create or replace function pay.requests_used(p_environment_id text, p_at timestamptz)
returns table (api_key_id text, used numeric)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_seconds numeric := extract(epoch from p_at) / 2;
  v_window bigint := floor(v_seconds);
begin
  return query
    select c.api_key_id,
      sum(case when c.window_number >= v_window then c.current_count else 0 end)
      + (1 - (v_seconds - v_window))
        * sum(case when c.window_number >= v_window then c.previous_count else c.current_count end)
    from pay.rate_counters c
    where c.environment_id = p_environment_id
      and c.window_number between v_window - 1 and v_window + pay.max_windows_ahead()
    group by c.api_key_id;
end
$$;

create or replace function pay.requests_left(p_requests json)
returns integer[]
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Most lists have one request, and planning for more costs more than the rest of the counting.
  if json_array_length(p_requests) = 1 then
    return (
      -- Decoded here: under row-level security a call in the join condition would prevent an index
      -- scan.
      with asked as materialized (
        select c.at, c.rate, decode(c.key_hash, 'hex') as hash
        from json_to_record(p_requests -> 0) as c (key_hash text, at timestamptz, rate integer[])
      )
      select array[pay.count_request(s.environment_id, s.api_key_id, a.at, a.rate, false)]
      from asked a
      join pay.api_key_secrets s on s.hash = a.hash
    );
  end if;
  return (
    with asked as materialized (
      select c.n, c.at, c.rate, decode(c.key_hash, 'hex') as hash
      from json_to_recordset(p_requests) as c (
        n integer, key_hash text, at timestamptz, rate integer[]
      )
    ),
    request as materialized (
      select a.n, a.at, a.rate, s.environment_id, s.api_key_id,
        row_number() over (partition by s.api_key_id, a.rate is null order by a.n) as of_key,
        row_number() over (partition by s.environment_id, a.rate is null order by a.n)
          as of_environment
      from asked a
      left join pay.api_key_secrets s on s.hash = a.hash
    ),
    used as materialized (
      select e.environment_id, u.api_key_id, u.used,
        sum(u.used) over (partition by e.environment_id) as of_environment
      from (
        select r.environment_id, max(r.at) as at from request r
        where r.environment_id is not null and r.rate is not null
        group by r.environment_id
      ) e
      cross join lateral pay.requests_used(e.environment_id, e.at) u
    ),
    total as materialized (
      select u.environment_id, max(u.of_environment) as used from used u group by u.environment_id
    )
    select array_agg(
      -- A limit of 0 is none, and least() passes over its null.
      floor(least(
        2 * nullif(r.rate[1], 0) - r.of_key - coalesce(u.used, 0),
        2 * nullif(r.rate[2], 0) - r.of_environment - coalesce(t.used, 0)
      ))::integer
      order by r.n)
    from request r
    left join used u on u.environment_id = r.environment_id and u.api_key_id = r.api_key_id
    left join total t on t.environment_id = r.environment_id
  );
end
$$;

create or replace function pay.add_requests(
  p_environment_id text,
  p_api_key_id text,
  p_at timestamptz,
  p_requests integer
)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_window bigint := floor(extract(epoch from p_at) / 2);
  v_stripe smallint;
begin
  select c.stripe into v_stripe
  from pay.rate_counters c
  where c.environment_id = p_environment_id and c.api_key_id = p_api_key_id
  order by c.stripe limit 1
  for update skip locked;
  if v_stripe is not null then
    update pay.rate_counters c
    set window_number = case
        when c.window_number between v_window and v_window + pay.max_windows_ahead()
          then c.window_number
        else v_window
      end,
      current_count = p_requests + case
        when c.window_number between v_window and v_window + pay.max_windows_ahead()
          then c.current_count
        else 0
      end,
      previous_count = case
        when c.window_number between v_window and v_window + pay.max_windows_ahead()
          then c.previous_count
        when c.window_number = v_window - 1 then c.current_count
        else 0
      end
    where c.environment_id = p_environment_id and c.api_key_id = p_api_key_id
      and c.stripe = v_stripe;
    return;
  end if;
  -- All stripes are locked: insert another. If 64 are locked, these requests are not counted.
  for v_stripe in
    select free.n from generate_series(0, 63) as free (n)
    where not exists (
      select from pay.rate_counters c
      where c.environment_id = p_environment_id and c.api_key_id = p_api_key_id
        and c.stripe = free.n
    )
    order by free.n
  loop
    continue when not pg_try_advisory_xact_lock(
      hashtextextended('stripe ' || p_api_key_id, v_stripe));
    insert into pay.rate_counters
      (environment_id, api_key_id, stripe, window_number, current_count, previous_count)
    values (p_environment_id, p_api_key_id, v_stripe, v_window, p_requests, 0)
    on conflict on constraint rate_counters_pkey do nothing;
    exit when found;
  end loop;
end
$$;

create or replace function pay.count_request(
  p_environment_id text,
  p_api_key_id text,
  p_at timestamptz,
  p_rate integer[],
  p_count boolean
)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_left integer;
begin
  -- As in pay.requests_left.
  select floor(least(
    2 * nullif(p_rate[1], 0) - 1 - coalesce(sum(u.used) filter (where u.api_key_id = p_api_key_id), 0),
    2 * nullif(p_rate[2], 0) - 1 - coalesce(sum(u.used), 0)
  ))::integer
  into v_left
  from pay.requests_used(p_environment_id, p_at) u;
  if v_left >= 0 and p_count then
    perform pay.add_requests(p_environment_id, p_api_key_id, p_at, 1);
  end if;
  return case when v_left is not null then greatest(v_left, -1) end;
end
$$;

create or replace function pay.load(
  p_key_hash text,
  p_scope text,
  p_at timestamptz,
  p_rate integer[],
  p_kind text,
  p_id text,
  p_idempotency_key text,
  p_fingerprint text
)
returns table (
  outcome text, api_key_id text, remaining integer, status smallint, body text, detail text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off
as $$
#variable_conflict use_column
declare
  v_access record;
  v_kept record;
begin
  -- A replay costs nothing, so a request with a key is counted once there is no answer to replay.
  select * into v_access from pay.enter(
    p_key_hash, p_scope, p_at, case when p_idempotency_key is null then p_rate end, 'shared');
  outcome := v_access.outcome;
  api_key_id := v_access.api_key_id;
  remaining := v_access.remaining;
  if outcome = 'ok' and p_idempotency_key is not null then
    select k.fingerprint, k.status, k.body into v_kept
    from pay.idempotency_keys k
    where k.environment_id = v_access.environment_id
      and k.api_key_id = v_access.api_key_id
      and k.key = p_idempotency_key
      and k.status <> 102
      and k.created_at > pay.server_time() - pay.idempotency_retention();
    if found and v_kept.fingerprint = decode(p_fingerprint, 'hex') then
      outcome := 'replay';
      status := v_kept.status;
      body := v_kept.body;
      if p_rate is not null then
        remaining := 1 + pay.count_request(
          v_access.environment_id, v_access.api_key_id, p_at, p_rate, false);
      end if;
    else
      if found then
        outcome := 'conflict';
      end if;
      if p_rate is not null then
        remaining := pay.count_request(
          v_access.environment_id, v_access.api_key_id, p_at, p_rate, true);
        if remaining < 0 then
          outcome := 'rate_limited';
          remaining := 0;
        end if;
      end if;
    end if;
  end if;
  if outcome = 'ok' and p_kind is not null then
    case p_kind
      when 'payments' then
        select t.body into body from pay.payments t
        where t.environment_id = v_access.environment_id and t.id = p_id;
      when 'refunds' then
        select t.body into body from pay.refunds t
        where t.environment_id = v_access.environment_id and t.id = p_id;
      when 'transfers' then
        select t.body into body from pay.transfers t
        where t.environment_id = v_access.environment_id and t.id = p_id;
      when 'api_keys' then
        select pay.api_key_body(t, p_at) into body from pay.api_keys t
        where t.environment_id = v_access.environment_id and t.id = p_id;
      when 'events' then
        select t.body into body from pay.events t
        where t.environment_id = v_access.environment_id and t.id = p_id;
      when 'webhook_endpoints' then
        select t.body, json_build_object('revision', t.revision, 'secrets', t.secrets,
          'public_id', e.public_id, 'account', e.account)
        into body, detail
        from pay.webhook_endpoints t
        join pay.environments e on e.id = t.environment_id
        where t.environment_id = v_access.environment_id and t.id = p_id;
      when 'webhook_deliveries' then
        select pay.webhook_delivery_body(t) into body from pay.webhook_deliveries t
        where t.environment_id = v_access.environment_id and t.id = p_id;
    end case;
    if body is null then
      outcome := 'not_found';
    end if;
  end if;
  return next;
end
$$;
grant execute on function pay.load(text, text, timestamptz, integer[], text, text, text, text) to pay_api;

create or replace function pay.load_payments(p_requests text)
returns table (
  n integer, outcome text, api_key_id text, environment_id text, remaining integer, status smallint,
  body text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off
as $$
#variable_conflict use_column
declare
  v_has_rates boolean := p_requests like '%"rate":%';
  v_opened text[] := pay.open_environments(p_requests::json);
  v_now timestamptz := pay.server_time();
  v_row record;
begin
  for v_row in
    -- Decoded here: in a join with a table under row-level security the call would bar the index.
    with asked as materialized (
      select c.*, decode(c.key_hash, 'hex') as hash, decode(c.fingerprint, 'hex') as fingerprint_hash
      from json_to_recordset(p_requests::json) as c (
        n integer, key_hash text, scope text, at timestamptz, rate integer[], id text,
        idempotency_key text, fingerprint text
      )
    )
    select c.n, c.at, c.rate, s.environment_id, s.api_key_id, i.status, i.body as kept, p.body,
      case
        when s.hash is null then 'unauthorized'
        when s.environment_id <> all (v_opened) then 'resetting'
        when k.id is null then 'forbidden'
        when i.fingerprint = c.fingerprint_hash then 'replay'
        when i.fingerprint is not null then 'conflict'
        when p.body is null then 'not_found'
        else 'ok'
      end as outcome
    from asked c
    left join pay.api_key_secrets s
      on s.hash = c.hash
      and s.revoked_at is null
      and (s.expires_at is null or s.expires_at > c.at)
    left join pay.api_keys k
      on k.id = s.api_key_id and (c.scope is null or k.scopes is null or c.scope = any (k.scopes))
    left join lateral (
      select o.fingerprint, o.status, o.body
      from pay.idempotency_keys o
      where c.idempotency_key is not null
        and o.environment_id = s.environment_id
        and o.api_key_id = s.api_key_id
        and o.key = c.idempotency_key
        and o.status <> 102
        and o.created_at > v_now - pay.idempotency_retention()
      limit 1
    ) i on true
    left join lateral (
      select t.body from pay.payments t
      where t.environment_id = s.environment_id and t.id = c.id
      limit 1
    ) p on true
  loop
    n := v_row.n;
    outcome := v_row.outcome;
    api_key_id := v_row.api_key_id;
    environment_id := v_row.environment_id;
    status := v_row.status;
    body := case outcome when 'replay' then v_row.kept when 'ok' then v_row.body end;
    remaining := null;
    if v_has_rates and v_row.rate is not null and outcome not in ('unauthorized', 'resetting') then
      -- A replay costs nothing.
      remaining := pay.count_request(
        environment_id, api_key_id, v_row.at, v_row.rate, outcome <> 'replay');
      if outcome = 'replay' then
        remaining := 1 + remaining;
      elsif remaining < 0 then
        outcome := 'rate_limited';
        remaining := 0;
        body := null;
      end if;
    end if;
    return next;
  end loop;
end
$$;
grant execute on function pay.load_payments(text) to pay_api;

create or replace function pay.idempotency_retention()
returns interval
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select interval '24 hours' $$;

create or replace function pay.balance(p_key_hash text, p_scope text, p_at timestamptz, p_rate integer[])
returns table (
  outcome text, api_key_id text, remaining integer, status smallint, body text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_access record;
begin
  select * into v_access from pay.enter(p_key_hash, p_scope, p_at, p_rate, 'shared');
  outcome := v_access.outcome;
  api_key_id := v_access.api_key_id;
  remaining := v_access.remaining;
  if outcome = 'ok' then
    select format(
      '{"object":"balance","livemode":%s,"balances":[%s]}',
      (select e.livemode from pay.environments e where e.id = v_access.environment_id)::text,
      string_agg(row_to_json(b)::text, ',' order by b.currency, b.account)
    )
    into body
    from (
      select s.currency, s.account, s.debits_minor, s.credits_minor,
        s.credits_minor - s.debits_minor as amount_minor
      from pay.account_sums(v_access.environment_id) s
    ) b;
  end if;
  return next;
end
$$;
grant execute on function pay.balance(text, text, timestamptz, integer[]) to pay_api;

create or replace function pay.lock_suspects(
  p_ahead jsonb,
  p_at timestamptz,
  out environments text[],
  out ids text[]
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  with recursive suspected as (
    (select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
     where d.next_attempt_at is not null and d.lost_claims > 0 order by d.endpoint_id limit 1)
    union all
    select n.environment_id, n.endpoint_id
    from suspected s
    cross join lateral (
      select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
      where d.next_attempt_at is not null and d.lost_claims > 0 and d.endpoint_id > s.endpoint_id
      order by d.endpoint_id limit 1
    ) n
  )
  select
    array_agg(l.environment_id order by coalesce((p_ahead ->> e.account)::float8, 0), e.account,
      l.lost_claims, l.next_attempt_at, l.subject_id, l.sequence),
    array_agg(l.id order by coalesce((p_ahead ->> e.account)::float8, 0), e.account,
      l.lost_claims, l.next_attempt_at, l.subject_id, l.sequence)
  into environments, ids
  from suspected s
  join pay.environments e on e.id = s.environment_id
  cross join lateral (
    select d.environment_id, d.id, d.subject_id, d.sequence, d.lost_claims, d.next_attempt_at
    from pay.webhook_deliveries d
    where d.endpoint_id = s.endpoint_id and d.next_attempt_at <= p_at and d.lost_claims > 0
      and (d.leased_until is null or d.leased_until <= p_at)
    order by d.lost_claims, d.next_attempt_at, d.subject_id, d.sequence
    limit 2
    for update skip locked
  ) l;
end
$$;
comment on function pay.lock_suspects is 'Internal.';

create or replace function pay.claim_suspect(
  p_suspects_ahead jsonb,
  p_at timestamptz,
  p_leased_until timestamptz,
  p_ahead interval
)
returns table (
  environment_id text, public_id text, account text, id text, endpoint_id text, event_id text,
  subject_id text, attempt integer, url text, secrets text, livemode boolean,
  failing_since timestamptz, suspect boolean, crashed boolean, body text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  c_most_lost constant integer := 3;
  c_longest_look constant interval := '200 ms';
  v_locked record;
  v_is_claimed boolean;
begin
  loop
    select * into v_locked from pay.lock_suspects(p_suspects_ahead, p_at);
    exit when v_locked.ids is null;
    -- A new statement has a new snapshot, as in pay.relay_turn.
    return query
    with
    chosen as materialized (
      select d.environment_id, d.id, t.url, t.secrets, t.failing_since, e.livemode, e.public_id,
        e.account, d.leased_until is not null as is_lost,
        d.leased_until is not null and d.lost_claims + 1 >= c_most_lost as crashed
      from unnest(v_locked.environments, v_locked.ids) with ordinality as c (environment_id, id, n)
      join pay.webhook_deliveries d on d.environment_id = c.environment_id and d.id = c.id
      join pay.webhook_endpoints t
        on t.environment_id = d.environment_id and t.id = d.endpoint_id and t.status = 'enabled'
      join pay.environments e on e.id = d.environment_id
      where not exists (
        select from pay.webhook_deliveries w
        where w.status = 'pending'
          and w.environment_id is not distinct from d.environment_id
          and w.endpoint_id = d.endpoint_id
          and w.subject_id = d.subject_id
          and w.sequence < d.sequence
      )
      order by c.n
      limit 1
    ),
    claimed as (
      update pay.webhook_deliveries d
      set attempt_count = d.attempt_count + case when c.crashed then 0 else 1 end,
        lost_claims = d.lost_claims + case when c.is_lost then 1 else 0 end,
        leased_until = p_leased_until
      from chosen c
      where d.environment_id = c.environment_id and d.id = c.id
      returning c.*, d.endpoint_id, d.event_id, d.subject_id, d.attempt_count
    )
    select c.environment_id, c.public_id, c.account, c.id, c.endpoint_id, c.event_id, c.subject_id,
      c.attempt_count, c.url, c.secrets::text, c.livemode,
      c.failing_since + p_ahead, true, c.crashed, v.body
    from claimed c
    join pay.events v on v.environment_id = c.environment_id and v.id = c.event_id;
    v_is_claimed := found;
    -- Postpones deliveries that wait for an earlier one, and cancels those of disabled endpoints.
    perform pay.put_off_deliveries(v_locked.environments, v_locked.ids, p_at);
    exit when v_is_claimed or clock_timestamp() > statement_timestamp() + c_longest_look;
  end loop;
end
$$;
comment on function pay.claim_suspect is 'Internal.';

create or replace function pay.relay_turn(
  p_results text,
  p_rooms text,
  p_limit integer,
  p_per_endpoint integer,
  p_per_environment integer,
  p_per_account integer,
  p_suspects_ahead text,
  p_at timestamptz,
  p_leased_until timestamptz
)
returns table (
  environment_id text, public_id text, account text, id text, endpoint_id text, event_id text,
  subject_id text, attempt integer, url text, secrets text, livemode boolean,
  failing_since timestamptz, suspect boolean, crashed boolean, body text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_rooms_known jsonb := p_rooms::jsonb;
  -- How far the caller's clock is ahead; it is subtracted from the caller's times.
  v_ahead interval := greatest(p_at - pay.server_time(), '0');
  -- As many rows as one request makes due at a moment, but for the first.
  c_rest constant integer := 3;
  c_longest_look constant interval := '100 ms';
  v_endpoints text[];
  v_rooms integer[];
  v_shares integer[];
  v_reads integer[];
  -- A deleted or disabled endpoint with pending deliveries.
  v_off_environment text;
  v_off_endpoint text;
  v_due record;
  v_claimed integer;
begin
  perform set_config('pay.worker', 'on', true);
  -- By the server's time: other relays would find a lease of a slow clock expired.
  p_leased_until := pay.server_time() + (p_leased_until - p_at);
  p_at := p_at - v_ahead;

  if p_results <> '[]' then
    perform pay.record_attempts(p_results, p_at, v_ahead);
  end if;
  if p_limit <= 0 then
    return;
  end if;

  -- Endpoints with something pending, one index probe for each, and how much more each may have.
  with recursive waiting as (
    (select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
     where d.status = 'pending' order by d.endpoint_id limit 1)
    union all
    select n.environment_id, n.endpoint_id
    from waiting w
    cross join lateral (
      select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
      where d.status = 'pending' and d.endpoint_id > w.endpoint_id
      order by d.endpoint_id limit 1
    ) n
  )
  select array_agg(w.endpoint_id) filter (where r.has_room),
    array_agg(r.room) filter (where r.has_room), array_agg(r.share) filter (where r.has_room),
    array_agg(r.room + r.rest) filter (where r.has_room),
    (array_agg(w.environment_id) filter (where not k.is_on))[1],
    (array_agg(w.endpoint_id) filter (where not k.is_on))[1]
  into v_endpoints, v_rooms, v_shares, v_reads, v_off_environment, v_off_endpoint
  from waiting w
  join pay.environments e on e.id = w.environment_id
  left join pay.webhook_endpoints t on t.environment_id = w.environment_id and t.id = w.endpoint_id
  cross join lateral (
    select (v_rooms_known -> 'endpoints' ->> w.endpoint_id)::integer as left_of_endpoint,
      least(
        coalesce((v_rooms_known -> 'environments' ->> e.public_id)::integer, p_per_environment),
        coalesce((v_rooms_known -> 'accounts' ->> e.account)::integer, p_per_account)
      ) as left_of_tenant,
      t.failing_since is not null as is_failing,
      t.status is not distinct from 'enabled' as is_on
  ) k
  cross join lateral (
    select
      -- A quick one, that may have more, is no more in need than others.
      case when k.left_of_endpoint is null then p_per_endpoint
        else least(k.left_of_endpoint, p_per_endpoint - 1)
      end as share,
      b.room,
      k.is_on and b.room > 0 as has_room,
      -- At one that is failing most of what is claimed is given back.
      case when k.is_failing then 0 else c_rest end as rest
    from (
      select least(coalesce(k.left_of_endpoint, p_per_endpoint), k.left_of_tenant, p_limit,
        case when k.is_failing then 2 end) as room
    ) b
  ) r;

  if v_off_endpoint is not null then
    -- Fewer if results wait for this turn.
    perform pay.call_off_deliveries(v_off_environment, v_off_endpoint,
      case when p_results = '[]' then 2000 else 250 end);
  end if;

  -- If all due deliveries wait for earlier ones, look at those behind them, for as long as others can
  -- wait for this turn. Postponed deliveries stay postponed, and the next turn continues.
  loop
  select array_agg(c.environment_id) as environments, array_agg(c.id) as ids,
    array_agg(c.endpoint_id) as endpoints, array_agg(c.subject_id) as subjects,
    array_agg(c.sequence) as sequences, array_agg(c.event_id) as events,
    array_agg(c.place - c.share) as ranks, array_agg(c.is_lost) as lost,
    bool_or(c.is_lost) as any_lost
  into v_due
  from (
    select l.*, o.room, o.share,
      rank() over (partition by l.endpoint_id order by l.next_attempt_at, l.subject_id) as place
    from unnest(v_endpoints, v_rooms, v_shares, v_reads) as o (endpoint_id, room, share, reads)
    cross join lateral (
      select d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.event_id,
        d.next_attempt_at, d.leased_until is not null as is_lost
      from pay.webhook_deliveries d
      where d.endpoint_id = o.endpoint_id and d.next_attempt_at <= p_at and d.lost_claims = 0
        and (d.leased_until is null or d.leased_until <= p_at)
      order by d.next_attempt_at, d.subject_id, d.sequence
      limit o.reads
      for update skip locked
    ) l
  ) c
  where c.place <= c.room;
  exit when v_due.ids is null;

  -- Their relay has died: they become suspects, which the scan above does not read.
  if v_due.any_lost then
    update pay.webhook_deliveries d
    set lost_claims = 1, leased_until = null
    from unnest(v_due.environments, v_due.ids, v_due.lost) as c (environment_id, id, is_lost)
    where c.is_lost and d.environment_id = c.environment_id and d.id = c.id;
  end if;

  -- A new statement and so a new snapshot: whoever records what a locked row waits for has either
  -- committed, and is seen, or will let the row go once we have.
  return query
  with
  candidate as materialized (
    select * from unnest(v_due.environments, v_due.ids, v_due.endpoints, v_due.subjects,
      v_due.sequences, v_due.events, v_due.ranks, v_due.lost) as c (environment_id, id, endpoint_id,
      subject_id, sequence, event_id, rank_of_endpoint, is_lost)
    where not c.is_lost
  ),
  -- No environment and no account exceeds its limit, whatever its endpoints do.
  shared as (
    select c.*, t.url, t.secrets, t.failing_since, e.livemode, e.public_id, e.account,
      rank() over (partition by e.public_id order by c.rank_of_endpoint, c.endpoint_id)
        <= coalesce((v_rooms_known -> 'environments' ->> e.public_id)::integer, p_per_environment)
      and rank() over (partition by e.account order by c.rank_of_endpoint, c.endpoint_id)
        <= coalesce((v_rooms_known -> 'accounts' ->> e.account)::integer, p_per_account) as has_place
    from candidate c
    join pay.webhook_endpoints t
      on t.environment_id = c.environment_id and t.id = c.endpoint_id and t.status = 'enabled'
    join pay.environments e on e.id = c.environment_id
  ),
  taken as materialized (
    select * from shared s
    where s.has_place
    order by s.rank_of_endpoint, s.endpoint_id
    fetch first (p_limit) rows with ties
  ),
  counted as (
    select k.*, count(*) over (
        partition by k.endpoint_id, k.subject_id order by k.sequence
        range between unbounded preceding and 1 preceding
      ) as taken_before
    from taken k
  ),
  judged as materialized (
    select k.*,
      -- All that is earlier is taken as well.
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
  claimed as (
    update pay.webhook_deliveries d
    set attempt_count = d.attempt_count + 1, leased_until = p_leased_until
    from judged j
    where j.is_next and d.environment_id = j.environment_id and d.id = j.id
    returning j.*, d.attempt_count
  )
  select c.environment_id, c.public_id, c.account, c.id, c.endpoint_id, c.event_id, c.subject_id,
    c.attempt_count, c.url, c.secrets::text, c.livemode,
    -- In the caller's time, because the caller computes how long the endpoint has been failing.
    c.failing_since + v_ahead, false, false, v.body
  from claimed c
  join pay.events v on v.environment_id = c.environment_id and v.id = c.event_id
  order by c.rank_of_chain, c.endpoint_id, c.subject_id, c.sequence;
  get diagnostics v_claimed = row_count;
  if v_claimed < cardinality(v_due.ids) then
    perform pay.put_off_deliveries(v_due.environments, v_due.ids, p_at);
  end if;
  exit when v_claimed > 0 or clock_timestamp() > statement_timestamp() + c_longest_look;
  end loop;

  -- Checked first, because there is usually none and the function costs a third of an empty turn.
  if p_suspects_ahead is not null and exists (
    select from pay.webhook_deliveries d
    where d.next_attempt_at is not null and d.lost_claims > 0
  ) then
    return query select * from pay.claim_suspect(
      p_suspects_ahead::jsonb, p_at, p_leased_until, v_ahead);
  end if;
end
$$;
grant execute on function
  pay.relay_turn(text, text, integer, integer, integer, integer, text, timestamptz, timestamptz)
  to pay_api;

create or replace function pay.put_off_deliveries(p_environments text[], p_ids text[], p_at timestamptz)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off
as $$
begin
  with
  left_over as materialized (
    select d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.next_attempt_at
    from unnest(p_environments, p_ids) as c (environment_id, id)
    join pay.webhook_deliveries d on d.environment_id = c.environment_id and d.id = c.id
    where d.leased_until is null or d.leased_until <= p_at
  ),
  judged as materialized (
    select l.*, t.status = 'enabled' as enabled, blocker.id as blocker_id,
      blocker.next_attempt_at as blocked_until, blocker.leased_until as blocker_leased_until,
      l.sequence - blocker.sequence as distance
    from left_over l
    left join pay.webhook_endpoints t
      on t.environment_id = l.environment_id and t.id = l.endpoint_id
    left join lateral (
      select d.id, d.sequence, d.next_attempt_at, d.leased_until
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
      -- The one before will release it. Thousands must not be checked every 5 seconds.
      when j.blocker_leased_until > p_at and j.distance > 100 then p_at + interval '1 minute'
      when j.blocker_leased_until > p_at then p_at + interval '5 seconds'
      else greatest(j.blocked_until, p_at + interval '1 second')
    end
  from judged j
  where j.enabled and j.blocker_id is not null
    and (
      -- Somebody has it, this turn or another.
      (j.environment_id, j.blocker_id) not in (select o.environment_id, o.id from left_over o)
      -- Or it is due later: each time this one would be looked at in its place.
      or j.blocked_until > j.next_attempt_at
    )
    and d.environment_id = j.environment_id and d.id = j.id;
end
$$;

create or replace function pay.record_attempts(p_results text, p_at timestamptz, p_ahead interval)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_environments text[];
  v_ids text[];
  v_turned_environments text[];
  v_turned_ids text[];
  v_has_succeeded boolean[];
begin
  if p_results like '%"released"%' then
    update pay.webhook_deliveries d
    set attempt_count = d.attempt_count - 1, leased_until = null
    from json_to_recordset(p_results::json) as r (
      environment_id text, id text, attempt integer, outcome text
    )
    where r.outcome = 'released'
      and d.environment_id = r.environment_id and d.id = r.id
      and d.attempt_count = r.attempt and d.leased_until is not null;
  end if;

  with
  result as materialized (
    select * from json_to_recordset(p_results::json) as r (
      environment_id text, id text, attempt integer, outcome text, next_attempt_at timestamptz,
      record text
    )
    where r.outcome <> 'released'
    order by r.environment_id, r.id
  ),
  recorded as (
    update pay.webhook_deliveries d
    set status = case
        when r.outcome = 'delivered' then 'delivered'
        when r.next_attempt_at is null then 'failed'
        else 'pending'
      end,
      next_attempt_at = r.next_attempt_at - p_ahead,
      leased_until = null,
      -- The process survived the attempt. A crashed delivery stays a suspect.
      lost_claims = case when d.lost_claims < 3 then 0 else d.lost_claims end,
      -- Limited, because a delivery can be redelivered any number of times and each record rewrites the
      -- text. 8 000 bytes are more than 50 attempts.
      attempts = case
        when d.attempts = '' then r.record
        when octet_length(d.attempts) < 8000 then d.attempts || ',' || r.record
        else pay.without_second_attempt(d.attempts) || ',' || r.record
      end
    from result r
    where d.environment_id = r.environment_id and d.id = r.id
      and d.attempt_count = r.attempt and d.leased_until is not null
    returning d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.status, r.outcome
  ),
  -- Those that waited for one that has ended for good.
  next as (
    select r.environment_id, n.id
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
  -- Endpoints that have begun or ceased to fail.
  turned as (
    select t.environment_id, t.id, e.any_delivered
    from (
      select r.environment_id, r.endpoint_id, bool_or(r.outcome = 'delivered') as any_delivered
      from recorded r group by r.environment_id, r.endpoint_id
    ) e
    join pay.webhook_endpoints t on t.environment_id = e.environment_id and t.id = e.endpoint_id
    where (t.failing_since is null) <> e.any_delivered
  )
  select n.environments, n.ids, u.environments, u.ids, u.has_succeeded
  into v_environments, v_ids, v_turned_environments, v_turned_ids, v_has_succeeded
  from (select array_agg(environment_id) as environments, array_agg(id) as ids from next) n
  cross join (
    select array_agg(environment_id) as environments, array_agg(id) as ids,
      array_agg(any_delivered) as has_succeeded
    from turned
  ) u;

  -- As old as they were, so that they come before what else was held back.
  if v_ids is not null then
    with waiting as materialized (
      select d.environment_id, d.id
      from unnest(v_environments, v_ids) as n (environment_id, id)
      join pay.webhook_deliveries d on d.environment_id = n.environment_id and d.id = n.id
      where d.status || '' = 'pending' and (d.leased_until is null or d.leased_until <= p_at)
      order by d.environment_id, d.id
      for update of d
    )
    update pay.webhook_deliveries d
    set next_attempt_at = least(d.created_at, p_at)
    from waiting w
    where d.environment_id = w.environment_id and d.id = w.id;
  end if;
  if v_turned_ids is not null then
    with turned as materialized (
      select t.environment_id, t.id, u.has_succeeded
      from unnest(v_turned_environments, v_turned_ids, v_has_succeeded)
        as u (environment_id, id, has_succeeded)
      join pay.webhook_endpoints t on t.environment_id = u.environment_id and t.id = u.id
      for update of t skip locked
    )
    update pay.webhook_endpoints t
    set failing_since = case when not u.has_succeeded then p_at end
    from turned u
    where t.environment_id = u.environment_id and t.id = u.id
      and (t.failing_since is null) <> u.has_succeeded;
  end if;
end
$$;

create or replace function pay.call_off_deliveries(p_environment_id text, p_endpoint_id text, p_most integer)
returns boolean
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  with called_off as (
    update pay.webhook_deliveries d
    set status = 'cancelled', next_attempt_at = null, leased_until = null
    from (
      select w.id from pay.webhook_deliveries w
      where w.environment_id = p_environment_id and w.endpoint_id = p_endpoint_id
        and w.status = 'pending'
        and (w.leased_until is null or w.leased_until <= pay.server_time())
      limit p_most
      for update skip locked
    ) waiting
    where d.environment_id = p_environment_id and d.id = waiting.id
    returning d.id
  )
  select count(*) >= p_most from called_off
$$;

create or replace function pay.called_off_at_once()
returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select 5000 $$;

create or replace function pay.disable_webhook_endpoint(
  p_environment_id text,
  p_id text,
  p_expects_revision integer,
  p_at timestamptz,
  p_endpoint_body text,
  p_event_id text,
  p_event_body text,
  p_delivery_id text
)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('pay.worker', 'on', true);
  update pay.webhook_endpoints t
  set status = 'disabled', revision = t.revision + 1, body = p_endpoint_body
  where t.environment_id = p_environment_id and t.id = p_id
    and t.revision = p_expects_revision and t.status = 'enabled';
  if not found then
    return 'stale';
  end if;
  perform pay.call_off_deliveries(p_environment_id, p_id, pay.called_off_at_once());
  insert into pay.events (environment_id, id, type, subject_id, sequence, created_at, body)
  values (p_environment_id, p_event_id, 'webhook_endpoint.disabled', p_id, p_expects_revision + 1,
    p_at, p_event_body);
  insert into pay.webhook_deliveries
    (environment_id, id, event_id, event_type, endpoint_id, subject_id, sequence, status,
      next_attempt_at, created_at)
  select p_environment_id, p_delivery_id || pay.slot_character(t.slot), p_event_id,
    'webhook_endpoint.disabled', t.id, p_id, p_expects_revision + 1, 'pending',
    least(p_at, pay.server_time()), p_at
  from pay.webhook_endpoints t
  where t.environment_id = p_environment_id
    and t.status = 'enabled'
    and t.events && pay.patterns_of('webhook_endpoint.disabled');
  return 'committed';
end
$$;
grant execute on function pay.disable_webhook_endpoint(
  text, text, integer, timestamptz, text, text, text, text) to pay_api;

create or replace function pay.load_webhook_endpoint(p_environment_id text, p_id text)
returns table (revision integer, status text, body text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('pay.worker', 'on', true);
  return query
    select t.revision, t.status, t.body from pay.webhook_endpoints t
    where t.environment_id = p_environment_id and t.id = p_id;
end
$$;
grant execute on function pay.load_webhook_endpoint(text, text) to pay_api;

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

create or replace function pay.id_floor(p_prefix text, p_at timestamptz)
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rest bigint := floor(extract(epoch from p_at) * 1000);
  v_time text := '';
begin
  for v_character in 1..9 loop
    v_time := substr('0123456789abcdefghjkmnpqrstvwxyz', (v_rest % 32)::integer + 1, 1) || v_time;
    v_rest := v_rest / 32;
  end loop;
  return p_prefix || v_time || repeat('0', 17);
end
$$;

create or replace function pay.purge_retired(p_environment_id text, p_batch integer)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off
as $$
declare
  v_table text;
  v_rows bigint;
  v_is_empty boolean := true;
  v_total bigint := 0;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('purge ' || p_environment_id, 0)) then
    return 0;
  end if;
  foreach v_table in array array[
    'webhook_deliveries', 'events', 'ledger_movements', 'ledger_totals',
    'transfers', 'refunds', 'payments', 'idempotency_keys', 'rate_counters'
  ] loop
    -- By its place, which needs no search. A row that moves meanwhile goes with another batch.
    execute format(
      'delete from pay.%1$I t
       where t.ctid = any (array(
         select o.ctid from pay.%1$I o where o.environment_id = $1 limit $2
       ))',
      v_table
    ) using p_environment_id, p_batch;
    get diagnostics v_rows = row_count;
    v_total := v_total + v_rows;
    v_is_empty := v_is_empty and v_rows < p_batch;
  end loop;
  if v_is_empty then
    perform set_config('pay.environment_ids', array[p_environment_id]::text, true);
    delete from pay.environments e where e.id = p_environment_id;
    v_total := v_total + 1;
  end if;
  return v_total;
end
$$;

create or replace function pay.purge(p_at timestamptz default now(), p_batch integer default 1000)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_at timestamptz := least(p_at, pay.server_time());
  v_cut timestamptz := v_at - interval '30 days';
  v_until timestamptz := clock_timestamp() + interval '2 seconds';
  v_environment record;
  v_kind record;
  v_rows bigint;
  v_total bigint := 0;
begin
  perform set_config('pay.worker', 'on', true);
  -- Materialized, and below an array: a batch that is read again for each row has no limit. In order,
  -- or a limit makes reading the table look cheap while its statistics are old.
  with old as materialized (
    select o.environment_id, o.api_key_id, o.key
    from pay.idempotency_keys o
    where o.created_at <= v_at - pay.idempotency_retention()
    order by o.created_at
    limit p_batch for update skip locked
  )
  delete from pay.idempotency_keys t using old
  where t.environment_id = old.environment_id and t.api_key_id = old.api_key_id and t.key = old.key;
  get diagnostics v_total = row_count;

  for v_environment in
    select e.id, e.livemode from pay.environments e where e.retired_at is null order by random()
  loop
    exit when clock_timestamp() > v_until;
    v_total := v_total + pay.purge_keys(v_environment.id, v_at, p_batch);
    for v_kind in
      select * from (values
        ('webhook_deliveries', 'id', 'whd_', true, 'for update skip locked'),
        ('events', 'id', 'evt_', true, 'for update skip locked'),
        -- Not locked: a lock would need a policy that lets someone update, and nobody may.
        ('ledger_movements', 'transaction_id', 'txn_', false, ''),
        ('transfers', 'id', 'tr_', false, 'for update skip locked'),
        ('refunds', 'id', 're_', false, 'for update skip locked'),
        ('payments', 'id', 'pay_', false, 'for update skip locked')
      ) as k (table_name, id_column, prefix, of_live_too, lock)
      where k.of_live_too or not v_environment.livemode
    loop
      -- The primary key is in the order of time: the oldest rows are found without a search.
      execute format(
        'delete from pay.%1$I t
         where t.environment_id = $1 and t.%3$I = any (array(
           select o.%3$I from pay.%1$I o
           where o.environment_id = $1 and o.%3$I < $2
           order by o.%3$I limit $3 %2$s
         ))',
        v_kind.table_name, v_kind.lock, v_kind.id_column
      ) using v_environment.id, pay.id_floor(v_kind.prefix, v_cut), p_batch;
      get diagnostics v_rows = row_count;
      v_total := v_total + v_rows;
    end loop;
  end loop;
  v_rows := 0;
  for v_environment in
    select e.id from pay.environments e where e.retired_at is not null order by e.retired_at limit 50
  loop
    v_rows := v_rows + pay.purge_retired(v_environment.id, p_batch);
    exit when v_rows >= p_batch;
  end loop;
  return v_total + v_rows;
end
$$;
grant execute on function pay.purge(timestamptz, integer) to pay_api, pay_operator;

create or replace function pay.configure_relay(p_url text, p_token text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_url !~ '^https?://[^[:space:]]+/api-v1-payments/internal/relay$' then
    raise exception 'relay url must end in /api-v1-payments/internal/relay'
      using errcode = 'invalid_parameter_value';
  end if;
  if p_token !~ '^[!-~]{16,200}$' then
    raise exception 'relay token must be 16 to 200 visible ASCII characters'
      using errcode = 'invalid_parameter_value';
  end if;
  perform set_config('pay.worker', 'on', true);
  insert into pay.settings (name, value)
  values ('relay_url', p_url), ('relay_token', p_token)
  on conflict on constraint settings_pkey do update set value = excluded.value;
end
$$;
grant execute on function pay.configure_relay(text, text) to pay_operator;

create or replace function pay.due_relay()
returns table (url text, token text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('pay.worker', 'on', true);
  if not exists (
    select from pay.webhook_deliveries d
    where d.status = 'pending' and d.next_attempt_at <= now()
      and (d.leased_until is null or d.leased_until <= now())
  ) then
    return;
  end if;
  return query
    select u.value, t.value
    from pay.settings u
    join pay.settings t on t.name = 'relay_token'
    where u.name = 'relay_url';
end
$$;
grant execute on function pay.due_relay() to pay_operator;

create or replace function pay.note_wake(p_request_id bigint)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('pay.worker', 'on', true);
  delete from pay.relay_wakes w where w.woken_at < now() - interval '1 hour';
  insert into pay.relay_wakes (request_id) values (p_request_id::text)
  on conflict on constraint relay_wakes_pkey do update set woken_at = excluded.woken_at;
end
$$;
grant execute on function pay.note_wake(bigint) to pay_operator;

create or replace function pay.recent_wakes()
returns table (request_id bigint, woken_at timestamptz)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('pay.worker', 'on', true);
  return query
    select w.request_id::bigint, w.woken_at from pay.relay_wakes w
    where w.woken_at >= now() - interval '1 hour';
end
$$;
grant execute on function pay.recent_wakes() to pay_operator;

create or replace function pay.wake_relay()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_relay record;
  v_request_id bigint;
begin
  for v_relay in select * from pay.due_relay() loop
    -- Dynamic, so that this function can be made where pg_net is not.
    execute 'select net.http_post(url := $1, body := $2, params := $3, headers := $4, timeout_milliseconds := $5)'
    into v_request_id
    using
      v_relay.url,
      '{}'::jsonb,
      '{}'::jsonb,
      jsonb_build_object(
        'Content-Type', 'application/json',
        'Authorization', 'Bearer ' || v_relay.token
      ),
      2000;
    perform pay.note_wake(v_request_id);
  end loop;
end
$$;
grant execute on function pay.wake_relay() to pay_operator;

create or replace function pay.server_time()
returns timestamptz
language sql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select now() $$;
comment on function pay.server_time is 'Internal.';

create or replace function pay.change_webhook_endpoint(
  p_key_hash text,
  p_scope text,
  p_at timestamptz,
  p_rate integer[],
  p_request_id text,
  p_idempotency_key text,
  p_fingerprint text,
  p_status smallint,
  p_body text,
  p_id text,
  p_expects_revision integer,
  p_endpoint text
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
  v_revision integer;
  v_status_before text;
  v_slot smallint;
  v_endpoint record;
begin
  select * into outcome, api_key_id, v_environment, remaining
  from pay.enter(p_key_hash, p_scope, p_at, null, 'shared');
  if outcome = 'ok' and p_expects_revision is not null then
    select t.revision, t.status into v_revision, v_status_before from pay.webhook_endpoints t
    where t.environment_id = v_environment and t.id = p_id
    for update;
    -- Gone as well: whoever loads it again finds a twin's answer before its absence.
    outcome := case when v_revision = p_expects_revision then 'ok' else 'stale' end;
  end if;
  if outcome = 'ok' then
    select * into outcome, remaining, status, body from pay.claim_idempotency_key(
      v_environment, api_key_id, p_at, p_rate, p_request_id, p_idempotency_key, p_fingerprint,
      p_status, p_body);
  end if;
  if outcome <> 'ok' then
    return next;
    return;
  end if;

  select * into v_endpoint from json_to_record(p_endpoint::json) as e (
    id text, url text, events text[], status text, secrets json, revision integer,
    created_at timestamptz, body text
  );
  if v_status_before = 'disabled' and v_endpoint.status = 'enabled'
    and pay.call_off_deliveries(v_environment, p_id, pay.called_off_at_once())
  then
    perform pay.release_idempotency_key(v_environment, api_key_id, p_request_id, p_idempotency_key);
    outcome := 'calling_off';
    return next;
    return;
  end if;
  if p_endpoint is null then
    delete from pay.webhook_endpoints t where t.environment_id = v_environment and t.id = p_id;
  elsif p_expects_revision is null then
    perform pg_advisory_xact_lock(hashtextextended(v_environment, 0));
    select min(free.slot) into v_slot
    from generate_series(0, 15) as free (slot)
    where not exists (
      select from pay.webhook_endpoints t
      where t.environment_id = v_environment and t.slot = free.slot
    );
    if v_slot is null then
      -- The claim of the idempotency key goes with the refusal.
      perform pay.release_idempotency_key(v_environment, api_key_id, p_request_id, p_idempotency_key);
      outcome := 'full';
      return next;
      return;
    end if;
    insert into pay.webhook_endpoints
      (environment_id, id, slot, url, events, status, secrets, revision, created_at, body)
    values
      (v_environment, v_endpoint.id, v_slot, v_endpoint.url, v_endpoint.events, v_endpoint.status,
        v_endpoint.secrets, v_endpoint.revision, v_endpoint.created_at, v_endpoint.body);
  else
    update pay.webhook_endpoints t
    set url = v_endpoint.url, events = v_endpoint.events, status = v_endpoint.status,
      secrets = v_endpoint.secrets, revision = v_endpoint.revision, body = v_endpoint.body,
      failing_since = case
        when v_endpoint.status = t.status and v_endpoint.url = t.url then t.failing_since
      end
    where t.environment_id = v_environment and t.id = p_id;
  end if;
  if p_endpoint is null or v_endpoint.status = 'disabled' then
    perform pay.call_off_deliveries(v_environment, p_id, pay.called_off_at_once());
  end if;
  outcome := 'committed';
  return next;
end
$$;
grant execute on function pay.change_webhook_endpoint(
  text, text, timestamptz, integer[], text, text, text, smallint, text, text, integer, text) to pay_api;

create or replace function pay.redeliver(
  p_key_hash text,
  p_scope text,
  p_at timestamptz,
  p_rate integer[],
  p_request_id text,
  p_idempotency_key text,
  p_fingerprint text,
  p_id text,
  p_refusal text
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
  v_delivery pay.webhook_deliveries;
begin
  select * into outcome, api_key_id, v_environment, remaining
  from pay.enter(p_key_hash, p_scope, p_at, null, 'shared');
  if outcome = 'ok' then
    select * into outcome, remaining, status, body from pay.claim_idempotency_key(
      v_environment, api_key_id, p_at, p_rate, p_request_id, p_idempotency_key, p_fingerprint,
      200::smallint, '');
  end if;
  if outcome <> 'ok' then
    return next;
    return;
  end if;
  select * into v_delivery from pay.webhook_deliveries d
  where d.environment_id = v_environment and d.id = p_id
  for update;
  if v_delivery.id is null then
    outcome := 'not_found';
    perform pay.release_idempotency_key(v_environment, api_key_id, p_request_id, p_idempotency_key);
    return next;
    return;
  end if;
  if exists (
    select from pay.webhook_endpoints t
    where t.environment_id = v_environment and t.id = v_delivery.endpoint_id
      and t.status = 'enabled'
  ) then
    outcome := 'committed';
    -- An attempt that is under way goes on; the delivery is then due again only if it fails.
    if v_delivery.leased_until is null or v_delivery.leased_until <= p_at then
      update pay.webhook_deliveries d
      set status = 'pending', next_attempt_at = least(p_at, pay.server_time())
      where d.environment_id = v_environment and d.id = p_id
      returning * into v_delivery;
    end if;
    status := 200;
    body := pay.webhook_delivery_body(v_delivery);
  else
    outcome := 'off';
    status := 409;
    body := p_refusal;
  end if;
  perform pay.keep_answer(v_environment, api_key_id, p_request_id, p_idempotency_key, status, body);
  return next;
end
$$;
grant execute on function
  pay.redeliver(text, text, timestamptz, integer[], text, text, text, text, text) to pay_api;

create or replace function pay.begin_trigger(
  p_key_hash text,
  p_scope text,
  p_at timestamptz,
  p_request_id text,
  p_idempotency_key text,
  p_fingerprint text,
  p_endpoint_id text,
  p_event_id text,
  p_type text,
  p_subject_id text,
  p_body text,
  p_delivery_id text,
  p_leased_until timestamptz
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
  v_leased_until timestamptz := pay.server_time() + (p_leased_until - p_at);
begin
  select * into outcome, api_key_id, v_environment, remaining
  from pay.enter(p_key_hash, p_scope, p_at, null, 'shared');
  if outcome = 'ok' and not exists (
    select from pay.webhook_endpoints t
    where t.environment_id = v_environment and t.id = p_endpoint_id
  ) then
    outcome := 'not_found';
  end if;
  if outcome = 'ok' and p_idempotency_key is not null then
    delete from pay.idempotency_keys k
    where k.environment_id = v_environment and k.api_key_id = begin_trigger.api_key_id
      and k.key = p_idempotency_key and k.status = 102
      and k.created_at <= pay.server_time() - (p_leased_until - p_at);
    select * into outcome, remaining, status, body from pay.claim_idempotency_key(
      v_environment, api_key_id, p_at, null, p_request_id, p_idempotency_key, p_fingerprint,
      102::smallint, '');
    if status = 102 then
      outcome := 'in_progress';
    end if;
  end if;
  if outcome = 'ok' then
    insert into pay.events (environment_id, id, type, subject_id, sequence, created_at, body)
    values (v_environment, p_event_id, p_type, p_subject_id, null, p_at, p_body);
    insert into pay.webhook_deliveries
      (environment_id, id, event_id, event_type, endpoint_id, subject_id, sequence, status,
        attempt_count, next_attempt_at, leased_until, created_at)
    values
      (v_environment, p_delivery_id, p_event_id, p_type, p_endpoint_id, p_subject_id, null,
        'pending', 1, v_leased_until, v_leased_until, p_at);
    outcome := 'committed';
  end if;
  return next;
end
$$;
grant execute on function pay.begin_trigger(
  text, text, timestamptz, text, text, text, text, text, text, text, text, text, timestamptz) to pay_api;

create or replace function pay.end_trigger(
  p_key_hash text,
  p_scope text,
  p_at timestamptz,
  p_request_id text,
  p_idempotency_key text,
  p_delivery_id text,
  p_delivered boolean,
  p_attempt text
)
returns table (
  outcome text, api_key_id text, remaining integer, status smallint, body text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_environment text;
  v_delivery pay.webhook_deliveries;
begin
  select * into outcome, api_key_id, v_environment, remaining
  from pay.enter(p_key_hash, p_scope, p_at, null, 'shared');
  if outcome = 'ok' then
    update pay.webhook_deliveries d
    set status = case when p_delivered then 'delivered' else 'failed' end,
      attempts = p_attempt, next_attempt_at = null, leased_until = null
    where d.environment_id = v_environment and d.id = p_delivery_id
    returning * into v_delivery;
    outcome := case when v_delivery.id is null then 'not_found' else 'committed' end;
  end if;
  if outcome = 'committed' then
    body := pay.webhook_delivery_body(v_delivery);
    perform pay.keep_answer(
      v_environment, api_key_id, p_request_id, p_idempotency_key, 200::smallint, body);
  end if;
  return next;
end
$$;
grant execute on function
  pay.end_trigger(text, text, timestamptz, text, text, text, boolean, text) to pay_api;

create or replace function pay.patterns_of(p_type text)
returns text[]
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select array[p_type, split_part(p_type, '.', 1) || '.*', '*'] $$;

create or replace function pay.slot_character(p_slot smallint)
returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select substr('0123456789abcdef', p_slot + 1, 1) $$;

create or replace function pay.wire_time(p_at timestamptz)
returns text
language sql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') $$;

create or replace function pay.without_second_attempt(p_attempts text)
returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select split_part(p_attempts, '},{', 1) || '},{' || substr(a.others, strpos(a.others, '},{') + 3)
  from (select substr(p_attempts, strpos(p_attempts, '},{') + 3) as others) a
$$;

create or replace function pay.webhook_delivery_body(d pay.webhook_deliveries)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select row_to_json(t)::text from (
    select
      d.id,
      'webhook_delivery' as object,
      d.event_id,
      d.event_type,
      d.endpoint_id,
      case when d.subject_id like 'pay\_%' then d.subject_id end as payment_id,
      d.status,
      ('[' || d.attempts || ']')::json as attempts,
      pay.wire_time(d.next_attempt_at) as next_attempt_at,
      pay.wire_time(d.created_at) as created_at
  ) t
$$;

create or replace view pay.health with (security_invoker = true) as
  select h.*, c.*, w.*
  from pay.read_health() h cross join pay.read_cron() c cross join pay.read_wakes() w;
comment on view pay.health is 'How the service is: one row.';
comment on column pay.health.due_deliveries is 'That could be sent now, up to 100 000.';
comment on column pay.health.oldest_due_seconds is 'How long the first of them has been due; 0: none is.';
comment on column pay.health.pending_deliveries is 'Due, under way, or waiting for a retry; up to 100 000.';
comment on column pay.health.failing_endpoints is 'Enabled ones whose last delivery did not arrive.';
comment on column pay.health.oracle_findings is 'What the check of the books has found; always 0. Null: it has never run.';
comment on column pay.health.books_checked_at is 'When pay.note_findings ran last.';
comment on column pay.health.is_retention_behind is 'There are events older than 31 days.';
comment on column pay.health.failed_cron_runs is 'Of our jobs, among the last 1000 runs of all.';
comment on column pay.health.last_relay_status is
  'Status of the functions'' answer to the last wake of the relay; null: there is none.';
comment on column pay.health.failed_relay_wakes_last_hour is
  'Wakes without a 2xx answer. Null: pg_net is not installed, or its answers are not readable.';
grant select on pay.health to pay_operator;

create or replace view pay.ledger_entries with (security_invoker = true) as
select m.environment_id,
  pay.ledger_entry_id(m.transaction_id, m.leg, side.direction) as id,
  m.transaction_id, m.subject_id, m.refund_id, side.account, side.direction, m.amount_minor,
  m.currency, m.created_at
from pay.ledger_movements m
cross join lateral (
  values ('debit', m.debit_account), ('credit', m.credit_account)
) as side (direction, account);
comment on view pay.ledger_entries is 'The two entries of each movement of the ledger.';

create or replace view pay.subject_accounts with (security_invoker = true) as
select m.environment_id, m.subject_id, m.currency,
  coalesce(sum(s.amount) filter (where s.account = 'available'), 0) as available,
  coalesce(sum(s.amount) filter (where s.account = 'processor'), 0) as processor,
  coalesce(sum(s.amount) filter (where s.account = 'chargebacks'), 0) as chargebacks,
  coalesce(sum(s.amount) filter (where s.account = 'in_transit'), 0) as in_transit,
  coalesce(sum(s.amount) filter (where s.account = 'external'), 0) as external
from pay.ledger_movements m
cross join lateral (
  values (m.debit_account, -m.amount_minor), (m.credit_account, m.amount_minor)
) as s (account, amount)
group by m.environment_id, m.subject_id, m.currency;

create or replace view pay.oracle_ledger_legs with (security_invoker = true) as
select m.environment_id, m.transaction_id as subject_id,
  count(*) || ' legs up to ' || max(m.leg) || ', of ' || min(m.subject_id)
    || case when min(m.subject_id) <> max(m.subject_id) then ' and ' || max(m.subject_id) else '' end
    as detail
from pay.ledger_movements m
group by m.environment_id, m.transaction_id
having count(*) <> max(m.leg) + 1 or min(m.subject_id) <> max(m.subject_id);
comment on view pay.oracle_ledger_legs is
  'R4: the legs of a ledger transaction are numbered from 0 without a gap, and belong to one subject';

create or replace view pay.oracle_ledger_totals with (security_invoker = true) as
select x.environment_id, x.currency || ' ' || x.debit_account || ' to ' || x.credit_account as subject_id,
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
  select v.id from pay.environments v where v.livemode or v.created_at > now() - interval '29 days'
);
comment on view pay.oracle_ledger_totals is
  'R4: the total of two accounts is the sum of the movements between them';

create or replace view pay.oracle_payment_money with (security_invoker = true) as
select p.environment_id, p.id as subject_id,
  p.status || ': available ' || a.available || ', charged back ' || a.chargebacks || ', processor '
    || a.processor as detail
from pay.payments p
left join pay.subject_accounts s
  on s.environment_id = p.environment_id and s.subject_id = p.id and s.currency = p.currency
cross join lateral (
  select coalesce(s.available, 0) as available, coalesce(s.processor, 0) as processor,
    coalesce(s.chargebacks, 0) as chargebacks
) a
cross join lateral (
  select
    case when p.status in ('completed', 'partially_refunded')
      then p.amount_minor - p.amount_refunded else 0 end as available,
    case p.status when 'chargeback' then p.amount_minor - p.amount_refunded else 0 end as chargebacks
) must
where (right(p.id, 26) >= (select pay.recent_suffix()) or p.environment_id in (select v.id from pay.environments v where v.livemode))
  and (a.available <> must.available or a.chargebacks <> must.chargebacks
    or -a.processor <> must.available + must.chargebacks);
comment on view pay.oracle_payment_money is
  'R4: the money of a payment is where its status says';

create or replace view pay.oracle_transfer_money with (security_invoker = true) as
select t.environment_id, t.id as subject_id,
  t.status || ': taken ' || a.taken || ', in transit ' || a.in_transit || ', paid out ' || a.external as detail
from pay.transfers t
left join pay.subject_accounts s
  on s.environment_id = t.environment_id and s.subject_id = t.id and s.currency = t.currency
cross join lateral (
  select -coalesce(s.available, 0) as taken, coalesce(s.in_transit, 0) as in_transit,
    coalesce(s.external, 0) as external
) a
where (right(t.id, 26) >= (select pay.recent_suffix()) or t.environment_id in (select v.id from pay.environments v where v.livemode))
  and (
    a.taken <> case when t.status in ('pending', 'completed') then t.amount_minor else 0 end
    or a.in_transit <> case t.status when 'pending' then t.amount_minor else 0 end
    or a.external <> case t.status when 'completed' then t.amount_minor else 0 end
  );
comment on view pay.oracle_transfer_money is
  'R4: the money of a transfer is where its status says';

create or replace view pay.oracle_refunds with (security_invoker = true) as
select p.environment_id, p.id as subject_id,
  'refunds ' || coalesce(r.total, 0) || ', amount_refunded ' || p.amount_refunded || ' of '
    || p.amount_minor as detail
from pay.payments p
left join (
  select environment_id, payment_id, sum(amount_minor) as total
  from pay.refunds group by environment_id, payment_id
) r on r.environment_id = p.environment_id and r.payment_id = p.id
where (right(p.id, 26) >= (select pay.recent_suffix()) or p.environment_id in (select v.id from pay.environments v where v.livemode))
  and (coalesce(r.total, 0) <> p.amount_refunded or p.amount_refunded > p.amount_minor);
comment on view pay.oracle_refunds is
  'R5: the refunds of a payment are what it says, and no more than its amount';

create or replace view pay.oracle_sequences with (security_invoker = true) as
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
where case
  when right(x.id, 26) >= (select pay.recent_suffix())
    then e.first is distinct from 1 or e.last is distinct from x.sequence
      or e.events is distinct from x.sequence::bigint
  -- Its first events may have been purged, and all of them once it has stood still for so long.
  when x.environment_id in (select v.id from pay.environments v where v.livemode)
    then coalesce(e.last <> x.sequence or e.events <> e.last - e.first + 1,
      x.updated_at >= now() - interval '29 days')
  else false
end;
comment on view pay.oracle_sequences is
  'R5: the events of a payment or transfer are numbered 1, 2, 3 … without a gap, up to where it stands';

create or replace view pay.oracle_moves with (security_invoker = true) as
select m.environment_id, m.subject_id,
  m.sequence || ': ' || coalesce(m.before, 'nothing') || ', then ' || m.type as detail
from (
  select e.environment_id, e.subject_id, e.sequence, e.type,
    lag(e.type) over (partition by e.environment_id, e.subject_id order by e.sequence) as before
  from pay.events e
  where e.sequence is not null
    and (right(e.subject_id, 26) >= (select pay.recent_suffix()) or e.environment_id in (select v.id from pay.environments v where v.livemode))
    and (e.subject_id like 'pay\_%' or e.subject_id like 'tr\_%')
) m
-- Of an old one the events before may have been purged.
where (m.before is not null or m.sequence = 1 or right(m.subject_id, 26) >= (select pay.recent_suffix()))
  and not exists (
  select from (values
    (null, '{payment.created,transfer.created}'::text[]),
    ('payment.created', '{payment.requires_action,payment.processing,payment.completed,payment.declined,payment.failed,payment.cancelled}'),
    ('payment.requires_action', '{payment.completed,payment.declined,payment.failed,payment.cancelled}'),
    ('payment.processing', '{payment.completed,payment.declined,payment.failed}'),
    ('payment.completed', '{refund.completed,payment.chargeback,payment.failed}'),
    ('payment.partially_refunded', '{refund.completed,payment.chargeback}'),
    ('refund.completed', '{payment.partially_refunded,payment.refunded}'),
    ('transfer.created', '{transfer.completed,transfer.failed,transfer.cancelled}')
  ) as legal (before, types)
  where legal.before is not distinct from m.before and m.type = any (legal.types)
);
comment on view pay.oracle_moves is
  'R5: a payment or transfer has made legal moves only';

create or replace view pay.oracle_bodies with (security_invoker = true) as
select x.environment_id, x.id as subject_id, 'row, body and newest event differ' as detail
from (
  select environment_id, id, status, sequence, amount_minor, amount_refunded, currency, updated_at,
    body, 'payment.' as kind
  from pay.payments
  union all
  select environment_id, id, status, sequence, amount_minor, null, currency, updated_at, body,
    'transfer.'
  from pay.transfers
) x
left join pay.events e
  on e.environment_id = x.environment_id and e.subject_id = x.id and e.sequence = x.sequence
where (right(x.id, 26) >= (select pay.recent_suffix()) or x.environment_id in (select v.id from pay.environments v where v.livemode))
  and (
    case
      when e.id is not null then
        e.type <> x.kind || case x.status when 'pending' then 'created' else x.status end
          or position('"data":{"object":' || x.body || '}' in e.body) = 0
      -- The newest event of what has stood still for so long may have been purged.
      else right(x.id, 26) >= (select pay.recent_suffix())
        or x.updated_at >= now() - interval '29 days'
    end
    -- Text, not JSON: four times as fast, and no quoted text has a name and a colon like these.
    or not starts_with(x.body, '{"id":"' || x.id || '",')
    or position('"status":"' || x.status || '",' in x.body) = 0
    or position('"sequence":' || x.sequence || ',' in x.body) = 0
    or position('"amount_minor":' || x.amount_minor || ',' in x.body) = 0
    or position('"amount_refunded":' || x.amount_refunded || ',' in x.body) = 0
    or position('"currency":"' || x.currency || '",' in x.body) = 0
  );
comment on view pay.oracle_bodies is
  'R5: what is answered of a payment or transfer is what its row and its newest event say';

create or replace view pay.oracle_refund_bodies with (security_invoker = true) as
select r.environment_id, r.id as subject_id, 'row, body and event differ' as detail
from pay.refunds r
where (right(r.id, 26) >= (select pay.recent_suffix()) or r.environment_id in (select v.id from pay.environments v where v.livemode))
  and (
    not starts_with(r.body, '{"id":"' || r.id || '",')
    or position('"payment_id":"' || r.payment_id || '",' in r.body) = 0
    or position('"amount_minor":' || r.amount_minor || ',' in r.body) = 0
    or position('"currency":"' || r.currency || '",' in r.body) = 0
    -- Its event may have been purged, in a live environment.
    or right(r.id, 26) >= (select pay.recent_suffix()) and not exists (
      select from pay.events e
      where e.environment_id = r.environment_id and e.subject_id = r.payment_id
        and e.type = 'refund.completed'
        and position('"data":{"object":' || r.body || '}' in e.body) > 0
    )
  );
comment on view pay.oracle_refund_bodies is
  'R5: what is answered of a refund is what its row and its event say';

create or replace view pay.oracle_orphans with (security_invoker = true) as
select x.environment_id, x.id as subject_id, 'belongs to ' || x.owner_id || ', which is not there' as detail
from (
  select environment_id, id, payment_id as owner_id from pay.refunds
  union all
  select environment_id, transaction_id, subject_id from pay.ledger_movements
  union all
  select environment_id, id, subject_id from pay.events
  union all
  select environment_id, id, subject_id from pay.webhook_deliveries
) x
where (x.owner_id like 'pay\_%' or x.owner_id like 'tr\_%')
  and (right(x.owner_id, 26) >= (select pay.recent_suffix()) or x.environment_id in (select v.id from pay.environments v where v.livemode))
  and not exists (
    select from pay.payments p where p.environment_id = x.environment_id and p.id = x.owner_id)
  and not exists (
    select from pay.transfers t where t.environment_id = x.environment_id and t.id = x.owner_id);
comment on view pay.oracle_orphans is
  'R1, R9: a payment or transfer is there with all that belongs to it, or gone with all of it';

create or replace view pay.oracle_effects with (security_invoker = true) as
select e.environment_id, e.id as subject_id,
  e.type || ' of ' || e.subject_id || ': its request is not the one whose answer is kept' as detail
from (
  -- Narrow rows first ("offset 0"): a join of whole bodies would go through files.
  select environment_id, id, type, subject_id,
    -- An event ends with its request.
    split_part(body, '"request":{"id":"', -1) as request
  from pay.events
  where sequence is not null
    -- Below a select: once, not for each row.
    and id >= (select pay.id_floor('evt_', now() - interval '23 hours'))
  offset 0
) e
where right(e.request, 24) <> '"idempotency_key":null}}'
  and not exists (
    select from (
      select environment_id, request_id || '","idempotency_key":' || to_json(key) || '}}' as request,
        case when starts_with(body, '{"id":"tr_') then substr(body, 8, 29)
          else 'pay_' || left(split_part(body, '"pay_', 2), 26) end as subject_id
      from pay.idempotency_keys
      offset 0
    ) k
    where k.environment_id = e.environment_id and k.request = e.request
      and k.subject_id = e.subject_id
  );
comment on view pay.oracle_effects is
  'R2, R3: whatever a keyed request has done, its answer is kept, so that no twin can do it again';

create or replace view pay.oracle_kept_answers with (security_invoker = true) as
select k.environment_id, k.request_id as subject_id,
  'answered ' || k.status || ' with ' || coalesce(k.id || case
    when x.id is null then ', which is not there' else ', which has never been so' end,
    'what nobody answers') as detail
from (
  select o.*, v.livemode,
    case when starts_with(o.object, '{"id":"pay_') or starts_with(o.object, '{"id":"tr_')
      or starts_with(o.object, '{"id":"re_') then split_part(o.object, '"', 4) end as id
  from (
    select a.environment_id, a.request_id, a.status, a.body,
      case when a.status <> 402 then a.body
        -- A refusal ends with the payment that was stored.
        else left(substr(a.body, position('"payment":{' in a.body) + 10), -2) end as object
    from pay.idempotency_keys a
    where a.created_at > now() - interval '23 hours'
  ) o
  join pay.environments v on v.id = o.environment_id
  offset 0
) k
left join (
  select environment_id, id, body from pay.payments
  union all
  select environment_id, id, body from pay.transfers
  union all
  select environment_id, id, body from pay.refunds
) x on x.environment_id = k.environment_id and x.id = k.id
where case
  when k.status = 102 then k.body <> ''
  when k.id is null then case
    when k.status in (200, 201)
      then k.body !~ '^\{("id":"(whe|whd|key)_[0-9a-z]{26}",|"object":"sandbox_reset",)'
    when k.status in (402, 409) then k.body not like '{"error":{"type":"%'
    else true
  end
  when right(k.id, 26) < (select pay.recent_suffix()) and not k.livemode then false
  when k.status not in (200, 201, 402) then true
  when x.id is null then true
  else x.body <> k.object and not exists (
    select from pay.events e
    where e.environment_id = k.environment_id and e.subject_id = k.id
      and position('"data":{"object":' || k.object || '}' in e.body) > 0
  )
end;
comment on view pay.oracle_kept_answers is
  'R1, R2: what the answer to a keyed request tells of is there, and was as it tells';

create or replace view pay.oracle_outbox with (security_invoker = true) as
select e.environment_id, e.id as subject_id, e.type || ' has no delivery to ' || t.id as detail
from pay.events e
join pay.webhook_endpoints t
  on t.environment_id = e.environment_id
  and t.events && pay.patterns_of(e.type)
  -- Never changed, so it has been enabled all along; the margin is for requests that were under way.
  and t.revision = 1
  and e.created_at > t.created_at + interval '10 seconds'
where e.sequence is not null
  and right(e.id, 26) >= (select pay.recent_suffix())
  and not exists (
    select from pay.webhook_deliveries d
    where d.environment_id = e.environment_id and d.event_id = e.id and d.endpoint_id = t.id
      -- Deliveries are found by what their event is of.
      and d.subject_id = e.subject_id
  );
comment on view pay.oracle_outbox is
  'R6: every event is on its way to, or was delivered to, every endpoint that wanted it';

create or replace view pay.oracle_endless_deliveries with (security_invoker = true) as
select d.environment_id, d.id as subject_id,
  'next looked at ' || greatest(d.next_attempt_at, d.leased_until) as detail
from pay.webhook_deliveries d
where d.status = 'pending'
  -- The longest wait is 24 hours and a fifth, twice that if the receiver asks for it; a lease lasts seconds.
  and (d.next_attempt_at > now() + interval '58 hours' or d.leased_until > now() + interval '1 hour')
union all
select d.environment_id, d.id, 'due since ' || d.next_attempt_at
from pay.webhook_deliveries d
where d.status = 'pending'
  and greatest(d.next_attempt_at, d.leased_until) < now() - interval '1 hour'
  -- Behind a slow receiver there is a queue, which moves: not one attempt in this hour or the last.
  and (d.environment_id, d.endpoint_id) not in (
    select o.environment_id, o.endpoint_id
    from pay.webhook_deliveries o
    cross join (
      select '%"at":"' || to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:') || '%' as this_hour,
        '%"at":"' || to_char((now() - interval '1 hour') at time zone 'UTC', 'YYYY-MM-DD"T"HH24:')
          || '%' as last_hour
    ) h
    where o.leased_until > now() - interval '1 hour'
      or o.attempts like h.this_hour or o.attempts like h.last_hour
  );
comment on view pay.oracle_endless_deliveries is
  'R6: no delivery waits for ever';

create or replace view pay.oracle_delivery_order with (security_invoker = true) as
select d.environment_id, d.id as subject_id, 'came before ' || d.before as detail
from (
  select w.environment_id, w.id, w.attempt_count, a.first_at,
    lag(w.id) over earlier as before,
    lag(w.status) over earlier as status_before,
    lag(w.attempt_count) over earlier as attempt_count_before,
    lag(a.first_at) over earlier as first_at_before
  from pay.webhook_deliveries w
  -- Never changed, so nothing was called off and sent later on demand.
  join pay.webhook_endpoints t
    on t.environment_id = w.environment_id and t.id = w.endpoint_id and t.revision = 1
  cross join lateral (
    select (('[' || w.attempts || ']')::json -> 0 ->> 'at')::timestamptz as first_at
  ) a
  where w.sequence is not null
  window earlier as (partition by w.environment_id, w.endpoint_id, w.subject_id order by w.sequence)
) d
-- Each time is that of the isolate that made the attempt: their clocks differ a little.
where d.first_at_before > d.first_at + interval '1 second'
  or (d.status_before = 'pending' and d.attempt_count_before = 0 and d.attempt_count > 0);
comment on view pay.oracle_delivery_order is
  'R7: per endpoint and payment, the first attempts come in the order of sequence';


reset check_function_bodies;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;

