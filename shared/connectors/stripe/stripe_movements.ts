/**
 * Stripe's movements of the balance as provider events, so that every movement has a place in the
 * ledger. Pure.
 *
 * The movements of payments, refunds, disputes and payouts give the same events as their objects do
 * elsewhere, with the same references, so nothing is booked twice. Every other movement belongs to
 * the account.
 */

import type { ProviderEvent, ProviderEventOp } from "../../domain/providers/connector.ts";
import {
  chargeFee,
  disputeEvents,
  disputeMovements,
  type Draft,
  draftEvent,
  feeEvent,
  paymentOf,
  present,
  type ProviderEventSource,
  refundEvents,
} from "./stripe_provider_events.ts";
import {
  BalanceTransaction,
  Charge,
  Dispute,
  expandedOf,
  idOf,
  Payout,
  StripeRefund,
} from "./stripe_objects.ts";
import { payoutEvents } from "./stripe_payouts.ts";

type Category =
  /** The money of a payment is in the events of the payment; the movement has the fee. */
  | "charge"
  | "refund"
  | "refund_failure"
  /** A dispute, a refund that has failed, or one that only a person understands. */
  | "adjustment"
  | "payout"
  | "payout_return"
  /** Fees that belong to no payment: movement `fee`. */
  | "fee"
  /** Money from the merchant's bank account, or back to it: movement `settlement`. */
  | "bank"
  /** Money that Stripe holds back for a time: movement `reserve`. */
  | "reserve"
  /** Products that this service does not know: movement `unmatched`, with an exception. */
  | "other";

/**
 * The category of each type. A type that is not in the table is `other`.
 * Source: docs.stripe.com/reports/balance-transaction-types.
 */
export const MOVEMENT_CATEGORIES = {
  adjustment: "adjustment",
  advance: "other",
  advance_funding: "other",
  anticipation_repayment: "other",
  application_fee: "other",
  application_fee_refund: "other",
  charge: "charge",
  climate_order_purchase: "other",
  climate_order_refund: "other",
  connect_collection_transfer: "other",
  contribution: "other",
  fee_credit_funding: "other",
  inbound_transfer: "bank",
  inbound_transfer_reversal: "bank",
  issuing_authorization_hold: "other",
  issuing_authorization_release: "other",
  issuing_dispute: "other",
  issuing_dispute_provisional_credit: "other",
  issuing_dispute_provisional_credit_reversal: "other",
  issuing_transaction: "other",
  obligation_outbound: "other",
  obligation_reversal_inbound: "other",
  payment: "charge",
  payment_failure_refund: "other",
  payment_network_reserve_hold: "reserve",
  payment_network_reserve_release: "reserve",
  payment_refund: "refund",
  payment_reversal: "other",
  payment_unreconciled: "other",
  payout: "payout",
  payout_cancel: "payout_return",
  payout_failure: "payout_return",
  payout_minimum_balance_hold: "reserve",
  payout_minimum_balance_release: "reserve",
  refund: "refund",
  refund_failure: "refund_failure",
  reserve_hold: "reserve",
  reserve_release: "reserve",
  reserve_transaction: "reserve",
  reserved_funds: "reserve",
  stripe_balance_payment_debit: "other",
  stripe_balance_payment_debit_reversal: "other",
  stripe_fee: "fee",
  stripe_fx_fee: "fee",
  tax_fee: "fee",
  tax_fund: "other",
  topup: "bank",
  topup_reversal: "bank",
  transfer: "other",
  transfer_cancel: "other",
  transfer_failure: "other",
  transfer_refund: "other",
} as const satisfies Record<string, Category>;

/** The operation of an account's event, for the places that have one. */
const ACCOUNT_OPS: Partial<Record<Category, ProviderEventOp>> = {
  fee: "account_fee",
  bank: "payout",
  reserve: "reserve",
};

/**
 * A movement that takes back the rest of a partial capture. The events of the payment have the
 * captured amount alone.
 */
const RELEASED = "partial_capture_reversal";

