-- Purpose: disposable sandboxes. A test key makes them over HTTP; they end at a time of the
-- database's clock or when they are deleted, and retention empties them (ADR 0022).
--
-- The end of a sandbox is pay.environments.ends_at. Admission reads pay.api_key_secrets.ends_at,
-- which is not later. Both stay when the sandbox is reset. pay.sandboxes lists the
-- sandboxes for the one that made them.

-- The maximum number of disposable sandboxes of an account that have not ended (contract §5).
create or replace function pay_internal.max_sandboxes()
returns integer language sql immutable parallel safe as $$ select 1000 $$;

-- The maximum number of rows of disposable sandboxes of an account, with those that have ended
-- within a day (contract §5). A reset moves the rows, so their number bounds its work.
create or replace function pay_internal.max_stored_sandboxes()
returns integer language sql immutable parallel safe as $$ select 10000 $$;

-- A disposable sandbox as JSON text, without its key.
create or replace function pay_internal.sandbox_body(p_sandbox pay.sandboxes)
returns text language sql stable as $$
  select row_to_json(t)::text from (
    select
      p_sandbox.id,
      'sandbox' as object,
      p_sandbox.name,
      p_sandbox.seed,
      pay_internal.wire_time(p_sandbox.created_at) as created_at,
      pay_internal.wire_time(p_sandbox.expires_at) as expires_at
  ) t
$$;

-- Returns whether an account may have one more disposable sandbox.
-- Concurrency: a transaction that makes one holds this lock until it ends. The count is a later
-- statement, so it sees the sandboxes of all transactions that held the lock before.
create or replace function pay_internal.take_sandbox_quota(p_account text, p_at timestamptz)
returns boolean language plpgsql volatile as $$
declare
  -- The account's other sandboxes can have made some as well.
  v_was_worker constant boolean := pay_internal.act_as_worker();
  v_count bigint;
begin
  perform pg_advisory_xact_lock(hashtextextended('sandboxes ' || p_account, 0));
  select case
      when exists (
        select from pay.sandboxes sandbox where sandbox.account = p_account
        offset pay_internal.max_stored_sandboxes() - 1
      ) then pay_internal.max_sandboxes()
      else count(*)
    end
  into v_count
  from pay.sandboxes sandbox
  where sandbox.account = p_account and sandbox.expires_at > p_at;
  perform pay_internal.act_as_worker(v_was_worker);
  return v_count < pay_internal.max_sandboxes();
end $$;

-- Writes a disposable sandbox with its environment and its first key. Opens the new environment
-- beside the caller's.
-- p_secret  {key_id, hash, prefix, last_four} of the key
create or replace function pay_internal.write_sandbox(p_sandbox pay.sandboxes, p_secret json)
returns void language plpgsql volatile as $$
begin
  perform set_config('pay.environment_ids',
    array[p_sandbox.environment_id, p_sandbox.id]::text, true);
  with made_environment as (
    insert into pay.environments
      (id, public_id, account, livemode, name, created_at, ends_at, merchant)
    select p_sandbox.id, p_sandbox.id, p_sandbox.account, false,
      coalesce(p_sandbox.name, 'Disposable sandbox'), p_sandbox.created_at, p_sandbox.expires_at,
      e.merchant
    from pay.environments e where e.id = p_sandbox.environment_id
  ),
  made_key as (
    insert into pay.api_keys (id, environment_id, livemode, name, created_at, ends_at)
    values (p_secret ->> 'key_id', p_sandbox.id, false, 'Made with the sandbox',
      p_sandbox.created_at, p_sandbox.expires_at)
  ),
  made_secret as (
    insert into pay.api_key_secrets
      (hash, api_key_id, environment_id, account, livemode, prefix, last_four, created_at, ends_at)
    values (decode(p_secret ->> 'hash', 'hex'), p_secret ->> 'key_id', p_sandbox.id,
      p_sandbox.account, false, p_secret ->> 'prefix', p_secret ->> 'last_four',
      p_sandbox.created_at, p_sandbox.expires_at)
  )
  insert into pay.sandboxes
    (environment_id, id, account, made_by, name, seed, created_at, expires_at)
  values (p_sandbox.environment_id, p_sandbox.id, p_sandbox.account, p_sandbox.made_by,
    p_sandbox.name, p_sandbox.seed, p_sandbox.created_at, p_sandbox.expires_at);
  if p_sandbox.seed is not null then
    perform pay_internal.begin_seeded(
      p_sandbox.id, p_sandbox.seed, pay_internal.seed_root(p_sandbox.account, p_sandbox.seed));
  end if;
end $$;

