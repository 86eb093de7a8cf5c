/**
 * Imports a file of a bank: reads it as a stream, and stores its booked entries in batches. Whoever
 * calls it makes all batches one transaction, so that a file is imported whole or not at all.
 */

import type { ProviderAccount, ProviderEvent } from "../../domain/providers/connector.ts";
import { batchOf, type BookedEntry, bookEntry } from "./booked_entries.ts";
import { BankFileError } from "./bank_file_error.ts";
import { readBankSettings } from "./bank_settings.ts";
import { readBankFile } from "./read_bank_file.ts";
import type {
  BankRecord,
  DetailRecord,
  EntryRecord,
  MessageRecord,
  StatementRecord,
  StatusRecord,
} from "./read_records.ts";
import { rejectionOf, reportedId, type ReportedOrder } from "./reported_statuses.ts";

/** Entries that are stored at a time. */
const BATCH = 200;
/** Warnings that are kept. */
const WARNINGS_MAX = 100;
/** Other accounts of a file that an error names. */
const OTHERS_MAX = 5;

/** The contents of an imported file, counted. */
export interface ImportedFile {
  /** Such as `camt.053`. */
  kind: string;
  /** Entries of the account, booked or not. */
  entries: number;
  details: number;
  /** Entries that no earlier file had. */
  new_entries: number;
  warnings: string[];
  /** The last day up to which the file has every entry (`YYYY-MM-DD`); null: it does not say so. */
  complete_until: string | null;
}

/** Where the entries and statuses of a file go, in one transaction. */
interface ImportTarget {
  /** Stores entries with their events. Returns the number of new ones. */
  storeEntries(entries: readonly BookedEntry[]): Promise<number>;
  /** Keeps the accounts of payers, to which refunds can go back. */
  keepPayers(payers: BookedEntry["payers"]): Promise<void>;
  /** Stores events that belong to no entry. */
  storeEvents(provider_events: readonly ProviderEvent[]): Promise<void>;
  /** Notes the results of the verification of payees. */
  noteChecks(checks: readonly { id: string; code: string }[]): Promise<void>;
  /** Returns the exported orders of an order's, batch's or file's id, which the bank repeats. */
  findOrders(id: string): Promise<readonly ReportedOrder[]>;
}

/**
 * Imports a file.
 *
 * @throws {BankFileError} if the file is refused
 */
export async function importBankFile(
  account: ProviderAccount,
  { bytes, bytes_max }: { bytes: AsyncIterable<Uint8Array>; bytes_max: number },
  target: ImportTarget,
): Promise<ImportedFile> {
  const importer = new Importer(account, target);
  for await (const record of readBankFile(bytes, bytes_max)) await importer.add(record);
  return await importer.end();
}

