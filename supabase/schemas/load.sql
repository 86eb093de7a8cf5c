-- Purpose: the entry function that reads one resource for each request.
--
-- Outcomes: those of admission.sql; ok | not_found.

-- A resource of an open environment as JSON text; null if it does not exist. detail is null except
-- for four kinds. Of a webhook endpoint it is its revision, the values that its secrets are derived
-- from, the public id of its environment, and its account. Of a dispute it is the provider's id, and
-- of an instrument pay_internal.instrument_detail, of a checkout pay_internal.checkout_detail.
-- The function reads no payments, because pay.load reads all payments of a list together. Only
-- idempotency keys, own_api_key and own_checkout depend on the caller.
create or replace function pay_internal.read_resource(
  p_environment_id text, p_api_key_id text, p_kind text, p_id text, p_at timestamptz, out body text,
  out detail text
) language plpgsql stable as $$
#variable_conflict use_column
begin
  case p_kind
    when 'refunds' then
      select t.body into body from pay.refunds t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'disputes' then
      select t.body, t.provider_reference into body, detail from pay.disputes t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'current_disputes' then
      -- p_id is the id of the payment. A payment of a sandbox has at most one such dispute.
      select t.body into body from pay.disputes t
      where t.payment_id = p_id and t.environment_id = p_environment_id and t.status <> 'won'
      order by t.id desc limit 1;
    when 'transfers' then
      select t.body into body from pay.transfers t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'instruments' then
      select pay_internal.instrument_body(pay_internal.instrument_at(t, p_at)),
        pay_internal.instrument_detail(t)
      into body, detail from pay.instruments t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'checkouts' then
      select pay_internal.checkout_body(t, p_at), pay_internal.checkout_detail(t)
      into body, detail from pay.checkouts t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'method_accounts' then
      body := pay_internal.method_accounts(p_environment_id);
    when 'own_checkout' then
      -- Of the payer who asks. p_id is the attempt that the payer names.
      select pay_internal.checkout_body(t, p_at), pay_internal.payer_detail(t, p_id)
      into body, detail from pay.checkouts t
      where t.environment_id = p_environment_id and t.id = p_api_key_id;
    when 'api_keys' then
      select pay_internal.api_key_body(t, p_at) into body from pay.api_keys t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'own_api_key' then
      select pay_internal.api_key_body(t, p_at) into body from pay.api_keys t
      where t.environment_id = p_environment_id and t.id = p_api_key_id;
    when 'sandboxes' then
      select pay_internal.sandbox_body(t) into body from pay.sandboxes t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'events' then
      select pay_internal.event_body(t) into body from pay.events t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'shown_webhook_endpoints' then
      select pay_internal.webhook_endpoint_body(t) into body from pay.webhook_endpoints t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'webhook_endpoints' then
      select t.body, json_build_object('revision', t.revision, 'secrets', t.secrets,
        'public_id', e.public_id, 'account', e.account)
      into body, detail
      from pay.webhook_endpoints t
      join pay.environments e on e.id = t.environment_id
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'requests' then
      select pay_internal.whole_request_body(t) into body from pay.requests t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'faults' then
      select pay_internal.fault_body(t) into body from pay.faults t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'webhook_deliveries' then
      select pay_internal.whole_delivery_body(t) into body from pay.webhook_deliveries t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'idempotency_keys' then
      body := pay_internal.idempotency_key_body(p_environment_id, p_api_key_id, p_id);
  end case;
end $$;

-- Loads a resource for each request of a list, one statement for all.
-- p_requests  the requests (pay_internal.requests_of), with kind and id. A request without a
--             kind is admitted and reads nothing
-- If the idempotency key of a request has a stored response, the outcome is replay, also when the
-- resource does not exist.
create or replace function pay.load(p_requests text) returns table (
  n integer, outcome text, api_key_id text, environment_id text, account text, livemode boolean,
  remaining integer, status smallint, body text, detail text
) language plpgsql volatile security definer rows 10 as $$
#variable_conflict use_column
declare
  v_requests constant pay_internal.request[] := pay_internal.requests_of(p_requests);
  v_found pay.admission[] := pay_internal.admit(v_requests, 'shared', true);
begin
  return query
    select f.n,
      case
        when f.outcome = 'ok' and r.kind is not null and coalesce(p.body, o.body) is null
          then 'not_found'
        else f.outcome
      end,
      f.api_key_id, f.environment_id, f.account, f.livemode, f.remaining, f.status,
      coalesce(p.body, o.body, f.body),
      coalesce(o.detail, f.detail)
    from unnest(v_found) f
    join unnest(v_requests) r on r.n = f.n
    left join lateral (
      select t.body from pay.payments t
      where f.outcome = 'ok' and r.kind = 'payments'
        and t.environment_id = f.environment_id and t.id = r.id
      limit 1
    ) p on true
    left join lateral (
      select x.body, x.detail
      from pay_internal.read_resource(f.environment_id, f.api_key_id, r.kind, r.id, r.at) x
      where f.outcome = 'ok' and r.kind <> 'payments'
      -- Without this the function is called before the condition is checked.
      limit 1
    ) o on true;
end $$;
grant execute on function pay.load to pay_api;
