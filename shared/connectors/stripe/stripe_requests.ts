/**
 * The requests of operations (send) and the matching of their responses with the operation. Pure.
 */

import { createHash } from "node:crypto";
import { withPaymentId } from "../../core/return_url.ts";
import type { Operation, ProviderReply } from "../../domain/providers/connector.ts";
import type { Payment } from "../../schema/payment.ts";
import type { StripeFields, StripeRequest } from "./stripe_call.ts";
import { toStripeAmount } from "./stripe_amount.ts";
import { disputeRequest } from "./stripe_disputes.ts";
import { ABANDONED } from "./stripe_objects.ts";
import type { Parameter } from "./stripe_parameters.ts";

/** Responses show a payment with its charge and the movement with the fee. */
export const EXPAND_CHARGE = ["expand[]", "latest_charge.balance_transaction"] as const;
/** Responses show a saved card, which has no charge. */
export const EXPAND_CARD = ["expand[]", "payment_method"] as const;

type Expand = typeof EXPAND_CHARGE | typeof EXPAND_CARD;

const PAYMENTS = "/v1/payment_intents";
const SETUPS = "/v1/setup_intents";

type Refusal = Extract<ProviderReply, { refused: unknown }>;

/** Returns the request of an operation, or the reason why this connector cannot send it. */
export function requestOf(environment_id: string, operation: Operation): StripeRequest | Refusal {
  const amount = toStripeAmount(operation.amount_minor, operation.currency);
  const has_amount = operation.amount_minor > 0 && operation.op !== "cancel" &&
    operation.op !== "abandon" && !operation.request.dispute;
  if (amount === null && has_amount) {
    const message = `Stripe cannot represent this amount in ${operation.currency}`;
    return { refused: "invalid_parameter", message, param: "currency" };
  }
  const post = (path: string, fields: StripeFields): StripeRequest => {
    return { method: "POST", path, fields, key: operation.id };
  };
  if (operation.op === "authorize") {
    return post(...authorization(environment_id, operation, String(amount)));
  }
  if (operation.op === "detach") {
    // Without a key: it has the same effect each time, and Stripe keeps no error of it.
    return { method: "POST", path: `${cardPath(operation)}/detach`, fields: [] };
  }
  if (operation.request.dispute) {
    const request = disputeRequest(operation.op, operation.request.dispute);
    return request === null ? refusal("The dispute is not one of Stripe's") : post(...request);
  }
  const payment = operation.provider_reference;
  if (payment === null) return refusal("The payment has no reference at Stripe");
  const [path, expand] = pathOf(payment);
  switch (operation.op) {
    case "capture":
      return post(`${path}/capture`, [["amount_to_capture", String(amount)], expand]);
    case "cancel":
      return post(`${path}/cancel`, [expand]);
    case "abandon":
      return post(`${path}/cancel`, [["cancellation_reason", ABANDONED], expand]);
    case "refund":
      return post("/v1/refunds", [
        ["payment_intent", payment],
        ["amount", String(amount)],
        ...metadataFields(environment_id, operation),
        ["metadata[refund]", operation.refund?.id ?? ""],
        ["expand[]", "balance_transaction"],
      ]);
    default:
      return refusal("An account at Stripe does not do this");
  }
}

function authorization(
  environment_id: string,
  operation: Operation,
  amount: string,
): [path: string, fields: StripeFields] {
  const { capture, return_url: shop_url, off_session } = operation.subject as Payment;
  const { token, save, instrument, return_url = shop_url } = operation.request;
  const is_setup = operation.amount_minor === 0;
  const currency = operation.currency.toLowerCase();
  const values: Record<Parameter, string | null> & Record<string, string | null> = {
    amount: is_setup ? null : amount,
    currency: is_setup ? null : currency,
    payment_method: token ?? "",
    "allowed_payment_method_types[]": "card",
    confirm: "true",
    // The default, `automatic_async`, responds before the fee is known.
    capture_method: is_setup ? null : capture,
    return_url: return_url && withPaymentId(return_url, operation.subject as Payment),
    // Without an address to come back to, nobody could finish a challenge: the bank's wish for
    // one is a decline then.
    error_on_requires_action: return_url === null && !off_session ? "true" : null,
    off_session: off_session ? "true" : null,
    customer: (save ? savingCustomer(operation) : instrument?.customer) ?? null,
    [is_setup ? "usage" : "setup_future_usage"]: save?.usage ?? null,
    // Stripe's object has none of its own.
    "metadata[currency]": is_setup ? currency : null,
  };
  return [is_setup ? SETUPS : PAYMENTS, [
    ...Object.entries(values).filter((field): field is [string, string] => field[1] !== null),
    ...metadataFields(environment_id, operation),
    // The payment method shows the card while a challenge waits, when there is no charge.
    ...(is_setup ? [EXPAND_CARD] : [
      ["expand[0]", EXPAND_CHARGE[1]],
      ["expand[1]", EXPAND_CARD[1]],
    ] as const),
  ]];
}

/** Returns the customer at Stripe for whom an operation saves a card; null: it is not known. */
export function savingCustomer({ reserved }: Operation): string | null {
  return (reserved as { customer: string | null } | null)?.customer ?? null;
}

/**
 * Returns the request that makes the customer for whom an operation saves a card. Its idempotency
 * key follows from our customer alone, so requests at the same time make one. It must have no
 * field that differs between them, such as an e-mail address.
 */
export function customerRequest(environment_id: string, customer_id: string): StripeRequest {
  const hash = createHash("sha256").update(customer_id).digest("hex");
  return {
    method: "POST",
    path: "/v1/customers",
    fields: [["metadata[environment]", environment_id], ["metadata[customer]", customer_id]],
    key: `${environment_id}-customer-${hash}`,
  };
}

/** Returns the path of a payment at Stripe, and what a response expands. */
export function pathOf(reference: string): [path: string, expand: Expand] {
  const is_setup = reference.startsWith("seti_");
  const path = `${is_setup ? SETUPS : PAYMENTS}/${encodeURIComponent(reference)}`;
  return [path, is_setup ? EXPAND_CARD : EXPAND_CHARGE];
}

export function listFor(amount_minor: number): [path: string, expand: Expand] {
  return amount_minor === 0 ? [SETUPS, EXPAND_CARD] : [PAYMENTS, EXPAND_CHARGE];
}

export function cardPath({ request }: Operation): string {
  return `/v1/payment_methods/${encodeURIComponent(request.token ?? "")}`;
}

function metadataFields(environment_id: string, operation: Operation): StripeFields {
  return [
    ["metadata[payment]", operation.subject.id],
    ["metadata[call]", operation.id],
    ["metadata[environment]", environment_id],
  ];
}

function refusal(message: string): Refusal {
  return { refused: "provider_refused", message };
}
