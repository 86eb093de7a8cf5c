/**
 * The requests of operations (send) and the matching of their responses with the operation. Pure.
 */

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

type Refusal = Extract<ProviderReply, { refused: unknown }>;

/** Returns the request of an operation, or the reason why this connector cannot send it. */
export function requestOf(environment_id: string, operation: Operation): StripeRequest | Refusal {
  const amount = toStripeAmount(operation.amount_minor, operation.currency);
  const has_amount = operation.op !== "cancel" && operation.op !== "abandon" &&
    !operation.request.dispute;
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
  if (operation.request.dispute) {
    const request = disputeRequest(operation.op, operation.request.dispute);
    return request === null ? refusal("The dispute is not one of Stripe's") : post(...request);
  }
  const payment = operation.provider_reference;
  if (payment === null) return refusal("The payment has no reference at Stripe");
  switch (operation.op) {
    case "capture":
      return post(`/v1/payment_intents/${encodeURIComponent(payment)}/capture`, [
        ["amount_to_capture", String(amount)],
        EXPAND_CHARGE,
      ]);
    case "cancel":
      return post(`/v1/payment_intents/${encodeURIComponent(payment)}/cancel`, [EXPAND_CHARGE]);
    case "abandon":
      return post(`/v1/payment_intents/${encodeURIComponent(payment)}/cancel`, [
        ["cancellation_reason", ABANDONED],
        EXPAND_CHARGE,
      ]);
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
  const { capture, return_url } = operation.subject as Payment;
  const values: Record<Parameter, string | null> & Record<string, string | null> = {
    amount,
    currency: operation.currency.toLowerCase(),
    payment_method: operation.request.token ?? "",
    "allowed_payment_method_types[]": "card",
    confirm: "true",
    // The default, `automatic_async`, responds before the fee is known.
    capture_method: capture,
    return_url: return_url && withPaymentId(return_url, operation.subject.id),
    // Without an address to come back to, nobody could finish a challenge: the bank's wish for
    // one is a decline then.
    error_on_requires_action: return_url === null ? "true" : null,
  };
  return ["/v1/payment_intents", [
    ...Object.entries(values).filter((field): field is [string, string] => field[1] !== null),
    ...metadataFields(environment_id, operation),
    // The payment method shows the card while a challenge waits, when there is no charge.
    ["expand[0]", EXPAND_CHARGE[1]],
    ["expand[1]", "payment_method"],
  ]];
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
