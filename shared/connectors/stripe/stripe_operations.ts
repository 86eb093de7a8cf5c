/**
 * Operations at Stripe, and the search for their results. Only a response that certainly is
 * Stripe's response to this operation becomes a provider event or a refusal; every other one is
 * `unknown`.
 */

import type {
  Operation,
  ProviderAccount,
  ProviderEvent,
  ProviderReply,
} from "../../domain/providers/connector.ts";
import { isUnsuccessful } from "../../domain/payments/lifecycle.ts";
import { callStripe, isUnknown } from "./stripe_call.ts";
import { readErrorResponse } from "./stripe_errors.ts";
import { disputeReply, syncDispute } from "./stripe_disputes.ts";
import { accountSource, intentEvents, refundEvents } from "./stripe_provider_events.ts";
import { findListed } from "./stripe_lists.ts";
import { expandedOf, PaymentIntent, type StripeError, StripeRefund } from "./stripe_objects.ts";
import { EXPAND_CHARGE, requestOf } from "./stripe_requests.ts";

/**
 * Times after the reservation in which a sync expects the payment, in seconds: at first around the
 * reservation, then for the day in which an operation is repeated. Clocks differ by less than five
 * minutes.
 */
const SYNC_WINDOWS = [[-300, 900], [900, 86_400]] as const;

/** Statuses from which somebody could still take the money of a payment. */
const OPEN = ["requires_payment_method", "requires_confirmation", "requires_capture"];

const GARBAGE = { unknown: "garbage", may_repeat: true } as const;
const ABSENT = { absent: true } as const;

/** Sends an operation with its id as the idempotency key. */
export async function send(
  account: ProviderAccount,
  operation: Operation,
  signal: AbortSignal,
): Promise<ProviderReply> {
  if (operation.op === "abandon") {
    // Stripe would also cancel a payment whose payer has authenticated.
    const present = await sync(account, operation, signal);
    if (!("absent" in present)) return present;
  }
  const request = requestOf(account.environment_id, operation);
  if ("refused" in request) return request;
  const response = await callStripe(account, request, signal);
  if (isUnknown(response)) return response;
  if (response.status === 200) {
    const reply = operation.request.dispute
      ? disputeReply(accountSource(account), operation, response.body)
      : operation.op === "refund"
      ? refundReply(account, operation, response.body)
      : intentReply(account, operation, response.body);
    return "absent" in reply ? GARBAGE : reply;
  }
  const reading = readErrorResponse(operation.op, response);
  if ("intent" in reading) return intentReply(account, operation, reading.intent, reading.error);
  if (!("sync" in reading)) return reading;
  const present = await sync(account, operation, signal);
  if ("unknown" in present) {
    const { unknown, may_repeat } = present;
    // `did_nothing` would be about the sync, and not about the operation.
    return { unknown, may_repeat };
  }
  if (!("absent" in present)) return present;
  const message = "The payment at Stripe is in a state that does not allow this";
  return { refused: "provider_refused", message };
}

/** Finds the result of an operation, by our id while Stripe's is not known. */
export async function sync(
  account: ProviderAccount,
  operation: Operation,
  signal: AbortSignal,
): Promise<ProviderReply> {
  if (operation.request.dispute) {
    return await syncDispute(account, accountSource(account), operation, signal);
  }
  const payment = operation.provider_reference;
  if (operation.op === "refund") {
    return payment === null ? ABSENT : await searchRefund(account, operation, payment, signal);
  }
  if (payment !== null) return await syncIntent(account, operation, payment, signal);
  return operation.op === "authorize" ? await searchIntent(account, operation, signal) : ABSENT;
}

/** Reads a payment, refund or dispute by its id, whatever its metadata say. */
export async function find(
  account: ProviderAccount,
  operation: Operation,
  reference: string,
  signal: AbortSignal,
): Promise<ProviderReply> {
  if (operation.request.dispute) {
    const is_own = reference === operation.request.dispute.reference;
    return is_own ? await syncDispute(account, accountSource(account), operation, signal) : ABSENT;
  }
  const list = operation.op === "refund" ? "refunds" : "payment_intents";
  const fields = operation.op === "refund"
    ? [["expand[]", "balance_transaction"], ["expand[]", "failure_balance_transaction"]] as const
    : [EXPAND_CHARGE];
  const path = `/v1/${list}/${encodeURIComponent(reference)}`;
  const response = await callStripe(account, { method: "GET", path, fields }, signal);
  if (isUnknown(response)) return response;
  if (response.status === 404) return ABSENT;
  const intent = expandedOf(PaymentIntent, response.body);
  if (intent !== null) return replyOf(intentEvents(accountSource(account), intent));
  const refund = expandedOf(StripeRefund, response.body);
  return refund === null ? GARBAGE : replyOf(refundEvents(accountSource(account), refund));
}

