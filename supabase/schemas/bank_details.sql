-- Purpose: sealed texts: the bank details of payers and payees, and the files for banks, which have
-- some. The service seals them before they reach the database (ADR 0021).
--
-- Details are deleted by a request, and by retention: those of a payer 14 months after the payment,
-- the last time at which a bank can return a collection (contract §2); those of a payee 30 days
-- after the order; those of an entry that matches nothing when a person matches or dismisses it, or
-- 14 months after its import; a file 30 days after somebody has got it. A payment keeps an empty
-- row, so that no file of the bank brings its details back, and a refund has to name its
-- destination. An instrument has its own copy until it ends (pay_internal.forget_instrument).

-- The sealed texts of payments, refunds, transfers and files. Only this function reads them, and
-- pay_internal.instrument_detail those of instruments.
create or replace function pay.read_sealed_texts(p_environment_id text, p_ids text[])
returns table (id text, key_id text, sealed text)
language plpgsql volatile security definer rows 100 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select d.owner_id, d.key_id, d.sealed
    from pay.bank_details d
    where d.environment_id = p_environment_id and d.owner_id = any (p_ids)
      and d.sealed is not null
    union all
    select x.id, x.key_id, x.sealed
    from pay.bank_exports x
    where x.environment_id = p_environment_id and x.id = any (p_ids) and x.sealed is not null;
end $$;
grant execute on function pay.read_sealed_texts to pay_api, pay_operator;

-- The sealed details of the payers that are known, by the references of their payments.
create or replace function pay.read_payer_details(p_account_id text, p_references text[])
returns table (reference text, key_id text, sealed text)
language plpgsql volatile security definer rows 50 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select c.provider_reference, d.key_id, d.sealed
    from pay.provider_operations c
    join pay.bank_details d on d.environment_id = c.environment_id and d.owner_id = c.subject_id
    where c.provider_reference = any (p_references) and c.account_id = p_account_id
      and c.op = 'authorize' and d.sealed is not null;
end $$;
grant execute on function pay.read_payer_details to pay_api, pay_operator;

-- Stores the sealed details of payers that a file of the bank names, unless those of the payment
-- are known or were deleted.
-- p_payers [{reference, key_id, sealed, lacks}]; reference: of the payment, as the payer has given
--          it. The others are null for a payment with several payers, which deletes its details:
--          nobody knows to whom a refund goes
create or replace function pay_internal.keep_payer_details(p_account_id text, p_payers jsonb)
returns void language plpgsql volatile as $$
begin
  insert into pay.bank_details (environment_id, owner_id, key_id, sealed, lacks, created_at)
  select c.environment_id, c.subject_id, d.key_id, d.sealed, d.lacks, pay_internal.server_time()
  from jsonb_to_recordset(p_payers) as d (reference text, key_id text, sealed text, lacks text)
  join pay.provider_operations c
    on c.provider_reference = d.reference and c.account_id = p_account_id and c.op = 'authorize'
  order by c.environment_id, c.subject_id
  on conflict on constraint bank_details_pkey
    do update set key_id = null, sealed = null, lacks = null where excluded.sealed is null;
end $$;

-- Stores the sealed texts about entries of banks, under the ids that `entryId` makes of their
-- events.
-- p_events  as in pay_internal.keep_provider_events
create or replace function pay_internal.keep_entry_details(p_events jsonb)
returns void language sql volatile as $$
  insert into pay.bank_details (environment_id, owner_id, key_id, sealed, created_at)
  select e.environment_id, e.account_id || '/' || e.reference, e.bank #>> '{sealed,key_id}',
    e.bank #>> '{sealed,sealed}', pay_internal.server_time()
  from jsonb_to_recordset(p_events) as e (
    environment_id text, account_id text, reference text, bank jsonb)
  where e.bank ? 'sealed'
  order by 1, 2
  on conflict on constraint bank_details_pkey do nothing
$$;

-- Operator: deletes the sealed text about an entry that a person has matched. p_payers: as in
-- pay_internal.keep_payer_details; those of the payment that it is matched with.
create or replace function pay.settle_entry_details(
  p_account_id text, p_reference text, p_payers text
) returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving_account(p_account_id);
  perform pay_internal.keep_payer_details(p_account_id, p_payers::jsonb);
  delete from pay.bank_details d
  using pay.provider_accounts a
  where a.id = p_account_id and d.environment_id = a.environment_id
    and d.owner_id = p_account_id || '/' || p_reference;
end $$;
grant execute on function pay.settle_entry_details to pay_operator;

