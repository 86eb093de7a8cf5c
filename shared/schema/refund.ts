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

/** Reasons of a refund. */
export const RefundReason = z.enum(REFUND_REASONS).describe("Reason of the refund");
export type RefundReason = z.infer<typeof RefundReason>;

/** The body of a refund. Without an amount it refunds the rest of the payment. */
export const CreateRefundBody = z.object({
  amount: AmountTwin.optional(),
  amount_minor: AmountMinor.optional(),
  reason: RefundReason.optional(),
  metadata: Metadata.optional(),
}).superRefine(sameAmount).describe(
  "Without an amount the request refunds the rest of the payment",
);
export type CreateRefundBody = z.infer<typeof CreateRefundBody>;

/** A refund in an answer. A refund never changes. */
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
}).describe("A refund: money back to the payer. It never changes");
export type Refund = z.infer<typeof Refund>;
