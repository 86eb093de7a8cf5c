/**
 * Operations on disputes at Stripe: evidence as one text (`uncategorized_text`), and the acceptance
 * of a dispute (`close`), which loses it.
 */

import type {
  Operation,
  ProviderAccount,
  ProviderEvent,
  ProviderReply,
} from "../../domain/providers/connector.ts";
import type { DisputeRequest } from "../../store/operation_row.ts";
import { callStripe, GARBAGE, isUnknown, type StripeFields } from "./stripe_call.ts";
import {
  disputeEvents,
  disputeReport,
  draftEvent,
  type ProviderEventSource,
} from "./stripe_provider_events.ts";
import { Dispute, idOf } from "./stripe_objects.ts";

const ABSENT = { absent: true } as const;

/**
 * Returns path and fields of an operation on a dispute. Null if the dispute has no id at Stripe.
 */
export function disputeRequest(
  op: Operation["op"],
  { reference, text, submit }: DisputeRequest,
): [path: string, fields: StripeFields] | null {
  if (reference === null) return null;
  const path = pathOf(reference);
  if (op === "dispute_accept") return [`${path}/close`, []];
  return [path, [["evidence[uncategorized_text]", text ?? ""], ["submit", String(submit)]]];
}

/**
 * Reads the dispute in the response to an operation. `absent`: it shows no trace of the operation.
 */
export function disputeReply(
  source: ProviderEventSource,
  operation: Operation,
  object: unknown,
): ProviderReply {
  const read = Dispute.safeParse(object);
  if (!read.success || read.data.id !== operation.request.dispute?.reference) return GARBAGE;
  const ended = disputeEvents(source, read.data)
    .find(({ state }) => state === "dispute_lost" || state === "dispute_won");
  const event = ended ?? evidenceEvent(source, operation, read.data);
  return event ? { provider_events: [event] } : ABSENT;
}

export async function syncDispute(
  account: ProviderAccount,
  source: ProviderEventSource,
  operation: Operation,
  signal: AbortSignal,
): Promise<ProviderReply> {
  const reference = operation.request.dispute?.reference ?? null;
  if (reference === null) return ABSENT;
  const request = { method: "GET", path: pathOf(reference), fields: [] } as const;
  const response = await callStripe(account, request, signal);
  if (isUnknown(response)) return response;
  return response.status === 200 ? disputeReply(source, operation, response.body) : GARBAGE;
}

/**
 * Makes the provider event that Stripe has the evidence of an operation. Null if it does not have
 * it.
 */
function evidenceEvent(
  source: ProviderEventSource,
  operation: Operation,
  dispute: Dispute,
): ProviderEvent | null {
  const { text, submit } = operation.request.dispute!;
  const { evidence, evidence_details: details, status, amount, currency } = dispute;
  if (text === null || evidence?.uncategorized_text !== text) return null;
  const is_submitted = status === "under_review" || (details?.submission_count ?? 0) > 0;
  if (submit && !is_submitted) return null;
  return draftEvent(source, {
    of: dispute,
    reference_state: `evidence:${operation.id}`,
    op: "dispute_evidence",
    state: "succeeded",
    subject_id: operation.subject.id,
    provider_reference: idOf(dispute.payment_intent),
    amount,
    currency,
    seconds: Math.floor(Date.parse(operation.created_at) / 1000),
    more: { dispute: { ...disputeReport(dispute), evidence: { text, is_submitted } } },
  });
}

function pathOf(reference: string): string {
  return `/v1/disputes/${encodeURIComponent(reference)}`;
}
