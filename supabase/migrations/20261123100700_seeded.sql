-- Purpose: seeded sandboxes: the seed is a part of pay.sandbox_settings, and the run so far is kept
-- (supabase/schemas/seeded.sql).

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

alter table pay.sandbox_settings
  add column seed text,
  add column seed_root text collate "C",
  add column requests bigint not null default 0,
  add column transcript_bytes bigint not null default 0,
  add constraint sandbox_settings_seed_length check (length(seed) between 1 and 100),
  add constraint sandbox_settings_seed_root_form check (
    seed_root ~ '^[0-9a-f]{64}$' and (seed_root is null) = (seed is null)
  ),
  add constraint sandbox_settings_requests_counted check (
    requests >= 0 and (requests = 0 or seed is not null)
  ),
  add constraint sandbox_settings_transcript_bytes_not_negative check (transcript_bytes >= 0);
comment on column pay.sandbox_settings.seed is 'The seed of a seeded sandbox; null: its ids are random.';
comment on column pay.sandbox_settings.seed_root is 'Hex SHA-256 of the account and the seed, from which ids and secrets are derived.';
comment on column pay.sandbox_settings.requests is 'Number of requests of a seeded sandbox so far.';
comment on column pay.sandbox_settings.transcript_bytes is 'Length of the transcript so far.';

alter table pay.sandboxes
  add column seed text,
  add constraint sandboxes_seed_length check (length(seed) between 1 and 100);
comment on column pay.sandboxes.seed is 'The seed; null: the ids of the sandbox are random.';

-- A create looks for a sandbox with the same seed. The index is not unique, because an error would
-- tell one tenant about another. Creates of an account wait for each other (pay.free_seed).
create index sandbox_settings_seed_root on pay.sandbox_settings (seed_root)
  where seed_root is not null;
comment on index pay.sandbox_settings_seed_root is
  'pay.free_seed: the sandbox with the same seed.';

create table pay.transcript_lines (
  environment_id text collate "C" not null,
  n bigint not null,
  line text not null,
  constraint transcript_lines_pkey primary key (environment_id, n),
  constraint transcript_lines_n_positive check (n > 0)
);
comment on table pay.transcript_lines is 'The run of a seeded sandbox: one line for each request.';
comment on column pay.transcript_lines.environment_id is 'The sandbox.';
comment on column pay.transcript_lines.n is 'Number of the request in the run.';
comment on column pay.transcript_lines.line is 'The request and its answer as JSON text, without card numbers and API keys.';

-- The policy is that of the other tables of tenants (20261120000950_policies.sql).
alter table pay.transcript_lines enable row level security;
alter table pay.transcript_lines force row level security;
create policy transcript_lines_of_environment on pay.transcript_lines to pay_owner using (
  environment_id = any (
    (select nullif(current_setting('pay.environment_ids', true), '')::text[])::text[])
  or (select current_setting('pay.worker', true)) = 'on'
);

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
