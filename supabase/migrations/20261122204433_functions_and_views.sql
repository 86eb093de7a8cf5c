-- Written by "deno task schema --release functions_and_views" from supabase/schemas: do not edit.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

set check_function_bodies = off;

drop function pay.max_live_keys();

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
    raise exception 'environment % has % active keys already',
      p_environment_id, pay.max_active_keys()
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
      raise exception 'the environment of % has % active keys already', p_id, pay.max_active_keys()
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
      -- A separate statement after the lock, so that it sees the transfers committed before.
      v_left := pay.available_minor(v_draw.environment_id, v_draw.currency);
    end if;
    if v_draw.whole_key = any (v_keys) or exists (
      select from pay.idempotency_keys k
      where k.environment_id = v_draw.environment_id and k.api_key_id = v_draw.api_key_id
        and k.key = v_draw.idempotency_key
    ) then
      -- If pay.claim finds no answer, the request is sent again. Nothing was drawn.
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
    (environment_id, id, status, amount_minor, amount_refunded, amount_refunding, amount_released,
      amount_disputed, currency, method_kind, reference, sequence, created_at, updated_at, body)
  select w.environment_id, p.id, p.status, p.amount_minor, p.amount_refunded,
    coalesce(p.amount_refunding, 0), coalesce(p.amount_released, 0),
    coalesce(p.amount_disputed,
      case p.status when 'chargeback' then p.amount_minor - p.amount_refunded else 0 end),
    p.currency, p.method_kind, p.reference, p.sequence, p.created_at, p.updated_at, p.body
  from json_to_recordset(p_payments) as p (
    n integer, id text, status text, amount_minor bigint, amount_refunded bigint,
    amount_refunding bigint, amount_released bigint, amount_disputed bigint, currency text,
    method_kind text, reference text, sequence integer, created_at timestamptz,
    updated_at timestamptz, body text
  )
  join unnest(p_won, p_environments) as w (n, environment_id) on w.n = p.n
  where p.n <> all (p_moved);
  if p_moved <> '{}' then
    update pay.payments t
    set status = p.status, amount_refunded = p.amount_refunded,
      amount_refunding = coalesce(p.amount_refunding, t.amount_refunding),
      amount_released = coalesce(p.amount_released, t.amount_released),
      amount_disputed = coalesce(p.amount_disputed,
        case p.status when 'chargeback' then t.amount_minor - p.amount_refunded else 0 end),
      sequence = p.sequence, updated_at = p.updated_at, body = p.body
    from json_to_recordset(p_payments) as p (
      n integer, id text, status text, amount_refunded bigint, amount_refunding bigint,
      amount_released bigint, amount_disputed bigint, sequence integer, updated_at timestamptz,
      body text
    )
    join unnest(p_won, p_environments) as w (n, environment_id) on w.n = p.n
    where p.n = any (p_moved) and t.environment_id = w.environment_id and t.id = p.id;
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
  insert into pay.refunds as t
    (environment_id, id, payment_id, status, amount_minor, currency, created_at, body)
  select w.environment_id, r.id, r.payment_id, coalesce(r.status, 'completed'), r.amount_minor,
    r.currency, r.created_at, r.body
  from json_to_recordset(p_refunds) as r (
    n integer, id text, payment_id text, status text, amount_minor bigint, currency text,
    created_at timestamptz, body text
  )
  join unnest(p_won, p_environments) as w (n, environment_id) on w.n = r.n
  on conflict on constraint refunds_pkey
  do update set status = excluded.status, body = excluded.body;
end
$$;

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
        -- A twin may have claimed the key meanwhile. Its row is newer and stays.
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
  -- If no answer is found below, another transaction has deleted it: the request is sent again.
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

create or replace function pay.max_active_keys()
returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select 100 $$;

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
  ) >= pay.max_active_keys() then
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
    -- least() ignores null, which stands for no limit.
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
  -- The lead of the caller's clock over the server's.
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
  v_rest constant integer := 4;
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
    -- The turn would give back most deliveries that it claims of a failing endpoint.
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
      -- The earlier delivery releases this one. A short wait would check thousands of rows often.
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
  -- Takes no lock, so that a caller who may not reset does not wait and delays nobody. A replay is
  -- never refused, so a caller at its limit does wait if its idempotency key has a stored answer.
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
    -- Deletes by ctid, which needs no index. Another batch deletes a row that moves meanwhile.
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

create or replace view pay.health with (security_invoker = true) as
  select o.*, b.*, s.*, c.*, w.*
  from pay.read_outbox() o
  cross join pay.read_books() b
  cross join pay.read_service() s
  cross join pay.read_cron() c
  cross join pay.read_wakes() w;
