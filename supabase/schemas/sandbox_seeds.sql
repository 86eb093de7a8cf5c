-- Purpose: seeded sandboxes, whose runs repeat byte for byte (ADR 0023). The functions derive every
-- id and secret of a request from the sandbox's seed and the number of the request.

-- The number of requests that a transcript stores.
create or replace function pay_internal.max_transcript_lines()
returns integer language sql immutable parallel safe as $$ select 10000 $$;

-- The length in bytes after which a transcript takes no further lines.
create or replace function pay_internal.max_transcript_bytes()
returns bigint language sql immutable parallel safe as $$ select 16777216 $$;

-- The text from which all ids and secrets of a seeded sandbox are derived: hex SHA-256 of the
-- account and the seed.
create or replace function pay_internal.seed_root(p_account text, p_seed text)
returns text language sql immutable parallel safe
as $$ select encode(sha256(convert_to(p_account || E'\n' || p_seed, 'UTF8')), 'hex') $$;

-- Writes the settings with which a seeded sandbox begins: its clock stands, and it has had no
-- request.
create or replace function pay_internal.begin_seeded(
  p_environment_id text, p_seed text, p_root text
) returns void language plpgsql volatile as $$
begin
  insert into pay.sandbox_settings (environment_id, version, frozen_at, seed, seed_root)
  values (
    p_environment_id, pay_internal.new_settings_version(), '2030-01-01T00:00:00Z', p_seed, p_root);
end $$;

-- Frees a seed for a new sandbox of the account, if the sandbox that has it has ended. Returns
-- whether the seed is free.
-- Concurrency: the caller holds the account's lock (pay_internal.take_sandbox_quota), so two
-- creates never take the same seed.
create or replace function pay_internal.free_seed(
  p_root text, p_at timestamptz, out is_free boolean
) language plpgsql volatile as $$
declare
  v_opened constant text := current_setting('pay.environment_ids', true);
  v_holder record;
begin
  perform pay_internal.act_as_worker();
  select e.public_id, e.ends_at into v_holder
  from pay.sandbox_settings w join pay.environments e on e.id = w.environment_id
  where w.seed_root = p_root;
  is_free := v_holder.public_id is null or v_holder.ends_at <= p_at;
  if is_free and v_holder.public_id is not null then
    perform pay_internal.retire_sandbox(v_holder.public_id, p_at);
  end if;
  perform pay_internal.act_as_worker(false);
  perform set_config('pay.environment_ids', v_opened, true);
end $$;

-- Brings a seeded sandbox back to its start in a reset: the new environment begins with the seed,
-- and the endpoints of the old one are deleted, because the next run makes the same ids again.
-- Does nothing for other sandboxes.
create or replace function pay_internal.restart_seeded(p_old text, p_new text)
returns void language plpgsql volatile as $$
declare
  v_settings pay.sandbox_settings;
begin
  delete from pay.sandbox_settings w where w.environment_id = p_old and w.seed is not null
  returning * into v_settings;
  if v_settings.seed is not null then
    perform pay_internal.begin_seeded(p_new, v_settings.seed, v_settings.seed_root);
    delete from pay.webhook_endpoints t where t.environment_id = p_new;
  end if;
end $$;

-- Opens the test environment of a valid secret. Returns null if there is none: then admission
-- refuses the request.
-- Concurrency: shares the lock of the environment, so it waits for a reset or for a step of the
-- clock. A reset moves the key to another environment, so the key is looked up again after a wait.
create or replace function pay_internal.open_by_hash(p_key_hash text, out environment text)
language plpgsql volatile as $$
declare
  v_hash constant bytea := decode(p_key_hash, 'hex');
  v_held text := '';
begin
  perform set_config('pay.key_hashes', array[v_hash]::text, true);
  loop
    environment := (
      select s.environment_id from pay.api_key_secrets s
      where s.hash = v_hash and s.revoked_at is null and not s.livemode
        and (s.ends_at is null or s.ends_at > pay_internal.server_time())
    );
    exit when environment is null or environment = v_held;
    v_held := environment;
    perform pg_advisory_xact_lock_shared(hashtextextended('environment ' || v_held, 0));
  end loop;
  if environment is not null then
    perform set_config('pay.environment_ids', array[environment]::text, true);
  end if;
