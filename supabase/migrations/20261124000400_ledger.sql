-- Purpose: the double-entry ledger. One row is one movement: an amount leaves the debit account's
-- side for the credit account's side. So every movement is balanced by its form, and no check has
-- to add up its two entries. The API shows a movement as two entries (view pay.ledger_entries).
-- Movements are append-only: no policy lets anyone update them, and only rows of sandboxes can be
-- deleted.
--
-- Totals: what the movements between two accounts sum to. The statement that writes movements adds
-- them to the totals (pay_internal.add_to_total, which explains stripes and generations).
-- ADR 0005.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

-- Columns of fixed width stand first: between texts of odd lengths they would be padded.
create table pay.ledger_movements (
  amount_minor bigint not null,
  created_at timestamptz not null,
  leg smallint not null,
  environment_id text collate "C" not null,
  transaction_id text collate "C" not null,
  kind text collate "C" not null,
  subject_id text collate "C" not null,
  refund_id text collate "C",
  debit_account text collate "C" not null,
  credit_account text collate "C" not null,
  currency text collate "C" not null,
  constraint ledger_movements_pkey primary key (environment_id, transaction_id, leg),
  -- Each leg has two entries, whose ids take the next two ordinals after the transaction's
  -- (pay_internal.ledger_entry_id). An id has 32 of them, so a transaction has up to 15 legs.
  constraint ledger_movements_leg_in_range check (
    leg >= 0
    and strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(transaction_id, 30)) between 1 and 30 - 2 * leg
  ),
  constraint ledger_movements_accounts_known check (
    debit_account in ('processor', 'available', 'chargebacks', 'in_transit', 'external', 'bank',
      'unapplied', 'reserve')
    and credit_account in ('processor', 'available', 'chargebacks', 'in_transit', 'external',
      'bank', 'unapplied', 'reserve')
  ),
  constraint ledger_movements_kind_known check (
    kind in ('capture', 'capture_reversal', 'refund', 'refund_reversal', 'chargeback',
      'chargeback_reversal', 'fee', 'fee_reversal', 'settlement', 'settlement_reversal',
      'unmatched', 'unmatched_reversal', 'reserve', 'reserve_reversal', 'transfer',
      'transfer_completed', 'transfer_reversed', 'transfer_returned')
  ),
  constraint ledger_movements_accounts_differ check (debit_account <> credit_account),
  constraint ledger_movements_amount_minor_positive check (amount_minor > 0)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000);
comment on table pay.ledger_movements is 'One leg of a ledger transaction: an amount that moves from one account to another. Append-only.';
comment on column pay.ledger_movements.amount_minor is 'Minor units of the currency; both entries of the movement have this amount.';
comment on column pay.ledger_movements.created_at is 'The instant of the request that moved the money.';
comment on column pay.ledger_movements.leg is 'The number of the leg in its ledger transaction, from 0 to at most 14.';
comment on column pay.ledger_movements.environment_id is 'The environment that the money belongs to.';
comment on column pay.ledger_movements.transaction_id is 'The ledger transaction (txn_…). Movements with the same one are its legs.';
comment on column pay.ledger_movements.kind is 'The reason for the movement.';
comment on column pay.ledger_movements.subject_id is 'The payment or transfer whose money moves.';
comment on column pay.ledger_movements.refund_id is 'The refund that moves the money; null for other kinds.';
comment on column pay.ledger_movements.debit_account is 'The account that is debited.';
comment on column pay.ledger_movements.credit_account is 'The account that is credited.';
comment on column pay.ledger_movements.currency is 'ISO 4217 code.';

create index ledger_movements_subject
  on pay.ledger_movements (subject_id, environment_id, transaction_id, leg);
comment on index pay.ledger_movements_subject is
  'pay_internal.page_movements, pay_internal.subject_accounts: the entries of a payment or transfer, and its money.';

-- Half of each page stays free, so that a total is updated within its page.
create table pay.ledger_totals (
  environment_id text collate "C" not null,
  currency text collate "C" not null,
  debit_account text collate "C" not null,
  credit_account text collate "C" not null,
  stripe smallint not null,
  generation integer not null,
  updates smallint not null,
  amount_minor numeric not null,
  constraint ledger_totals_pkey primary key (
    environment_id, currency, debit_account, credit_account, stripe, generation
  ),
  constraint ledger_totals_stripe_in_range check (stripe between 0 and 63)
) with (fillfactor = 50);
comment on table pay.ledger_totals is 'Sums of the movements between two accounts, spread over stripes. A sum stays when retention deletes its movements.';
comment on column pay.ledger_totals.environment_id is 'The environment that the money belongs to.';
comment on column pay.ledger_totals.currency is 'ISO 4217 code.';
comment on column pay.ledger_totals.debit_account is 'The account that the movements debit.';
comment on column pay.ledger_totals.credit_account is 'The account that the movements credit.';
comment on column pay.ledger_totals.stripe is 'The number of the stripe. The total is the sum over all stripes.';
comment on column pay.ledger_totals.generation is 'Grows with every 64th update of the row, so that the newest version is found by the index.';
comment on column pay.ledger_totals.updates is 'Updates of the row since its generation began.';
comment on column pay.ledger_totals.amount_minor is 'The sum in minor units; numeric, because it can exceed a bigint.';

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
