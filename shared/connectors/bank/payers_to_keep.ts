/** The payers of payments by bank transfer, to whose accounts refunds can go back. */

import type { Sealed, Vault } from "../../core/vault.ts";
import { type BankDetails, lackOf } from "../../domain/providers/bank_details.ts";
import type { NewRows } from "../../store/bank_store.ts";

export interface NamedPayer {
  reference: string;
  details: BankDetails;
}

/**
 * Returns the payers to store, sealed. A payment with several payers has none: nobody knows to whom
 * a refund goes.
 *
 * @param known the stored payers of the same payments, the newest last
 * @param open opens the details of a stored payer
 */
export async function payersToKeep(
  named: readonly NamedPayer[],
  known: NewRows["payers"],
  vault: Vault,
  open: (payer: Sealed & { reference: string }) => Promise<string>,
): Promise<NewRows["payers"]> {
  const payers: NewRows["payers"] = [];
  for (const [reference, [first, ...others]] of Map.groupBy(named, (each) => each.reference)) {
    const { details } = first!;
    const is_other = others.some((other) => other.details.iban !== details.iban);
    const before = known.findLast((payer) => payer.reference === reference);
    if (before?.sealed === null) continue;
    const ibanOf = async (payer: Sealed & { reference: string }) =>
      (JSON.parse(await open(payer)) as BankDetails).iban;
    if (is_other || before && await ibanOf(before) !== details.iban) {
      payers.push({ reference, key_id: null, sealed: null });
    } else if (!before) {
      const lacks = lackOf(details);
      const sealed = await vault.seal(JSON.stringify(details), reference);
      payers.push({ reference, ...sealed, ...(lacks !== null && { lacks }) });
    }
  }
  return payers;
}