/** Returns the events of a movement of an account. The source of the movement must be expanded. */
export function movementEvents(
  account: ProviderEventSource,
  moved: BalanceTransaction,
): ProviderEvent[] {
  if (moved.reporting_category === RELEASED) return [];
  const source: ProviderEventSource = { ...account, event_seconds: moved.created };
  switch (categoryOf(moved.type)) {
    case "charge":
      return ofCharge(source, moved);
    case "refund":
      return ofRefund(source, moved, ["pending", "succeeded"]);
    case "refund_failure":
      return ofRefund(source, moved, ["failed"]);
    case "adjustment":
      return ofAdjustment(source, moved);
    case "payout":
      return ofPayout(source, moved, ["created"]);
    case "payout_return":
      return ofPayout(source, moved, ["returned"]);
    default:
      return ofAccount(source, moved);
  }
}

function categoryOf(type: string): Category {
  return Object.hasOwn(MOVEMENT_CATEGORIES, type)
    ? MOVEMENT_CATEGORIES[type as keyof typeof MOVEMENT_CATEGORIES]
    : "other";
}

/** Returns the fee of a charge, and its money if no payment of Stripe stands for it. */
function ofCharge(source: ProviderEventSource, moved: BalanceTransaction): ProviderEvent[] {
  const charge = expandedOf(Charge, moved.source);
  if (charge === null) return ofUnread(source, moved);
  const money = idOf(charge.payment_intent) === null
    ? draftEvent(source, {
      of: charge,
      reference_state: "succeeded",
      op: "authorize",
      state: "succeeded",
      amount: moved.amount,
      currency: moved.currency,
      seconds: moved.created,
    })
    : null;
  return [...present(money), ...chargeFee(source, charge, moved)];
}

/** Each movement of a refund brings the events of its own time. */
function ofRefund(
  source: ProviderEventSource,
  moved: BalanceTransaction,
  states: string[],
): ProviderEvent[] {
  const refund = expandedOf(StripeRefund, moved.source);
  if (refund === null) return ofUnread(source, moved);
  const fee = signedFee(source, moved, {
    op: "fee",
    subject_id: paymentOf(refund.metadata),
    provider_reference: idOf(refund.payment_intent),
  });
  return [...only(refundEvents(source, refund), states), ...fee];
}

function ofAdjustment(source: ProviderEventSource, moved: BalanceTransaction): ProviderEvent[] {
  if (expandedOf(StripeRefund, moved.source)) return ofRefund(source, moved, ["failed"]);
  const dispute = expandedOf(Dispute, moved.source);
  if (dispute === null) return ofAccount(source, moved);
  const { taken, back } = disputeMovements(dispute);
  const is_booked = moved.id === taken?.id || moved.id === back?.id;
  const provider_events = disputeEvents({ ...source, event_seconds: null }, dispute);
  return is_booked ? provider_events : [...provider_events, ...ofAccount(source, moved)];
}

function ofPayout(
  source: ProviderEventSource,
  moved: BalanceTransaction,
  states: string[],
): ProviderEvent[] {
  const payout = expandedOf(Payout, moved.source);
  if (payout === null) return ofUnread(source, moved);
  return [...only(payoutEvents(source, payout), states), ...accountFee(source, moved)];
}

/**
 * Returns the events of a movement whose object cannot be read. The object can give events
 * elsewhere, so nothing is booked for it here: the daily totals show the difference.
 */
function ofUnread(source: ProviderEventSource, moved: BalanceTransaction): ProviderEvent[] {
  return idOf(moved.source) === null ? ofAccount(source, moved) : [];
}

function ofAccount(source: ProviderEventSource, moved: BalanceTransaction): ProviderEvent[] {
  const { id, type, amount, currency, created } = moved;
  const event = draftEvent(source, {
    of: { id },
    reference_state: type,
    op: ACCOUNT_OPS[categoryOf(type)] ?? "adjustment",
    state: amount < 0 ? "succeeded" : "returned",
    amount: Math.abs(amount),
    currency,
    seconds: created,
  });
  return [...present(event), ...accountFee(source, moved)];
}

function accountFee(source: ProviderEventSource, moved: BalanceTransaction): ProviderEvent[] {
  return signedFee(source, moved, { op: "account_fee" });
}

function signedFee(
  source: ProviderEventSource,
  moved: BalanceTransaction,
  subject: Pick<Draft, "op" | "subject_id" | "provider_reference">,
): ProviderEvent[] {
  return feeEvent(source, moved, { ...subject, of: { id: moved.id }, reference_state: "fee" });
}

function only(
  provider_events: readonly ProviderEvent[],
  states: readonly string[],
): ProviderEvent[] {
  return provider_events.filter(({ reference, object_id }) =>
    states.some((state) => reference === `${object_id}:${state}`)
  );
}
