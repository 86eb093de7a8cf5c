/**
 * IBANs: published examples, every error in a single character, and limits of form and length.
 * BICs: their form, and the countries of IBANs that they fit. Creditor identifiers, whose check
 * digits follow those of IBANs: examples of national banks, and what the check digits find.
 */

import assert from "node:assert/strict";
import { isInEea, isInSepa } from "../../shared/core/bank_countries.ts";
import { bicFitsIban, isValidBic } from "../../shared/core/bic.ts";
import { isValidCreditorIdentifier } from "../../shared/core/creditor_identifier.ts";
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
    for (const separator of [" ", "", "-", "."]) {
      const spelt = text.trim().replaceAll(" ", separator);
      assert.ok(containsIban(`from ${spelt}, thanks`), spelt);
      assert.ok(containsIban(`{"iban":"${spelt}"}`), spelt);
    }
  });
}

Deno.test("containsIban() finds nothing in texts without an IBAN", () => {
  const texts = [
    ...["", "DE89", "order DE89 of 3704 pieces", "XDE89370400440532013000"],
    ...["DE88 3704 0044 0532 0130 00", "DE89  3704 0044 0532 0130 00"],
    ...["pay_1m7wvb3bsdsgqhzksxxwbk1970", "2030-01-01T00:00:00.000Z"],
    "0x000000000000000000000000000000000000dEaD",
  ];
  assert.deepEqual(texts.filter(containsIban), []);
});

// Digits are allowed in the prefix since 2014.
const BICS = ["COBADEFF", "COBADEFFXXX", "BNPAFRPP123", "TRWIBEB1", "E097AEXX"];
const NO_BICS = ["", "COBADEF", "COBADEFFX", "COBADEFFXXXX", "COBA12FF", "cobadeff", "COBADEFF\n"];
Deno.test("isValidBic() takes 8 or 11 characters of the form", () => {
  assert.deepEqual([...BICS, ...NO_BICS].filter(isValidBic), BICS);
});

/** Country of the IBAN, countries of BICs that fit it, and countries of BICs that do not. */
const COUNTRIES: [iban: string, fits: string, fits_not: string][] = [
  ["DE", "DE", "AT FR LU"],
  ["FR", "FR GP MQ GF RE YT PM BL MC MF NC PF WF TF", "BE GG"],
  ["MC", "MC FR", "IT"],
  ["GB", "GB JE GG IM", "IE GI FR"],
  ["IE", "IE GB", "JE"],
  ["DK", "DK FO GL", "SE"],
  ["FO", "FO", "DK"],
  ["FI", "FI AX", "SE"],
  ["SM", "SM", "IT"],
  ["VA", "VA", "IT"],
  ["GI", "GI", "GB"],
];

for (const [iban, fits, fits_not] of COUNTRIES) {
  Deno.test(`bicFitsIban() an IBAN of ${iban} has banks of ${fits}`, () => {
    const fitsBank = (country: string) => bicFitsIban(`TEST${country}22`, `${iban}00`);
    for (const country of fits.split(" ")) assert.ok(fitsBank(country), country);
    for (const country of fits_not.split(" ")) assert.ok(!fitsBank(country), country);
  });
}

Deno.test("isInSepa() and isInEea() know the countries of each area", () => {
  const countries = "DE NO IS LI HR CH GB MC SM VA AD RS GI FO TR UA BR".split(" ");
  assert.equal(countries.filter(isInSepa).join(" "), "DE NO IS LI HR CH GB MC SM VA AD RS GI");
  assert.equal(countries.filter(isInEea).join(" "), "DE NO IS LI HR");
});

Deno.test("isValidCreditorIdentifier() accepts those of national banks, with any business code", () => {
  const texts = [
    ...["DE98ZZZ09999999999", "AT61ZZZ01234567890", "BE68ZZZ0123456789", "CH51ZZZ12345678901"],
    ...["ES50ZZZM23456789", "FR72ZZZ123456", "IT66ZZZA1B2C3D4E5F6G7H8", "NL79ZZZ999999990000"],
  ];
  for (const text of texts) {
    for (const code of ["ZZZ", "001", "ABC"]) {
      const identifier = text.slice(0, 4) + code + text.slice(7);
      assert.ok(isValidCreditorIdentifier(identifier), identifier);
    }
  }
});

const REFUSED_CREDITORS: [text: string, reason: string][] = [
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

for (const [text, reason] of REFUSED_CREDITORS) {
  Deno.test(`isValidCreditorIdentifier() refuses ${reason}`, () => {
    assert.equal(isValidCreditorIdentifier(text), false);
  });
}
