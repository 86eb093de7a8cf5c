/** Sealed bank details, as the payment, refund or transfer that needs them has them (ADR 0042). */

import { creditorReference } from "../../core/creditor_reference.ts";
import { ApiError } from "../../core/errors.ts";
import type { Sealed, Vault } from "../../core/vault.ts";
import { type BankDetails, lackOf } from "./bank_details.ts";

/**
 * Returns the context of a sealed text. Files of the bank name a payment by its reference, so this is
 * the context of the details of its payer.
 *
 * @param id of the payment, refund, transfer or file
 */
export function sealContextOf(id: string): string {
  return id.startsWith("pay_") ? creditorReference(id) : id;
}

/**
 * Seals the details of a payer, and tells what they lack for a refund.
 * @param context the reference of the payment
 */
export async function sealedPayer(
  details: BankDetails,
  context: string,
  vault: Vault,
): Promise<Sealed & { lacks?: string }> {
  const lacks = lackOf(details);
  const sealed = await vault.seal(JSON.stringify(details), context);
  return { ...sealed, ...(lacks !== null && { lacks }) };
}

/** Makes the error of a service without keys, which can neither keep nor open bank details. */
export function noBankKeys(): ApiError {
  return new ApiError(
    "provider_not_configured",
    "The service cannot keep or open bank details: let the operator set BANK_DETAILS_KEYS",
  );
}
