/** The transfer on the wire: money out of the available balance (contract §3). */

import * as z from "zod";
import { ShownIban, ShownPayeeCheck, ShownSpeed } from "./bank_account.ts";
import { FAILURE_CODES, ShownWallet } from "./payment.ts";
import { TransferStatus } from "./statuses.ts";
import { AmountAlias, AmountMinor, CurrencyCode, id, Instant, ShownMetadata } from "./values.ts";

export const IbanDestination = z.object({ type: z.literal("iban"), iban: ShownIban })
  .describe("A bank account as a destination");

export const WalletDestination = z.object({ type: z.literal("wallet"), wallet: ShownWallet })
  .describe("A wallet as a destination");

export const TransferDestination = z.discriminatedUnion("type", [
  IbanDestination,
  WalletDestination,
]).describe("The destination of the money, masked");
export type TransferDestination = z.infer<typeof TransferDestination>;

export const Transfer = z.object({
  id: id("tr_"),
  object: z.literal("transfer"),
  status: TransferStatus,
  amount: AmountAlias,
  amount_minor: AmountMinor,
  currency: CurrencyCode,
  destination: TransferDestination,
  speed: ShownSpeed,
  payee_check: ShownPayeeCheck,
  description: z.string().nullable().describe("Your own text for people; null without one"),
  metadata: ShownMetadata,
  failure_code: z.enum(FAILURE_CODES).nullable().describe(
    "The reason of a failure, for programs; null if it did not fail",
  ),
  failure_message: z.string().nullable().describe("The reason of the failure in words, for people"),
  return_code: z.string().nullable().describe("The bank's code of a return, such as `AC04`"),
  livemode: z.boolean(),
  sequence: z.number().int().min(1)
    .describe("Number of the transfer's last event: 1 on creation, one more with each event"),
  created_at: Instant,
  updated_at: Instant,
  completed_at: Instant.nullable(),
  cancelled_at: Instant.nullable(),
}).describe("A transfer: money out of the available balance");
export type Transfer = z.infer<typeof Transfer>;
