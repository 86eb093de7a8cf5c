/**
 * Applies the facts of providers to payments (architecture §7). Forward only: a fact changes a
 * payment if the lifecycle allows the move, a late or repeated fact changes nothing, and a fact
 * whose amount, currency or mode differs from ours is a finding. Pure.
 */

import type { PaymentChange } from "../changes/change_builder.ts";
import { canBecome, isDeposit, isRefundable, refundable } from "./lifecycle.ts";
import {
  authorize,
  cancel,
  complete,
  decline,
  fail,
  process,
  requireAction,
  waitForMoney,
} from "./settlement.ts";
import type { Fact, FactOp } from "../providers/connector.ts";
import { applyEvidence, applyToDispute } from "./apply_to_dispute.ts";
import { applyToRefund } from "./apply_to_refund.ts";
import {
  apply,
  applyWithoutCapture,
  differs,
  type Effect,
  finding,
  IGNORED,
  isCaptured,
  type Parts,
} from "../providers/effect.ts";
import { applyReceivedMoney } from "./received_money.ts";

/** The operations whose results are money that the payer sends, for payments of that kind. */
const DEPOSIT_OPS: ReadonlySet<FactOp> = new Set(["authorize", "abandon"]);

/** Reports whether a fact is about money that the payer sends. */
export function isReceivedMoney({ subject }: PaymentChange, fact: Fact): boolean {
  return isDeposit(subject) && DEPOSIT_OPS.has(fact.op);
}

/** Applies a fact to its payment. */
export function applyToPayment(
  change: PaymentChange,
  { refund, dispute, deposit }: Parts,
  fact: Fact,
): Effect {
  const { subject: payment } = change;
  if (fact.livemode !== payment.livemode) {
    return finding(`the provider's object is ${fact.livemode ? "live" : "in test mode"}`);
  }
  if (isReceivedMoney(change, fact)) return applyReceivedMoney(change, deposit, fact);
  if (fact.currency !== payment.currency) {
    return finding(`the currency is ${fact.currency} instead of ${payment.currency}`);
  }
  // The card behind the token, which only the provider knows.
  if (payment.method === null && fact.card) {
    change.amend({ method: { type: "card", card: fact.card } });
  }
  switch (fact.op) {
    case "authorize":
    case "capture":
    case "cancel":
      return applyOutcome(change, fact);
    case "abandon":
      // The payer has authenticated at the last moment.
      return payment.status === "authorized" ? IGNORED : applyOutcome(change, fact);
    case "refund":
      return applyToRefund(change, refund, fact);
    case "dispute":
      return applyToDispute(change, dispute, fact);
    case "dispute_evidence":
    case "dispute_accept":
      // An operation that has failed leaves the dispute as it is.
      return fact.state === "failed" ? IGNORED : applyEvidence(change, dispute, fact);
    case "fee":
      // The provider has taken the fee, also if the payment is over or not captured yet.
      return apply(() => {
        change.move(fact.state === "returned" ? "fee_reversal" : "fee", fact.amount_minor);
      });
    default:
      return finding(`a payment has no fact of ${fact.op}`);
  }
}

function applyOutcome(change: PaymentChange, fact: Fact): Effect {
  const { subject: payment } = change;
  const { next_action, later } = fact;
  switch (fact.state) {
    case "pending":
      if (payment.status !== "pending") return IGNORED;
      return apply(() => next_action ? waitForMoney(change, next_action) : process(change));
    case "requires_action":
      if (!canBecome(payment, "requires_action")) return IGNORED;
      if (!next_action) return finding("the payer's next action is missing");
      return apply(() => requireAction(change, next_action));
    case "authorized":
      if (!canBecome(payment, "authorized")) return IGNORED;
      return differs(payment.amount_minor, fact) ?? apply(() => {
        authorize(change, fact.capture_before);
        if (later) change.addCall(later);
      });
    case "succeeded":
      return applySuccess(change, fact);
    case "declined":
      if (!canBecome(payment, "declined")) return IGNORED;
      return apply(() => {
        decline(change, fact.decline_code ?? "payment_declined");
        closeAtProvider(change, fact);
      });
    case "failed":
      // A capture or a cancel that has failed leaves the payment as it is.
      if (
        fact.op === "capture" || fact.op === "cancel" || isCaptured(payment) ||
        !canBecome(payment, "failed")
      ) {
        return IGNORED;
      }
      return apply(() => {
        fail(change, fact.failure_code ?? "processing_failed", fact.return_code ?? null);
        if (fact.op === "authorize") closeAtProvider(change, fact);
      });
    case "cancelled":
      return canBecome(payment, "cancelled") ? apply(() => cancel(change)) : IGNORED;
    case "returned":
      return applyReturn(change, fact);
    default:
      return finding(`a payment has no fact ${fact.state}`);
  }
}

/**
 * Lets the worker cancel a payment by card at the provider that is over here. There it is still
 * open: somebody could pay it with another card.
 */
function closeAtProvider(change: PaymentChange, { provider_reference, source }: Fact): void {
  const { livemode, method_kind } = change.subject;
  const is_open = livemode && method_kind === "card" && provider_reference !== null && !source;
  if (is_open) change.addCall({ op: "abandon", delay_ms: 0 });
}

/** Applies money that has arrived. It is booked even if the payment is over. */
function applySuccess(change: PaymentChange, fact: Fact): Effect {
  const { subject: payment } = change;
  const { amount_minor, tx_hash } = fact;
  if (isCaptured(payment)) return IGNORED;
  if (!canBecome(payment, "completed")) {
    return apply(
      () => change.move("unmatched", amount_minor),
      `money arrived for a payment that is ${payment.status}`,
    );
  }
  const is_part = payment.capture === "manual" && amount_minor < payment.amount_minor;
  return (is_part ? null : differs(payment.amount_minor, fact)) ??
    apply(() => complete(change, { amount_minor, tx_hash }));
}

function applyReturn(change: PaymentChange, fact: Fact): Effect {
  const { subject: payment } = change;
  if (!isCaptured(payment)) return applyWithoutCapture(change, fact);
  if (!isRefundable(payment)) return IGNORED;
  return differs(refundable(payment), fact) ??
    apply(() => fail(change, "bank_return", fact.return_code ?? null));
}
