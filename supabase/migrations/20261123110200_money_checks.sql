-- Purpose: checks the old rows against the constraints of 20261122200100_money.sql. Concurrency:
-- reads whole tables under a lock that lets others read and write.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

alter table pay.payments
  validate constraint payments_status_known,
  validate constraint payments_released_in_range,
  validate constraint payments_refunds_in_range,
  validate constraint payments_money_agrees_with_status;
alter table pay.refunds validate constraint refunds_status_known;
alter table pay.ledger_movements
  validate constraint ledger_movements_kind_known,
  validate constraint ledger_movements_accounts_known;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