comment on view pay.health is 'One row about the state of the service.';
comment on column pay.health.due_deliveries is 'Deliveries that could be sent now, up to 100 000.';
comment on column pay.health.oldest_due_seconds is
  'For how many seconds the oldest due delivery has been due; 0 if none is due.';
comment on column pay.health.pending_deliveries is
  'Deliveries that are due, under way or waiting for a retry, up to 100 000.';
comment on column pay.health.failed_deliveries_last_hour is
  'Deliveries created in the last hour that have failed.';
comment on column pay.health.failing_endpoints is
  'Enabled endpoints whose last attempt failed.';
comment on column pay.health.oracle_findings is
  'Findings of the check of the books. Should be 0. Null if the check has never run.';
comment on column pay.health.books_checked_at is 'Time of the last run of pay.note_findings.';
comment on column pay.health.is_retention_behind is 'True if there are events older than 31 days.';
comment on column pay.health.test_keys is 'Number of API keys of sandboxes that are not revoked.';
comment on column pay.health.live_keys is 'Number of live API keys that are not revoked.';
comment on column pay.health.is_relay_configured is 'True if pay.configure_relay was called.';
comment on column pay.health.last_relay_wake_at is
  'Time of the last run of the job that wakes the relay. Null if none is visible.';
comment on column pay.health.last_retention_at is
  'Time of the last run of the retention job. Null if none is visible.';
comment on column pay.health.failed_cron_runs is
  'Failed runs of the jobs of this service, among the last 1000 runs of all jobs.';
comment on column pay.health.last_relay_status is
  'HTTP status of the answer to the last wake of the relay. Null if there is no answer.';
comment on column pay.health.failed_relay_wakes_last_hour is
  'Wakes without a 2xx answer. Null if pg_net is not installed or its answers are not readable.';
grant select on pay.health to pay_operator;

create or replace view pay.subject_accounts with (security_invoker = true) as
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
  'R4: the legs of a ledger transaction are numbered without a gap and belong to one subject';

create or replace view pay.oracle_payment_money with (security_invoker = true) as
select p.environment_id, p.id as subject_id,
  p.status || ': available ' || a.available || ', charged back ' || a.chargebacks || ', processor '
    || a.processor as detail
from pay.payments p
left join pay.subject_accounts s
  on s.environment_id = p.environment_id and s.subject_id = p.id and s.currency = p.currency
cross join lateral (
  -- The provider takes its fees out of the available money.
  select coalesce(s.available + s.fees, 0) as available,
    coalesce(s.processor - s.fees + s.unapplied, 0) as processor,
    coalesce(s.chargebacks, 0) as chargebacks
) a
cross join lateral (
  select
    case when p.status in ('completed', 'partially_refunded', 'refunded', 'chargeback')
      then p.amount_minor - p.amount_released - p.amount_refunded - p.amount_disputed
      else 0 end as available,
    p.amount_disputed as chargebacks
) must
where (right(p.id, 26) >= (select pay.recent_suffix())
    or p.environment_id in (select v.id from pay.environments v where v.livemode))
  and (a.available <> must.available or a.chargebacks <> must.chargebacks
    or -a.processor <> must.available + must.chargebacks);
comment on view pay.oracle_payment_money is
  'R4: each account holds the amount of a payment that the status of the payment requires';

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
  'R4: each account holds the amount of a transfer that the status of the transfer requires';

create or replace view pay.oracle_refunds with (security_invoker = true) as
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
where (right(p.id, 26) >= (select pay.recent_suffix())
    or p.environment_id in (select v.id from pay.environments v where v.livemode))
  and (coalesce(r.completed, 0) <> p.amount_refunded
    or coalesce(r.pending, 0) <> p.amount_refunding
    or p.amount_refunded + p.amount_refunding > p.amount_minor - p.amount_released);
comment on view pay.oracle_refunds is
  'R5: the refunds of a payment add up to its sums of refunds, at most to the captured amount';

create or replace view pay.oracle_outbox with (security_invoker = true) as
select e.environment_id, e.id as subject_id, e.type || ' has no delivery to ' || t.id as detail
from pay.events e
join pay.webhook_endpoints t
  on t.environment_id = e.environment_id
  and t.events && pay.patterns_of(e.type)
  -- The endpoint was never changed, so it was always enabled. The margin of 10 seconds is for
  -- requests that were under way when it was created.
  and t.revision = 1
  and e.created_at > t.created_at + interval '10 seconds'
