-- Purpose: the entry function that writes payments, refunds, disputes and transfers. The file
-- of each resource has the function that writes its rows.
--
-- pay.commit takes a list of changes and commits them in one statement: it admits the requests,
-- locks the rows that they change, claims their idempotency keys, and writes payments, refunds,
-- transfers, the ledger, events and deliveries. A change that is refused writes nothing and does
-- not affect the other changes of the list.
--
-- Outcomes: those of admission.sql, and
--           committed
--           stale (the payment or transfer is not at the expected sequence, or the fault of the
--           change cannot happen any more: load and decide again)
--           insufficient (a new transfer is more than the available balance)
--           uncounted (the sandbox has some pending deliveries, and the change would add some:
--           count them by pay.read_room, and send the change again with has_room)
--           unconfigured (no provider is configured for the call of the change)
--           in_progress also while another call of the payment has no result (provider_calls.sql)
-- remaining: how many requests the rate limits of the key and of its account still allow, the
-- smaller of both. Null without a limit, and for changes that are sent or decided again (stale,
-- expired, resetting, uncounted).
--
-- Concurrency (READ COMMITTED). Order of locks: the sandbox's own lock (pay_internal.admit),
-- payments by id, transfers by id, declared faults by id, the balances that new transfers draw on,
-- then idempotency keys by key, then the stripes of totals (pay_internal.record_movements).
-- pay.record locks calls and facts of providers after transfers; a commit waits for neither,
-- because it only adds calls of payments and transfers that it has locked or made. No transaction
-- waits for one kind while it holds a later one, so commits do not deadlock. A request that is
-- refused at admission takes no row lock. Transfers out of one balance queue: each sees the balance
-- after the one before it. A twin of a keyed request waits as idempotency.sql describes. A change
-- of a payment waits for the row lock; if the sequence is then another, the change is stale.

-- Locks the payments and transfers that the admitted changes expect at a sequence. A change whose
-- resource is at another sequence is stale. If the list has several changes of one resource, the
-- first is committed and the others are stale.
create or replace function pay_internal.lock_subjects(p_changes json, p_found pay.admission[])
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

-- p_changes       the requests, as pay_internal.admit takes them, with expects_id and
--                 expects_sequence; both are null for a create. Without a body, the body of the
--                 payment is the answer. fault_id: the declared fault that has decided the change;
--                 mostly absent. has_room: true if the sandbox may have more pending deliveries;
--                 mostly absent
-- p_payments      [{n, id, status, amount_minor, amount_refunded, amount_refunding,
--                   amount_released, amount_disputed, currency, method_kind, reference, sequence,
--                   created_at, updated_at, body}]. A create leaves out the
--                   amounts that are 0
-- p_transfers     [{n, id, status, amount_minor, currency, sequence, created_at, updated_at, body}]
-- p_refunds       [{n, id, payment_id, status, amount_minor, currency, created_at, body}]
-- p_ledger        as pay_internal.record_movements takes it
-- p_events        [{n, id, type, subject_id, sequence, created_at, delivery_id, body}];
--                 delivery_id is the id of its deliveries without the last character
-- p_calls         [{n, id, op, subject_id, refund_id, method_kind, amount_minor, currency, request,
--                 decline_is_error, lease_ms, delay_ms, provider_reference}], the calls to
--                 providers. With provider_reference the provider has answered already. With
--                 delay_ms the worker sends the call after that time. Otherwise the request holds
--                 it for lease_ms; the idempotency key of such a change is claimed with the status
--                 102, and pay.record stores the answer
-- p_disputes      as pay_internal.write_disputes takes it
-- p_patience_ms   how long the statement waits for a lock; null for the 3 s of a twin
-- n is the place of a row's change in the list. detail is JSON text for a change with a call:
-- {call_id, account, provider_reference, created_at}, and for an outdated change its sandbox's
-- settings. deliveries is the number of deliveries that the whole list made due.
create or replace function pay.commit(
  p_changes text, p_payments text, p_transfers text, p_refunds text, p_ledger text, p_events text,
  p_calls text default '[]', p_patience_ms integer default null, p_disputes text default '[]'
)
returns table (
  n integer, outcome text, api_key_id text, environment_id text, account text, livemode boolean,
  remaining integer, status smallint, body text, detail text, deliveries bigint
)
language plpgsql volatile security definer rows 10 set search_path = pg_catalog, pg_temp
set jit = off set enable_seqscan = off set enable_mergejoin = off set enable_material = off
-- A twin waits for the first request for this time (contract §5).
set plan_cache_mode = force_generic_plan set lock_timeout = '3s'
as $$
#variable_conflict use_column
declare
  v_changes json := p_changes::json; v_payments json := p_payments::json;
  v_found pay.admission[];
  v_moved integer[] := '{}'; v_won integer[]; v_environments text[];
  v_providers jsonb; v_details text[];
  v_has_faults boolean := strpos(p_changes, '"fault_id"') > 0;
  v_deliveries bigint := 0;
