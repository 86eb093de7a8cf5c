-- Purpose: environments (the data space that keys open), API keys, their secrets and their rate
-- limits.
--
-- A key may make 2 x rate requests in any two seconds: rate a second, with bursts of twice that.
-- The window slides: the part of the previous two seconds that is still inside counts too. Counting
-- must not make the requests of one key wait for each other, and a row stays locked until its
-- transaction has committed. So each key counts in up to 64 stripes, and a request takes any stripe
-- that nobody holds (supabase/schemas/rate_limits.sql).
--
-- 20261124001000_policies.sql turns on row-level security for every table and makes its policies.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

create table pay.environments (
  id text collate "C" not null,
  public_id text collate "C" not null,
  account text not null,
  livemode boolean not null,
  name text not null,
  created_at timestamptz not null default now(),
  retired_at timestamptz,
  ends_at timestamptz,
  moving text collate "C",
  stored_gb integer not null default 0,
  resets_until timestamptz,
  merchant jsonb,
  constraint environments_pkey primary key (id),
  constraint environments_id_livemode_key unique (id, livemode),
  constraint environments_id_form check (id ~ '^env_[0-9a-z]{26}$'),
  constraint environments_live_stays check (not livemode or (retired_at is null and id = public_id)),
  constraint environments_account_length check (length(account) between 1 and 100),
  constraint environments_name_length check (length(name) between 1 and 100),
  constraint environments_live_has_no_end check (not livemode or ends_at is null),
  constraint environments_merchant_size check (length(merchant::text) <= 21000),
  constraint environments_moving_known check (moving in ('draining', 'fenced', 'sealed', 'arriving'))
);
comment on table pay.environments is 'A data space: one live and any number of sandboxes per account.';
comment on column pay.environments.id is 'The first column of every row of a tenant. A reset gives the keys a new one.';
comment on column pay.environments.public_id is 'The id that operators see; resets keep it.';
comment on column pay.environments.account is 'The operator''s name for the owner.';
comment on column pay.environments.livemode is 'Whether real money moves. Never changes.';
comment on column pay.environments.name is 'Name for people.';
comment on column pay.environments.created_at is 'Time of creation.';
comment on column pay.environments.retired_at is 'Time of the reset that replaced it. No key opens it, and retention empties it.';
comment on column pay.environments.ends_at is
  'Time at which a disposable sandbox ends; null: another environment. Resets keep it.';
comment on column pay.environments.moving is
  'The step of its move to another cell: draining (the jobs begin nothing new), fenced (nor do requests), sealed (nothing changes), arriving (sealed, in the new cell); null: it does not move.';

comment on column pay.environments.stored_gb is
  'The whole gigabytes (2^30 bytes) that all sandboxes of the account store, as retention has counted them last (pay_internal.note_storage); 0 for a live environment.';
comment on column pay.environments.resets_until is
  'The time at which the resets so far would be due at pay_internal.reset_every(); null: no reset was counted.';

comment on column pay.environments.merchant is
  '{name, color, logo}: what payers see of the account, each member can be absent; null: nothing is set. All environments of an account have the same.';

create unique index environments_one_live_per_account on pay.environments (account) where livemode;
comment on index pay.environments_one_live_per_account is
  'pay.find_environment: the live environment of an account. Unique: an account has one (contract §5).';

create unique index environments_public_id on pay.environments (public_id) where retired_at is null;
comment on index pay.environments_public_id is
  'pay_internal.hold_environment: the environment that has an id now. Unique: resets keep the id.';

create index environments_ending on pay.environments (ends_at)
  where ends_at is not null and retired_at is null;
comment on index pay.environments_ending is 'pay_internal.retire_ended_sandboxes: the sandboxes that have ended.';

create index environments_waiting on pay.environments (account) where retired_at is not null;
comment on index pay.environments_waiting is
  'pay_internal.judge_reset: the environments of an account that wait for their deletion.';

create index environments_moving on pay.environments (account) where moving is not null;
comment on index pay.environments_moving is 'pay.read_service: the accounts that wait for a move.';

