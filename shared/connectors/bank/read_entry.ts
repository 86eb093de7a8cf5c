/** Reads `Ntry`, a line of a statement, and decides how its details make up its amount. */

import { BankFileError } from "./bank_file_error.ts";
import { childOf, childrenOf, textOf, type XmlElement } from "./bank_xml_reader.ts";
import {
  grossOf,
  type Money,
  opposite,
  readAmount,
  readBankCode,
  readCharges,
  readDate,
  readDirection,
  readFlag,
} from "./read_amount.ts";
import { readDetail, turn, type WrittenDetail } from "./read_details.ts";
import { isBatchIdentifier } from "./bank_identifier.ts";
import type { Counts } from "./identity_counts.ts";
import { identityOf, isReference } from "./read_identity.ts";
import { keep } from "./read_message.ts";
import type { Batch, DetailRecord, Direction, EntryRecord, MessageKind } from "./read_records.ts";

/** Details of an entry that are in memory at a time: about 1 MB. */
const HELD_DETAILS_MAX = 1_000;

/** Statuses by their code, which some banks write as a word. */
const STATUSES: ReadonlyMap<string, EntryRecord["status"]> = new Map([
  ["BOOK", "booked"],
  ["BOOKED", "booked"],
  ["PDNG", "pending"],
  ["FUTR", "pending"],
  ["INFO", "information"],
]);

interface EntryContext {
  kind: MessageKind;
  account: string;
  currency: string | null;
  counts: Counts;
  /** The days that an entry without one can have. */
  days: { closing: string | null; made: string | null };
  noteUndated(): void;
  warn(place: XmlElement, message: string): void;
}

/** An entry with its details, as they are written: the statement can still turn the direction. */
export interface WrittenEntry {
  record: EntryRecord;
  details: WrittenDetail[];
}

export class EntryReader {
  readonly #context: EntryContext;
  readonly #entry: XmlElement;
  readonly #details: WrittenDetail[] = [];
  #money: Money | null = null;
  #direction: Direction | null = null;
  /** The first batch of the entry, and the one of the present `NtryDtls`. */
  #batch: Batch | null = null;
  #present_batch: Batch | null = null;
  /**
   * The record of an entry that is too large to be held, and the rest of its amount. Null in place
   * of the record: the entry is booked by its total.
   */
  #large: { record: EntryRecord | null; rest: number } | null = null;

  constructor(place: XmlElement, context: EntryContext) {
    this.#entry = place;
    this.#context = context;
  }

  startDetails(): void {
    this.#present_batch = null;
  }

