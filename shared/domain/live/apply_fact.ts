/**
 * Applies the facts of providers to payments (architecture §7). Forward only: a fact changes a
 * payment if the lifecycle allows the move, a late or repeated fact changes nothing, and a fact
 * whose amount, currency or mode differs from ours is a finding. Pure.
 */

import type { NextAction, Payment } from "../../schema/payment.ts";
import type { Refund } from "../../schema/refund.ts";
import type { EventContext } from "../changes/event.ts";
import { expire } from "../payments/deposit.ts";
import {
  canBecome,
  isDeposit,
  isRefundable,
  missingAmount,
  refundable,
} from "../payments/lifecycle.ts";
import { beginRefund, completeRefund, failRefund } from "../payments/refund_payment.ts";
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
      return differs(payment.amount_minor, fact) ?? apply(payment, context, authorize);
    case "succeeded":
      return applySuccess(payment, fact, context);
    case "declined":
      if (!canBecome(payment, "declined")) return { outcome: "ignored" };
      return apply(
        payment,
        context,
        (change) => decline(change, fact.decline_code ?? "payment_declined"),
      );
    case "failed":
      // A capture or a cancel that has failed leaves the payment as it is.
      if (
        fact.op === "capture" || fact.op === "cancel" || isCaptured(payment) ||
        !canBecome(payment, "failed")
      ) {
        return { outcome: "ignored" };
      }
      return apply(
        payment,
        context,
        (change) =>
          fail(change, fact.failure_code ?? "processing_failed", fact.return_code ?? null),
      );
    case "cancelled":
      if (!canBecome(payment, "cancelled")) return { outcome: "ignored" };
      return apply(payment, context, cancel);
    case "returned":
      return applyReturn(payment, fact, context);
    default:
      return finding(`a payment has no fact ${fact.state}`);
  }
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
  // Somebody has refunded the payment at the provider, without this service.
  if (fact.state === "failed" || fact.state === "cancelled") {
    return finding(`a refund of ${shown(fact)} that was made at the provider has failed`);
  }
  if (fact.state !== "succeeded") return { outcome: "ignored" };
  if (!isCaptured(payment)) return applyWithoutCapture(payment, fact, context);
  // A pending refund of ours that holds the amount can still fail.
  const left = payment.amount_captured - payment.amount_refunded;
  if (fact.amount_minor > refundable(payment) && fact.amount_minor <= left) {
    return { outcome: "wait" };
  }
  const is_disputed = payment.status === "chargeback";
  if (!(isRefundable(payment) || is_disputed) || fact.amount_minor > refundable(payment)) {
    return finding(`a refund of ${shown(fact)} at the provider is more than what is left`);
  }
  // Disputed money can only be refunded after the dispute, whose end comes later here.
  if (fact.amount_minor > refundable(payment) - payment.amount_disputed) {
    return { outcome: "wait" };
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
  if (fact.state !== "failed" && fact.state !== "cancelled") return { outcome: "ignored" };
  if (refund.status === "failed") return { outcome: "ignored" };
  if (refund.status === "completed") {
    // The money is back at the provider, but a completed refund is final.
    return apply(
      payment,
      context,
      (change) => change.move("unmatched", fact.amount_minor),
      "the refund failed at the provider after it had succeeded",
    );
  }
  let refund_body = "";
  return apply(
    payment,
    context,
    (change) => {
      refund_body = failRefund(change, refund, fact.failure_code ?? "processing_failed");
    },
    null,
    () => refund_body,
  );
}
