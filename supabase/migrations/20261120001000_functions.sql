-- Written by "deno task schema --release functions" from supabase/schemas: do not edit.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

set check_function_bodies = off;

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
    limit 1
  ) s on true;
  v_set := set_config('pay.environment_ids', coalesce(v_opened, '{}')::text, true);
  -- A new snapshot under the locks. A key that is not there is in an environment that is not open,
  -- or a reset has moved it since.
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

create or replace function pay.api_key_body(p_key pay.api_keys, p_at timestamptz)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
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
          'created_at', pay.wire_time(s.created_at),
          'expires_at', pay.wire_time(s.expires_at)
        ) order by s.created_at desc, s.hash desc), '[]'::json)
        from pay.api_key_secrets s
        where s.api_key_id = p_key.id and s.revoked_at is null
          and (s.expires_at is null or s.expires_at > p_at)
      ) as secrets,
      (
        select pay.wire_time(greatest(p_key.last_used_at, max(s.last_used_at)))
        from pay.api_key_secrets s where s.api_key_id = p_key.id
      ) as last_used_at,
      pay.wire_time(p_key.created_at) as created_at,
      pay.wire_time(p_key.expires_at) as expires_at,
      pay.wire_time(p_key.revoked_at) as revoked_at
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
    (decode(p_secret_hash, 'hex'), p_id, v_environment, v_livemode, p_prefix, p_last_four,
      p_expires_at);
end
$$;
grant execute on function
  pay.create_api_key(text, text, text, text[], text, text, text, timestamptz) to pay_operator;

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

create or replace function pay.write_key_change(
  p_caller pay.api_keys,
  p_key pay.api_keys,
  p_action text,
  p_at timestamptz,
  p_secret json,
  p_older_expire_at timestamptz
)
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_action = 'create' then
    insert into pay.api_keys
      (id, environment_id, livemode, name, scopes, created_at, expires_at)
    values
      (p_key.id, p_caller.environment_id, p_caller.livemode, p_key.name, p_key.scopes, p_at,
        least(p_key.expires_at, p_caller.expires_at));
  end if;
  if p_action = 'revoke' then
    perform pay.end_api_key(p_key.id, p_at);
  else
    perform pay.add_api_key_secret(
      p_key.id, p_at, p_secret ->> 'hash', p_secret ->> 'prefix', p_secret ->> 'last_four',
      coalesce(p_older_expire_at, p_at));
  end if;
  return (
    select pay.api_key_body(k, p_at) from pay.api_keys k
    where k.environment_id = p_caller.environment_id and k.id = p_key.id
  );
end
$$;

create or replace function pay.change_api_key(
  p_request text,
  p_action text,
  p_id text,
  p_key text,
  p_secret text,
  p_older_expire_at timestamptz,
  p_refusal text
)
returns pay.admission
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan set lock_timeout = '3s'
as $$
declare
  v_access pay.admission := pay.claim_one(p_request, pay.admit_one(p_request));
  v_secret json := p_secret::json;
  v_caller pay.api_keys;
  v_key pay.api_keys;
begin
  if v_access.outcome <> 'ok' then
    return v_access;
  end if;
  select * into v_caller from pay.api_keys k where k.id = v_access.api_key_id;
  if p_action = 'create' then
    v_key := json_populate_record(null::pay.api_keys, p_key::json);
    v_key.id := p_id;
  else
    select * into v_key from pay.api_keys k
    where k.environment_id = v_access.environment_id and k.id = p_id and k.revoked_at is null
    for update;
  end if;
  v_access.outcome := pay.judge_key_change(p_action, v_caller, v_key, v_access.at);
  case v_access.outcome
    when 'ended' then
      v_access.status := 409;
      v_access.body := p_refusal;
    when 'committed' then
      v_access.body := pay.write_key_change(
        v_caller, v_key, p_action, v_access.at, v_secret, p_older_expire_at);
      if v_secret is not null then
        v_access.body := left(v_access.body, -1) || ',"secret":'
          || to_json(v_secret ->> 'reference')::text || '}';
      end if;
    else
      perform pay.release_key(p_request, v_access);
      return v_access;
  end case;
  perform pay.keep_answer(p_request, v_access);
  return v_access;
end
$$;
grant execute on function pay.change_api_key(
  text, text, text, text, text, timestamptz, text) to pay_api;

