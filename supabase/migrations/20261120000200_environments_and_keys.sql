-- Purpose: environments (the data space that keys open), API keys and their secrets.
-- These small tables are what every node would hold if the tenants' tables were distributed.
--
-- Row-level security here and in every later file compares with two settings that an entry
-- function makes for its own transaction:
--   pay.key_hashes       hashes of the keys that were presented; a secret is seen by whom has it
--   pay.environment_ids  the environments that those keys open
-- With nothing set every table shows no row, to its owner as well.
--
-- The entry functions also pin how they are planned: each touches few rows by an index. Cached plans
-- made while a table was empty would otherwise read it whole until the next analyze (measured: a
-- replay at 7 000 kept keys took 90 ms instead of 5).

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
  constraint environments_pkey primary key (id),
  constraint environments_id_livemode_key unique (id, livemode),
  constraint environments_id_form check (id ~ '^env_[0-9a-z]{26}$'),
  constraint environments_live_stays check (not livemode or (retired_at is null and id = public_id)),
  constraint environments_account_length check (length(account) between 1 and 100),
  constraint environments_name_length check (length(name) between 1 and 100)
);
comment on table pay.environments is 'A data space: one live and any number of sandboxes per account.';
comment on column pay.environments.id is 'What its rows begin with. A reset opens a new one to the keys.';
comment on column pay.environments.public_id is 'What operators know it by, before and after resets.';
comment on column pay.environments.retired_at is 'When a reset took its place; no key opens it, and retention empties it.';
comment on column pay.environments.account is 'Whose environment this is; the operator''s own name for it.';
comment on column pay.environments.livemode is 'Whether real money moves. Never changes.';

-- One live environment per account (contract §5).
create unique index environments_one_live_per_account on pay.environments (account) where livemode;

create unique index environments_public_id on pay.environments (public_id) where retired_at is null;

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
  constraint api_keys_pkey primary key (id),
  constraint api_keys_environment_fkey foreign key (environment_id, livemode)
    references pay.environments (id, livemode),
  constraint api_keys_id_form check (id ~ '^key_[0-9a-z]{26}$'),
  constraint api_keys_name_length check (length(name) between 1 and 100),
  constraint api_keys_scopes_known check (scopes <@ array[
    'payments:read', 'payments:write', 'refunds:write', 'transfers:read', 'transfers:write',
    'webhooks:read', 'webhooks:write', 'events:read', 'ledger:read', 'keys:write', 'sandbox:write'
  ])
);
comment on table pay.api_keys is 'An API key: a name, its scopes, and one or more secrets. The scope of idempotency.';
comment on column pay.api_keys.scopes is 'What the key may do; null: everything.';
comment on column pay.api_keys.expires_at is 'When the key ends, with all its secrets; null: never.';
comment on column pay.api_keys.last_used_at is
  'Last use of the secrets that have been deleted; exact to the hour.';

-- Lists the keys of an environment.
create index api_keys_environment on pay.api_keys (environment_id, id);

create table pay.api_key_secrets (
  hash bytea not null,
  api_key_id text collate "C" not null,
  environment_id text collate "C" not null,
  livemode boolean not null,
  prefix text not null,
  last_four text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
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
comment on table pay.api_key_secrets is 'What a client presents, as a hash. Rotation adds one and lets the older expire.';
comment on column pay.api_key_secrets.hash is 'SHA-256 of the whole key text; the text itself is stored nowhere.';
comment on column pay.api_key_secrets.expires_at is
  'When the secret ends: at the end of its overlap or of the key, whichever is earlier.';
comment on column pay.api_key_secrets.last_used_at is 'Coarse: written at most once an hour.';
comment on column pay.api_key_secrets.prefix is 'Shown to tell keys apart: sk_test_ or sk_live_. Agrees with livemode.';

-- Rotation and revocation find the secrets of a key.
create index api_key_secrets_api_key on pay.api_key_secrets (api_key_id);

-- One request of a call of an entry function: what admission, locks and the idempotency key have
-- made of it so far, and at the end its answer.
create type pay.admission as (
  n integer,
  outcome text,
  api_key_id text collate "C",
  environment_id text collate "C",
  at timestamptz,
  remaining integer,
  status smallint,
  body text
);
comment on type pay.admission is 'A request of a list: whether it may go on, and its answer.';
comment on column pay.admission.n is 'The place of the request in the list, from 1.';
comment on column pay.admission.outcome is '"ok" while the request may go on.';
comment on column pay.admission.api_key_id is 'Null if no valid key was presented.';
comment on column pay.admission.environment_id is 'The environment that the key opens; null without a valid key.';
comment on column pay.admission.at is 'The time of the request.';
comment on column pay.admission.remaining is
  'Requests that the key and its environment have left after this one, the smaller; null without a limit.';
comment on column pay.admission.status is 'HTTP status of the answer, if the database knows it.';
comment on column pay.admission.body is 'JSON text of the answer, if the database knows it.';

alter table pay.environments enable row level security;
alter table pay.environments force row level security;
alter table pay.api_keys enable row level security;
alter table pay.api_keys force row level security;
alter table pay.api_key_secrets enable row level security;
alter table pay.api_key_secrets force row level security;

-- Two settings open rows: the environments of the caller's keys, and pay.worker, which is the relay's,
-- the retention's and the operator's. One policy for both, and each setting read in a select that holds
-- nothing else: Supabase's advisors take several policies, or any other form, for a read per row.
create policy environments_read on pay.environments for select to pay_owner using (
  id = any ((select nullif(current_setting('pay.environment_ids', true), '')::text[])::text[])
  or (select current_setting('pay.worker', true)) = 'on'
);

create policy environments_write on pay.environments for insert to pay_owner with check (
  id = any ((select nullif(s.ids, '')::text[] from (select current_setting('pay.environment_ids', true) as ids) s)::text[])
);
create policy environments_change on pay.environments for update to pay_owner using (
  id = any ((select nullif(s.ids, '')::text[] from (select current_setting('pay.environment_ids', true) as ids) s)::text[])
);
create policy environments_delete on pay.environments for delete to pay_owner using (
  id = any ((select nullif(s.ids, '')::text[] from (select current_setting('pay.environment_ids', true) as ids) s)::text[])
);
create policy api_keys_of_environment on pay.api_keys to pay_owner using (
  environment_id = any ((select nullif(current_setting('pay.environment_ids', true), '')::text[])::text[])
  or (select current_setting('pay.worker', true)) = 'on'
);
create policy api_key_secrets_presented on pay.api_key_secrets to pay_owner using (
  hash = any ((select nullif(current_setting('pay.key_hashes', true), '')::bytea[])::bytea[])
  or environment_id = any ((select nullif(current_setting('pay.environment_ids', true), '')::text[])::text[])
  or (select current_setting('pay.worker', true)) = 'on'
);

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
