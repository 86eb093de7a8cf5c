-- Purpose: the rate limits of keys and accounts, and the counting of requests (ADR 0006).

-- The number of windows by which a counter may be ahead of a request: five minutes. A request is
-- counted at the time at which it began, and requests that began later can be counted earlier. A
-- counter further ahead was written by a wrong clock and is ignored.
create or replace function pay_internal.max_windows_ahead()
returns integer language sql immutable parallel safe as $$ select 150 $$;

-- The requests that the keys of an account in one mode have used in the sliding window: a row for
-- each active key.
create or replace function pay_internal.requests_used(
  p_account text, p_livemode boolean, p_at timestamptz
) returns table (api_key_id text, used numeric) language plpgsql volatile rows 10 as $$
declare
  v_seconds numeric := extract(epoch from p_at) / 2;
  v_window bigint := floor(v_seconds);
  -- The account's other sandboxes are not open.
  v_was_worker constant boolean := pay_internal.act_as_worker();
begin
  return query
    select c.api_key_id,
      sum(case when c.window_number >= v_window then c.current_count else 0 end)
      + (1 - (v_seconds - v_window))
        * sum(case when c.window_number >= v_window then c.previous_count else c.current_count end)
    from pay.rate_counters c
    where c.account = p_account and c.livemode = p_livemode
      and c.window_number between v_window - 1 and v_window + pay_internal.max_windows_ahead()
    group by c.api_key_id;
  perform pay_internal.act_as_worker(v_was_worker);
end $$;

-- Computes how many requests the limits still allow after each request of a list, as if the
-- requests before it in the list were counted. The number is negative if a limit is reached. Then
-- the outcome is rate_limited, with two exceptions: a replay is not counted, and a forbidden
-- request must not find a stored response before pay_internal.count_requests refuses it. Each
-- account is read once.
-- p_key_rates, p_account_rates  for each request the limit of its key and of its account; 0 or null
--                               is no limit
-- p_counts                      whether to count the requests at once
create or replace function pay_internal.limit_requests(
  p_found pay.admission[], p_key_rates integer[], p_account_rates integer[], p_counts boolean
) returns pay.admission[] language plpgsql volatile as $$
declare
  v_request record;
  v_account text;
  v_livemode boolean;
  v_keys text[];
  v_used numeric[];
  v_total numeric;
  v_key integer;
  v_left integer;
begin
  for v_request in
    select f.n, f.account, f.livemode, f.api_key_id, f.outcome,
      -- Limits are in real time.
      max(f.at - coalesce(f.ahead, '0')) over () as at,
      nullif(p_key_rates[f.n], 0) as key_rate,
      nullif(p_account_rates[f.n], 0) as account_rate
    from unnest(p_found) f
    where f.outcome not in ('unauthorized', 'resetting', 'outdated')
      and (p_key_rates[f.n] > 0 or p_account_rates[f.n] > 0)
    order by f.account, f.livemode, f.n
  loop
    if (v_request.account, v_request.livemode) is distinct from (v_account, v_livemode) then
      v_account := v_request.account;
      v_livemode := v_request.livemode;
      select array_agg(u.api_key_id), array_agg(u.used), coalesce(sum(u.used), 0)
      into v_keys, v_used, v_total
      from pay_internal.requests_used(v_account, v_livemode, v_request.at) u;
    end if;
    v_key := array_position(v_keys, v_request.api_key_id);
    if v_key is null then
      v_keys := v_keys || v_request.api_key_id;
      v_used := v_used || 0::numeric;
      v_key := cardinality(v_keys);
    end if;
    -- least() ignores null, which stands for no limit.
    v_left := floor(least(
      2 * v_request.key_rate - 1 - v_used[v_key], 2 * v_request.account_rate - 1 - v_total));
    p_found[v_request.n].remaining := v_left;
    continue when v_request.outcome = 'replay';
    if v_left >= 0 then
      v_used[v_key] := v_used[v_key] + 1;
      v_total := v_total + 1;
    elsif v_request.outcome <> 'forbidden' then
      p_found[v_request.n].outcome := 'rate_limited';
    end if;
  end loop;
  return case when p_counts then pay_internal.count_requests(p_found) else p_found end;
end $$;

-- Does the same as pay_internal.limit_requests for a list of reads, which it also counts, or of
-- writes. In a list of writes a replay must not use up the limit of the other requests. The
-- function looks for stored responses only if a limit is reached, because most lists have no
-- replays.
create or replace function pay_internal.limit_list(
  p_requests pay_internal.request[], p_found pay.admission[], p_key_rates integer[],
  p_account_rates integer[], p_is_read boolean
) returns pay.admission[] language plpgsql volatile as $$
declare
  v_limited pay.admission[] := pay_internal.limit_requests(
    p_found, p_key_rates, p_account_rates, p_is_read);
begin
  if not p_is_read and cardinality(p_found) > 1 and exists (
    select from unnest(v_limited) f where f.outcome = 'rate_limited'
  ) then
    v_limited := pay_internal.limit_requests(
      pay_internal.find_responses(p_requests, p_found, true), p_key_rates, p_account_rates, false);
  end if;
  return v_limited;
