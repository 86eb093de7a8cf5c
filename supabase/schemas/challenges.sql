-- Purpose: the challenge of 3-D Secure in a sandbox. The payer's page has no API key. The token in
-- its URL opens one payment: it is the reference of the payment's authorization at the simulated
-- provider.

-- The payment with the challenge of a token, the name of its account, and the settings of the
-- sandbox as JSON text (null: none); no row if there is no payment.
create or replace function pay.read_challenge(p_token text)
returns table (environment_id text, account text, body text, settings text)
language plpgsql volatile security definer rows 1
set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
  perform set_config('pay.worker', 'on', true);
  return query
    select c.environment_id, e.account, p.body, (
      select row_to_json(w)::text from pay.sandbox_settings w where w.environment_id = e.id)
    from pay.provider_calls c
    join pay.environments e on e.id = c.environment_id and not e.livemode and e.retired_at is null
    join pay.payments p on p.environment_id = c.environment_id and p.id = c.subject_id
    where c.provider_reference = p_token and c.account_id = 'sandbox' and c.op = 'authorize';
end
$$;
grant execute on function pay.read_challenge(text) to pay_api;
