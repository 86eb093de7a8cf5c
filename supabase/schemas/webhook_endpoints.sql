-- Purpose: webhook endpoints: their entry functions for a caller's key, and the functions with
-- which the dispatcher disables an endpoint that fails for too long.
--
-- The text of a secret is stored nowhere. Stored responses contain a reference, which the functions
-- replace by the secret in a replay (ADR 0015).
--
-- p_request is always the request, as pay_internal.admit takes it, in a list of one. Outcomes:
-- those of admission.sql, committed, and those that each function lists.

-- An endpoint as JSON text, with a last member that is there only while its attempts fail. The
-- stored body never has that member, because the dispatcher records a failure in a column only.
create or replace function pay_internal.webhook_endpoint_body(p_endpoint pay.webhook_endpoints)
returns text language sql immutable as $$
  select case when p_endpoint.failing_since is not null and p_endpoint.status = 'enabled'
    then left(p_endpoint.body, -1) || ',"failing":true}'
    else p_endpoint.body end
$$;

-- Inserts a new endpoint in a free slot of its environment: 16 slots, or 64 in a sandbox. Returns
-- false if no slot is free.
-- Concurrency: creates of one environment queue on an advisory lock, so two cannot take one slot.
create or replace function pay_internal.insert_webhook_endpoint(p_endpoint pay.webhook_endpoints)
returns boolean language plpgsql volatile as $$
declare
  v_endpoint pay.webhook_endpoints := p_endpoint;
begin
  perform pg_advisory_xact_lock(hashtextextended(v_endpoint.environment_id, 0));
  select min(free.slot) into v_endpoint.slot
  from pay.environments e
  cross join generate_series(0, case when e.livemode then 15 else 63 end) as free (slot)
  where e.id = v_endpoint.environment_id and not exists (
    select from pay.webhook_endpoints t
    where t.environment_id = e.id and t.slot = free.slot
  );
  if v_endpoint.slot is null then return false; end if;
  insert into pay.webhook_endpoints
    (environment_id, id, slot, delivery, url, events, status, secrets, revision, created_at, body)
  values
    (v_endpoint.environment_id, v_endpoint.id, v_endpoint.slot, v_endpoint.delivery, v_endpoint.url,
      v_endpoint.events, v_endpoint.status, v_endpoint.secrets, v_endpoint.revision,
      v_endpoint.created_at, v_endpoint.body);
  return true;
end $$;

-- The maximum number of endpoints of an account's disposable sandboxes (contract §5). Each poll of
-- the dispatcher looks at every endpoint that has pending deliveries.
create or replace function pay_internal.max_sandbox_endpoints()
returns integer language sql immutable parallel safe as $$ select 2000 $$;

-- Returns whether an environment may have one more endpoint: true for one that is not a disposable
-- sandbox.
-- Concurrency: as pay_internal.take_sandbox_quota.
create or replace function pay_internal.take_endpoint_quota(p_environment_id text)
returns boolean language plpgsql volatile as $$
declare
  v_was_worker boolean;
  v_account text;
  v_count bigint;
begin
  select e.account into v_account from pay.environments e
  where e.id = p_environment_id and e.ends_at is not null;
  if v_account is null then return true; end if;
  perform pg_advisory_xact_lock(hashtextextended('endpoints ' || v_account, 0));
  v_was_worker := pay_internal.act_as_worker();
  select count(*) into v_count from (
    select from pay.sandboxes sandbox
    join pay.environments e on e.public_id = sandbox.id and e.retired_at is null
    join pay.webhook_endpoints t on t.environment_id = e.id
    where sandbox.account = v_account and sandbox.expires_at > pay_internal.server_time()
    limit pay_internal.max_sandbox_endpoints()
  ) l;
  perform pay_internal.act_as_worker(v_was_worker);
  return v_count < pay_internal.max_sandbox_endpoints();
end $$;

-- Writes an admitted change of an endpoint: p_before is null for a create, p_endpoint for a delete.
-- Returns committed, full, crowded, calling_off or unread, as pay.change_webhook_endpoint does.
create or replace function pay_internal.write_webhook_endpoint(
  p_environment_id text, p_id text, p_before pay.webhook_endpoints, p_endpoint pay.webhook_endpoints
) returns text language plpgsql volatile as $$
declare
  v_is_deleted boolean := p_endpoint.id is null;
