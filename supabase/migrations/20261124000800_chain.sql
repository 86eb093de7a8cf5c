-- Purpose: stablecoins: the addresses to which payers send, and the payouts with the nonces of
-- their signers.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

create table pay.xpub_counters (
  xpub text collate "C" not null,
  next_index bigint not null,
  left_at timestamptz,
  constraint xpub_counters_pkey primary key (xpub),
  -- The number of children that are not hardened (BIP-32).
  constraint xpub_counters_in_range check (next_index between 0 and 2147483648)
);
comment on table pay.xpub_counters is 'The next index of each extended public key. Rows are never deleted, so no index is used twice.';
comment on column pay.xpub_counters.xpub is 'The extended public key. Accounts of several networks can share it.';
comment on column pay.xpub_counters.next_index is 'The index of the next address.';
comment on column pay.xpub_counters.left_at is
  'Time at which its account moved to another cell, which counts now; null: it counts here.';

create table pay.deposit_addresses (
  environment_id text collate "C" not null,
  account_id text collate "C" not null,
  operation_id text collate "C" not null,
  payment_id text collate "C" not null,
  xpub_index bigint not null,
  expires_at timestamptz not null,
  watch_until timestamptz,
  constraint deposit_addresses_pkey primary key (environment_id, operation_id),
  constraint deposit_addresses_index_once unique (environment_id, account_id, xpub_index),
  constraint deposit_addresses_in_range check (xpub_index between 0 and 2147483647)
);
comment on table pay.deposit_addresses is 'The index of a payment''s address below the extended public key of its account. The row lives as long as the payment.';
comment on column pay.deposit_addresses.environment_id is 'The environment of the payment.';
comment on column pay.deposit_addresses.account_id is 'The account whose extended public key the address comes from.';
comment on column pay.deposit_addresses.operation_id is 'The operation that requested the address. Its provider_reference is the address.';
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
  'pay_internal.end_watches: the watches that are over.';

create index deposit_addresses_expiry on pay.deposit_addresses (account_id, expires_at);
comment on index pay.deposit_addresses_expiry is
  'pay_internal.provider_readings: whether an account has an address that is open.';

create table pay.signer_nonces (
  chain_id bigint not null,
  signer text collate "C" not null,
  next_nonce bigint not null,
  left_at timestamptz,
  constraint signer_nonces_pkey primary key (chain_id, signer),
  constraint signer_nonces_in_range check (next_nonce >= 0)
);
comment on table pay.signer_nonces is 'The next nonce of each signer of payouts. Rows are never deleted, so no nonce is assigned twice.';
comment on column pay.signer_nonces.chain_id is 'The chain.';
comment on column pay.signer_nonces.signer is 'The address of the signer, EIP-55. Accounts can share it.';
comment on column pay.signer_nonces.next_nonce is 'The nonce of the next payout.';
comment on column pay.signer_nonces.left_at is
  'Time at which its account moved to another cell, which counts now; null: it counts here.';

create table pay.chain_payouts (
  environment_id text collate "C" not null,
  account_id text collate "C" not null,
  operation_id text collate "C" not null,
  destination text collate "C" not null,
  nonce bigint,
  tx_hashes text[] not null default '{}',
  max_fee bigint,
  priority_fee bigint,
  sent_at timestamptz,
  exported_at timestamptz,
  constraint chain_payouts_pkey primary key (environment_id, operation_id),
  constraint chain_payouts_sent_has_fees check (
    (sent_at is null) = (max_fee is null) and (max_fee is null) = (priority_fee is null)
    and (max_fee is null or nonce is not null)
  ),
  -- People sign exported payouts, and the signer signs all others.
  constraint chain_payouts_signed_once check (exported_at is null or nonce is null)
);
comment on table pay.chain_payouts is 'A refund or transfer that is sent as a transaction on a chain. The row lives as long as its operation.';
comment on column pay.chain_payouts.environment_id is 'The environment of the operation.';
comment on column pay.chain_payouts.account_id is 'The account of the chain.';
comment on column pay.chain_payouts.operation_id is 'The operation of the refund or transfer.';
comment on column pay.chain_payouts.destination is 'The address that receives the money.';
comment on column pay.chain_payouts.nonce is 'The nonce of its transaction. It never changes, so that a repeated transaction replaces the first; null: none yet.';
comment on column pay.chain_payouts.tx_hashes is 'Hashes that the signer has returned. At most one of them is in a block.';
comment on column pay.chain_payouts.max_fee is 'Maximum fee per unit of gas of the last transaction, in wei; null: nothing was sent.';
comment on column pay.chain_payouts.priority_fee is 'Maximum priority fee per unit of gas of the last transaction, in wei.';
comment on column pay.chain_payouts.sent_at is 'Time of the last transaction with a new fee; null: nothing was sent.';
comment on column pay.chain_payouts.exported_at is 'Time of the last export for people to sign; null: it was not exported.';

create index chain_payouts_account on pay.chain_payouts (account_id, operation_id);
comment on index pay.chain_payouts_account is
  'pay.open_payouts, pay.give_nonce: the payouts of an account.';

do $$ begin execute pg_catalog.format('set role %I',
  pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
