-- Purpose: rate_limits

-- How many windows a counter may be ahead of a request: five minutes. A request is counted at the
-- time at which it began, and other requests can finish earlier. Counters further ahead come from a
-- wrong clock and are ignored. Internal.
create or replace function pay.max_windows_ahead()
returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select 150 $$;

-- The requests that the keys of an environment have used in the sliding window: a row for each
-- active key. Internal.
create or replace function pay.requests_used(p_environment_id text, p_at timestamptz)
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
create or replace function pay.requests_left(p_requests json)
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
create or replace function pay.add_requests(
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
create or replace function pay.count_request(
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