begin
  if p_before.status = 'disabled' and p_before.delivery = 'url' and p_endpoint.status = 'enabled'
    and pay_internal.call_off_deliveries(p_environment_id, p_id, pay_internal.called_off_at_once())
  then
    return 'calling_off';
  end if;
  if p_before.delivery = 'inbox' and v_is_deleted
    and not pay_internal.call_off_inbox(p_environment_id, p_id)
  then
    return 'calling_off';
  end if;
  if p_before.delivery = 'inbox' and p_endpoint.delivery = 'url'
    and not pay_internal.empty_inbox(p_environment_id, p_id)
  then
    return 'unread';
  end if;
  if v_is_deleted then
    delete from pay.webhook_endpoints t where t.environment_id = p_environment_id and t.id = p_id;
  elsif p_before.id is null then
    if not pay_internal.take_endpoint_quota(p_environment_id) then return 'crowded'; end if;
    if not pay_internal.insert_webhook_endpoint(p_endpoint) then return 'full'; end if;
  else
    update pay.webhook_endpoints t
    set delivery = p_endpoint.delivery, url = p_endpoint.url, events = p_endpoint.events,
      status = p_endpoint.status,
      secrets = p_endpoint.secrets, revision = p_endpoint.revision, body = p_endpoint.body,
      failing_since = case
        when p_endpoint.status = t.status and p_endpoint.url = t.url then t.failing_since
      end
    where t.environment_id = p_environment_id and t.id = p_id;
  end if;
  -- A disabled inbox keeps the deliveries from before.
  if v_is_deleted or (p_endpoint.status = 'disabled' and p_endpoint.delivery = 'url') then
    perform pay_internal.call_off_deliveries(
      p_environment_id, p_id, pay_internal.called_off_at_once());
  end if;
  return 'committed';
end $$;

-- Creates, updates or deletes an endpoint.
-- p_expects_revision  the revision that the change was decided on; null for a create
-- p_endpoint          {id, delivery, url, events, status, secrets, revision, created_at, body};
--                     null for a delete
-- Outcomes: stale (the endpoint was changed or deleted since)
--           full (the environment has no free slot)
--           crowded (the disposable sandboxes of the account have max_sandbox_endpoints())
--           calling_off (the endpoint was disabled, and some of its deliveries from before are not
--           cancelled yet, or some of a deleted inbox: send the request again soon)
--           unread (the inbox has too many deliveries to send all of them to the new URL).
-- Concurrency: an update waits for the row, then compares the revision.
create or replace function pay.change_webhook_endpoint(
  p_request text, p_id text, p_expects_revision integer, p_endpoint text
) returns pay.admission language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request);
  v_before pay.webhook_endpoints;
  v_endpoint pay.webhook_endpoints;
begin
  if v_access.outcome = 'ok' and p_expects_revision is not null then
    select * into v_before from pay.webhook_endpoints t
    where t.environment_id = v_access.environment_id and t.id = p_id
    for update;
    -- Stale also if it is gone: the caller loads it again and is told that it is not there.
    if v_before.revision is distinct from p_expects_revision then
      v_access.outcome := 'stale';
    end if;
  end if;
  v_access := pay_internal.claim_one(p_request, v_access);
  if v_access.outcome <> 'ok' then return v_access; end if;
  if p_endpoint is not null then
    v_endpoint := json_populate_record(null::pay.webhook_endpoints, p_endpoint::json);
    v_endpoint.environment_id := v_access.environment_id;
  end if;
  v_access.outcome := pay_internal.write_webhook_endpoint(
    v_access.environment_id, p_id, v_before, v_endpoint);
  if v_access.outcome <> 'committed' then
    perform pay_internal.release_key(p_request, v_access);
  end if;
  return v_access;
end $$;
grant execute on function pay.change_webhook_endpoint to pay_api;

