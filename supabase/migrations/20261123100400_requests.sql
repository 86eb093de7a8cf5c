-- Purpose: what a merchant can look up about his requests: the first request of each idempotency
-- key, and the log of the requests of a sandbox.
--
-- Both are written behind the answer of a request (pay.note_requests), except for the request line
-- of a key, which the claim of the key writes.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

alter table pay.idempotency_keys
  add column request_line text collate "C" not null,
  add column replays integer not null default 0;
comment on column pay.idempotency_keys.request_line is 'Method and path of the first request.';
comment on column pay.idempotency_keys.replays is 'How often the answer was replayed, counted behind the answers.';

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
  -- The only index: the log of a sandbox is short, so a filter reads all of it.
  constraint requests_pkey primary key (environment_id, id)
);
comment on table pay.requests is 'The log of the requests of sandboxes: 30 days, and the last 1 000 of each sandbox.';
comment on column pay.requests.environment_id is 'The sandbox.';
comment on column pay.requests.id is 'The id of the request (req_…), which begins with its time.';
comment on column pay.requests.api_key_id is 'The API key of the request.';
comment on column pay.requests.method is 'The HTTP method.';
comment on column pay.requests.path is 'The path from the name of the function on, without the client''s own text.';
comment on column pay.requests.query is 'The query with the values of known parameters that are no free text; null: none.';
comment on column pay.requests.status is 'HTTP status of the answer.';
comment on column pay.requests.error_code is 'The code of the error; null: the answer is no error.';
comment on column pay.requests.idempotency_key is 'The Idempotency-Key header; null: none, or not valid.';
comment on column pay.requests.is_replay is 'True: the answer is that of an earlier request.';
comment on column pay.requests.duration_us is 'Microseconds from the arrival of the request to its answer.';
comment on column pay.requests.created_at is 'Time at which the request arrived.';

-- The policy is that of the other tables of tenants (20261120000950_policies.sql).
do $policies$
begin
  execute format(
    'create policy requests_of_environment on pay.requests to pay_owner
     using (environment_id %s or %s)',
    $sql$= any ((select nullif(current_setting('pay.environment_ids', true), '')::text[])::text[])$sql$,
    $sql$(select current_setting('pay.worker', true)) = 'on'$sql$
  );
end
$policies$;
alter table pay.requests enable row level security;
alter table pay.requests force row level security;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
