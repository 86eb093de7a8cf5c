-- Purpose: checks the old rows against the constraints of 20261123101000_deposit_addresses.sql.
-- Concurrency: reads whole tables under a lock that lets others read and write.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

alter table pay.provider_accounts validate constraint provider_accounts_connector_known;
alter table pay.provider_cursors validate constraint provider_cursors_stalled_has_error;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
