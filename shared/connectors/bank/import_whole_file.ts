/**
 * Imports a file of a bank in one statement, where a function has no transaction of its own: its
 * entries are collected first. The operator's command streams larger files.
 */

import type { Vault } from "../../core/vault.ts";
import type { ProviderAccount, ProviderEvent } from "../../domain/providers/connector.ts";
import type { BankStore } from "../../store/bank_store.ts";
import { BankFileError } from "./bank_file_error.ts";
import type { BookedEntry } from "./booked_entries.ts";
import type { Imported } from "./file_result.ts";
import { importBankFile, type ImportedFile } from "./import_bank_file.ts";
import { sealedPayers } from "./sealed_payers.ts";

/** A file in memory. */
interface WholeFile {
  bytes: Uint8Array;
  sha256: string;
  name: string;
}

/** Imports a file whole or not at all, and once. Returns why it is refused. */
export async function importWhole(
  account: ProviderAccount,
  { bytes, sha256, name }: WholeFile,
  store: BankStore,
  vault: Vault | null,
): Promise<Imported | { error: string }> {
  const entries: BookedEntry[] = [];
  const provider_events: ProviderEvent[] = [];
  const checks: { id: string; code: string }[] = [];
  let imported: ImportedFile;
  try {
    const source = { bytes: ReadableStream.from([bytes]), bytes_max: bytes.length };
    imported = await importBankFile(account, source, {
      storeEntries(found) {
        entries.push(...found);
        return Promise.resolve(found.length);
      },
      keepPayers: () => Promise.resolve(),
      storeEvents: (found) => Promise.resolve(void provider_events.push(...found)),
      noteChecks: (found) => Promise.resolve(void checks.push(...found)),
      findOrders: (id) => store.findOrders(account.id, id),
    });
  } catch (error) {
    if (!(error instanceof BankFileError)) throw error;
    return { error: error.message };
  }
  const known = await store.importFile(account.id, {
    sha256,
    name,
    entries,
    provider_events,
    checks,
    details: await sealedPayers(entries.flatMap(({ payers }) => payers), vault),
    result: imported,
  });
  return known === null
    ? { imported, is_new: true }
    : { imported: known as ImportedFile, is_new: false };
}