create table pay.api_keys (
  id text collate "C" not null,
  environment_id text collate "C" not null,
  livemode boolean not null,
  name text not null,
  scopes text[],
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  ends_at timestamptz,
  constraint api_keys_pkey primary key (id),
  constraint api_keys_environment_fkey foreign key (environment_id, livemode)
    references pay.environments (id, livemode),
  constraint api_keys_id_form check (id ~ '^key_[0-9a-z]{26}$'),
  constraint api_keys_name_length check (length(name) between 1 and 100),
  constraint api_keys_scopes_known check (scopes <@ array[
    'payments:read', 'payments:write', 'refunds:write', 'transfers:read', 'transfers:write',
    'webhooks:read', 'webhooks:write', 'events:read', 'ledger:read', 'instruments:use',
    'instruments:write', 'customers:erase', 'keys:write', 'sandbox:write'
  ])
);
comment on table pay.api_keys is 'An API key: a name, its scopes, and one or more secrets. The scope of idempotency.';
comment on column pay.api_keys.id is 'The id in responses.';
comment on column pay.api_keys.environment_id is 'The environment that the key opens.';
comment on column pay.api_keys.livemode is 'The mode of the environment.';
comment on column pay.api_keys.name is 'Name for people.';
comment on column pay.api_keys.scopes is 'Operations that the key allows; null: all.';
comment on column pay.api_keys.created_at is 'Time of creation.';
comment on column pay.api_keys.expires_at is 'Time at which the key and its secrets end; null: never.';
comment on column pay.api_keys.revoked_at is 'Time of revocation; null: not revoked.';
comment on column pay.api_keys.last_used_at is
  'Last use of the secrets that have been deleted; exact to the hour.';
comment on column pay.api_keys.ends_at is
  'The real time at which the key and its secrets end at the latest: at its expiry, or with its disposable sandbox; null: it does not end.';

comment on constraint api_keys_environment_fkey on pay.api_keys is
  'No index of its own: api_keys_environment begins with the environment, which has one mode.';

create index api_keys_environment on pay.api_keys (environment_id, id);
comment on index pay.api_keys_environment is
  'pay.list_api_keys, pay_internal.take_key_quota: the keys of an environment.';

-- The primary key lacks the environment, by which a move to another cell filters changes.
alter table pay.api_keys replica identity full;

create table pay.api_key_secrets (
  hash bytea not null,
  api_key_id text collate "C" not null,
  environment_id text collate "C" not null,
  account text not null,
  livemode boolean not null,
  prefix text not null,
  last_four text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  ends_at timestamptz,
  added_at timestamptz not null default clock_timestamp(),
  constraint api_key_secrets_pkey primary key (hash),
  constraint api_key_secrets_api_key_fkey foreign key (api_key_id) references pay.api_keys (id),
  constraint api_key_secrets_environment_fkey foreign key (environment_id, livemode)
    references pay.environments (id, livemode),
  constraint api_key_secrets_hash_length check (length(hash) = 32),
  constraint api_key_secrets_prefix_tells_mode check (
    prefix ~ ('^[a-z][a-z0-9]{0,15}_' || case when livemode then 'live' else 'test' end || '_$')
  ),
  constraint api_key_secrets_last_four_length check (length(last_four) = 4)
);
comment on table pay.api_key_secrets is 'A secret of an API key, as a hash. A rotation adds one and lets the older ones expire.';
comment on column pay.api_key_secrets.hash is 'SHA-256 of the whole key text; the text itself is stored nowhere.';
comment on column pay.api_key_secrets.api_key_id is 'The key of the secret.';
comment on column pay.api_key_secrets.environment_id is 'The environment of the key.';
comment on column pay.api_key_secrets.account is
  'The account of the environment, which never changes. Admission counts and queues by it.';
comment on column pay.api_key_secrets.livemode is 'The mode of the environment.';
comment on column pay.api_key_secrets.prefix is 'Shown to tell keys apart: sk_test_ or sk_live_. Agrees with livemode.';
comment on column pay.api_key_secrets.last_four is
  'The last four characters, to recognise the secret.';
comment on column pay.api_key_secrets.created_at is 'Time of creation.';
comment on column pay.api_key_secrets.expires_at is
  'Time at which the secret ends: the end of its overlap or of the key, whichever is earlier.';
comment on column pay.api_key_secrets.revoked_at is 'Time of revocation; null: not revoked.';
comment on column pay.api_key_secrets.last_used_at is 'Last use; written at most once an hour.';
comment on column pay.api_key_secrets.added_at is
  'By the clock of the server: those of a sandbox whose clock stands have one created_at.';
comment on column pay.api_key_secrets.ends_at is
  'The real time at which the secret ends at the latest: at its expiry, or with its disposable sandbox; null: it does not end.';

