/**
 * Creditor identifiers of SEPA direct debits (EPC262-08): a country, two check digits, a business
 * code of three characters that the creditor chooses, and a national part.
 */

import { remainderOf97 } from "./iban.ts";

/** The national part has at most 28 characters. */
const SHAPE = /^[A-Z]{2}[0-9]{2}[A-Z0-9]{3}[A-Z0-9]{1,28}$/;

/**
 * Reports whether a text in upper case and without spaces has the form and the check digits of a
 * creditor identifier. The check digits do not cover the business code.
 */
export function isValidCreditorIdentifier(text: string): boolean {
  if (!SHAPE.test(text)) return false;
  const check = Number(text.slice(2, 4));
  // As with IBANs, 00, 01 and 99 would pass in place of 97, 98 and 02.
  if (check < 2 || check > 98) return false;
  return remainderOf97(text.slice(7) + text.slice(0, 4)) === 1;
}
