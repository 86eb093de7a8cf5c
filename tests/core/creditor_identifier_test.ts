/** Creditor identifiers: examples of national banks, and what the check digits find. */

import assert from "node:assert/strict";
import { isValidCreditorIdentifier } from "../../shared/core/creditor_identifier.ts";

const VALID = [
  "DE98ZZZ09999999999",
  "AT61ZZZ01234567890",
  "BE68ZZZ0123456789",
  "CH51ZZZ12345678901",
  "ES50ZZZM23456789",
  "FR72ZZZ123456",
  "IT66ZZZA1B2C3D4E5F6G7H8",
  "NL79ZZZ999999990000",
];

for (const text of VALID) {
  Deno.test(`isValidCreditorIdentifier() accepts ${text} with any business code`, () => {
    for (const code of ["ZZZ", "001", "ABC"]) {
      assert.ok(isValidCreditorIdentifier(text.slice(0, 4) + code + text.slice(7)), code);
    }
  });
}

const REFUSED: [text: string, reason: string][] = [
  ["", "empty"],
  ["DE74ZZZ09999999999", "check digits over the business code, as an IBAN has them"],
  ["DE99ZZZ09999999999", "wrong check digits"],
  ["DE98ZZZ09999999989", "a changed digit"],
  ["AT98ZZZ09999999999", "another country"],
  ["DE98ZZZ", "no national part"],
  ["DE98ZZZ099999999991234567890123456789", "a national part of 30 characters"],
  ["DE98ZZ-09999999999", "a dash in the business code"],
  ["de98zzz09999999999", "lower case"],
  ["DE98 ZZZ 09999999999", "spaces"],
];

for (const [text, reason] of REFUSED) {
  Deno.test(`isValidCreditorIdentifier() refuses ${reason}`, () => {
    assert.equal(isValidCreditorIdentifier(text), false);
  });
}
