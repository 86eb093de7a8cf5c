-- Purpose: the settings of a sandbox that uses special features, such as a clock of its own
-- (ADR 0046).
--
-- Most sandboxes have no row, and their requests pay one index probe. Each request carries the
-- version of the settings that its function knows. pay.admit compares it with the row: if they
-- differ, the outcome is outdated, and the answer has the row, so a function learns new settings
-- from the first request that needs them.
--
-- Concurrency: a transaction that writes the row holds the sandbox's lock alone. A request shares
-- that lock, so its settings do not change before it ends.

-- How far the clock of a sandbox is ahead of the server's time. Negative if the sandbox is behind,
-- which only a frozen clock can be. Internal.
create or replace function pay.time_ahead(p_settings pay.sandbox_settings)
returns interval
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(p_settings.frozen_at - pay.server_time(), p_settings.offset_ms * interval '1 ms')
$$;

-- The present time of an environment: the server's time, unless its sandbox has a clock of its own.
-- The caller has opened the environment, or is a worker. Internal.
create or replace function pay.environment_time(p_environment_id text)
returns timestamptz
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return pay.server_time() + coalesce((
    select pay.time_ahead(w) from pay.sandbox_settings w where w.environment_id = p_environment_id
  ), '0');
end
$$;

-- The real time at which a time of a sandbox comes: infinity while its clock stands before it. If
-- that time has come, the real times keep the order of the times. Internal.
create or replace function pay.real_due(p_environment_id text, p_due_at timestamptz)
returns timestamptz
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce((
    select case
        when w.frozen_at is null then p_due_at - w.offset_ms * interval '1 ms'
        when p_due_at > w.frozen_at then 'infinity'
        else pay.server_time() - (w.frozen_at - p_due_at)
      end
    from pay.sandbox_settings w where w.environment_id = p_environment_id
  ), p_due_at);
end
$$;

-- The version of a row that this transaction writes: the id of the transaction. So no two states of
-- any sandbox have the same version, not even after a reset. Internal.
create or replace function pay.new_settings_version()
returns bigint
language sql volatile
set search_path = pg_catalog, pg_temp
as $$ select pg_current_xact_id()::text::bigint $$;
