/** The bodies of requests on refunds (contract §3). */

import * as z from "zod";
import { REFUND_REASONS } from "../core/vocabulary.ts";
import { PARTIAL_ADDRESS, PAYEE, Speed } from "./bank_account.ts";
import { ReturnCode, returnCodeOfFailure } from "./payment_body.ts";
import { mustBe } from "./requirement.ts";
import { rule } from "./rule.ts";
import { RefundStatus } from "./statuses.ts";
import { AmountAlias, AmountMinor, Metadata, sameAmount } from "./values.ts";

export const RefundReason = z.enum(REFUND_REASONS).describe("Reason of the refund");
export type RefundReason = z.infer<typeof RefundReason>;

export const WalletAddress = mustBe(
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

export const CreateRefundBody = z.object({
  amount: AmountAlias.optional(),
  amount_minor: AmountMinor.optional(),
  reason: RefundReason.optional(),
  metadata: Metadata.optional(),
  destination: RefundDestinationInput.optional(),
  speed: Speed.optional(),
}).check(rule(sameAmount)).describe(
  "Without an amount the request refunds the rest of the payment. A payment that was sent to an " +
    "address needs `destination`",
);
export type CreateRefundBody = z.infer<typeof CreateRefundBody>;

/** The body of an advance of a refund: the status to move to. */
export const AdvanceRefundBody = z.object({
  to: RefundStatus,
  return_code: ReturnCode.optional(),
}).check(rule(returnCodeOfFailure)).describe("The status to move to");
