-- Purpose: payers, who present the token of a checkout in place of an API key (ADR 0028). The function
-- that serves them asks for the checkout and for attempts of it, and for nothing else.

-- Admits the requests of a list that have is_payer and whose key_hash is the hash of a token. The id of
-- the checkout stands in place of that of a key, so idempotency keys belong to the checkout. A payer
-- has no scope. Outcomes: as in pay_internal.admit, which has found no key for these requests.
-- Concurrency: as there. The environment is read under its lock in a new snapshot. Several rows can
-- have one hash if a seeded sandbox was reset or made again: only one of their environments is not
-- retired.
create or replace function pay_internal.admit_payers(
  p_requests pay_internal.request[], p_found pay.admission[], p_hold text, p_is_read boolean
) returns pay.admission[] language plpgsql volatile as $$
declare
  v_opened text[] := nullif(current_setting('pay.environment_ids', true), '')::text[];
  v_row record;
  v_environment record;
  v_is_held boolean;
begin
  for v_row in
    select r.n, r.at, r.version, c.environment_id, c.id,
      case when not p_is_read and r.storage[2] is not null then r.storage end as storage
    from unnest(p_requests) r
    join pay.checkouts c on c.token_hash = decode(r.key_hash, 'hex')
    where r.is_payer and r.scope is null
    order by r.n
  loop
    v_is_held := p_hold = 'none' or pg_try_advisory_xact_lock_shared(
      hashtextextended('environment ' || v_row.environment_id, 0));
    perform set_config(
      'pay.environment_ids', (v_opened || v_row.environment_id)::text, true);
    select e.account, e.livemode, e.stored_gb, (e.moving = 'draining') is not false as is_here,
      w.version, w as settings
    into v_environment
    from pay.environments e
    left join pay.sandbox_settings w on w.environment_id = e.id
    where e.id = v_row.environment_id and e.retired_at is null
      and (e.ends_at is null or e.ends_at > pay_internal.server_time());
    continue when not found;
    if v_is_held then v_opened := v_opened || v_row.environment_id; end if;
    p_found[v_row.n] := row(v_row.n, case
        when not v_is_held or not v_environment.is_here then 'resetting'
        when v_row.version is distinct from v_environment.version then 'outdated'
        when v_environment.stored_gb >= v_row.storage[1] then 'storage_full'
        else 'ok'
      end, v_row.id, v_row.environment_id, v_environment.account, v_environment.livemode, v_row.at,
      null, null, null,
      case when v_environment.version > 0
        then pay_internal.time_ahead(v_environment.settings) end,
      case when v_row.version is distinct from v_environment.version
        then row_to_json(v_environment.settings) end, v_row.storage[2:3])::pay.admission;
  end loop;
  perform set_config('pay.environment_ids', coalesce(v_opened, '{}')::text, true);
  return p_found;
end $$;

-- Returns the rest of a payer's page beside pay_internal.checkout_body as JSON text: the members of
-- pay_internal.checkout_detail, the merchant, the accounts of a live environment, the number of
-- requests of a seeded sandbox, and the attempt that the payer may see.
-- p_attempt_id  the payment that the payer of a link names as theirs
create or replace function pay_internal.payer_detail(
  p_checkout pay.checkouts, p_attempt_id text
) returns text language plpgsql stable as $$
declare
  v_detail text;
begin
  select row_to_json(t)::text into v_detail from (
    select pay_internal.merchant_of(e.id) as merchant,
      case when e.livemode then pay_internal.method_accounts(e.id) else '[]' end::json as accounts,
      coalesce((
        select w.requests from pay.sandbox_settings w where w.environment_id = e.id), 0) as requests,
      (
        select p.body::json from pay.payments p
        where p.environment_id = e.id and p.checkout_id = p_checkout.id
          and p.id = case when p_checkout.max_payments is null then p_attempt_id
            else coalesce(p_checkout.payment_id, p_checkout.attempt_id) end
      ) as shown
    from pay.environments e where e.id = p_checkout.environment_id
  ) t;
  return left(pay_internal.checkout_detail(p_checkout), -1) || ',' || substr(v_detail, 2);
end $$;
