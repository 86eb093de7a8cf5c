-- Purpose: what wakes the relay, retention and the check of the books where pg_cron and pg_net exist (as on Supabase). The
-- only migration that names them. Elsewhere the local server's ticker does the same.
--
-- pg_net only ever calls our own fixed address: it follows redirects and reaches loopback, so it is
-- not fit for addresses that customers choose, and its queue is unlogged, so it is an alarm clock and
-- no record. It is called from the job alone, always with a timeout.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

create table pay.settings (
  name text collate "C" not null,
  value text not null,
  constraint settings_pkey primary key (name),
  constraint settings_name_known check (
    name in ('relay_url', 'relay_token', 'books_checked_at')
  )
);
comment on table pay.settings is
  'Where the relay is and the token that wakes it (pay.configure_relay), and when the books were checked last, in seconds since 1970 (pay.note_findings).';

alter table pay.settings enable row level security;
alter table pay.settings force row level security;
create policy settings_of_worker on pay.settings to pay_owner
  using ((select current_setting('pay.worker', true)) = 'on');

-- Unlogged, like the answers of pg_net: a crash empties both tables and restarts the ids.
create unlogged table pay.relay_wakes (
  request_id text collate "C" not null,
  woken_at timestamptz not null default now(),
  constraint relay_wakes_pkey primary key (request_id)
);
comment on table pay.relay_wakes is
  'Requests of the last hour with which pg_net has woken the relay.';
comment on column pay.relay_wakes.request_id is 'The id that net.http_post returned, as text.';

alter table pay.relay_wakes enable row level security;
alter table pay.relay_wakes force row level security;
create policy relay_wakes_of_worker on pay.relay_wakes to pay_owner
  using ((select current_setting('pay.worker', true)) = 'on');

-- Operator: the address of POST …/api-v1-payments/internal/relay and the RELAY_TOKEN of the functions.
-- Errors: invalid_parameter_value for an address or token that could not work.
create function pay.configure_relay(p_url text, p_token text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_url !~ '^https?://[^[:space:]]+/api-v1-payments/internal/relay$' then
    raise exception 'relay url must end in /api-v1-payments/internal/relay'
      using errcode = 'invalid_parameter_value';
  end if;
  if p_token !~ '^[!-~]{16,200}$' then
    raise exception 'relay token must be 16 to 200 visible ASCII characters'
      using errcode = 'invalid_parameter_value';
  end if;
  perform set_config('pay.worker', 'on', true);
  insert into pay.settings (name, value)
  values ('relay_url', p_url), ('relay_token', p_token)
  on conflict on constraint settings_pkey do update set value = excluded.value;
end
$$;

-- Where to wake the relay, or no row: when nothing is due, or it is not configured.
create function pay.due_relay()
returns table (url text, token text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('pay.worker', 'on', true);
  if not exists (
    select from pay.webhook_deliveries d
    where d.status = 'pending' and d.next_attempt_at <= now()
      and (d.leased_until is null or d.leased_until <= now())
  ) then
    return;
  end if;
  return query
    select u.value, t.value
    from pay.settings u
    join pay.settings t on t.name = 'relay_token'
    where u.name = 'relay_url';
end
$$;

-- Records a request that wakes the relay, so that pay.health can find its answer, and deletes
-- requests older than an hour.
create function pay.note_wake(p_request_id bigint)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('pay.worker', 'on', true);
  delete from pay.relay_wakes w where w.woken_at < now() - interval '1 hour';
  insert into pay.relay_wakes (request_id) values (p_request_id::text)
  on conflict on constraint relay_wakes_pkey do update set woken_at = excluded.woken_at;
end
$$;

-- The requests of the last hour that woke the relay.
create function pay.recent_wakes()
returns table (request_id bigint, woken_at timestamptz)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('pay.worker', 'on', true);
  return query
    select w.request_id::bigint, w.woken_at from pay.relay_wakes w
    where w.woken_at >= now() - interval '1 hour';
end
$$;

-- The job: wakes the relay when something is due. Runs as the role of the job, which may use pg_net.
create function pay.wake_relay()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_relay record;
  v_request_id bigint;
begin
  for v_relay in select * from pay.due_relay() loop
    -- Dynamic, so that this function can be made where pg_net is not.
    execute 'select net.http_post(url := $1, body := $2, params := $3, headers := $4, timeout_milliseconds := $5)'
    into v_request_id
    using
      v_relay.url,
      '{}'::jsonb,
      '{}'::jsonb,
      jsonb_build_object(
        'Content-Type', 'application/json',
        'Authorization', 'Bearer ' || v_relay.token
      ),
      2000;
    perform pay.note_wake(v_request_id);
  end loop;
end
$$;

grant execute on function pay.configure_relay(text, text) to pay_operator;
grant execute on function pay.due_relay() to pay_operator;
grant execute on function pay.note_wake(bigint) to pay_operator;
grant execute on function pay.recent_wakes() to pay_operator;
grant execute on function pay.wake_relay() to pay_operator;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;

-- Without a clock of the database everything still works but retries, which then need another: what
-- stands in the way is said and does not stop the migration.
do $migration$
declare
  v_every text := '5 seconds';
begin
  if (
    select count(*) from pg_catalog.pg_available_extensions where name in ('pg_cron', 'pg_net')
  ) = 2 then
    begin
      create extension if not exists pg_net;
      create extension if not exists pg_cron;
    exception when others then
      raise warning 'pg_cron and pg_net are there but cannot be used: %', sqlerrm
        using hint = 'No job was scheduled: docs/operations.md, "The jobs", says how to do it.';
    end;
  end if;
  -- By their functions, not their extensions: what matters is what the jobs call.
  if pg_catalog.to_regprocedure('cron.schedule(text,text,text)') is not null
    and pg_catalog.to_regnamespace('net') is not null then
    begin
      execute 'select cron.schedule($1, $2, $3)'
      using 'pay-relay', v_every, 'select pay.wake_relay()';
    exception when others then
      -- Older than 1.5: knows minutes only.
      v_every := '* * * * *';
      execute 'select cron.schedule($1, $2, $3)'
      using 'pay-relay', v_every, 'select pay.wake_relay()';
    end;
    execute 'select cron.schedule($1, $2, $3)'
    -- Batch after batch, each in a transaction of its own, until nothing is left or the time is up.
    -- A block and no procedure: one that commits can pin no search_path.
    using 'pay-retention', '* * * * *', $job$do $$
declare
  v_until timestamptz := clock_timestamp() + interval '45 seconds';
begin
  loop
    exit when pay.purge(clock_timestamp(), 5000) = 0 or clock_timestamp() > v_until;
    commit;
  end loop;
end
$$$job$;
    execute 'select cron.schedule($1, $2, $3)'
    using 'pay-oracles', '41 * * * *', 'select pay.note_findings()';
    execute 'select cron.schedule($1, $2, $3)'
    using 'pay-cron-log', '23 3 * * *',
      'delete from cron.job_run_details where end_time < now() - interval ''7 days''';
  elsif pg_catalog.to_regprocedure('cron.schedule(text,text,text)') is not null
    or pg_catalog.to_regnamespace('net') is not null then
    raise warning 'no job was scheduled: pg_cron and pg_net must both be in this database'
      using hint = 'docs/operations.md, "The jobs", says how to schedule them.';
  end if;
end
$migration$;
