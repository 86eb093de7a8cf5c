/**
 * Checkouts on the wire: prices that a payer pays by a method of their choice. Each attempt is a
 * payment (contract §2).
 */

import * as z from "zod";
import { CheckoutMethod, CheckoutStatus, MaxPayments } from "./checkout_body.ts";
import { Payment } from "./payment.ts";
import { CaptureMethod, InstrumentUsage } from "./payment_body.ts";
import { AmountMinor, CurrencyCode, id, Instant, Person, ShownMetadata } from "./values.ts";

export const Price = z.object({ amount_minor: AmountMinor, currency: CurrencyCode })
  .describe("A price in another currency");
export type CheckoutPrice = z.infer<typeof Price>;

export const Checkout = z.object({
  id: id("chk_"),
  object: z.literal("checkout"),
  status: CheckoutStatus,
  url: z.string().nullable().describe(
    "The page for the payer, whose token is in the fragment; null: the operator has set no " +
      "`CHECKOUT_URL`",
  ),
  amount: z.number().int().min(0).describe("The amount in minor units; 0: it only saves"),
  amount_minor: z.number().int().min(0).describe("Another name for `amount`"),
  currency: CurrencyCode,
  other_prices: z.array(Price).describe("Your prices in other currencies"),
  methods: z.array(CheckoutMethod).describe("The methods that the payer can choose"),
  customer: Person.nullable(),
  description: z.string().nullable().describe("Your own text for the payer; null without one"),
  reference: z.string().nullable().describe("Your own number of the order or invoice"),
  metadata: ShownMetadata,
  capture: CaptureMethod,
  save: InstrumentUsage.nullable(),
  locale: z.string().nullable().describe("Language of the page; null: that of the browser"),
  return_url: z.string().nullable().describe("The page of your shop after the payment"),
  cancel_url: z.string().nullable().describe("The page of your shop for a payer who gives up"),
  max_payments: MaxPayments,
  expires_at: Instant.nullable().describe("The end of new attempts; null: a link without one"),
  livemode: z.boolean(),
  payments_count: z.int().min(0).describe(
    "Payments that were ever successful: `authorized`, `completed`, or a collection that is " +
      "`processing`. It never falls, and a late transfer can make it exceed `max_payments`",
  ),
  payment_id: id("pay_").nullable().describe("The last successful payment"),
  created_at: Instant,
  updated_at: Instant,
}).describe("Prices that a payer pays by a method of their choice");
export type Checkout = z.infer<typeof Checkout>;

export const PaidCheckout = Checkout.extend({ payment: Payment.describe("The new attempt") })
  .describe("A checkout with its new attempt");
