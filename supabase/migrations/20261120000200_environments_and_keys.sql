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

-- Notes that secrets are in use. Called when the last note is an hour old; a row that someone else
-- is noting is left to them, so no request waits here.
create function pay.note_use(p_hashes bytea[], p_at timestamptz)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  update pay.api_key_secrets s
  set last_used_at = p_at
  from (
    select o.hash from pay.api_key_secrets o
    where o.hash = any (p_hashes)
      and o.revoked_at is null
      and (o.last_used_at is null or o.last_used_at < p_at - interval '1 hour')
    for update skip locked
  ) idle
  where s.hash = idle.hash;
end
$$;
comment on function pay.note_use is 'Internal.';

-- Opens the environments of the keys of a list of requests, [{key_hash}], for the rest of the
-- transaction: what row-level security then shows of all of them. Returns those that are open. One that is
-- being reset is not: its requests would hold up the others of the list. Keys are looked up again
-- afterwards, in a new snapshot; one whose environment is then not among these has to be asked again.
-- Concurrency: whoever reads or writes in a sandbox shares its advisory lock ('environment ' and its id), a reset
-- has it alone. Live environments are never reset, and nobody locks them.
create function pay.open_environments(p_requests json)
returns text[]
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hashes bytea[];
  v_environments text[];
  v_is_idle boolean;
begin
  select array_agg(distinct decode(c.key_hash, 'hex')) into v_hashes
  from json_to_recordset(p_requests) as c (key_hash text);
  perform set_config('pay.key_hashes', v_hashes::text, true);
  select
    array_agg(e.environment_id) filter (
      where e.livemode or pg_try_advisory_xact_lock_shared(
        hashtextextended('environment ' || e.environment_id, 0))),
    bool_or(e.is_idle)
  into v_environments, v_is_idle
  from (
    select s.environment_id, s.livemode,
      bool_or(s.revoked_at is null
        and (s.last_used_at is null or s.last_used_at < now() - interval '1 hour')) as is_idle
    from pay.api_key_secrets s where s.hash = any (v_hashes)
    group by s.environment_id, s.livemode
  ) e;
  perform set_config('pay.environment_ids', coalesce(v_environments::text, ''), true);
  if v_is_idle then
    perform pay.note_use(v_hashes, now());
  end if;
  return coalesce(v_environments, '{}');
end
$$;
comment on function pay.open_environments is 'Internal.';

