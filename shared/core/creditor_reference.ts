/**
 * The reference that the payer of a bank transfer must give: a creditor reference (ISO 11649). It
 * is derived from the id of the payment, so it is stored nowhere else and always the same. Banks
 * and people change texts on their way, and `findReference` finds it again.
 */

import { createHash } from "node:crypto";
import { remainderOf97 } from "./iban.ts";

/**
 * Characters of the part after the check digits, of 5 bits each. 80 bits: of a billion payments of
 * one account, two have the same reference with a probability of 4 in 10 million. With `RF` and the
 * check digits people write the reference in five groups of four.
 */
const BODY_LENGTH = 16;

/** Digits and letters without those that look alike: I, L, O and U. */
const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/**
 * `RF`, check digits and characters of `ALPHABET`, among letters and digits. A reference can begin
 * within such a text.
 */
const REFERENCE = /(?=(RF\d\d[0-9A-HJKMNP-TV-Z]{16}))/g;

/** The beginning of a reference at the end of letters and digits. 8 characters tell 40 bits. */
const CUT_REFERENCE = /(?=(RF\d\d[0-9A-HJKMNP-TV-Z]{8,15}$))/g;

/** Returns the reference of a payment: `RF`, two check digits and 16 digits and capital letters. */
export function creditorReference(payment_id: string): string {
  const hash = createHash("sha256").update(`creditor reference ${payment_id}`).digest();
  const body = [...hash.subarray(0, BODY_LENGTH)].map((byte) => ALPHABET[byte % 32]).join("");
  return withCheckDigits(body);
}

/**
 * Finds the first reference of this service in free text, in any case, with any spaces, line breaks
 * and punctuation in it, and within other letters and digits. Returns null if there is none with
 * right check digits. Takes linear time.
 */
export function findReference(text: string): string | null {
  const characters = text.replace(/[^A-Za-z0-9]+/g, "").toUpperCase();
  for (const [, reference = ""] of characters.matchAll(REFERENCE)) {
    if (withCheckDigits(reference.slice(4)) === reference) return reference;
  }
  return null;
}

/**
 * Returns the texts at the ends of lines that can be the beginning of a reference, which a bank has
 * cut off. Only a payment that waits tells whether it is one.
 */
export function cutReferences(text: string): string[] {
  return text.split("\n").flatMap((line) => {
    const characters = line.replace(/[^A-Za-z0-9]+/g, "").toUpperCase();
    return [...characters.matchAll(CUT_REFERENCE)].map(([, beginning]) => beginning!);
  });
}

function withCheckDigits(body: string): string {
  const check = 98 - remainderOf97(`${body}RF00`);
  return `RF${String(check).padStart(2, "0")}${body}`;
}
