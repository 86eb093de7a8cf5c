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
import { callStripe, GARBAGE, isUnknown, type StripeResponse } from "./stripe_call.ts";
import { readErrorResponse } from "./stripe_errors.ts";
import { disputeReply, syncDispute } from "./stripe_disputes.ts";
import {
  accountSource,
  detachEvents,
  intentEvents,
  refundEvents,
} from "./stripe_provider_events.ts";
import { createdBetween, findListed } from "./stripe_lists.ts";
import {
  Customer,
  expandedOf,
  idOf,
  Intent,
  KeptCard,
  StripeError,
  StripeRefund,
} from "./stripe_objects.ts";
import {
  cardPath,
  customerRequest,
  listFor,
  pathOf,
  requestOf,
  savingCustomer,
} from "./stripe_requests.ts";

/**
 * Times after the reservation in which a sync expects the payment, in seconds: at first around the
 * reservation, then for the day in which an operation is repeated. Clocks differ by less than five
 * minutes.
 */
const SYNC_WINDOWS = [[-300, 900], [900, 86_400]] as const;

/** Statuses from which somebody could still take the money of a payment. */
const OPEN = ["requires_payment_method", "requires_confirmation", "requires_capture"];

const EXPAND_REFUND = [
  ["expand[]", "balance_transaction"],
  ["expand[]", "failure_balance_transaction"],
] as const;

/** Pauses before a customer is asked for again that another request makes at this moment. */
const CUSTOMER_PAUSES_MS = [100, 300, 1_000];

/** The time for which Stripe keeps an idempotency key, and an hour more. */
const KEY_LIFE_S = 25 * 3600;

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
  const customer = await customerFor(account, operation, signal);
  if (typeof customer === "object" && customer !== null) return customer;
  const request = requestOf(account.environment_id, { ...operation, reserved: { customer } });
  if ("refused" in request) return request;
  const response = await callStripe(account, request, signal);
  if (isUnknown(response)) return response;
  if (response.status === 200) {
    const reply = operation.request.dispute
      ? disputeReply(accountSource(account), operation, response.body)
      : operation.op === "refund"
      ? refundReply(account, operation, response.body)
      : operation.op === "detach"
      ? detachReply(account, operation, response)
      : intentReply(account, operation, response.body);
    return "absent" in reply ? GARBAGE : reply;
  }
  const reading = readErrorResponse(operation.op, response, operation.request.instrument);
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
  if (operation.op === "detach") {
    const request = { method: "GET", path: cardPath(operation), fields: [] } as const;
    const response = await callStripe(account, request, signal);
    return isUnknown(response) ? response : detachReply(account, operation, response);
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
  if (operation.op === "detach") {
    return reference === operation.request.token ? await sync(account, operation, signal) : ABSENT;
  }
  const [place, expand] = pathOf(reference);
  const [path, fields] = operation.op === "refund"
    ? [`/v1/refunds/${encodeURIComponent(reference)}`, EXPAND_REFUND]
    : [place, [expand]];
  const response = await callStripe(account, { method: "GET", path, fields }, signal);
  if (isUnknown(response)) return response;
  if (response.status === 404) return ABSENT;
  const intent = expandedOf(Intent, response.body);
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
  const [path, expand] = pathOf(payment);
  const response = await callStripe(account, { method: "GET", path, fields: [expand] }, signal);
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
  const [path, expand] = listFor(operation.amount_minor);
  for (const [from, to] of SYNC_WINDOWS) {
    const fields = [
      ...createdBetween(reserved_at + from, reserved_at + to),
      ["expand[]", `data.${expand[1]}`],
    ] as const;
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

function intentReply(
  account: ProviderAccount,
  operation: Operation,
  object: unknown,
  error: StripeError | null = null,
): ProviderReply {
  const read = Intent.safeParse(object);
  if (!read.success) return GARBAGE;
  const { id, status, metadata } = read.data;
  if (operation.provider_reference !== null && id !== operation.provider_reference) return GARBAGE;
  if (operation.op === "authorize" && metadata?.call !== operation.id) return GARBAGE;
  if (isUntouched(operation, status)) return ABSENT;
  return replyOf(intentEvents(accountSource(account), read.data, error));
}

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

/** The reply of a card. `absent`: Stripe still keeps it. A card that Stripe has not is detached. */
function detachReply(
  account: ProviderAccount,
  operation: Operation,
  { status, body }: StripeResponse,
): ProviderReply {
  const id = operation.request.token ?? "";
  const card = expandedOf(KeptCard, body);
  const is_unknown = status === 404 && expandedOf(StripeError, body.error) !== null;
  if (!is_unknown && card?.id !== id) return GARBAGE;
  if (card && idOf(card.customer) !== null) return ABSENT;
  const source = accountSource(account);
  const { livemode } = card ?? source;
  const { subject, currency, created_at: at } = operation;
  const more = { subject_id: subject.id, currency, at };
  return replyOf(detachEvents(source, { id, livemode }).map((event) => ({ ...event, ...more })));
}

/**
 * Returns the customer at Stripe for whom an operation saves a card, and makes it if none is known.
 * Null: the operation saves none. Another reply: nothing is sent, or only the customer is made.
 */
async function customerFor(
  account: ProviderAccount,
  operation: Operation,
  signal: AbortSignal,
): Promise<string | null | ProviderReply> {
  const { save } = operation.request;
  if (operation.op !== "authorize" || save === undefined) return null;
  const known = savingCustomer(operation);
  if (known !== null) return known;
  const request = customerRequest(account.environment_id, save.customer_id);
  let response = await callStripe(account, request, signal);
  for (const pause_ms of CUSTOMER_PAUSES_MS) {
    if (!isUnknown(response) || response.unknown !== "in_progress") break;
    await new Promise((resolve) => setTimeout(resolve, pause_ms));
    response = await callStripe(account, request, signal);
  }
  if (isUnknown(response) && !response.may_repeat) {
    // Stripe keeps an error under the key. It may have made the customer before.
    const since = Math.floor(Date.parse(operation.created_at) / 1000) - KEY_LIFE_S;
    const is_it = ({ metadata }: Record<string, unknown>) =>
      request.fields.every(([name, value]) =>
        (metadata as Record<string, unknown> | null)?.[name.slice("metadata[".length, -1)] === value
      );
    const fields = [["created[gte]", String(since)]] as const;
    const found = await findListed(account, request.path, fields, is_it, signal);
    if (found !== null && !isUnknown(found)) return expandedOf(Customer, found)?.id ?? GARBAGE;
    response = found ?? await callStripe(account, { ...request, key: `${request.key}-2` }, signal);
  }
  // The payment itself was not sent with its own key, so it can be sent again.
  if (isUnknown(response)) return { ...response, may_repeat: true };
  if (response.status === 200) return expandedOf(Customer, response.body)?.id ?? GARBAGE;
  const reading = readErrorResponse(operation.op, response);
  // An earlier attempt can have sent the payment: only a sync tells.
  if ("refused" in reading && operation.attempts > 1) return { ...GARBAGE, may_repeat: false };
  return "sync" in reading || "intent" in reading ? GARBAGE : reading;
}

function replyOf([first, ...others]: ProviderEvent[]): ProviderReply {
  return first === undefined ? GARBAGE : { provider_events: [first, ...others] };
}
