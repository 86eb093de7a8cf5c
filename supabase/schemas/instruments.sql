-- Purpose: instruments: cards and mandates of SEPA Direct Debit that later payments can use. The
-- status of an instrument follows from the payment that has saved it, in the same commit.
--
-- A mandate ends after its last collection, when the payer's bank says that it does not exist, and
-- when it is idle for 36 months (EPC rulebook of the SEPA Direct Debit). It belongs to one IBAN and
-- to one customer. The IBAN is known by a fingerprint that the service makes with a key; the use of
-- a mandate stores that of the newest key.
--
-- Concurrency: saves of one customer take turns by an advisory lock, then the uses of one mandate,
-- then the uses and the end of one instrument by its row. So a payment is decided wholly before or
-- after the end of its instrument.

-- The most instruments that are kept for a customer, with those whose payment has no result.
create or replace function pay_internal.most_kept()
returns integer language sql immutable parallel safe as $$ select 50 $$;

-- The time without a collection after which a mandate ends.
create or replace function pay_internal.idle_time()
returns interval language sql immutable parallel safe as $$ select interval '36 months' $$;

-- An instrument at a time: an idle mandate has ended, also before pay_internal.end_idle_instruments
-- writes it.
create or replace function pay_internal.instrument_at(p_instrument pay.instruments, p_at timestamptz)
returns pay.instruments language plpgsql immutable as $$
begin
  if p_instrument.status = 'active' and p_instrument.idle_at <= p_at then
    p_instrument.status := 'ended';
    p_instrument.ended_reason := 'idle';
    p_instrument.ended_at := p_instrument.idle_at;
    p_instrument.updated_at := p_instrument.idle_at;
    p_instrument.sequence := p_instrument.sequence + 1;
  end if;
  return p_instrument;
end $$;

-- An instrument as JSON text, as responses and events show it.
create or replace function pay_internal.instrument_body(p_instrument pay.instruments)
returns text language sql stable as $$
  select row_to_json(t)::text from (
    select p_instrument.id, 'instrument' as object, p_instrument.status,
      (select row_to_json(c) from (
        select p_instrument.customer_id as id, p_instrument.email, p_instrument.name
        where coalesce(p_instrument.customer_id, p_instrument.email, p_instrument.name) is not null
      ) c) as customer,
      p_instrument.method_kind, p_instrument.method::json, p_instrument.usage,
      (select row_to_json(m) from (
        select p_instrument.mandate_id as id, p_instrument.signed_at
        where p_instrument.mandate_id is not null
      ) m) as mandate,
      p_instrument.is_kept, p_instrument.payment_id, p_instrument.ended_reason,
      pay_internal.wire_time(p_instrument.last_used_at) as last_used_at,
      p_instrument.test_behaviour is null as livemode,
      p_instrument.sequence, pay_internal.wire_time(p_instrument.created_at) as created_at,
      pay_internal.wire_time(p_instrument.updated_at) as updated_at,
      pay_internal.wire_time(p_instrument.ended_at) as ended_at
  ) t
$$;

-- The members of an instrument that a payment needs and that responses do not show, as JSON text.
create or replace function pay_internal.instrument_detail(p_instrument pay.instruments)
returns text language sql stable as $$
  select row_to_json(t)::text from (
    select p_instrument.test_behaviour, p_instrument.provider, d.key_id, d.sealed
    from (select) nothing
    left join pay.bank_details d on d.environment_id = p_instrument.environment_id
      and d.owner_id = p_instrument.id
  ) t
$$;

-- The instrument of a mandate; null: there is none. To banks the id of a mandate is one in any
-- case. A payment that failed has left the mandate free.
create or replace function pay_internal.instrument_of_mandate(
  p_environment_id text, p_mandate_id text
) returns text language plpgsql stable as $$
begin
  return (
    select t.id from pay.instruments t
    where t.environment_id = p_environment_id and upper(t.mandate_id) = upper(p_mandate_id)
      and t.mandate_id is not null and t.status <> 'failed');
end $$;

-- An id that follows from a text, where no request makes one: in a seeded sandbox it is the same in
-- every run.
create or replace function pay_internal.derived_id(p_prefix text, p_at timestamptz, p_from text)
returns text language sql stable as $$
  select left(pay_internal.id_floor(p_prefix, p_at), length(p_prefix) + 9)
    || left(encode(sha256(convert_to(p_from, 'UTF8')), 'hex'), 16) || '0'
