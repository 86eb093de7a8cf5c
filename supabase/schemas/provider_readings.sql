-- Purpose: the accounts that the worker reads: an hourly poll for provider events, and the totals
-- of each day. The worker reads page by page and stores its place after each page. If it dies or
-- its job ends, the next job goes on at that place.

-- When each account is read next, also a disabled one: poll_at for provider events, totals_at for
-- the totals of a day. The first day is the one after the account was added, because that is the
-- first whole day. The worker reads a day two hours after its end, when polls have brought its
-- provider events.
create or replace view pay_internal.provider_readings with (security_invoker = true) as
select u.environment_id, u.account_id,
  coalesce(u.polled_at + case
    -- An address is open until the worker has applied the expiry to the payment.
    when a.connector = 'evm' and exists (
      select from pay.deposit_addresses d
      where d.account_id = u.account_id and d.expires_at > now() - interval '1 hour'
      union all
      select from pay.chain_payouts payout
      join pay.provider_operations c on c.environment_id = payout.environment_id
        and c.id = payout.operation_id
      where payout.account_id = u.account_id and c.state <> 'settled'
    ) then interval '15 seconds'
    else interval '1 hour'
  end, '-infinity') as poll_at,
  d.day,
  (d.day + 1)::timestamp at time zone 'UTC' + interval '2 hours' as totals_at
from pay.provider_cursors u
-- A bank sends files, which somebody imports.
join pay.provider_accounts a on a.environment_id = u.environment_id and a.id = u.account_id
  and a.connector <> 'bank'
cross join lateral (
  select coalesce(u.totals_day, (a.created_at at time zone 'UTC')::date) + 1 as day
) d;
comment on view pay_internal.provider_readings is
  'When each account of a provider is read next.';

-- The accounts to read, as the worker needs them: a poll if one is due, or else the totals of a
-- day.
create or replace function pay_internal.read_readings(
  p_environments text[], p_accounts text[], p_at timestamptz
) returns setof pay.provider_work language plpgsql stable rows 10 as $$
begin
  return query
    select case when d.poll_at <= p_at then 'poll' else 'totals' end, u.environment_id, true,
      pay_internal.provider_account_json(u.environment_id, u.account_id), null::json, null::json,
      null::text, null::integer, null::text,
      (case when d.poll_at <= p_at then u.cursor else u.totals_cursor end)::json,
      case when not d.poll_at <= p_at then d.day end
    from unnest(p_environments, p_accounts) as l (environment_id, account_id)
    join pay.provider_cursors u
      on u.environment_id = l.environment_id and u.account_id = l.account_id
    join pay_internal.provider_readings d
      on d.environment_id = u.environment_id and d.account_id = u.account_id;
end $$;

-- Stores the place where the next poll of an account begins. p_is_done: the provider has no more
-- provider events at present. Then the next poll comes after its interval, and the lease ends. A
-- page that was read clears the stall.
create or replace function pay.save_cursor(p_account_id text, p_cursor text, p_is_done boolean)
returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  update pay.provider_cursors u
  set cursor = p_cursor::jsonb, stalled_since = null, last_error = null,
    polled_at = case when p_is_done then pay_internal.server_time() else u.polled_at end,
    leased_until = case when p_is_done then null else u.leased_until end
  from pay.provider_accounts a
  where a.id = p_account_id and u.environment_id = a.environment_id and u.account_id = a.id;
end $$;
grant execute on function pay.save_cursor to pay_api;

-- Stores the place and the sums so far of a day whose totals are being read. Changes nothing if
-- another worker has finished the day: the sums would count for the next one.
create or replace function pay.save_totals_cursor(p_account_id text, p_day date, p_cursor text)
returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  update pay.provider_cursors u
  set totals_cursor = p_cursor::jsonb
  from pay.provider_accounts a
  where a.id = p_account_id and u.environment_id = a.environment_id and u.account_id = a.id
    and coalesce(u.totals_day < p_day, true);
end $$;
grant execute on function pay.save_totals_cursor to pay_api;

