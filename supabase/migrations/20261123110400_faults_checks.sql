-- Purpose: checks the old deliveries against the constraints of 20261123100600_faults.sql.
-- Concurrency: reads the whole table under a lock that lets others read and write.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

alter table pay.webhook_deliveries
  validate constraint webhook_deliveries_fault_known,
  validate constraint webhook_deliveries_fault_has_attempt;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
