-- Purpose: the jobs of pg_cron, where it exists (as on Supabase): the dispatcher, the words of
-- searches, retention, the check of the books. Elsewhere the ticker of `deno task serve` does the same.

-- Without a clock of the database everything still works but retries, which then need another: what
-- stands in the way is said and does not stop the migration.
do $migration$
declare
  v_every text := '5 seconds';
begin
  if (
    select count(*) from pg_catalog.pg_available_extensions where name in ('pg_cron', 'pg_net')
  ) = 2 then
    -- Supabase warns of extensions in the schema public, which is the default.
    if pg_catalog.to_regnamespace('extensions') is null then
      create extension if not exists pg_net;
    else
      create extension if not exists pg_net with schema extensions;
    end if;
    create extension if not exists pg_cron;
  end if;
  -- By their functions, not their extensions: what matters is what the jobs call.
  if pg_catalog.to_regprocedure('cron.schedule(text,text,text)') is not null
    and pg_catalog.to_regnamespace('net') is not null then
    begin
      execute 'select cron.schedule($1, $2, $3)'
      using 'pay-dispatcher', v_every, 'select pay.wake_dispatcher()';
    exception when others then
      -- Older than 1.5: knows minutes only.
      v_every := '* * * * *';
      execute 'select cron.schedule($1, $2, $3)'
      using 'pay-dispatcher', v_every, 'select pay.wake_dispatcher()';
    end;
    execute 'select cron.schedule($1, $2, $3)'
    using 'pay-search', v_every, 'select pay.write_search_words()';
    execute 'select cron.schedule($1, $2, $3)'
    -- Batch after batch, each in a transaction of its own, until nothing is left or the time is up.
    -- Half of the time belongs to requests, which would wait for the processor and the disk.
    -- A block and no procedure: one that commits can pin no search_path.
    using 'pay-retention', '* * * * *', $job$do $$
declare
  v_until timestamptz := clock_timestamp() + interval '45 seconds';
  v_began timestamptz;
begin
  loop
    v_began := clock_timestamp();
    exit when pay.purge(v_began, 5000) = 0 or clock_timestamp() > v_until;
    commit;
    perform pg_sleep_for(clock_timestamp() - v_began);
  end loop;
end
$$$job$;
    execute 'select cron.schedule($1, $2, $3)'
    using 'pay-invariants', '41 * * * *', 'select pay.note_breaches()';
    -- Only our own jobs: the role can have others. A run that a crash has ended has neither time, so
    -- the order of the runs decides.
    execute 'select cron.schedule($1, $2, $3)'
    using 'pay-cron-log', '23 3 * * *', $job$delete from cron.job_run_details r using cron.job j
where j.jobid = r.jobid
  and j.jobname in ('pay-dispatcher', 'pay-search', 'pay-retention', 'pay-invariants', 'pay-cron-log')
  and r.runid <= (
    select max(o.runid) from cron.job_run_details o
    where coalesce(o.end_time, o.start_time) < now() - interval '7 days'
  )$job$;
  elsif pg_catalog.to_regprocedure('cron.schedule(text,text,text)') is not null
    or pg_catalog.to_regnamespace('net') is not null then
    raise warning 'no job was scheduled: pg_cron and pg_net must both be in this database'
      using hint = 'docs/operations/backup.md, "The jobs", says how to schedule them.';
  end if;
exception when others then
  raise warning 'no job was scheduled: %', sqlerrm
    using hint = 'docs/operations/backup.md, "The jobs", says how to schedule them.';
end
$migration$;
