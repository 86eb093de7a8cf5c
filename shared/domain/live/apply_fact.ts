/**
 * Applies the facts of providers to payments (architecture §7). Forward only: a fact changes a
 * payment if the lifecycle allows the move, a late or repeated fact changes nothing, and a fact
 * whose amount, currency or mode differs from ours is a finding. Pure.
 */

import type { NextAction, Payment } from "../../schema/payment.ts";
import type { Refund } from "../../schema/refund.ts";
import type { PaymentChange } from "../changes/change_builder.ts";
import type { EventContext } from "../changes/event.ts";
import { expire } from "../payments/deposit.ts";
import {
  canBecome,
  isDeposit,
  isRefundable,
  missingAmount,
  refundable,
} from "../payments/lifecycle.ts";
import {
  beginRefund,
  canRevertRefund,
  completeRefund,
  failRefund,
  revertRefund,
} from "../payments/refund_payment.ts";
import {
  authorize,
  cancel,
  complete,
  decline,
  fail,
  requireAction,
} from "../payments/settlement.ts";
import type { Fact, FactOp } from "../providers/connector.ts";
import { applyDepositFact } from "./apply_deposit_fact.ts";
import { applyDisputeFact, applyEvidence } from "./apply_dispute_fact.ts";
import {
  apply,
  applyWithoutCapture,
  differs,
  type Effect,
  type FactSubject,
  finding,
  isCaptured,
  shown,
} from "./fact_effect.ts";

/** The operations whose results come from the chain, for payments to an address. */
const DEPOSIT_OPS: ReadonlySet<FactOp> = new Set(["authorize", "abandon"]);

/** Applies a fact to its payment. */
export function applyFact(subject: FactSubject, fact: Fact, context: EventContext): Effect {
  const payment = withCard(subject.payment, fact);
  if (fact.livemode !== payment.livemode) {
    return finding(`the provider's object is ${fact.livemode ? "live" : "in test mode"}`);
  }
  // The sandbox has no facts of transfers: an advance simulates their effects.
  if (payment.livemode && isDeposit(payment) && DEPOSIT_OPS.has(fact.op)) {
    return applyDepositFact(payment, subject.deposit, fact, context);
  }
  if (fact.currency !== payment.currency) {
    return finding(`the currency is ${fact.currency} instead of ${payment.currency}`);
  }
  switch (fact.op) {
    case "authorize":
    case "capture":
    case "cancel":
      return applyPaymentFact(payment, fact, context);
    case "abandon":
      // The payer has authenticated at the last moment.
      if (payment.status === "authorized") return { outcome: "ignored" };
      if (isDeposit(payment)) {
        return canBecome(payment, "failed") && missingAmount(payment) > 0
          ? apply(payment, context, expire)
          : { outcome: "ignored" };
      }
      return applyPaymentFact(payment, fact, context);
    case "refund":
      return applyRefundFact({ ...subject, payment }, fact, context);
    case "dispute":
      return applyDisputeFact({ ...subject, payment }, fact, context);
    case "dispute_evidence":
    case "dispute_accept":
      // An operation that has failed leaves the dispute as it is.
      if (fact.state === "failed") return { outcome: "ignored" };
      return applyEvidence({ ...subject, payment }, fact, context);
    case "fee":
      // The provider has taken the fee, also if the payment is over or not captured yet.
      return apply(payment, context, (change) => {
        change.move(fact.state === "returned" ? "fee_reversal" : "fee", fact.amount_minor);
      });
    default:
      return finding(`a payment has no fact of ${fact.op}`);
  }
}

/** Adds the card behind the token, which only the provider knows. */
function withCard(payment: Payment, { card }: Fact): Payment {
  return payment.method === null && card ? { ...payment, method: { type: "card", card } } : payment;
}

