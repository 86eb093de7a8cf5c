/**
 * The ledger entry on the wire (contract §3).
 */

import * as z from "zod";
import { AmountMinor, CurrencyCode, id, Instant } from "./values.ts";

/** Accounts of the ledger. */
export const LEDGER_ACCOUNTS = [
  "processor",
  "available",
  "chargebacks",
  "in_transit",
  "external",
] as const;
export const LedgerAccount = z.enum(LEDGER_ACCOUNTS).describe("An account of the ledger");
export type LedgerAccount = z.infer<typeof LedgerAccount>;

/** One side of a ledger transaction. Never changes. */
export const LedgerEntry = z.object({
  id: id("le_"),
  object: z.literal("ledger_entry"),
  transaction_id: id("txn_").describe("Entries of one transaction have the same; they sum to zero"),
  account: LedgerAccount,
  direction: z.enum(["debit", "credit"]),
  amount_minor: AmountMinor,
  currency: CurrencyCode,
  payment_id: id("pay_").nullable(),
  refund_id: id("re_").nullable(),
  transfer_id: id("tr_").nullable(),
  created_at: Instant,
}).describe("One side of a ledger transaction. It never changes");
export type LedgerEntry = z.infer<typeof LedgerEntry>;

/**
 * A sum of amounts: a JSON integer of any size. zod's `int()` accepts only integers that JavaScript
 * holds exactly.
 */
const Sum = z.number().refine(Number.isInteger).meta({ type: "integer" });
const SumOfOneSide = z.number().min(0).refine(Number.isInteger).meta({ type: "integer" });

/** What one account of one currency holds. */
export const AccountBalance = z.object({
  currency: CurrencyCode,
  account: LedgerAccount,
  debits_minor: SumOfOneSide.describe("Sum of all debits, in minor units"),
  credits_minor: SumOfOneSide.describe("Sum of all credits, in minor units"),
  amount_minor: Sum.describe("Credits less debits, in minor units"),
}).describe("What one account of one currency holds");

/** `GET /v1/balance`: what each account of each currency holds. */
export const Balance = z.object({
  object: z.literal("balance"),
  livemode: z.boolean(),
  balances: z.array(AccountBalance),
}).describe("What each account of each currency holds");
export type Balance = z.infer<typeof Balance>;
