-- Purpose: pay.health, one row about the state of the service, for the operator and for monitoring.
-- docs/operations/monitoring.md says which values need attention.
--
-- Every number is cheap at any size of the database: it comes from an index, covers the last hour,
-- or stops at 100 000. Each part of the row is a function of its own, which pay_operator may
-- execute.

-- The state of the outbox: deliveries and endpoints. A tester's receivers can be slow or fail on
-- purpose, so the ages and failures are those of live environments.
create or replace function pay.read_outbox() returns table (
  due_deliveries bigint, oldest_due_seconds double precision, pending_deliveries bigint,
  failed_deliveries_last_hour bigint, failing_endpoints bigint
) language plpgsql volatile security definer rows 1 as $$
declare
  v_most constant integer := 100000;
begin
  perform pay_internal.act_as_worker();
  return query select
    (
      select count(*) from (
        select from pay.webhook_deliveries d
        where d.status = 'pending' and d.next_attempt_at <= now()
          and (d.leased_until is null or d.leased_until <= now())
        limit v_most
      ) due
    ),
    (
      select coalesce(extract(epoch from now() - min(o.since)), 0)::double precision
      from pay.webhook_endpoints t
      join pay.environments e on e.id = t.environment_id and e.livemode
      cross join lateral (
        (
          select d.next_attempt_at as since from pay.webhook_deliveries d
          where d.endpoint_id = t.id and d.next_attempt_at <= now() and d.expired_leases = 0
            and (d.leased_until is null or d.leased_until <= now())
          order by d.next_attempt_at limit 1
        )
        union all
        select d.next_attempt_at from pay.webhook_deliveries d
        where d.endpoint_id = t.id and d.next_attempt_at <= now() and d.expired_leases > 0
          and (d.leased_until is null or d.leased_until <= now())
      ) o
    ),
    (
      select count(*) from (
        select from pay.webhook_deliveries d where d.status = 'pending' limit v_most
      ) pending
    ),
    (
      select count(*) from pay.environments e
      join pay.webhook_deliveries d on d.environment_id = e.id
        and d.id >= pay_internal.id_floor('whd_', now() - interval '1 hour')
      where d.status = 'failed' and e.livemode and e.retired_at is null
    ),
    (
      select count(*) from pay.webhook_endpoints t
      join pay.environments e on e.id = t.environment_id and e.livemode
      where t.status = 'enabled' and t.failing_since is not null
    );
end $$;
grant execute on function pay.read_outbox to pay_operator;

-- The breaches of the hourly check of the books.
create or replace function pay.read_books() returns table (
  invariant_breaches bigint, books_checked_at timestamptz
) language plpgsql volatile security definer rows 1 as $$
declare
  v_most constant integer := 100000;
begin
  perform pay_internal.act_as_worker();
  return query select
    (
      select case
        when exists (select from pay.settings s where s.name = 'books_checked_at') then count(*)
      end
      from (select from pay.invariant_breaches limit v_most) breaches
    ),
    (
      select to_timestamp(s.value::double precision) from pay.settings s
      where s.name = 'books_checked_at'
    );
end $$;
grant execute on function pay.read_books to pay_operator;

-- Whether retention is behind, what waits for it and what sandboxes store, the number of keys,
-- whether the dispatcher has an address, and the
-- accounts that wait because they move.
create or replace function pay.read_service() returns table (
  is_retention_behind boolean, waiting_environments bigint, oldest_waiting_seconds double precision,
  largest_storage_bytes bigint, test_keys bigint, live_keys bigint,
  is_dispatcher_configured boolean, waiting_accounts bigint
) language plpgsql volatile security definer rows 1 as $$
declare
  v_most constant integer := 100000;
begin
  perform pay_internal.act_as_worker();
  return query select
    exists (
      select from pay.environments e
      -- Retention obeys the clock of a sandbox, which can stand.
      left join pay_internal.sandbox_times clock on clock.environment_id = e.id
      cross join lateral (
        select v.id from pay.events v where v.environment_id = e.id order by v.id limit 1
      ) oldest
      where oldest.id < pay_internal.id_floor('evt_', coalesce(clock.now, now())
        - interval '31 days')
    ) or coalesce(waiting.oldest < now() - interval '1 hour', false),
    waiting.environments,
    coalesce(extract(epoch from now() - waiting.oldest), 0)::double precision,
    (select coalesce(max(e.stored_gb), 0)::bigint << 30 from pay.environments e),
    (select count(*) from pay.api_keys k where not k.livemode and k.revoked_at is null),
    (select count(*) from pay.api_keys k where k.livemode and k.revoked_at is null),
    (select count(*) = 2 from pay.settings s where s.name in ('relay_url', 'relay_token')),
    (
      select count(distinct e.account) from pay.environments e
      where e.moving is not null and e.moving <> 'arriving'
    )
  from (
    select count(*) as environments, min(e.retired_at) as oldest from (
      select e.retired_at from pay.environments e where e.retired_at is not null limit v_most
    ) e
  ) waiting;
end $$;
grant execute on function pay.read_service to pay_operator;

