/** Reads camt.052, .053 and .054: accounts with their statements, reports or notifications. */

import { BankFileError } from "./bank_file_error.ts";
import { childOf, childrenOf, textOf, type XmlElement } from "./bank_xml_reader.ts";
import { bookedOf, readBalance, StatementSums } from "./read_balances.ts";
import { readAccountId } from "./read_details.ts";
import { EntryReader, turnEntry, type WrittenEntry } from "./read_entry.ts";
import { Counts } from "./identity_counts.ts";
import { hashOf } from "./read_identity.ts";
import { keep, type MessageReader, type Sink } from "./read_message.ts";
import type { MessageKind, Page, StatementRecord } from "./read_records.ts";

/**
 * Reversals, with their details, that wait for the sums of their statement. Further ones are read as
 * written.
 */
const WAITING_MAX = 2_000;
/** The containers of statements. */
const STATEMENTS: readonly string[] = ["Stmt", "Rpt", "Ntfctn"];
const PAGES: readonly string[] = ["StmtPgntn", "RptPgntn", "NtfctnPgntn"];
/** Elements of a statement that are used. The others are not kept in memory. */
const USED: readonly string[] = [
  "Id",
  "Acct",
  "Bal",
  "TxsSummry",
  "ElctrncSeqNb",
  "LglSeqNb",
  ...PAGES,
];

/** A statement whose first entry has been reached. */
interface OpenStatement {
  record: StatementRecord;
  sums: StatementSums;
  counts: Counts;
  entries: number;
  reversals: WrittenEntry[];
  /** The reversals and their details. */
  waiting: number;
}

/** The elements inside of a message that are read one by one. */
export const STATEMENT_CONTAINERS: ReadonlySet<string> = new Set([
  ...STATEMENTS,
  "Ntry",
  "NtryDtls",
]);

/** Reads the statements of one message. */
export class StatementReader implements MessageReader {
  readonly #kind: MessageKind;
  readonly #sink: Sink;
  readonly #entry_counts = new Counts();
  readonly #statement_counts = new Counts();
  #message_page: Page | null = null;
  #place: XmlElement | null = null;
  #open: OpenStatement | null = null;
  #entry: EntryReader | null = null;
  #statements = 0;

  constructor(kind: MessageKind, sink: Sink) {
    this.#kind = kind;
    this.#sink = sink;
  }

  start(place: XmlElement): void {
    if (STATEMENTS.includes(place.element)) {
      if (this.#place !== null) throw new BankFileError("a statement is inside of another", place);
      this.#place = place;
      this.#statements++;
    } else if (place.element === "Ntry") {
      if (this.#entry !== null) throw new BankFileError("an entry is inside of another", place);
      const { record, counts } = this.#statement(place);
      this.#entry = new EntryReader(place, {
        kind: this.#kind,
        account: record.account,
        currency: record.currency,
        counts,
        warn: this.#sink.warn,
      });
    } else if (place.element === "NtryDtls") {
      this.#entry?.startDetails();
    }
  }