function applyPaymentFact(payment: Payment, fact: Fact, context: EventContext): Effect {
  switch (fact.state) {
    case "pending":
      if (payment.status !== "pending") return { outcome: "ignored" };
      if (fact.next_action) return applyAddress(payment, fact.next_action, context);
      return apply(
        payment,
        context,
        (change) => change.addEvent("payment.processing", { status: "processing" }),
      );
    case "requires_action":
      if (!canBecome(payment, "requires_action")) return { outcome: "ignored" };
      if (!fact.next_action) return finding("the payer's next action is missing");
      return apply(payment, context, (change) => requireAction(change, fact.next_action!));
    case "authorized":
      if (!canBecome(payment, "authorized")) return { outcome: "ignored" };
      return differs(payment.amount_minor, fact) ??
        apply(payment, context, (change) => authorize(change, fact.capture_before));
    case "succeeded":
      return applySuccess(payment, fact, context);
    case "declined":
      if (!canBecome(payment, "declined")) return { outcome: "ignored" };
      return apply(payment, context, (change) => {
        decline(change, fact.decline_code ?? "payment_declined");
        closeAtProvider(change, fact);
      });
    case "failed":
      // A capture or a cancel that has failed leaves the payment as it is.
      if (
        fact.op === "capture" || fact.op === "cancel" || isCaptured(payment) ||
        !canBecome(payment, "failed")
      ) {
        return { outcome: "ignored" };
      }
      return apply(payment, context, (change) => {
        fail(change, fact.failure_code ?? "processing_failed", fact.return_code ?? null);
        if (fact.op === "authorize") closeAtProvider(change, fact);
      });
    case "cancelled":
      if (!canBecome(payment, "cancelled")) return { outcome: "ignored" };
      return apply(payment, context, cancel);
    case "returned":
      return applyReturn(payment, fact, context);
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

/** Stores the address of the payment, which then waits for the payer. */
function applyAddress(payment: Payment, next_action: NextAction, context: EventContext): Effect {
  return apply(
    payment,
    context,
    (change) => change.addEvent("payment.pending", { amount_received: 0, next_action }),
  );
}

/** Applies money that has arrived. It is booked even if the payment is over. */
function applySuccess(payment: Payment, fact: Fact, context: EventContext): Effect {
  if (isCaptured(payment)) return { outcome: "ignored" };
  if (!canBecome(payment, "completed")) {
    return apply(
      payment,
      context,
      (change) => change.move("unmatched", fact.amount_minor),
      `money arrived for a payment that is ${payment.status}`,
    );
  }
  const is_part = payment.capture === "manual" && fact.amount_minor < payment.amount_minor;
  return (is_part ? null : differs(payment.amount_minor, fact)) ??
    apply(payment, context, (change) => {
      complete(change, { amount_minor: fact.amount_minor, tx_hash: fact.tx_hash });
    });
}

function applyReturn(payment: Payment, fact: Fact, context: EventContext): Effect {
  if (!isCaptured(payment)) return applyWithoutCapture(payment, fact, context);
  if (!isRefundable(payment)) return { outcome: "ignored" };
  return differs(refundable(payment), fact) ??
    apply(payment, context, (change) => fail(change, "bank_return", fact.return_code ?? null));
}

function applyRefundFact(
  { payment, refund }: FactSubject,
  fact: Fact,
  context: EventContext,
): Effect {
  if (refund) return applyOwnRefund(payment, refund, fact, context);
  if (fact.refund_id !== null) return finding("the refund is not one of ours");
  // Somebody has refunded the payment at the provider, without this service. A refund that has
  // failed before its money left changes nothing.
  if (fact.state !== "succeeded" && fact.state !== "returned") return { outcome: "ignored" };
  if (!isCaptured(payment)) return applyWithoutCapture(payment, fact, context);
  if (fact.state === "returned") {
    // Its success comes later, and becomes a refund here, unless it is a finding then.
    return isRefundable(payment) || canRevertRefund(payment)
      ? { outcome: "wait" }
      : finding(`a refund of ${shown(fact)} that has not succeeded here came back`);
  }
  // A pending refund of ours that holds the amount can still fail.
  const left = payment.amount_captured - payment.amount_refunded;
  if (fact.amount_minor > refundable(payment) && fact.amount_minor <= left) {
    return { outcome: "wait" };
  }
  const is_disputed = payment.status === "chargeback";
  if (!(isRefundable(payment) || is_disputed) || fact.amount_minor > refundable(payment)) {
    return finding(`a refund of ${shown(fact)} at the provider is more than what is left`);
  }
  let refund_body = "";
  return apply(
    payment,
    context,
    (change) => {
      refund_body = completeRefund(change, beginRefund(change, fact.amount_minor, {}));
    },
    null,
    () => refund_body,
  );
}

function applyOwnRefund(
  payment: Payment,
  refund: Refund,
  fact: Fact,
  context: EventContext,
): Effect {
  if (fact.state === "succeeded") {
    if (refund.status === "completed") return { outcome: "ignored" };
    if (refund.status === "failed") {
      return finding("the refund succeeded at the provider, but is failed here");
    }
    let refund_body = "";
    return differs(refund.amount_minor, fact) ?? apply(
      payment,
      context,
      (change) => {
        refund_body = completeRefund(change, refund);
      },
      null,
      () => refund_body,
    );
  }
  const is_returned = fact.state === "returned";
  if (!is_returned && fact.state !== "failed" && fact.state !== "cancelled") {
    return { outcome: "ignored" };
  }
  if (refund.status === "failed") {
    return is_returned
      ? finding("the money of the refund came back, but the refund had failed here before")
      : { outcome: "ignored" };
  }
  // The money has left before: the success of the refund comes later here.
  if (refund.status === "pending" && is_returned) return { outcome: "wait" };
  if (refund.status === "completed" && !canRevertRefund(payment)) {
    return finding(`the refund failed at the provider, but the payment is ${payment.status}`);
  }
  const end = refund.status === "completed" ? revertRefund : failRefund;
  const code = fact.failure_code ?? "processing_failed";
  let refund_body = "";
  return (is_returned ? differs(refund.amount_minor, fact) : null) ?? apply(
    payment,
    context,
    (change) => {
      refund_body = end(change, refund, code);
    },
    null,
    () => refund_body,
  );
}