async function syncIntent(
  account: ProviderAccount,
  operation: Operation,
  payment: string,
  signal: AbortSignal,
): Promise<ProviderReply> {
  const path = `/v1/payment_intents/${encodeURIComponent(payment)}`;
  const response = await callStripe(
    account,
    { method: "GET", path, fields: [EXPAND_CHARGE] },
    signal,
  );
  if (isUnknown(response)) return response;
  // Stripe has responded with this id before, so a 404 comes from another account or program.
  return response.status === 200 ? intentReply(account, operation, response.body) : GARBAGE;
}

async function searchIntent(
  account: ProviderAccount,
  operation: Operation,
  signal: AbortSignal,
): Promise<ProviderReply> {
  const reserved_at = Math.floor(Date.parse(operation.created_at) / 1000);
  for (const [from, to] of SYNC_WINDOWS) {
    const fields = [
      ["created[gte]", String(reserved_at + from)],
      ["created[lt]", String(reserved_at + to)],
      ["expand[]", `data.${EXPAND_CHARGE[1]}`],
    ] as const;
    const path = "/v1/payment_intents";
    const found = await findListed(account, path, fields, namesOperation(operation), signal);
    if (found === null) continue;
    return isUnknown(found) ? found : intentReply(account, operation, found);
  }
  return ABSENT;
}

async function searchRefund(
  account: ProviderAccount,
  operation: Operation,
  payment: string,
  signal: AbortSignal,
): Promise<ProviderReply> {
  const fields = [
    ["payment_intent", payment],
    ["expand[]", "data.balance_transaction"],
    ["expand[]", "data.failure_balance_transaction"],
  ] as const;
  const found = await findListed(account, "/v1/refunds", fields, namesOperation(operation), signal);
  if (found === null) return ABSENT;
  return isUnknown(found) ? found : refundReply(account, operation, found);
}

/** Matches an object whose metadata name the operation. */
function namesOperation(operation: Operation) {
  return ({ metadata }: Record<string, unknown>): boolean =>
    (metadata as Record<string, unknown> | null | undefined)?.call === operation.id;
}

/** The reply of a payment. */
function intentReply(
  account: ProviderAccount,
  operation: Operation,
  object: unknown,
  error: StripeError | null = null,
): ProviderReply {
  const read = PaymentIntent.safeParse(object);
  if (!read.success) return GARBAGE;
  const { id, status, metadata } = read.data;
  if (operation.provider_reference !== null && id !== operation.provider_reference) return GARBAGE;
  if (operation.op === "authorize" && metadata?.call !== operation.id) return GARBAGE;
  if (isUntouched(operation, status)) return ABSENT;
  return replyOf(intentEvents(accountSource(account), read.data, error));
}

/** Reports whether the status of a payment shows no trace of an operation. */
function isUntouched({ op, subject }: Operation, status: string): boolean {
  if (op === "authorize") return false;
  if (op === "abandon") {
    // One that was not successful here must end there too, also if somebody has authorized it
    // since: nobody would capture or release the amount. Else every other status decides whether
    // the payer still has to act.
    return status === "requires_action" || isUnsuccessful(subject) && OPEN.includes(status);
  }
  return status !== "succeeded" && status !== "canceled";
}

function refundReply(
  account: ProviderAccount,
  operation: Operation,
  object: unknown,
): ProviderReply {
  const read = StripeRefund.safeParse(object);
  if (!read.success || read.data.metadata?.call !== operation.id) return GARBAGE;
  return replyOf(refundEvents(accountSource(account), read.data));
}

function replyOf([first, ...others]: ProviderEvent[]): ProviderReply {
  return first === undefined ? GARBAGE : { provider_events: [first, ...others] };
}
