/**
 * Applies the facts of providers to payments (architecture §7). Forward only: a fact changes a
 * payment if the lifecycle allows the move, a late or repeated fact changes nothing, and a fact
 * whose amount, currency or mode differs from ours is a finding. Pure.
 */

import { formatAmount } from "../../core/currency.ts";
import { FINAL_PAYMENT_STATUSES } from "../../core/vocabulary.ts";
import type { Dispute } from "../../schema/dispute.ts";
import type { Payment } from "../../schema/payment.ts";
import type { Transfer } from "../../schema/transfer.ts";
import type { Refund } from "../../schema/refund.ts";
import type { Change, MovementKind, MovementRow } from "../../store/commit_rows.ts";
import { ChangeBuilder, type PaymentChange } from "../changes/change_builder.ts";
import type { EventContext } from "../changes/event.ts";
import { canBecome, isRefundable, refundable } from "../payments/lifecycle.ts";
import {
  closeDispute,
  isOpen,
  openLiveDispute,
  updateDispute,
} from "../payments/dispute_payment.ts";
import { beginRefund, completeRefund, failRefund } from "../payments/refund_payment.ts";
import {
  authorize,
  cancel,
  complete,
  decline,
  fail,
  requireAction,
} from "../payments/settlement.ts";
import type { Fact } from "../providers/connector.ts";
import { movedAtProvider } from "./moved_at_provider.ts";

/** The effect of a fact. */
export type Effect =
  /** The rows of the change. A finding can come with it, for the operator. */
  | { outcome: "applied"; change: FactChange; finding: string | null }
  /** The fact is late or repeated. */
  | { outcome: "ignored" }
  /** The fact came before another one that it builds on: apply it later. */
  | { outcome: "wait" }
  /** The fact contradicts our books. An operator has to look. */
  | { outcome: "finding"; finding: string }
  /** The fact matches no payment or transfer. The change books its money for the account. */
  | { outcome: "unmatched"; finding: string | null; change: FactChange | null };

/** The rows that a fact changes, and the refund and payment as of the change. */
export interface FactChange extends Omit<Change, "answer"> {
  /** Null for a payout and for unmatched money, which belong to no payment. */
  subject: Payment | Transfer | null;
  /** The refund of the fact, as JSON text. */
  refund_body: string | null;
  /** The signed change of the balance at the provider. */
  booked_minor: number;
}

/** A payment with the refund or dispute that the fact is about, if it is ours. */
interface FactSubject {
  payment: Payment;
  refund: Refund | null;
  dispute: Dispute | null;
}

/** The effect of each kind of movement on the balance at the provider. */
const AT_PROVIDER: Record<MovementKind, -1 | 0 | 1> = {
  capture: 1,
  capture_reversal: -1,
  refund: -1,
  chargeback: -1,
  chargeback_reversal: 1,
  fee: -1,
  fee_reversal: 1,
  settlement: -1,
  settlement_reversal: 1,
  unmatched: 1,
  unmatched_reversal: -1,
  transfer: 0,
  transfer_completed: -1,
  transfer_reversed: 0,
};

