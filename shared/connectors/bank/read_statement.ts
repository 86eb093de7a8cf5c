/** Reads camt.052, .053 and .054: accounts with their statements, reports or notifications. */

import { BankFileError } from "./bank_file_error.ts";
import { childOf, childrenOf, textOf, type XmlElement } from "./bank_xml_reader.ts";
import { isOwnNumber, type OwnAccount } from "./own_account.ts";
import { readDate } from "./read_amount.ts";
import { bookedOf, readBalance, StatementSums } from "./read_balances.ts";
import { readAccountId } from "./read_details.ts";
import { EntryReader, turnEntry, type WrittenEntry } from "./read_entry.ts";
import { Counts } from "./identity_counts.ts";
import { hashOf } from "./read_identity.ts";
import { keep, type MessageReader, type Sink } from "./read_message.ts";
import type { MessageKind, Page, StatementRecord } from "./read_records.ts";

/**
 * Reversals, with their details, that wait for the sums of their statement. Further ones are read
 * as written.
 */
const WAITING_MAX = 2_000;
const STATEMENTS: readonly string[] = ["Stmt", "Rpt", "Ntfctn"];
const PAGES: readonly string[] = ["StmtPgntn", "RptPgntn", "NtfctnPgntn"];
/** Elements of a statement that are used. The others are not kept in memory. */
const USED: readonly string[] = [
  "Id",
  "CreDtTm",
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
  /** The day on which the bank made the statement. */
  created_on: string | null;
  entries: number;
  /** Booked entries without a date of their own. */
  undated: number;
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

export class StatementReader implements MessageReader {
  readonly #kind: MessageKind;
  readonly #sink: Sink;
  readonly #own: OwnAccount | null;
  readonly #entry_counts = new Counts();
  readonly #statement_counts = new Counts();
  #message_page: Page | null = null;
  #message_day: string | null = null;
  #place: XmlElement | null = null;
  /** Undefined before the first entry; null: the statement is of another account. */
  #open: OpenStatement | null | undefined = undefined;
  #entry: EntryReader | null = null;
  #statements = 0;

  constructor(kind: MessageKind, sink: Sink, own: OwnAccount | null) {
    this.#kind = kind;
    this.#sink = sink;
    this.#own = own;
  }

  start(place: XmlElement): void {
    if (STATEMENTS.includes(place.element)) {
      if (this.#place !== null) throw new BankFileError("a statement is inside of another", place);
      this.#place = place;
      this.#statements++;
    } else if (place.element === "Ntry") {
      if (this.#entry !== null) throw new BankFileError("an entry is inside of another", place);
      const open = this.#statement(place);
      if (open !== null) this.#entry = this.#entryReader(place, open);
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
    } else if (this.#place !== null && this.#open === undefined) {
      if (USED.includes(element.element)) keep(this.#place, element);
    } else if (element.element === "GrpHdr") {
      this.#message_page = readPage(childOf(element, "MsgPgntn"));
      this.#message_day = readDate(childOf(element, "CreDtTm"));
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

  #entryReader(place: XmlElement, open: OpenStatement): EntryReader {
    const { account, currency, booked } = open.record;
    return new EntryReader(place, {
      kind: this.#kind,
      account,
      currency,
      counts: open.counts,
      days: {
        closing: booked?.closing.date ?? null,
        made: open.created_on ?? this.#message_day,
      },
      noteUndated: () => open.undated++,
      warn: this.#sink.warn,
    });
  }

  /** Returns the open statement, or null if it is of another account. The first entry opens it. */
  #statement(place: XmlElement): OpenStatement | null {
    if (this.#open !== undefined) return this.#open;
    if (this.#place === null) throw new BankFileError("an entry is outside of a statement", place);
    const account = childOf(this.#place, "Acct");
    const { iban, account: other } = readAccountId(account);
    const number = iban ?? other;
    const currency = account && textOf(account, "Ccy")?.toUpperCase() || null;
    this.#open = this.#isOther(this.#place, number ?? "", currency)
      ? null
      : this.#openStatement(this.#place, number, currency);
    return this.#open;
  }

  /** Adds the record of a statement of another account, of which nothing else is read. */
  #isOther(place: XmlElement, account: string, stated: string | null): boolean {
    if (this.#own === null) return false;
    const is_own = isOwnNumber(account, this.#own);
    const currency = stated ?? onlyCurrency(place);
    if (is_own && (currency ?? this.#own.currency) === this.#own.currency) return false;
    const { line, element } = place;
    if (account === "") this.#sink.warn(place, "a statement without an account is left out");
    const other = is_own ? currency : null;
    this.#sink.add({ record: "other_statement", line, element, account, currency: other });
    if (other !== null) {
      const message = `the statement is in ${other}, which is not the currency of the account: ` +
        "it is not booked";
      this.#sink.warn(place, message);
    }
    return true;
  }

  #openStatement(
    place: XmlElement,
    number: string | null,
    stated: string | null,
  ): OpenStatement {
    const account = this.#own?.iban ?? number;
    if (account === null) throw new BankFileError("the statement has no account", place);
    const currency = stated ?? this.#own?.currency ?? null;
    const balances = childrenOf(place, "Bal").flatMap((element) => {
      const balance = readBalance(element, currency);
      if (balance === null) this.#sink.warn(element, "the amount of the balance cannot be read");
      else if (!balance.has_sign) this.#sink.warn(element, "the balance is neither CRDT nor DBIT");
      return balance ?? [];
    });
    const page = readPage(
      place.children.find(({ element }) => PAGES.includes(element)) ?? null,
    ) ?? this.#message_page;
    const summary = childOf(place, "TxsSummry");
    const sums = new StatementSums(isWhole(page) ? balances : [], summary);
    const record: StatementRecord = {
      record: "statement",
      line: place.line,
      statement_id: textOf(place, "Id"),
      account,
      currency: currency ?? balances[0]?.record.currency ?? null,
      sequence: textOf(place, "ElctrncSeqNb") ?? textOf(place, "LglSeqNb"),
      page,
      balances: balances.map(({ record }) => record),
      booked: bookedOf(balances, isWhole(page)),
    };
    this.#sink.add(record);
    return {
      record,
      sums,
      counts: this.#countsOf(record),
      created_on: readDate(childOf(place, "CreDtTm")),
      entries: 0,
      undated: 0,
      reversals: [],
      waiting: 0,
    };
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
    const open = this.#statement(place);
    if (open !== null) this.#endOpen(place, open);
    this.#open = undefined;
    this.#place = null;
  }

  #endOpen(place: XmlElement, open: OpenStatement): void {
    const { sums, reversals, entries, undated, record } = open;
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
    if (undated > 0) {
      const message = `booked entries without a date: ${undated}. Their day is that of their ` +
        "details, of the closing balance or of the file";
      this.#sink.warn(place, message);
    }
    this.#sink.add({
      record: "statement_end",
      line: place.line,
      is_proven: sums.areProven(turned),
    });
  }
}

/** The currency of the balances, if it is the same one. */
function onlyCurrency(statement: XmlElement): string | null {
  const found = new Set(childrenOf(statement, "Bal").map((each) => childOf(each, "Amt")?.currency));
  const [currency] = found;
  return found.size === 1 && currency ? currency : null;
}

function readPage(element: XmlElement | null): Page | null {
  const number = element && textOf(element, "PgNb");
  if (!element || !/^\d{1,5}$/.test(number ?? "")) return null;
  return { number: Number(number), is_last: textOf(element, "LastPgInd") !== "false" };
}

function isWhole(page: Page | null): boolean {
  return page === null || page.number <= 1 && page.is_last;
}
