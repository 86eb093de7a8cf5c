-- Purpose: the rate limits of each API key and of each environment, counted in the round trip that
-- does the work.
--
-- A key may make 2 x rate requests in any two seconds: rate a second, with bursts of twice that. The
-- window slides: the part of the previous two seconds that is still inside counts too. The keys of
-- an environment together have a limit of the same form. A request is counted once, for its key;
-- the use of the environment is the sum over its keys.
--
-- p_rate is always {requests a second of the key, of the environment}; 0 means no limit. Null: the
-- request is not limited, or another function counts it.
--
-- Counting must not make the requests of one key wait for each other, and a row stays locked until its
-- transaction has committed. So each key counts in up to 64 stripes, and a request takes any stripe
-- that nobody holds, or makes one whose number nobody else is making: an insert would wait for the
-- other to commit, so the number is reserved by a lock that is only tried. Requests do not see
-- the counts of transactions that have not committed: each limit can be exceeded by as many
-- requests as other isolates have under way (64 changes in a statement). The table is unlogged:
-- after a crash counting starts anew.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

create unlogged table pay.rate_counters (
  environment_id text collate "C" not null,
  api_key_id text collate "C" not null,
  stripe smallint not null,
  window_number bigint not null,
  current_count integer not null,
  previous_count integer not null,
  constraint rate_counters_pkey primary key (environment_id, api_key_id, stripe),
  constraint rate_counters_stripe_in_range check (stripe between 0 and 63)
) with (fillfactor = 50);
comment on table pay.rate_counters is 'Requests of each key in the two-second window and the one before.';

-- Sums the use of an environment's keys: reads only the rows of the last two windows, however many
-- keys were active before. A row changes its entry once in a window, so most updates stay
-- heap-only.
create index rate_counters_recent on pay.rate_counters (environment_id, window_number);

alter table pay.rate_counters enable row level security;
alter table pay.rate_counters force row level security;
create policy rate_counters_of_environment on pay.rate_counters to pay_owner using (
  environment_id = any ((select nullif(s.ids, '')::text[] from (select current_setting('pay.environment_ids', true) as ids) s)::text[])
  or (select current_setting('pay.worker', true)) = 'on'
);

-- How many windows a counter may be ahead of a request: five minutes. A request is counted at the
-- time at which it began, and other requests can finish earlier. Counters further ahead come from a
-- wrong clock and are ignored. Internal.
create function pay.max_windows_ahead()
returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select 150 $$;

-- The requests that the keys of an environment have used in the sliding window: a row for each
-- active key. Internal.
create function pay.requests_used(p_environment_id text, p_at timestamptz)
returns table (api_key_id text, used numeric)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_seconds numeric := extract(epoch from p_at) / 2;
  v_window bigint := floor(v_seconds);
begin
  return query
    select c.api_key_id,
      sum(case when c.window_number >= v_window then c.current_count else 0 end)
      + (1 - (v_seconds - v_window))
        * sum(case when c.window_number >= v_window then c.previous_count else c.current_count end)
    from pay.rate_counters c
    where c.environment_id = p_environment_id
      and c.window_number between v_window - 1 and v_window + pay.max_windows_ahead()
    group by c.api_key_id;
end
$$;

