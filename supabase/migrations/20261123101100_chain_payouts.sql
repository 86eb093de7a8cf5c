-- Purpose: payouts on a chain, and the nonces of their signers. Concurrency: creates new tables only.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

create table pay.signer_nonces (
  chain_id bigint not null,
  signer text collate "C" not null,
  next_nonce bigint not null,
  constraint signer_nonces_pkey primary key (chain_id, signer),
  constraint signer_nonces_in_range check (next_nonce >= 0)
);
comment on table pay.signer_nonces is 'The next nonce of each signer of payouts. Rows are never deleted, so no nonce is assigned twice.';
comment on column pay.signer_nonces.chain_id is 'The chain.';
comment on column pay.signer_nonces.signer is 'The address of the signer, EIP-55. Accounts can share it.';
comment on column pay.signer_nonces.next_nonce is 'The nonce of the next payout.';

create table pay.chain_payouts (
  environment_id text collate "C" not null,
  account_id text collate "C" not null,
  call_id text collate "C" not null,
  destination text collate "C" not null,
  nonce bigint,
  tx_hashes text[] not null default '{}',
  max_fee bigint,
  priority_fee bigint,
  sent_at timestamptz,
  exported_at timestamptz,
  constraint chain_payouts_pkey primary key (environment_id, call_id),
  constraint chain_payouts_sent_has_fees check (
    (sent_at is null) = (max_fee is null) and (max_fee is null) = (priority_fee is null)
    and (max_fee is null or nonce is not null)
  ),
  -- People sign exported payouts, and the signer signs all others.
  constraint chain_payouts_signed_once check (exported_at is null or nonce is null)
);
comment on table pay.chain_payouts is 'A refund or transfer that is sent as a transaction on a chain. The row lives as long as its call.';
comment on column pay.chain_payouts.environment_id is 'The environment of the call.';
comment on column pay.chain_payouts.account_id is 'The account of the chain.';
comment on column pay.chain_payouts.call_id is 'The call of the refund or transfer.';
comment on column pay.chain_payouts.destination is 'The address that receives the money.';
comment on column pay.chain_payouts.nonce is 'The nonce of its transaction. It never changes, so that a repeated transaction replaces the first; null: none yet.';
comment on column pay.chain_payouts.tx_hashes is 'Hashes that the signer has returned. At most one of them is in a block.';
comment on column pay.chain_payouts.max_fee is 'Maximum fee per unit of gas of the last transaction, in wei; null: nothing was sent.';
comment on column pay.chain_payouts.priority_fee is 'Maximum priority fee per unit of gas of the last transaction, in wei.';
comment on column pay.chain_payouts.sent_at is 'Time of the last transaction with a new fee; null: nothing was sent.';
comment on column pay.chain_payouts.exported_at is 'Time of the last export for people to sign; null: it was not exported.';
create index chain_payouts_account on pay.chain_payouts (account_id, call_id);
comment on index pay.chain_payouts_account is
  'pay.open_payouts, pay.give_nonce: the payouts of an account.';

alter table pay.signer_nonces enable row level security;
alter table pay.signer_nonces force row level security;
-- A counter belongs to no environment.
create policy signer_nonces_of_worker on pay.signer_nonces to pay_owner
  using ((select current_setting('pay.worker', true)) = 'on');
alter table pay.chain_payouts enable row level security;
alter table pay.chain_payouts force row level security;
create policy chain_payouts_of_environment on pay.chain_payouts to pay_owner using (
  environment_id = any (
    (select nullif(current_setting('pay.environment_ids', true), '')::text[])::text[])
  or (select current_setting('pay.worker', true)) = 'on'
);

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
