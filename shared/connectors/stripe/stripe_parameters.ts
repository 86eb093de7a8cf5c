/** The fields of a create at Stripe: the parameters of a request, and those that an error names. */

import type { CreatePaymentBody } from "../../schema/payment_body.ts";

/** The fields of a create that Stripe does not get. */
type Unsent =
  | ("amount_minor" | "capability" | "method_kind" | "payer")
  | ("customer" | "description" | "reference" | "metadata")
  | ("iban" | "mandate" | "wallet" | "outcome" | "settlement")
  | ("instrument" | "off_session" | "save");
/** Stripe's parameter with the value of each other field. Of a card it gets the token. */
export const PARAMETERS = {
  amount: "amount",
  currency: "currency",
  "card.token": "payment_method",
  capture: "capture_method",
  return_url: "return_url",
} as const satisfies Record<
  Exclude<keyof CreatePaymentBody, Unsent | "card"> | "card.token",
  string
>;
/** A parameter with the value of a field. */
export type Parameter = typeof PARAMETERS[keyof typeof PARAMETERS];