create or replace function pay.lock_subjects(p_changes json, p_found pay.admission[])
returns pay.admission[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_n integer;
begin
  for v_n in
    with
    asked as materialized (
      select c.n, c.expects_id, c.expects_sequence, f.environment_id
      from unnest(p_found) f
      join json_to_recordset(p_changes) as c (n integer, expects_id text, expects_sequence integer)
        on c.n = f.n
      where f.outcome = 'ok' and c.expects_id is not null
    ),
    payment as materialized (
      select c.n, p.id
      from asked c
      join pay.payments p
        on p.environment_id = c.environment_id
        and p.id = c.expects_id
        and p.sequence = c.expects_sequence
      order by p.environment_id, p.id
      for update of p
    ),
    transfer as materialized (
      select c.n, t.id
      from asked c
      join pay.transfers t
        on t.environment_id = c.environment_id
        and t.id = c.expects_id
        and t.sequence = c.expects_sequence
      order by t.environment_id, t.id
      for update of t
    )
    select c.n from asked c
    except
    select min(x.n) from (select * from payment union all select * from transfer) x group by x.id
  loop
    p_found[v_n].outcome := 'stale';
  end loop;
  return p_found;
end
$$;

create or replace function pay.lock_funds(
  p_changes json, p_transfers json, p_found pay.admission[]
)
returns pay.admission[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_draw record;
  v_fund text := '';
  v_left numeric;
  v_keys text[];
begin
  for v_draw in
    select c.n, f.environment_id, f.api_key_id, t.currency, t.amount_minor, c.idempotency_key,
      f.api_key_id || ' ' || c.idempotency_key as whole_key
    from unnest(p_found) f
    join json_to_recordset(p_changes) as c (n integer, expects_id text, idempotency_key text)
      on c.n = f.n
    join json_to_recordset(p_transfers) as t (n integer, currency text, amount_minor bigint)
      on t.n = c.n
    where f.outcome = 'ok' and c.expects_id is null
    order by f.environment_id, t.currency, c.n
  loop
    if v_fund <> v_draw.environment_id || v_draw.currency then
      v_fund := v_draw.environment_id || v_draw.currency;
      perform pg_advisory_xact_lock(hashtextextended(v_fund, 0));
      -- A statement after the lock, so that it sees what the one before has taken.
      v_left := pay.available_minor(v_draw.environment_id, v_draw.currency);
    end if;
    if v_draw.whole_key = any (v_keys) or exists (
      select from pay.idempotency_keys k
      where k.environment_id = v_draw.environment_id and k.api_key_id = v_draw.api_key_id
        and k.key = v_draw.idempotency_key
    ) then
      -- Sent again if the answer is gone when pay.claim looks for it: nothing was drawn.
      p_found[v_draw.n].outcome := 'expired';
    elsif v_draw.amount_minor > v_left then
      p_found[v_draw.n].outcome := 'insufficient';
    else
      v_left := v_left - v_draw.amount_minor;
      v_keys := v_keys || v_draw.whole_key;
    end if;
  end loop;
  return p_found;
end
$$;

create or replace function pay.write_payments(
  p_payments json, p_won integer[], p_environments text[], p_moved integer[]
)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into pay.payments
    (environment_id, id, status, amount_minor, amount_refunded, currency, method_kind, reference,
      sequence, created_at, updated_at, body)
  select w.environment_id, p.id, p.status, p.amount_minor, p.amount_refunded, p.currency,
    p.method_kind, p.reference, p.sequence, p.created_at, p.updated_at, p.body
  from json_to_recordset(p_payments) as p (
    n integer, id text, status text, amount_minor bigint, amount_refunded bigint, currency text,
    method_kind text, reference text, sequence integer, created_at timestamptz,
    updated_at timestamptz, body text
  )
  join unnest(p_won, p_environments) as w (n, environment_id) on w.n = p.n
  where p.n <> all (p_moved);
  if p_moved <> '{}' then
    update pay.payments t
    set status = p.status, amount_refunded = p.amount_refunded, sequence = p.sequence,
      updated_at = p.updated_at, body = p.body
    from json_to_recordset(p_payments) as p (
      n integer, id text, status text, amount_refunded bigint, sequence integer,
      updated_at timestamptz, body text
    )
    join unnest(p_won, p_environments) as w (n, environment_id) on w.n = p.n
    where p.n = any (p_moved) and t.environment_id = w.environment_id and t.id = p.id;
  end if;
end
$$;

create or replace function pay.write_transfers(
  p_transfers json, p_won integer[], p_environments text[], p_moved integer[]
)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into pay.transfers
    (environment_id, id, status, amount_minor, currency, sequence, created_at, updated_at, body)
  select w.environment_id, r.id, r.status, r.amount_minor, r.currency, r.sequence, r.created_at,
    r.updated_at, r.body
  from json_to_recordset(p_transfers) as r (
    n integer, id text, status text, amount_minor bigint, currency text, sequence integer,
    created_at timestamptz, updated_at timestamptz, body text
  )
  join unnest(p_won, p_environments) as w (n, environment_id) on w.n = r.n
  where r.n <> all (p_moved);
  if p_moved <> '{}' then
    update pay.transfers t
    set status = r.status, sequence = r.sequence, updated_at = r.updated_at, body = r.body
    from json_to_recordset(p_transfers) as r (
      n integer, id text, status text, sequence integer, updated_at timestamptz, body text
    )
    join unnest(p_won, p_environments) as w (n, environment_id) on w.n = r.n
    where r.n = any (p_moved) and t.environment_id = w.environment_id and t.id = r.id;
  end if;
end
$$;

create or replace function pay.write_refunds(
  p_refunds json, p_won integer[], p_environments text[]
)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into pay.refunds (environment_id, id, payment_id, amount_minor, currency, created_at, body)
  select w.environment_id, r.id, r.payment_id, r.amount_minor, r.currency, r.created_at, r.body
  from json_to_recordset(p_refunds) as r (
    n integer, id text, payment_id text, amount_minor bigint, currency text,
    created_at timestamptz, body text
  )
  join unnest(p_won, p_environments) as w (n, environment_id) on w.n = r.n;
end
$$;

create or replace function pay.write_events(
  p_events json, p_won integer[], p_environments text[]
)
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := pay.server_time();
  v_deliveries bigint;
begin
  with
  event as materialized (
    select w.environment_id, e.*
    from json_to_recordset(p_events) as e (
      n integer, id text, type text, subject_id text, sequence integer, created_at timestamptz,
      delivery_id text, body text
    )
    join unnest(p_won, p_environments) as w (n, environment_id) on w.n = e.n
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
  return v_deliveries;
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
set enable_seqscan = off set enable_mergejoin = off set enable_material = off
set plan_cache_mode = force_generic_plan
-- How long a twin waits for the first request (contract §5).
set lock_timeout = '3s'
as $$
#variable_conflict use_column
declare
  v_changes json := p_changes::json;
  v_found pay.admission[];
  v_moved integer[] := '{}';
  v_won integer[];
  v_environments text[];
  v_deliveries bigint := 0;
begin
  if p_patience_ms is not null then
    perform set_config('lock_timeout', p_patience_ms::text, true);
  end if;
  v_found := pay.admit(v_changes, 'shared', false);
  -- Most lists of changes need only some of these steps.
  if strpos(p_changes, '"expects_id"') > 0 then
    v_moved := array(
      select c.n from json_to_recordset(v_changes) as c (n integer, expects_id text)
      where c.expects_id is not null);
    v_found := pay.lock_subjects(v_changes, v_found);
  end if;
  if p_transfers <> '[]' then
    v_found := pay.lock_funds(v_changes, p_transfers::json, v_found);
  end if;
  v_found := pay.claim(v_changes, v_found);

  select array_agg(f.n), array_agg(f.environment_id) into v_won, v_environments
  from unnest(v_found) f where f.outcome = 'ok';
  -- A list of replays writes nothing: its rows are not even read.
  if v_won is not null then
    if p_payments <> '[]' then
      perform pay.write_payments(p_payments::json, v_won, v_environments, v_moved);
    end if;
    if p_transfers <> '[]' then
      perform pay.write_transfers(p_transfers::json, v_won, v_environments, v_moved);
    end if;
    if p_refunds <> '[]' then
      perform pay.write_refunds(p_refunds::json, v_won, v_environments);
    end if;
    if p_ledger <> '[]' then
      perform pay.record_movements(p_ledger::json, v_won, v_environments);
    end if;
    v_deliveries := pay.write_events(p_events::json, v_won, v_environments);
  end if;
  return query
    select f.n, case f.outcome when 'ok' then 'committed' else f.outcome end, f.api_key_id,
      f.environment_id, f.remaining, f.status, f.body, v_deliveries
    from unnest(v_found) f;
end
$$;
grant execute on function pay.commit(text, text, text, text, text, text, integer) to pay_api;

create or replace function pay.create_environment(
  p_id text, p_account text, p_livemode boolean, p_name text
)
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

create or replace function pay.read_outbox()
returns table (
  due_deliveries bigint,
  oldest_due_seconds double precision,
  pending_deliveries bigint,
  failed_deliveries_last_hour bigint,
  failing_endpoints bigint
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_most constant integer := 100000;
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
        and d.id >= pay.id_floor('whd_', now() - interval '1 hour')
      where d.status = 'failed' and e.retired_at is null
    ),
    (
      select count(*) from pay.webhook_endpoints t
      where t.status = 'enabled' and t.failing_since is not null
    );
end
$$;
grant execute on function pay.read_outbox() to pay_operator;

create or replace function pay.read_books()
returns table (
  oracle_findings bigint,
  books_checked_at timestamptz
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_most constant integer := 100000;
begin
  perform set_config('pay.worker', 'on', true);
  return query select
    (
      select case
        when exists (select from pay.settings s where s.name = 'books_checked_at') then count(*)
      end
      from (select from pay.oracle_findings limit v_most) findings
    ),
    (
      select to_timestamp(s.value::double precision) from pay.settings s
      where s.name = 'books_checked_at'
    );
end
$$;
grant execute on function pay.read_books() to pay_operator;

create or replace function pay.read_service()
returns table (
  is_retention_behind boolean,
  test_keys bigint,
  live_keys bigint,
  is_relay_configured boolean
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('pay.worker', 'on', true);
  return query select
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
grant execute on function pay.read_service() to pay_operator;

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

create or replace function pay.idempotency_retention()
returns interval
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select interval '24 hours' $$;

create or replace function pay.find_answers(
  p_requests json, p_found pay.admission[], p_is_read boolean
)
returns pay.admission[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := pay.server_time();
  v_kept record;
begin
  -- Looked up one by one, by the whole key: without statistics a join would read all keys of the
  -- environment.
  for v_kept in
    with asked as materialized (
      select f.n, f.environment_id, f.api_key_id, f.outcome, r.idempotency_key as key,
        decode(r.fingerprint, 'hex') as fingerprint
      from unnest(p_found) f
      join json_to_recordset(p_requests) as r (n integer, idempotency_key text, fingerprint text)
        on r.n = f.n
      where r.idempotency_key is not null
        and f.outcome not in ('unauthorized', 'resetting', 'forbidden')
        and (p_is_read or f.outcome <> 'ok')
    )
    select a.n, a.environment_id, a.api_key_id, a.key, i.status, i.body,
      case
        when i.created_at <= v_now - pay.idempotency_retention() then 'expired'
        when i.fingerprint = a.fingerprint and i.status = 102 then 'in_progress'
        when i.fingerprint = a.fingerprint then 'replay'
        when a.outcome = 'rate_limited' then 'rate_limited'
        else 'conflict'
      end as outcome
    from asked a
    cross join lateral (
      select o.fingerprint, o.status, o.body, o.created_at
      from pay.idempotency_keys o
      where o.environment_id = a.environment_id and o.api_key_id = a.api_key_id and o.key = a.key
      limit 1
    ) i
    where not (p_is_read
      and (i.status = 102 or i.created_at <= v_now - pay.idempotency_retention()))
    -- Expired answers are deleted in one order, so that two lists do not deadlock.
    order by a.api_key_id, a.key
  loop
    p_found[v_kept.n].outcome := v_kept.outcome;
    if v_kept.outcome = 'replay' then
      p_found[v_kept.n].status := v_kept.status;
      p_found[v_kept.n].body := v_kept.body;
    elsif v_kept.outcome = 'expired' then
      delete from pay.idempotency_keys o
      where o.environment_id = v_kept.environment_id
        and o.api_key_id = v_kept.api_key_id
        and o.key = v_kept.key
        -- Not one that a twin has claimed meanwhile.
        and o.created_at <= v_now - pay.idempotency_retention();
    end if;
  end loop;
  return p_found;
end
$$;

create or replace function pay.claim(p_requests json, p_found pay.admission[])
returns pay.admission[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := pay.server_time();
  v_lost integer[];
  v_n integer;
  v_are_refused boolean;
  v_are_limited boolean;
begin
  with
  asked as materialized (
    select f.environment_id, f.api_key_id, r.*
    from unnest(p_found) f
    join json_to_recordset(p_requests) as r (
      n integer, request_id text, idempotency_key text, fingerprint text, status smallint, body text
    ) on r.n = f.n
    where f.outcome = 'ok' and r.idempotency_key is not null
  ),
  claimed as (
    insert into pay.idempotency_keys
      (environment_id, api_key_id, key, fingerprint, request_id, status, body, created_at)
    select a.environment_id, a.api_key_id, a.idempotency_key, decode(a.fingerprint, 'hex'),
      a.request_id, a.status, a.body, v_now
    from asked a
    order by a.api_key_id, a.idempotency_key, a.n
    on conflict on constraint idempotency_keys_pkey do nothing
    returning api_key_id, key, request_id
  )
  select coalesce(array_agg(a.n), '{}'),
    (select bool_or(f.outcome <> 'ok') from unnest(p_found) f),
    (select bool_or(f.remaining is not null) from unnest(p_found) f)
  into v_lost, v_are_refused, v_are_limited
  from asked a
  where not exists (
    select from claimed k
    where k.api_key_id = a.api_key_id
      and k.key = a.idempotency_key
      and k.request_id = a.request_id
  );
  -- If no answer is found below, the one that was in the way is gone: the request is sent again.
  foreach v_n in array v_lost loop
    p_found[v_n].outcome := 'expired';
  end loop;
  if v_are_refused or v_lost <> '{}' then
    p_found := pay.find_answers(p_requests, p_found, false);
  end if;
  if v_are_limited then
    p_found := pay.count_requests(p_found);
  end if;
  return p_found;
end
$$;

create or replace function pay.admit_one(p_request text, p_hold text default 'shared')
returns pay.admission
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_found pay.admission[] := pay.admit(p_request::json, p_hold, false);
begin
  return v_found[1];
end
$$;

create or replace function pay.claim_one(p_request text, p_access pay.admission)
returns pay.admission
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_found pay.admission[] := pay.claim(p_request::json, array[p_access]);
begin
  return v_found[1];
end
$$;

create or replace function pay.keep_answer(p_request text, p_access pay.admission)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_request json := p_request::json -> 0;
begin
  update pay.idempotency_keys k
  set status = coalesce(p_access.status, k.status), body = p_access.body
  where k.environment_id = p_access.environment_id and k.api_key_id = p_access.api_key_id
    and k.key = v_request ->> 'idempotency_key' and k.request_id = v_request ->> 'request_id';
end
$$;

create or replace function pay.release_key(p_request text, p_access pay.admission)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_request json := p_request::json -> 0;
begin
  delete from pay.idempotency_keys k
  where k.environment_id = p_access.environment_id and k.api_key_id = p_access.api_key_id
    and k.key = v_request ->> 'idempotency_key' and k.request_id = v_request ->> 'request_id';
end
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
    values
      (t.debit_account, t.amount_minor, 0::numeric),
      (t.credit_account, 0::numeric, t.amount_minor)
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

create or replace function pay.filtered_page(
  p_environment_id text, p_at timestamptz, p_request json,
  out outcome text, out data text, out has_more boolean, out next_cursor text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_hashjoin = off set enable_sort = off set enable_incremental_sort = off set jit = off
as $$
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
      v_is_known := pay.has_ledger_entry(p_environment_id, v_starting_after);
    else
      execute format(
        'select exists (select from pay.%I t where t.environment_id = $1 and t.id = $2)', v_kind
      ) into v_is_known using p_environment_id, v_starting_after;
    end if;
    if not v_is_known then
      outcome := 'unknown_cursor';
      return;
    end if;
  end if;
  if v_kind = 'ledger_entries' then
    select p.data, p.has_more, p.next_cursor into data, has_more, next_cursor
    from pay.ledger_page(p_environment_id, v_limit, v_starting_after, v_filters) p;
  else
    select p.data, p.has_more, p.next_cursor into data, has_more, next_cursor
    from pay.list_page(p_environment_id, p_at, v_kind, v_limit, v_starting_after, v_filters) p;
  end if;
end
$$;

create or replace function pay.list(p_requests text)
returns table (
  n integer, outcome text, api_key_id text, environment_id text, remaining integer, data text,
  has_more boolean, next_cursor text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_mergejoin = off set enable_material = off
set enable_bitmapscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_requests json := p_requests::json;
  v_found pay.admission[] := pay.admit(v_requests, 'shared', true);
begin
  return query
    with asked as materialized (
      select f.*, r."limit", r.starting_after, r.is_plain,
        -- Every id sorts before 'pay_~'. Computed here: in the comparison, below row-level
        -- security, a coalesce is a filter and not an index condition, and a deep page would read
        -- all rows before it.
        coalesce(r.starting_after, 'pay_~') as before
      from unnest(v_found) f
      join (
        select *, kind = 'payments' and filters is null and parent_id is null as is_plain
        from json_to_recordset(v_requests) as r (
          n integer, kind text, "limit" integer, starting_after text, filters json, parent_id text
        )
      ) r on r.n = f.n
    )
    select a.n, case when c.is_known then coalesce(p.outcome, a.outcome) else 'unknown_cursor' end,
      a.api_key_id, a.environment_id, a.remaining, p.data, p.has_more, p.next_cursor
    from asked a
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
        end as next_cursor
      from (
        select t.id, t.body, row_number() over newest = 1 or (
          row_number() over newest <= a."limit"
          and sum(octet_length(t.body)) over newest <= pay.page_bytes()
        ) as is_shown
        from pay.payments t
        where t.environment_id = a.environment_id and t.id < a.before
        window newest as (order by t.id desc rows unbounded preceding)
        order by t.id desc
        limit a."limit" + 1
      ) page
      having a.outcome = 'ok' and a.is_plain and c.is_known
      union all
      select x.outcome, x.data, x.has_more, x.next_cursor
      from pay.filtered_page(a.environment_id, a.at, v_requests -> (a.n - 1)) x
      where a.outcome = 'ok' and not a.is_plain
    ) p on true;
end
$$;
grant execute on function pay.list(text) to pay_api;

create or replace function pay.read_resource(
  p_environment_id text, p_kind text, p_id text, p_at timestamptz, out body text, out detail text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  case p_kind
    when 'refunds' then
      select t.body into body from pay.refunds t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'transfers' then
      select t.body into body from pay.transfers t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'api_keys' then
      select pay.api_key_body(t, p_at) into body from pay.api_keys t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'events' then
      select t.body into body from pay.events t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'webhook_endpoints' then
      select t.body, json_build_object('revision', t.revision, 'secrets', t.secrets,
        'public_id', e.public_id, 'account', e.account)
      into body, detail
      from pay.webhook_endpoints t
      join pay.environments e on e.id = t.environment_id
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'webhook_deliveries' then
      select pay.webhook_delivery_body(t) into body from pay.webhook_deliveries t
      where t.environment_id = p_environment_id and t.id = p_id;
  end case;
end
$$;

create or replace function pay.load(p_requests text)
returns table (
  n integer, outcome text, api_key_id text, environment_id text, remaining integer, status smallint,
  body text, detail text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_found pay.admission[] := pay.admit(p_requests::json, 'shared', true);
begin
  return query
    select f.n,
      case
        when f.outcome = 'ok' and r.kind is not null and coalesce(p.body, o.body) is null
          then 'not_found'
        else f.outcome
      end,
      f.api_key_id, f.environment_id, f.remaining, f.status, coalesce(p.body, o.body, f.body),
      o.detail
    from unnest(v_found) f
    join json_to_recordset(p_requests::json) as r (n integer, kind text, id text, at timestamptz)
      on r.n = f.n
    left join lateral (
      select t.body from pay.payments t
      where f.outcome = 'ok' and r.kind = 'payments'
        and t.environment_id = f.environment_id and t.id = r.id
      limit 1
    ) p on true
    left join lateral (
      select x.body, x.detail from pay.read_resource(f.environment_id, r.kind, r.id, r.at) x
      where f.outcome = 'ok' and r.kind <> 'payments'
      -- Without this the function is called before the condition is checked.
      limit 1
    ) o on true;
end
$$;
grant execute on function pay.load(text) to pay_api;

create or replace function pay.balance(p_request text)
returns pay.admission
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_found pay.admission[] := pay.admit(p_request::json, 'shared', true);
  v_access pay.admission := v_found[1];
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
      from pay.account_sums(v_access.environment_id) s
    ) b;
  end if;
  return v_access;
end
$$;
grant execute on function pay.balance(text) to pay_api;

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
    select count(*), coalesce(
      (array_agg(concat(f.environment_id, ' ', f.subject_id, ': ', f.detail)))[1:3], '{}')
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
language plpgsql volatile
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

create or replace function pay.limit_requests(
  p_found pay.admission[], p_key_rates integer[], p_environment_rates integer[], p_counts boolean
)
returns pay.admission[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_request record;
  v_environment text := '';
  v_keys text[];
  v_used numeric[];
  v_total numeric;
  v_key integer;
  v_left integer;
begin
  for v_request in
    select f.n, f.environment_id, f.api_key_id, f.outcome, max(f.at) over () as at,
      nullif(p_key_rates[f.n], 0) as key_rate,
      nullif(p_environment_rates[f.n], 0) as environment_rate
    from unnest(p_found) f
    where f.outcome not in ('unauthorized', 'resetting')
      and (p_key_rates[f.n] > 0 or p_environment_rates[f.n] > 0)
    order by f.environment_id, f.n
  loop
    if v_request.environment_id <> v_environment then
      v_environment := v_request.environment_id;
      select array_agg(u.api_key_id), array_agg(u.used), coalesce(sum(u.used), 0)
      into v_keys, v_used, v_total
      from pay.requests_used(v_environment, v_request.at) u;
    end if;
    v_key := array_position(v_keys, v_request.api_key_id);
    if v_key is null then
      v_keys := v_keys || v_request.api_key_id;
      v_used := v_used || 0::numeric;
      v_key := cardinality(v_keys);
    end if;
    -- least() ignores the null of a limit that is none.
    v_left := floor(least(
      2 * v_request.key_rate - 1 - v_used[v_key], 2 * v_request.environment_rate - 1 - v_total));
    p_found[v_request.n].remaining := v_left;
    continue when v_request.outcome = 'replay';
    if v_left >= 0 then
      v_used[v_key] := v_used[v_key] + 1;
      v_total := v_total + 1;
    elsif v_request.outcome <> 'forbidden' then
      p_found[v_request.n].outcome := 'rate_limited';
    end if;
  end loop;
  return case when p_counts then pay.count_requests(p_found) else p_found end;
end
$$;

create or replace function pay.limit_writes(
  p_requests json, p_found pay.admission[], p_key_rates integer[], p_environment_rates integer[]
)
returns pay.admission[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limited pay.admission[] := pay.limit_requests(
    p_found, p_key_rates, p_environment_rates, false);
begin
  if cardinality(p_found) > 1 and exists (
    select from unnest(v_limited) f where f.outcome = 'rate_limited'
  ) then
    v_limited := pay.limit_requests(
      pay.find_answers(p_requests, p_found, true), p_key_rates, p_environment_rates, false);
  end if;
  return v_limited;
end
$$;

create or replace function pay.add_requests(
  p_environment_id text,
  p_api_key_id text,
  p_at timestamptz,
  p_requests integer
)
returns void
language plpgsql volatile
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

create or replace function pay.count_requests(p_found pay.admission[])
returns pay.admission[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_told record;
begin
  perform pay.add_requests(c.environment_id, c.api_key_id, c.at, c.requests)
  from (
    select f.environment_id, f.api_key_id, max(f.at) as at, count(*)::integer as requests
    from unnest(p_found) f
    where f.remaining >= 0 and f.outcome not in ('replay', 'resetting', 'stale', 'expired')
    group by f.environment_id, f.api_key_id
  ) c;
  for v_told in
    select f.n, f.outcome, f.remaining from unnest(p_found) f
    where f.remaining < 0 or (f.remaining is not null
      and f.outcome in ('replay', 'resetting', 'stale', 'expired'))
  loop
    if v_told.outcome = 'forbidden' then
      p_found[v_told.n].outcome := 'rate_limited';
    end if;
    p_found[v_told.n].remaining := case
      when v_told.outcome in ('resetting', 'stale', 'expired') then null
      when v_told.outcome = 'replay' then greatest(0, v_told.remaining + 1)
      else 0
    end;
  end loop;
  return p_found;
end
$$;

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
returns setof pay.claimed_delivery
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_longest_look constant interval := '100 ms';
  -- How far the caller's clock is ahead of the server's.
  v_ahead constant interval := greatest(p_at - pay.server_time(), '0');
  v_at constant timestamptz := p_at - v_ahead;
  -- By the server's time: other relays would find a lease of a slow clock expired.
  v_leased_until constant timestamptz := pay.server_time() + (p_leased_until - p_at);
  v_rooms constant jsonb := p_rooms::jsonb;
  v_waiting record;
  v_due pay.due_delivery[];
  v_claimed integer;
begin
  perform set_config('pay.worker', 'on', true);
  if p_results <> '[]' then
    perform pay.record_attempts(p_results, v_at, v_ahead);
  end if;
  if p_limit <= 0 then
    return;
  end if;

  select * into v_waiting
  from pay.find_room(v_rooms, p_limit, p_per_endpoint, p_per_environment, p_per_account);
  if v_waiting.off_endpoint is not null then
    -- Fewer if results wait for the end of this turn.
    perform pay.call_off_deliveries(v_waiting.off_environment, v_waiting.off_endpoint,
      case when p_results = '[]' then 2000 else 250 end);
  end if;

  -- If all due deliveries wait for earlier ones, the turn looks at those behind them, for as long
  -- as others can wait for it. Postponed deliveries stay postponed, and the next turn continues.
  loop
    v_due := pay.lock_due(
      v_waiting.endpoints, v_waiting.rooms, v_waiting.shares, v_waiting.reads, v_at);
    exit when v_due is null;
    return query select * from pay.claim_due(
      v_due, v_rooms, p_limit, p_per_environment, p_per_account, v_leased_until, v_ahead);
    get diagnostics v_claimed = row_count;
    if v_claimed < cardinality(v_due) then
      perform pay.put_off_deliveries(v_due, v_at);
    end if;
    exit when v_claimed > 0 or clock_timestamp() > statement_timestamp() + v_longest_look;
  end loop;

  -- Checked first, because there is usually none and the function costs a third of an empty turn.
  if p_suspects_ahead is not null and exists (
    select from pay.webhook_deliveries d
    where d.next_attempt_at is not null and d.lost_claims > 0
  ) then
    return query
      select * from pay.claim_suspect(p_suspects_ahead::jsonb, v_at, v_leased_until, v_ahead);
  end if;
end
$$;
grant execute on function
  pay.relay_turn(text, text, integer, integer, integer, integer, text, timestamptz, timestamptz)
  to pay_api;

create or replace function pay.find_room(
  p_rooms jsonb,
  p_limit integer,
  p_per_endpoint integer,
  p_per_environment integer,
  p_per_account integer,
  out endpoints text[],
  out rooms integer[],
  out shares integer[],
  out reads integer[],
  out off_environment text,
  out off_endpoint text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  -- As many rows as one request makes due at a moment, except the first.
  v_rest constant integer := 3;
begin
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
  select array_agg(w.endpoint_id) filter (where k.is_on and r.room > 0),
    array_agg(r.room) filter (where k.is_on and r.room > 0),
    -- An endpoint that has claims comes after those that have none, however quick it is.
    array_agg(
      case when k.left_of_endpoint is null then p_per_endpoint
        else least(k.left_of_endpoint, p_per_endpoint - 1)
      end
    ) filter (where k.is_on and r.room > 0),
    -- The turn would give back most of what it claims of a failing endpoint.
    array_agg(r.room + case when k.is_failing then 0 else v_rest end)
      filter (where k.is_on and r.room > 0),
    (array_agg(w.environment_id) filter (where not k.is_on))[1],
    (array_agg(w.endpoint_id) filter (where not k.is_on))[1]
  into endpoints, rooms, shares, reads, off_environment, off_endpoint
  from waiting w
  join pay.environments e on e.id = w.environment_id
  left join pay.webhook_endpoints t on t.environment_id = w.environment_id and t.id = w.endpoint_id
  cross join lateral (
    select (p_rooms -> 'endpoints' ->> w.endpoint_id)::integer as left_of_endpoint,
      t.failing_since is not null as is_failing,
      t.status is not distinct from 'enabled' as is_on
  ) k
  cross join lateral (
    select least(
      coalesce(k.left_of_endpoint, p_per_endpoint),
      coalesce((p_rooms -> 'environments' ->> e.public_id)::integer, p_per_environment),
      coalesce((p_rooms -> 'accounts' ->> e.account)::integer, p_per_account),
      p_limit,
      case when k.is_failing then 2 end
    ) as room
  ) r;
end
$$;

create or replace function pay.lock_due(
  p_endpoints text[],
  p_rooms integer[],
  p_shares integer[],
  p_reads integer[],
  p_at timestamptz
)
returns pay.due_delivery[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_due pay.due_delivery[];
  v_is_any_lost boolean;
begin
  select
    array_agg(row(c.environment_id, c.id, c.endpoint_id, c.subject_id, c.sequence, c.event_id,
      c.place - c.share, c.is_lost)::pay.due_delivery),
    bool_or(c.is_lost)
  into v_due, v_is_any_lost
  from (
    select l.*, o.room, o.share,
      rank() over (partition by l.endpoint_id order by l.next_attempt_at, l.subject_id) as place
    from unnest(p_endpoints, p_rooms, p_shares, p_reads) as o (endpoint_id, room, share, reads)
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

  if v_is_any_lost then
    update pay.webhook_deliveries d
    set lost_claims = 1, leased_until = null
    from unnest(v_due) c
    where c.is_lost and d.environment_id = c.environment_id and d.id = c.id;
  end if;
  return v_due;
end
$$;

create or replace function pay.take_places(
  p_due pay.due_delivery[],
  p_rooms jsonb,
  p_limit integer,
  p_per_environment integer,
  p_per_account integer
)
returns table (
  environment_id text, id text, endpoint_id text, subject_id text, sequence integer, event_id text,
  rank_of_endpoint bigint, url text, secrets text, failing_since timestamptz, livemode boolean,
  public_id text, account text
)
language plpgsql stable rows 10
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
  with
  shared as (
    select c.*, t.url, t.secrets, t.failing_since, e.livemode, e.public_id, e.account,
      rank() over (partition by e.public_id order by c.rank_of_endpoint, c.endpoint_id)
        <= coalesce((p_rooms -> 'environments' ->> e.public_id)::integer, p_per_environment)
      and rank() over (partition by e.account order by c.rank_of_endpoint, c.endpoint_id)
        <= coalesce((p_rooms -> 'accounts' ->> e.account)::integer, p_per_account) as has_place
    from unnest(p_due) c
    join pay.webhook_endpoints t
      on t.environment_id = c.environment_id and t.id = c.endpoint_id and t.status = 'enabled'
    join pay.environments e on e.id = c.environment_id
    where not c.is_lost
  )
  select s.environment_id, s.id, s.endpoint_id, s.subject_id, s.sequence, s.event_id,
    s.rank_of_endpoint, s.url, s.secrets::text, s.failing_since, s.livemode, s.public_id, s.account
  from shared s
  where s.has_place
  order by s.rank_of_endpoint, s.endpoint_id
  fetch first (p_limit) rows with ties;
end
$$;

create or replace function pay.claim_due(
  p_due pay.due_delivery[],
  p_rooms jsonb,
  p_limit integer,
  p_per_environment integer,
  p_per_account integer,
  p_leased_until timestamptz,
  p_ahead interval
)
returns setof pay.claimed_delivery
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  with
  counted as (
    select k.*, count(*) over (
        partition by k.endpoint_id, k.subject_id order by k.sequence
        range between unbounded preceding and 1 preceding
      ) as taken_before
    from pay.take_places(p_due, p_rooms, p_limit, p_per_environment, p_per_account) k
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
  claimed as (
    update pay.webhook_deliveries d
    set attempt_count = d.attempt_count + 1, leased_until = p_leased_until
    from judged j
    where j.is_next and d.environment_id = j.environment_id and d.id = j.id
    returning j.*, d.attempt_count
  )
  select c.environment_id, c.public_id, c.account, c.id, c.endpoint_id, c.event_id, c.subject_id,
    c.attempt_count, c.url, c.secrets, c.livemode,
    -- In the caller's time, because the caller computes how long the endpoint has been failing.
    c.failing_since + p_ahead, false, false, v.body
  from claimed c
  join pay.events v on v.environment_id = c.environment_id and v.id = c.event_id
  order by c.rank_of_chain, c.endpoint_id, c.subject_id, c.sequence;
end
$$;

create or replace function pay.put_off_deliveries(p_due pay.due_delivery[], p_at timestamptz)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  with
  left_over as materialized (
    select d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.next_attempt_at
    from unnest(p_due) c
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
      -- A turn has claimed the blocker: this one or another.
      (j.environment_id, j.blocker_id) not in (select o.environment_id, o.id from left_over o)
      -- The blocker is due later: every turn would look at this one in its place.
      or j.blocked_until > j.next_attempt_at
    )
    and d.environment_id = j.environment_id and d.id = j.id;
end
$$;

create or replace function pay.call_off_deliveries(
  p_environment_id text,
  p_endpoint_id text,
  p_most integer
)
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

create or replace function pay.record_attempts(
  p_results text,
  p_at timestamptz,
  p_ahead interval
)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_recorded record;
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

  select * into v_recorded from pay.record_results(p_results, p_at, p_ahead);
  if v_recorded.next_ids is not null then
    perform pay.release_next_deliveries(v_recorded.next_environments, v_recorded.next_ids, p_at);
  end if;
  if v_recorded.turned_ids is not null then
    perform pay.note_failing_endpoints(v_recorded.turned_environments, v_recorded.turned_ids,
      v_recorded.turned_to_success, p_at);
  end if;
end
$$;

create or replace function pay.record_results(
  p_results text,
  p_at timestamptz,
  p_ahead interval,
  out next_environments text[],
  out next_ids text[],
  out turned_environments text[],
  out turned_ids text[],
  out turned_to_success boolean[]
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
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
      -- Limited, because a delivery can be redelivered any number of times and each record rewrites
      -- the text. 8 000 bytes are more than 50 attempts.
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
end
$$;

create or replace function pay.release_next_deliveries(
  p_environments text[],
  p_ids text[],
  p_at timestamptz
)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  with waiting as materialized (
    select d.environment_id, d.id
    from unnest(p_environments, p_ids) as n (environment_id, id)
    join pay.webhook_deliveries d on d.environment_id = n.environment_id and d.id = n.id
    where d.status || '' = 'pending' and (d.leased_until is null or d.leased_until <= p_at)
    order by d.environment_id, d.id
    for update of d
  )
  update pay.webhook_deliveries d
  set next_attempt_at = least(d.created_at, p_at)
  from waiting w
  where d.environment_id = w.environment_id and d.id = w.id;
end
$$;

create or replace function pay.note_failing_endpoints(
  p_environments text[],
  p_ids text[],
  p_to_success boolean[],
  p_at timestamptz
)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
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
end
$$;

create or replace function pay.claim_suspect(
  p_suspects_ahead jsonb,
  p_at timestamptz,
  p_leased_until timestamptz,
  p_ahead interval
)
returns setof pay.claimed_delivery
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_longest_look constant interval := '200 ms';
  v_due pay.due_delivery[];
  v_is_claimed boolean;
begin
  loop
    v_due := pay.lock_suspects(p_suspects_ahead, p_at);
    exit when v_due is null;
    return query select * from pay.claim_first_suspect(v_due, p_leased_until, p_ahead);
    v_is_claimed := found;
    -- Postpones suspects that wait for an earlier delivery, and cancels those of disabled
    -- endpoints.
    perform pay.put_off_deliveries(v_due, p_at);
    exit when v_is_claimed or clock_timestamp() > statement_timestamp() + v_longest_look;
  end loop;
end
$$;

create or replace function pay.lock_suspects(p_ahead jsonb, p_at timestamptz)
returns pay.due_delivery[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
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
    select array_agg(
      row(l.environment_id, l.id, l.endpoint_id, l.subject_id, l.sequence, l.event_id, null,
        l.leased_until is not null)::pay.due_delivery
      order by coalesce((p_ahead ->> e.account)::float8, 0), e.account,
        l.lost_claims, l.next_attempt_at, l.subject_id, l.sequence
    )
    from suspected s
    join pay.environments e on e.id = s.environment_id
    cross join lateral (
      select d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.event_id,
        d.leased_until, d.lost_claims, d.next_attempt_at
      from pay.webhook_deliveries d
      where d.endpoint_id = s.endpoint_id and d.next_attempt_at <= p_at and d.lost_claims > 0
        and (d.leased_until is null or d.leased_until <= p_at)
      order by d.lost_claims, d.next_attempt_at, d.subject_id, d.sequence
      limit 2
      for update skip locked
    ) l
  );
end
$$;

create or replace function pay.claim_first_suspect(
  p_due pay.due_delivery[],
  p_leased_until timestamptz,
  p_ahead interval
)
returns setof pay.claimed_delivery
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_most_lost constant integer := 3;
begin
  return query
  with
  chosen as materialized (
    select d.environment_id, d.id, t.url, t.secrets, t.failing_since, e.livemode, e.public_id,
      e.account, c.is_lost, c.is_lost and d.lost_claims + 1 >= v_most_lost as crashed
    from unnest(p_due) with ordinality as c
      (environment_id, id, endpoint_id, subject_id, sequence, event_id, rank, is_lost, n)
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
    c.attempt_count, c.url, c.secrets::text, c.livemode, c.failing_since + p_ahead, true, c.crashed,
    v.body
  from claimed c
  join pay.events v on v.environment_id = c.environment_id and v.id = c.event_id;
end
$$;

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

create or replace function pay.move_environment(
  p_old text, p_new text, p_at timestamptz
)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_environment pay.environments;
begin
  perform set_config('pay.environment_ids', array[p_old, p_new]::text, true);
  update pay.environments e set retired_at = p_at where e.id = p_old
  returning * into v_environment;
  insert into pay.environments (id, public_id, account, livemode, name)
  values (p_new, v_environment.public_id, v_environment.account, false, v_environment.name);
  update pay.api_keys t set environment_id = p_new where t.environment_id = p_old;
  update pay.api_key_secrets t set environment_id = p_new where t.environment_id = p_old;
  update pay.rate_counters t set environment_id = p_new where t.environment_id = p_old;
  update pay.webhook_endpoints t set environment_id = p_new where t.environment_id = p_old;
  delete from pay.webhook_deliveries d using pay.webhook_endpoints t
  where t.environment_id = p_new and d.endpoint_id = t.id
    and d.environment_id = p_old and d.status = 'pending';
end
$$;

create or replace function pay.reset_sandbox(p_request text, p_environment_id text)
returns pay.admission
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan set lock_timeout = '3s'
as $$
declare
  v_request json := p_request::json -> 0;
  v_old text;
  v_access pay.admission;
begin
  -- Without a lock, so that a caller who may not reset waits for nobody and holds up nobody. A
  -- replay is never refused, so a caller at its limit waits if an answer of its key is stored.
  v_access := pay.admit_one(p_request, 'none');
  if v_access.outcome = 'ok' or (v_access.outcome = 'rate_limited' and exists (
    select from pay.idempotency_keys k
    where k.environment_id = v_access.environment_id and k.api_key_id = v_access.api_key_id
      and k.key = v_request ->> 'idempotency_key'
  )) then
    v_access := pay.admit_one(p_request, 'alone');
  else
    -- Without a lock a key that another reset is moving can look like one that lacks the scope.
    v_access := pay.admit_one(p_request, 'shared');
    if v_access.outcome = 'ok' then
      v_access.outcome := 'resetting';
    end if;
  end if;
  v_old := v_access.environment_id;
  if v_access.outcome = 'ok' and exists (
    select from pay.environments e where e.id = v_old and e.livemode
  ) then
    v_access.outcome := 'live';
  end if;
  v_access := pay.claim_one(p_request, v_access);
  if v_access.outcome <> 'ok' then
    return v_access;
  end if;

  perform from pay.webhook_endpoints t where t.environment_id = v_old order by t.id for update;
  v_access.outcome := 'committed';
  v_access.body := pay.sandbox_reset_body(v_old, v_request ->> 'idempotency_key' is not null);
  -- After the count, which takes time: a turn of the relay may wait for these rows.
  perform from pay.webhook_deliveries d
  join pay.webhook_endpoints t on t.environment_id = v_old and t.id = d.endpoint_id
  where d.environment_id = v_old and d.status = 'pending'
  order by d.id for update of d;
  perform pay.keep_answer(p_request, v_access);
  perform pay.move_environment(v_old, p_environment_id, v_access.at);
  update pay.idempotency_keys k set environment_id = p_environment_id
  where k.environment_id = v_old and k.api_key_id = v_access.api_key_id
    and k.key = v_request ->> 'idempotency_key';
  return v_access;
end
$$;
grant execute on function pay.reset_sandbox(text, text) to pay_api;

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
language plpgsql volatile
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
    -- By its place, which needs no search. Another batch deletes a row that moves meanwhile.
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

create or replace function pay.purge(
  p_at timestamptz default now(),
  p_batch integer default 1000
)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_at constant timestamptz := least(p_at, pay.server_time());
  v_until constant timestamptz := clock_timestamp() + interval '2 seconds';
  v_environment record;
  v_rows bigint := 0;
  v_total bigint;
begin
  perform set_config('pay.worker', 'on', true);
  v_total := pay.purge_idempotency_keys(v_at, p_batch);
  for v_environment in
    select e.id, e.livemode from pay.environments e where e.retired_at is null order by random()
  loop
    exit when clock_timestamp() > v_until;
    v_total := v_total + pay.purge_keys(v_environment.id, v_at, p_batch)
      + pay.purge_old(v_environment.id, v_environment.livemode, v_at, p_batch);
  end loop;
  for v_environment in
    select e.id from pay.environments e
    where e.retired_at is not null order by e.retired_at limit 50
  loop
    v_rows := v_rows + pay.purge_retired(v_environment.id, p_batch);
    exit when v_rows >= p_batch;
  end loop;
  return v_total + v_rows;
end
$$;
grant execute on function pay.purge(timestamptz, integer) to pay_api, pay_operator;

create or replace function pay.purge_idempotency_keys(p_at timestamptz, p_batch integer)
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rows bigint;
begin
  -- Materialized, because a batch that is read again for each row has no limit. In order, because
  -- with a limit alone a scan of the table looks cheap while its statistics are old.
  with old as materialized (
    select o.environment_id, o.api_key_id, o.key
    from pay.idempotency_keys o
    where o.created_at <= p_at - pay.idempotency_retention()
    order by o.created_at
    limit p_batch for update skip locked
  )
  delete from pay.idempotency_keys t using old
  where t.environment_id = old.environment_id and t.api_key_id = old.api_key_id and t.key = old.key;
  get diagnostics v_rows = row_count;
  return v_rows;
end
$$;

create or replace function pay.purge_old(
  p_environment_id text,
  p_livemode boolean,
  p_at timestamptz,
  p_batch integer
)
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_kind record;
  v_rows bigint;
  v_total bigint := 0;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('purge ' || p_environment_id, 0)) then
    return 0;
  end if;
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
    where k.of_live_too or not p_livemode
  loop
    -- The primary key is in the order of time, so the oldest rows are found without a search.
    -- The batch is an array, so that it is read once.
    execute format(
      'delete from pay.%1$I t
       where t.environment_id = $1 and t.%3$I = any (array(
         select o.%3$I from pay.%1$I o
         where o.environment_id = $1 and o.%3$I < $2
         order by o.%3$I limit $3 %2$s
       ))',
      v_kind.table_name, v_kind.lock, v_kind.id_column
    ) using p_environment_id, pay.id_floor(v_kind.prefix, p_at - interval '30 days'), p_batch;
    get diagnostics v_rows = row_count;
    v_total := v_total + v_rows;
  end loop;
  return v_total;
end
$$;

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
    -- Dynamic, so that this function can be created without pg_net.
    execute
      'select net.http_post(url := $1, body := $2, params := $3, headers := $4,
         timeout_milliseconds := $5)'
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

create or replace function pay.insert_webhook_endpoint(p_endpoint pay.webhook_endpoints)
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint pay.webhook_endpoints := p_endpoint;
begin
  perform pg_advisory_xact_lock(hashtextextended(v_endpoint.environment_id, 0));
  select min(free.slot) into v_endpoint.slot
  from generate_series(0, 15) as free (slot)
  where not exists (
    select from pay.webhook_endpoints t
    where t.environment_id = v_endpoint.environment_id and t.slot = free.slot
  );
  if v_endpoint.slot is null then
    return false;
  end if;
  insert into pay.webhook_endpoints
    (environment_id, id, slot, url, events, status, secrets, revision, created_at, body)
  values
    (v_endpoint.environment_id, v_endpoint.id, v_endpoint.slot, v_endpoint.url, v_endpoint.events,
      v_endpoint.status, v_endpoint.secrets, v_endpoint.revision, v_endpoint.created_at,
      v_endpoint.body);
  return true;
end
$$;

create or replace function pay.write_webhook_endpoint(
  p_environment_id text, p_id text, p_status_before text, p_endpoint pay.webhook_endpoints
)
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_is_deleted boolean := p_endpoint.id is null;
begin
  if p_status_before = 'disabled' and p_endpoint.status = 'enabled'
    and pay.call_off_deliveries(p_environment_id, p_id, pay.called_off_at_once())
  then
    return 'calling_off';
  end if;
  if v_is_deleted then
    delete from pay.webhook_endpoints t where t.environment_id = p_environment_id and t.id = p_id;
  elsif p_status_before is null then
    if not pay.insert_webhook_endpoint(p_endpoint) then
      return 'full';
    end if;
  else
    update pay.webhook_endpoints t
    set url = p_endpoint.url, events = p_endpoint.events, status = p_endpoint.status,
      secrets = p_endpoint.secrets, revision = p_endpoint.revision, body = p_endpoint.body,
      failing_since = case
        when p_endpoint.status = t.status and p_endpoint.url = t.url then t.failing_since
      end
    where t.environment_id = p_environment_id and t.id = p_id;
  end if;
  if v_is_deleted or p_endpoint.status = 'disabled' then
    perform pay.call_off_deliveries(p_environment_id, p_id, pay.called_off_at_once());
  end if;
  return 'committed';
end
$$;

create or replace function pay.change_webhook_endpoint(
  p_request text, p_id text, p_expects_revision integer, p_endpoint text
)
returns pay.admission
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan set lock_timeout = '3s'
as $$
declare
  v_access pay.admission := pay.admit_one(p_request);
  v_revision integer;
  v_status_before text;
  v_endpoint pay.webhook_endpoints;
begin
  if v_access.outcome = 'ok' and p_expects_revision is not null then
    select t.revision, t.status into v_revision, v_status_before from pay.webhook_endpoints t
    where t.environment_id = v_access.environment_id and t.id = p_id
    for update;
    -- Stale also if it is gone: the caller loads it again and is told that it is not there.
    if v_revision is distinct from p_expects_revision then
      v_access.outcome := 'stale';
    end if;
  end if;
  v_access := pay.claim_one(p_request, v_access);
  if v_access.outcome <> 'ok' then
    return v_access;
  end if;
  if p_endpoint is not null then
    v_endpoint := json_populate_record(null::pay.webhook_endpoints, p_endpoint::json);
    v_endpoint.environment_id := v_access.environment_id;
  end if;
  v_access.outcome := pay.write_webhook_endpoint(
    v_access.environment_id, p_id, v_status_before, v_endpoint);
  if v_access.outcome <> 'committed' then
    perform pay.release_key(p_request, v_access);
  end if;
  return v_access;
end
$$;
grant execute on function pay.change_webhook_endpoint(text, text, integer, text) to pay_api;

create or replace function pay.redeliver(p_request text, p_id text, p_refusal text)
returns pay.admission
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan set lock_timeout = '3s'
as $$
declare
  v_access pay.admission := pay.claim_one(p_request, pay.admit_one(p_request));
  v_delivery pay.webhook_deliveries;
begin
  if v_access.outcome <> 'ok' then
    return v_access;
  end if;
  select * into v_delivery from pay.webhook_deliveries d
  where d.environment_id = v_access.environment_id and d.id = p_id
  for update;
  if v_delivery.id is null then
    v_access.outcome := 'not_found';
    perform pay.release_key(p_request, v_access);
    return v_access;
  end if;
  if exists (
    select from pay.webhook_endpoints t
    where t.environment_id = v_access.environment_id and t.id = v_delivery.endpoint_id
      and t.status = 'enabled'
  ) then
    -- An attempt that is under way goes on; the delivery is then due again only if it fails.
    if v_delivery.leased_until is null or v_delivery.leased_until <= v_access.at then
      update pay.webhook_deliveries d
      set status = 'pending', next_attempt_at = least(v_access.at, pay.server_time())
      where d.environment_id = v_access.environment_id and d.id = p_id
      returning * into v_delivery;
    end if;
    v_access.outcome := 'committed';
    v_access.status := 200;
    v_access.body := pay.webhook_delivery_body(v_delivery);
  else
    v_access.outcome := 'off';
    v_access.status := 409;
    v_access.body := p_refusal;
  end if;
  perform pay.keep_answer(p_request, v_access);
  return v_access;
end
$$;
grant execute on function pay.redeliver(text, text, text) to pay_api;

create or replace function pay.begin_trigger(p_request text, p_trigger text)
returns pay.admission
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan set lock_timeout = '3s'
as $$
declare
  v_access pay.admission := pay.admit_one(p_request);
  v_request json := p_request::json -> 0;
    v_trigger record;
  v_leased_until timestamptz;
begin
  select *, t.leased_until - v_access.at as lease into v_trigger
  from json_to_record(p_trigger::json) as t (
    endpoint_id text, event_id text, type text, subject_id text, body text, delivery_id text,
    leased_until timestamptz
  );
  v_leased_until := pay.server_time() + v_trigger.lease;
  if v_access.outcome = 'ok' then
    delete from pay.idempotency_keys k
    where k.environment_id = v_access.environment_id and k.api_key_id = v_access.api_key_id
      and k.key = v_request ->> 'idempotency_key' and k.status = 102
      and k.created_at <= pay.server_time() - v_trigger.lease;
    if not exists (
      select from pay.webhook_endpoints t
      where t.environment_id = v_access.environment_id and t.id = v_trigger.endpoint_id
    ) then
      v_access.outcome := 'not_found';
    end if;
  end if;
  v_access := pay.claim_one(p_request, v_access);
  if v_access.outcome = 'ok' then
    insert into pay.events (environment_id, id, type, subject_id, sequence, created_at, body)
    values (v_access.environment_id, v_trigger.event_id, v_trigger.type, v_trigger.subject_id, null,
      v_access.at, v_trigger.body);
    insert into pay.webhook_deliveries
      (environment_id, id, event_id, event_type, endpoint_id, subject_id, sequence, status,
        attempt_count, next_attempt_at, leased_until, created_at)
    values
      (v_access.environment_id, v_trigger.delivery_id, v_trigger.event_id, v_trigger.type,
        v_trigger.endpoint_id, v_trigger.subject_id, null, 'pending', 1, v_leased_until,
        v_leased_until, v_access.at);
    v_access.outcome := 'committed';
  end if;
  return v_access;
end
$$;
grant execute on function pay.begin_trigger(text, text) to pay_api;

create or replace function pay.end_trigger(
  p_request text, p_delivery_id text, p_delivered boolean, p_attempt text
)
returns pay.admission
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_access pay.admission := pay.admit_one(p_request);
  v_delivery pay.webhook_deliveries;
begin
  if v_access.outcome <> 'ok' then
    return v_access;
  end if;
  update pay.webhook_deliveries d
  set status = case when p_delivered then 'delivered' else 'failed' end,
    attempts = p_attempt, next_attempt_at = null, leased_until = null
  where d.environment_id = v_access.environment_id and d.id = p_delivery_id
  returning * into v_delivery;
  if v_delivery.id is null then
    v_access.outcome := 'not_found';
    return v_access;
  end if;
  v_access.outcome := 'committed';
  v_access.status := 200;
  v_access.body := pay.webhook_delivery_body(v_delivery);
  perform pay.keep_answer(p_request, v_access);
  return v_access;
end
$$;
grant execute on function pay.end_trigger(text, text, boolean, text) to pay_api;

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

create or replace function pay.webhook_delivery_body(p_delivery pay.webhook_deliveries)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select row_to_json(t)::text from (
    select
      p_delivery.id,
      'webhook_delivery' as object,
      p_delivery.event_id,
      p_delivery.event_type,
      p_delivery.endpoint_id,
      case when p_delivery.subject_id like 'pay\_%' then p_delivery.subject_id end as payment_id,
      p_delivery.status,
      ('[' || p_delivery.attempts || ']')::json as attempts,
      pay.wire_time(p_delivery.next_attempt_at) as next_attempt_at,
      pay.wire_time(p_delivery.created_at) as created_at
  ) t
$$;

create or replace view pay.health with (security_invoker = true) as
  select o.*, b.*, s.*, c.*, w.*
  from pay.read_outbox() o
  cross join pay.read_books() b
  cross join pay.read_service() s
  cross join pay.read_cron() c
  cross join pay.read_wakes() w;
comment on view pay.health is 'How the service is: one row.';
comment on column pay.health.due_deliveries is 'Deliveries that could be sent now, up to 100 000.';
comment on column pay.health.oldest_due_seconds is
  'How long the oldest of them has been due; 0 if there is none.';
comment on column pay.health.pending_deliveries is
  'Due, under way or waiting for a retry; up to 100 000.';
comment on column pay.health.failed_deliveries_last_hour is
  'Deliveries created in the last hour that have failed.';
comment on column pay.health.failing_endpoints is
  'Enabled endpoints whose last delivery did not arrive.';
comment on column pay.health.oracle_findings is
  'What the check of the books has found; always 0. Null: it has never run.';
comment on column pay.health.books_checked_at is 'When pay.note_findings ran last.';
comment on column pay.health.is_retention_behind is 'There are events older than 31 days.';
comment on column pay.health.test_keys is 'API keys of sandboxes that are not revoked.';
comment on column pay.health.live_keys is 'Live API keys that are not revoked.';
comment on column pay.health.is_relay_configured is 'pay.configure_relay has been called.';
comment on column pay.health.last_relay_wake_at is
  'Last run of the job that wakes the relay. Null: none, or not visible.';
comment on column pay.health.last_retention_at is
  'Last run of the job of retention. Null: none, or not visible.';
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
comment on view pay.subject_accounts is
  'Internal: the sums of each account over the movements of a subject.';

create or replace view pay.oracle_ledger_legs with (security_invoker = true) as
select m.environment_id, m.transaction_id as subject_id,
  count(*) || ' legs up to ' || max(m.leg) || ', of ' || min(m.subject_id)
    || case when min(m.subject_id) <> max(m.subject_id)
      then ' and ' || max(m.subject_id) else '' end as detail
from pay.ledger_movements m
group by m.environment_id, m.transaction_id
having count(*) <> max(m.leg) + 1 or min(m.subject_id) <> max(m.subject_id);
comment on view pay.oracle_ledger_legs is
  'R4: the legs of a ledger transaction are numbered without a gap, and belong to one subject';

create or replace view pay.oracle_ledger_totals with (security_invoker = true) as
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
    case p.status when 'chargeback'
      then p.amount_minor - p.amount_refunded else 0 end as chargebacks
) must
where (right(p.id, 26) >= (select pay.recent_suffix())
    or p.environment_id in (select v.id from pay.environments v where v.livemode))
  and (a.available <> must.available or a.chargebacks <> must.chargebacks
    or -a.processor <> must.available + must.chargebacks);
comment on view pay.oracle_payment_money is
  'R4: the money of a payment is where its status says';

create or replace view pay.oracle_transfer_money with (security_invoker = true) as
select t.environment_id, t.id as subject_id,
  t.status || ': taken ' || a.taken || ', in transit ' || a.in_transit || ', paid out '
    || a.external as detail
from pay.transfers t
left join pay.subject_accounts s
  on s.environment_id = t.environment_id and s.subject_id = t.id and s.currency = t.currency
cross join lateral (
  select -coalesce(s.available, 0) as taken, coalesce(s.in_transit, 0) as in_transit,
    coalesce(s.external, 0) as external
) a
where (right(t.id, 26) >= (select pay.recent_suffix())
    or t.environment_id in (select v.id from pay.environments v where v.livemode))
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
where (right(p.id, 26) >= (select pay.recent_suffix())
    or p.environment_id in (select v.id from pay.environments v where v.livemode))
  and (coalesce(r.total, 0) <> p.amount_refunded or p.amount_refunded > p.amount_minor);
comment on view pay.oracle_refunds is
  'R5: the refunds of a payment are what it says, and no more than its amount';

create or replace view pay.oracle_outbox with (security_invoker = true) as
select e.environment_id, e.id as subject_id, e.type || ' has no delivery to ' || t.id as detail
from pay.events e
join pay.webhook_endpoints t
  on t.environment_id = e.environment_id
  and t.events && pay.patterns_of(e.type)
  -- Never changed, so it has been enabled all along; the margin is for requests that were under
  -- way.
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
  -- The longest wait is 24 hours and a fifth, twice that if the receiver asks for it; a lease lasts
  -- seconds.
  and (d.next_attempt_at > now() + interval '58 hours'
    or d.leased_until > now() + interval '1 hour')
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
      select
        '%"at":"' || to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:') || '%' as this_hour,
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
  'R5: the events of a payment or transfer are numbered 1, 2, 3 … without a gap, to its sequence';

create or replace view pay.oracle_moves with (security_invoker = true) as
select m.environment_id, m.subject_id,
  m.sequence || ': ' || coalesce(m.before, 'nothing') || ', then ' || m.type as detail
from (
  select e.environment_id, e.subject_id, e.sequence, e.type,
    lag(e.type) over (partition by e.environment_id, e.subject_id order by e.sequence) as before
  from pay.events e
  where e.sequence is not null
    and (right(e.subject_id, 26) >= (select pay.recent_suffix())
    or e.environment_id in (select v.id from pay.environments v where v.livemode))
    and (e.subject_id like 'pay\_%' or e.subject_id like 'tr\_%')
) m
-- Of an old one the events before may have been purged.
where (m.before is not null or m.sequence = 1
    or right(m.subject_id, 26) >= (select pay.recent_suffix()))
  and not exists (
  select from (values
    (null, '{payment.created,transfer.created}'::text[]),
    ('payment.created', '{payment.requires_action,payment.processing,payment.completed,
      payment.declined,payment.failed,payment.cancelled}'),
    ('payment.requires_action',
      '{payment.completed,payment.declined,payment.failed,payment.cancelled}'),
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
where (right(x.id, 26) >= (select pay.recent_suffix())
    or x.environment_id in (select v.id from pay.environments v where v.livemode))
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
where (right(r.id, 26) >= (select pay.recent_suffix())
    or r.environment_id in (select v.id from pay.environments v where v.livemode))
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
select x.environment_id, x.id as subject_id,
  'belongs to ' || x.owner_id || ', which is not there' as detail
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
  and (right(x.owner_id, 26) >= (select pay.recent_suffix())
    or x.environment_id in (select v.id from pay.environments v where v.livemode))
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
      select environment_id,
        request_id || '","idempotency_key":' || to_json(key) || '}}' as request,
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

reset check_function_bodies;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
