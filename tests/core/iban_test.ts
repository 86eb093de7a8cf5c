/** IBANs: published examples, every error in a single character, and limits of form and length. */

import assert from "node:assert/strict";
import {
  containsIban,
  ibanCountry,
  ibanLastFour,
  isValidIban,
  normalizeIban,
} from "../../shared/core/iban.ts";

const VALID = [
  "DE89 3704 0044 0532 0130 00",
  "GB82 WEST 1234 5698 7654 32",
  "FR14 2004 1010 0505 0001 3M02 606",
  "NO93 8601 1117 947",
  "BE68 5390 0754 7034",
  "CH93 0076 2011 6238 5295 7",
  "BR18 0036 0305 0000 1000 9795 493C 1",
  "MT84 MALT 0110 0001 2345 MTLC AST0 01S",
  "LC55 HEMM 0001 0001 0012 0012 0002 3015",
  "de89 3704 0044 0532 0130 00",
  "\tDE89370400440532013000\n",
  "DE97000000000000000066",
  "XX83ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ",
];

for (const text of VALID) {
  Deno.test(`isValidIban() accepts ${JSON.stringify(text)}`, () => {
    assert.ok(isValidIban(normalizeIban(text)));
  });
}

const REFUSED: [text: string, reason: string][] = [
  ["", "empty"],
  ["DE00000000000000000099", "check digits 00"],
  ["DE00000000000000000066", "check digits 00 in place of 97"],
  ["DE01000000000000000048", "check digits 01 in place of 98"],
  ["DE99000000000000000030", "check digits 99 in place of 02"],
  ["DE88370400440532013000", "wrong check digits"],
  ["DE89370400440532013", "cut short"],
  ["NO698601111794", "14 characters"],
  ["XX94ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ", "35 characters"],
  ["de89370400440532013000", "not normalized: lower case"],
  ["DE89 3704 0044 0532 0130 00", "not normalized: spaces"],
  ["RF36539007547034000", "a reference of a creditor"],
  ["D189370400440532013000", "digit in the country"],
  ["DEA9370400440532013000", "letter in the check digits"],
  ["DE89-3704-0044-0532-0130-00", "dashes"],
  ["ＤＥ89370400440532013000", "full-width letters"],
  ["DE8937040044053201300٠", "Arabic-Indic digit"],
  ["DE89370400440532013000\n", "line feed at the end"],
  ["DE89".repeat(10_000), "very long"],
];

for (const [text, reason] of REFUSED) {
  Deno.test(`isValidIban() refuses ${reason}`, () => assert.equal(isValidIban(text), false));
}

Deno.test("isValidIban() refuses every changed character and swap of neighbours", () => {
  for (const iban of ["DE89370400440532013000", "GB82WEST12345698765432"]) {
    for (let at = 0; at < iban.length; at++) {
      // A digit in place of a letter, or the reverse, shifts the rest and can stay undetected.
      const isDigit = /[0-9]/.test(iban.charAt(at));
      for (const other of isDigit ? "0123456789" : "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
        const changed = iban.slice(0, at) + other + iban.slice(at + 1);
        assert.equal(isValidIban(changed), changed === iban, changed);
      }
      const swapped = iban.slice(0, at) + iban.charAt(at + 1) + iban.charAt(at) +
        iban.slice(at + 2);
      assert.equal(isValidIban(swapped), swapped === iban, swapped);
    }
  }
});

Deno.test("normalizeIban() changes only ASCII letters and white space", () => {
  assert.equal(normalizeIban(" gb82 west\u00a01234 "), "GB82WEST1234");
  assert.equal(normalizeIban("ıſß-"), "ıſß-");
});

Deno.test("ibanCountry() and ibanLastFour() return the parts that may be shown", () => {
  const iban = normalizeIban("FR14 2004 1010 0505 0001 3M02 606");
  assert.equal(ibanCountry(iban), "FR");
  assert.equal(ibanLastFour(iban), "2606");
});

for (const text of VALID) {
  Deno.test(`containsIban() finds ${JSON.stringify(text)} in a sentence`, () => {
    for (
      const spelt of [
        text,
        normalizeIban(text),
        text.replaceAll(" ", "-"),
        text.trim().replaceAll(" ", "."),
      ]
    ) {
      assert.ok(containsIban(`from ${spelt.trim()}, thanks`), spelt);
      assert.ok(containsIban(`{"iban":"${spelt.trim()}"}`), spelt);
    }
  });
}

/** Texts without an IBAN. */
const WITHOUT = [
  "",
  "DE89",
  "order DE89 of 3704 pieces",
  "DE88 3704 0044 0532 0130 00",
  "DE89  3704 0044 0532 0130 00",
  "XDE89370400440532013000",
  "pay_1m7wvb3bsdsgqhzksxxwbk1970",
  "2030-01-01T00:00:00.000Z",
  "0x000000000000000000000000000000000000dEaD",
];

for (const text of WITHOUT) {
  Deno.test(`containsIban() finds nothing in ${JSON.stringify(text)}`, () => {
    assert.ok(!containsIban(text));
  });
}
