/**
 * The ledger entry on the wire (contract §3).
 */

import { z } from "zod";
import { AmountMinor, Instant } from "./values.ts";

/** Accounts of the ledger. */
export const LEDGER_ACCOUNTS = [
  "processor",
  "available",
  "chargebacks",
  "in_transit",
  "external",
] as const;
export type LedgerAccount = typeof LEDGER_ACCOUNTS[number];

/** One side of a ledger transaction. Never changes. */
export const LedgerEntry = z.object({
  id: z.string(),
  object: z.literal("ledger_entry"),
  transaction_id: z.string(),
  account: z.enum(LEDGER_ACCOUNTS),
  direction: z.enum(["debit", "credit"]),
  amount_minor: AmountMinor,
  currency: z.string(),
  payment_id: z.string().nullable(),
  refund_id: z.string().nullable(),
  transfer_id: z.string().nullable(),
  created_at: Instant,
});
export type LedgerEntry = z.infer<typeof LedgerEntry>;
