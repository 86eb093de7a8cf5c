/**
 * International bank account numbers (ISO 13616): form and check digits.
 *
 * The check digits find a lost or changed character. The module does not check the length and
 * layout of each country, so it needs no table of countries that can become outdated. The provider
 * looks for test IBANs before this check, so they need not pass it (contract §2). The service
 * stores the country and the last four characters of an IBAN only.
 */

/**
 * Country, check digits and account: 15 characters (Norway) to 34. `RF` is no country: it begins
 * the references of ISO 11649, which have the same check digits.
 */
const SHAPE = /^(?!RF)[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$/;

/** Decimal digits per step. With at most five digits of the rest they form a safe integer. */
const CHUNK_LENGTH = 10;

/** Removes white space and converts ASCII letters to upper case. */
export function normalizeIban(text: string): string {
  return text.replace(/\s+/g, "").replace(/[a-z]+/g, (letters) => letters.toUpperCase());
}

/** Reports whether a normalized text has the form and the check digits of an IBAN (ISO 7064). */
export function isValidIban(normalized: string): boolean {
  if (!SHAPE.test(normalized)) return false;
  const check = Number(normalized.slice(2, 4));
  // Banks never issue 00, 01 and 99, which would pass in place of 97, 98 and 02.
  if (check < 2 || check > 98) return false;
  return remainderOf97(normalized.slice(4) + normalized.slice(0, 4)) === 1;
}

/** The begin of an IBAN in free text. */
const START = /(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}/g;
/** Shortest and longest IBAN. */
export const IBAN_LENGTH_MIN = 15;
const LENGTH_MAX = 34;
/** Characters that people write between the groups of an IBAN. */
const SEPARATOR = /[\s\-.]/;

/**
 * Reports whether free text contains an IBAN, with or without separators. It ends where a group of
 * letters and digits ends. Of the texts that have this form, one in 97 passes by chance. Takes
 * linear time.
 */
export function containsIban(text: string): boolean {
  for (const { index } of text.matchAll(START)) {
    let iban = "";
    for (let at = index; at <= text.length && iban.length <= LENGTH_MAX; at++) {
      const character = text[at] ?? " ";
      if (/[A-Za-z0-9]/.test(character)) {
        iban += character.toUpperCase();
        continue;
      }
      if (iban.length >= IBAN_LENGTH_MIN && isValidIban(iban)) return true;
      // A second separator ends the text that can be an IBAN.
      if (!SEPARATOR.test(character) || SEPARATOR.test(text[at + 1] ?? " ")) break;
    }
  }
  return false;
}

/** Returns the country code of a normalized IBAN, such as `DE`. */
export function ibanCountry(normalized: string): string {
  return normalized.slice(0, 2);
}

/** Returns the last four characters of a normalized IBAN, which may be shown. */
export function ibanLastFour(normalized: string): string {
  return normalized.slice(-4);
}

/** Computes the remainder by 97 after replacing A with 10, B with 11, … Z with 35 (ISO 7064). */
export function remainderOf97(text: string): number {
  return ibanRemainder(text, 97);
}

/** Computes the remainder by a number of at most five digits in the same way. */
export function ibanRemainder(text: string, modulus: number): number {
  const digits = text.replace(/[A-Z]/g, (letter) => String(letter.charCodeAt(0) - 55));
  let rest = 0;
  for (let at = 0; at < digits.length; at += CHUNK_LENGTH) {
    rest = Number(`${rest}${digits.slice(at, at + CHUNK_LENGTH)}`) % modulus;
  }
  return rest;
}
