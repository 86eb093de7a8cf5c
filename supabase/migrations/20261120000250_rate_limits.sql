-- Purpose: the rate limit of each API key, counted in the round trip that does the work.
--
-- A key may make 2 x rate requests in any two seconds: rate a second, with bursts of twice that. The
-- window slides: the part of the previous two seconds that is still inside counts too.
--
-- Counting must not make the requests of one key wait for each other, and a row stays locked until its
-- transaction has committed. So each key counts in up to 64 stripes, and a request takes any stripe
-- that nobody holds, or makes one whose number nobody else is making: an insert would wait for the
-- other to commit, so the number is reserved by a lock that is only tried. What requests under way have
-- counted is not seen by others: the limit can be passed by as many requests as other isolates have
-- under way (64 changes in a statement). The table is unlogged: after a crash counting starts anew.

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

alter table pay.rate_counters enable row level security;
alter table pay.rate_counters force row level security;
create policy rate_counters_of_environment on pay.rate_counters to pay_owner using (
  environment_id = any ((select nullif(s.ids, '')::text[] from (select current_setting('pay.environment_ids', true) as ids) s)::text[])
  or (select current_setting('pay.worker', true)) = 'on'
);

-- How many requests a key has left, less this one; -1: none, and this one is not counted.
-- p_count: whether to count it, or only to ask.
create function pay.count_request(
  p_environment_id text,
  p_api_key_id text,
  p_at timestamptz,
  p_rate integer,
  p_count boolean
)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_seconds numeric := extract(epoch from p_at);
  v_window bigint := floor(v_seconds / 2);
  v_fresh numeric := 1 - (v_seconds / 2 - v_window);
  v_left integer;
  v_stripe smallint;
begin
  select floor(2 * p_rate - 1 - coalesce(sum(
    case
      when c.window_number = v_window then c.current_count + c.previous_count * v_fresh
      when c.window_number = v_window - 1 then c.current_count * v_fresh
      else 0
    end), 0))
  into v_left
  from pay.rate_counters c
  where c.environment_id = p_environment_id and c.api_key_id = p_api_key_id;
  if v_left < 0 or not p_count then
    return greatest(v_left, -1);
  end if;

  select c.stripe into v_stripe
  from pay.rate_counters c
  where c.environment_id = p_environment_id and c.api_key_id = p_api_key_id
  order by c.stripe limit 1
  for update skip locked;
  if v_stripe is not null then
    update pay.rate_counters c
    set window_number = v_window,
      current_count = 1 + case when c.window_number = v_window then c.current_count else 0 end,
      previous_count = case
        when c.window_number = v_window then c.previous_count
        when c.window_number = v_window - 1 then c.current_count
        else 0
      end
    where c.environment_id = p_environment_id and c.api_key_id = p_api_key_id
      and c.stripe = v_stripe;
  else
    -- All stripes are held: one more. With 64 of them held this request goes uncounted.
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
      values (p_environment_id, p_api_key_id, v_stripe, v_window, 1, 0)
      on conflict on constraint rate_counters_pkey do nothing;
      exit when found;
    end loop;
  end if;
  return v_left;
end
$$;
comment on function pay.count_request is 'Internal.';

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
