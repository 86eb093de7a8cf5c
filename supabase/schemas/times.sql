-- Purpose: the clock for deletions and expiries.

-- The time by which data is deleted (docs/decisions/0010-times-that-delete.md). It is not the
-- instant that the functions send (p_at), so a wrong clock of a function loses no data.
-- A statement over many rows calls it once. Tests replace it to move time. In plpgsql, because a
-- function in SQL is planned again in each statement that calls it.
create or replace function pay_internal.server_time()
returns timestamptz
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
  return now();
end
$$;
