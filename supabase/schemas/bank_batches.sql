-- Purpose: totals of a bank that are several of our orders. The statement with the total and the
-- report that rejects some of the orders come in any order, so a total is compared with the open
-- orders of its batch when either comes.

-- Books totals as the orders of their batches: those in rows of a file, and those of the batches
-- whose orders these rows reject. The open orders come to the amount, with or without the charge
-- that the bank tells. Other totals stay as they are.
-- p_rows as in pay.store_bank_rows
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

-- Replaces the booking of an entry, or of a part of it, by orders. In the other direction than that
-- of an order it takes the order back. The difference of the amounts is a charge of the bank.
-- Returns false if the entry is not unmatched any more.
-- p_reference  that of the provider event of the entry
-- p_sha256     the file that tells it; null: the operator
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

-- Operator: books an unmatched entry of a bank, or a part of it, as orders that it has executed.
-- p_order_ids  exported orders in the currency of the entry: in its direction those without a
--              result, in the other one those that it can take back.
--              Their sum is the amount with the charge of the bank p_fee_minor
-- Returns false if one of these is not so, or if the entry is not unmatched any more.
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
