/** The totals of payments in a response (contract §2). */

import * as z from "zod";
import { SumOfOneSide } from "./ledger.ts";
import { PaymentStatus } from "./statuses.ts";
import { CurrencyCode, Instant } from "./values.ts";

/** Payments of a span of time that have the same status and currency. */
export const PaymentTotal = z.object({
  object: z.literal("payment_total"),
  from: Instant.nullable().describe("The beginning of the span; null without `span`"),
  status: PaymentStatus,
  currency: CurrencyCode,
  count: z.int().min(1).describe("The number of payments"),
  amount_minor: SumOfOneSide.describe("The sum of their amounts"),
  amount_captured: SumOfOneSide.describe(
    "The sum that was taken from payers; 0 for `failed`, also if the payments were paid before",
  ),
  amount_refunded: SumOfOneSide.describe("The sum that was refunded"),
}).describe("Payments of a span of time that have the same status and currency");