-- Makes a disposable sandbox of the caller's account, with a key of all scopes. It ends after
-- expires_in seconds, at the latest when the caller's key expires or is revoked.
-- p_sandbox  {id, name, seed, expires_in}; name and seed can be absent
-- p_secret   {key_id, hash, prefix, last_four, reference} of its key; the reference replaces the
--            text of the key in the stored response
-- Outcomes: those of admission.sql; committed (body) | live
--           disposable (the caller's own sandbox is disposable)
--           full (the account has pay_internal.max_sandboxes() that have not ended, or
--           pay_internal.max_stored_sandboxes() with those of the last day)
--           seed_taken (one of them has the same seed).
-- Concurrency: shares the lock of the row of the caller's key. So a revocation finds the sandbox,
-- or this function finds that the key is revoked. It does not wait for that lock, because admission
-- can have locked the secret of the key, for which a revocation waits: it asks to be sent again.
create or replace function pay.make_sandbox(p_request text, p_sandbox text, p_secret text)
returns pay.admission language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request);
  v_requested json := p_sandbox::json;
  v_secret json := p_secret::json;
  v_caller record;
  v_sandbox pay.sandboxes;
  v_body text;
begin
  select e.account, e.livemode, e.ends_at,
    least(k.expires_at - v_access.at, k.ends_at - pay_internal.server_time()) as remaining
  into v_caller
  from pay.environments e
  join pay.api_keys k on k.id = v_access.api_key_id and k.revoked_at is null
  where e.id = v_access.environment_id
  for share of k skip locked;
  if v_access.outcome = 'ok' and v_caller.account is null then
    v_access.outcome := case when exists (
      select from pay.api_keys k where k.id = v_access.api_key_id and k.revoked_at is null
    ) then 'resetting' else 'unauthorized' end;
  end if;
  -- In the precision of responses, so that the sandbox ends at the time that they show.
  v_sandbox.created_at := date_trunc('milliseconds', pay_internal.server_time());
  v_sandbox.environment_id := v_access.environment_id;
  v_sandbox.id := v_requested ->> 'id';
  v_sandbox.account := v_caller.account;
  v_sandbox.made_by := v_access.api_key_id;
  v_sandbox.name := v_requested ->> 'name';
  v_sandbox.seed := v_requested ->> 'seed';
  v_sandbox.expires_at := v_sandbox.created_at
    + least(make_interval(secs => (v_requested ->> 'expires_in')::integer),
      date_trunc('milliseconds', v_caller.remaining));
  v_body := left(pay_internal.sandbox_body(v_sandbox), -1) || ',"test_key":'
    || to_json(v_secret ->> 'reference')::text || '}';
  -- The claim stores the response, which a later update would write a second time.
  v_access := pay_internal.claim_one(
    jsonb_set(p_request::jsonb, '{0,body}', to_jsonb(v_body))::text, v_access);
  if v_access.outcome <> 'ok' then return v_access; end if;
  v_access.outcome := case
    when v_caller.livemode then 'live'
    when v_caller.ends_at is not null then 'disposable'
    when not pay_internal.take_sandbox_quota(v_caller.account, v_sandbox.created_at) then 'full'
    when v_sandbox.seed is not null and not pay_internal.free_seed(
      pay_internal.seed_root(v_caller.account, v_sandbox.seed), v_sandbox.created_at)
      then 'seed_taken'
    else 'committed'
  end;
  if v_access.outcome <> 'committed' then
    perform pay_internal.release_key(p_request, v_access);
    return v_access;
  end if;
  perform pay_internal.write_sandbox(v_sandbox, v_secret);
  v_access.body := v_body;
  return v_access;
end $$;
grant execute on function pay.make_sandbox to pay_api;

-- Ends a disposable sandbox: retires its environment, ends its keys, frees its seed and disables
-- its endpoints, so nothing more is sent. Deletes a batch of its pending deliveries; polls of the
-- dispatcher and purge_retired find the others. Does nothing if it has been retired already. The
-- settings of row-level security are then those of a worker. Concurrency: waits for the
-- requests of the sandbox that are under way. It never waits for a lock on a delivery, so it cannot
-- deadlock with a poll of the dispatcher.
create or replace function pay_internal.retire_sandbox(p_public_id text, p_at timestamptz)
returns void language plpgsql volatile as $$
declare
  v_environment text := pay_internal.hold_environment(p_public_id, true);
begin
  if v_environment is null then return; end if;
  perform set_config('pay.environment_ids', array[v_environment]::text, true);
  update pay.environments e set retired_at = p_at, ends_at = least(e.ends_at, p_at)
  where e.id = v_environment and e.ends_at is not null;
  if not found then raise exception '% is no disposable sandbox', p_public_id; end if;
  update pay.api_key_secrets s set ends_at = least(s.ends_at, p_at)
  where s.environment_id = v_environment;
  delete from pay.sandbox_settings w where w.environment_id = v_environment and w.seed is not null;
  update pay.webhook_endpoints t set status = 'disabled'
  where t.environment_id = v_environment and t.status = 'enabled';
  perform pay_internal.delete_pending(v_environment);
