/** Seals the accounts of payers, to which refunds can go back. */

import type { Sealed, Vault } from "../../core/vault.ts";
import type { BookedEntry } from "./booked_entries.ts";

/** Seals each account for the reference of its payment. Without a vault none is kept. */
export async function sealedPayers(
  payers: BookedEntry["payers"],
  vault: Vault | null,
): Promise<(Sealed & { owner_id: string })[]> {
  if (vault === null) return [];
  return await Promise.all(payers.map(async ({ owner_id, details }) => ({
    owner_id,
    ...await vault.seal(JSON.stringify(details), owner_id),
  })));
}
