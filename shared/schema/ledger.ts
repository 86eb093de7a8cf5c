/** The ledger entry on the wire (contract §3). */

import * as z from "zod";
import { LedgerAccount } from "./list.ts";
import { AmountMinor, CurrencyCode, id, Instant } from "./values.ts";

export const LedgerEntry = z.object({
  id: id("le_"),
  object: z.literal("ledger_entry"),
  transaction_id: id("txn_")
    .describe("The ledger transaction. Its debits and its credits have the same sum"),
  account: LedgerAccount,
  direction: z.enum(["debit", "credit"]).describe(
    "Side of the account that the amount is added to",
  ),
  amount_minor: AmountMinor,
  currency: CurrencyCode,
  payment_id: id("pay_").nullable().describe("The payment that moved the money, or null"),
  refund_id: id("re_").nullable().describe("The refund that moved the money, or null"),
  transfer_id: id("tr_").nullable().describe("The transfer that moved the money, or null"),
  created_at: Instant,
}).describe("One side of a ledger transaction. An entry never changes");

/**
 * A sum of amounts: a JSON integer of any size. It does not use zod's `int()`, which accepts only
 * integers that JavaScript represents exactly.
 */
const Sum = z.number().refine(Number.isInteger).meta({ type: "integer" });

/** Such a sum that is not negative. */
export const SumOfOneSide = z.number().min(0).refine(Number.isInteger).meta({ type: "integer" });

export const AccountBalance = z.object({
  currency: CurrencyCode,
  account: LedgerAccount,
  debits_minor: SumOfOneSide.describe("Sum of all debits, in minor units"),
  credits_minor: SumOfOneSide.describe("Sum of all credits, in minor units"),
  amount_minor: Sum.describe("Credits less debits, in minor units"),
}).describe("The balance of one account in one currency");

export const Balance = z.object({
  object: z.literal("balance"),
  livemode: z.boolean(),
  balances: z.array(AccountBalance).describe(
    "The balance of each account in each currency",
  ),
}).describe("The balances of all accounts in all currencies");
