/** The accounts of the ledger, with the meaning of each and the sign of its balance. */

import type { LedgerAccount } from "../../../packages/client/mod.ts";

/** The money that each account holds. */
export const ACCOUNT_TEXTS: Readonly<Record<LedgerAccount, string>> = {
  available: "Your money: it can be transferred and refunded. Negative if refunds exceed it.",
  in_transit: "Transfers that are on their way.",
  external: "Transfers that have arrived at their destination.",
  chargebacks: "Money that the payers’ banks have taken back.",
  processor: "Negative: the money that the payment provider has received for you.",
  bank: "Negative: the money that the provider has paid out to your bank account.",
  unapplied: "Money that the provider has received and that matches no payment.",
  reserve: "Negative: your money that the provider holds back.",
};
/** Every account. */
export const ACCOUNTS = Object.keys(ACCOUNT_TEXTS) as readonly LedgerAccount[];