where e.sequence is not null
  and right(e.id, 26) >= (select pay.recent_suffix())
  and not exists (
    select from pay.webhook_deliveries d
    where d.environment_id = e.environment_id and d.event_id = e.id and d.endpoint_id = t.id
      -- The index finds deliveries by their subject.
      and d.subject_id = e.subject_id
  );
comment on view pay.oracle_outbox is
  'R6: every event has a delivery to every endpoint that subscribes to it';

create or replace view pay.oracle_endless_deliveries with (security_invoker = true) as
select d.environment_id, d.id as subject_id,
  'next attempt at ' || greatest(d.next_attempt_at, d.leased_until) as detail
from pay.webhook_deliveries d
where d.status = 'pending'
  -- The longest delay of the schedule is 24 hours and a fifth, and twice that if the receiver asks
  -- for it. A lease lasts seconds.
  and (d.next_attempt_at > now() + interval '58 hours'
    or d.leased_until > now() + interval '1 hour')
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
  'R6: no delivery waits longer than the retry schedule allows';

create or replace view pay.oracle_delivery_order with (security_invoker = true) as
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
  cross join lateral (
    select (('[' || w.attempts || ']')::json -> 0 ->> 'at')::timestamptz as first_at
  ) a
  where w.sequence is not null
  window earlier as (partition by w.environment_id, w.endpoint_id, w.subject_id order by w.sequence)
) d
-- Each time is from the clock of the isolate that made the attempt. These clocks differ a little.
where d.first_at_before > d.first_at + interval '1 second'
  or (d.status_before = 'pending' and d.attempt_count_before = 0 and d.attempt_count > 0);
comment on view pay.oracle_delivery_order is
  'R7: for each endpoint and payment, first attempts are made in the order of sequence';

create or replace view pay.oracle_moves with (security_invoker = true) as
select m.environment_id, m.subject_id,
  m.sequence || ': ' || coalesce(m.before, 'nothing') || ', then ' || m.type as detail
from (
  -- Events of refunds stand between those of their payment, in any order.
  select e.environment_id, e.subject_id, e.sequence, e.type, e.directly_before,
    lag(e.type) over (
      partition by e.environment_id, e.subject_id, e.type like 'refund.%' order by e.sequence
    ) as before
  from (
    select v.environment_id, v.subject_id, v.sequence, v.type,
      lag(v.type) over (partition by v.environment_id, v.subject_id order by v.sequence)
        as directly_before
    from pay.events v
    where v.sequence is not null
      and (right(v.subject_id, 26) >= (select pay.recent_suffix())
      or v.environment_id in (select n.id from pay.environments n where n.livemode))
      and (v.subject_id like 'pay\_%' or v.subject_id like 'tr\_%')
  ) e
) m
-- Retention may have deleted earlier events of an old resource.
where (m.directly_before is not null or m.sequence = 1
    or right(m.subject_id, 26) >= (select pay.recent_suffix()))
  and case
    when m.type like 'refund.%' then m.directly_before is null
      or m.directly_before in ('payment.created', 'payment.requires_action', 'payment.processing',
        'payment.authorized', 'payment.declined', 'payment.cancelled')
    when m.directly_before = 'refund.completed'
      then m.type not in ('payment.partially_refunded', 'payment.refunded')
    when m.before is null and m.sequence > 1
      then right(m.subject_id, 26) >= (select pay.recent_suffix())
    when m.type in ('payment.partially_refunded', 'payment.refunded')
      and m.before <> 'payment.chargeback' then true
    else not exists (
      select from (values
        (null, '{payment.created,transfer.created}'::text[]),
        ('payment.created', '{payment.requires_action,payment.processing,payment.authorized,
          payment.completed,payment.declined,payment.failed,payment.cancelled}'),
        ('payment.requires_action', '{payment.processing,payment.authorized,payment.completed,
          payment.declined,payment.failed,payment.cancelled}'),
        ('payment.processing', '{payment.requires_action,payment.authorized,payment.completed,
          payment.declined,payment.failed,payment.cancelled}'),
        ('payment.authorized', '{payment.completed,payment.failed,payment.cancelled}'),
        ('payment.completed', '{payment.partially_refunded,payment.refunded,payment.chargeback,
          payment.failed}'),
        ('payment.partially_refunded', '{payment.partially_refunded,payment.refunded,
          payment.chargeback,payment.failed}'),
        ('payment.chargeback', '{payment.completed,payment.partially_refunded}'),
        ('transfer.created', '{transfer.completed,transfer.failed,transfer.cancelled}')
      ) as legal (before, types)
      where legal.before is not distinct from m.before and m.type = any (legal.types)
    )
  end;
