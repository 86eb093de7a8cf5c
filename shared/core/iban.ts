/**
 * International bank account numbers (ISO 13616): shape and check digits.
 *
 * The length and layout of each country's number are not checked, so no table of countries can
 * grow stale; the check digits find a lost or changed character. Test IBANs are matched before
 * this and need not pass (contract §2). Stored of an IBAN are only its country and last four.
 */

/** Country, check digits, account: 34 characters at most, and 15 (Norway's) at the least. */
const SHAPE = /^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$/;

/** Decimal digits taken at a time: with the two-digit rest before them still a safe integer. */
const CHUNK_LENGTH = 13;

/** Removes white space and makes ASCII letters upper case; nothing else changes. */
export function normalizeIban(text: string): string {
  return text.replace(/\s+/g, "").replace(/[a-z]+/g, (letters) => letters.toUpperCase());
}

/** Whether a normalized text has the shape of an IBAN and correct check digits (ISO 7064). */
export function isValidIban(normalized: string): boolean {
  if (!SHAPE.test(normalized)) return false;
  const check = Number(normalized.slice(2, 4));
  // 00, 01 and 99 are never issued: they would pass in place of 97, 98 and 02.
  if (check < 2 || check > 98) return false;
  return remainderOf97(normalized.slice(4) + normalized.slice(0, 4)) === 1;
}

/** The country code of a normalized IBAN, such as `DE`. */
export function ibanCountry(normalized: string): string {
  return normalized.slice(0, 2);
}

/** The last four characters of a normalized IBAN, which may be shown. */
export function ibanLastFour(normalized: string): string {
  return normalized.slice(-4);
}

/** Remainder by 97 of the number that results when A stands for 10, B for 11, … Z for 35. */
function remainderOf97(text: string): number {
  const digits = text.replace(/[A-Z]/g, (letter) => String(letter.charCodeAt(0) - 55));
  let rest = 0;
  for (let at = 0; at < digits.length; at += CHUNK_LENGTH) {
    rest = Number(`${rest}${digits.slice(at, at + CHUNK_LENGTH)}`) % 97;
  }
  return rest;
}
