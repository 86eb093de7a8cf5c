/**
 * Imports a file of a bank in one statement, where a function has no transaction of its own: its
 * rows are collected first. The operator's command streams larger files.
 */

import { mapInSlices } from "../../core/time_slice.ts";
import type { Vault } from "../../core/vault.ts";
import type { ProviderAccount } from "../../domain/providers/connector.ts";
import type { BankStore, NewRows } from "../../store/bank_store.ts";
import { BankFileError } from "./bank_file_error.ts";
import type { Imported } from "./file_result.ts";
import { importBankFile, type ImportedFile } from "./import_bank_file.ts";

/** Most entries, details and statuses together, which one statement stores in time. */
const ROWS_MAX = 10_000;

/** The lists of `NewRows` that grow with the file. */
const LISTS = ["entries", "provider_events", "checks", "payers"] as const;

/** Rows of a file as JSON texts: at its end, all of them together would take a long time. */
type WrittenRows =
  & Pick<NewRows, "statement" | "proves_balances">
  & Record<typeof LISTS[number], string[]>;

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
  const parts: WrittenRows[] = [];
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
      async storeRows({ statement, proves_balances, payers: named, ...rows }) {
        for (const payer of named) payers.set(payer.reference, payer);
        if (parts.length === 0 || parts.at(-1)!.statement !== statement) {
          parts.push({
            ...{ statement, proves_balances },
            ...{ entries: [], provider_events: [], checks: [], payers: [] },
          });
        }
        const last = parts.at(-1)!;
        last.proves_balances = proves_balances;
        for (const list of ["entries", "provider_events", "checks"] as const) {
          last[list].push(...await mapInSlices<object, string>(rows[list], textOf));
        }
        return rows.entries.length;
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
  if (parts[0]) parts[0].payers = await mapInSlices(payers.values(), textOf);
  const texts = parts.map(({ statement, proves_balances, ...lists }) => {
    const head = JSON.stringify({ statement, proves_balances }).slice(0, -1);
    const tail = LISTS.map((name) => `"${name}":[${lists[name].join(",")}]`);
    return `${head},${tail.join(",")}}`;
  });
  const file = { sha256, name, parts: texts, result: imported };
  const { is_new, result } = await store.importFile(account.id, file);
  return { imported: result as ImportedFile, is_new };
}

/** Makes the JSON text of a row. An entry can have thousands of events. */
async function textOf(row: object | NewRows["entries"][number]): Promise<string> {
  if (!("provider_events" in row)) return JSON.stringify(row);
  const { provider_events, ...entry } = row;
  const events = await mapInSlices(provider_events, (event) => JSON.stringify(event));
  return `${JSON.stringify(entry).slice(0, -1)},"provider_events":[${events.join(",")}]}`;
}