end $$;

-- Gives the next request of a seeded sandbox its number. Returns the settings of the sandbox with
-- that number as JSON text; null if the key is not valid or its sandbox has no seed.
-- Raises lock_not_available while the account moves to another cell.
-- Concurrency: requests of one sandbox wait for each other only here.
create or replace function pay.number_request(p_key_hash text)
returns text language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_environment constant text := pay_internal.open_by_hash(p_key_hash);
  v_settings text;
begin
  if v_environment is not null then
    perform pay_internal.refuse_moving(v_environment);
    update pay.sandbox_settings w set requests = w.requests + 1
    where w.environment_id = v_environment and w.seed is not null
    returning row_to_json(w)::text into v_settings;
  end if;
  return v_settings;
end $$;
grant execute on function pay.number_request to pay_api;

-- Stores a request and its response in the transcript of a seeded sandbox. Does nothing after a
-- reset, once the account's rows are compared with those of another cell, after
-- pay_internal.max_transcript_lines() requests, once the transcript has
-- pay_internal.max_transcript_bytes(), and while the sandboxes of the account store p_storage_gb
-- gigabytes; null: no limit.
create or replace function pay.store_transcript_line(
  p_key_hash text, p_n bigint, p_line text, p_storage_gb integer default null
) returns void language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_environment constant text := pay_internal.open_by_hash(p_key_hash);
begin
  update pay.sandbox_settings w set transcript_bytes = w.transcript_bytes + octet_length(p_line)
  where w.environment_id = v_environment and w.seed is not null and w.requests >= p_n
    and w.transcript_bytes < pay_internal.max_transcript_bytes()
    and p_n <= pay_internal.max_transcript_lines()
    and not exists (select from pay.environments e
      where e.id = v_environment
        and (e.moving in ('sealed', 'arriving') or e.stored_gb >= p_storage_gb));
  if found then
    perform pay_internal.lock_logs(v_environment, false);
    insert into pay.transcript_lines (environment_id, n, line)
    select v_environment, p_n, coalesce(pay_internal.transcript_line(p_n, x.request, x.answer),
      p_line)
    from pay_internal.without_erased(v_environment, null, p_n,
      p_line::json ->> 'request', p_line::json ->> 'answer') x
    on conflict on constraint transcript_lines_pkey do nothing;
  end if;
end $$;
grant execute on function pay.store_transcript_line to pay_api;

-- A part of the transcript of the caller's sandbox, of about 256 KiB.
-- p_after    the number of the request after which the part begins; 0 is from the first
-- Outcomes: those of admission.sql, and
--           ok (body: the lines, oldest first, each with a line feed; detail: the number of the
--           last one if others can follow)
--           not_seeded.
create or replace function pay.transcript(p_request text, p_after bigint) returns pay.admission
language plpgsql volatile security definer as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request, 'shared', true);
  v_most_bytes constant integer := 256 * 1024;
  v_bytes integer := 0;
  v_lines text[] := '{}';
  v_line record;
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  if not exists (
    select from pay.sandbox_settings w
    where w.environment_id = v_access.environment_id and w.seed is not null
  ) then
    v_access.outcome := 'not_seeded';
    return v_access;
  end if;
  for v_line in
    select t.n, t.line from pay.transcript_lines t
    where t.environment_id = v_access.environment_id and t.n > p_after
    order by t.n
  loop
    v_lines := v_lines || (v_line.line || E'\n');
    v_bytes := v_bytes + octet_length(v_line.line);
    if v_bytes >= v_most_bytes then
      v_access.detail := v_line.n;
      exit;
    end if;
  end loop;
  v_access.body := array_to_string(v_lines, '');
  return v_access;
end $$;
grant execute on function pay.transcript to pay_api;