/** Collects what a file says about one account. */
class Importer {
  readonly #account_id: string;
  readonly #iban: string;
  readonly #target: ImportTarget;
  /** Entries that can be stored. */
  #ready: BookedEntry[] = [];
  #message: MessageRecord | null = null;
  #is_ours = false;
  #statements = 0;
  #others = new Set<string>();
  #open: { entry: EntryRecord; details: DetailRecord[] } | null = null;
  readonly #imported: ImportedFile = {
    kind: "",
    entries: 0,
    details: 0,
    new_entries: 0,
    warnings: [],
    complete_until: null,
  };

  constructor({ id, settings }: ProviderAccount, target: ImportTarget) {
    this.#account_id = id;
    this.#iban = readBankSettings(settings).iban;
    this.#target = target;
  }

  async add(record: BankRecord): Promise<void> {
    if (record.record !== "detail" && record.record !== "warning") await this.#close();
    switch (record.record) {
      case "message":
        this.#message = record;
        this.#imported.kind ||= record.kind;
        break;
      case "statement":
        this.#statement(record);
        break;
      case "entry":
        if (!this.#is_ours) break;
        this.#imported.entries++;
        this.#open = { entry: record, details: [] };
        break;
      case "detail":
        if (this.#open === null) break;
        this.#imported.details++;
        this.#open.details.push(record);
        break;
      case "status":
        await this.#status(record);
        break;
      case "cancellation":
        await this.#cancellation(record);
        break;
      case "warning":
        this.#warn(record.line, record.element, record.message);
        break;
    }
  }

  /** Ends the file. Throws if nothing in it belongs to the account. */
  async end(): Promise<ImportedFile> {
    await this.#close();
    await this.#store();
    if (this.#statements === 0 && this.#others.size > 0) {
      const others = [...this.#others].map(hidden).join(", ");
      throw refusal(
        this.#message?.line ?? 1,
        null,
        `the file is about ${others}, and not about the account ${hidden(this.#iban)}`,
      );
    }
    return this.#imported;
  }

  #statement({ account, balances }: StatementRecord): void {
    this.#is_ours = isAccount(account, this.#iban);
    if (!this.#is_ours) {
      if (this.#others.size < OTHERS_MAX) this.#others.add(account);
      return;
    }
    this.#statements++;
    if (this.#message?.kind !== "camt.053") return;
    for (const { code, date } of balances) {
      if (code !== "CLBD" || date === null) continue;
      const { complete_until } = this.#imported;
      if (complete_until === null || date > complete_until) this.#imported.complete_until = date;
    }
  }

  /** Ends an entry: its details are complete. */
  async #close(): Promise<void> {
    if (this.#open === null) return;
    const { entry, details } = this.#open;
    this.#open = null;
    if (entry.status !== "booked" || entry.amount_minor === 0) return;
    if (entry.booked_on === null && entry.value_on === null) {
      throw refusal(entry.line, "Ntry", "a booked entry has no date");
    }
    const batch_id = batchOf(entry, details);
    const orders = batch_id === null ? [] : await this.#target.findOrders(batch_id);
    this.#ready.push(bookEntry(this.#account_id, entry, details, orders));
    if (this.#ready.length >= BATCH) await this.#store();
  }

  async #store(): Promise<void> {
    if (this.#ready.length === 0) return;
    this.#imported.new_entries += await this.#target.storeEntries(this.#ready);
    await this.#target.keepPayers(this.#ready.flatMap(({ payers }) => payers));
    this.#ready = [];
  }

  async #status(status: StatusRecord): Promise<void> {
    const id = reportedId(status);
    const orders = id === null ? [] : await this.#target.findOrders(id);
    if (orders.length === 0) {
      throw refusal(
        status.line,
        null,
        "the status is about an order or a file that this account has never exported",
      );
    }
    if (status.result === "payee_check") {
      await this.#target.noteChecks(orders.map(({ id }) => ({ id, code: status.code })));
    }
    if (status.result === "rejected") await this.#reject(orders, status);
  }

  /** An accepted recall ends its order, unless the bank has booked it: then the money comes back. */
  async #cancellation(status: StatusRecord): Promise<void> {
    const { level, result, code, line } = status;
    this.#warn(line, "TxInfAndSts", `the bank's reply to a recall is ${code}`);
    const id = level === "transaction" && result === "accepted" ? reportedId(status) : null;
    if (id !== null) await this.#reject(await this.#target.findOrders(id), status);
  }

  async #reject(orders: readonly ReportedOrder[], { reasons }: StatusRecord): Promise<void> {
    const at = new Date(Date.parse(this.#message?.created_at ?? "") || Date.now()).toISOString();
    await this.#target.storeEvents(
      orders.filter(({ is_open }) => is_open)
        .map((order) => rejectionOf(this.#account_id, order, at, reasons)),
    );
  }

  #warn(line: number, element: string, message: string): void {
    const { warnings } = this.#imported;
    if (warnings.length < WARNINGS_MAX) warnings.push(`line ${line}, <${element}>: ${message}`);
  }
}

function refusal(line: number, element: string | null, reason: string): BankFileError {
  return new BankFileError(reason, { line, column: 1, element });
}

/** Reports whether the account of a statement is the one with the IBAN: some banks leave it out. */
function isAccount(account: string, iban: string): boolean {
  const number = account.replace(/^0+/, "");
  return account === iban || number.length >= 6 && iban.slice(4).endsWith(number);
}

function hidden(account: string): string {
  return `…${account.slice(-4)}`;
}
