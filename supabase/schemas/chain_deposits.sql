-- Purpose: the addresses to which payers send stablecoins on a chain (architecture §7). The index
-- of an address is allocated together with the operation that derives the address. So an operation
-- that is repeated after a crash derives the same address.

-- Returns the next index of an extended public key, and increments the counter. Counters belong to
-- no environment, so only the worker has access. The rest of the commit runs without its rights.
-- Concurrency: locks the counter until the end of the transaction.
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

-- Allocates an index for each authorization of the admitted changes that goes to an account of a
-- chain. Returns by n: {index, expires_at}. p_operations, p_providers: as
-- pay_internal.write_operations takes them.
-- Concurrency: locks the counters in the order of their keys, after the subjects of the commit,
-- until the end of the transaction. A rollback returns the indexes, and no committed row has them.
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

-- Watched addresses of an account after an index, in the order of their indexes. p_after null: from
-- the first. Leaves out addresses that their operation has not recorded yet, because no payer knows
-- them.
-- unfinal: reported transfers that are neither final nor undone, as JSON.
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

-- Sum of the final transfers to the address of a payment that are applied, in minor units.
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

-- The handled events about one transfer on a chain: [{state, block_hash, is_later}]. Their
-- references begin with p_object_id: the transfer is final, or :<block>:<state> follows. is_later:
-- the chain has told it after p_received_at, or with what it told then.
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

-- The state on which the decision about a transfer on a chain depends: {final_minor, reports}, from
-- pay_internal.final_minor and pay_internal.transfer_reports.
-- Null for an event about anything else.
-- p_payment_id: the payment that the event is applied to.
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

-- Marks a record as stale if the sum of final transfers, or the number of reports about the
-- transfer of its first event, has changed since the decision.
-- Concurrency: runs after pay_internal.lock_subjects, so of two transactions that handle events of
-- one payment, the second sees the changes of the first.
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

-- Stops watching addresses after their watch_until, unless the payment still waits. Returns the
-- number of rows. p_environment_id: null is all.
-- Concurrency: skips locked rows.
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