$$;

-- Refuses the payments that their instrument does not allow: the outcome is instrument, and detail
-- is many (the customer has pay_internal.most_kept()), known (the mandate was used before it is
-- saved), kept (it is kept, so its collections are recurring), the reason of its end, iban or
-- customer (it belongs to another one, also if its save has failed), unreadable (the service has
-- not the key of its fingerprint), used (it was used before, and the collection must be the first),
-- or idle. A payment by an instrument that has changed is stale. So is the later of two changes of
-- a list that save for one customer or share a mandate, unless both are recurring, from one IBAN
-- and of one customer.
-- p_instruments  as in pay_internal.document
create or replace function pay_internal.check_instruments(
  p_requests pay_internal.request[], p_instruments jsonb, p_found pay.admission[]
) returns pay.admission[] language plpgsql volatile as $$
declare
  v_row record;
  v_key text;
  v_this jsonb; v_last jsonb := '[]';
  v_instrument pay.instruments;
  v_detail text;
begin
  for v_row in
    select r.n, f.environment_id, f.api_key_id, r.idempotency_key, i.*, g.turn,
      case g.turn when 1 then i.customer_id when 2 then upper(i.mandate_id) else i.id end as name
    from unnest(p_found) f
    join unnest(p_requests) r on r.n = f.n
    join jsonb_to_recordset(p_instruments) as i (
      n integer, act text, id text, at timestamptz, sequence integer, customer_id text,
      mandate_id text, mandate_sequence text, signed_at timestamptz, ibans text[]
    ) on i.n = r.n
    join (values (1, 'save'), (2, 'save'), (2, 'mandate'), (3, 'use')) g (turn, act)
      on g.act = i.act
    where f.outcome = 'ok' and (g.turn <> 2 or i.mandate_id is not null)
    order by g.turn, f.environment_id, name, r.n
  loop
    continue when p_found[v_row.n].outcome <> 'ok';
    v_key := concat_ws(' ', v_row.turn, v_row.environment_id, v_row.name);
    v_this := jsonb_build_array(
      v_key, v_row.act, v_row.mandate_sequence, v_row.ibans, v_row.customer_id);
    if v_last ->> 0 = v_key and v_row.turn < 3
      and not (v_row.mandate_sequence = 'recurring' and v_row.act = 'mandate' and v_last = v_this)
    then
      p_found[v_row.n].outcome := 'stale';
      continue;
    end if;
    v_last := v_this;
    if v_row.turn < 3 then
      perform pg_advisory_xact_lock(hashtextextended('instrument ' || v_key, 0));
    end if;
    -- Separate statements after the lock, so that they see what was committed before.
    if v_row.turn = 2 then
      select t.* into v_instrument from pay.instruments t
      where t.environment_id = v_row.environment_id and upper(t.mandate_id) = v_row.name
        and t.mandate_id is not null and t.status <> 'failed' for update;
      if not found then
        select t.* into v_instrument from pay.instruments t
        where t.environment_id = v_row.environment_id and upper(t.mandate_id) = v_row.name
          and t.mandate_id is not null and t.status = 'failed' limit 1;
      end if;
    elsif v_row.turn = 3 then
      select t.* into v_instrument from pay.instruments t
      where t.environment_id = v_row.environment_id and t.id = v_row.id for update;
    end if;
    -- A request whose key is stored uses nothing, because pay_internal.claim finds its response.
    if exists (
      select from pay.idempotency_keys k
      where k.environment_id = v_row.environment_id and k.api_key_id = v_row.api_key_id
        and k.key = v_row.idempotency_key)
    then
      p_found[v_row.n].outcome := 'expired';
      continue;
    end if;
    v_detail := case v_row.turn
      when 1 then case when (
        select count(*) from pay.instruments t
        where t.environment_id = v_row.environment_id and t.customer_id = v_row.customer_id
          and t.is_kept and t.status in ('pending', 'active')
      ) >= pay_internal.most_kept() then 'many' end
      when 2 then case
        when v_instrument.status = 'ended' then v_instrument.ended_reason
        when v_instrument.iban <> all (v_row.ibans) and exists (
          select from unnest(v_row.ibans) as i (iban)
          where split_part(i.iban, ':', 1) = split_part(v_instrument.iban, ':', 1)
        ) then 'iban'
        when v_instrument.customer_id <> v_row.customer_id then 'customer'
        when v_instrument.status <> 'failed' then case
          when v_row.act = 'save' then 'known'
          when v_instrument.iban <> all (v_row.ibans) then 'unreadable'
          when v_instrument.is_kept and v_row.mandate_sequence <> 'recurring' then 'kept'
          when v_row.mandate_sequence in ('first', 'one_off') then 'used'
          when v_instrument.idle_at <= v_row.at then 'idle'
        end
        when v_row.signed_at + pay_internal.idle_time() < v_row.at then 'idle'
      end
      else case
        when v_instrument.id is null or v_instrument.sequence <> v_row.sequence
          or v_instrument.status <> 'active' then 'changed'
        when v_instrument.idle_at <= v_row.at then 'idle'
      end
    end;
    if v_detail is not null then
      p_found[v_row.n].outcome := case v_detail when 'changed' then 'stale' else 'instrument' end;
      p_found[v_row.n].detail := v_detail;
    end if;
  end loop;
  return p_found;
