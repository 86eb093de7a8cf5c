-- Purpose: wakes the dispatcher where pg_cron and pg_net exist, as on Supabase. A migration
-- schedules the jobs. Elsewhere the ticker of the local server wakes it.
--
-- pg_net calls only the fixed address of the functions. It follows redirects and reaches loopback,
-- so it must not call addresses that customers choose. Its queue is unlogged and does not survive a
-- crash, so the outbox does not rely on it. Only the job calls it, always with a timeout.

-- Operator: stores the address of POST …/api-v1-payments/internal/relay and the RELAY_TOKEN of the
-- functions. Errors: invalid_parameter_value for an address or token that could not work.
create or replace function pay.configure_relay(p_url text, p_token text)
returns void language plpgsql volatile security definer as $$
begin
  if p_url !~ '^https?://[^[:space:]]+/api-v1-payments/internal/relay$' then
    raise exception 'relay url must end in /api-v1-payments/internal/relay'
      using errcode = 'invalid_parameter_value';
  end if;
  if p_token !~ '^[!-~]{16,200}$' then
    raise exception 'relay token must be 16 to 200 visible ASCII characters'
      using errcode = 'invalid_parameter_value';
  end if;
  perform pay_internal.act_as_worker();
  insert into pay.settings (name, value)
  values ('relay_url', p_url), ('relay_token', p_token)
  on conflict on constraint settings_pkey do update set value = excluded.value;
end $$;
grant execute on function pay.configure_relay to pay_operator;

-- The address and token with which the dispatcher is woken. No row if neither a delivery nor work
-- with a provider is due, or if pay.configure_relay was not called.
create or replace function pay.due_wake() returns table (url text, token text)
language plpgsql volatile security definer rows 1 as $$
begin
  perform pay_internal.act_as_worker();
  if not exists (
    select from pay.webhook_deliveries d
    where d.status = 'pending' and d.next_attempt_at <= now()
      and (d.leased_until is null or d.leased_until <= now())
  ) and not pay_internal.provider_work_is_due() then
    return;
  end if;
  return query
    select u.value, t.value
    from pay.settings u
    join pay.settings t on t.name = 'relay_token'
    where u.name = 'relay_url';
end $$;
grant execute on function pay.due_wake to pay_operator;

-- Records a request that wakes the dispatcher, so that pay.health can find its response, and
-- deletes requests older than an hour.
create or replace function pay.note_wake(p_request_id bigint)
returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  delete from pay.dispatcher_wakes wake where wake.woken_at < now() - interval '1 hour';
  insert into pay.dispatcher_wakes (request_id) values (p_request_id::text)
  on conflict on constraint dispatcher_wakes_pkey do update set woken_at = excluded.woken_at;
end $$;
grant execute on function pay.note_wake to pay_operator;

-- The requests of the last hour that woke the dispatcher.
create or replace function pay.recent_wakes()
returns table (request_id bigint, woken_at timestamptz)
language plpgsql volatile security definer rows 100 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select wake.request_id::bigint, wake.woken_at from pay.dispatcher_wakes wake
    where wake.woken_at >= now() - interval '1 hour';
end $$;
grant execute on function pay.recent_wakes to pay_operator;

-- The job: wakes the dispatcher when a delivery or work with a provider is due. Runs as the role of
-- the job, which may use pg_net.
create or replace function pay.wake_dispatcher() returns void language plpgsql volatile as $$
declare
  v_wake record;
  v_request_id bigint;
begin
  for v_wake in select * from pay.due_wake() loop
    -- Dynamic, so that this function can be created without pg_net.
    execute
      'select net.http_post(url := $1, body := $2, params := $3, headers := $4,
         timeout_milliseconds := $5)'
    into v_request_id
    using
      v_wake.url,
      '{}'::jsonb,
      '{}'::jsonb,
      jsonb_build_object(
        'Content-Type', 'application/json',
        'Authorization', 'Bearer ' || v_wake.token
      ),
      2000;
    perform pay.note_wake(v_request_id);
  end loop;
end $$;
grant execute on function pay.wake_dispatcher to pay_operator;
