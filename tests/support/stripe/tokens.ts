/** Stripe's test payment methods (docs.stripe.com/testing), and how the double treats them. */

import type { EnginePayment } from "./engine.ts";

/** The behaviour of a test payment method. */
export interface Token {
  brand: string;
  last4: string;
  card: EnginePayment["card"];
  /** The decline code, if the card is declined. */
  decline: string;
  /** The issuer's advice after the decline. */
  advice?: string;
  dispute?: boolean;
  /** The card while it is saved alone, if it is another then. */
  setup?: EnginePayment["card"];
  /** Whether the payer authenticates only once, when the card is saved. */
  once?: boolean;
  refund?: "pending" | "failed";
}

const card = (last4: string, more: Partial<Token> = {}): Token => ({
  brand: "visa",
  card: "approved",
  decline: "generic_decline",
  last4,
  ...more,
});
const declined = (last4: string, decline: string, more: Partial<Token> = {}) =>
  card(last4, { card: "declined", decline, ...more });

/** The test payment methods by their names. */
export const TOKENS: ReadonlyMap<string, Token> = new Map([
  ["pm_card_visa", card("4242")],
  ["pm_card_mastercard", card("4444", { brand: "mastercard" })],
  ["pm_card_amex", card("8431", { brand: "amex" })],
  ["pm_card_chargeDeclined", declined("0002", "generic_decline")],
  ["pm_card_chargeDeclinedInsufficientFunds", declined("9995", "insufficient_funds")],
  ["pm_card_chargeDeclinedFraudulent", declined("0019", "fraudulent")],
  ["pm_card_chargeDeclinedExpiredCard", declined("0069", "expired_card")],
  ["pm_card_chargeDeclinedIncorrectCvc", declined("0127", "incorrect_cvc")],
  ["pm_card_chargeDeclinedProcessingError", declined("0119", "processing_error")],
  ["pm_card_chargeDeclinedLostCard", declined("9987", "lost_card", { advice: "do_not_try_again" })],
  ["pm_card_authenticationRequired", card("3184", { card: "authenticated" })],
  [
    "pm_card_authenticationRequiredChargeDeclinedInsufficientFunds",
    card("3178", { card: "authenticated_then_declined", decline: "insufficient_funds" }),
  ],
  ["pm_card_authenticationRequiredOnSetup", card("3155", { card: "authenticated", once: true })],
  ["pm_card_chargeCustomerFail", declined("0341", "generic_decline", { setup: "approved" })],
  ["pm_card_createDispute", card("0259", { dispute: true })],
  ["pm_card_pendingRefund", card("7726", { refund: "pending" })],
  ["pm_card_refundFail", card("5126", { refund: "failed" })],
]);

/** Returns the payment method of a test card, as Stripe shows it. */
export function paymentMethod(id: string, { brand, last4 }: Token) {
  const card = { brand, last4, exp_month: 12, exp_year: 2034 };
  return { id, object: "payment_method", created: 0, type: "card", card };
}

/** Decline codes that are error codes too; the others come with `card_declined`. */
export const OWN_CODES = [
  "expired_card",
  "incorrect_cvc",
  "processing_error",
  "authentication_required",
];
