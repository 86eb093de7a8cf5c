-- Purpose: the entry functions that read. Each is one round trip: it authenticates the key's hash,
-- opens its environment and answers. Called with named arguments by shared/store.
--
-- Outcomes: ok | unauthorized | forbidden | not_found | replay | conflict |
--           resetting (the sandbox is being reset: ask again soon).

-- One resource, or none when p_kind is null (authentication alone).
-- With an idempotency key it first looks for a kept answer, so that the load of a payment that is
-- about to change finds the replay in the same round trip: replay comes before existence.
-- detail: of a webhook endpoint its revision, the values that its secrets are derived from, the
-- public id of its environment, and its account.
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

-- Payments, as pay.load gives one, for requests that were made at the same time: one statement for
-- all. n ties a row to its request.
-- p_requests  [{n, key_hash, scope, at, rate, id, idempotency_key, fingerprint}]
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

-- How long an answer is kept for replays, from the first request (interface §8).
create or replace function pay.idempotency_retention()
returns interval
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select interval '24 hours' $$;

-- The sums of each account of each currency, as JSON text (contract §3). Sums are numeric, so their
-- text is exact beyond 2^53 too.
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
grant execute on function pay.load_payments(text) to pay_api;
grant execute on function pay.load(text, text, timestamptz, integer[], text, text, text, text) to pay_api;
