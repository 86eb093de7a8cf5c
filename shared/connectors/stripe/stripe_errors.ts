/**
 * Stripe's error codes in our words: the reason of a decline with its advice, and the reply to a
 * refused operation. Pure. Sources: docs.stripe.com/declines/codes, /declines/card, /error-codes,
 * /error-low-level.
 */

import type { DeclineAdvice, DeclineCode } from "../../core/errors.ts";
import type { ProviderOp, ProviderReply } from "../../domain/providers/connector.ts";
import { GARBAGE, type StripeResponse, type StripeUnknown } from "./stripe_call.ts";
import { expandedOf, StripeError } from "./stripe_objects.ts";
import { PARAMETERS } from "./stripe_parameters.ts";

/** Most characters of Stripe's own message that a reply contains. */
const MESSAGE_CHARACTERS_MAX = 200;

/**
 * Decline codes with a code of their own; every other one is `payment_declined`. A payer must not
 * learn that a card is reported lost or stolen, so these are not in the table.
 */
const DECLINES: ReadonlyMap<string, DeclineCode> = new Map([
  ["insufficient_funds", "insufficient_funds"],
  ["withdrawal_count_limit_exceeded", "insufficient_funds"],
  ["card_velocity_exceeded", "insufficient_funds"],
  ["authentication_required", "authentication_required"],
  ["authentication_not_handled", "authentication_failed"],
  ["payment_intent_authentication_failure", "authentication_failed"],
  ["setup_intent_authentication_failure", "authentication_failed"],
  ["mobile_device_authentication_required", "authentication_failed"],
  ["fraudulent", "aml_blocked"],
  ["merchant_blacklist", "aml_blocked"],
]);

/**
 * Advice by Stripe's advice codes, which are the issuer's word on one decline, and by the decline
 * codes that say more than the usual advice of our code.
 */
const ADVICE: ReadonlyMap<string, DeclineAdvice> = new Map([
  ["try_again_later", "retry_later"],
  ["confirm_card_data", "use_another_method"],
  ["do_not_try_again", "do_not_retry"],
  ["issuer_not_available", "retry_later"],
  ["processing_error", "retry_later"],
  ["reenter_transaction", "retry_later"],
  ["revocation_of_all_authorizations", "do_not_retry"],
  ["revocation_of_authorization", "do_not_retry"],
  ["stop_payment_order", "do_not_retry"],
]);

/** Codes that mean: the payment is in another state, such as after a click in the dashboard. */
const OTHER_STATE = [
  "payment_intent_unexpected_state",
  "setup_intent_unexpected_state",
  "charge_already_captured",
  "charge_expired_for_capture",
];

/** Stripe's only signs of a token that pays no more: these errors have no code and no parameter. */
const USED = /may not be used again/;
const NOT_OF_CUSTOMER = /payment method must be attached to the customer/;
const TOKEN_PAYS_ONCE =
  "The token has paid before, and a token pays once unless the payment saves " +
  'it: send "save" with the first payment, and charge its "instrument"';

/** Our field at fault, by Stripe's parameter, or by its code where the error names none. */
const FIELDS: ReadonlyMap<string, string> = new Map([
  ...Object.entries(PARAMETERS).map(([field, name]) => [name, field] as const),
  ["amount_to_capture", "amount"],
  ["payment_method_unexpected_state", "card.token"],
  ["amount_too_small", "amount"],
  ["amount_too_large", "amount"],
]);

export function declineCodeOf(
  error: Pick<StripeError, "code" | "decline_code">,
  /** `outcome.type` of the charge, if it is known. */
  outcome_type?: string | null,
): DeclineCode {
  if (outcome_type === "blocked") return "aml_blocked";
  return DECLINES.get(error.decline_code ?? "") ?? DECLINES.get(error.code ?? "") ??
    "payment_declined";
}

/**
 * Returns Stripe's advice after a decline. Absent: the usual one of our code. Stripe has no advice
 * to authenticate, so that code decides alone.
 */
export function adviceOf(
  code: DeclineCode,
  error: Pick<StripeError, "advice_code" | "code" | "decline_code">,
): { advice?: DeclineAdvice } {
  if (code === "authentication_failed" || code === "authentication_required") return {};
  const said = [error.advice_code, error.decline_code, error.code];
  const advice = said.map((text) => ADVICE.get(text ?? "")).find((one) => one !== undefined);
  return advice === undefined ? {} : { advice };
}

/** A reply to a response other than 200, or a wish to sync the payment first. */
type ErrorReading =
  | StripeUnknown
  | Extract<ProviderReply, { refused: unknown }>
  /** The operation changes nothing in the present state of the payment. */
  | { sync: true }
  | { intent: unknown; error: StripeError };

/**
 * Reads a response whose status is not 200.
 * @param instrument of a payment by a saved card; absent: its token came with the request
 */
export function readErrorResponse(
  op: ProviderOp,
  response: StripeResponse,
  instrument?: object,
): ErrorReading {
  const error = expandedOf(StripeError, response.body.error);
  if (error === null || ![400, 402, 404].includes(response.status)) {
    return GARBAGE;
  }
  // The key belongs to another request, so nobody knows the result of this one by asking again.
  if (error.type === "idempotency_error") {
    return { unknown: "idempotency_conflict", may_repeat: false };
  }
  if (error.type === "api_error") {
    return { unknown: "server_error", may_repeat: !response.replayed };
  }
  if (error.code === "lock_timeout" || error.code === "rate_limit") {
    return { unknown: "rate_limited", may_repeat: true };
  }
  const intent = error.payment_intent ?? error.setup_intent;
  if (op === "authorize" && intent) return { intent, error };
  // Stripe names the payment of every decline. Only a sync can find the payment of this one.
  if (op === "authorize" && error.type === "card_error") {
    return { unknown: "garbage", may_repeat: false };
  }
  const is_move = op === "capture" || op === "cancel" || op === "abandon";
  if (is_move && (error.type === "card_error" || OTHER_STATE.includes(error.code ?? ""))) {
    return { sync: true };
  }
  // The card itself tells whether it is detached.
  if (op === "detach") return { sync: true };
  return refusal(op, error, instrument !== undefined);
}

function refusal(op: ProviderOp, error: StripeError, is_saved: boolean): ErrorReading {
  const text = error.message ?? error.code ?? error.type;
  const is_used = op === "authorize" && USED.test(text);
  const field = is_used || op === "authorize" && NOT_OF_CUSTOMER.test(text)
    ? "card.token"
    : FIELDS.get(error.param ?? "") ?? FIELDS.get(error.code ?? "");
  const param = field === "card.token" && is_saved ? "instrument" : field;
  const message = is_used && !is_saved ? TOKEN_PAYS_ONCE : shortened(text);
  // Only a create and a capture have fields of the caller.
  if (param === undefined || !(op === "authorize" || op === "capture")) {
    return { refused: "provider_refused", message };
  }
  return { refused: "invalid_parameter", message, param };
}

/** Stripe's message in one short line. */
function shortened(message: string): string {
  return message.replace(/[\p{C}\s]+/gu, " ").trim().slice(0, MESSAGE_CHARACTERS_MAX);
}
