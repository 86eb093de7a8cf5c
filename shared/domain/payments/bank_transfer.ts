/** The bank details that a payer needs for a bank transfer (contract §2). Pure. */

import { creditorReference } from "../../core/creditor_reference.ts";
import { epcQr } from "../../core/epc_qr.ts";
import type { NextAction, Payment } from "../../schema/payment.ts";

interface BankAccount {
  iban: string;
  bic: string;
  holder_name: string;
}

/** Makes the next action of a payment that the payer sends to a bank account until `expires_at`. */
export function bankTransferTo(
  account: BankAccount,
  { id, amount_minor, currency }: Payment,
  expires_at: string,
): NextAction {
  const transfer = { ...account, reference: creditorReference(id), amount_minor, currency };
  return { type: "bank_transfer", ...transfer, expires_at, epc_qr: epcQr(transfer) };
}
