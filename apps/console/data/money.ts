/**
 * Converts amounts between decimal text on the screen and integer minor units of the API, without
 * floats.
 */

import { CURRENCIES, normalizeCurrency } from "../../../shared/core/currency.ts";

/** Decimals of an unknown currency code. Any number will do, because the API refuses the code. */
const UNKNOWN_DIGITS = 2;

/** Decimals of the currency's minor unit. */
export function currencyDigits(currency: string): number {
  return CURRENCIES.get(normalizeCurrency(currency.trim())) ?? UNKNOWN_DIGITS;
}

/** `1050` EUR → `10.50`, with groups: `1234567` → `12,345.67`. */
export function formatMinor(amount_minor: number, currency: string): string {
  const digits = currencyDigits(currency);
  const text = Math.abs(amount_minor).toString().padStart(digits + 1, "0");
  const whole = text.slice(0, text.length - digits).replace(/\B(?=(\d{3})+$)/g, ",");
  const fraction = digits === 0 ? "" : `.${text.slice(-digits)}`;
  return `${amount_minor < 0 ? "−" : ""}${whole}${fraction}`;
}

/** The same with the currency: `10.50 EUR`. */
export function amountText(amount_minor: number, currency: string): string {
  return `${formatMinor(amount_minor, currency)} ${currency}`;
}

/** The same without groups, for a text field. */
export function plainMinor(amount_minor: number, currency: string): string {
  return formatMinor(amount_minor, currency).replaceAll(",", "");
}

/** A sign and digits, with points, commas, spaces or apostrophes between them. */
const AMOUNT = /^([-−]?)((?:\d|[.,](?=\d|$)|[ \u00a0\u202f'](?=\d))+)$/;
/** Digits with or without groups, which end before the decimal mark. */
const WHOLE = /^(?:\d*|\d{1,3}(?:([., \u00a0\u202f'])\d{3})(?:\1\d{3})*)$/;

/**
 * Parses an amount as minor units: `19.99` EUR → 1999, `19,99` → 1999, `1.234,50` → 123450. Takes
 * every text that the console shows as an amount of the currency. A text that two countries read
 * differently is refused. The API checks limits.
 * @throws {RangeError} if the text is not an amount of this currency; the message is for the user
 */
export function parseAmount(text: string, currency: string): number {
  const trimmed = text.trim();
  const [, number = trimmed, code] = /^(.*?)\s*([a-z]{3,5})$/i.exec(trimmed) ?? [];
  const [, sign, signless = ""] = AMOUNT.exec(number) ?? [];
  const digits = currencyDigits(currency);
  const example = plainMinor(1999, currency);
  if (trimmed === "") throw new RangeError("Enter an amount");
  const { whole, fraction } = partsOf(signless, digits, trimmed);
  if (!WHOLE.test(whole) || !/\d/.test(whole + fraction)) {
    throw new RangeError(`"${trimmed}" is not an amount: write it like ${example}`);
  }
  if (code !== undefined && code.toUpperCase() !== normalizeCurrency(currency.trim())) {
    throw new RangeError(`"${trimmed}" is not in ${currency}: write it like ${example}`);
  }
  if (fraction.length > digits) {
    const decimals = digits === 0 ? "no decimals" : `at most ${digits} decimals`;
    throw new RangeError(`"${trimmed}" has too many decimals: ${currency} has ${decimals}`);
  }
  const minor = Number(`${whole.replace(/\D/g, "")}${fraction.padEnd(digits, "0")}`);
  const amount_minor = sign === "" ? minor : -minor;
  if (!Number.isSafeInteger(amount_minor)) {
    throw new RangeError(`"${trimmed}" is too large`);
  }
  return amount_minor === 0 ? 0 : amount_minor;
}

/**
 * Divides a number at its decimal mark: the last point or comma, unless it divides groups.
 * @throws {RangeError} if it can be either
 */
function partsOf(number: string, digits: number, typed: string) {
  const [, before = number, mark, fraction = ""] = /^(.*)([.,])(\d*)$/.exec(number) ?? [];
  const is_group = fraction.length === 3 && /^[1-9]\d{0,2}$/.test(before);
  if (mark === undefined || before.includes(mark) || (is_group && digits === 0)) {
    return { whole: number, fraction: "" };
  }
  // The console itself writes three decimals behind a point.
  if (is_group && (mark === "," || digits !== 3)) {
    throw new RangeError(
      `"${typed}" can mean ${before}${fraction} or ${before}.${fraction}: write ` +
        `${before}${fraction}${digits === 0 ? "" : `.${"0".repeat(digits)}`} or fewer decimals`,
    );
  }
  return { whole: before, fraction };
}
