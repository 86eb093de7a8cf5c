-- Purpose: the special features of sandboxes: the clock, the seed, declared faults, disposable
-- sandboxes, and the log of requests. An environment that uses none of them has no row here.
--
-- The end of a disposable sandbox is a time of the database's clock, so a clock that a sandbox sets
-- neither ends it early nor keeps it. Admission reads the end from the secret that it looks up
-- anyway. A fault counts down. The row is locked while it is counted, so a fault happens exactly as
-- often as it was declared, however many requests compete for it.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

create table pay.sandbox_settings (
  environment_id text collate "C" not null,
  version bigint not null,
  offset_ms bigint not null default 0,
  frozen_at timestamptz,
  target_at timestamptz,
  runs_after boolean not null default false,
  is_stopping boolean not null default false,
  counts jsonb not null default '{}',
  fault_kinds text[] not null default '{}',
  seed text,
  seed_root text collate "C",
  requests bigint not null default 0,
  transcript_bytes bigint not null default 0,
  constraint sandbox_settings_pkey primary key (environment_id),
  constraint sandbox_settings_version_positive check (version > 0),
  -- A clock that runs is never behind the real time.
  constraint sandbox_settings_offset_ms_range check (offset_ms >= 0),
  constraint sandbox_settings_target_stands check (
    target_at is null or (frozen_at is not null and frozen_at <= target_at)
  ),
  -- The latest time of a clock (pay_internal.clock_ceiling).
  constraint sandbox_settings_below_ceiling check (
    greatest(frozen_at, target_at) <= '2200-01-01T00:00:00Z'
  ),
  constraint sandbox_settings_runs_after_target check (not runs_after or target_at is not null),
  constraint sandbox_settings_seed_length check (length(seed) between 1 and 100),
  constraint sandbox_settings_seed_root_form check (
    seed_root ~ '^[0-9a-f]{64}$' and (seed_root is null) = (seed is null)
  ),
  constraint sandbox_settings_requests_counted check (
    requests >= 0 and (requests = 0 or seed is not null)
  ),
  constraint sandbox_settings_transcript_bytes_not_negative check (transcript_bytes >= 0)
);
comment on table pay.sandbox_settings is 'The settings of a sandbox that uses special features. Other environments have no row.';
comment on column pay.sandbox_settings.environment_id is 'The sandbox.';
comment on column pay.sandbox_settings.version is
  'Changes with each change of the row. A request is decided with the settings of one version.';
comment on column pay.sandbox_settings.offset_ms is
  'How far a clock that runs is ahead of the real time, in milliseconds; of one that stands and starts again soon, how far it will be.';
comment on column pay.sandbox_settings.frozen_at is 'The time at which the clock stands; null: it runs.';
comment on column pay.sandbox_settings.target_at is 'The end of an advance that is not complete; null: none is under way.';
comment on column pay.sandbox_settings.runs_after is 'Whether the clock runs again when it reaches target_at.';
comment on column pay.sandbox_settings.is_stopping is
  'Whether deliveries or operations can still wait by the real time while the clock stands. The next step of an advance stops them.';
comment on column pay.sandbox_settings.counts is 'The numbers of the advance under way, by name.';
comment on column pay.sandbox_settings.fault_kinds is
  'The kinds of declared faults that can still happen: request, provider. The dispatcher finds those of deliveries itself.';
comment on column pay.sandbox_settings.seed is 'The seed of a seeded sandbox; null: its ids are random.';
comment on column pay.sandbox_settings.seed_root is 'Hex SHA-256 of the account and the seed, from which ids and secrets are derived.';
comment on column pay.sandbox_settings.requests is 'Number of requests of a seeded sandbox so far.';
comment on column pay.sandbox_settings.transcript_bytes is 'Length of the transcript so far.';

-- A create looks for a sandbox with the same seed. The index is not unique, because an error would
-- tell one tenant about another. Creates of an account wait for each other
-- (pay_internal.free_seed).
create index sandbox_settings_seed_root on pay.sandbox_settings (seed_root)
  where seed_root is not null;
