/** The refund on the wire (contract §3). */

import * as z from "zod";
import { REFUND_REASONS, REFUND_STATUSES } from "../core/vocabulary.ts";
import {
  PARTIAL_ADDRESS,
  PAYEE,
  ShownIban,
  ShownPayeeCheck,
  ShownSpeed,
  Speed,
} from "./bank_account.ts";
import { mustBe } from "./requirement.ts";
import { FAILURE_CODES, PaymentStatus, ReturnCode, returnCodeOfFailure } from "./payment.ts";
import {
  AmountAlias,
  AmountMinor,
  CurrencyCode,
  id,
  Instant,
  Metadata,
  sameAmount,
  ShownMetadata,
} from "./values.ts";

export const RefundReason = z.enum(REFUND_REASONS).describe("Reason of the refund");
export type RefundReason = z.infer<typeof RefundReason>;

const WalletAddress = mustBe(
  z.string().min(20).max(120).describe(
    "Address that the payer names, on the network of the payment. Never use the sender of the " +
      "payment: it can be an exchange",
  ),
  'a wallet address as text, such as "0x000000000000000000000000000000000000dEaD"',
);

/** The address of a wallet as text, or the postal address of a payee. */
const RefundAddress = mustBe(
  z.preprocess(
    (value) => typeof value === "string" ? { wallet: value } : value,
    z.object({ wallet: WalletAddress.optional(), ...PARTIAL_ADDRESS }),
  ).describe(
    "The address of the wallet as text, or for a bank account the postal address of the payee, " +
      "with `city` and `country` at least",
  ),
  'a wallet address as text, or a postal address with "city" and "country"',
);

const RefundDestinationInput = mustBe(
  z.object({ address: RefundAddress.optional(), ...PAYEE }).describe(
    "Where the refund goes: the wallet in `address`, or the bank account in `iban`. A refund by " +
      "bank goes to the payer's account without it",
  ),
  'an object with "address" or "iban"',
);

const RefundDestination = z.union([
  z.object({ address: WalletAddress }).describe("The wallet that the payer named"),
  z.object({ iban: ShownIban }).describe("The bank account that the request named"),
]);

export const CreateRefundBody = z.object({
  amount: AmountAlias.optional(),
  amount_minor: AmountMinor.optional(),
  reason: RefundReason.optional(),
  metadata: Metadata.optional(),
  destination: RefundDestinationInput.optional(),
  speed: Speed.optional(),
}).superRefine(sameAmount).describe(
  "Without an amount the request refunds the rest of the payment. A payment that was sent to an " +
    "address needs `destination`",
);
export type CreateRefundBody = z.infer<typeof CreateRefundBody>;

export const RefundStatus = z.enum(REFUND_STATUSES).describe(
  "Status of the refund. A `pending` refund is on its way to the payer and counts against the " +
    "amount that can be refunded",
);
export type RefundStatus = z.infer<typeof RefundStatus>;

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

/** The body of an advance of a refund: the status to move to. */
export const AdvanceRefundBody = z.object({
  to: RefundStatus,
  return_code: ReturnCode.optional(),
}).superRefine(returnCodeOfFailure).describe("The status to move to");
