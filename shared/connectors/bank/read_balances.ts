/**
 * The sums of a statement: its balances and its summary against its entries.
 *
 * Balances of a camt.053 have to agree with the entries, because a missing entry is missing money.
 * Banks differ in whether an entry counts from its day of booking or from its day of value. Interim
 * balances (camt.052), available balances and one page of several prove nothing when they differ.
 */

import { formatAmount } from "../../core/currency.ts";
import { BankFileError } from "./bank_file_error.ts";
import { childOf, textOf, type XmlElement } from "./bank_xml_reader.ts";
import { amountIn, readDate, readDirection } from "./read_amount.ts";
import type { BalanceRecord, EntryRecord, StatementRecord } from "./read_records.ts";

/** Codes of the balances before and after the entries. Only booked ones refuse a file. */
const PAIRS = [
  { opening: ["OPBD", "PRCD"], closing: "CLBD", is_strict: true },
  { opening: ["OPAV"], closing: "CLAV", is_strict: false },
] as const;

/** A sum over entries as they are written, and over the reversals, which the bank may mean the
 * other way round. */
interface Sum {
  fixed: bigint;
  reversals: bigint;
}

/** Two balances that the entries lie between. */
interface BalancePair {
  opening: WrittenBalance;
  closing: WrittenBalance;
  is_strict: boolean;
}

interface WrittenBalance {
  record: BalanceRecord;
  element: XmlElement;
  /** Whether the bank told that it is a credit or a debit. */
  has_sign: boolean;
}

export class StatementSums {
  readonly #pair: BalancePair | null;
  readonly #summary: XmlElement | null;
  readonly #booked: Sum = { fixed: 0n, reversals: 0n };
  /** Of the booked entries with a value until the day of the closing balance. */
  readonly #valued: Sum = { fixed: 0n, reversals: 0n };
  readonly #all: Sum = { fixed: 0n, reversals: 0n };
  #entries = 0;
  #currency: string | null = null;
  #has_currencies = false;

  constructor(balances: readonly WrittenBalance[], summary: XmlElement | null) {
    this.#pair = pairOf(balances);
    this.#summary = summary;
    this.#currency = this.#pair?.closing.record.currency ?? null;
  }

  /** Whether something can tell the direction of a reversal. */
  get can_prove(): boolean {
    return this.#pair !== null || this.#summary !== null;
  }

