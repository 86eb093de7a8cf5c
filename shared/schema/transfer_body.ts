/** The bodies of requests on transfers (contract §3). */

import * as z from "zod";
import { PAYEE_WITH_ADDRESS, Speed } from "./bank_account.ts";
import { ReturnCode, returnCodeOfFailure, WalletInput } from "./payment_body.ts";
import { mustBe } from "./requirement.ts";
import { rule } from "./rule.ts";
import { TransferStatus } from "./statuses.ts";
import {
  AmountAlias,
  AmountMinor,
  Currency,
  Description,
  Metadata,
  requiredAmount,
  sameAmount,
  Settlement,
} from "./values.ts";

export const CreateTransferBody = z.object({
  amount: AmountAlias.optional(),
  amount_minor: AmountMinor.optional(),
  currency: Currency,
  destination: mustBe(
    z.object({ ...PAYEE_WITH_ADDRESS, wallet: WalletInput.optional() })
      .describe(
        "The receiving account: send one of `iban` and `wallet`. The other members are for " +
          "an `iban`",
      ),
    'an object with either "iban" or "wallet"',
  ),
  speed: Speed.optional(),
  description: Description.optional(),
  metadata: Metadata.optional(),
  settlement: Settlement.optional(),
}).check(rule(sameAmount)).check(rule(requiredAmount))
  .describe("One of `amount` and `amount_minor` is required");
export type CreateTransferBody = z.infer<typeof CreateTransferBody>;

/** The body of `POST /transfers/{id}/advance`: the status to move to. */
export const AdvanceTransferBody = z.object({
  to: TransferStatus,
  return_code: ReturnCode.optional(),
}).check(rule(returnCodeOfFailure)).describe("The status to move to");
