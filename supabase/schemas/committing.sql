-- Purpose: the entry functions that write.
--
-- pay.commit takes a list of changes and commits them in one statement: authenticate each key's
-- hash, compare the payment's sequence, claim the idempotency key, and write payments, refunds,
-- ledger entries, events and the kept answer. Changes that do not go through leave nothing behind
-- and do not disturb their neighbours in the list.
--
-- Outcomes: committed
--           replay (status and body of the first answer) | conflict (other fingerprint)
--           stale (the payment or transfer is not at the expected sequence: load and decide again)
--           insufficient (a new transfer is more than the available balance)
--           expired (a kept answer over 24 hours old was in the way and is now gone: send again)
--           resetting (the sandbox is being reset: send again soon)
--           unauthorized | forbidden | rate_limited
-- remaining: the smaller remainder of the key and its environment; null without a limit, and for
-- changes that are sent or decided again (stale, expired, resetting). Replays are not counted.
--
-- Concurrency (READ COMMITTED). Order of locks: payments by id, transfers by id, the balances that
-- new transfers draw on, then idempotency keys by key, then the stripes of totals
-- (pay.record_movements); no transaction waits for one kind while it holds a later one, so commits do
-- not deadlock.
-- A sandbox's own lock comes before them all (pay.open_environments).
-- Transfers out of one balance go one by one: each sees what the one before has taken. A twin of a
-- keyed request waits at the key's unique index until the first has committed, then finds its answer; a
-- twin that waits longer than lock_timeout gets SQLSTATE 55P03. A change of a payment waits for the
-- row lock, then finds that the sequence has moved on: stale.

-- For the new transfers of a list: takes the locks of the balances they draw on, and tells which of
-- them are more than what is available then. Internal.
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

-- p_changes            [{n, key_hash, scope, at, rate, request_id, idempotency_key, fingerprint, status,
--                        body, expects_id, expects_sequence}]; status and body are the answer to
--                        keep; expects_* is null for a create
-- p_payments           [{n, id, status, amount_minor, amount_refunded, currency, method_kind,
--                        reference, sequence, created_at, updated_at, body}]
-- p_transfers          [{n, id, status, amount_minor, currency, sequence, created_at, updated_at, body}]
-- p_refunds            [{n, id, payment_id, amount_minor, currency, created_at, body}]
-- p_ledger             as pay.record_movements takes it
-- p_events             [{n, id, type, subject_id, sequence, created_at, delivery_id, body}];
--                        delivery_id is the id of its deliveries but for the last character
-- p_patience_ms        how long locks are waited for, instead of the 3 s of a twin
-- n ties a row to its change: 1, 2, 3 …
-- deliveries           how many deliveries the whole list made due
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