end $$;

-- Locks the instruments that records change, before pay.record locks idempotency keys.
create or replace function pay_internal.lock_instruments(
  p_instruments jsonb, p_found pay.admission[]
) returns void language plpgsql volatile as $$
begin
  perform from unnest(p_found) f
  join jsonb_to_recordset(p_instruments) as i (n integer, id text, mandate_id text) on i.n = f.n
  cross join lateral (
    select t.id from pay.instruments t
    where t.environment_id = f.environment_id
      and t.id = coalesce(
        i.id, pay_internal.instrument_of_mandate(f.environment_id, i.mandate_id))
    for update
  ) t
  where f.outcome = 'ok';
end $$;

-- Writes what the committed changes do with instruments. Returns the number of deliveries of the
-- events that instruments have ended.
create or replace function pay_internal.write_instruments(
  p_instruments jsonb, p_callers pay_internal.caller[]
) returns bigint language plpgsql volatile as $$
declare
  v_row record;
  v_id text;
  v_status text;
  v_deliveries bigint := 0;
begin
  for v_row in
    select c as caller, c.environment_id, i.*
    from jsonb_to_recordset(p_instruments) as i (
      n integer, act text, id text, at timestamptz, status text, customer_id text, email text,
      name text, method_kind text, method text, usage text, mandate_id text,
      mandate_sequence text, signed_at text, ibans text[], bank_details jsonb,
      test_behaviour text, provider jsonb, payment_id text, is_use boolean, reason text,
      request_id text, idempotency_key text)
    join unnest(p_callers) c on c.n = i.n
    -- The end of a mandate by its bank comes before the result of the payment that saves it.
    order by c.environment_id, i.act <> 'end', coalesce(i.id, upper(i.mandate_id)), i.n
  loop
    v_id := coalesce(v_row.id, '');
    if v_row.act in ('save', 'mandate') then
      insert into pay.instruments as t (environment_id, id, status, customer_id, email, name,
        method_kind, method, usage, is_kept, mandate_id, signed_at, iban, test_behaviour, provider,
        payment_id, last_used_at, idle_at, touched_at, sequence, created_at, updated_at)
      values (v_row.environment_id, v_row.id, v_row.status, v_row.customer_id, v_row.email,
        v_row.name, v_row.method_kind, v_row.method, v_row.usage, v_row.act = 'save',
        v_row.mandate_id, v_row.signed_at, v_row.ibans[1], v_row.test_behaviour, v_row.provider,
        v_row.payment_id, case when v_row.is_use then v_row.at end,
        case when v_row.mandate_id is not null then greatest(v_row.signed_at::timestamptz,
          case when v_row.is_use then v_row.at end) + pay_internal.idle_time() end,
        pay_internal.server_time(), 1, v_row.at, v_row.at)
      on conflict (environment_id, upper(mandate_id))
        where mandate_id is not null and status <> 'failed'
      do update set iban = excluded.iban,
        email = case when t.customer_id is null then excluded.email else t.email end,
        name = case when t.customer_id is null then excluded.name else t.name end,
        customer_id = coalesce(t.customer_id, excluded.customer_id),
        last_used_at = greatest(t.last_used_at, excluded.last_used_at),
        idle_at = greatest(t.idle_at, excluded.last_used_at + pay_internal.idle_time()),
        touched_at = excluded.touched_at
      returning t.id into v_id;
      insert into pay.bank_details (environment_id, owner_id, key_id, sealed, created_at)
      select v_row.environment_id, v_row.id, v_row.bank_details ->> 'key_id',
        v_row.bank_details ->> 'sealed', pay_internal.server_time()
      where v_row.bank_details is not null;
    elsif v_row.act = 'use' then
      update pay.instruments t
      set iban = coalesce(v_row.ibans[1], t.iban),
        last_used_at = greatest(t.last_used_at, v_row.at),
        idle_at = greatest(t.idle_at, case when t.idle_at is not null
          then v_row.at + pay_internal.idle_time() end),
        touched_at = pay_internal.server_time()
      where t.environment_id = v_row.environment_id and t.id = v_row.id;
    elsif v_row.act = 'result' then
      update pay.instruments t
      set status = v_row.status, method = coalesce(v_row.method, t.method),
        provider = case when v_row.provider is null then t.provider
          else coalesce(t.provider, '{}') || v_row.provider end,
        idle_at = case when v_row.status = 'active' then t.idle_at end,
        sequence = t.sequence + 1, updated_at = v_row.at, touched_at = pay_internal.server_time()
      where t.environment_id = v_row.environment_id and t.id = v_row.id and t.status = 'pending'
      returning t.status into v_status;
      if v_status = 'failed' then
        perform pay_internal.forget_instrument(v_row.environment_id, v_row.id);
      end if;
    elsif v_row.act = 'renew' then
      v_deliveries := v_deliveries
        + pay_internal.renew_instrument(v_row.caller, v_row.id, v_row.method, v_row.at);
    elsif v_row.id is null then
      v_id := pay_internal.instrument_of_mandate(v_row.environment_id, v_row.mandate_id);
    end if;
    if v_row.reason is not null then
      v_deliveries := v_deliveries + pay_internal.end_instrument(
        v_row.caller, v_id, v_row.reason, v_row.at, v_row.request_id, v_row.idempotency_key);
    end if;
  end loop;
  return v_deliveries;
