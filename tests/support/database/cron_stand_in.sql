-- Purpose: a stand-in for pg_cron and pg_net on servers without these extensions. Its functions
-- take the same parameters and insert the same rows. Only the test runs jobs and answers requests.
-- Install it as superuser before the migration that schedules the jobs.

create schema cron;
grant usage on schema cron to public;

-- The columns of pg_cron 1.6, without those for the server and database of the job.
create table cron.job (
  jobid bigint generated always as identity primary key,
  schedule text not null,
  command text not null,
  username text not null,
  active boolean not null default true,
  jobname text,
  constraint jobname_username_uniq unique (jobname, username)
);

create table cron.job_run_details (
  runid bigint generated always as identity primary key,
  jobid bigint,
  username text not null default current_user,
  command text,
  status text,
  start_time timestamptz,
  end_time timestamptz
);
grant select on cron.job to public;
grant select, insert, delete on cron.job_run_details to public;

-- Schedules a job, or changes the job of this name.
create function cron.schedule(job_name text, schedule text, command text)
returns bigint
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  insert into cron.job (jobname, schedule, command, username)
  values (job_name, schedule, command, session_user)
  on conflict on constraint jobname_username_uniq
  do update set schedule = excluded.schedule, command = excluded.command
  returning jobid
$$;

create schema net;
grant usage on schema net to public;

-- The queue of pg_net 0.20. The table is unlogged, so a crash empties it.
create unlogged table net.http_request_queue (
  id bigint generated always as identity primary key,
  method text not null,
  url text not null,
  headers jsonb,
  body bytea,
  timeout_milliseconds integer not null
);

-- The answers of pg_net 0.20.4. The test inserts them in place of the worker. The real worker
-- deletes them after pg_net.ttl, which is six hours. The table holds the answers to the requests of
-- all roles. It has no primary key, and it is unlogged, so a crash empties it.
create unlogged table net._http_response (
  id bigint,
  status_code integer,
  content_type text,
  headers jsonb,
  content text,
  timed_out boolean,
  error_msg text,
  created timestamptz not null default now()
);
create index on net._http_response (created);
grant select on net._http_response to public;

-- Queues a request. The real worker sends it after the commit.
create function net.http_post(
  url text,
  body jsonb default '{}'::jsonb,
  params jsonb default '{}'::jsonb,
  headers jsonb default '{"Content-Type": "application/json"}'::jsonb,
  timeout_milliseconds integer default 5000
)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id bigint;
begin
  if headers ->> 'Content-Type' is distinct from 'application/json' then
    raise exception 'Content-Type header must be "application/json"';
  end if;
  if params <> '{}' then
    raise exception 'the stand-in knows no parameters';
  end if;
  insert into net.http_request_queue (method, url, headers, body, timeout_milliseconds)
  values ('POST', http_post.url, http_post.headers, convert_to(http_post.body::text, 'UTF8'),
    http_post.timeout_milliseconds)
  returning id into v_id;
  return v_id;
end
$$;