-- Records a triggered event, and its delivery with an attempt under way. The delivery has a lease
-- from the start, so the dispatcher does not lease it. The function claims the idempotency key with
-- status 102 before the attempt, so that no duplicate makes another attempt. If the process
-- crashes, the claim ends with the lease.
-- p_trigger  {endpoint_id, event_id, type, subject_id, body, traceparent, delivery_id,
--            leased_until}. Without leased_until nobody makes an attempt: the event goes into the
--            inbox of the endpoint, and the delivery is the response
-- Outcomes: committed (body, for an inbox) | not_found (the endpoint does not exist).
create or replace function pay.begin_trigger(p_request text, p_trigger text) returns pay.admission
language plpgsql volatile security definer set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request);
  v_request jsonb := p_request::jsonb -> 0;
  v_trigger record;
  v_delivery pay.webhook_deliveries;
  v_leased_until timestamptz;
begin
  select *, t.leased_until - v_access.at as lease into v_trigger
  from json_to_record(p_trigger::json) as t (
    endpoint_id text, event_id text, type text, subject_id text, body text, request_id text,
    traceparent text, delivery_id text, leased_until timestamptz
  );
  v_leased_until := pay_internal.server_time() + v_trigger.lease;
  if v_access.outcome = 'ok' then
    delete from pay.idempotency_keys k
    where k.environment_id = v_access.environment_id and k.api_key_id = v_access.api_key_id
      and k.key = v_request ->> 'idempotency_key' and k.status = 102
      -- Not a request with the same key that waits for a provider.
      and k.fingerprint = decode(v_request ->> 'fingerprint', 'hex')
      and k.created_at <= pay_internal.server_time() + coalesce(v_access.ahead, '0')
        - v_trigger.lease;
    if not exists (
      select from pay.webhook_endpoints t
      where t.environment_id = v_access.environment_id and t.id = v_trigger.endpoint_id
    ) then
      v_access.outcome := 'not_found';
    end if;
    -- Waits for an erasure, which does not see the event, or makes it wait.
    if exists (
      select from pay.payments p
      where p.environment_id = v_access.environment_id and p.id = v_trigger.subject_id
        and p.is_erased for share
    ) then
      v_trigger.body := pay_internal.without_persons(v_trigger.body);
    end if;
  end if;
  v_access := pay_internal.claim_one(p_request, v_access);
  if v_access.outcome = 'ok' then
    insert into pay.events
      (environment_id, id, type, subject_id, sequence, created_at, body, request_id, traceparent)
    values (v_access.environment_id, v_trigger.event_id, v_trigger.type, v_trigger.subject_id, null,
      v_access.at, v_trigger.body, v_trigger.request_id, v_trigger.traceparent);
    insert into pay.webhook_deliveries
      (environment_id, id, event_id, event_type, endpoint_id, subject_id, sequence, status,
        attempt_count, next_attempt_at, leased_until, created_at, due_at)
    values
      (v_access.environment_id, v_trigger.delivery_id, v_trigger.event_id, v_trigger.type,
        v_trigger.endpoint_id, v_trigger.subject_id, null, 'pending',
        case when v_leased_until is null then 0 else 1 end,
        coalesce(v_leased_until, pay_internal.server_time()), v_leased_until, v_access.at,
        case when v_access.ahead is not null then v_access.at end);
    v_access.outcome := 'committed';
  end if;
  if v_access.outcome = 'committed' and v_leased_until is null then
    perform pay_internal.fill_inbox(
      v_access.environment_id, v_trigger.endpoint_id, pay_internal.inbox_fill());
    select * into v_delivery from pay.webhook_deliveries d
    where d.environment_id = v_access.environment_id and d.id = v_trigger.delivery_id;
    v_access.status := 200;
    v_access.body := pay_internal.webhook_delivery_body(v_delivery);
    perform pay_internal.store_response(p_request, v_access);
  end if;
  return v_access;
end $$;
grant execute on function pay.begin_trigger to pay_api;

-- Records the only attempt of a triggered delivery and stores the response under the claimed key,
-- unless a dispatcher has leased the delivery since.
-- p_entry  the entry of the log, as in pay_internal.log_attempts; null: none
-- Outcomes: committed (body) | not_found.
create or replace function pay.end_trigger(
  p_request text, p_delivery_id text, p_delivered boolean, p_attempt text, p_entry text default null
) returns pay.admission language plpgsql volatile security definer as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request);
  v_delivery pay.webhook_deliveries;
