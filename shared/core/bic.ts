/** Business identifier codes of banks (ISO 9362): form, and the country that they name. */

import { isBankOf } from "./bank_countries.ts";
import { ibanCountry } from "./iban.ts";

/** Party prefix, country, party suffix and, unless it is the head office, the branch. */
const SHAPE = /^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}(?:[A-Z0-9]{3})?$/;

/** Reports whether a text in upper case has the form of a BIC. */
export function isValidBic(text: string): boolean {
  return SHAPE.test(text);
}

/** Reports whether a bank with this BIC can have an account with this IBAN, by their countries. */
export function bicFitsIban(bic: string, iban: string): boolean {
  return isBankOf(ibanCountry(iban), bic.slice(4, 6));
}
