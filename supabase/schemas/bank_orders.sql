-- Purpose: orders to a bank: collections, refunds and transfers that leave in files. An order is in
-- one file, and in no other one ever: export, withdrawal and rejection take the same lock.

-- Locks the orders of an account until the end of the transaction. Returns its environment.
create or replace function pay_internal.lock_bank_orders(p_account_id text, out environment text)
language plpgsql volatile as $$
begin
  perform pay_internal.act_as_worker();
  select a.environment_id into strict environment
  from pay.provider_accounts a where a.id = p_account_id;
  perform pay_internal.refuse_moving(environment);
  perform pg_advisory_xact_lock(hashtextextended('bank orders ' || p_account_id, 0));
end $$;

-- Stores the orders of the operations that go to banks: a part of pay_internal.write_operations,
-- with its parameters. bank_order: {key_id, sealed}, empty if the request has no details.
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

-- Reports whether a payment, refund or transfer has no result yet, by its status.
create or replace function pay_internal.has_no_result(p_status text)
returns boolean language sql immutable parallel safe as $$
  select p_status in (/* open */ 'pending', 'requires_action', 'processing', 'authorized')
$$;

-- An order with what it is about, and the file that has it. kind: collection, refund or transfer.
-- status, body: those of the collection, refund or transfer. is_open: it has no result.
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

-- The orders of an account without a result, oldest first.
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

-- The orders with an id or a UETR, and those of a batch or a file with it, as the bank repeats it,
-- in any case. An order that the bank has rejected has the state `rejected` and is not open, also
-- before the worker has applied that.
-- Cost: four look-ups by an index, and one for each order. One condition with "or" would read
-- every order of the account.
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

-- The references of the operations of an account that begin with one of some texts: whole ids of
-- orders, and references of payments by bank transfer that a bank has cut off. is_open: it has no
-- result. Cost: one look-up by an index for each text. No text has more than ten, because the
-- shortest one tells 40 bits.
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

-- The oldest orders that wait for their export. Nothing else can export or end them until the end
-- of the transaction. Bodies are JSON text.
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

-- Stores files for the bank, except a recall that is stored already. Fails if an order waits no
-- more: another export has it, or it was withdrawn or rejected meanwhile. So no order is in two
-- files, also if the caller has no transaction around pay.bank_orders_to_export and this function.
-- p_exports [{id, kind, name, sha256, payments, sum_minor, currency, is_opt_out, key_id, sealed,
--           orders: [{id, batch_id, uetr}]}], without a uetr if it has none
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

-- The files for the bank whose bytes are still there: those that nobody has got, then the newest,
-- 1 000 at most. p_name: only this one.
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

-- Notes that the operator or a bridge has got a file.
create or replace function pay.note_bank_export(p_account_id text, p_id text)
returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving_account(p_account_id);
  update pay.bank_exports x set written_at = coalesce(x.written_at, pay_internal.server_time())
  where x.account_id = p_account_id and x.id = p_id;
end $$;
grant execute on function pay.note_bank_export to pay_api, pay_operator;

-- Ends an order that waits for its export. Returns the state that it has then: p_state, or an
-- earlier one; null if there is no such order.
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

-- Notes the bank's result of the verification of the payee of an exported order, and stores its
-- event. The newest result stays, and needs an approval of its own. A bank that has not finished
-- says nothing new about a payee whom it has verified before.
-- p_check {id, code, provider_event}
-- Concurrency: an earlier event that is not applied yet is ignored, so the events need no order.
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

-- Operator: notes that an order goes on although the bank has not matched its payee. Returns false
-- if that is noted already, or if the bank has said nothing.
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