  add(entry: EntryRecord, is_open_reversal: boolean): void {
    this.#entries++;
    this.#currency ??= entry.currency;
    if (entry.currency !== this.#currency) this.#has_currencies = true;
    const amount = BigInt(entry.direction === "credit" ? entry.amount_minor : -entry.amount_minor);
    const key = is_open_reversal ? "reversals" : "fixed";
    this.#all[key] += amount;
    if (entry.status !== "booked") return;
    this.#booked[key] += amount;
    const until = this.#pair?.closing.record.date;
    if (!until || !entry.value_on || entry.value_on <= until) this.#valued[key] += amount;
  }

  /** Reports whether the sums prove that the bank wrote the opposite direction into reversals. */
  areReversalsOpposite(): boolean {
    if (this.#has_currencies) return false;
    const net = this.#net();
    const equations: [expected: readonly bigint[], sum: Sum][] = [
      [differencesOf(this.#pair), this.#booked],
      [differencesOf(this.#pair), this.#valued],
      [net === null ? [] : [net], this.#all],
    ];
    for (const [expected, { fixed, reversals }] of equations) {
      if (expected.includes(fixed + reversals)) return false;
      if (expected.includes(fixed - reversals)) return true;
    }
    return false;
  }

  /** Reports whether the booked entries come to the difference of the balances. */
  areProven(are_opposite: boolean): boolean {
    return !this.#has_currencies &&
      differencesOf(this.#pair).includes(totalOf(this.#booked, are_opposite));
  }

  /**
   * Compares the sums at the end of a statement. Returns warnings. Throws `BankFileError` at the
   * closing balance of a camt.053 that does not agree.
   */
  check(is_statement: boolean, are_opposite: boolean): string[] {
    const warnings: string[] = [];
    const total = (sum: Sum) => totalOf(sum, are_opposite);
    const differences = differencesOf(this.#pair);
    const is_comparable = !this.#has_currencies && differences.length > 0;
    if (is_statement && !is_comparable) {
      warnings.push(
        "the sums are not checked: no booked opening and closing balance in one currency",
      );
    } else if (is_statement && !this.areProven(are_opposite)) {
      if (differences.includes(total(this.#valued))) {
        warnings.push("the closing balance leaves out entries with a later day of value");
      } else if (this.#pair!.is_strict) {
        throw sumsDiffer(this.#pair!, total(this.#booked));
      } else {
        warnings.push("the sums are not checked: the available balances differ from the entries");
      }
    }
    const [count, net] = [this.#summaryText("NbOfNtries"), this.#net()];
    if (count !== null && Number(count) !== this.#entries) {
      warnings.push(`the summary tells of ${count.slice(0, 15)} entries, not ${this.#entries}`);
    }
    if (net !== null && !this.#has_currencies && net !== total(this.#all)) {
      warnings.push("the net amount of the summary is not the sum of the entries");
    }
    return warnings;
  }

  #summaryText(name: string): string | null {
    return this.#summary && textOf(this.#summary, "TtlNtries", name);
  }

  /** The net amount of the summary, in versions before 4 and since. */
  #net(): bigint | null {
    const entries = this.#summary && childOf(this.#summary, "TtlNtries");
    const net = entries && (childOf(entries, "TtlNetNtry") ?? entries);
    const direction = net && readDirection(net);
    const amount = net && amountIn(
      this.#currency ?? "",
      childOf(net, "Amt") ?? childOf(net, "TtlNetNtryAmt"),
    );
    if (direction === null || amount === null) return null;
    return BigInt(direction === "credit" ? amount : -amount);
  }
}

function totalOf({ fixed, reversals }: Sum, are_opposite: boolean): bigint {
  return are_opposite ? fixed - reversals : fixed + reversals;
}

/** Reads a balance. Null if its amount cannot be read: it is not checked then. */
export function readBalance(element: XmlElement, fallback: string | null): WrittenBalance | null {
  const amount = childOf(element, "Amt");
  const currency = amount && (amount.currency ?? fallback);
  const value = currency && amountIn(currency, amount);
  if (currency === null || typeof value !== "number") return null;
  const direction = readDirection(element);
  const type = childOf(element, "Tp");
  return {
    record: {
      line: element.line,
      code: type && (textOf(type, "CdOrPrtry", "Cd") ?? textOf(type, "CdOrPrtry", "Prtry") ??
        textOf(type, "Cd")),
      amount_minor: direction === "debit" && value !== 0 ? -value : value,
      currency,
      date: readDate(childOf(element, "Dt")),
    },
    element,
    has_sign: direction !== null || value < 0,
  };
}

/** Returns the booked balances of a statement that are known with their signs. */
export function bookedOf(
  balances: readonly WrittenBalance[],
  is_whole: boolean,
): StatementRecord["booked"] {
  const pair = is_whole ? pairOf(balances) : null;
  const opening = pair?.is_strict && pair.opening.has_sign ? pair.opening.record : null;
  const closing = sorted(balances, "CLBD").at(-1);
  if (!closing?.has_sign) return null;
  const is_pair = opening?.currency === closing.record.currency;
  return { opening: is_pair ? opening : null, closing: closing.record };
}

function sorted(balances: readonly WrittenBalance[], code: string): WrittenBalance[] {
  return balances.filter(({ record }) => record.code === code)
    .sort((a, b) => (a.record.date ?? "").localeCompare(b.record.date ?? ""));
}

/** Chooses the first opening and last closing balance: a statement can have those of each day. */
function pairOf(balances: readonly WrittenBalance[]): BalancePair | null {
  const ofCode = (code: string) => sorted(balances, code);
  for (const { opening: codes, closing: code, is_strict } of PAIRS) {
    const opening = codes.flatMap(ofCode)[0];
    const closing = ofCode(code).at(-1);
    if (opening && closing) return { opening, closing, is_strict };
  }
  return null;
}

/** What the entries can come to. A balance without a sign can be either. */
function differencesOf(pair: BalancePair | null): bigint[] {
  if (pair === null) return [];
  const { opening, closing } = pair;
  if (opening.record.currency !== closing.record.currency) return [];
  const values = ({ record, has_sign }: WrittenBalance) =>
    has_sign ? [record.amount_minor] : [record.amount_minor, -record.amount_minor];
  return values(closing).flatMap((to) => values(opening).map((from) => BigInt(to) - BigInt(from)));
}

function sumsDiffer({ opening, closing }: BalancePair, sum: bigint): BankFileError {
  const format = (amount: number) =>
    `${amount < 0 ? "-" : ""}${formatAmount(Math.abs(amount), opening.record.currency)}`;
  return new BankFileError(
    `the opening balance of ${format(opening.record.amount_minor)} (line ${opening.record.line}) ` +
      `plus the booked entries of ${format(Number(sum))} is not the closing balance of ` +
      format(closing.record.amount_minor),
    closing.element,
  );
}
