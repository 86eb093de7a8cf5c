/**
 * A checkout as the payer's page reads and pays it. The routes of the page are not part of the API,
 * so the OpenAPI document does not have them (contract §2).
 */

import * as z from "zod";
import { Checkout, CheckoutMethod, PAYER } from "./checkout.ts";
import { NextAction, PaymentStatus } from "./payment.ts";
import { CurrencyCode, id, Instant } from "./values.ts";

/** Name of the header with the token of a checkout, which is the fragment of its URL. */
export const TOKEN_HEADER = "Checkout-Token";
/** Name of the header with the `payment_id` of the payer's own attempt. */
export const ATTEMPT_HEADER = "Checkout-Attempt";
/** Most bytes of the body of an attempt. The service chose the number. */
export const MAX_ATTEMPT_BYTES = 8_192;

/** The body of `POST /checkout/payments`. A payer cannot charge a saved card. */
export const PayPageBody = z.object(PAYER);
export type PayPageBody = z.infer<typeof PayPageBody>;

/** The payer's own attempt, without the reason of a decline. */
export const PageAttempt = z.object({
  payment_id: id("pay_").describe("For the return to the shop, and for `Checkout-Attempt`"),
  status: PaymentStatus,
  method: CheckoutMethod,
  amount_minor: z.int().min(0),
  currency: CurrencyCode,
  instrument: z.object({
    brand: z.string().nullable().describe("The brand of a card; null for a bank account"),
    last4: z.string(),
  }).nullable().describe("The card or account; null if the payer sends the money"),
  mandate_id: z.string().nullable().describe("The reference of the mandate; null without one"),
  next_action: NextAction.nullable(),
  result_on: z.iso.date().nullable()
    .describe("The day on which a collection is due; null for the others, and if it is not known"),
  return_url: z.string().nullable()
    .describe("The page of the shop, with the parameters `payment_id` and `checkout_id`"),
});
export type PageAttempt = z.infer<typeof PageAttempt>;

const { status, amount_minor, currency, other_prices, methods, description, locale, save } =
  Checkout.shape;

/** The response of `GET /checkout` and `POST /checkout/payments`. */
export const CheckoutPage = z.object({
  id: id("chk_"),
  object: z.literal("checkout_page"),
  status,
  merchant: z.object({
    name: z.string(),
    color: z.string().nullable().describe("The colour of the merchant, such as `#0a7f3f`"),
    logo: z.string().nullable().describe("A data URL"),
  }),
  ...{ amount_minor, currency, other_prices, methods, description, locale, save },
  mandate: z.object({
    creditor_name: z.string(),
    creditor_identifier: z.string().nullable().describe("Null if it is not known"),
    collects_on: z.iso.date().nullable()
      .describe("The first day of a collection that begins now; null: the bank decides"),
  }).nullable().describe("For the text of a mandate; null unless `sepa_debit` is offered"),
  return_url: Checkout.shape.return_url,
  cancel_url: Checkout.shape.cancel_url,
  is_link: z.boolean().describe("Whether any number of payers can pay"),
  expires_at: Checkout.shape.expires_at,
  livemode: z.boolean(),
  now: Instant.describe("The time by the clock of the environment"),
  attempt: PageAttempt.nullable().describe(
    "The payer's own attempt: the successful or the last one, and of a link the one in the header " +
      "`Checkout-Attempt`",
  ),
});
export type CheckoutPage = z.infer<typeof CheckoutPage>;
