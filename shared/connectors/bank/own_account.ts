/**
 * The account that a file is imported for. Banks name it by its IBAN, or by a national number that
 * the IBAN is made of, with any punctuation. A number that can be that of another account is not
 * taken for it.
 */

import { ibanCountry } from "../../core/iban.ts";

/** The merchant's account at the bank. */
export interface OwnAccount {
  /** Without spaces. */
  iban: string;
  currency: string;
}

/** Fewest digits of a number that is known without its bank. */
const NUMBER_MIN = 6;
/** A number of this length is whole, also without the zeros in front. */
const WHOLE_MIN = 8;
/** Digits of a German number. */
const DE_LENGTH = 10;

export function isOwnNumber(text: string, { iban, currency }: OwnAccount): boolean {
  const characters = text.toUpperCase().replace(/[^A-Z0-9]+/g, "");
  return [characters, withoutEnd(characters, currency)].some((number) =>
    isIban(number, iban) || isEndOf(number, iban)
  ) || isNational(text, iban);
}

/** The IBAN, or without the letters of its country, as in Poland. */
function isIban(number: string, iban: string): boolean {
  return number === iban || number === iban.slice(2);
}

/** The number at the end of the IBAN, with or without the zeros in front. */
function isEndOf(number: string, iban: string): boolean {
  const digits = number.replace(/^0+/, "");
  if (digits.length < NUMBER_MIN || !iban.slice(4).endsWith(digits)) return false;
  if (ibanCountry(iban) === "DE") {
    return [iban.slice(4), iban.slice(-DE_LENGTH)].includes(number.padStart(DE_LENGTH, "0"));
  }
  // Another digit in front belongs to the number of another account, unless the zeros are written.
  const is_whole = number.length >= WHOLE_MIN && iban.endsWith(number);
  return is_whole || iban.at(-digits.length - 1) === "0";
}

/** The bank and the number in parts, in countries where the IBAN has them in another form. */
function isNational(text: string, iban: string): boolean {
  const bban = iban.slice(4);
  const parts = text.split(/[^A-Za-z0-9]+/).filter((part) => part !== "");
  switch (ibanCountry(iban)) {
    case "DE": {
      const [bank, number] = parts.length === 1 ? [text.slice(0, 8), text.slice(8)] : parts;
      return parts.length <= 2 && number !== undefined && number !== "" &&
        bank + number.padStart(DE_LENGTH, "0") === bban;
    }
    case "CZ":
    case "SK": {
      const [, prefix = "", number, bank] = /^(?:(\d{1,6})-)?(\d{2,10})\/(\d{4})$/.exec(text) ?? [];
      return number !== undefined &&
        bank + prefix.padStart(6, "0") + number.padStart(10, "0") === bban;
    }
    // The last of three groups of eight digits is left out if it has only zeros.
    case "HU":
      return parts.join("") + "00000000" === bban;
    default:
      return false;
  }
}

function withoutEnd(text: string, end: string): string {
  return text.endsWith(end) ? text.slice(0, -end.length) : text;
}
