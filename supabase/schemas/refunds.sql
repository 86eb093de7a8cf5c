-- Purpose: writes the rows of refunds.

-- Writes the refunds of the committed changes: new ones, and those whose status has changed.
create or replace function pay_internal.write_refunds(
  p_refunds jsonb, p_callers pay_internal.caller[]
)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into pay.refunds as t
    (environment_id, id, payment_id, status, amount_minor, currency, created_at, body)
  select caller.environment_id, r.id, r.payment_id, r.status, r.amount_minor,
    r.currency, r.created_at, r.body
  from jsonb_to_recordset(p_refunds) as r (
    n integer, id text, payment_id text, status text, amount_minor bigint, currency text,
    created_at timestamptz, body text
  )
  join unnest(p_callers) caller on caller.n = r.n
  on conflict on constraint refunds_pkey
  do update set status = excluded.status, body = excluded.body;
end
$$;
