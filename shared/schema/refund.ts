/**
 * The refund on the wire (contract §3).
 */

import { z } from "zod";
import { PAYMENT_STATUSES } from "./payment.ts";
import { AmountMinor, Instant, Metadata, sameAmount } from "./values.ts";

/** Why money is given back. */
export const REFUND_REASONS = [
  "duplicate",
  "fraudulent",
  "requested_by_customer",
  "other",
] as const;

/** The body of a refund; without an amount, the rest of the payment. */
export const CreateRefundBody = z.object({
  amount: AmountMinor.optional(),
  amount_minor: AmountMinor.optional(),
  reason: z.enum(REFUND_REASONS).optional(),
  metadata: Metadata.optional(),
}).superRefine(sameAmount);
export type CreateRefundBody = z.infer<typeof CreateRefundBody>;

/** A refund as every answer shows it. Never changes. */
export const Refund = z.object({
  id: z.string(),
  object: z.literal("refund"),
  payment_id: z.string(),
  payment_status: z.enum(PAYMENT_STATUSES),
  amount: AmountMinor,
  amount_minor: AmountMinor,
  currency: z.string(),
  status: z.literal("completed"),
  reason: z.enum(REFUND_REASONS).nullable(),
  metadata: z.record(z.string(), z.string()),
  livemode: z.boolean(),
  created_at: Instant,
});
export type Refund = z.infer<typeof Refund>;
