/**
 * Imports a file of a bank: reads it as a stream, and stores its booked entries in batches. Whoever
 * calls it makes all batches one transaction, so that a file is imported whole or not at all.
 */

import type { Sealed, Vault } from "../../core/vault.ts";
import { mapInSlices } from "../../core/time_slice.ts";
import type { ProviderAccount, ProviderEvent } from "../../domain/providers/connector.ts";
import { entryId, sealContextOf } from "../../domain/providers/sealed_details.ts";
import type {
  BankOrder,
  FoundReference,
  NewBatch,
  NewCheck,
  NewRows,
  NewStatement,
} from "../../store/bank_store.ts";
import {
  batchOf,
  type BookedEntry,
  type BookedEvent,
  bookEntry,
  type EntryPart,
  partsOf,
} from "./booked_entries.ts";
import { BankFileError } from "./bank_file_error.ts";
import { bankIdentifier, idOfBankIdentifier } from "./bank_identifier.ts";
import { type BankSettings, readBankSettings } from "./bank_settings.ts";
import { payersToKeep } from "./payers_to_keep.ts";
import { readBankFile } from "./read_bank_file.ts";
import type {
  BankRecord,
  DetailRecord,
  EntryRecord,
  MessageRecord,
  StatementRecord,
  StatusRecord,
} from "./read_records.ts";
import { checkOf, isRepeat, rejectionOf, reportedId } from "./reported_statuses.ts";

const ROWS: ReadonlySet<BankRecord["record"]> = new Set(["entry", "detail", "status"]);
/** Rows of a kind that are stored at a time, and the events of entries. */
const BATCH = 50;
const BATCH_EVENTS = 1_000;
const WARNINGS_MAX = 100;
/** The elements of rows, and of statuses by their level. */
const ELEMENTS: Readonly<Record<string, string>> = { entry: "Ntry", detail: "TxDtls" };
const STATUS_ELEMENTS = {
  group: "OrgnlGrpInfAndSts",
  payment_information: "OrgnlPmtInfAndSts",
  transaction: "TxInfAndSts",
} as const;
const NEVER_EXPORTED =
  "the status is about an order or a file that this account has never exported";
/** Other accounts of a file that an error names. */
const OTHERS_MAX = 5;
const DAY_MS = 86_400_000;

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
  /** The part of a statement that the file is; null: it has whole or several ones. */
  page: NewStatement["page"];
}

/** Where the rows of a file go, in one transaction. */
interface ImportTarget {
  /** Stores rows. Returns the number of new entries. */
  storeRows(rows: NewRows): Promise<number>;
  /** Returns the orders of an order's id or UETR, or of a batch's or file's id. */
  findOrders(id: string): Promise<readonly BankOrder[]>;
  /** Returns the references of the account that begin with one of these texts. */
  findReferences(beginnings: readonly string[]): Promise<FoundReference[]>;
  /** Returns the sealed details of payers, also those of rows before, by the references. */
  readPayers(references: readonly string[]): Promise<NewRows["payers"]>;
}

/**
 * Imports a file.
 *
 * @param vault seals the accounts of payers, to which refunds can go back; null: none is kept
 * @throws {BankFileError} if the file is refused
 */
export async function importBankFile(
  account: ProviderAccount,
  { bytes, bytes_max, rows_max, sha256 }: {
    bytes: AsyncIterable<Uint8Array>;
    bytes_max: number;
    rows_max: number;
    sha256: string;
  },
  vault: Vault,
  target: ImportTarget,
): Promise<ImportedFile> {
  const settings = readBankSettings(account.settings);
  const own = { ...settings, id: account.id };
  const importer = new Importer(own, sha256, vault, target);
  let rows = 0;
  for await (const record of readBankFile(bytes, bytes_max, settings)) {
    if (ROWS.has(record.record) && ++rows > rows_max) {
      throw refusal(
        record.line,
        elementOf(record),
        `the file has more than ${rows_max} entries, details and statuses: import it with ` +
          `deno task bank import FILE --account ${account.id}`,
      );
    }
    await importer.add(record);
  }
  return await importer.end();
}

