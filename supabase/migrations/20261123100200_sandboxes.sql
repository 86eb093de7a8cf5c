-- Purpose: disposable sandboxes, which a test key makes over HTTP and which end by themselves
-- (ADR 0047).
--
-- The end of a sandbox is a time of the database's clock, so a clock that a sandbox sets neither
-- ends it early nor keeps it. Admission reads the end from the secret that it looks up anyway.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

alter table pay.environments
  add column ends_at timestamptz,
  add constraint environments_live_has_no_end check (not livemode or ends_at is null);
comment on column pay.environments.ends_at is
  'Time at which a disposable sandbox ends; null: another environment. Resets keep it.';

create index environments_ending on pay.environments (ends_at)
  where ends_at is not null and retired_at is null;
comment on index pay.environments_ending is 'pay.retire_ended_sandboxes: the sandboxes that have ended.';

alter table pay.api_key_secrets add column ends_at timestamptz;
comment on column pay.api_key_secrets.ends_at is
  'The real time at which the secret ends at the latest: at its expiry, or with its disposable sandbox; null: it does not end.';
alter table pay.api_keys add column ends_at timestamptz;
comment on column pay.api_keys.ends_at is
  'The real time at which the key and its secrets end at the latest: at its expiry, or with its disposable sandbox; null: it does not end.';

-- The end of a sandbox changes all of its secrets. A deleted environment is looked up here, too.
create index api_key_secrets_environment on pay.api_key_secrets (environment_id);
comment on index pay.api_key_secrets_environment is
  'pay.retire_sandbox, pay.move_environment: the secrets of an environment.';
comment on constraint api_key_secrets_environment_fkey on pay.api_key_secrets is
  'No index of its own: api_key_secrets_environment has the environment, which has one mode.';

create table pay.sandboxes (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  account text not null,
  made_by text collate "C" not null,
  name text,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  constraint sandboxes_pkey primary key (environment_id, id),
  constraint sandboxes_id_form check (id ~ '^env_[0-9a-z]{26}$'),
  constraint sandboxes_name_length check (length(name) between 1 and 100)
);
comment on table pay.sandboxes is
  'A disposable sandbox, for the sandbox that made it. The row outlives its data by a day.';
comment on column pay.sandboxes.environment_id is 'The sandbox whose key made it; resets of that one move the row.';
comment on column pay.sandboxes.id is 'The public id of the disposable sandbox.';
comment on column pay.sandboxes.account is 'The account of both sandboxes.';
comment on column pay.sandboxes.made_by is 'The key that made it. The sandbox ends when that key is revoked.';
comment on column pay.sandboxes.name is 'Name for people; null: none.';
comment on column pay.sandboxes.created_at is 'Time of creation.';
comment on column pay.sandboxes.expires_at is 'Time at which it ends or has ended.';

create index sandboxes_alive on pay.sandboxes (account, expires_at);
comment on index pay.sandboxes_alive is
  'pay.take_sandbox_place: the number of sandboxes of an account that have not ended.';

create index sandboxes_of_key on pay.sandboxes (made_by, expires_at);
comment on index pay.sandboxes_of_key is
  'pay.end_sandboxes_of: the sandboxes of a revoked key.';

create index sandboxes_ended on pay.sandboxes (expires_at);
comment on index pay.sandboxes_ended is
  'pay.purge_sandboxes: the rows of sandboxes that ended a day ago.';

alter table pay.sandboxes enable row level security;
alter table pay.sandboxes force row level security;

-- The policy is that of the other tables of tenants (20261120000950_policies.sql).
create policy sandboxes_of_environment on pay.sandboxes to pay_owner using (
  environment_id = any (
    (select nullif(current_setting('pay.environment_ids', true), '')::text[])::text[])
  or (select current_setting('pay.worker', true)) = 'on'
);

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
