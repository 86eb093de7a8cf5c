-- Purpose: limits on rows that a caller can multiply: active keys of an environment, active secrets
-- of a key, and stored keys and secrets that have ended.
--
-- A key ends at api_keys.expires_at or when it is revoked. A secret ends with its overlap, at the
-- latest with its key. api_key_secrets.expires_at is the earlier of the two times, so the entry
-- functions read only the secret (ADR 0015). Both have a second end, ends_at, in real time, so that
-- a sandbox whose clock stands keeps nothing alive. They end at the one that comes first.

-- The maximum number of keys of an environment that are neither revoked nor expired (ADR 0015).
create or replace function pay_internal.max_active_keys()
returns integer language sql immutable parallel safe as $$ select 100 $$;

-- The maximum number of secrets of a key that are valid at the same time (ADR 0015). Endpoints have
-- the same limit (shared/domain/webhooks/endpoint_secret.ts).
create or replace function pay_internal.max_live_secrets()
returns integer language sql immutable parallel safe as $$ select 5 $$;

-- Whether a key has expired at a time of its environment, or in real time.
create or replace function pay_internal.key_has_ended(p_key pay.api_keys, p_at timestamptz)
returns boolean language sql stable as $$
  select coalesce(p_key.expires_at <= p_at, false)
    or coalesce(p_key.ends_at <= pay_internal.server_time(), false)
$$;

-- Deletes keys with their secrets; returns the number of deleted keys.
create or replace function pay_internal.delete_keys(p_ids text[], out deleted bigint)
language plpgsql volatile as $$
begin
  delete from pay.api_key_secrets s where s.api_key_id = any (p_ids);
  delete from pay.api_keys k where k.id = any (p_ids);
  get diagnostics deleted = row_count;
end $$;

-- Returns whether an environment may have one more live key. If a sandbox has more than 1 000 ended
-- keys, also deletes the oldest, so that a loop of creating and revoking leaves a bounded number of
-- rows. Keys of live environments stay: only an operator creates them, and their list is a record.
-- Concurrency: a transaction that makes a key live holds this lock until it ends. The count is a
-- later statement, so it sees the keys of all transactions that held the lock before.
create or replace function pay_internal.take_key_quota(p_environment_id text, p_at timestamptz)
returns boolean language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('keys ' || p_environment_id, 0));
  if (
    select count(*) from pay.api_keys k
    where k.environment_id = p_environment_id and k.revoked_at is null
      and not pay_internal.key_has_ended(k, p_at)
  ) >= pay_internal.max_active_keys() then
    return false;
  end if;
  -- Skips rows that a rotation has locked, because the rotation may wait for this lock.
  perform pay_internal.delete_keys(array(
    select k.id from pay.api_keys k
    where k.id in (
      select o.id from pay.api_keys o
      where o.environment_id = p_environment_id and not o.livemode
        and (o.revoked_at is not null
          or pay_internal.key_has_ended(
            o, least(p_at, pay_internal.environment_time(p_environment_id))))
      order by least(o.revoked_at, o.expires_at, o.ends_at) desc, o.id desc
      offset 1000
    )
    for update skip locked
  ));
  return true;
end $$;

-- Deletes secrets that had ended at p_at of their environment, or in real time, except the newest
-- of each key, whose last four characters lists show. The key keeps the time of the last use of the
-- deleted secrets. The caller has locked the rows of the keys.
create or replace function pay_internal.drop_ended_secrets(
  p_ids text[], p_at timestamptz, out deleted bigint
) language plpgsql volatile as $$
begin
  with gone as (
    delete from pay.api_key_secrets s
    where s.api_key_id = any (p_ids)
      and (s.expires_at <= p_at or s.ends_at <= pay_internal.server_time())
      and exists (
        select from pay.api_key_secrets newer
        where newer.api_key_id = s.api_key_id
          and (newer.created_at, newer.hash) > (s.created_at, s.hash)
      )
    returning s.api_key_id, s.last_used_at
  ),
  noted as (
    update pay.api_keys k set last_used_at = g.last_used_at
    from (
      select gone.api_key_id, max(gone.last_used_at) as last_used_at from gone group by 1
    ) g
    where k.id = g.api_key_id and g.last_used_at is not null
      and (k.last_used_at is null or k.last_used_at < g.last_used_at)
  )
  select count(*) into deleted from gone;
end $$;

-- Deletes one batch of each kind from an environment: secrets that have ended, keys of a sandbox
-- that ended 30 days ago, secrets of endpoints that have ended. Returns the number of deleted and
-- shortened rows. Leaves locked rows for the next run. The environment's clock decides which rows
-- have ended.
create or replace function pay_internal.purge_keys(
  p_environment_id text, p_at timestamptz, p_batch integer
) returns bigint language plpgsql volatile as $$
declare
  v_at timestamptz := least(p_at, pay_internal.environment_time(p_environment_id));
  v_rows bigint;
  v_total bigint;
begin
  v_total := pay_internal.drop_ended_secrets(array(
    select k.id from pay.api_keys k
    where k.environment_id = p_environment_id and exists (
      select from pay.api_key_secrets s
      where s.api_key_id = k.id
        and (s.expires_at <= v_at or s.ends_at <= pay_internal.server_time())
        and exists (
          select from pay.api_key_secrets newer
          where newer.api_key_id = k.id and (newer.created_at, newer.hash) > (s.created_at, s.hash)
        )
    )
    limit p_batch for update skip locked
  ), v_at);

  v_total := v_total + pay_internal.delete_keys(array(
    select k.id from pay.api_keys k
    where k.environment_id = p_environment_id and not k.livemode
      and least(k.revoked_at, k.expires_at) <= v_at - interval '30 days'
    limit p_batch for update skip locked
  ));

  update pay.webhook_endpoints t
  set secrets = (
    select json_agg(s.source order by s.n)
    from json_array_elements(t.secrets) with ordinality as s (source, n)
    where (s.source ->> 'expires_at' is null or (s.source ->> 'expires_at')::timestamptz > v_at)
      and (s.source ->> 'ends_at' is null
        or (s.source ->> 'ends_at')::timestamptz > pay_internal.server_time())
  )
  where t.id in (
    select o.id from pay.webhook_endpoints o
    where o.environment_id = p_environment_id and exists (
      select from json_array_elements(o.secrets) as s (source)
      where (s.source ->> 'expires_at')::timestamptz <= v_at
        or (s.source ->> 'ends_at')::timestamptz <= pay_internal.server_time()
    )
    for update skip locked
  ) and t.environment_id = p_environment_id;
  get diagnostics v_rows = row_count;
  return v_total + v_rows;
end $$;
