-- Purpose: the time that decides what is deleted or given up.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

-- The time that decides what is deleted (docs/decisions/0031-times-that-delete.md). The instant that the
-- functions send (p_at) never decides that, so a wrong clock of a function loses no data. A statement
-- over many rows calls it once. Tests replace it to move time.
create function pay.server_time()
returns timestamptz
language sql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select now() $$;
comment on function pay.server_time is 'Internal.';

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
