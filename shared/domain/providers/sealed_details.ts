/** Sealed bank details, as the payment, refund or transfer that needs them has them (ADR 0042). */

import { creditorReference } from "../../core/creditor_reference.ts";
import { ApiError } from "../../core/errors.ts";

/**
 * Returns the context of a sealed text. Files of the bank name a payment by its reference, so this is
 * the context of the details of its payer.
 *
 * @param id of the payment, refund, transfer or file
 */
export function sealContextOf(id: string): string {
  return id.startsWith("pay_") ? creditorReference(id) : id;
}

/** Makes the error of a service without keys, which can neither keep nor open bank details. */
export function noBankKeys(): ApiError {
  return new ApiError(
    "provider_not_configured",
    "The service cannot keep or open bank details: let the operator set BANK_DETAILS_KEYS",
  );
}
