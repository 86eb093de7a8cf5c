/** Reads amounts, directions, dates and codes: the small values of a bank file. */

import { CURRENCIES } from "../../core/currency.ts";
import { BankFileError } from "./bank_file_error.ts";
import { childOf, childrenOf, textOf, type XmlElement } from "./bank_xml_reader.ts";
import type { BankCode, Direction } from "./read_records.ts";

const DECIMAL = /^([+-]?)(\d*)(?:\.(\d*))?$/;
const DATE = /^\d{4}-\d{2}-\d{2}/;

export interface Money {
  amount_minor: number;
  currency: string;
}

/**
 * Reads an amount that is needed.
 *
 * @param fallback the currency of the account, for an amount without one
 * @throws {BankFileError} if it is no amount of a known currency, or too large for exact sums
 */
export function readAmount(element: XmlElement, fallback: string | null): Money {
  const currency = element.currency ?? fallback;
  if (currency === null) throw new BankFileError("the amount has no currency", element);
  const digits = CURRENCIES.get(currency);
  if (digits === undefined) throw new BankFileError("the currency is not known", element);
  const amount_minor = minorUnits(element.text, digits);
  if (amount_minor === null) {
    const reason = "is not an amount, is too large, or has more decimals than the currency";
    throw new BankFileError(`"${element.text.slice(0, 30)}" ${currency} ${reason}`, element);
  }
  return { amount_minor, currency };
}

/** Reads an amount that helps if it has this currency. Null without one. */
export function amountIn(currency: string, element: XmlElement | null): number | null {
  if (element === null || (element.currency ?? currency) !== currency) return null;
  const digits = CURRENCIES.get(currency);
  return digits === undefined ? null : minorUnits(element.text, digits);
}

/** Reads `CRDT` or `DBIT`. Null without one. */
export function readDirection(element: XmlElement): Direction | null {
  const text = textOf(element, "CdtDbtInd");
  return text === "CRDT" ? "credit" : text === "DBIT" ? "debit" : null;
}

export function opposite(direction: Direction): Direction {
  return direction === "credit" ? "debit" : "credit";
}

/** Reads a member that is true or false. False without it. */
export function readFlag(element: XmlElement, ...path: [string, ...string[]]): boolean {
  return /^(true|1)$/.test(textOf(element, ...path) ?? "");
}

/** Reads the date of an element that has `Dt` or `DtTm`: the day as the bank wrote it. */
export function readDate(element: XmlElement | null): string | null {
  if (element === null) return null;
  return [textOf(element, "Dt"), textOf(element, "DtTm"), element.text]
    .map((text) => DATE.exec(text ?? "")?.[0] ?? "").find(isDay) ?? null;
}

/** Reads `BkTxCd` of an entry or a detail. */
export function readBankCode(element: XmlElement): BankCode {
  const code = childOf(element, "BkTxCd");
  const domain = code && childOf(code, "Domn");
  return {
    domain: domain && textOf(domain, "Cd"),
    family: domain && textOf(domain, "Fmly", "Cd"),
    sub_family: domain && textOf(domain, "Fmly", "SubFmlyCd"),
    proprietary: code && textOf(code, "Prtry", "Cd"),
  };
}

/** Adds up the charges of an entry or a detail in a currency. The bank's income is positive. */
export function readCharges(element: XmlElement, currency: string): number {
  let sum = 0;
  for (const charges of childrenOf(element, "Chrgs")) {
    const total = amountIn(currency, childOf(charges, "TtlChrgsAndTaxAmt"));
    const records = [charges, ...childrenOf(charges, "Rcrd")];
    sum += total ?? records.reduce((sum, record) => {
      const amount = amountIn(currency, childOf(record, "Amt")) ?? 0;
      return readDirection(record) === "credit" ? sum - amount : sum + amount;
    }, 0);
  }
  return sum;
}

/** Returns the lines of a text that stands in several elements. */
export function joinTexts(elements: readonly XmlElement[], separator = " "): string | null {
  return elements.map(({ text }) => text).filter((text) => text !== "").join(separator) || null;
}

/** The amount before the bank took its charge out of a credit, or added it to a debit. */
export function grossOf(
  { direction, amount_minor }: { direction: Direction; amount_minor: number },
  charge_minor: number,
): number {
  return direction === "credit" ? amount_minor + charge_minor : amount_minor - charge_minor;
}

/** Reports whether a date is in the calendar: the database takes no other one. */
function isDay(text: string): boolean {
  const at_ms = Date.parse(`${text}T00:00:00Z`);
  return text > "0001" && !Number.isNaN(at_ms) && new Date(at_ms).toISOString().startsWith(text);
}

function minorUnits(text: string, digits: number): number | null {
  const [, sign, whole = "", fraction = ""] = DECIMAL.exec(text) ?? [];
  if (sign === undefined || whole + fraction === "") return null;
  if (/[1-9]/.test(fraction.slice(digits))) return null;
  const amount = Number(whole + fraction.slice(0, digits).padEnd(digits, "0"));
  if (!Number.isSafeInteger(amount)) return null;
  return sign === "-" && amount !== 0 ? -amount : amount;
}