end $$;

-- Counts requests of the key of p_access, and the bytes that they add. If the window of a counter
-- is ahead of p_at, it stays, because a request that began long ago must not clear the counter.
create or replace function pay_internal.add_requests(
  p_access pay.admission, p_at timestamptz, p_requests integer, p_bytes bigint
) returns void language plpgsql volatile as $$
declare
  v_window bigint := floor(extract(epoch from p_at) / 2);
  v_stripe smallint;
begin
  select c.stripe into v_stripe
  from pay.rate_counters c
  where c.environment_id = p_access.environment_id and c.api_key_id = p_access.api_key_id
  order by c.stripe limit 1
  for update skip locked;
  if v_stripe is not null then
    update pay.rate_counters c
    set window_number = case
        when c.window_number between v_window and v_window + pay_internal.max_windows_ahead()
          then c.window_number
        else v_window
      end,
      current_count = p_requests + case
        when c.window_number between v_window and v_window + pay_internal.max_windows_ahead()
          then c.current_count
        else 0
      end,
      previous_count = case
        when c.window_number between v_window and v_window + pay_internal.max_windows_ahead()
          then c.previous_count
        when c.window_number = v_window - 1 then c.current_count
        else 0
      end,
      stored_bytes = c.stored_bytes + p_bytes
    where c.environment_id = p_access.environment_id and c.api_key_id = p_access.api_key_id
      and c.stripe = v_stripe;
    return;
  end if;
  -- All stripes are locked: insert another. If 64 are locked, these requests are not counted.
  for v_stripe in
    select free.n from generate_series(0, 63) as free (n)
    where not exists (
      select from pay.rate_counters c
      where c.environment_id = p_access.environment_id and c.api_key_id = p_access.api_key_id
        and c.stripe = free.n
    )
    order by free.n
  loop
    continue when not pg_try_advisory_xact_lock(
      hashtextextended('stripe ' || p_access.api_key_id, v_stripe));
    insert into pay.rate_counters
      (environment_id, account, livemode, api_key_id, stripe, window_number, current_count,
        previous_count, stored_bytes)
    values (p_access.environment_id, p_access.account, p_access.livemode, p_access.api_key_id,
      v_stripe, v_window, p_requests, 0, p_bytes)
    on conflict on constraint rate_counters_pkey do nothing;
    exit when found;
  end loop;
end $$;

-- Counts the requests of a list after their outcomes are known, all requests of a key together,
-- with the bytes of those that may go on, and returns the list with the remainders for the
-- responses. It does not count replays, requests that were refused for their limit, and requests
-- that are sent again.
create or replace function pay_internal.count_requests(p_found pay.admission[])
returns pay.admission[] language plpgsql volatile as $$
declare
  v_told record;
begin
  perform pay_internal.add_requests(c.access, c.at, c.requests,
    coalesce(c.bytes + pay_internal.delivery_bytes((c.access).environment_id, c.events), 0))
  from (
    select (array_agg(f))[1] as access, max(f.at - coalesce(f.ahead, '0')) as at,
      (count(*) filter (where f.remaining >= 0))::integer as requests,
      sum(f.stored[1]) filter (where f.outcome = 'ok') as bytes,
      sum(f.stored[2]) filter (where f.outcome = 'ok') as events
    from unnest(p_found) f
    where (f.remaining >= 0 or f.stored is not null and f.remaining is null)
      and f.outcome not in ('replay', 'resetting', 'outdated', 'stale', 'expired', 'uncounted')
    group by f.environment_id, f.api_key_id
  ) c;
  for v_told in
    select f.n, f.outcome, f.remaining from unnest(p_found) f
    where f.remaining < 0 or (f.remaining is not null
      and f.outcome in ('replay', 'resetting', 'outdated', 'stale', 'expired', 'uncounted'))
  loop
    if v_told.outcome = 'forbidden' then p_found[v_told.n].outcome := 'rate_limited'; end if;
    p_found[v_told.n].remaining := case
      when v_told.outcome in ('resetting', 'outdated', 'stale', 'expired', 'uncounted') then null
      when v_told.outcome = 'replay' then greatest(0, v_told.remaining + 1)
      else 0
    end;
  end loop;
  return p_found;
end $$;

-- Retention: deletes one batch of the counters that were idle for an hour. Returns the number of
-- deleted rows. p_environment_id: null is all. Leaves locked rows for the next run.
create or replace function pay_internal.purge_counters(
  p_environment_id text, p_batch integer, out deleted bigint
) language plpgsql volatile as $$
begin
  delete from pay.rate_counters c
  where c.ctid = any (array(
    select o.ctid from pay.rate_counters o
    where o.window_number < floor(extract(epoch from pay_internal.server_time()) / 2) - 1800
      and (p_environment_id is null or o.environment_id = p_environment_id)
    limit p_batch for update skip locked
  ));
  get diagnostics deleted = row_count;
end $$;
