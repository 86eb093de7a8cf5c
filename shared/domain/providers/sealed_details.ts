/** Sealed bank details, as the payment, refund or transfer that needs them has them (ADR 0021). */

import { creditorReference } from "../../core/creditor_reference.ts";
import { ApiError } from "../../core/errors.ts";
import type { Sealed, Vault } from "../../core/vault.ts";
import type { BankDetails } from "./bank_details.ts";

/** The id of an account, a slash and the hash of an entry. */
const ENTRY_CONTEXT_LENGTH = 30 + 1 + 32;

/** Returns the id of the sealed text about an entry, by the reference of its event. */
export function entryId({ account_id, reference }: { account_id: string; reference: string }) {
  return `${account_id}/${reference}`;
}

/**
 * Returns the context of a sealed text. Files of the bank name a payment by its reference, so this
 * is the context of the details of its payer.
 *
 * @param id of the payment, refund, transfer, instrument or file, or `entryId`
 */
export function sealContextOf(id: string): string {
  // The entries of an account with one hash are numbered when they are stored.
  if (id.startsWith("pac_")) return id.slice(0, ENTRY_CONTEXT_LENGTH);
  return id.startsWith("pay_") ? creditorReference(id) : id;
}

/** Opens the details of an owner. Throws `provider_not_configured` if their key is missing. */
export async function openDetails(
  { id, ...text }: Sealed & { id: string },
  vault: Vault | null,
): Promise<BankDetails> {
  if (!vault?.has(text.key_id)) throw noBankKeys();
  return JSON.parse(await vault.open(text, sealContextOf(id)));
}

export function noBankKeys(): ApiError {
  return new ApiError(
    "provider_not_configured",
    "The service cannot keep or open bank details: let the operator set BANK_DETAILS_KEYS",
  );
}
