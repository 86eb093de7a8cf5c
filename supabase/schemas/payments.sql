-- Purpose: writes the rows of payments, and finds a payment by its challenge.

-- Writes the payments of the committed changes: a change that expects a sequence updates its
-- payment, the others insert one. p_callers: the callers of the committed changes. p_moved: the n
-- of the changes that update. p_lines: the document.
-- pay_internal.lock_subjects has locked the rows that change, so none moves. Each is looked up by
-- its whole key: a join that was planned while the table was small would read all payments of the
-- environment.
create or replace function pay_internal.write_payments(
  p_payments pay_internal.payment_row[], p_lines text[], p_callers pay_internal.caller[],
  p_moved integer[]
) returns void language plpgsql volatile as $$
begin
  insert into pay.payments
    (environment_id, id, status, amount_minor, amount_refunded, amount_refunding, amount_released,
      amount_disputed, currency, method_kind, reference, customer_id, instrument_id, checkout_id,
      sequence, created_at, updated_at, body)
  select caller.environment_id, p.id, p.status, p.amount_minor, p.amount_refunded,
    p.amount_refunding, p.amount_released, p.amount_disputed, p.currency, p.method_kind,
    p.reference, p.customer_id, p.instrument_id, p.checkout_id, p.sequence, p.created_at,
    p.updated_at, p_lines[p.body]
  from unnest(p_payments) p
  join unnest(p_callers) caller on caller.n = p.n
  where p.n <> all (p_moved);
  if p_moved <> '{}' then
    with moved as materialized (
      select p.*, k.place
      from unnest(p_payments) p
      join unnest(p_callers) caller on caller.n = p.n
      cross join lateral (
        select k.ctid as place from pay.payments k
        where k.environment_id = caller.environment_id and k.id = p.id limit 1
      ) k
      where p.n = any (p_moved)
    )
    update pay.payments t
    set status = p.status, amount_refunded = p.amount_refunded,
      amount_refunding = p.amount_refunding, amount_released = p.amount_released,
      amount_disputed = p.amount_disputed,
      sequence = p.sequence, updated_at = p.updated_at, body = p_lines[p.body]
    from moved p
    where t.ctid = p.place;
  end if;
end $$;

-- The payment with the challenge of a token, the name of its merchant, and the settings of the
-- sandbox as JSON text (null: none); no row if there is no payment.
create or replace function pay.read_challenge(p_token text)
returns table (environment_id text, merchant text, body text, settings text)
language plpgsql volatile security definer rows 1 as $$
#variable_conflict use_column
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving(c.environment_id) from pay.provider_operations c
  where c.provider_reference = p_token and c.account_id = 'sandbox' and c.op = 'authorize';
  return query
    select c.environment_id, pay_internal.merchant_of(e.id) ->> 'name', p.body, (
      select row_to_json(w)::text from pay.sandbox_settings w where w.environment_id = e.id)
    from pay.provider_operations c
    join pay.environments e on e.id = c.environment_id and not e.livemode and e.retired_at is null
    join pay.payments p on p.environment_id = c.environment_id and p.id = c.subject_id
    where c.provider_reference = p_token and c.account_id = 'sandbox' and c.op = 'authorize';
end $$;
grant execute on function pay.read_challenge to pay_api;
