-- Purpose: the time that decides what is deleted or given up.

-- The time that decides what is deleted (docs/decisions/0031-times-that-delete.md). The instant
-- that the functions send (p_at) never decides that, so a wrong clock of a function loses no data.
-- A statement over many rows calls it once. Tests replace it to move time.
create or replace function pay.server_time()
returns timestamptz
language sql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select now() $$;
comment on function pay.server_time is 'Internal.';