comment on view pay.oracle_moves is
  'R5: each event of a payment or transfer is a legal move after the event before it';

create or replace view pay.oracle_bodies with (security_invoker = true) as
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
where (right(x.id, 26) >= (select pay.recent_suffix())
    or x.environment_id in (select v.id from pay.environments v where v.livemode))
  and (
    case
      -- An event of a refund shows the refund, and not the payment.
      when e.type like 'refund.%' then x.kind <> 'payment.'
      when e.id is not null then
        e.type <> x.kind || case x.status when 'pending' then 'created' else x.status end
          or position('"data":{"object":' || x.body || '}' in e.body) = 0
      -- Retention may have deleted the newest event of a resource that has not changed for so long.
      else right(x.id, 26) >= (select pay.recent_suffix())
        or x.updated_at >= now() - interval '29 days'
    end
    -- Compared as text, which is four times as fast as JSON. JSON escapes the quotes inside of a
    -- string, so no string can contain these member names.
    or not starts_with(x.body, '{"id":"' || x.id || '",')
    or position('"status":"' || x.status || '",' in x.body) = 0
    or position('"sequence":' || x.sequence || ',' in x.body) = 0
    or position('"amount_minor":' || x.amount_minor || ',' in x.body) = 0
    or position('"amount_refunded":' || x.amount_refunded || ',' in x.body) = 0
    -- Bodies of release 1.0.0 lack these members.
    or (position('"amount_refunding":' in x.body) > 0 or x.amount_refunding > 0)
      and position('"amount_refunding":' || x.amount_refunding || ',' in x.body) = 0
    or position('"amount_disputed":' in x.body) > 0
      and position('"amount_disputed":' || x.amount_disputed || ',' in x.body) = 0
    or position('"amount_captured":' in x.body) > 0
      and position('"amount_captured":' || x.amount_minor - x.amount_released || ',' in x.body) = 0
      and (x.status in ('completed', 'partially_refunded', 'refunded', 'chargeback')
        or position('"amount_captured":0,' in x.body) = 0)
    or position('"currency":"' || x.currency || '",' in x.body) = 0
  );
comment on view pay.oracle_bodies is
  'R5: the body of a payment or transfer agrees with its row and its newest event';

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
    or position('"status":"' || r.status || '",' in r.body) = 0
    -- In a live environment retention may have deleted the event of the refund.
    or right(r.id, 26) >= (select pay.recent_suffix()) and not exists (
      select from pay.events e
      where e.environment_id = r.environment_id and e.subject_id = r.payment_id
        and e.type = 'refund.' || case r.status when 'pending' then 'created' else r.status end
        and position('"data":{"object":' || r.body || '}' in e.body) > 0
    )
  );
comment on view pay.oracle_refund_bodies is
  'R5: the body of a refund agrees with its row and its event';

create or replace view pay.oracle_orphans with (security_invoker = true) as
select x.environment_id, x.id as subject_id,
  'belongs to ' || x.owner_id || ', which does not exist' as detail
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
  'R1, R9: every refund, movement, event and delivery belongs to a payment or transfer that exists';

create or replace view pay.oracle_effects with (security_invoker = true) as
select e.environment_id, e.id as subject_id,
  e.type || ' of ' || e.subject_id || ': its request has no stored answer' as detail
from (
  -- "offset 0" makes narrow rows before the join. A join of whole bodies would use temporary files.
  select environment_id, id, type, subject_id,
    -- The body of an event ends with its request.
    split_part(body, '"request":{"id":"', -1) as request
  from pay.events
  where sequence is not null
    -- A subquery, so that it is computed once and not for each row.
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
  'R2, R3: every event of a keyed request belongs to a request whose answer is stored';

create or replace view pay.oracle_kept_answers with (security_invoker = true) as
select k.environment_id, k.request_id as subject_id,
  'answered ' || k.status || ' with ' || coalesce(k.id || case
    when x.id is null then ', which does not exist' else ', which never had this state' end,
    'an unknown body') as detail
from (
  select o.*, v.livemode,
    case when starts_with(o.object, '{"id":"pay_') or starts_with(o.object, '{"id":"tr_')
      or starts_with(o.object, '{"id":"re_') then split_part(o.object, '"', 4) end as id
  from (
    select a.environment_id, a.request_id, a.status, a.body,
      case when a.status <> 402 then a.body
        -- A 402 ends with the payment that was stored.
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
  'R1, R2: the resource in each stored answer exists, and had the state that the answer shows';

reset check_function_bodies;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