-- Operator: the next texts that are sealed with one of the keys, by environment and id. Leaves out
-- accounts that move to another cell.
-- p_after  {environment_id, id} of the last text before; null: from the beginning
create or replace function pay.list_sealed_texts(p_key_ids text[], p_after text[], p_limit integer)
returns table (environment_id text, id text)
language plpgsql volatile security definer rows 100 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select t.environment_id, t.id
    from (
      (select d.environment_id, d.owner_id as id from pay.bank_details d
       where d.sealed is not null and d.key_id = any (p_key_ids)
         and (d.environment_id, d.owner_id) > (coalesce(p_after[1], ''), coalesce(p_after[2], ''))
       order by d.environment_id, d.owner_id limit p_limit)
      union all
      (select x.environment_id, x.id from pay.bank_exports x
       where x.sealed is not null and x.key_id = any (p_key_ids)
         and (x.environment_id, x.id) > (coalesce(p_after[1], ''), coalesce(p_after[2], ''))
       order by x.environment_id, x.id limit p_limit)
    ) t
    join pay.environments e on e.id = t.environment_id
    where coalesce(e.moving, 'draining') = 'draining'
    order by t.environment_id, t.id
    limit p_limit;
end $$;
grant execute on function pay.list_sealed_texts to pay_operator;

-- Operator: stores texts that are sealed anew, if they are still as they were read: another
-- rotation, a deletion or retention can have changed them. Returns how many it has stored.
-- p_texts [{id, was, key_id, sealed}]; was: the text that was read
create or replace function pay.store_sealed_texts(p_environment_id text, p_texts text)
returns bigint language plpgsql volatile security definer as $$
declare
  v_text record;
  v_rows bigint;
  v_stored bigint := 0;
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving(p_environment_id);
  -- In one order, so that two rotations do not deadlock.
  for v_text in
    select t.* from jsonb_to_recordset(p_texts::jsonb) as t (
      id text, was text, key_id text, sealed text)
    order by t.id
  loop
    update pay.bank_details d set key_id = v_text.key_id, sealed = v_text.sealed
    where d.environment_id = p_environment_id and d.owner_id = v_text.id
      and d.sealed = v_text.was;
    get diagnostics v_rows = row_count;
    v_stored := v_stored + v_rows;
    update pay.bank_exports x set key_id = v_text.key_id, sealed = v_text.sealed
    where x.environment_id = p_environment_id and x.id = v_text.id and x.sealed = v_text.was;
    get diagnostics v_rows = row_count;
    v_stored := v_stored + v_rows;
  end loop;
  return v_stored;
end $$;
grant execute on function pay.store_sealed_texts to pay_operator;

-- Operator: the number of texts that are sealed with each key, and of mandates that are known by a
-- fingerprint with it and can still be used (instruments.sql).
create or replace function pay.count_sealed_texts()
returns table (key_id text, texts bigint, mandates bigint)
language plpgsql volatile security definer rows 10 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select t.key_id, count(*) filter (where t.is_text), count(*) filter (where not t.is_text)
    from (
      select d.key_id, true as is_text from pay.bank_details d where d.sealed is not null
      union all
      select x.key_id, true from pay.bank_exports x where x.sealed is not null
      union all
      select split_part(m.iban, ':', 1), false
      from pay.instruments m
      join pay.environments e on e.id = m.environment_id
      where e.livemode and m.iban is not null and m.status in ('pending', 'active')
    ) t
    group by t.key_id
    order by t.key_id;
end $$;
grant execute on function pay.count_sealed_texts to pay_operator;

-- The first thing that still needs the bank details of a payment with its refunds, of a refund or
-- of a transfer: {id, status} of a payment, refund or transfer that has no result, or with the
-- status "exported" of one in a file that nobody has got. Null: nothing needs them.
create or replace function pay_internal.bank_details_need(p_environment_id text, p_id text)
returns json language sql stable as $$
  with owner as (
    select s.id, s.status from pay_internal.provider_subjects s
    where s.environment_id = p_environment_id and s.id = p_id
    union all
    select r.id, r.status from pay.refunds r
    where r.environment_id = p_environment_id and (r.id = p_id or r.payment_id = p_id)
  )
  select row_to_json(needs) from (
    select o.id, o.status from owner o where pay_internal.has_no_result(o.status)
    union all
    select o.id, b.state
    from owner o
    join pay.bank_orders b on b.environment_id = p_environment_id and b.owner_id = o.id
    join pay.bank_exports x on x.environment_id = p_environment_id and x.id = b.export_id
    where x.written_at is null
    limit 1
  ) needs
$$;

