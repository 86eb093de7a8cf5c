-- Purpose: a stand-in for pg_cron on servers without it. Its function takes the same parameters and
-- inserts the same rows. Only the test runs jobs. Install it as superuser before the migration that
-- schedules the jobs.

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
grant select on cron.job to public;

create table cron.job_run_details (
  runid bigint generated always as identity primary key,
  jobid bigint,
  username text not null default current_user,
  command text,
  status text,
  start_time timestamptz,
  end_time timestamptz
);
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
