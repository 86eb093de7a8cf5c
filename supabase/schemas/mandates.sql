-- Purpose: the mandates under which payments by SEPA are collected. A mandate ends after its last
-- collection, when the payer's bank says that it does not exist, and when it is idle for 36 months
-- (EPC rulebook of the SEPA Direct Debit). The service only knows mandates that were used. A
-- mandate belongs to one IBAN and to one customer. The IBAN is known by a fingerprint that the
-- service makes with a key; the use of a mandate stores that of the newest key.
--
-- Concurrency: the uses of one mandate take turns by an advisory lock, so two collections that only
-- one may make are decided one after the other.

-- Refuses the collections that their mandate does not allow: the outcome is mandate, and detail is
-- over (it is used up or revoked), iban or customer (it belongs to another one), unreadable (the
-- service has not the key of its fingerprint), used (it was used before, and the collection must be
-- the first), or idle. Of two collections of a list under one mandate, the later is stale unless
-- both are recurring, from one IBAN and of one customer. A collection whose idempotency key is
-- already stored uses nothing: pay_internal.claim finds its response.
-- p_mandates  as in pay_internal.document
create or replace function pay_internal.check_mandates(
  p_requests jsonb, p_mandates jsonb, p_found pay.admission[]
) returns pay.admission[] language plpgsql volatile as $$
declare
  v_use record;
  v_this jsonb; v_last jsonb;
  v_key text;
  v_mandate pay.mandates;
  v_detail text;
begin
  for v_use in
    select r.n, f.environment_id, f.api_key_id, r.idempotency_key, m.*
    from unnest(p_found) f
    join jsonb_to_recordset(p_requests) as r (n integer, idempotency_key text) on r.n = f.n
    join jsonb_to_recordset(p_mandates) as m (
      n integer, id text, sequence text, signed_at timestamptz, used_at timestamptz, ibans text[],
      customer_id text
    ) on m.n = r.n
    where f.outcome = 'ok' and m.sequence is not null
    order by f.environment_id, m.id, r.n
  loop
    v_key := v_use.environment_id || v_use.id;
    v_this := jsonb_build_array(v_key, v_use.sequence, v_use.ibans, v_use.customer_id);
    if v_last ->> 0 = v_key and not (v_use.sequence = 'recurring' and v_last = v_this) then
      p_found[v_use.n].outcome := 'stale';
      continue;
    end if;
    v_last := v_this;
    perform pg_advisory_xact_lock(hashtextextended('mandate ' || v_key, 0));
    -- Separate statements after the lock, so that they see the collections committed before.
    if exists (
      select from pay.idempotency_keys k
      where k.environment_id = v_use.environment_id and k.api_key_id = v_use.api_key_id
        and k.key = v_use.idempotency_key
    ) then
      p_found[v_use.n].outcome := 'expired';
      continue;
    end if;
    select t.* into v_mandate from pay.mandates t
    where t.environment_id = v_use.environment_id and t.id = v_use.id;
    v_detail := case
      when v_mandate.is_over then 'over'
      when v_mandate.iban <> all (v_use.ibans) then case when exists (
        select from unnest(v_use.ibans) as i (iban)
        where split_part(i.iban, ':', 1) = split_part(v_mandate.iban, ':', 1)
      ) then 'iban' else 'unreadable' end
      when v_mandate.customer_id <> v_use.customer_id then 'customer'
      when v_mandate.id is not null and v_use.sequence in ('first', 'one_off') then 'used'
      when coalesce(v_mandate.used_at, v_use.signed_at) < v_use.used_at - interval '36 months'
        then 'idle'
    end;
    if v_detail is not null then
      p_found[v_use.n].outcome := 'mandate';
      p_found[v_use.n].detail := v_detail;
    end if;
  end loop;
  return p_found;
end $$;

-- Writes the mandates of the committed changes: those that were used, and those that are over.
create or replace function pay_internal.write_mandates(
  p_mandates jsonb, p_callers pay_internal.caller[]
) returns void language plpgsql volatile as $$
begin
  insert into pay.mandates as t (environment_id, id, is_over, used_at, touched_at, iban,
    customer_id)
  select caller.environment_id, m.id, bool_or(m.is_over), max(m.used_at),
    pay_internal.server_time(), max(m.ibans[1]), max(m.customer_id)
  from jsonb_to_recordset(p_mandates) as m (
    n integer, id text, is_over boolean, used_at timestamptz, ibans text[], customer_id text)
  join unnest(p_callers) caller on caller.n = m.n
  group by caller.environment_id, m.id
  order by caller.environment_id, m.id
  on conflict on constraint mandates_pkey
  do update set is_over = t.is_over or excluded.is_over,
    used_at = greatest(t.used_at, excluded.used_at), touched_at = excluded.touched_at,
    iban = coalesce(excluded.iban, t.iban),
    customer_id = coalesce(t.customer_id, excluded.customer_id);
end $$;

-- Whether the payer's bank can still return a payment that was collected under a mandate of the
-- environment: for 13 months after its due date, which is within a month after the create.
create or replace function pay_internal.can_be_returned(p_payment pay.payments, p_at timestamptz)
returns boolean language sql stable as $$
  select p_payment.status in ('completed', 'partially_refunded')
    and p_payment.created_at > p_at - interval '14 months'
    and pay_internal.rail_collects(p_payment.method_kind)
    and exists (
      select from pay.mandates t
      where t.environment_id = p_payment.environment_id
        and t.id = upper(p_payment.body::json #>> '{method,mandate,id}'))
$$;

-- Deletes one batch of the mandates of a sandbox that nobody has used for 30 days of real time.
create or replace function pay_internal.purge_mandates(
  p_environment_id text, p_at timestamptz, p_batch integer
) returns bigint language plpgsql volatile as $$
declare
  v_rows bigint;
begin
  delete from pay.mandates t
  where t.ctid = any (array(
    select o.ctid from pay.mandates o
    where o.environment_id = p_environment_id
      and o.touched_at < least(p_at, pay_internal.server_time()) - interval '30 days'
    limit p_batch for update skip locked
  ));
  get diagnostics v_rows = row_count;
  return v_rows;
end $$;