comment on index pay.sandbox_settings_seed_root is
  'pay_internal.free_seed: the sandbox with the same seed.';

create table pay.sandboxes (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  account text not null,
  made_by text collate "C" not null,
  name text,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  seed text,
  constraint sandboxes_pkey primary key (environment_id, id),
  constraint sandboxes_id_form check (id ~ '^env_[0-9a-z]{26}$'),
  constraint sandboxes_name_length check (length(name) between 1 and 100),
  constraint sandboxes_seed_length check (length(seed) between 1 and 100)
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
comment on column pay.sandboxes.seed is 'The seed; null: the ids of the sandbox are random.';

create index sandboxes_alive on pay.sandboxes (account, expires_at);
comment on index pay.sandboxes_alive is
  'pay_internal.take_sandbox_quota: the number of sandboxes of an account that have not ended.';

create index sandboxes_of_key on pay.sandboxes (made_by, expires_at);
comment on index pay.sandboxes_of_key is
  'pay_internal.end_sandboxes_of: the sandboxes of a revoked key.';

create index sandboxes_ended on pay.sandboxes (expires_at);
comment on index pay.sandboxes_ended is
  'pay_internal.purge_sandboxes: the rows of sandboxes that ended a day ago.';

create table pay.faults (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  kind text collate "C" not null,
  fault text collate "C" not null,
  filter json not null,
  delay_ms integer,
  times integer not null,
  times_left integer not null,
  created_at timestamptz not null,
  constraint faults_pkey primary key (environment_id, id),
  constraint faults_fault_known check (
    kind || ' ' || fault in (
      'request rate_limited', 'request service_unavailable', 'request server_error_before',
      'request server_error_after', 'request connection_lost_after', 'request delay',
      'delivery duplicate', 'delivery delay', 'delivery reorder', 'delivery wrong_signature',
      'delivery drop_until_recovered', 'provider timeout', 'provider declined', 'provider failed'
    )
  ),
  constraint faults_delay_has_ms check ((fault = 'delay') = (delay_ms is not null)),
  constraint faults_delay_ms_in_range check (delay_ms between 1 and 10000),
  constraint faults_times_in_range check (times between 1 and 1000),
  constraint faults_times_left_in_range check (times_left between 0 and times)
);
comment on table pay.faults is 'A fault that a test has declared in its sandbox.';
comment on column pay.faults.environment_id is 'The sandbox of the row.';
comment on column pay.faults.id is 'The id in responses; sorts by time.';
comment on column pay.faults.kind is 'The kind of target that fails: request, delivery or provider ("on" in responses).';
comment on column pay.faults.fault is 'The way in which it fails.';
comment on column pay.faults.filter is
  'The conditions that the target has to match, by name; empty: it matches everything ("where" in responses).';
comment on column pay.faults.delay_ms is 'The duration of a delay in milliseconds; null for other faults.';
comment on column pay.faults.times is 'How often the fault was declared to happen.';
comment on column pay.faults.times_left is 'How often it will still happen ("left" in responses).';
comment on column pay.faults.created_at is 'Time of creation.';

-- The faults that can still happen: of a sandbox, in the order in which they were declared, and of
-- all sandboxes for a poll of the dispatcher.
create index faults_open on pay.faults (kind, environment_id, id) where times_left > 0;
comment on index pay.faults_open is
  'pay_internal.next_fault, pay_internal.give_faults: the faults that can still happen.';

create table pay.requests (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  api_key_id text collate "C" not null,
  method text collate "C" not null,
  path text collate "C" not null,
  query text collate "C",
  status smallint not null,
  error_code text collate "C",
  idempotency_key text collate "C",
  is_replay boolean not null,
  duration_us integer not null,
  created_at timestamptz not null,
  source text collate "C" not null default 'program',
  resource_id text collate "C",
  fault text collate "C",
  fault_id text collate "C",
  decided_at timestamptz,
  request_body text,
  response_body text,
  -- The only index: the log of a sandbox is short, so a filter reads all of it.
  constraint requests_pkey primary key (environment_id, id),
  constraint requests_source_known check (source in ('program', 'web_page')),
  constraint requests_bodies_bounded check (
    octet_length(request_body) <= 16384 and octet_length(response_body) <= 16384)
);
comment on table pay.requests is 'The log of the requests of sandboxes: 30 days, and the last 1 000 of each sandbox.';
comment on column pay.requests.environment_id is 'The sandbox.';
comment on column pay.requests.id is 'The id of the request (req_…), which begins with its time.';
comment on column pay.requests.api_key_id is 'The API key of the request.';
comment on column pay.requests.method is 'The HTTP method.';
comment on column pay.requests.path is 'The path from the name of the function on, without the client''s own text.';
comment on column pay.requests.query is 'The query with the values of known parameters that are no free text; null: none.';
comment on column pay.requests.status is 'HTTP status of the response.';
comment on column pay.requests.error_code is 'The code of the error; null: the response is no error.';
comment on column pay.requests.idempotency_key is 'The Idempotency-Key header; null: none, or not valid.';
comment on column pay.requests.is_replay is 'True: the response is that of an earlier request.';
comment on column pay.requests.duration_us is 'Microseconds from the arrival of the request to its response.';
comment on column pay.requests.created_at is 'Time at which the request arrived.';
comment on column pay.requests.source is
  'web_page: a browser sent the request for a page such as the console. program: everything else.';
comment on column pay.requests.resource_id is
  'The resource that it has made, or else the one of its response or its path; null: none.';
comment on column pay.requests.fault is 'The declared fault that decided the response; null: none.';
comment on column pay.requests.fault_id is 'The id of the fault; null: none, or the request asked for it.';
comment on column pay.requests.decided_at is
  'The time of the sandbox with which the ids of its events begin; null: it changes nothing.';
comment on column pay.requests.request_body is
  'The body as JSON text, without card numbers, IBANs, security codes, secrets and unknown members; null: not stored.';
comment on column pay.requests.response_body is
  'The body of the response as JSON text, without secrets; null: not stored.';

create type pay_internal.logged_request as (
  k integer, id text, method text, path text, query text, status smallint, error_code text,
  idempotency_key text, is_replay boolean, duration_us integer, source text, at timestamptz,
  resource_id text, fault text, fault_id text, decided_at timestamptz, request_body text,
  response_body text
);
comment on type pay_internal.logged_request is
  'A request as pay.log_requests takes it. k: the number of its API key. Without a source it is program.';

create table pay.sandbox_storage (
  environment_id text collate "C" not null,
  day date not null,
  account text not null,
  bytes bigint not null,
  constraint sandbox_storage_pkey primary key (environment_id, day),
  constraint sandbox_storage_bytes_not_negative check (bytes >= 0)
);
comment on table pay.sandbox_storage is
  'The bytes that a sandbox stores, by estimate: what its requests have added on each day, until retention has deleted it.';
comment on column pay.sandbox_storage.environment_id is 'The sandbox, also a retired one.';
comment on column pay.sandbox_storage.day is
  'The day (UTC); infinity: its log and its transcript, which are measured.';
comment on column pay.sandbox_storage.account is 'The account of the sandbox.';
comment on column pay.sandbox_storage.bytes is 'The number of bytes.';

create index sandbox_storage_account on pay.sandbox_storage (account);
comment on index pay.sandbox_storage_account is
  'pay_internal.account_storage: the sandboxes of an account.';

create index sandbox_storage_day on pay.sandbox_storage (day);
comment on index pay.sandbox_storage_day is
  'pay_internal.note_storage: the days that retention has deleted.';

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
comment on column pay.transcript_lines.line is 'The request and its response as JSON text, without card numbers and API keys.';

do $$ begin execute pg_catalog.format('set role %I',
  pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
