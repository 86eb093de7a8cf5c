-- Purpose: writes the rows of refunds.

-- Refuses new refunds that go back to the bank account of the payer, if no order to it could be
-- written: the outcome is undirected. detail: the member that its details lack; null: nobody knows
-- them, or they were deleted. Runs after pay_internal.lock_subjects, so no deletion comes later.
create or replace function pay_internal.check_refunds(
  p_refunds pay_internal.refund_row[], p_found pay.admission[]
) returns pay.admission[] language plpgsql volatile as $$
declare
  v_refund record;
begin
  for v_refund in
    select r.n, d.lacks
    from unnest(p_found) f
    join unnest(p_refunds) r on r.n = f.n
    left join pay.bank_details d
      on d.environment_id = f.environment_id and d.owner_id = r.payment_id
    where f.outcome = 'ok' and r.is_to_payer
      -- A sandbox keeps no details, only that they were deleted.
      and (f.livemode or d.owner_id is not null) and (d.sealed is null or d.lacks is not null)
  loop
    p_found[v_refund.n].outcome := 'undirected';
    p_found[v_refund.n].detail := v_refund.lacks;
  end loop;
  return p_found;
end $$;

-- Writes the refunds of the committed changes: new ones, and those whose status has changed.
create or replace function pay_internal.write_refunds(
  p_refunds pay_internal.refund_row[], p_lines text[], p_callers pay_internal.caller[]
) returns void language plpgsql volatile as $$
begin
  insert into pay.refunds as t
    (environment_id, id, payment_id, status, amount_minor, currency, created_at, body)
  select caller.environment_id, r.id, r.payment_id, r.status, r.amount_minor,
    r.currency, r.created_at, p_lines[r.body]
  from unnest(p_refunds) r
  join unnest(p_callers) caller on caller.n = r.n
  on conflict on constraint refunds_pkey
  do update set status = excluded.status, body = excluded.body;
end $$;
