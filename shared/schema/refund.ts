/** The refund on the wire (contract §3). */

import * as z from "zod";
import { ShownIban, ShownPayeeCheck, ShownSpeed } from "./bank_account.ts";
import { FAILURE_CODES } from "./payment.ts";
import { RefundReason, WalletAddress } from "./refund_body.ts";
import { PaymentStatus, RefundStatus } from "./statuses.ts";
import { AmountAlias, AmountMinor, CurrencyCode, id, Instant, ShownMetadata } from "./values.ts";

const RefundDestination = z.union([
  z.object({ address: WalletAddress }).describe("The wallet that the payer named"),
  z.object({ iban: ShownIban }).describe("The bank account that the request named"),
]);

export const Refund = z.object({
  id: id("re_"),
  object: z.literal("refund"),
  payment_id: id("pay_").describe("The refunded payment"),
  payment_status: PaymentStatus.describe("Status of the payment as of the refund's last event"),
  amount: AmountAlias,
  amount_minor: AmountMinor,
  currency: CurrencyCode,
  status: RefundStatus,
  failure_code: z.enum(FAILURE_CODES).nullable()
    .describe("The reason of a failed refund, for programs; null if it did not fail"),
  failure_message: z.string().nullable()
    .describe("The reason of the failure in words, for people"),
  return_code: z.string().nullable().describe("The bank's code of a return, such as `AC04`"),
  reason: RefundReason.nullable(),
  metadata: ShownMetadata,
  destination: RefundDestination.nullable()
    .describe("Where the refund goes, masked. Null if the request named nothing"),
  speed: ShownSpeed,
  payee_check: ShownPayeeCheck,
  livemode: z.boolean(),
  created_at: Instant,
  updated_at: Instant,
}).describe("A refund: money back to the payer");
export type Refund = z.infer<typeof Refund>;
