-- Purpose: the entry functions that change webhook endpoints and deliveries for a caller's key.
--
-- The text of a secret is stored nowhere: kept answers hold a reference to it, which the functions
-- replace by the secret when they replay them.

-- Creates, updates or deletes an endpoint.
-- p_expects_revision  the revision that the change was decided on; null for a create
-- p_endpoint          {id, url, events, status, secrets, revision, created_at, body}; null for a delete
-- p_status, p_body    the answer to keep under the idempotency key
-- Outcomes: committed | replay | conflict | expired | stale (changed or deleted since) |
--           full (16 endpoints) | calling_off (it was disabled, and deliveries from before are not all
--           cancelled yet: send again soon) | unauthorized | forbidden.
-- Concurrency: an update waits for the row, then compares the revision. Creates of one environment
-- queue on an advisory lock, so two cannot take one slot.
create or replace function pay.change_webhook_endpoint(
  p_key_hash text,
  p_scope text,
  p_at timestamptz,
  p_rate integer[],
  p_request_id text,
  p_idempotency_key text,
  p_fingerprint text,
  p_status smallint,
  p_body text,
  p_id text,
  p_expects_revision integer,
  p_endpoint text
)
returns table (
  outcome text, api_key_id text, remaining integer, status smallint, body text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
as $$
#variable_conflict use_column
declare
  v_environment text;
  v_revision integer;
  v_status_before text;
  v_slot smallint;
  v_endpoint record;
begin
  select * into outcome, api_key_id, v_environment, remaining
  from pay.enter(p_key_hash, p_scope, p_at, null, 'shared');
  if outcome = 'ok' and p_expects_revision is not null then
    select t.revision, t.status into v_revision, v_status_before from pay.webhook_endpoints t
    where t.environment_id = v_environment and t.id = p_id
    for update;
    -- Gone as well: whoever loads it again finds a twin's answer before its absence.
    outcome := case when v_revision = p_expects_revision then 'ok' else 'stale' end;
  end if;
  if outcome = 'ok' then
    select * into outcome, remaining, status, body from pay.claim_idempotency_key(
      v_environment, api_key_id, p_at, p_rate, p_request_id, p_idempotency_key, p_fingerprint,
      p_status, p_body);
  end if;
  if outcome <> 'ok' then
    return next;
    return;
  end if;

  select * into v_endpoint from json_to_record(p_endpoint::json) as e (
    id text, url text, events text[], status text, secrets json, revision integer,
    created_at timestamptz, body text
  );
  if v_status_before = 'disabled' and v_endpoint.status = 'enabled'
    and pay.call_off_deliveries(v_environment, p_id, pay.called_off_at_once())
  then
    perform pay.release_idempotency_key(v_environment, api_key_id, p_request_id, p_idempotency_key);
    outcome := 'calling_off';
    return next;
    return;
  end if;
  if p_endpoint is null then
    delete from pay.webhook_endpoints t where t.environment_id = v_environment and t.id = p_id;
  elsif p_expects_revision is null then
    perform pg_advisory_xact_lock(hashtextextended(v_environment, 0));
    select min(free.slot) into v_slot
    from generate_series(0, 15) as free (slot)
    where not exists (
      select from pay.webhook_endpoints t
      where t.environment_id = v_environment and t.slot = free.slot
    );
    if v_slot is null then
      -- The claim of the idempotency key goes with the refusal.
      perform pay.release_idempotency_key(v_environment, api_key_id, p_request_id, p_idempotency_key);
      outcome := 'full';
      return next;
      return;
    end if;
    insert into pay.webhook_endpoints
      (environment_id, id, slot, url, events, status, secrets, revision, created_at, body)
    values
      (v_environment, v_endpoint.id, v_slot, v_endpoint.url, v_endpoint.events, v_endpoint.status,
        v_endpoint.secrets, v_endpoint.revision, v_endpoint.created_at, v_endpoint.body);
  else
    update pay.webhook_endpoints t
    set url = v_endpoint.url, events = v_endpoint.events, status = v_endpoint.status,
      secrets = v_endpoint.secrets, revision = v_endpoint.revision, body = v_endpoint.body,
      failing_since = case
        when v_endpoint.status = t.status and v_endpoint.url = t.url then t.failing_since
      end
    where t.environment_id = v_environment and t.id = p_id;
  end if;
  if p_endpoint is null or v_endpoint.status = 'disabled' then
    perform pay.call_off_deliveries(v_environment, p_id, pay.called_off_at_once());
  end if;
  outcome := 'committed';
  return next;
end
$$;

-- Puts a delivery in line again, at once. Its earlier attempts stay recorded.
-- p_refusal  the 409 to answer, and to keep, when the endpoint is gone or disabled
-- Outcomes: committed (body) | replay | conflict | expired | not_found | off | unauthorized | forbidden.
create or replace function pay.redeliver(
  p_key_hash text,
  p_scope text,
  p_at timestamptz,
  p_rate integer[],
  p_request_id text,
  p_idempotency_key text,
  p_fingerprint text,
  p_id text,
  p_refusal text
)
returns table (
  outcome text, api_key_id text, remaining integer, status smallint, body text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
as $$
#variable_conflict use_column
declare
  v_environment text;
  v_delivery pay.webhook_deliveries;
begin
  select * into outcome, api_key_id, v_environment, remaining
  from pay.enter(p_key_hash, p_scope, p_at, null, 'shared');
  if outcome = 'ok' then
    select * into outcome, remaining, status, body from pay.claim_idempotency_key(
      v_environment, api_key_id, p_at, p_rate, p_request_id, p_idempotency_key, p_fingerprint,
      200::smallint, '');
  end if;
  if outcome <> 'ok' then
    return next;
    return;
  end if;
  select * into v_delivery from pay.webhook_deliveries d
  where d.environment_id = v_environment and d.id = p_id
  for update;
  if v_delivery.id is null then
    outcome := 'not_found';
    perform pay.release_idempotency_key(v_environment, api_key_id, p_request_id, p_idempotency_key);
    return next;
    return;
  end if;
  if exists (
    select from pay.webhook_endpoints t
    where t.environment_id = v_environment and t.id = v_delivery.endpoint_id
      and t.status = 'enabled'
  ) then
    outcome := 'committed';
    -- An attempt that is under way goes on; the delivery is then due again only if it fails.
    if v_delivery.leased_until is null or v_delivery.leased_until <= p_at then
      update pay.webhook_deliveries d
      set status = 'pending', next_attempt_at = least(p_at, pay.server_time())
      where d.environment_id = v_environment and d.id = p_id
      returning * into v_delivery;
    end if;
    status := 200;
    body := pay.webhook_delivery_body(v_delivery);
  else
    outcome := 'off';
    status := 409;
    body := p_refusal;
  end if;
  perform pay.keep_answer(v_environment, api_key_id, p_request_id, p_idempotency_key, status, body);
  return next;
end
$$;

-- Records an event that was triggered by hand, and its delivery with the attempt under way. The
-- delivery is leased from its first moment, so that the relay leaves it alone. The idempotency key is
-- claimed with status 102 before the attempt is made, so that no twin makes another; when the claimant
-- dies, the claim ends with the lease.
-- Outcomes: committed | replay | conflict | expired | in_progress | unauthorized | forbidden |
--           not_found (the endpoint is gone).
create or replace function pay.begin_trigger(
  p_key_hash text,
  p_scope text,
  p_at timestamptz,
  p_request_id text,
  p_idempotency_key text,
  p_fingerprint text,
  p_endpoint_id text,
  p_event_id text,
  p_type text,
  p_subject_id text,
  p_body text,
  p_delivery_id text,
  p_leased_until timestamptz
)
returns table (
  outcome text, api_key_id text, remaining integer, status smallint, body text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
as $$
#variable_conflict use_column
declare
  v_environment text;
  v_leased_until timestamptz := pay.server_time() + (p_leased_until - p_at);
begin
  select * into outcome, api_key_id, v_environment, remaining
  from pay.enter(p_key_hash, p_scope, p_at, null, 'shared');
  if outcome = 'ok' and not exists (
    select from pay.webhook_endpoints t
    where t.environment_id = v_environment and t.id = p_endpoint_id
  ) then
    outcome := 'not_found';
  end if;
  if outcome = 'ok' and p_idempotency_key is not null then
    delete from pay.idempotency_keys k
    where k.environment_id = v_environment and k.api_key_id = begin_trigger.api_key_id
      and k.key = p_idempotency_key and k.status = 102
      and k.created_at <= pay.server_time() - (p_leased_until - p_at);
    select * into outcome, remaining, status, body from pay.claim_idempotency_key(
      v_environment, api_key_id, p_at, null, p_request_id, p_idempotency_key, p_fingerprint,
      102::smallint, '');
    if status = 102 then
      outcome := 'in_progress';
    end if;
  end if;
  if outcome = 'ok' then
    insert into pay.events (environment_id, id, type, subject_id, sequence, created_at, body)
    values (v_environment, p_event_id, p_type, p_subject_id, null, p_at, p_body);
    insert into pay.webhook_deliveries
      (environment_id, id, event_id, event_type, endpoint_id, subject_id, sequence, status,
        attempt_count, next_attempt_at, leased_until, created_at)
    values
      (v_environment, p_delivery_id, p_event_id, p_type, p_endpoint_id, p_subject_id, null,
        'pending', 1, v_leased_until, v_leased_until, p_at);
    outcome := 'committed';
  end if;
  return next;
end
$$;

-- Records the one attempt of a triggered delivery and keeps the answer under the key that was claimed.
-- There is no second attempt.
-- Outcomes: committed (body) | unauthorized | forbidden | not_found.
create or replace function pay.end_trigger(
  p_key_hash text,
  p_scope text,
  p_at timestamptz,
  p_request_id text,
  p_idempotency_key text,
  p_delivery_id text,
  p_delivered boolean,
  p_attempt text
)
returns table (
  outcome text, api_key_id text, remaining integer, status smallint, body text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_environment text;
  v_delivery pay.webhook_deliveries;
begin
  select * into outcome, api_key_id, v_environment, remaining
  from pay.enter(p_key_hash, p_scope, p_at, null, 'shared');
  if outcome = 'ok' then
    update pay.webhook_deliveries d
    set status = case when p_delivered then 'delivered' else 'failed' end,
      attempts = p_attempt, next_attempt_at = null, leased_until = null
    where d.environment_id = v_environment and d.id = p_delivery_id
    returning * into v_delivery;
    outcome := case when v_delivery.id is null then 'not_found' else 'committed' end;
  end if;
  if outcome = 'committed' then
    body := pay.webhook_delivery_body(v_delivery);
    perform pay.keep_answer(
      v_environment, api_key_id, p_request_id, p_idempotency_key, 200::smallint, body);
  end if;
  return next;
end
$$;

grant execute on function pay.change_webhook_endpoint(
  text, text, timestamptz, integer[], text, text, text, smallint, text, text, integer, text) to pay_api;
grant execute on function
  pay.redeliver(text, text, timestamptz, integer[], text, text, text, text, text) to pay_api;
grant execute on function pay.begin_trigger(
  text, text, timestamptz, text, text, text, text, text, text, text, text, text, timestamptz) to pay_api;
grant execute on function
  pay.end_trigger(text, text, timestamptz, text, text, text, boolean, text) to pay_api;
