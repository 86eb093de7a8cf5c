-- Purpose: the columns and constraints for manual capture, pending refunds, disputes and fees.
--
-- Each default is right for every row of release 1.0.0, except for payments that were charged back.
-- The captured amount of a payment is amount_minor - amount_released once its money has moved.
--
-- The locks of this migration stop all reads and writes, so it reads no table: the constraints are
-- "not valid", which means that only new and changed rows are checked. 20261123110100_chargebacks.sql
-- changes the payments that were charged back, and 20261123110200_money_checks.sql checks the old
-- rows. A migration is one transaction, so each of these steps is a file. Both come after the new
-- functions, because those of release 1.0.0 cannot write a chargeback under the new constraints.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

alter table pay.payments
  add column amount_released bigint not null default 0,
  add column amount_refunding bigint not null default 0,
  add column amount_disputed bigint not null default 0,
  drop constraint payments_status_known,
  drop constraint payments_amount_refunded_in_range,
  drop constraint payments_refunded_agrees_with_status;
comment on column pay.payments.amount_released is 'The part of an authorized amount that the capture has released, minor units.';
comment on column pay.payments.amount_refunding is 'Sum of the payment''s pending refunds, minor units.';
comment on column pay.payments.amount_disputed is 'The amount that the payer has charged back, minor units.';

alter table pay.payments
  add constraint payments_status_known check (status in (
    'pending', 'requires_action', 'processing', 'authorized', 'completed', 'declined', 'failed',
    'cancelled', 'partially_refunded', 'refunded', 'chargeback'
  )) not valid,
  add constraint payments_released_in_range check (amount_released between 0 and amount_minor - 1)
    not valid,
  add constraint payments_refunds_in_range check (
    amount_refunded >= 0 and amount_refunding >= 0
    and amount_refunded + amount_refunding <= amount_minor - amount_released
  ) not valid,
  add constraint payments_money_agrees_with_status check (
    case
      when status in ('completed', 'partially_refunded', 'refunded') then amount_disputed = 0
      when status = 'chargeback' then amount_disputed > 0
      else amount_refunding = 0 and amount_disputed = 0
    end
    and case status
      when 'partially_refunded'
        then amount_refunded between 1 and amount_minor - amount_released - 1
      when 'refunded' then amount_refunded = amount_minor - amount_released
      -- A payer can dispute a payment that was refunded.
      when 'chargeback' then true
      -- A bank can return a payment of which a part was refunded.
      when 'failed' then amount_refunded < amount_minor
      else amount_refunded = 0
    end
  ) not valid;

alter table pay.refunds
  add column status text collate "C" not null default 'completed',
  add constraint refunds_status_known check (status in ('pending', 'completed', 'failed'))
    not valid;
comment on table pay.refunds is 'Money given back on a payment.';
comment on column pay.refunds.status is 'Status, as in answers.';

alter table pay.ledger_movements
  drop constraint ledger_movements_kind_known,
  drop constraint ledger_movements_accounts_known,
  add constraint ledger_movements_kind_known check (
    kind in ('capture', 'capture_reversal', 'refund', 'refund_reversal', 'chargeback',
      'chargeback_reversal', 'fee', 'fee_reversal', 'settlement', 'settlement_reversal',
      'unmatched', 'unmatched_reversal', 'reserve', 'reserve_reversal', 'transfer', 'transfer_completed', 'transfer_reversed')
  ) not valid,
  add constraint ledger_movements_accounts_known check (
    debit_account in ('processor', 'available', 'chargebacks', 'in_transit', 'external', 'bank',
      'unapplied', 'reserve')
    and credit_account in ('processor', 'available', 'chargebacks', 'in_transit', 'external',
      'bank', 'unapplied', 'reserve')
  ) not valid;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