interface ReadyEntry {
  entry: EntryRecord;
  parts: EntryPart[];
  batch: NewBatch | null;
  kind: string;
}

/** Collects what a file says about one account. */
class Importer {
  readonly #account: BankSettings & { id: string };
  readonly #sha256: string;
  readonly #vault: Vault;
  readonly #target: ImportTarget;
  #ready: ReadyEntry[] = [];
  #statuses: Pick<NewRows, "provider_events" | "checks"> = { provider_events: [], checks: [] };
  /**
   * Rejections of whole files and batches, by the id. They wait for the end of the file: the
   * transactions below them have the reasons.
   */
  readonly #wide = new Map<string, StatusRecord>();
  readonly #rejected = new Set<string>();
  /** Orders that the bank has got before: what it made of them then decides. */
  readonly #repeated = new Set<string>();
  /** Whether a status is about something that the account has exported. */
  #has_known = false;
  /** The first status that is about nothing of the account. */
  #unknown: StatusRecord | null = null;
  #message: MessageRecord | null = null;
  /** The open statement, if it is a camt.053. */
  #statement: NewStatement | null = null;
  #statements = 0;
  /** Other accounts of the file, and the first statement of one. */
  readonly #others = new Set<string>();
  #other: BankRecord | null = null;
  #open: { entry: EntryRecord; details: DetailRecord[] } | null = null;
  readonly #imported: ImportedFile = {
    kind: "",
    entries: 0,
    details: 0,
    new_entries: 0,
    warnings: [],
    complete_until: null,
    page: null,
  };

  constructor(
    account: BankSettings & { id: string },
    sha256: string,
    vault: Vault,
    target: ImportTarget,
  ) {
    this.#account = account;
    this.#sha256 = sha256;
    this.#vault = vault;
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
        await this.#store();
        this.#startStatement(record);
        break;
      case "other_statement":
        await this.#store();
        this.#other ??= record;
        if (this.#others.size < OTHERS_MAX) this.#others.add(shownAccount(record));
        break;
      case "statement_end":
        // The balances of one page are right if those of the whole statement are.
        await this.#store(record.is_proven || this.#statement?.balances?.opening_minor === null);
        this.#statement = null;
        break;
      case "entry":
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
    if (this.#unknown !== null && !this.#has_known) {
      throw refusal(this.#unknown.line, elementOf(this.#unknown), NEVER_EXPORTED);
    }
    // Batches come after their file, and are rejected before it: their reasons are closer.
    for (const [id, status] of [...this.#wide].reverse()) {
      this.#reject(await this.#exported(id), status);
    }
    await this.#store();
    if (this.#statements === 0 && this.#other !== null) {
      const others = [...this.#others].join(", ");
      throw refusal(
        this.#other.line,
        elementOf(this.#other),
        `the file is about ${others}, and not about the account ${hidden(this.#account.iban)}`,
      );
    }
    return this.#imported;
  }

  #startStatement({ balances, booked, page, statement_id, line }: StatementRecord): void {
    this.#statements++;
    if (this.#message?.kind !== "camt.053") return;
    const tomorrow = new Date(Date.now() + DAY_MS).toISOString().slice(0, 10);
    for (const { code, date } of balances) {
      if (code !== "CLBD" || date === null) continue;
      const { complete_until } = this.#imported;
      if (date > tomorrow) {
        this.#warn(line, "Bal", `the closing balance is of ${date}, not yet due`);
      } else if (complete_until === null || date > complete_until) {
        this.#imported.complete_until = date;
      }
    }
    const is_part = page !== null && statement_id !== null && (page.number > 1 || !page.is_last);
    const closed_on = booked?.closing.date ?? null;
    this.#statement = {
      page: is_part ? { statement_id, number: page.number } : null,
      balances: booked === null || closed_on === null || closed_on > tomorrow ? null : {
        currency: booked.closing.currency,
        opened_on: booked.opening?.date ?? null,
        opening_minor: booked.opening?.amount_minor ?? null,
        closed_on,
        closing_minor: booked.closing.amount_minor,
      },
    };
    this.#imported.page = this.#statements === 1 ? this.#statement.page : null;
  }

  /** Ends an entry: its details are complete. */
  async #close(): Promise<void> {
    if (this.#open === null) return;
    const { entry, details } = this.#open;
    this.#open = null;
    if (entry.status !== "booked" || entry.amount_minor === 0) return;
    const named = await mapInSlices(details, (detail) => this.#named(detail, entry));
    const { kind } = this.#message!;
    this.#ready.push({
      ...{ entry, kind },
      parts: await partsOf(entry, named),
      batch: batchOf(entry, named),
    });
    const events = this.#ready.reduce((sum, { parts }) => sum + parts.length, 0);
    if (this.#ready.length >= BATCH || events >= BATCH_EVENTS) await this.#store();
  }

  /** Stores what is ready, and at the end of a statement its balances if they are right. */
  async #store(has_right_balances = false): Promise<void> {
    const { provider_events, checks } = this.#statuses;
    const rows = this.#ready.length + provider_events.length + checks.length;
    const proves_balances = has_right_balances && (this.#statement?.balances ?? null) !== null;
    if (rows === 0 && !proves_balances) return;
    const booked = await this.#book();
    const payers = await this.#payers(booked.flatMap(({ payers }) => payers));
    const entries = await Promise.all(booked.map(async ({ payers: _, ...entry }) => ({
      ...entry,
      provider_events: await Promise.all(
        entry.provider_events.map((event) => this.#withSealed(event)),
      ),
    })));
    this.#imported.new_entries += await this.#target.storeRows({
      statement: this.#statement,
      proves_balances,
      entries,
      provider_events,
      checks,
      payers,
    });
    this.#ready = [];
    this.#statuses = { provider_events: [], checks: [] };
  }

  async #book(): Promise<(BookedEntry & { kind: string })[]> {
    const beginnings = new Set(
      this.#ready.flatMap(({ parts }) => parts.flatMap(({ beginnings }) => beginnings)),
    );
    const found = Map.groupBy(
      beginnings.size === 0 ? [] : await this.#target.findReferences([...beginnings]),
      ({ beginning }) => beginning,
    );
    return this.#ready.map(({ entry, kind, ...rest }) => ({
      ...bookEntry(this.#account, entry, rest, found),
      kind,
    }));
  }

  async #payers(named: BookedEntry["payers"]): Promise<NewRows["payers"]> {
    if (named.length === 0) return [];
    const references = [...new Set(named.map(({ reference }) => reference))];
    const known = await this.#target.readPayers(references);
    return await payersToKeep(named, known, this.#vault, (payer) => this.#detailsOf(payer));
  }

  /** Seals what a person needs to assign the money of an event. */
  async #withSealed({ about, ...event }: BookedEvent): Promise<ProviderEvent> {
    if (about === undefined) return event;
    const context = sealContextOf(entryId(event));
    const sealed = await this.#vault.seal(JSON.stringify(about), context);
    return { ...event, bank: { ...event.bank, sealed } };
  }

  /** Opens the details of a known payer. Throws if their key is missing. */
  async #detailsOf({ reference, ...sealed }: Sealed & { reference: string }): Promise<string> {
    return await this.#vault.open(sealed, reference).catch(() => {
      const reason =
        `the bank details of a payer cannot be opened: the key "${sealed.key_id}" is ` +
        "missing, or another one. Import the file where the functions have their keys";
      throw refusal(this.#message?.line ?? 1, null, reason);
    });
  }

  /**
   * Returns a detail with the id of its order: the banks on the way of a payout by SWIFT repeat its
   * UETR, and not always our id.
   */
  async #named(detail: DetailRecord, { is_reversal }: EntryRecord): Promise<DetailRecord> {
    const { uetr, end_to_end_id, direction } = detail;
    const is_of_payout = direction === "debit" || detail.return !== null || is_reversal;
    const is_named = idOfBankIdentifier(end_to_end_id ?? "") !== null;
    if (uetr === null || is_named || !is_of_payout) return detail;
    const [order] = await this.#exported(uetr);
    return order ? { ...detail, end_to_end_id: bankIdentifier(order.id) } : detail;
  }

  /** Returns the exported orders of an id or UETR. The bank can know no other ones. */
  async #exported(id: string | null): Promise<BankOrder[]> {
    const found = id === null ? [] : await this.#target.findOrders(id);
    return found.filter(({ export_id }) => export_id !== null);
  }

  async #status(status: StatusRecord): Promise<void> {
    const id = reportedId(status);
    const orders = await this.#exported(id);
    if (id === null || orders.length === 0) {
      // Some banks report their own ids of files, or orders of others.
      this.#unknown ??= status;
      this.#warn(status.line, elementOf(status)!, NEVER_EXPORTED);
      return;
    }
    this.#has_known = true;
    const { checks } = this.#statuses;
    if (status.result === "payee_check") checks.push(...this.#checks(orders, status));
    if (status.result === "rejected") {
      if (isRepeat(status, this.#wide.size > 0)) this.#repeat(id, orders, status);
      else if (status.level === "transaction") this.#reject(orders, status);
      else if (!this.#wide.has(id)) this.#wide.set(id, status);
    }
    if (checks.length + this.#statuses.provider_events.length >= BATCH) await this.#store();
  }

  /**
   * An accepted recall ends its order, unless the bank has booked it: then the money comes back. A
   * reply about a whole batch or file does not tell which of several orders was recalled.
   */
  async #cancellation(status: StatusRecord): Promise<void> {
    const { level, result, code, line } = status;
    this.#warn(line, STATUS_ELEMENTS[level], `the bank's reply to a recall is ${code}`);
    const orders = await this.#exported(result === "accepted" ? reportedId(status) : null);
    if (orders.length > 1) {
      const message = "the reply is about several orders: it ends only those that it names";
      this.#warn(line, STATUS_ELEMENTS[level], message);
    } else {
      this.#reject(orders, status);
    }
  }

  #reject(orders: readonly BankOrder[], status: StatusRecord): void {
    const { line, level } = status;
    const at = this.#reportedAt();
    for (const order of orders) {
      if (order.state === "rejected" || this.#rejected.has(order.id)) continue;
      if (this.#repeated.has(order.id)) continue;
      this.#rejected.add(order.id);
      if (!order.is_open) {
        const message = `${order.id} has a result already: the status changes nothing`;
        this.#warn(line, STATUS_ELEMENTS[level], message);
        continue;
      }
      this.#statuses.provider_events.push(rejectionOf(this.#account.id, order, at, status));
    }
  }

  /** Leaves orders as they are that the bank refuses to take a second time. */
  #repeat(id: string, orders: readonly BankOrder[], { line, level }: StatusRecord): void {
    for (const order of orders) this.#repeated.add(order.id);
    const message = `the bank has had ${id} before: the status changes nothing`;
    this.#warn(line, STATUS_ELEMENTS[level], message);
  }

  /** Makes the results about payees. A collection has a payer, whom the bank does not verify. */
  #checks(orders: readonly BankOrder[], { code, line }: StatusRecord): NewCheck[] {
    const at = this.#reportedAt();
    return orders.filter(({ is_open, kind }) => is_open && kind !== "collection")
      .map((order) => checkOf(this.#account.id, order, at, code, `${this.#sha256}:${line}`));
  }

  #reportedAt(): string {
    return new Date(Date.parse(this.#message?.created_at ?? "") || Date.now()).toISOString();
  }

  #warn(line: number, element: string, message: string): void {
    const { warnings } = this.#imported;
    if (warnings.length < WARNINGS_MAX) warnings.push(`line ${line}, <${element}>: ${message}`);
  }
}

function refusal(line: number, element: string | null, reason: string): BankFileError {
  return new BankFileError(reason, { line, column: null, element });
}

/** The element that a record was read from, if its record tells it. */
function elementOf(record: BankRecord): string | null {
  if ("level" in record) return STATUS_ELEMENTS[record.level];
  return "element" in record ? record.element : ELEMENTS[record.record] ?? null;
}

function shownAccount({ account, currency }: { account: string; currency: string | null }): string {
  if (account === "") return "an account without a number";
  return `${hidden(account)}${currency === null ? "" : ` in ${currency}`}`;
}

function hidden(account: string): string {
  return `…${account.slice(-4)}`;
}