  /** Takes an element. Returns the entry, or further details, when they can no longer be held. */
  take(element: XmlElement): WrittenEntry | WrittenDetail | null {
    if (element.element === "Btch") {
      this.#present_batch = readBatch(element);
      this.#batch ??= this.#present_batch;
    } else if (element.element === "TxDtls") {
      return this.#takeDetail(element, this.#present_batch ?? this.#batch);
    } else {
      keep(this.#entry, element);
    }
    return null;
  }

  /** Returns the entry with its details, unless `take` has returned it. */
  end(): WrittenEntry | null {
    if (this.#large === null) return this.#finish();
    if (this.#large.rest === 0) return null;
    const reason = `the amounts of more than ${HELD_DETAILS_MAX} details are not the entry's`;
    throw new BankFileError(reason, this.#entry);
  }

  #takeDetail(element: XmlElement, batch: Batch | null): WrittenEntry | WrittenDetail | null {
    const detail = readDetail(element, { ...this.#readHead(), batch });
    if (this.#large === null) {
      this.#details.push(detail);
      return this.#details.length > HELD_DETAILS_MAX ? this.#startLarge() : null;
    }
    const { record } = this.#large;
    if (record === null) return null;
    this.#addToLarge(detail, record);
    return detail;
  }

  #readHead(): { currency: string; amount_minor: number; direction: Direction } {
    if (this.#money === null) {
      const amount = childOf(this.#entry, "Amt");
      if (amount === null) throw new BankFileError("the entry has no amount", this.#entry);
      this.#money = readAmount(amount, this.#context.currency);
      if (this.#money.amount_minor < 0) {
        throw new BankFileError("the amount of an entry is below zero", amount);
      }
    }
    this.#direction ??= readDirection(this.#entry);
    if (this.#direction === null) {
      throw new BankFileError("the entry is neither CRDT nor DBIT", this.#entry);
    }
    return { ...this.#money, direction: this.#direction };
  }

  #finish(): WrittenEntry {
    const record = this.#readRecord();
    const details = this.#details;
    const warning = settle(record, details);
    if (warning) this.#context.warn(this.#entry, warning);
    return { record, details };
  }

  /**
   * Releases an entry with very many details. Their amounts are checked at its end, so the bank has
   * to tell whether a charge is part of the entry.
   */
  #startLarge(): WrittenEntry {
    if (this.#details.some(({ stated }) => stated === null)) {
      this.#large = { record: null, rest: 0 };
      return this.#finish();
    }
    const record = this.#readRecord();
    record.booked_by = "details";
    const has_charge = readFlag(this.#entry, "Chrgs", "Rcrd", "ChrgInclInd");
    if (!has_charge) record.charge_minor = 0;
    this.#large = { record, rest: grossOf(record, record.charge_minor) };
    for (const detail of this.#details) this.#addToLarge(detail, record);
    return { record, details: this.#details };
  }

  #addToLarge(detail: WrittenDetail, record: EntryRecord): void {
    if (detail.stated === null) {
      const place = { ...this.#entry, line: detail.record.line, element: "TxDtls" };
      throw new BankFileError("a detail of a large batch has no amount", place);
    }
    detail.direction ??= record.direction;
    this.#large!.rest -= detail.direction === record.direction ? detail.stated : -detail.stated;
    turn(detail, detail.direction, record);
  }

  /**
   * Returns the day of an entry without one; null: it is not booked. A date that cannot be read is
   * none that is missing.
   */
  #dayOfUndated(bank_reference: string | null): string | null {
    const written = ["BookgDt", "ValDt"].map((name) => childOf(this.#entry, name))
      .find((date) =>
        date !== null && (date.text !== "" || date.children.some(({ text }) => text))
      );
    if (written) throw new BankFileError("not a date like 2026-11-20", written);
    const { days, kind, noteUndated, warn } = this.#context;
    const stated = this.#details.find(({ day }) => day !== null)?.day ?? days.closing;
    const day = stated ?? days.made;
    if (day === null) throw new BankFileError("a booked entry has no date", this.#entry);
    // A file that is made after midnight has the day after that of the entry, which would be
    // another entry than that of the statement.
    if (stated === null && kind !== "camt.053" && !isReference(bank_reference)) {
      warn(this.#entry, "a booked entry without a date and a reference: its statement books it");
      return null;
    }
    noteUndated();
    return day;
  }

  #readRecord(): EntryRecord {
    const { account, kind, counts, warn } = this.#context;
    const entry = this.#entry;
    const { amount_minor, currency, direction } = this.#readHead();
    const bank_reference = textOf(entry, "AcctSvcrRef");
    let status = readStatus(entry, kind);
    if (status === null) warn(entry, "the status of the entry is not known: it is not booked");
    const batch = this.#batch;
    const detail = this.#details[0]?.record ?? null;
    const value_on = readDate(childOf(entry, "ValDt"));
    let booked_on = readDate(childOf(entry, "BookgDt"));
    if (status === "booked" && amount_minor > 0 && booked_on === null && value_on === null) {
      booked_on = this.#dayOfUndated(bank_reference);
      if (booked_on === null) status = null;
    }
    return {
      record: "entry",
      line: entry.line,
      account,
      identity: identityOf({
        account,
        amount_minor,
        currency,
        written_direction: direction,
        booked_on,
        value_on,
        bank_reference,
        batch,
        detail,
        status: status ?? "information",
        // A bank that books a batch of one can leave its order out in another file.
        is_batch: isBatch({ batch }, this.#details.length) ||
          batch?.transactions === 1 && batch.payment_information_id !== null ||
          detail !== null && namesBatch(detail),
      }, counts),
      status: status ?? "information",
      direction,
      amount_minor,
      currency,
      booked_on,
      value_on,
      is_reversal: readFlag(entry, "RvslInd"),
      bank_code: readBankCode(entry),
      bank_reference,
      information: textOf(entry, "AddtlNtryInf"),
      batch,
      booked_by: "total",
      charge_minor: readCharges(entry, currency),
    };
  }
}

/** Gives an entry and its details the direction in which the money moved. */
export function turnEntry({ record, details }: WrittenEntry, is_opposite: boolean): void {
  const written = record.direction;
  if (is_opposite) record.direction = opposite(written);
  for (const detail of details) {
    const direction = detail.direction ?? written;
    turn(detail, is_opposite ? opposite(direction) : direction, record);
  }
}

/**
 * Decides whether the details are booked or the total, by the amounts alone: the details are if
 * they make up the amount of the entry, with the charges of the bank if those explain the
 * difference. Returns a warning if they do not.
 */
function settle(entry: EntryRecord, details: readonly WrittenDetail[]): string | null {
  const charges = entry.charge_minor || details.reduce((sum, { charge }) => sum + charge, 0);
  const charge = Math.max(charges, 0);
  entry.charge_minor = 0;
  const [only] = details;
  if (details.length > 1) {
    return settleBatch(entry, details, takeReturnCharge(entry, details) || charge);
  }
  // The only detail of a batch tells of the batch.
  if (only !== undefined && !isBatch(entry, 1) && !namesBatch(only.record)) {
    return settleOne(entry, only, takeReturnCharge(entry, details) || charge);
  }
  entry.charge_minor = charge;
  return null;
}

/**
 * Returns the charge that a bank has added to returned collections: what they are above the amounts
 * that were instructed, which become theirs.
 */
function takeReturnCharge(entry: EntryRecord, details: readonly WrittenDetail[]): number {
  let charge = 0;
  for (const detail of details) {
    const direction = detail.direction ?? entry.direction;
    if (detail.record.return === null || direction === "credit") continue;
    const whole = details.length === 1 ? entry.amount_minor : detail.stated;
    const stated = detail.stated !== null && detail.includes_charge
      ? detail.stated - detail.charge
      : detail.stated;
    const original = detail.instructed ?? stated;
    if (whole === null || original === null || original >= whole) continue;
    charge += whole - original;
    detail.stated = original;
    detail.record.amount_minor = original;
  }
  return charge;
}

function settleOne(entry: EntryRecord, detail: WrittenDetail, charge: number): string | null {
  const { stated, instructed } = detail;
  const gross = grossOf(entry, charge);
  const is_gross = charge > 0 && (instructed === gross || stated === gross);
  if (is_gross) entry.charge_minor = charge;
  entry.booked_by = "details";
  detail.direction = entry.direction;
  detail.record.amount_minor = is_gross ? gross : entry.amount_minor;
  const fits = is_gross || stated === null || stated === entry.amount_minor;
  return fits ? null : "the amount of the detail is not the entry's: the entry's is used";
}

function settleBatch(
  entry: EntryRecord,
  details: readonly WrittenDetail[],
  charge: number,
): string | null {
  for (const { record } of details) {
    if (record.information === entry.information) record.information = null;
  }
  if (details.some(({ stated }) => stated === null)) {
    return "not every detail has an amount: the entry is booked by its total";
  }
  for (const has_own of [true, false]) {
    const direction = (detail: WrittenDetail) =>
      has_own ? detail.direction ?? entry.direction : entry.direction;
    const sum = details.reduce((sum, detail) => {
      return direction(detail) === entry.direction ? sum + detail.stated! : sum - detail.stated!;
    }, 0);
    if (sum !== entry.amount_minor && sum !== grossOf(entry, charge)) continue;
    for (const detail of details) detail.direction = direction(detail);
    if (sum !== entry.amount_minor) entry.charge_minor = charge;
    entry.booked_by = "details";
    return null;
  }
  return "the details do not add up to the entry: it is booked by its total";
}

/** Reports whether an entry is of several transactions, also if they are not listed. */
function isBatch({ batch }: Pick<EntryRecord, "batch">, details: number): boolean {
  return details > 1 || (batch?.transactions ?? 1) > 1;
}

/** Reports whether the only detail of an entry names one of our batches and no order of it. */
function namesBatch({ end_to_end_id, payment_information_id }: DetailRecord): boolean {
  return end_to_end_id === null && isBatchIdentifier(payment_information_id ?? "");
}

function readBatch(element: XmlElement): Batch {
  const transactions = textOf(element, "NbOfTxs");
  return {
    message_id: textOf(element, "MsgId"),
    payment_information_id: textOf(element, "PmtInfId"),
    transactions: /^\d{1,15}$/.test(transactions ?? "") ? Number(transactions) : null,
  };
}

/** The status, or null for an unknown one. Before version 8 it has no element `Cd`. */
function readStatus(entry: XmlElement, kind: MessageKind): EntryRecord["status"] | null {
  const [status] = childrenOf(entry, "Sts");
  const code = status && (textOf(status, "Cd") ?? textOf(status, "Prtry") ?? status.text);
  // Every entry of a statement is booked, unless it tells something else.
  if (!code) return kind === "camt.053" ? "booked" : null;
  return STATUSES.get(code.toUpperCase()) ?? null;
}
