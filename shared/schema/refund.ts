/**
 * The refund on the wire (contract §3).
 */

import * as z from "zod";
import { REFUND_REASONS } from "../core/vocabulary.ts";
import { PaymentStatus } from "./payment.ts";
import {
  AmountMinor,
  AmountTwin,
  CurrencyCode,
  id,
  Instant,
  Metadata,
  sameAmount,
  ShownMetadata,
} from "./values.ts";

/** Why money is given back. */
export const RefundReason = z.enum(REFUND_REASONS).describe("Why money is given back");
export type RefundReason = z.infer<typeof RefundReason>;

/** The body of a refund; without an amount, the rest of the payment. */
export const CreateRefundBody = z.object({
  amount: AmountTwin.optional(),
  amount_minor: AmountMinor.optional(),
  reason: RefundReason.optional(),
  metadata: Metadata.optional(),
}).superRefine(sameAmount).describe("Without an amount, what is left of the payment is refunded");
export type CreateRefundBody = z.infer<typeof CreateRefundBody>;

/** A refund as every answer shows it. Never changes. */
export const Refund = z.object({
  id: id("re_"),
  object: z.literal("refund"),
  payment_id: id("pay_"),
  payment_status: PaymentStatus.describe("Status of the payment after this refund"),
  amount: AmountTwin,
  amount_minor: AmountMinor,
  currency: CurrencyCode,
  status: z.literal("completed"),
  reason: RefundReason.nullable(),
  metadata: ShownMetadata,
  livemode: z.boolean(),
  created_at: Instant,
}).describe("Money given back. It never changes");
export type Refund = z.infer<typeof Refund>;
