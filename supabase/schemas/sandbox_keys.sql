-- Purpose: keys of a disposable sandbox that are made by the sandbox which made it (contract §5).

-- Opens a disposable sandbox beside the sandbox of the caller, which has made it. Returns the key
-- of the caller as if it were one of that sandbox: with its environment, and ending when it ends.
-- The environment is null if that sandbox has ended, and everything if the caller's has made none.
-- Concurrency: locks the row and then the sandbox, as pay.end_sandbox does. So an end finds the key
-- that follows, or this function finds the end.
create or replace function pay_internal.enter_sandbox(p_access pay.admission, p_id text)
returns pay.api_keys language plpgsql volatile as $$
declare
  v_sandbox pay.sandboxes;
  v_caller pay.api_keys;
  v_remaining interval;
begin
  select * into v_sandbox from pay.sandboxes sandbox
  where sandbox.environment_id = p_access.environment_id and sandbox.id = p_id for share;
  if v_sandbox.id is null then return null; end if;
  select * into v_caller from pay.api_keys k where k.id = p_access.api_key_id;
  v_remaining := least(
    v_caller.expires_at - p_access.at, v_caller.ends_at - pay_internal.server_time());
  v_caller.environment_id := case when v_sandbox.expires_at > pay_internal.server_time()
    then pay_internal.hold_environment(p_id) end;
  perform pay_internal.act_as_worker(false);
  perform set_config('pay.environment_ids',
    array[p_access.environment_id, v_caller.environment_id]::text, true);
  v_caller.expires_at := pay_internal.environment_time(v_caller.environment_id) + v_remaining;
  v_caller.ends_at := least(v_sandbox.expires_at, pay_internal.server_time() + v_remaining);
  return v_caller;
end $$;

-- Makes a key of a disposable sandbox that the caller's sandbox has made. It ends with that sandbox
-- and with the caller's key at the latest.
-- p_key      {id, name, scopes, expires_in}; scopes is null for all, expires_in for the latest end
-- p_secrets  {plain, seeded}: two secrets as in pay.change_api_key. A sandbox with a seed takes the
--            second
-- p_refusal  the 409 to return and to store if the sandbox has ended
-- Outcomes: those of admission.sql, and of pay.change_api_key: committed (body) | not_found | wider
-- |
--           ended | full.
create or replace function pay.make_sandbox_key(
  p_request text, p_sandbox_id text, p_key text, p_secrets text, p_refusal text
) returns pay.admission language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.claim_one(p_request, pay_internal.admit_one(p_request));
  v_caller pay.api_keys;
  v_key pay.api_keys;
  v_at timestamptz;
  v_has_seed boolean;
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  v_caller := pay_internal.enter_sandbox(v_access, p_sandbox_id);
  v_at := pay_internal.environment_time(v_caller.environment_id);
  v_has_seed := exists (
    select from pay.sandbox_settings w
    where w.environment_id = v_caller.environment_id and w.seed is not null
  );
  if v_caller.id is not null then
    v_key := json_populate_record(null::pay.api_keys, p_key::json);
    -- In the precision of responses, so that the key ends at the time that they show.
    v_key.expires_at := date_trunc('milliseconds', v_at)
      + make_interval(secs => (p_key::json ->> 'expires_in')::integer);
  end if;
  return pay_internal.respond_key_change(
    p_request, v_access, v_caller, v_key, 'create', v_at, v_at - pay_internal.server_time(),
    p_secrets::json -> case when v_has_seed then 'seeded' else 'plain' end, null, p_refusal);
end $$;
grant execute on function pay.make_sandbox_key to pay_api;
