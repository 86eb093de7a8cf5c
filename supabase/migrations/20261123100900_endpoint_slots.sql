-- Purpose: a sandbox can have 64 webhook endpoints, so that each branch or test has one of its own.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

alter table pay.webhook_endpoints
  drop constraint webhook_endpoints_slot_in_range,
  add constraint webhook_endpoints_slot_in_range check (slot between 0 and 63);
comment on column pay.webhook_endpoints.slot is '0 to 15, in a sandbox 0 to 63; the ids of its deliveries encode it.';

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