-- The remainder for each request of a list, [{n, key_hash, at, rate}], after it and those before it
-- in the list; negative if a limit is exceeded, null without a limit. Element n belongs to request
-- n. Each environment of the list is read once. Internal.
create function pay.requests_left(p_requests json)
returns integer[]
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Most lists have one request, and planning for more costs more than the rest of the counting.
  if json_array_length(p_requests) = 1 then
    return (
      -- Decoded here: under row-level security a call in the join condition would prevent an index
      -- scan.
      with asked as materialized (
        select c.at, c.rate, decode(c.key_hash, 'hex') as hash
        from json_to_record(p_requests -> 0) as c (key_hash text, at timestamptz, rate integer[])
      )
      select array[pay.count_request(s.environment_id, s.api_key_id, a.at, a.rate, false)]
      from asked a
      join pay.api_key_secrets s on s.hash = a.hash
    );
  end if;
  return (
    with asked as materialized (
      select c.n, c.at, c.rate, decode(c.key_hash, 'hex') as hash
      from json_to_recordset(p_requests) as c (
        n integer, key_hash text, at timestamptz, rate integer[]
      )
    ),
    request as materialized (
      select a.n, a.at, a.rate, s.environment_id, s.api_key_id,
        row_number() over (partition by s.api_key_id, a.rate is null order by a.n) as of_key,
        row_number() over (partition by s.environment_id, a.rate is null order by a.n)
          as of_environment
      from asked a
      left join pay.api_key_secrets s on s.hash = a.hash
    ),
    used as materialized (
      select e.environment_id, u.api_key_id, u.used,
        sum(u.used) over (partition by e.environment_id) as of_environment
      from (
        select r.environment_id, max(r.at) as at from request r
        where r.environment_id is not null and r.rate is not null
        group by r.environment_id
      ) e
      cross join lateral pay.requests_used(e.environment_id, e.at) u
    ),
    total as materialized (
      select u.environment_id, max(u.of_environment) as used from used u group by u.environment_id
    )
    select array_agg(
      -- A limit of 0 is none, and least() passes over its null.
      floor(least(
        2 * nullif(r.rate[1], 0) - r.of_key - coalesce(u.used, 0),
        2 * nullif(r.rate[2], 0) - r.of_environment - coalesce(t.used, 0)
      ))::integer
      order by r.n)
    from request r
    left join used u on u.environment_id = r.environment_id and u.api_key_id = r.api_key_id
    left join total t on t.environment_id = r.environment_id
  );
end
$$;

-- Counts requests of a key. A counter whose window is ahead of p_at keeps it: a request that began
-- long ago must not clear the counter. Internal.
create function pay.add_requests(
  p_environment_id text,
  p_api_key_id text,
  p_at timestamptz,
  p_requests integer
)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_window bigint := floor(extract(epoch from p_at) / 2);
  v_stripe smallint;
begin
  select c.stripe into v_stripe
  from pay.rate_counters c
  where c.environment_id = p_environment_id and c.api_key_id = p_api_key_id
  order by c.stripe limit 1
  for update skip locked;
  if v_stripe is not null then
    update pay.rate_counters c
    set window_number = case
        when c.window_number between v_window and v_window + pay.max_windows_ahead()
          then c.window_number
        else v_window
      end,
      current_count = p_requests + case
        when c.window_number between v_window and v_window + pay.max_windows_ahead()
          then c.current_count
        else 0
      end,
      previous_count = case
        when c.window_number between v_window and v_window + pay.max_windows_ahead()
          then c.previous_count
        when c.window_number = v_window - 1 then c.current_count
        else 0
      end
    where c.environment_id = p_environment_id and c.api_key_id = p_api_key_id
      and c.stripe = v_stripe;
    return;
  end if;
  -- All stripes are locked: insert another. If 64 are locked, these requests are not counted.
  for v_stripe in
    select free.n from generate_series(0, 63) as free (n)
    where not exists (
      select from pay.rate_counters c
      where c.environment_id = p_environment_id and c.api_key_id = p_api_key_id
        and c.stripe = free.n
    )
    order by free.n
  loop
    continue when not pg_try_advisory_xact_lock(
      hashtextextended('stripe ' || p_api_key_id, v_stripe));
    insert into pay.rate_counters
      (environment_id, api_key_id, stripe, window_number, current_count, previous_count)
    values (p_environment_id, p_api_key_id, v_stripe, v_window, p_requests, 0)
    on conflict on constraint rate_counters_pkey do nothing;
    exit when found;
  end loop;
end
$$;

-- The smaller remainder of a key and its environment after this request; -1: a limit is reached and
-- the request is not counted; null: not limited.
-- p_count: whether to count the request. Internal.
create function pay.count_request(
  p_environment_id text,
  p_api_key_id text,
  p_at timestamptz,
  p_rate integer[],
  p_count boolean
)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_left integer;
begin
  -- As in pay.requests_left.
  select floor(least(
    2 * nullif(p_rate[1], 0) - 1 - coalesce(sum(u.used) filter (where u.api_key_id = p_api_key_id), 0),
    2 * nullif(p_rate[2], 0) - 1 - coalesce(sum(u.used), 0)
  ))::integer
  into v_left
  from pay.requests_used(p_environment_id, p_at) u;
  if v_left >= 0 and p_count then
    perform pay.add_requests(p_environment_id, p_api_key_id, p_at, 1);
  end if;
  return case when v_left is not null then greatest(v_left, -1) end;
end
$$;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