end $$;

-- Ends the disposable sandboxes that a key has made, because it is revoked: their keys open nothing
-- any more. Retention retires them, as those whose time has come. The caller has locked the row of
-- the key.
create or replace function pay_internal.end_sandboxes_of(p_api_key_id text)
returns void language plpgsql volatile as $$
declare
  v_opened constant text := coalesce(current_setting('pay.environment_ids', true), '');
  -- pay_internal.max_sandboxes() at most, because the account has no more that have not ended.
  v_was_worker constant boolean := pay_internal.act_as_worker();
  v_now constant timestamptz := date_trunc('milliseconds', pay_internal.server_time());
  v_environments text[];
begin
  with ended as (
    update pay.sandboxes s set expires_at = v_now
    where s.made_by = p_api_key_id and s.expires_at > v_now
    returning s.id
  )
  select array_agg(e.id) into v_environments
  from ended join pay.environments e on e.public_id = ended.id and e.retired_at is null;
  if v_environments is not null then
    -- Of the environments only the opened ones can be changed.
    perform set_config('pay.environment_ids', v_environments::text, true);
    update pay.environments e set ends_at = v_now where e.id = any (v_environments);
    update pay.api_key_secrets s set ends_at = v_now where s.environment_id = any (v_environments);
    perform set_config('pay.environment_ids', v_opened, true);
  end if;
  perform pay_internal.act_as_worker(v_was_worker);
end $$;

-- Ends a disposable sandbox that the caller's sandbox has made. Ending it again changes nothing.
-- Outcomes: those of admission.sql; committed (body) | not_found.
create or replace function pay.end_sandbox(p_request text, p_id text) returns pay.admission
language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.claim_one(p_request, pay_internal.admit_one(p_request));
  v_sandbox pay.sandboxes;
  v_now timestamptz := date_trunc('milliseconds', pay_internal.server_time());
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  select * into v_sandbox from pay.sandboxes sandbox
  where sandbox.environment_id = v_access.environment_id and sandbox.id = p_id for update;
  if v_sandbox.id is null then
    v_access.outcome := 'not_found';
    perform pay_internal.release_key(p_request, v_access);
    return v_access;
  end if;
  if v_sandbox.expires_at > v_now then
    v_sandbox.expires_at := v_now;
    update pay.sandboxes sandbox set expires_at = v_now
    where sandbox.environment_id = v_access.environment_id and sandbox.id = p_id;
  end if;
  v_access.outcome := 'committed';
  v_access.body := pay_internal.sandbox_body(v_sandbox);
  perform pay_internal.store_response(p_request, v_access);
  perform pay_internal.retire_sandbox(p_id, v_now);
  return v_access;
end $$;
grant execute on function pay.end_sandbox to pay_api;

-- Retention: retires sandboxes whose end has passed. Returns their number. The caller
-- acts as the worker. p_environment_id: null is all.
-- Concurrency: leaves a sandbox whose lock another transaction holds for the next run.
create or replace function pay_internal.retire_ended_sandboxes(
  p_environment_id text, p_at timestamptz
) returns bigint language plpgsql volatile as $$
declare
  v_id text;
  v_public_id text;
  v_total bigint := 0;
begin
  for v_id, v_public_id in
    select e.id, e.public_id from pay.environments e
    where e.ends_at <= p_at and e.retired_at is null
      and (p_environment_id is null or e.id = p_environment_id)
    order by e.ends_at limit 50
  loop
    if pg_try_advisory_xact_lock(hashtextextended('environment ' || v_id, 0)) then
      perform pay_internal.retire_sandbox(v_public_id, p_at);
      v_total := v_total + 1;
    end if;
  end loop;
  return v_total;
end $$;

-- Retention: deletes one batch of the rows of pay.sandboxes that ended a day ago. Returns their
-- number. The caller acts as the worker. p_environment_id: null is all.
create or replace function pay_internal.purge_sandboxes(
  p_environment_id text, p_at timestamptz, p_batch integer, out deleted bigint
) language plpgsql volatile as $$
begin
  delete from pay.sandboxes sandbox
  where sandbox.ctid = any (array(
    select o.ctid from pay.sandboxes o
    where o.expires_at <= p_at - pay_internal.idempotency_retention()
      and (p_environment_id is null or o.environment_id = p_environment_id)
    order by o.expires_at limit p_batch for update skip locked
  ));
  get diagnostics deleted = row_count;
end $$;
