/**
 * Applies the provider events of disputes: what happens at the provider, and the evidence that it
 * has taken. Pure.
 */

import { formatTime } from "../../core/clock.ts";
import type { Dispute, DisputeEvidence } from "../../schema/dispute.ts";
import type { Payment } from "../../schema/payment.ts";
import type { PaymentChange } from "../changes/change_builder.ts";
import { isRefundable } from "./lifecycle.ts";
import { closeDispute, isOpen, openDispute, updateDispute } from "./dispute_payment.ts";
import type { ProviderEvent } from "../providers/connector.ts";
import {
  apply,
  applyAmount,
  applyWithoutCapture,
  type Effect,
  exception,
  IGNORED,
  isCaptured,
  isOver,
  shown,
  WAIT,
} from "../providers/effect.ts";

/** Applies what happens to a dispute at the provider. A dispute that is not ours yet can come. */
export function applyToDispute(
  change: PaymentChange,
  dispute: Dispute | null,
  event: ProviderEvent,
): Effect {
  const payment = change.subject;
  switch (event.state) {
    case "disputed":
      if (!isCaptured(payment)) return applyWithoutCapture(change, event);
      return dispute ? IGNORED : applyNewDispute(change, event);
    case "dispute_won":
      if (!isCaptured(payment)) return applyWithoutCapture(change, event);
      return applyWonDispute(change, dispute, event);
    case "dispute_lost":
    case "dispute_under_review": {
      // Without a dispute here, only a payment that can be disputed waits for it.
      if (!dispute) {
        const may_come = canBeDisputed(payment) || !isCaptured(payment) && !isOver(payment);
        return may_come ? WAIT : IGNORED;
      }
      const is_late = !isOpen(dispute) ||
        event.state === "dispute_under_review" && dispute.status === "under_review";
      if (is_late) return IGNORED;
      return apply(() => {
        if (event.state === "dispute_lost") {
          closeDispute(change, withEvidence(change, dispute, event), "lost");
        } else updateDispute(change, { ...dispute, status: "under_review" });
      });
    }
    default:
      return exception(`a dispute has no provider event ${event.state}`);
  }
}

/**
 * Begins a dispute. A bank can take back money that is refunded already or held by another dispute,
 * so the sum of both can exceed the captured amount.
 */
function applyNewDispute(change: PaymentChange, event: ProviderEvent): Effect {
  const payment = change.subject;
  if (!canBeDisputed(payment) || event.amount_minor > payment.amount_captured) {
    return exception(`a dispute of ${shown(event)} is more than the payment has taken`);
  }
  const { reason = "general", evidence_due_by = null } = event.dispute ?? {};
  const { amount_minor, later } = event;
  const ends_at = later && formatTime(change.context.at_ms + later.delay_ms);
  return apply(() => {
    const { id } = openDispute(change, {
      amount_minor,
      reason,
      evidence_due_by: evidence_due_by ?? ends_at ?? null,
      provider_reference: payment.livemode ? event.object_id : null,
    });
    if (later) {
      const dispute = { id, reference: null, text: null, submit: false };
      const request = { token: null, dispute };
      change.addOperation({ ...later, amount_minor, request });
    }
  });
}

/** Applies a dispute that was won. The bank can give up a dispute that was lost before. */
function applyWonDispute(
  change: PaymentChange,
  dispute: Dispute | null,
  event: ProviderEvent,
): Effect {
  if (dispute?.status === "won") return IGNORED;
  if (!dispute) {
    // The event that the payer has disputed can come later, unless it is an exception then.
    return canBeDisputed(change.subject)
      ? WAIT
      : exception(`a dispute of ${shown(event)} that was won has not begun here`);
  }
  return applyAmount(change, dispute.amount_minor, event, () => {
    closeDispute(change, withEvidence(change, dispute, event), "won");
  });
}

function canBeDisputed(payment: Payment): boolean {
  return isRefundable(payment) || payment.status === "chargeback" || payment.status === "refunded";
}

export function applyEvidence(
  change: PaymentChange,
  dispute: Dispute | null,
  event: ProviderEvent,
): Effect {
  const evidence = event.dispute?.evidence;
  if (!dispute || !evidence) return exception("the evidence belongs to no dispute here");
  if (!isOpen(dispute)) return IGNORED;
  const status = evidence.is_submitted ? "under_review" : dispute.status;
  return apply(() => updateDispute(change, { ...withEvidence(change, dispute, event), status }));
}

/** Returns the dispute with the evidence of an event, if it names some. */
function withEvidence({ at }: PaymentChange, dispute: Dispute, event: ProviderEvent): Dispute {
  const taken = event.dispute?.evidence;
  if (!taken) return dispute;
  const { text, is_submitted } = taken;
  const evidence: DisputeEvidence = { text, submitted_at: is_submitted ? at : null };
  return { ...dispute, evidence };
}
