/**
 * Disputes of a payment: their beginning, the evidence of the merchant, and their end (contract
 * §3). A payment that is charged back has disputes that are open or lost: one in a sandbox, and as
 * many as a provider reports with a live key. Pure.
 */

import { formatTime } from "../../core/clock.ts";
import { ApiError } from "../../core/errors.ts";
import type { Dispute } from "../../schema/dispute.ts";
import type { DisputeReason, DisputeStatus } from "../../schema/statuses.ts";
import type { SubmitEvidenceBody } from "../../schema/dispute_body.ts";
import type { Payment } from "../../schema/payment.ts";
import { ChangeBuilder, type PaymentChange } from "../changes/change_builder.ts";
import type { EventContext, RequestContext } from "../changes/event.ts";
import { beginOperation, type Begun } from "../providers/operation.ts";
import type { ProviderOp } from "../providers/connector.ts";
import { chargeBack, winDispute } from "./payment_steps.ts";

/** Time in which a sample takes evidence. */
const SAMPLE_WINDOW_MS = 7 * 24 * 3_600_000;

interface ReportedDispute {
  amount_minor: number;
  reason: DisputeReason;
  evidence_due_by: string | null;
}

export interface StoredDispute {
  dispute: Dispute;
  /** The provider's id of a live dispute; null in a sandbox. */
  provider_reference: string | null;
}

export function openDispute(
  change: PaymentChange,
  reported: ReportedDispute & { provider_reference: string | null },
): Dispute {
  const dispute = newDispute(change, reported);
  change.addDisputeEvent("dispute.created", dispute, reported.provider_reference);
  chargeBack(change, reported.amount_minor);
  return dispute;
}

/** Ends a dispute. If the merchant wins, the payment gets its money and its earlier status back. */
export function closeDispute(
  change: PaymentChange,
  dispute: Dispute,
  status: "won" | "lost",
): void {
  change.addDisputeEvent(`dispute.${status}`, { ...dispute, status, closed_at: change.at });
  if (status === "won") winDispute(change, dispute.amount_minor);
}

export function updateDispute(change: PaymentChange, dispute: Dispute): void {
  change.addDisputeEvent("dispute.updated", dispute);
}

/** Begins to send evidence. Throws `invalid_state` if the dispute takes none. */
export function evidenceOf(
  payment: Payment,
  stored: StoredDispute,
  { text, submit = true }: SubmitEvidenceBody,
  context: RequestContext,
): Begun {
  checkEvidence(stored.dispute, context.at_ms);
  return operationOn(payment, stored, "dispute_evidence", { text, submit }, context);
}

/** Begins to give up a dispute. Throws `invalid_state` if it is over. */
export function acceptanceOf(
  payment: Payment,
  stored: StoredDispute,
  context: RequestContext,
): Begun {
  checkOpen(stored.dispute, "accept the dispute");
  return operationOn(payment, stored, "dispute_accept", { text: null, submit: false }, context);
}

function operationOn(
  payment: Payment,
  { dispute, provider_reference: reference }: StoredDispute,
  op: ProviderOp,
  more: { text: string | null; submit: boolean },
  context: RequestContext,
): Begun {
  const { id, amount_minor } = dispute;
  const request = { token: null, dispute: { id, reference, ...more } };
  return beginOperation(new ChangeBuilder(payment, context), op, {
    amount_minor,
    dispute,
    request,
  });
}

/** Throws `invalid_state` unless the dispute takes evidence now. */
function checkEvidence(dispute: Dispute, at_ms: number): void {
  checkOpen(dispute, "send evidence");
  const { status, evidence_due_by } = dispute;
  if (status === "under_review") {
    throw invalidDisputeState(
      "Cannot send evidence: it is submitted already, and the payer's bank reviews it",
      dispute,
    );
  }
  if (evidence_due_by !== null && at_ms > Date.parse(evidence_due_by)) {
    throw invalidDisputeState(`Cannot send evidence: it was due by ${evidence_due_by}`, dispute);
  }
}

/** Throws `invalid_state` if the dispute is won or lost. */
function checkOpen(dispute: Dispute, action: string): void {
  if (isOpen(dispute)) return;
  throw invalidDisputeState(`Cannot ${action}: the dispute is ${dispute.status}`, dispute);
}

/** Reports whether a dispute has no end yet. */
export function isOpen({ status }: Pick<Dispute, "status">): boolean {
  return status === "needs_response" || status === "under_review";
}

/** Makes a sample dispute of the whole payment, for triggered events. */
export function sampleDispute(
  payment: Payment,
  status: DisputeStatus,
  context: RequestContext,
): Dispute {
  const change = new ChangeBuilder(payment, context);
  const evidence_due_by = formatTime(context.at_ms + SAMPLE_WINDOW_MS);
  const { amount_minor } = payment;
  const dispute = newDispute(change, { amount_minor, reason: "general", evidence_due_by });
  const evidence = { text: "A sample of evidence", submitted_at: change.at };
  if (status === "needs_response") return dispute;
  const closed_at = status === "under_review" ? null : change.at;
  return { ...dispute, status, evidence, closed_at };
}

export function invalidDisputeState(message: string, dispute: Dispute): ApiError {
  const allowed: DisputeStatus[] = isOpen(dispute) ? ["won", "lost"] : [];
  return new ApiError("invalid_state", message, { current_status: dispute.status, allowed });
}

function newDispute(
  { subject: payment, context, at }: { subject: Payment; context: EventContext; at: string },
  { amount_minor, reason, evidence_due_by }: ReportedDispute,
): Dispute {
  return {
    id: context.newId("dp_"),
    object: "dispute",
    payment_id: payment.id,
    amount_minor,
    currency: payment.currency,
    reason,
    status: "needs_response",
    evidence: null,
    evidence_due_by,
    created_at: at,
    closed_at: null,
  };
}