-- Operator: sets the cursor of an account back, and makes its next poll due. Returns false while a
-- worker reads the account, because that worker would overwrite the cursor. A stalled reading does
-- not count: it stores a cursor only if its nodes have the old final block again, and then nothing
-- was missed.
-- Concurrency: locks the row of the account's cursor.
create or replace function pay.reread_account(p_account_id text, p_cursor text) returns boolean
language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving_account(p_account_id);
  update pay.provider_cursors u
  set cursor = p_cursor::jsonb, polled_at = null, leased_until = null, stalled_since = null,
    last_error = null
  from pay.provider_accounts a
  where a.id = p_account_id and u.environment_id = a.environment_id and u.account_id = a.id
    and (u.leased_until is null or u.leased_until <= pay_internal.server_time()
      or u.stalled_since is not null);
  return found;
end $$;
grant execute on function pay.reread_account to pay_operator;

-- Operator: the final transfers to addresses of an account since a time, oldest first. The
-- operator's command compares them with the chain after the chain has undone final blocks.
create or replace function pay.list_final_events(p_account_id text, p_since timestamptz)
returns table (
  reference text, payment_id text, address text, amount_minor bigint, currency text, tx_hash text,
  log_index integer
) language plpgsql volatile security definer rows 100 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select event.reference, event.subject_id, event.provider_reference, event.amount_minor,
      event.currency, event.body #>> '{chain,tx_hash}',
      (event.body #>> '{chain,log_index}')::integer
    from pay.provider_accounts a
    join pay.provider_events event on event.environment_id = a.environment_id
      and event.account_id = a.id
      and event.op = 'authorize' and event.state = 'succeeded' and event.happened_at >= p_since
    where a.id = p_account_id
    order by event.happened_at, event.reference;
end $$;
grant execute on function pay.list_final_events to pay_operator;

-- Records that a poll of an account has failed. The lease expires, and the next poll begins at the
-- same cursor.
create or replace function pay.stall_reading(p_account_id text, p_error text)
returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  update pay.provider_cursors u
  set stalled_since = coalesce(u.stalled_since, pay_internal.server_time()),
    last_error = left(p_error, 500)
  from pay.provider_accounts a
  where a.id = p_account_id and u.environment_id = a.environment_id and u.account_id = a.id;
end $$;
grant execute on function pay.stall_reading to pay_api;

-- Ends the lease of a reading that is not done a second later, so that another job of the worker
-- reads on. A function has little CPU for a job.
create or replace function pay.pause_reading(p_account_id text)
returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  update pay.provider_cursors u
  set leased_until = pay_internal.server_time() + interval '1 second'
  from pay.provider_accounts a
  where a.id = p_account_id and u.environment_id = a.environment_id and u.account_id = a.id;
end $$;
grant execute on function pay.pause_reading to pay_api;

-- Stores the totals of a day of an account. The reading of the next day begins, and the lease ends,
-- unless another worker has finished the day before. p_totals: [{currency, net_minor}].
create or replace function pay.store_totals(p_account_id text, p_day date, p_totals text)
returns void language plpgsql volatile security definer as $$
declare
  v_now constant timestamptz := pay_internal.server_time();
begin
  perform pay_internal.act_as_worker();
  update pay.provider_cursors u
  set totals_day = p_day, totals_cursor = null, leased_until = null
  from pay.provider_accounts a
  where a.id = p_account_id and u.environment_id = a.environment_id and u.account_id = a.id
    and coalesce(u.totals_day < p_day, true);
  insert into pay.provider_totals
    (environment_id, account_id, day, currency, provider_minor, read_at)
  select a.environment_id, a.id, p_day, t.currency, t.net_minor, v_now
  from pay.provider_accounts a
  cross join json_to_recordset(p_totals::json) as t (currency text, net_minor bigint)
  where a.id = p_account_id
  on conflict on constraint provider_totals_pkey
    do update set provider_minor = excluded.provider_minor, read_at = excluded.read_at;
end $$;
grant execute on function pay.store_totals to pay_api;