end $$;

-- Shows what the network has renewed of a card. An older expiry is of an event that came late.
-- Returns the number of deliveries of its event.
create or replace function pay_internal.renew_instrument(
  p_caller pay_internal.caller, p_id text, p_method text, p_at timestamptz
) returns bigint language plpgsql volatile as $$
declare
  v_renewed pay.instruments;
begin
  update pay.instruments t
  set method = p_method, updated_at = p_at, sequence = t.sequence + 1,
    touched_at = pay_internal.server_time()
  where t.environment_id = p_caller.environment_id and t.id = p_id and t.status = 'active'
    and t.method is distinct from p_method
    and coalesce(pay_internal.expiry_month(p_method) >= pay_internal.expiry_month(t.method), true)
  returning t.* into v_renewed;
  if not found then return 0; end if;
  return pay_internal.write_instrument_event(
    p_caller, v_renewed, 'instrument.updated', null, null);
end $$;

-- The month in which the card of a masked method expires, counted from the year 0.
create or replace function pay_internal.expiry_month(p_method text)
returns integer language sql immutable as $$
  select (p_method::json #>> '{card,exp_year}')::integer * 12
    + (p_method::json #>> '{card,exp_month}')::integer
$$;

-- The customer at an account of a provider of one of the merchant's customers; null: the account
-- has none yet. One whose card somebody has removed at the provider can be deleted there.
create or replace function pay_internal.known_customer(
  p_environment_id text, p_account_id text, p_customer_id text
) returns text language sql stable as $$
  select t.provider ->> 'customer' from pay.instruments t
  where t.environment_id = p_environment_id and t.customer_id = p_customer_id
    and t.provider ->> 'account' = p_account_id and t.provider ->> 'customer' is not null
    and t.ended_reason is distinct from 'removed_at_provider'
  order by t.id limit 1
$$;

-- The payment that has saved a card of an account of a provider; null: no payment here has.
create or replace function pay_internal.find_instrument_payment(
  p_environment_id text, p_account_id text, p_token text
) returns text language sql stable as $$
  select t.payment_id from pay.instruments t
  where t.provider ->> 'token' = p_token and t.environment_id = p_environment_id
    and t.provider ->> 'account' = p_account_id
  order by t.status = 'active' desc, t.id limit 1
$$;

-- Lets the worker remove a card at its provider, unless another instrument is the same card there.
-- A charge that is under way has its lease of 15 seconds to end before.
create or replace function pay_internal.detach_instrument(p_instrument pay.instruments)
returns void language plpgsql volatile as $$
declare
  v_now constant timestamptz := pay_internal.server_time();
begin
  insert into pay.provider_operations (environment_id, id, account_id, connector, op, subject_id,
    amount_minor, currency, request, state, attempts, created_at, next_attempt_at, may_repeat,
    api_key_id, request_id, decline_is_error)
  select a.environment_id,
    pay_internal.derived_id('pc_', v_now, p_instrument.environment_id || p_instrument.id),
    a.account_id, a.connector, 'detach', a.subject_id, 0, a.currency,
    jsonb_build_object('token', p_instrument.provider ->> 'token'), 'pending', 0, v_now,
    v_now + interval '15 seconds', true, a.api_key_id, a.request_id, false
  from pay.provider_operations a
  where a.environment_id = p_instrument.environment_id and a.subject_id = p_instrument.payment_id
    and a.op = 'authorize' and not exists (
      select from pay.instruments t
      where t.provider ->> 'token' = p_instrument.provider ->> 'token'
        and t.environment_id = p_instrument.environment_id and t.status = 'active')
  order by a.id desc limit 1;
end $$;

-- Deletes the sealed bank details of an instrument that nobody can use any more. Those of its
-- payments are their own copies.
create or replace function pay_internal.forget_instrument(p_environment_id text, p_id text)
returns void language sql volatile as $$
  delete from pay.bank_details d where d.environment_id = p_environment_id and d.owner_id = p_id
$$;

-- Ends an instrument that is active, or pending if its bank ends it. One that was idle before has
-- ended so. The worker removes a card at its provider. Returns the number of deliveries of its
-- event.
create or replace function pay_internal.end_instrument(
  p_caller pay_internal.caller, p_id text, p_reason text, p_at timestamptz,
  p_request_id text default null, p_idempotency_key text default null
) returns bigint language plpgsql volatile as $$
declare
  v_ended pay.instruments;
begin
  update pay.instruments t
  set status = 'ended', ended_at = least(p_at, t.idle_at), updated_at = least(p_at, t.idle_at),
    ended_reason = case when t.status = 'active' and t.idle_at <= p_at then 'idle' else p_reason end,
    sequence = t.sequence + 1, idle_at = null, touched_at = pay_internal.server_time()
  where t.environment_id = p_caller.environment_id and t.id = p_id and (t.status = 'active'
    or t.status = 'pending' and p_reason in ('revoked', 'account_closed'))
  returning t.* into v_ended;
  if not found then return 0; end if;
  if v_ended.provider ? 'token' and p_reason <> 'removed_at_provider' then
    perform pay_internal.detach_instrument(v_ended);
  end if;
  perform pay_internal.forget_instrument(p_caller.environment_id, p_id);
  return pay_internal.write_instrument_event(
    p_caller, v_ended, 'instrument.ended', p_request_id, p_idempotency_key);
end $$;

-- Writes the event of a change of an instrument. Its ids follow from the instrument and its
-- sequence. Returns the number of its deliveries.
create or replace function pay_internal.write_instrument_event(
  p_caller pay_internal.caller, p_instrument pay.instruments, p_type text, p_request_id text,
  p_idempotency_key text
) returns bigint language plpgsql volatile as $$
declare
  v_at constant timestamptz := p_instrument.updated_at;
  v_id constant text :=
    pay_internal.derived_id('evt_', v_at, p_instrument.id || p_instrument.sequence);
begin
  return pay_internal.write_events(
    array[row(p_caller.n, v_id, p_type, p_instrument.id, p_instrument.sequence, v_at,
      pay_internal.delivery_stem(v_id), p_request_id, p_idempotency_key, null, 1, null
    )::pay_internal.event_row],
    array[pay_internal.instrument_body(p_instrument)], array[p_caller]);
end $$;

-- Ends a batch of the mandates of an environment that are idle at a time. Returns their number.
create or replace function pay_internal.end_idle_instruments(
  p_environment_id text, p_at timestamptz, p_batch integer
) returns bigint language plpgsql volatile as $$
declare
  v_idle record;
  v_rows bigint := 0;
begin
  for v_idle in
    select t.id, t.idle_at from pay.instruments t
    where t.environment_id = p_environment_id and t.idle_at <= p_at
    order by t.idle_at limit p_batch for update skip locked
  loop
    -- One whose payment has no result stays pending.
    update pay.instruments t set idle_at = null
    where t.environment_id = p_environment_id and t.id = v_idle.id and t.status <> 'active';
    perform pay_internal.end_instrument(
      row(1, p_environment_id, null, (
        select pay_internal.time_ahead(w) from pay.sandbox_settings w
        where w.environment_id = p_environment_id))::pay_internal.caller,
      v_idle.id, 'idle', v_idle.idle_at);
    v_rows := v_rows + 1;
  end loop;
  return v_rows;
end $$;

-- Ends an instrument by a request.
-- p_refusal  the 409 to return and to store if its payment was not successful
-- Outcomes: those of admission.sql, and
--           ok (status; body: the instrument, or p_refusal)
--           not_found
--           pending (its payment has no result)
-- deliveries: the number of deliveries that its event made due.
create or replace function pay.end_instrument(p_request text, p_id text, p_refusal text)
returns table (
  outcome text, api_key_id text, environment_id text, account text, livemode boolean,
  remaining integer, status smallint, body text, detail text, deliveries bigint
) language plpgsql volatile security definer rows 1 set lock_timeout = '3s' as $$
#variable_conflict use_column
declare
  v_request jsonb := p_request::jsonb -> 0;
  v_access pay.admission := pay_internal.admit_one(p_request);
  v_instrument pay.instruments;
  v_deliveries bigint := 0;
begin
  if v_access.outcome = 'ok' then
    select t.* into v_instrument from pay.instruments t
    where t.environment_id = v_access.environment_id and t.id = p_id for update;
    if not found then v_access.outcome := 'not_found'; end if;
  end if;
  v_access := pay_internal.claim_one(p_request, v_access, v_instrument.id);
  if v_access.outcome = 'ok' and v_instrument.status = 'pending' then
    v_access.outcome := 'pending';
    perform pay_internal.release_key(p_request, v_access);
  elsif v_access.outcome = 'ok' and v_instrument.status = 'failed' then
    v_access.status := 409;
    v_access.body := p_refusal;
    perform pay_internal.store_response(p_request, v_access);
  elsif v_access.outcome = 'ok' then
    v_access.status := 200;
    v_deliveries := pay_internal.end_instrument(
      row(1, v_access.environment_id, v_access.api_key_id, v_access.ahead)::pay_internal.caller,
      p_id, 'deleted', (v_request ->> 'at')::timestamptz, v_request ->> 'request_id',
      v_request ->> 'idempotency_key');
    select pay_internal.instrument_body(t) into v_access.body from pay.instruments t
    where t.environment_id = v_access.environment_id and t.id = p_id;
    perform pay_internal.store_response(p_request, v_access);
  end if;
  return query select v_access.outcome, v_access.api_key_id, v_access.environment_id,
    v_access.account, v_access.livemode, v_access.remaining, v_access.status, v_access.body,
    v_access.detail, v_deliveries;
end $$;
grant execute on function pay.end_instrument to pay_api;

-- Whether the payer's bank can still return a payment that was collected under a mandate of the
-- environment: for 13 months after its due date, which is within a month after the create.
create or replace function pay_internal.can_be_returned(p_payment pay.payments, p_at timestamptz)
returns boolean language sql stable as $$
  select p_payment.status in ('completed', 'partially_refunded')
    and p_payment.created_at > p_at - interval '14 months'
    and pay_internal.rail_collects(p_payment.method_kind)
    and pay_internal.instrument_of_mandate(
      p_payment.environment_id, p_payment.body::json #>> '{method,mandate,id}') is not null
$$;

-- Deletes one batch of the instruments of a sandbox that nobody has used for 30 days of real time.
create or replace function pay_internal.purge_instruments(
  p_environment_id text, p_at timestamptz, p_batch integer, out deleted bigint
) language plpgsql volatile as $$
declare
  v_before constant timestamptz :=
    least(p_at, pay_internal.server_time()) - interval '30 days';
begin
  delete from pay.instruments t
  where t.ctid = any (array(
    select o.ctid from pay.instruments o
    where o.environment_id = p_environment_id and o.test_behaviour is not null
      and o.touched_at < v_before
    order by o.touched_at limit p_batch for update skip locked
  ));
  get diagnostics deleted = row_count;
end $$;
