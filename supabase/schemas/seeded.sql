-- Purpose: seeded sandboxes, whose runs repeat byte for byte (ADR 0052). The functions derive every
-- id and secret of a request from the sandbox's seed and the number of the request.

-- The number of requests that a transcript keeps.
create or replace function pay.max_transcript_lines()
returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select 10000 $$;

-- Opens the environment of a valid secret, if nobody holds it alone. Returns null otherwise: then
-- admission refuses the request. Internal.
create or replace function pay.open_by_hash(p_key_hash text)
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hash constant bytea := decode(p_key_hash, 'hex');
  v_environment text;
begin
  perform set_config('pay.key_hashes', array[v_hash]::text, true);
  select s.environment_id into v_environment from pay.api_key_secrets s
  where s.hash = v_hash and s.revoked_at is null and not s.livemode;
  if v_environment is null or not pg_try_advisory_xact_lock_shared(
    hashtextextended('environment ' || v_environment, 0)
  ) then
    return null;
  end if;
  perform set_config('pay.environment_ids', array[v_environment]::text, true);
  return v_environment;
end
$$;

-- Gives the next request of a seeded sandbox its number. Returns the settings of the sandbox with
-- that number as JSON text; null if the key is not valid or its sandbox has no seed.
-- Concurrency: requests of one sandbox wait for each other only here.
create or replace function pay.number_request(p_key_hash text)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_environment constant text := pay.open_by_hash(p_key_hash);
  v_settings text;
begin
  if v_environment is not null then
    update pay.sandbox_settings w set requests = w.requests + 1
    where w.environment_id = v_environment and w.seed is not null
    returning row_to_json(w)::text into v_settings;
  end if;
  return v_settings;
end
$$;
grant execute on function pay.number_request(text) to pay_api;

-- Keeps a request and its answer in the transcript of a seeded sandbox. Does nothing after a reset,
-- and after pay.max_transcript_lines() requests.
create or replace function pay.keep_transcript_line(p_key_hash text, p_n bigint, p_line text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_environment constant text := pay.open_by_hash(p_key_hash);
begin
  insert into pay.transcript_lines (environment_id, n, line)
  select v_environment, p_n, p_line
  from pay.sandbox_settings w
  where w.environment_id = v_environment and w.seed is not null and w.requests >= p_n
    and p_n <= pay.max_transcript_lines()
  on conflict on constraint transcript_lines_pkey do nothing;
end
$$;
grant execute on function pay.keep_transcript_line(text, bigint, text) to pay_api;

-- The transcript of the caller's sandbox.
-- p_request  the request, as pay.admit takes it, in a list of one
-- Outcomes: those of admission.sql, and
--           ok (body: the lines, oldest first, each with a line feed)
--           not_seeded.
create or replace function pay.transcript(p_request text)
returns pay.admission
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_found pay.admission[] := pay.admit(p_request::json, 'shared', true);
  v_access pay.admission := v_found[1];
begin
  if v_access.outcome <> 'ok' then
    return v_access;
  end if;
  if not exists (
    select from pay.sandbox_settings w
    where w.environment_id = v_access.environment_id and w.seed is not null
  ) then
    v_access.outcome := 'not_seeded';
    return v_access;
  end if;
  v_access.body := coalesce((
    select string_agg(t.line || E'\n', '' order by t.n) from pay.transcript_lines t
    where t.environment_id = v_access.environment_id
  ), '');
  return v_access;
end
$$;
grant execute on function pay.transcript(text) to pay_api;