/** Applies a fact to its payment. */
export function applyFact(subject: FactSubject, fact: Fact, context: EventContext): Effect {
  const payment = withCard(subject.payment, fact);
  if (fact.livemode !== payment.livemode) {
    return finding(`the provider's object is ${fact.livemode ? "live" : "in test mode"}`);
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

/**
 * Applies a fact about money that this payment has not captured. Money that arrives for a payment
 * that is over is unmatched (`applySuccess`), and so are its refunds and disputes. While the
 * payment is open, the fact waits for the capture or for the end of the payment.
 */
function applyWithoutCapture(payment: Payment, fact: Fact, context: EventContext): Effect {
  if (!isOver(payment)) return { outcome: "wait" };
  const moved = movedAtProvider(fact);
  return apply(payment, context, (change) => {
    change.move(moved > 0 ? "unmatched" : "unmatched_reversal", Math.abs(moved));
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

/** Applies what happens to a dispute at the provider. A dispute that is not ours yet can come. */
function applyDisputeFact(subject: FactSubject, fact: Fact, context: EventContext): Effect {
  const { payment, dispute } = subject;
  switch (fact.state) {
    case "disputed":
      if (!isCaptured(payment)) return applyWithoutCapture(payment, fact, context);
      return dispute ? { outcome: "ignored" } : applyNewDispute(payment, fact, context);
    case "dispute_won":
      if (!isCaptured(payment)) return applyWithoutCapture(payment, fact, context);
      return applyWonDispute(subject, fact, context);
    case "dispute_lost":
    case "dispute_under_review": {
      // Without a dispute here, only a payment that can be disputed waits for it.
      if (!dispute) {
        const may_come = isRefundable(payment) || payment.status === "chargeback" ||
          !isCaptured(payment) && !isOver(payment);
        return { outcome: may_come ? "wait" : "ignored" };
      }
      const is_late = !isOpen(dispute) ||
        fact.state === "dispute_under_review" && dispute.status === "under_review";
      if (is_late) return { outcome: "ignored" };
      return apply(payment, context, (change) => {
        if (fact.state === "dispute_lost") closeDispute(change, dispute, "lost");
        else updateDispute(change, dispute, { status: "under_review" });
      });
    }
    default:
      return finding(`a dispute has no fact ${fact.state}`);
  }
}

function applyNewDispute(payment: Payment, fact: Fact, context: EventContext): Effect {
  // A fact is stored once, so this is another dispute. It counts after the end of the first.
  if (payment.status === "chargeback") return { outcome: "wait" };
  // The end of a pending refund decides how much is left to dispute.
  if (payment.amount_refunding > 0) return { outcome: "wait" };
  if (!isRefundable(payment) || fact.amount_minor > payment.amount_captured) {
    return finding(`a dispute of ${shown(fact)} is more than what is left`);
  }
  const { reason = "general", evidence_due_by = null } = fact.dispute ?? {};
  const { amount_minor } = fact;
  const provider_reference = objectOf(fact);
  return apply(
    payment,
    context,
    (change) =>
      openLiveDispute(change, { amount_minor, reason, evidence_due_by, provider_reference }),
  );
}

/** Applies a dispute that was won. The bank can give up a dispute that was lost before. */
function applyWonDispute(
  { payment, dispute }: FactSubject,
  fact: Fact,
  context: EventContext,
): Effect {
  if (dispute?.status === "won") return { outcome: "ignored" };
  if (payment.status !== "chargeback" || !dispute) {
    // The fact that the payer has disputed can come later, unless it is a finding then.
    return isRefundable(payment) || payment.status === "chargeback"
      ? { outcome: "wait" }
      : finding(`a dispute of ${shown(fact)} that was won has not begun here`);
  }
  return differs(payment.amount_disputed, fact) ??
    apply(payment, context, (change) => closeDispute(change, dispute, "won"));
}

/** Applies evidence that the provider has taken. */
function applyEvidence(
  { payment, dispute }: FactSubject,
  fact: Fact,
  context: EventContext,
): Effect {
  const evidence = fact.dispute?.evidence;
  if (!dispute || !evidence) return finding("the evidence belongs to no dispute here");
  if (!isOpen(dispute)) return { outcome: "ignored" };
  const { text, is_submitted } = evidence;
  return apply(payment, context, (change) =>
    updateDispute(change, dispute, {
      evidence: { text, submitted_at: is_submitted ? change.at : null },
      status: is_submitted ? "under_review" : dispute.status,
    }));
}

/** Returns the provider's id of the object that a fact is about. */
export function objectOf({ reference }: Pick<Fact, "reference">): string {
  return reference.split(":", 1)[0]!;
}

function isOver({ status }: Payment): boolean {
  const final: readonly string[] = FINAL_PAYMENT_STATUSES;
  return final.includes(status);
}

function isCaptured(payment: Payment): boolean {
  return payment.amount_captured > 0;
}

/** Returns a finding if the amount of the fact is not the expected one. */
function differs(expected_minor: number, fact: Fact): Effect | null {
  if (fact.amount_minor === expected_minor) return null;
  return finding(
    `the amount is ${shown(fact)} instead of ${formatAmount(expected_minor, fact.currency)}`,
  );
}

function shown({ amount_minor, currency }: Fact): string {
  return formatAmount(amount_minor, currency);
}

/** Makes the effect of a fact that contradicts our books. */
export function finding(text: string): Effect {
  return { outcome: "finding", finding: text };
}

/** Builds the change of a payment. */
function apply(
  payment: Payment,
  context: EventContext,
  build: (change: PaymentChange) => void,
  found: string | null = null,
  refundBody: () => string | null = () => null,
): Effect {
  const builder = new ChangeBuilder(payment, context);
  build(builder);
  return effectOf(builder, found, refundBody());
}

/** Returns the effect of the changes that a builder has collected. */
export function effectOf<T extends Payment | Transfer>(
  builder: ChangeBuilder<T>,
  found: string | null = null,
  refund_body: string | null = null,
): Effect {
  return { outcome: "applied", finding: found, change: changeOf(builder, refund_body) };
}

/** Returns the rows that a builder has collected. */
export function changeOf<T extends Payment | Transfer>(
  builder: ChangeBuilder<T>,
  refund_body: string | null = null,
): FactChange {
  const { answer: _, ...rows } = builder.finish({ status: 200, body: "" });
  return {
    ...rows,
    subject: builder.subject,
    refund_body,
    booked_minor: bookedAtProvider(rows.ledger),
  };
}

/** Returns the signed change of the balance at the provider that movements book. */
export function bookedAtProvider(movements: readonly MovementRow[]): number {
  return movements.reduce(
    (sum, { kind, amount_minor }) => sum + AT_PROVIDER[kind] * amount_minor,
    0,
  );
}