begin
  if p_patience_ms is not null then
    perform set_config('lock_timeout', p_patience_ms::text, true);
  end if;
  v_found := pay_internal.admit(v_changes, 'shared', false);
  -- Most lists of changes need only some of these steps.
  if strpos(p_changes, '"expects_id"') > 0 then
    v_moved := array(
      select c.n from json_to_recordset(v_changes) as c (n integer, expects_id text)
      where c.expects_id is not null);
    v_found := pay_internal.lock_subjects(v_changes, v_found);
  end if;
  if p_calls <> '[]' then
    select * into v_found, v_providers from pay_internal.find_providers(p_calls::json, v_found);
  end if;
  if v_has_faults then
    v_found := pay_internal.lock_faults(v_changes, v_found);
  end if;
  if p_events <> '[]' then
    v_found := pay_internal.find_uncounted(v_changes, p_events::json, v_found);
  end if;
  if p_transfers <> '[]' then
    v_found := pay_internal.lock_funds(v_changes, p_transfers::json, v_found);
  end if;
  v_found := pay_internal.claim(v_changes, v_found, v_payments);

  select array_agg(f.n), array_agg(f.environment_id) into v_won, v_environments
  from unnest(v_found) f where f.outcome = 'ok';
  -- A list of replays writes nothing: its rows are not even read.
  if v_won is not null then
    if p_payments <> '[]' then
      perform pay_internal.write_payments(v_payments, v_won, v_environments, v_moved);
    end if;
    if p_transfers <> '[]' then
      perform pay_internal.write_transfers(p_transfers::json, v_won, v_environments, v_moved);
    end if;
    if p_refunds <> '[]' then
      perform pay_internal.write_refunds(p_refunds::json, v_won, v_environments);
    end if;
    if p_disputes <> '[]' then
      perform pay_internal.write_disputes(p_disputes::json, v_won, v_environments);
    end if;
    if p_calls <> '[]' then
      v_details := pay_internal.write_calls(p_calls::json, v_providers, v_changes, v_found);
    end if;
    if p_ledger <> '[]' then
      perform pay_internal.record_movements(p_ledger::json, v_won, v_environments);
    end if;
    if v_has_faults then
      perform pay_internal.count_faults(v_changes, v_won, v_environments);
    end if;
    v_deliveries := pay_internal.write_events(p_events::json, v_found);
  end if;
  return query
    select f.n, case f.outcome when 'ok' then 'committed' else f.outcome end, f.api_key_id,
      f.environment_id, f.account, f.livemode, f.remaining, f.status, f.body,
      coalesce(v_details[f.n], f.detail), v_deliveries from unnest(v_found) f;
end
$$;
grant execute on function pay.commit(text, text, text, text, text, text, text, integer, text)
  to pay_api;
