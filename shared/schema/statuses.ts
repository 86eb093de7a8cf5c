/** Statuses of resources, and the reasons of disputes, which requests can name. */

import * as z from "zod";
import {
  DISPUTE_REASONS,
  DISPUTE_STATUSES,
  FINAL_PAYMENT_STATUSES,
  INSTRUMENT_STATUSES,
  PAYMENT_STATUSES,
  REFUND_STATUSES,
  TRANSFER_STATUSES,
} from "../core/vocabulary.ts";

/** Status of a payment (contract §2, lifecycle). */
export const PaymentStatus = z.enum(PAYMENT_STATUSES).describe(
  `Status of a payment. Final are ${
    FINAL_PAYMENT_STATUSES.map((status) => `\`${status}\``).join(", ")
  }`,
);
export type PaymentStatus = z.infer<typeof PaymentStatus>;

export const RefundStatus = z.enum(REFUND_STATUSES).describe(
  "Status of the refund. A `pending` refund is on its way to the payer and counts against the " +
    "amount that can be refunded",
);
export type RefundStatus = z.infer<typeof RefundStatus>;

export const TransferStatus = z.enum(TRANSFER_STATUSES).describe("Status of a transfer");
export type TransferStatus = z.infer<typeof TransferStatus>;

export const DisputeReason = z.enum(DISPUTE_REASONS).describe("Reason that the payer gives");
export type DisputeReason = z.infer<typeof DisputeReason>;

export const DisputeStatus = z.enum(DISPUTE_STATUSES).describe(
  "Status of the dispute. `needs_response` waits for evidence, and `under_review` for the " +
    "payer's bank. `won` and `lost` are final",
);
export type DisputeStatus = z.infer<typeof DisputeStatus>;

export const InstrumentStatus = z.enum(INSTRUMENT_STATUSES).describe(
  "Status of an instrument. It follows from the payment that has saved it. `failed` and `ended` " +
    "are final",
);
export type InstrumentStatus = z.infer<typeof InstrumentStatus>;