create index api_key_secrets_api_key on pay.api_key_secrets (api_key_id);
comment on index pay.api_key_secrets_api_key is
  'pay_internal.end_api_key, pay.list_api_keys: the secrets of a key.';

alter table pay.api_key_secrets replica identity full;

-- The end of a sandbox changes all of its secrets. A deleted environment is looked up here, too.
create index api_key_secrets_environment on pay.api_key_secrets (environment_id);
comment on index pay.api_key_secrets_environment is
  'pay_internal.retire_sandbox, pay_internal.move_environment: the secrets of an environment.';

comment on constraint api_key_secrets_environment_fkey on pay.api_key_secrets is
  'No index of its own: api_key_secrets_environment has the environment, which has one mode.';

create type pay_internal.request as (
  n integer, key_hash text, is_payer boolean, scope text, version bigint, at timestamptz,
  rate integer[], storage integer[], request_id text, idempotency_key text, fingerprint text,
  request_line text, status smallint, body text, subject_id text, sequence integer,
  has_quota boolean, kind text, id text
);
comment on type pay_internal.request is
  'A request of a list (supabase/schemas/admission.sql), with the fields of pay.commit and pay.load. has_quota: true if the sandbox may have more pending deliveries. kind, id: the resource to load.';

-- One request of a call of an entry function: what admission, locks and the idempotency key have
-- made of it so far, and at the end its response.
create type pay.admission as (
  n integer,
  outcome text,
  api_key_id text collate "C",
  environment_id text collate "C",
  account text,
  livemode boolean,
  at timestamptz,
  remaining integer,
  status smallint,
  body text,
  ahead interval,
  detail text,
  stored integer[]
);
comment on type pay.admission is 'A request of a list: whether it may go on, and its response.';
comment on column pay.admission.n is 'The place of the request in the list, from 1.';
comment on column pay.admission.outcome is '"ok" while the request may go on.';
comment on column pay.admission.api_key_id is 'Null if no valid key was presented.';
comment on column pay.admission.environment_id is 'The environment that the key opens; null without a valid key.';
comment on column pay.admission.account is 'The account of that environment; null without a valid key.';
comment on column pay.admission.livemode is 'The mode of that environment; null without a valid key.';
comment on column pay.admission.at is 'The time of the request.';
comment on column pay.admission.remaining is
  'Requests that the key and its account have left after this one, the smaller; null without a limit.';
comment on column pay.admission.status is 'HTTP status of the response, if the database knows it.';
comment on column pay.admission.body is 'JSON text of the response, if the database knows it.';
comment on column pay.admission.ahead is 'How far the clock of the sandbox is ahead of the real time; null: it has no clock of its own.';
comment on column pay.admission.stored is
  'The bytes that a request of a sandbox adds, and its events, each of which has a delivery to each endpoint; null: not counted.';
comment on column pay.admission.detail is 'For an outdated request the settings of the sandbox as JSON text; null: it has none.';

-- The part of pay.admission that says who asks, for the functions that write what came out.
create type pay_internal.caller as (
  n integer,
  environment_id text collate "C",
  api_key_id text collate "C",
  ahead interval
);
comment on type pay_internal.caller is 'Who asks for a change that is written.';
comment on column pay_internal.caller.n is 'The place of the change in the list, from 1.';
comment on column pay_internal.caller.environment_id is 'The environment of the change.';
comment on column pay_internal.caller.api_key_id is 'The API key; null for the record of a result.';
comment on column pay_internal.caller.ahead is
  'How far the clock of the sandbox is ahead of the real time; null: it has no clock of its own.';

create unlogged table pay.rate_counters (
  environment_id text collate "C" not null,
  account text not null,
  livemode boolean not null,
  api_key_id text collate "C" not null,
  stripe smallint not null,
  window_number bigint not null,
  current_count integer not null,
  previous_count integer not null,
  stored_bytes bigint not null default 0,
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
comment on column pay.rate_counters.stored_bytes is
  'The bytes that the requests have added since pay_internal.count_storage has moved them to pay.sandbox_storage.';

-- Sums the use of an account's keys: reads only the rows of the last two windows, however many
-- keys were active before. A row changes its entry once in a window, so most updates stay
-- heap-only.
create index rate_counters_recent on pay.rate_counters (account, livemode, window_number);
comment on index pay.rate_counters_recent is
  'pay_internal.requests_used: the use of an account in the last two windows.';

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
