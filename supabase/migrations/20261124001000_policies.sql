-- Purpose: row-level security and its policies, for every table. A table without a policy shows no
-- row to anyone.
--
-- Two settings open rows. An entry function makes them for its own transaction:
--   pay.environment_ids  the environments that the caller's keys open
--   pay.worker           'on' for the dispatcher, retention and the operator: all environments
-- A third one, pay.key_hashes, shows a secret or the checkout of a token to the caller who has
-- presented it.
--
-- The two conditions stand here once, and a loop makes the policies. They are no functions, because
-- a function that pins its search_path is called anew for every table of every statement (measured:
-- a create makes 8 such calls, a get 7; in plpgsql 1 to 3 % of a statement, in SQL 5 to 20 %).

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

do $policies$
declare
  -- PostgreSQL evaluates each select once for a statement. The advisors of Supabase recognize this
  -- only if a policy reads some setting in a select that does nothing else, and if a table has one
  -- policy for each command.
  v_is_opened constant text := $sql$= any (
    (select nullif(current_setting('pay.environment_ids', true), '')::text[])::text[])$sql$;
  -- Before v_is_opened in policies without v_is_worker, for the advisors.
  v_is_any_opened constant text :=
    $sql$(select current_setting('pay.environment_ids', true)) <> '' and$sql$;
  v_is_worker constant text := $sql$(select current_setting('pay.worker', true)) = 'on'$sql$;
  v_is_presented constant text :=
    $sql$any ((select nullif(current_setting('pay.key_hashes', true), '')::bytea[])::bytea[])$sql$;
  v_table text;
begin
  for v_table in
    select c.relname from pg_class c
    where c.relnamespace = 'pay'::regnamespace and c.relkind = 'r'
  loop
    execute format('alter table pay.%I enable row level security', v_table);
    execute format('alter table pay.%I force row level security', v_table);
  end loop;

  foreach v_table in array array[
    'api_keys', 'rate_counters', 'payments', 'refunds', 'disputes', 'instruments', 'transfers',
    'events', 'idempotency_keys', 'ledger_totals', 'webhook_endpoints', 'webhook_deliveries',
    'inbox_entries', 'attempt_log', 'sandbox_settings', 'sandboxes', 'sandbox_storage', 'faults', 'requests',
    'transcript_lines', 'provider_accounts', 'provider_methods', 'provider_operations',
    'provider_events', 'provider_cursors', 'provider_totals', 'deposit_addresses', 'chain_payouts',
    'bank_files', 'bank_entries', 'bank_details', 'bank_exports', 'bank_orders', 'erasures',
    'search_words', 'search_cursors'
  ] loop
    execute format(
      'create policy %I on pay.%I to pay_owner using (environment_id %s or %s)',
      v_table || '_of_environment', v_table, v_is_opened, v_is_worker
    );
  end loop;

  -- The rows of these tables belong to no environment, or only the worker reads them.
  foreach v_table in array array[
    'invariant_breaches', 'settings', 'archives', 'dispatcher_wakes', 'xpub_counters',
    'signer_nonces'
  ] loop
    execute format(
      'create policy %I on pay.%I to pay_owner using (%s)',
      v_table || '_of_worker', v_table, v_is_worker
    );
  end loop;

  -- The worker reads every environment, but changes none that is not opened.
  execute format(
    'create policy environments_read on pay.environments for select to pay_owner
     using (id %s or %s)',
    v_is_opened, v_is_worker
  );
  execute format(
    'create policy environments_write on pay.environments for insert to pay_owner
     with check (%s id %s)',
    v_is_any_opened, v_is_opened
  );
  execute format(
    'create policy environments_change on pay.environments for update to pay_owner
     using (%s id %s)',
    v_is_any_opened, v_is_opened
  );
  execute format(
    'create policy environments_delete on pay.environments for delete to pay_owner
     using (%s id %s)',
    v_is_any_opened, v_is_opened
  );

  -- A secret and the token of a checkout are found by their hash, before it is known which
  -- environment they open.
  execute format(
    $sql$create policy api_key_secrets_presented on pay.api_key_secrets to pay_owner using (
      hash = %s or environment_id %s or %s)$sql$,
    v_is_presented, v_is_opened, v_is_worker
  );
  execute format(
    $sql$create policy checkouts_presented on pay.checkouts to pay_owner using (
      token_hash = %s or environment_id %s or %s)$sql$,
    v_is_presented, v_is_opened, v_is_worker
  );

  -- The ledger is append-only: nobody may update it, and only rows of sandboxes can be deleted.
  execute format(
    'create policy ledger_movements_read on pay.ledger_movements for select to pay_owner
     using (environment_id %s or %s)',
    v_is_opened, v_is_worker
  );
  execute format(
    'create policy ledger_movements_write on pay.ledger_movements for insert to pay_owner
     with check (%s environment_id %s)',
    v_is_any_opened, v_is_opened
  );
  create policy ledger_movements_delete_in_sandbox on pay.ledger_movements for delete to pay_owner
    using (environment_id in (select e.id from pay.environments e where not e.livemode));
end
$policies$;

do $$ begin execute pg_catalog.format('set role %I',
  pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
