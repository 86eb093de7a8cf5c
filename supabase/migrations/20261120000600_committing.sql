-- Purpose: the entry functions that write.
--
-- pay.commit takes a list of changes and commits them in one statement: authenticate each key's
-- hash, compare the payment's sequence, claim the idempotency key, and write payments, refunds,
-- ledger entries, events and the kept answer. Changes that do not go through leave nothing behind
-- and do not disturb their neighbours in the list.
--
-- Outcomes: committed
--           replay (status and body of the first answer) | conflict (other fingerprint)
--           stale (the payment is not at the expected sequence: load and decide again)
--           expired (a kept answer over 24 hours old was in the way and is now gone: send again)
--           unauthorized | forbidden
--
-- Concurrency (READ COMMITTED). Order of locks: payments by id, then idempotency keys by key; no
-- transaction waits for a payment while it holds a key, so there is no deadlock. A twin of a keyed
-- request waits at the key's unique index until the first has committed, then finds its answer; a
-- twin that waits longer than lock_timeout gets SQLSTATE 55P03. A change of a payment waits for the
-- row lock, then finds that the sequence has moved on: stale.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

-- p_changes            [{n, key_hash, scope, at, request_id, idempotency_key, fingerprint, status,
--                        body, expects_id, expects_sequence}]; status and body are the answer to
--                        keep; expects_* is null for a create
-- p_payments           [{n, id, status, amount_minor, amount_refunded, currency, method_kind,
--                        reference, sequence, created_at, updated_at, body}]
-- p_refunds            [{n, id, payment_id, amount_minor, currency, created_at, body}]
-- p_ledger             [{n, id, kind, subject_id, refund_id, debit_id, debit_account, credit_id,
--                        credit_account, amount_minor, currency, created_at}]
-- p_events             [{n, id, type, subject_id, sequence, created_at, delivery_id, body}];
--                        delivery_id is the id of its deliveries but for the last character
-- n ties a row to its change: 1, 2, 3 …
-- deliveries           how many deliveries the whole list made due
create function pay.commit(
  p_changes text,
  p_payments text,
  p_refunds text,
  p_ledger text,
  p_events text
)
returns table (
  n integer, outcome text, api_key_id text, status smallint, body text, deliveries bigint
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off
-- How long a twin waits for the first request (contract §5).
set lock_timeout = '3s'
as $$
#variable_conflict use_column
declare
  v_changes json := p_changes::json;
  v_hashes bytea[];
  v_environments text[];
  v_committed integer[];
  v_api_keys text[];
  v_deliveries bigint;
begin
  select array_agg(decode(c.key_hash, 'hex')) into v_hashes
  from json_to_recordset(v_changes) as c (key_hash text);
  perform set_config('pay.key_hashes', v_hashes::text, true);
  select array_agg(distinct s.environment_id) into v_environments
  from pay.api_key_secrets s where s.hash = any (v_hashes);
  perform set_config('pay.environment_ids', coalesce(v_environments::text, ''), true);

  with
  -- Decoded here: in a join with a table under row-level security the call would bar the index.
  asked as materialized (
    select c.*, decode(c.key_hash, 'hex') as hash, decode(c.fingerprint, 'hex') as fingerprint_hash
    from json_to_recordset(v_changes) as c (
      n integer, key_hash text, scope text, at timestamptz, request_id text,
      idempotency_key text, fingerprint text, status smallint, body text,
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
    join pay.api_keys k
      on k.id = s.api_key_id and (k.scopes is null or c.scope = any (k.scopes))
  ),
  locked as materialized (
    select c.n, p.environment_id, p.id
    from change c
    join pay.payments p
      on p.environment_id = c.environment_id
      and p.id = c.expects_id
      and p.sequence = c.expects_sequence
    order by p.environment_id, p.id
    for update of p
  ),
  ready as materialized (
    select * from change c
    where c.expects_id is null
      -- Of several changes of one payment in the list the first goes through.
      or c.n in (select min(l.n) from locked l group by l.environment_id, l.id)
  ),
  claimed as (
    insert into pay.idempotency_keys
      (environment_id, api_key_id, key, fingerprint, request_id, status, body, created_at)
    select c.environment_id, c.api_key_id, c.idempotency_key, c.fingerprint_hash,
      c.request_id, c.status, c.body, c.at
    from ready c
    where c.idempotency_key is not null
    order by c.api_key_id, c.idempotency_key, c.n
    on conflict on constraint idempotency_keys_pkey do nothing
    returning api_key_id, key, request_id
  ),
  won as materialized (
    select * from ready c
    where c.idempotency_key is null or exists (
      select from claimed k
      where k.api_key_id = c.api_key_id
        and k.key = c.idempotency_key
        and k.request_id = c.request_id
    )
  ),
  payment as materialized (
    select p.*, w.environment_id, w.expects_id
    from json_to_recordset(p_payments::json) as p (
      n integer, id text, status text, amount_minor bigint, amount_refunded bigint, currency text,
      method_kind text, reference text, sequence integer, created_at timestamptz,
      updated_at timestamptz, body text
    )
    join won w on w.n = p.n
  ),
  payment_made as (
    insert into pay.payments
      (environment_id, id, status, amount_minor, amount_refunded, currency, method_kind, reference,
        sequence, created_at, updated_at, body)
    select environment_id, id, status, amount_minor, amount_refunded, currency, method_kind,
      reference, sequence, created_at, updated_at, body
    from payment
    where expects_id is null
  ),
  payment_changed as (
    update pay.payments t
    set status = p.status, amount_refunded = p.amount_refunded, sequence = p.sequence,
      updated_at = p.updated_at, body = p.body
    from payment p
    where t.environment_id = p.environment_id and t.id = p.expects_id
  ),
  refund_made as (
    insert into pay.refunds (environment_id, id, payment_id, amount_minor, currency, created_at, body)
    select w.environment_id, r.id, r.payment_id, r.amount_minor, r.currency, r.created_at, r.body
    from json_to_recordset(p_refunds::json) as r (
      n integer, id text, payment_id text, amount_minor bigint, currency text,
      created_at timestamptz, body text
    )
    join won w on w.n = r.n
  ),
  movement as materialized (
    select l.*, w.environment_id
    from json_to_recordset(p_ledger::json) as l (
      n integer, id text, kind text, subject_id text, refund_id text, debit_id text,
      debit_account text, credit_id text, credit_account text, amount_minor bigint, currency text,
      created_at timestamptz
    )
    join won w on w.n = l.n
  ),
  ledger_transaction_made as (
    insert into pay.ledger_transactions (environment_id, id, kind, subject_id, refund_id, created_at)
    select environment_id, id, kind, subject_id, refund_id, created_at from movement
  ),
  ledger_entries_made as (
    insert into pay.ledger_entries
      (environment_id, id, transaction_id, subject_id, refund_id, account, direction, amount_minor,
        currency, created_at)
    select m.environment_id, side.id, m.id, m.subject_id, m.refund_id, side.account,
      side.direction, m.amount_minor, m.currency, m.created_at
    from movement m
    cross join lateral (
      values (m.debit_id, m.debit_account, 'debit'), (m.credit_id, m.credit_account, 'credit')
    ) as side (id, account, direction)
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
      e.subject_id, e.sequence, 'pending', e.created_at, e.created_at
    from event e
    join pay.webhook_endpoints t
      on t.environment_id = e.environment_id
      and t.status = 'enabled'
      and t.events && pay.patterns_of(e.type)
    returning 1
  )
  select array_agg(w.n), array_agg(w.api_key_id), (select count(*) from delivery_made)
  into v_committed, v_api_keys, v_deliveries
  from won w;

  if cardinality(v_committed) = json_array_length(v_changes) then
    return query
      select t.n, 'committed', t.api_key_id, null::smallint, null::text, v_deliveries
      from unnest(v_committed, v_api_keys) as t (n, api_key_id);
    return;
  end if;

  -- A new statement and so a new snapshot: it sees the answers that the losers waited for.
  with asked as materialized (
    select c.*, decode(c.key_hash, 'hex') as hash
    from json_to_recordset(v_changes) as c (
      n integer, key_hash text, at timestamptz, idempotency_key text
    )
    where c.n <> all (coalesce(v_committed, '{}'))
  )
  delete from pay.idempotency_keys i
  using asked c, pay.api_key_secrets s
  where s.hash = c.hash
    and i.environment_id = s.environment_id
    and i.api_key_id = s.api_key_id
    and i.key = c.idempotency_key
    and i.created_at <= c.at - pay.idempotency_retention();
  return query
    with asked as materialized (
      select c.*, decode(c.key_hash, 'hex') as hash, decode(c.fingerprint, 'hex') as fingerprint_hash
      from json_to_recordset(v_changes) as c (
        n integer, key_hash text, scope text, at timestamptz, idempotency_key text,
        fingerprint text, expects_id text
      )
    )
    select
      c.n,
      case
        when c.n = any (v_committed) then 'committed'
        when s.hash is null then 'unauthorized'
        when k.id is null then 'forbidden'
        when i.key is not null and i.fingerprint = c.fingerprint_hash then 'replay'
        when i.key is not null then 'conflict'
        when c.expects_id is not null then 'stale'
        else 'expired'
      end,
      s.api_key_id,
      i.status,
      i.body,
      v_deliveries
    from asked c
    left join pay.api_key_secrets s
      on s.hash = c.hash
      and s.revoked_at is null
      and (s.expires_at is null or s.expires_at > c.at)
    left join pay.api_keys k
      on k.id = s.api_key_id and (k.scopes is null or c.scope = any (k.scopes))
    left join pay.idempotency_keys i
      on i.environment_id = s.environment_id
      and i.api_key_id = s.api_key_id
      and i.key = c.idempotency_key;
end
$$;

-- Claims the idempotency key of a request that is written one by one, with the answer to keep.
-- outcome: ok | replay (status, body) | conflict | expired. Waits for a twin as pay.commit does.
create function pay.claim_idempotency_key(
  p_environment_id text,
  p_api_key_id text,
  p_at timestamptz,
  p_request_id text,
  p_key text,
  p_fingerprint text,
  p_status smallint,
  p_body text,
  out outcome text,
  out status smallint,
  out body text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_kept record;
begin
  outcome := 'ok';
  if p_key is null then
    return;
  end if;
  insert into pay.idempotency_keys
    (environment_id, api_key_id, key, fingerprint, request_id, status, body, created_at)
  values
    (p_environment_id, p_api_key_id, p_key, decode(p_fingerprint, 'hex'), p_request_id, p_status,
      p_body, p_at)
  on conflict on constraint idempotency_keys_pkey do nothing;
  if found then
    return;
  end if;
  select k.fingerprint = decode(p_fingerprint, 'hex') as same, k.status, k.body, k.created_at
  into v_kept
  from pay.idempotency_keys k
  where k.environment_id = p_environment_id and k.api_key_id = p_api_key_id and k.key = p_key;
  if v_kept.created_at > p_at - pay.idempotency_retention() then
    if v_kept.same then
      outcome := 'replay';
      status := v_kept.status;
      body := v_kept.body;
    else
      outcome := 'conflict';
    end if;
    return;
  end if;
  delete from pay.idempotency_keys k
  where k.environment_id = p_environment_id and k.api_key_id = p_api_key_id and k.key = p_key
    and k.created_at <= p_at - pay.idempotency_retention();
  outcome := 'expired';
end
$$;

-- Deletes what the sandbox of a key holds; keys and endpoints stay. The answer is kept under the
-- idempotency key, which outlives the reset that it belongs to.
-- Outcomes: committed (body) | replay | conflict | expired | unauthorized | forbidden | live.
create function pay.reset_sandbox(
  p_key_hash text,
  p_scope text,
  p_at timestamptz,
  p_request_id text,
  p_idempotency_key text,
  p_fingerprint text
)
returns table (outcome text, api_key_id text, status smallint, body text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
as $$
#variable_conflict use_column
declare
  v_access record;
  v_claim record;
  v_environment text;
  v_payments bigint;
  v_refunds bigint;
  v_entries bigint;
  v_events bigint;
  v_deliveries bigint;
  v_keys bigint;
begin
  select * into v_access from pay.enter(p_key_hash, p_scope, p_at);
  outcome := v_access.outcome;
  api_key_id := v_access.api_key_id;
  v_environment := v_access.environment_id;
  if outcome = 'ok' and exists (
    select from pay.environments e where e.id = v_environment and e.livemode
  ) then
    outcome := 'live';
  end if;
  if outcome = 'ok' then
    select * into v_claim from pay.claim_idempotency_key(
      v_environment, api_key_id, p_at, p_request_id, p_idempotency_key, p_fingerprint,
      200::smallint, '');
    outcome := v_claim.outcome;
    status := v_claim.status;
    body := v_claim.body;
  end if;
  if outcome <> 'ok' then
    return next;
    return;
  end if;

  -- Changes that commit meanwhile must be gone whole or stay whole. Payments and kept answers go by
  -- one snapshot, so that no key is forgotten whose payment stays; a change of a payment that is being
  -- deleted waits for its row and finds it gone. Then goes what belongs to no payment any more: each
  -- statement sees a later create with all its rows or not at all.
  with payments_gone as (
    delete from pay.payments t where t.environment_id = v_environment returning 1
  ),
  keys_gone as (
    delete from pay.idempotency_keys t
    where t.environment_id = v_environment and t.request_id <> p_request_id
    returning 1
  )
  select (select count(*) from payments_gone), (select count(*) from keys_gone)
  into v_payments, v_keys;
  delete from pay.webhook_deliveries t
  where t.environment_id = v_environment and not exists (
    select from pay.payments p where p.environment_id = v_environment and p.id = t.subject_id
  );
  get diagnostics v_deliveries = row_count;
  delete from pay.events t
  where t.environment_id = v_environment and not exists (
    select from pay.payments p where p.environment_id = v_environment and p.id = t.subject_id
  );
  get diagnostics v_events = row_count;
  delete from pay.ledger_entries t
  where t.environment_id = v_environment and not exists (
    select from pay.payments p where p.environment_id = v_environment and p.id = t.subject_id
  );
  get diagnostics v_entries = row_count;
  delete from pay.ledger_transactions t
  where t.environment_id = v_environment and not exists (
    select from pay.payments p where p.environment_id = v_environment and p.id = t.subject_id
  );
  delete from pay.refunds t
  where t.environment_id = v_environment and not exists (
    select from pay.payments p where p.environment_id = v_environment and p.id = t.payment_id
  );
  get diagnostics v_refunds = row_count;

  outcome := 'committed';
  body := format(
    '{"object":"sandbox_reset","deleted":{"payments":%s,"refunds":%s,"transfers":0,'
    '"ledger_entries":%s,"events":%s,"webhook_deliveries":%s,"idempotency_keys":%s}}',
    v_payments, v_refunds, v_entries, v_events, v_deliveries, v_keys
  );
  update pay.idempotency_keys k set body = reset_sandbox.body
  where k.environment_id = v_environment
    and k.api_key_id = v_access.api_key_id
    and k.key = p_idempotency_key;
  return next;
end
$$;

grant execute on function pay.commit(text, text, text, text, text) to pay_api;
grant execute on function pay.reset_sandbox(text, text, timestamptz, text, text, text) to pay_api;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
