-- Purpose: the settings of a sandbox that uses special features, such as a clock of its own
-- (ADR 0023).
--
-- Most sandboxes have no row, and their requests pay one index probe. Each request carries the
-- version of the settings that its function knows. pay_internal.admit compares it with the row: if
-- they differ, the outcome is outdated, and the response has the row, so a function learns new
-- settings from the first request that needs them.
--
-- Concurrency: a transaction that writes the row holds the sandbox's lock alone. A request shares
-- that lock, so its settings do not change before it ends.

-- The latest time that the clock of a sandbox shows (contract §7): a clock that runs stands there.
-- Times that follow from it, such as retries, deadlines and ends, stay far below the year 3085, up
-- to which ids sort by time, and the year 9999, after which RFC 3339 and PostgreSQL differ. It is
-- the limit of sandbox_settings_below_ceiling, and CLOCK_CEILING_MS in TypeScript.
create or replace function pay_internal.clock_ceiling()
returns timestamptz language sql immutable parallel safe
as $$ select timestamptz '2200-01-01T00:00:00Z' $$;

-- How far the clock of a sandbox is ahead of the server's time. Negative if the sandbox is behind,
-- which only a frozen clock can be.
create or replace function pay_internal.time_ahead(p_settings pay.sandbox_settings)
returns interval language sql stable as $$
  select coalesce(p_settings.frozen_at, least(
    pay_internal.server_time() + p_settings.offset_ms * interval '1 ms',
    case when p_settings.version > 0 then pay_internal.clock_ceiling() end))
      - pay_internal.server_time()
$$;

-- The present time of an environment: the server's time, unless its sandbox has a clock of its own.
-- The caller has opened the environment, or is a worker.
create or replace function pay_internal.environment_time(p_environment_id text)
returns timestamptz language plpgsql stable as $$
begin
  return pay_internal.server_time() + coalesce((
    select pay_internal.time_ahead(w) from pay.sandbox_settings w
    where w.environment_id = p_environment_id
  ), '0');
end $$;

-- The real time at which a time of a sandbox comes: infinity while its clock stands before it, and
-- if it never comes. If that time has come, the real times keep the order of the times.
create or replace function pay_internal.real_due_at(
  p_settings pay.sandbox_settings, p_due_at timestamptz
) returns timestamptz language sql stable as $$
  select case
    when p_due_at > coalesce(p_settings.frozen_at, pay_internal.clock_ceiling()) then 'infinity'
    when p_settings.frozen_at is null then p_due_at - p_settings.offset_ms * interval '1 ms'
    else pay_internal.server_time() - (p_settings.frozen_at - p_due_at)
  end
$$;

-- The same by the present settings of a sandbox; p_due_at itself if it has none.
create or replace function pay_internal.real_due(p_environment_id text, p_due_at timestamptz)
returns timestamptz language plpgsql stable as $$
begin
  return coalesce((
    select pay_internal.real_due_at(w, p_due_at)
    from pay.sandbox_settings w where w.environment_id = p_environment_id
  ), p_due_at);
end $$;

-- The version of a row that this transaction writes: the id of the transaction. So no two states of
-- any sandbox have the same version, not even after a reset.
create or replace function pay_internal.new_settings_version()
returns bigint language sql volatile as $$ select pg_current_xact_id()::text::bigint $$;
