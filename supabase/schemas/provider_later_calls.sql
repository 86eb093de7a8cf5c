-- Purpose: calls that follow from the result of another call. The worker sends them later.

-- Writes the calls of the recorded records, such as the end of a payment whose payer does nothing.
-- Each goes to the account of the payment's authorization, and has the API key and the request of
-- that call. Runs after pay_internal.settle_calls, which learns the provider's id of the payment.
-- p_calls  as pay.commit takes it, each with delay_ms
create or replace function pay_internal.write_later_calls(p_calls json, p_found pay.admission[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := pay_internal.server_time();
begin
  insert into pay.provider_calls (environment_id, id, account_id, connector, op, subject_id,
    amount_minor, currency, request, state, attempts, created_at, next_attempt_at, may_repeat,
    provider_reference, api_key_id, request_id, decline_is_error, due_at)
  select o.environment_id, c.id, o.account_id, o.connector, c.op, c.subject_id, c.amount_minor,
    c.currency, c.request, 'pending', 0, t.made_at,
    case when f.ahead is null then t.due_at
      else pay_internal.real_due(o.environment_id, t.due_at) end, true,
    o.provider_reference, o.api_key_id, o.request_id, false,
    case when f.ahead is not null then t.due_at end
  from unnest(p_found) f
  join json_to_recordset(p_calls) as c (
    n integer, id text, op text, subject_id text, amount_minor bigint, currency text,
    request jsonb, delay_ms integer
  ) on c.n = f.n
  cross join lateral (
    select v_now + coalesce(f.ahead, '0') as made_at,
      v_now + coalesce(f.ahead, '0') + c.delay_ms * interval '1 ms' as due_at
  ) t
  cross join lateral (
    select a.environment_id, a.account_id, a.connector, a.provider_reference, a.api_key_id,
      a.request_id
    from pay.provider_calls a
    where a.environment_id = f.environment_id and a.subject_id = c.subject_id
      and a.op = 'authorize'
    order by a.id desc limit 1
  ) o
  where f.outcome = 'ok';
end
$$;