-- Deletes the details of payments, refunds and transfers.
create or replace function pay_internal.forget_bank_details(
  p_environment_id text, p_owner_ids text[]
) returns void language plpgsql volatile as $$
begin
  insert into pay.bank_details (environment_id, owner_id, created_at)
  select p_environment_id, o.id, pay_internal.server_time()
  from unnest(p_owner_ids) o (id)
  where starts_with(o.id, 'pay_')
  order by o.id
  on conflict on constraint bank_details_pkey
    do update set key_id = null, sealed = null, lacks = null;
  delete from pay.bank_details d
  where d.environment_id = p_environment_id and d.owner_id = any (p_owner_ids)
    and not starts_with(d.owner_id, 'pay_');
end $$;

-- Deletes the bank details of a payment with its refunds, or of a transfer, and the bytes of the
-- files that have them. The bank has these files, because all orders in question have results.
create or replace function pay_internal.delete_bank_details(p_environment_id text, p_id text)
returns void language plpgsql volatile as $$
declare
  v_owner_ids constant text[] := p_id || array(
    select r.id from pay.refunds r
    where r.environment_id = p_environment_id and r.payment_id = p_id);
begin
  perform pay_internal.forget_bank_details(p_environment_id, v_owner_ids);
  update pay.bank_exports x set key_id = null, sealed = null
  from pay.bank_orders b
  where b.environment_id = p_environment_id and b.owner_id = any (v_owner_ids)
    and x.environment_id = p_environment_id and x.id = b.export_id;
end $$;

-- The same by a request.
-- p_request  the request, as pay_internal.admit takes it, in a list of one, with its response
-- Outcomes: those of admission.sql, and
--           ok
--           not_found
--           needed (detail: as pay_internal.bank_details_need returns it)
-- Concurrency: locks the payment or transfer, as a commit that adds a refund does.
create or replace function pay.delete_bank_details(p_request text, p_id text) returns pay.admission
language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request);
begin
  if v_access.outcome = 'ok' then
    perform from pay.payments p
    where p.environment_id = v_access.environment_id and p.id = p_id for update;
    if not found then
      perform from pay.transfers t
      where t.environment_id = v_access.environment_id and t.id = p_id for update;
    end if;
    if not found then v_access.outcome := 'not_found'; end if;
  end if;
  v_access := pay_internal.claim_one(p_request, v_access);
  if v_access.outcome <> 'ok' then return v_access; end if;
  v_access.detail := pay_internal.bank_details_need(v_access.environment_id, p_id);
  if v_access.detail is not null then
    v_access.outcome := 'needed';
    perform pay_internal.release_key(p_request, v_access);
    return v_access;
  end if;
  perform pay_internal.delete_bank_details(v_access.environment_id, p_id);
  return v_access;
end $$;
grant execute on function pay.delete_bank_details to pay_api;

-- Deletes one batch of each kind of the sealed texts of a live environment that have outlived their
-- retention and that nothing needs. Returns their number.
create or replace function pay_internal.purge_bank_details(
  p_environment_id text, p_at timestamptz, p_batch integer
) returns bigint language plpgsql volatile as $$
declare
  v_kind record;
  v_owner_ids text[];
  v_rows bigint;
  v_total bigint := 0;
begin
  for v_kind in
    select * from (values
      ('pay_', interval '14 months'), ('re_', interval '30 days'), ('tr_', interval '30 days')
    ) as k (prefix, age)
  loop
    v_owner_ids := array(
      select d.owner_id from pay.bank_details d
      where d.environment_id = p_environment_id and d.sealed is not null
        and d.owner_id >= v_kind.prefix
        and d.owner_id < pay_internal.id_floor(v_kind.prefix, p_at - v_kind.age)
        and pay_internal.bank_details_need(p_environment_id, d.owner_id) is null
      order by d.owner_id limit p_batch for update skip locked
    );
    perform pay_internal.forget_bank_details(p_environment_id, v_owner_ids);
    v_total := v_total + cardinality(v_owner_ids);
  end loop;
  -- Those of entries that nobody has matched or dismissed.
  delete from pay.bank_details d
  where d.environment_id = p_environment_id and d.owner_id = any (array(
    select o.owner_id from pay.bank_details o
    where o.environment_id = p_environment_id and o.sealed is not null
      and o.owner_id between 'pac_' and 'pac`' and o.created_at < p_at - interval '14 months'
    order by o.owner_id limit p_batch for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_total := v_total + v_rows;
  update pay.bank_exports x set key_id = null, sealed = null
  where x.environment_id = p_environment_id and x.id = any (array(
    select o.id from pay.bank_exports o
    where o.environment_id = p_environment_id and o.sealed is not null
      and o.written_at < p_at - interval '30 days'
    order by o.id limit p_batch for update skip locked
  ));
  get diagnostics v_rows = row_count;
  return v_total + v_rows;
end $$;
