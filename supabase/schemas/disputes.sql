-- Purpose: writes and finds disputes. Each change of a dispute also changes the sequence of its
-- payment, whose lock protects it.

-- Writes the disputes of the committed changes: new ones, and those that have changed.
create or replace function pay_internal.write_disputes(
  p_disputes pay_internal.dispute_row[], p_lines text[], p_callers pay_internal.caller[]
) returns void language plpgsql volatile as $$
begin
  insert into pay.disputes as t
    (environment_id, id, payment_id, status, amount_minor, currency, provider_reference,
      created_at, body)
  select caller.environment_id, d.id, d.payment_id, d.status, d.amount_minor, d.currency,
    d.provider_reference, d.created_at, p_lines[d.body]
  from unnest(p_disputes) d
  join unnest(p_callers) caller on caller.n = d.n
  on conflict on constraint disputes_pkey
  do update set status = excluded.status, body = excluded.body;
end $$;

-- The body of the dispute of a payment that has an id, ours or the provider's; null: there is none.
create or replace function pay_internal.dispute_body(
  p_environment_id text, p_payment_id text, p_object_id text
) returns text language sql stable as $$
  select dispute.body from pay.disputes dispute
  where dispute.payment_id = p_payment_id and dispute.environment_id = p_environment_id
    and p_object_id in (dispute.id, dispute.provider_reference)
$$;
