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

/** Digits, or groups of digits as `formatMinor` writes them, and the decimals. */
const AMOUNT = /^([-−]?)(\d*|\d{1,3}(?:,\d{3})+)(?:\.(\d*))?$/;

/**
 * Parses an amount as minor units: `19.99` EUR → 1999, `19` → 1900. Takes every text that the
 * console shows as an amount of the currency, such as `1,234.50` and `1,234.50 EUR`. A comma that
 * could be a decimal comma is refused. The API checks limits.
 * @throws {RangeError} if the text is not an amount of this currency; the message is for the user
 */
export function parseAmount(text: string, currency: string): number {
  const trimmed = text.trim();
  const [, number = trimmed, code] = /^(.*?)\s*([a-z]{3,5})$/i.exec(trimmed) ?? [];
  const parts = AMOUNT.exec(number);
  const digits = currencyDigits(currency);
  const example = plainMinor(1999, currency);
  if (trimmed === "") throw new RangeError("Enter an amount");
  if (!parts || !/\d/.test(number)) {
    throw new RangeError(`"${trimmed}" is not an amount: write it like ${example}`);
  }
  if (code !== undefined && code.toUpperCase() !== normalizeCurrency(currency.trim())) {
    throw new RangeError(`"${trimmed}" is not in ${currency}: write it like ${example}`);
  }
  const [, sign, whole, fraction = ""] = parts;
  // "1,234" is either a thousand or a number with a decimal comma.
  if (digits > 0 && fraction === "" && /^\d+,\d+$/.test(whole!)) {
    const [thousands, decimals] = ["", "."].map((sign) => whole!.replace(",", sign));
    throw new RangeError(
      `"${trimmed}" can mean ${thousands} or ${decimals}: write it without a comma`,
    );
  }
  if (fraction.length > digits) {
    const decimals = digits === 0 ? "no decimals" : `at most ${digits} decimals`;
    throw new RangeError(`"${trimmed}" has too many decimals: ${currency} has ${decimals}`);
  }
  const minor = Number(`${whole!.replaceAll(",", "")}${fraction.padEnd(digits, "0")}`);
  const amount_minor = sign === "" ? minor : -minor;
  if (!Number.isSafeInteger(amount_minor)) {
    throw new RangeError(`"${trimmed}" is too large`);
  }
  return amount_minor === 0 ? 0 : amount_minor;
}
