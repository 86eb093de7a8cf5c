-- Purpose: the addresses to which payers send stablecoins on a chain, and the state of failing
-- readings. Concurrency: the changes of old tables lock them briefly and rewrite no row.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

alter table pay.provider_accounts
  drop constraint provider_accounts_connector_known,
  add constraint provider_accounts_connector_known check (connector in ('stripe', 'evm')) not valid;

alter table pay.provider_cursors
  add column stalled_since timestamptz,
  add column last_error text,
  add constraint provider_cursors_stalled_has_error check (
    (stalled_since is null) = (last_error is null)
  ) not valid;
comment on column pay.provider_cursors.stalled_since is 'Time of the first failed poll after the last page that was read; null: the last poll worked.';
comment on column pay.provider_cursors.last_error is 'The message of the last failed poll, for the operator; null: the last poll worked.';

create table pay.xpub_counters (
  xpub text collate "C" not null,
  next_index bigint not null,
  constraint xpub_counters_pkey primary key (xpub),
  -- The number of children that are not hardened (BIP-32).
  constraint xpub_counters_in_range check (next_index between 0 and 2147483648)
);
comment on table pay.xpub_counters is 'The next index of each extended public key. Rows are never deleted, so no index is used twice.';
comment on column pay.xpub_counters.xpub is 'The extended public key. Accounts of several networks can share it.';
comment on column pay.xpub_counters.next_index is 'The index of the next address.';

create table pay.deposit_addresses (
  environment_id text collate "C" not null,
  account_id text collate "C" not null,
  call_id text collate "C" not null,
  payment_id text collate "C" not null,
  xpub_index bigint not null,
  expires_at timestamptz not null,
  watch_until timestamptz,
  constraint deposit_addresses_pkey primary key (environment_id, call_id),
  constraint deposit_addresses_index_once unique (environment_id, account_id, xpub_index),
  constraint deposit_addresses_in_range check (xpub_index between 0 and 2147483647)
);
comment on table pay.deposit_addresses is 'The index of a payment''s address below the extended public key of its account. The row lives as long as the payment.';
comment on column pay.deposit_addresses.environment_id is 'The environment of the payment.';
comment on column pay.deposit_addresses.account_id is 'The account whose extended public key the address comes from.';
comment on column pay.deposit_addresses.call_id is 'The call that asked for the address. Its provider_reference is the address.';
comment on column pay.deposit_addresses.payment_id is 'The payment.';
comment on column pay.deposit_addresses.xpub_index is 'The index of the address, from pay.xpub_counters.';
comment on column pay.deposit_addresses.expires_at is 'The payer can send until then.';
comment on column pay.deposit_addresses.watch_until is 'The worker watches for late money until then; null: the watch is over.';
create index deposit_addresses_watched on pay.deposit_addresses (account_id, xpub_index)
  where watch_until is not null;
comment on index pay.deposit_addresses_watched is
  'pay.watched_deposits: the watched addresses of an account, in the order of their indexes.';
create index deposit_addresses_watch_until on pay.deposit_addresses (watch_until)
  where watch_until is not null;
comment on index pay.deposit_addresses_watch_until is
  'pay.end_watches: the watches that are over.';
create index deposit_addresses_expiry on pay.deposit_addresses (account_id, expires_at);
comment on index pay.deposit_addresses_expiry is
  'pay.provider_readings: whether an account has an address that is open.';

alter table pay.xpub_counters enable row level security;
alter table pay.xpub_counters force row level security;
-- A counter belongs to no environment.
create policy xpub_counters_of_worker on pay.xpub_counters to pay_owner
  using ((select current_setting('pay.worker', true)) = 'on');
alter table pay.deposit_addresses enable row level security;
alter table pay.deposit_addresses force row level security;
create policy deposit_addresses_of_environment on pay.deposit_addresses to pay_owner using (
  environment_id = any (
    (select nullif(current_setting('pay.environment_ids', true), '')::text[])::text[])
  or (select current_setting('pay.worker', true)) = 'on'
);

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