-- The runs of the jobs in pg_cron. Runs with the caller's rights; nulls if pg_cron is not installed
-- or the caller may not read its runs.
create or replace function pay.read_cron() returns table (
  last_dispatcher_wake_at timestamptz, last_retention_at timestamptz, failed_cron_runs bigint
) language plpgsql stable rows 1 as $$
begin
  if to_regclass('cron.job_run_details') is null then
    return query select null::timestamptz, null::timestamptz, null::bigint;
    return;
  end if;
  -- The newest runs, by their primary key: some 80 minutes of our jobs.
  return query execute '
    select max(r.start_time) filter (where j.jobname = ''pay-dispatcher''),
      max(r.start_time) filter (where j.jobname = ''pay-retention''),
      count(*) filter (where r.status = ''failed'')
    from (select * from cron.job_run_details order by runid desc limit 1000) r
    join cron.job j on j.jobid = r.jobid and j.jobname like ''pay-%''';
exception when insufficient_privilege then
  return query select null::timestamptz, null::timestamptz, null::bigint;
end $$;
grant execute on function pay.read_cron to pay_operator;

-- The responses of the functions to the requests with which pg_net woke the dispatcher. Runs with
-- the caller's rights; nulls if pg_net is not installed or the caller may not read its responses.
-- pg_cron counts a queued request as a success. Other jobs may use pg_net: a response belongs to a
-- wake if it has its id and came within 5 minutes, because the ids restart after a crash. A wake
-- without a response counts as failed, because the worker of pg_net does not run. pg_net can delete
-- responses that are older than ten minutes (pg_net.ttl).
create or replace function pay.read_wakes()
returns table (last_dispatcher_status integer, failed_dispatcher_wakes_last_hour bigint)
language plpgsql volatile rows 1 as $$
begin
  if to_regclass('net._http_response') is null then
    return query select null::integer, null::bigint;
    return;
  end if;
  return query execute '
    with wake as materialized (
      select w.woken_at, r.id is not null as has_response, r.status_code
      from pay.recent_wakes() w
      left join net._http_response r on r.id = w.request_id
        and r.created between w.woken_at and w.woken_at + interval ''5 minutes''
        and r.created >= now() - interval ''1 hour''
    )
    select
      (select k.status_code from wake k where k.has_response order by k.woken_at desc limit 1),
      (
        select count(*) from wake k
        where case
          when k.has_response then coalesce(k.status_code, 0) not between 200 and 299
          else k.woken_at between now() - interval ''10 minutes'' and now() - interval ''1 minute''
        end
      )';
exception when insufficient_privilege then
  return query select null::integer, null::bigint;
end $$;
grant execute on function pay.read_wakes to pay_operator;

-- Sent operations of live providers without a result, their provider events that match no payment
-- or transfer, and accounts whose readings fail. An operation that the worker sends later, such as
-- the end of a payment whose payer does nothing, does not count.
create or replace function pay.read_providers() returns table (
  unsettled_operations bigint, oldest_unsettled_operation_seconds double precision,
  unmatched_events bigint, stalled_readings bigint
) language plpgsql volatile security definer rows 1 as $$
declare
  v_most constant integer := 100000;
begin
  perform pay_internal.act_as_worker();
  return query select
    (
      select count(*) from (
        select from pay.provider_operations c
        join pay.environments e on e.id = c.environment_id and e.retired_at is null
        where c.state <> 'settled' and c.first_sent_at is not null and c.account_id <> 'sandbox'
        limit v_most
      ) unsettled
    ),
    (
      select coalesce(extract(epoch from now() - min(o.first_sent_at)), 0)::double precision
      from (
        select c.first_sent_at from pay.provider_operations c
        join pay.environments e on e.id = c.environment_id and e.retired_at is null
        where c.state <> 'settled' and c.first_sent_at is not null and c.account_id <> 'sandbox'
        order by c.first_sent_at limit 1
      ) o
    ),
    (
      select count(*) from (
        select from pay.provider_events reported
        join pay.environments e on e.id = reported.environment_id and e.retired_at is null
        where e.livemode and reported.outcome = 'unmatched' and reported.dismissed_at is null
        limit v_most
      ) unmatched
    ),
    (
      select count(*) from pay.provider_cursors u
      where u.stalled_since < now() - interval '5 minutes'
    );
end $$;
grant execute on function pay.read_providers to pay_operator;

-- Parameters of the server with which a transaction that was committed can be lost, or with which
-- functions do not see what others have committed. Their values in the session of the caller.
create or replace function pay.read_server() returns table (unfit_parameters text)
language plpgsql stable security definer rows 1 as $$
begin
  return query
    select string_agg(n.name || ' = ' || current_setting(n.name), ', ' order by n.name)
    from unnest(array[
      'default_transaction_isolation', 'fsync', 'full_page_writes', 'synchronous_commit'
    ]) n (name)
    where case n.name
      when 'default_transaction_isolation' then current_setting(n.name) <> 'read committed'
      else current_setting(n.name) = 'off'
    end;
end $$;
grant execute on function pay.read_server to pay_operator;

create or replace view pay.health with (security_invoker = true) as
  select o.*, b.*, s.*, c.*, w.*, p.*, v.*
  from pay.read_outbox() o
  cross join pay.read_books() b
  cross join pay.read_service() s
  cross join pay.read_cron() c
  cross join pay.read_wakes() w
  cross join pay.read_providers() p
  cross join pay.read_server() v;
comment on view pay.health is 'One row about the state of the service.';
comment on column pay.health.due_deliveries is 'Deliveries that could be sent now, up to 100 000.';
comment on column pay.health.oldest_due_seconds is
  'For how many seconds the oldest due live delivery has been due; 0 if none is due.';
comment on column pay.health.pending_deliveries is
  'Deliveries that are due, under way or waiting for a retry, up to 100 000.';
comment on column pay.health.failed_deliveries_last_hour is
  'Live deliveries created in the last hour that have failed.';
comment on column pay.health.failing_endpoints is
  'Enabled live endpoints whose last attempt failed.';
comment on column pay.health.invariant_breaches is
  'Alarms of the check of the books. Should be 0. Null if the check has never run.';
comment on column pay.health.books_checked_at is 'Time of the last run of pay.note_breaches.';
comment on column pay.health.is_retention_behind is
  'True if there are events older than 31 days, or environments that have waited for an hour.';
comment on column pay.health.waiting_environments is
  'Environments that wait for their deletion after a reset or their end, up to 100 000.';
comment on column pay.health.oldest_waiting_seconds is
  'For how many seconds the oldest of them has waited; 0 if there is none.';
comment on column pay.health.largest_storage_bytes is
  'Bytes that the sandboxes of one account store at most, by estimate, in steps of 2^30.';
comment on column pay.health.test_keys is 'Number of API keys of sandboxes that are not revoked.';
comment on column pay.health.live_keys is 'Number of live API keys that are not revoked.';
comment on column pay.health.is_dispatcher_configured is 'True if pay.configure_relay was called.';
comment on column pay.health.waiting_accounts is
  'Accounts whose jobs or requests wait, because they move to another cell. Should be 0 soon.';
comment on column pay.health.last_dispatcher_wake_at is
  'Time of the last run of the job that wakes the dispatcher. Null if none is visible.';
comment on column pay.health.last_retention_at is
  'Time of the last run of the retention job. Null if none is visible.';
comment on column pay.health.failed_cron_runs is
  'Failed runs of the jobs of this service, among the last 1000 runs of all jobs.';
comment on column pay.health.last_dispatcher_status is
  'HTTP status of the response to the last wake of the dispatcher. Null if there is no response.';
comment on column pay.health.failed_dispatcher_wakes_last_hour is
  'Wakes without a 2xx response. Null if pg_net is not installed or not readable.';
comment on column pay.health.unsettled_operations is
  'Sent operations of providers whose result is not recorded, up to 100 000.';
comment on column pay.health.oldest_unsettled_operation_seconds is
  'Seconds since the first attempt of the oldest of them; 0 if there is none.';
comment on column pay.health.unmatched_events is
  'Provider events without a payment or transfer, not dismissed, up to 100 000. Should be 0.';
comment on column pay.health.stalled_readings is
  'Accounts of providers whose readings have failed for five minutes. Should be 0.';
comment on column pay.health.unfit_parameters is
  'Parameters of the server whose values do not fit the service. Should be null.';
grant select on pay.health to pay_operator;

-- The columns of pay.health as metrics, with their comments. A time is in seconds since 1970, a
-- boolean is 0 or 1, and the unfit parameters are counted. Another column that is null has no row.
-- Without those about pg_cron and pg_net: the owner of this function may not read all their rows.
create or replace function pay.read_metrics()
returns table (name text, help text, value double precision)
language plpgsql volatile security definer rows 20
set enable_seqscan = on set plan_cache_mode = auto as $$
begin
  return query
    select
      case a.atttypid
        when 'timestamptz'::regtype then regexp_replace(a.attname, '_at$', '_timestamp_seconds')
        else regexp_replace(a.attname, '^is_', '')
      end,
      col_description(a.attrelid, a.attnum),
      case a.atttypid
        when 'boolean'::regtype then (read.value::boolean)::integer
        when 'timestamptz'::regtype then extract(epoch from read.value::timestamptz)
        when 'text'::regtype then coalesce(cardinality(string_to_array(read.value, ', ')), 0)
        else read.value::double precision
      end
    from (
      select o.*, b.*, s.*, p.*, v.*
      from pay.read_outbox() o
      cross join pay.read_books() b
      cross join pay.read_service() s
      cross join pay.read_providers() p
      cross join pay.read_server() v
    ) h
    cross join jsonb_each_text(to_jsonb(h)) read
    join pg_attribute a on a.attrelid = 'pay.health'::regclass and a.attname = read.key
    where read.value is not null or a.atttypid = 'text'::regtype
    order by a.attnum;
end $$;
grant execute on function pay.read_metrics to pay_api;
