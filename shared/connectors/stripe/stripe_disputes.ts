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
import { callStripe, isUnknown, type StripeFields } from "./stripe_call.ts";
import {
  disputeEvents,
  disputeReport,
  draftEvent,
  type ProviderEventSource,
} from "./stripe_provider_events.ts";
import { Dispute, idOf } from "./stripe_objects.ts";

const GARBAGE = { unknown: "garbage", may_repeat: true } as const;
const ABSENT = { absent: true } as const;

/** Returns path and fields of an operation on a dispute. Null if the dispute has no id at Stripe. */
export function disputeRequest(
  op: Operation["op"],
  { reference, text, submit }: DisputeRequest,
): [path: string, fields: StripeFields] | null {
  if (reference === null) return null;
  const path = pathOf(reference);
  if (op === "dispute_accept") return [`${path}/close`, []];
  return [path, [["evidence[uncategorized_text]", text ?? ""], ["submit", String(submit)]]];
}

/** Reads the dispute that answers a call. `absent`: it shows no trace of the call. */
export function disputeReply(
  source: ProviderEventSource,
  call: Operation,
  object: unknown,
): ProviderReply {
  const read = Dispute.safeParse(object);
  if (!read.success || read.data.id !== call.request.dispute?.reference) return GARBAGE;
  const ended = disputeEvents(source, read.data)
    .find(({ state }) => state === "dispute_lost" || state === "dispute_won");
  const event = ended ?? evidenceEvent(source, call, read.data);
  return event ? { provider_events: [event] } : ABSENT;
}

/** Reads the dispute of a call. Never throws. */
export async function lookAtDispute(
  account: ProviderAccount,
  source: ProviderEventSource,
  call: Operation,
  signal: AbortSignal,
): Promise<ProviderReply> {
  const reference = call.request.dispute?.reference ?? null;
  if (reference === null) return ABSENT;
  const request = { method: "GET", path: pathOf(reference), fields: [] } as const;
  const answer = await callStripe(account, request, signal);
  if (isUnknown(answer)) return answer;
  return answer.status === 200 ? disputeReply(source, call, answer.body) : GARBAGE;
}

/** Makes the provider event that Stripe has the evidence of a call. Null if it does not have it. */
function evidenceEvent(
  source: ProviderEventSource,
  call: Operation,
  dispute: Dispute,
): ProviderEvent | null {
  const { text, submit } = call.request.dispute!;
  const { evidence, evidence_details: details, status, amount, currency } = dispute;
  if (text === null || evidence?.uncategorized_text !== text) return null;
  const is_submitted = status === "under_review" || (details?.submission_count ?? 0) > 0;
  if (submit && !is_submitted) return null;
  return draftEvent(source, {
    of: dispute,
    reference_state: `evidence:${call.id}`,
    op: "dispute_evidence",
    state: "succeeded",
    subject_id: call.subject.id,
    provider_reference: idOf(dispute.payment_intent),
    amount,
    currency,
    seconds: Math.floor(Date.parse(call.created_at) / 1000),
    more: { dispute: { ...disputeReport(dispute), evidence: { text, is_submitted } } },
  });
}

function pathOf(reference: string): string {
  return `/v1/disputes/${encodeURIComponent(reference)}`;
}