-- Opens the environment of one presented key for the rest of the transaction, and counts the request.
-- p_rate: {requests a second of the key, of the environment}; null: not limited, or counted
--   elsewhere.
-- p_hold: 'shared' prevents a reset of the sandbox until the transaction ends, so that each
-- statement
--   finds the data of the key in the same environment; 'alone' is the reset, which waits for all
--   transactions that share. Null: the caller only checks whether the key may.
-- outcome: ok | unauthorized (unknown, revoked or expired) | forbidden (the scope is missing) |
--          rate_limited | resetting (ask again soon).
-- remaining: requests that are left for now; null when not limited.
create function pay.enter(
  p_key_hash text,
  p_scope text,
  p_at timestamptz,
  p_rate integer[],
  p_hold text,
  out outcome text,
  out api_key_id text,
  out environment_id text,
  out remaining integer
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off
as $$
declare
  v_hash bytea := decode(p_key_hash, 'hex');
  v_used_at timestamptz;
  v_livemode boolean;
  v_held text := '';
begin
  perform set_config('pay.key_hashes', array[v_hash]::text, true);
  loop
    select s.api_key_id, s.environment_id, s.last_used_at, s.livemode
    into api_key_id, environment_id, v_used_at, v_livemode
    from pay.api_key_secrets s
    where s.hash = v_hash
      and s.revoked_at is null
      and (s.expires_at is null or s.expires_at > p_at);
    -- Once more under the lock: a reset may have moved the key before.
    exit when api_key_id is null or v_livemode or p_hold is null or environment_id = v_held;
    v_held := environment_id;
    if p_hold = 'alone' then
      perform pg_advisory_xact_lock(hashtextextended('environment ' || v_held, 0));
    elsif not pg_try_advisory_xact_lock_shared(hashtextextended('environment ' || v_held, 0)) then
      -- Not waited for: a connection that waits is one that others have not.
      outcome := 'resetting';
      return;
    end if;
  end loop;
  if api_key_id is null then
    perform set_config('pay.environment_ids', '', true);
    outcome := 'unauthorized';
    return;
  end if;
  perform set_config('pay.environment_ids', array[environment_id]::text, true);
  outcome := case
    when p_scope is null then 'ok'
    when exists (
      select from pay.api_keys k
      where k.id = enter.api_key_id and (k.scopes is null or p_scope = any (k.scopes))
    ) then 'ok'
    else 'forbidden'
  end;
  if v_used_at is null or v_used_at < p_at - interval '1 hour' then
    perform pay.note_use(array[v_hash], p_at);
  end if;
  if p_rate is not null then
    remaining := pay.count_request(environment_id, api_key_id, p_at, p_rate, true);
    if remaining < 0 then
      outcome := 'rate_limited';
      remaining := 0;
    end if;
  end if;
end
$$;
comment on function pay.enter is 'Internal: authenticates a key hash and opens its environment.';

-- Operator: makes an environment. Raises unique_violation for a second live one of an account.
create function pay.create_environment(p_id text, p_account text, p_livemode boolean, p_name text)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('pay.environment_ids', array[p_id]::text, true);
  insert into pay.environments (id, public_id, account, livemode, name)
  values (p_id, p_id, p_account, p_livemode, p_name);
end
$$;

-- The id that an environment has at the moment, by its public one; null if there is none. A sandbox
-- is not reset until the transaction ends. Internal.
create function pay.hold_environment(p_public_id text)
returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_held text := '';
  v_environment record;
begin
  perform set_config('pay.worker', 'on', true);
  loop
    select e.id, e.livemode into v_environment from pay.environments e
    where e.public_id = p_public_id and e.retired_at is null;
    exit when v_environment.id is null or v_environment.livemode or v_environment.id = v_held;
    v_held := v_environment.id;
    perform pg_advisory_xact_lock_shared(hashtextextended('environment ' || v_held, 0));
  end loop;
  return v_environment.id;
end
$$;

-- Operator: makes an API key with its first secret. The key text itself never gets here.
-- p_environment_id: the public one.
-- Raises program_limit_exceeded if the environment has pay.max_live_keys() live keys.
create function pay.create_api_key(
  p_id text,
  p_environment_id text,
  p_name text,
  p_scopes text[],
  p_secret_hash text,
  p_prefix text,
  p_last_four text,
  p_expires_at timestamptz
)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_environment text := pay.hold_environment(p_environment_id);
  v_livemode boolean;
begin
  perform set_config('pay.environment_ids', array[v_environment]::text, true);
  select livemode into v_livemode from pay.environments where id = v_environment;
  if v_livemode is null then
    raise exception 'no environment %', p_environment_id using errcode = 'foreign_key_violation';
  end if;
  if not pay.take_key_place(v_environment, now()) then
    raise exception 'environment % has % live keys already', p_environment_id, pay.max_live_keys()
      using errcode = 'program_limit_exceeded';
  end if;
  insert into pay.api_keys (id, environment_id, livemode, name, scopes, expires_at)
  values (p_id, v_environment, v_livemode, p_name, p_scopes, p_expires_at);
  insert into pay.api_key_secrets
    (hash, api_key_id, environment_id, livemode, prefix, last_four, expires_at)
  values
    (decode(p_secret_hash, 'hex'), p_id, v_environment, v_livemode, p_prefix, p_last_four, p_expires_at);
end
$$;

grant execute on function pay.create_environment(text, text, boolean, text) to pay_operator;
grant execute on function
  pay.create_api_key(text, text, text, text[], text, text, text, timestamptz) to pay_operator;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
