/**
 * Imports a file of a bank in one statement, where a function has no transaction of its own: its
 * rows are collected first. The operator's command streams larger files.
 */

import type { Vault } from "../../core/vault.ts";
import type { ProviderAccount } from "../../domain/providers/connector.ts";
import type { BankStore, NewRows } from "../../store/bank_store.ts";
import { BankFileError } from "./bank_file_error.ts";
import type { Imported } from "./file_result.ts";
import { importBankFile, type ImportedFile } from "./import_bank_file.ts";

/** Most entries, details and statuses together, which one statement stores in time. */
const ROWS_MAX = 10_000;

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
  vault: Vault,
): Promise<Imported | { error: string }> {
  const parts: NewRows[] = [];
  const payers = new Map<string, NewRows["payers"][number]>();
  let imported: ImportedFile;
  try {
    const source = {
      bytes: ReadableStream.from([bytes]),
      bytes_max: bytes.length,
      rows_max: ROWS_MAX,
      sha256,
    };
    imported = await importBankFile(account, source, vault, {
      storeRows(rows) {
        for (const payer of rows.payers) payers.set(payer.reference, payer);
        const last = parts.at(-1);
        if (last === undefined || last.statement !== rows.statement) {
          parts.push({ ...rows, payers: [] });
        } else {
          last.entries.push(...rows.entries);
          last.provider_events.push(...rows.provider_events);
          last.checks.push(...rows.checks);
          last.proves_balances = rows.proves_balances;
        }
        return Promise.resolve(rows.entries.length);
      },
      findOrders: (id) => store.findOrders(account.id, id),
      findReferences: (beginnings) => store.findReferences(account.id, beginnings),
      async readPayers(references) {
        const stored = await store.readPayers(account.id, references);
        return [...stored, ...references.flatMap((reference) => payers.get(reference) ?? [])];
      },
    });
  } catch (error) {
    if (!(error instanceof BankFileError)) throw error;
    return { error: error.message };
  }
  // Once, with what the whole file says about them.
  if (parts[0]) parts[0].payers = [...payers.values()];
  const file = { sha256, name, parts, result: imported };
  const { is_new, result } = await store.importFile(account.id, file);
  return { imported: result as ImportedFile, is_new };
}