  take(element: XmlElement): void {
    if (this.#entry !== null) {
      const ready = this.#entry.take(element);
      if (ready === null) return;
      if ("details" in ready) this.#addEntry(ready, false);
      else this.#sink.add(ready.record);
    } else if (this.#place !== null) {
      if (USED.includes(element.element)) keep(this.#place, element);
    } else if (element.element === "GrpHdr") {
      this.#message_page = readPage(childOf(element, "MsgPgntn"));
    }
  }

  end(place: XmlElement): void {
    if (place.element === "Ntry") {
      const ready = this.#entry?.end() ?? null;
      this.#entry = null;
      if (ready !== null) this.#addEntry(ready, ready.record.is_reversal);
    } else if (STATEMENTS.includes(place.element)) {
      this.#endStatement(place);
    } else if (this.#place === null && this.#statements === 0) {
      this.#sink.warn(place, "the file has no statement");
    }
  }

  /** Returns the open statement. The first entry opens it. */
  #statement(place: XmlElement): OpenStatement {
    if (this.#open !== null) return this.#open;
    if (this.#place === null) throw new BankFileError("an entry is outside of a statement", place);
    const account = childOf(this.#place, "Acct");
    const { iban, account: other } = readAccountId(account);
    const id = iban ?? other;
    if (id === null) throw new BankFileError("the statement has no account", this.#place);
    const currency = account && textOf(account, "Ccy");
    const balances = childrenOf(this.#place, "Bal").flatMap((element) => {
      const balance = readBalance(element, currency);
      if (balance === null) this.#sink.warn(element, "the amount of the balance cannot be read");
      else if (!balance.has_sign) this.#sink.warn(element, "the balance is neither CRDT nor DBIT");
      return balance ?? [];
    });
    const page = readPage(
      this.#place.children.find(({ element }) => PAGES.includes(element)) ?? null,
    ) ?? this.#message_page;
    const summary = childOf(this.#place, "TxsSummry");
    const sums = new StatementSums(isWhole(page) ? balances : [], summary);
    const record: StatementRecord = {
      record: "statement",
      line: this.#place.line,
      statement_id: textOf(this.#place, "Id"),
      account: id,
      currency: currency ?? balances[0]?.record.currency ?? null,
      sequence: textOf(this.#place, "ElctrncSeqNb") ?? textOf(this.#place, "LglSeqNb"),
      page,
      balances: balances.map(({ record }) => record),
      booked: bookedOf(balances, isWhole(page)),
    };
    this.#sink.add(record);
    const counts = this.#countsOf(record);
    this.#open = { record, sums, counts, entries: 0, reversals: [], waiting: 0 };
    return this.#open;
  }

  /** A statement that comes again in the file has the same entries, not further ones. */
  #countsOf({ account, statement_id, sequence, page }: StatementRecord): Counts {
    if (statement_id === null) return this.#entry_counts;
    const hash = hashOf([account, statement_id, sequence, page?.number ?? null]);
    if (this.#statement_counts.add(hash) === 1) return this.#entry_counts;
    this.#sink.warn(this.#place!, "the statement stands in the file more than once");
    return new Counts();
  }

  #addEntry(entry: WrittenEntry, is_reversal: boolean): void {
    const open = this.#open!;
    const { sums, reversals } = open;
    const waiting = open.waiting + 1 + entry.details.length;
    const waits = is_reversal && sums.can_prove && waiting <= WAITING_MAX;
    open.entries++;
    sums.add(entry.record, waits);
    if (waits) {
      reversals.push(entry);
      open.waiting = waiting;
    } else {
      this.#release(entry, false);
    }
  }

  #release(entry: WrittenEntry, is_opposite: boolean): void {
    turnEntry(entry, is_opposite);
    this.#sink.add(entry.record);
    for (const { record } of entry.details) this.#sink.add(record);
  }

  #endStatement(place: XmlElement): void {
    const { sums, reversals, entries, record } = this.#statement(place);
    const are_opposite = sums.areReversalsOpposite();
    const turned = are_opposite && reversals.length > 0;
    if (turned) this.#sink.warn(place, "the sums prove the opposite direction of the reversals");
    for (const entry of reversals) this.#release(entry, turned);
    const is_statement = this.#kind === "camt.053";
    if (is_statement && !isWhole(record.page)) {
      this.#sink.warn(place, "the sums are not checked: this is one page of several");
    }
    for (const warning of sums.check(is_statement && isWhole(record.page), turned)) {
      this.#sink.warn(place, warning);
    }
    if (entries === 0 && !is_statement) this.#sink.warn(place, "there are no entries");
    this.#sink.add({
      record: "statement_end",
      line: place.line,
      is_proven: sums.areProven(turned),
    });
    this.#open = null;
    this.#place = null;
  }
}

function readPage(element: XmlElement | null): Page | null {
  const number = element && textOf(element, "PgNb");
  if (!element || !/^\d{1,5}$/.test(number ?? "")) return null;
  return { number: Number(number), is_last: textOf(element, "LastPgInd") !== "false" };
}

function isWhole(page: Page | null): boolean {
  return page === null || page.number <= 1 && page.is_last;
}
