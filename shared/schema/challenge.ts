/**
 * The challenge of 3-D Secure in a sandbox, as the payer's page gets it. The routes of the page are
 * not part of the API, so the OpenAPI document does not have them.
 */

import * as z from "zod";
import { Payment, ShownCard } from "./payment.ts";

/** The answer of `GET` and `POST /challenges/{token}`. */
export const Challenge = Payment.pick({
  status: true,
  amount_minor: true,
  currency: true,
  reference: true,
}).extend({
  object: z.literal("challenge"),
  payment_id: Payment.shape.id,
  merchant: z.string().describe("The name of the account"),
  card: ShownCard.pick({ brand: true, last4: true }).nullable(),
  return_url: z.string().nullable().describe("With the parameter `payment_id`"),
});
export type Challenge = z.infer<typeof Challenge>;
