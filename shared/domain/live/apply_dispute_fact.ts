/**
 * Applies the facts of disputes: what happens at the provider, and the evidence that it has taken.
 * Pure.
 */

import type { Payment } from "../../schema/payment.ts";
import type { EventContext } from "../changes/event.ts";
import { isRefundable } from "../payments/lifecycle.ts";
import {
  closeDispute,
  isOpen,
  openLiveDispute,
  updateDispute,
} from "../payments/dispute_payment.ts";
import type { Fact } from "../providers/connector.ts";
import {
  apply,
  applyWithoutCapture,
  differs,
  type Effect,
  type FactSubject,
  finding,
  isCaptured,
  isOver,
  objectOf,
  shown,
} from "./fact_effect.ts";

/** Applies what happens to a dispute at the provider. A dispute that is not ours yet can come. */
export function applyDisputeFact(subject: FactSubject, fact: Fact, context: EventContext): Effect {
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
        const may_come = canBeDisputed(payment) || !isCaptured(payment) && !isOver(payment);
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

/**
 * Begins a dispute. A bank can take back money that is refunded already or held by another dispute,
 * so the sum of both can exceed the captured amount.
 */
function applyNewDispute(payment: Payment, fact: Fact, context: EventContext): Effect {
  if (!canBeDisputed(payment) || fact.amount_minor > payment.amount_captured) {
    return finding(`a dispute of ${shown(fact)} is more than the payment has taken`);
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
  if (!dispute) {
    // The fact that the payer has disputed can come later, unless it is a finding then.
    return canBeDisputed(payment)
      ? { outcome: "wait" }
      : finding(`a dispute of ${shown(fact)} that was won has not begun here`);
  }
  return differs(dispute.amount_minor, fact) ??
    apply(payment, context, (change) => closeDispute(change, dispute, "won"));
}

function canBeDisputed(payment: Payment): boolean {
  return isRefundable(payment) || payment.status === "chargeback" || payment.status === "refunded";
}

/** Applies evidence that the provider has taken. */
export function applyEvidence(
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
