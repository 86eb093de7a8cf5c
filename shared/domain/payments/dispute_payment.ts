/**
 * Decides disputes of a payment: their beginning, the evidence of the merchant, and their end
 * (contract §3). A payment that is charged back has disputes that are open or lost: one in a
 * sandbox, and as many as a provider reports with a live key. Pure.
 */

import { formatTime } from "../../core/clock.ts";
import { ApiError } from "../../core/errors.ts";
import type {
  Dispute,
  DisputeEvidence,
  DisputeReason,
  DisputeStatus,
  SubmitEvidenceBody,
} from "../../schema/dispute.ts";
import type { Payment } from "../../schema/payment.ts";
import type { Change } from "../../store/commit_rows.ts";
import { ChangeBuilder, type PaymentChange } from "../changes/change_builder.ts";
import type { EventContext, RequestContext } from "../changes/event.ts";
import { testCardOf } from "../providers/test_values.ts";
import { refundable } from "./lifecycle.ts";
import { chargeBack, winDispute } from "./settlement.ts";

/** Time in which a sandbox dispute takes evidence, and after which it is lost (contract §3). */
const EVIDENCE_WINDOW_MS = 7 * 24 * 3_600_000;
/** Texts of evidence that decide a dispute of the sandbox at once. */
const DECISIVE: ReadonlyMap<string, "won" | "lost"> = new Map([
  ["winning_evidence", "won"],
  ["losing_evidence", "lost"],
]);

/** The beginning of a live dispute, which the provider reports. */
interface LiveDispute {
  amount_minor: number;
  reason: DisputeReason;
  evidence_due_by: string | null;
  /** The provider's id of the dispute. */
  provider_reference: string;
}

/**
 * Begins a dispute of a sandbox payment, over all that is neither refunded nor held by a pending
 * refund. The worker ends it if the merchant does nothing.
 */
export function openDispute(change: PaymentChange, reason: DisputeReason = "general"): void {
  const amount_minor = refundable(change.subject);
  const evidence_due_by = formatTime(change.context.at_ms + EVIDENCE_WINDOW_MS);
  const dispute = newDispute(change, { amount_minor, reason, evidence_due_by });
  change.addDisputeEvent("dispute.created", dispute);
  chargeBack(change, amount_minor);
  change.addCall({
    op: "dispute_expire",
    delay_ms: EVIDENCE_WINDOW_MS,
    amount_minor,
    request: {
      token: null,
      return_url: null,
      dispute: { id: dispute.id, reference: null, text: null, submit: false },
    },
  });
}

/** Begins a dispute that a provider reports. */
export function openLiveDispute(change: PaymentChange, reported: LiveDispute): void {
  const dispute = newDispute(change, reported);
  change.addDisputeEvent("dispute.created", dispute, reported.provider_reference);
  chargeBack(change, reported.amount_minor);
}

/** Begins a dispute if the payment was made with the test card that is disputed at once. */
export function disputeTestCard(change: PaymentChange): void {
  const { method, livemode } = change.subject;
  if (livemode || method?.type !== "card") return;
  if (testCardOf(method.card)?.behaviour === "dispute") openDispute(change, "fraudulent");
}

/**
 * Ends a dispute. If the merchant wins, the payment gets its money and its earlier status back.
 * @param dispute null: another request has ended it since the payment was loaded. It has changed the
 *   sequence of the payment too, so the commit of this change is stale
 */
export function closeDispute(
  change: PaymentChange,
  dispute: Dispute | null,
  status: "won" | "lost",
): void {
  if (dispute) {
    change.addDisputeEvent(`dispute.${status}`, { ...dispute, status, closed_at: change.at });
  }
  if (status === "won") winDispute(change, dispute?.amount_minor);
}

/** Records evidence, and a new status if there is one. */
export function updateDispute(
  change: PaymentChange,
  dispute: Dispute,
  patch: { status?: DisputeStatus; evidence?: DisputeEvidence },
): void {
  change.addDisputeEvent("dispute.updated", { ...dispute, ...patch });
}

/**
 * Decides evidence for a dispute of the sandbox: two texts decide it, others wait for the bank.
 * Throws `invalid_state` if the dispute takes none.
 */
export function decideEvidence(
  payment: Payment,
  dispute: Dispute,
  { text, submit = true }: SubmitEvidenceBody,
  context: RequestContext,
): Change {
  checkEvidence(dispute, context.at_ms);
  const change = new ChangeBuilder(payment, context);
  const evidence = { text, submitted_at: submit ? change.at : null };
  const end = submit ? DECISIVE.get(text.trim()) : undefined;
  if (end) closeDispute(change, { ...dispute, evidence }, end);
  else updateDispute(change, dispute, { evidence, ...(submit && { status: "under_review" }) });
  return finishDispute(change);
}

/** Decides that the merchant accepts a dispute of the sandbox: it is lost. */
export function decideAccept(payment: Payment, dispute: Dispute, context: RequestContext): Change {
  checkOpen(dispute, "accept the dispute");
  const change = new ChangeBuilder(payment, context);
  closeDispute(change, dispute, "lost");
  return finishDispute(change);
}

/** Throws `invalid_state` unless the dispute takes evidence now. */
export function checkEvidence(dispute: Dispute, at_ms: number): void {
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
export function checkOpen(dispute: Dispute, action: string): void {
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
  const evidence_due_by = formatTime(context.at_ms + EVIDENCE_WINDOW_MS);
  const { amount_minor } = payment;
  const dispute = newDispute(change, { amount_minor, reason: "general", evidence_due_by });
  const evidence = { text: "A sample of evidence", submitted_at: change.at };
  if (status === "needs_response") return dispute;
  const closed_at = status === "under_review" ? null : change.at;
  return { ...dispute, status, evidence, closed_at };
}

/** Makes the 409 for a dispute whose status does not allow the request. */
export function invalidDisputeState(message: string, dispute: Dispute): ApiError {
  const allowed: DisputeStatus[] = isOpen(dispute) ? ["won", "lost"] : [];
  return new ApiError("invalid_state", message, { current_status: dispute.status, allowed });
}

function newDispute(
  { subject: payment, context, at }: { subject: Payment; context: EventContext; at: string },
  { amount_minor, reason, evidence_due_by }: Omit<LiveDispute, "provider_reference">,
): Dispute {
  return {
    id: context.mint("dp_"),
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

function finishDispute(change: PaymentChange): Change {
  const finished = change.finish({ status: 200, body: "" });
  return { ...finished, answer: { status: 200, body: finished.disputes.at(-1)!.body } };
}
