-- Purpose: the rate limits of each API key and of each account, counted in the round trip that does
-- the work.
--
-- A key may make 2 x rate requests in any two seconds: rate a second, with bursts of twice that. The
-- window slides: the part of the previous two seconds that is still inside counts too. The live keys
-- of an account together have a limit of the same form, and so have the keys of all its sandboxes. A
-- request is counted once, for its key; the use of the account is the sum over its keys.
--
-- p_rate is always {requests a second of the key, of the account}; 0 means no limit. Null: the
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
  account text not null,
  livemode boolean not null,
  api_key_id text collate "C" not null,
  stripe smallint not null,
  window_number bigint not null,
  current_count integer not null,
  previous_count integer not null,
  constraint rate_counters_pkey primary key (environment_id, api_key_id, stripe),
  constraint rate_counters_stripe_in_range check (stripe between 0 and 63)
) with (fillfactor = 50);
comment on table pay.rate_counters is 'Requests of each key in the two-second window and the one before.';
comment on column pay.rate_counters.environment_id is 'The environment of the key.';
comment on column pay.rate_counters.account is 'The account of the environment.';
comment on column pay.rate_counters.livemode is 'The mode of the key. Requests in sandboxes use up nothing of the limit of live keys.';
comment on column pay.rate_counters.api_key_id is 'The key that made the requests.';
comment on column pay.rate_counters.stripe is
  '0 to 63; requests at the same time count in different stripes.';
comment on column pay.rate_counters.window_number is 'Number of the two-second window since 1970.';
comment on column pay.rate_counters.current_count is 'Requests in that window.';
comment on column pay.rate_counters.previous_count is 'Requests in the window before it.';

-- Sums the use of an account's keys: reads only the rows of the last two windows, however many
-- keys were active before. A row changes its entry once in a window, so most updates stay
-- heap-only.
create index rate_counters_recent on pay.rate_counters (account, livemode, window_number);
comment on index pay.rate_counters_recent is
  'pay.requests_used: the use of an account in the last two windows.';

alter table pay.rate_counters enable row level security;
alter table pay.rate_counters force row level security;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