begin
  if v_access.outcome <> 'ok' then return v_access; end if;
  update pay.webhook_deliveries d
  set status = case when p_delivered then 'delivered' else 'failed' end,
    attempts = array[p_attempt::json], next_attempt_at = null, leased_until = null
  where d.environment_id = v_access.environment_id and d.id = p_delivery_id
    and d.attempt_count = 1
  returning * into v_delivery;
  if v_delivery.id is null then
    v_access.outcome := 'not_found';
    return v_access;
  end if;
  if p_entry is not null then
    perform pay_internal.log_attempts(jsonb_build_array(p_entry::jsonb || jsonb_build_object(
      'environment_id', v_delivery.environment_id, 'id', v_delivery.id,
      'attempt', v_delivery.attempt_count)));
  end if;
  v_access.outcome := 'committed';
  v_access.status := 200;
  v_access.body := pay_internal.webhook_delivery_body(v_delivery);
  perform pay_internal.store_response(p_request, v_access);
  return v_access;
end $$;
grant execute on function pay.end_trigger to pay_api;

-- The maximum number of deliveries that a change of an endpoint cancels: a tenth of a second's
-- work.
create or replace function pay_internal.called_off_at_once()
returns integer language sql immutable parallel safe as $$ select 5000 $$;

-- Cancels at most p_most pending deliveries of a deleted or disabled endpoint, because a statement
-- has a deadline (ADR 0004). Polls of the dispatcher cancel the others. Returns true if there may
-- be more. An attempt under way ends by itself; the dispatcher then cancels the deliveries after
-- it.
-- Concurrency: skips rows that another transaction has locked; a poll of the dispatcher finds them.
create or replace function pay_internal.call_off_deliveries(
  p_environment_id text, p_endpoint_id text, p_most integer
) returns boolean language sql volatile as $$
  with called_off as (
    update pay.webhook_deliveries d
    set status = 'cancelled', next_attempt_at = null, leased_until = null
    from (
      select w.id from pay.webhook_deliveries w
      where w.environment_id = p_environment_id and w.endpoint_id = p_endpoint_id
        and w.status = 'pending'
        and (w.leased_until is null or w.leased_until <= pay_internal.server_time())
      limit p_most
      for update skip locked
    ) waiting
    where d.environment_id = p_environment_id and d.id = waiting.id
    returning d.id
  )
  select count(*) >= p_most from called_off
$$;

-- The data of an endpoint that the dispatcher needs to disable it.
create or replace function pay.load_webhook_endpoint(p_environment_id text, p_id text)
returns table (revision integer, status text, body text)
language plpgsql volatile security definer rows 1 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select t.revision, t.status, t.body from pay.webhook_endpoints t
    where t.environment_id = p_environment_id and t.id = p_id;
end $$;
grant execute on function pay.load_webhook_endpoint to pay_api;

-- Disables an endpoint for the dispatcher. Writes the event, with a delivery to each other endpoint
-- of the environment that subscribes to it. Outcome: committed | stale.
create or replace function pay.disable_webhook_endpoint(
  p_environment_id text, p_id text, p_expects_revision integer, p_at timestamptz,
  p_endpoint_body text, p_event_id text, p_delivery_id text
) returns text language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  update pay.webhook_endpoints t
  set status = 'disabled', revision = t.revision + 1, body = p_endpoint_body
  where t.environment_id = p_environment_id and t.id = p_id
    and t.revision = p_expects_revision and t.status = 'enabled';
  if not found then return 'stale'; end if;
  perform pay_internal.call_off_deliveries(
    p_environment_id, p_id, pay_internal.called_off_at_once());
  perform pay_internal.write_events(
    array[row(1, p_event_id, 'webhook_endpoint.disabled', p_id, p_expects_revision + 1, p_at,
      p_delivery_id, null, null, null, 1, null)::pay_internal.event_row], array[p_endpoint_body],
    array[row(1, p_environment_id, null, (
      select pay_internal.time_ahead(w) from pay.sandbox_settings w
      where w.environment_id = p_environment_id))::pay_internal.caller]);
  return 'committed';
end $$;
grant execute on function pay.disable_webhook_endpoint to pay_api;
