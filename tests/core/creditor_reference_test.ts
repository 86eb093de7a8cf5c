/**
 * References of bank transfers: their check digits, and where they are found in free text. And the
 * text of EPC QR codes, line by line as in EPC069-12.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { creditorReference, findReference } from "../../shared/core/creditor_reference.ts";
import { epcQr } from "../../shared/core/epc_qr.ts";
import { idGenerator } from "../../shared/core/ids.ts";

const SEED = Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31);

const ID = "pay_1m7wvb3bsdsgqhzksxxwbk1970";
const REFERENCE = "RF33MSSYZKCZNCNZE40R";

Deno.test("creditorReference() is the same for the same payment", () => {
  assert.equal(creditorReference(ID), REFERENCE);
});

Deno.test("creditorReference() differs for payments of the same moment", () => {
  const newId = idGenerator(0);
  const references = new Set(
    Array.from({ length: 20_000 }, () => creditorReference(newId("pay_"))),
  );
  assert.equal(references.size, 20_000);
});

/** [how the text came, the text, whether it has the reference] */
const TEXTS: [name: string, text: string, is_found: boolean][] = [
  ["alone", "RF33MSSYZKCZNCNZE40R", true],
  ["in groups", "RF33 MSSY ZKCZ NCNZ E40R", true],
  ["in lower case", "rf33mssyzkczncnze40r", true],
  ["cut by line breaks", "RF33MSSY\nZKCZNCN\r\n ZE40R", true],
  ["with punctuation", "Ref.: RF33-MSSY/ZKCZ.NCNZ,E40R.", true],
  ["after a word", "invoiceRF33MSSYZKCZNCNZE40R", true],
  ["before a word", "RF33MSSYZKCZNCNZE40Rthanks", true],
  ["between digits", "2026 RF33MSSYZKCZNCNZE40R 4711", true],
  ["after another RF", "RF RF33MSSYZKCZNCNZE40R", true],
  ["after a reference of another creditor", "RF18539007547034 RF33MSSYZKCZNCNZE40R", true],
  ["with wrong check digits", "RF34MSSYZKCZNCNZE40R", false],
  ["with a changed character", "RF33MSSYZKCZNCNZE41R", false],
  ["with two characters swapped", "RF33MSSYZKCZNCNEZ40R", false],
  ["without its last character", "RF33MSSYZKCZNCNZE40", false],
  ["without RF", "33MSSYZKCZNCNZE40R", false],
  ["a reference of another creditor", "RF18 5390 0754 7034", false],
  ["nothing", "", false],
];

for (const [name, text, is_found] of TEXTS) {
  Deno.test(`findReference() ${is_found ? "finds" : "refuses"} one ${name}`, () => {
    assert.equal(findReference(text), is_found ? REFERENCE : null);
  });
}

Deno.test("findReference() refuses check digits that are right only by the remainder", () => {
  const withDigits = (digits: string) => {
    for (let n = 0;; n++) {
      const reference = creditorReference(`pay_${n}`);
      if (reference.startsWith(`RF${digits}`)) return reference.slice(4);
    }
  };
  for (const [right, other] of [["97", "00"], ["98", "01"], ["02", "99"]] as const) {
    const body = withDigits(right);
    assert.equal(findReference(`RF${right}${body}`), `RF${right}${body}`);
    assert.equal(findReference(`RF${other}${body}`), null);
  }
});

const Id = fc.string({ minLength: 1, maxLength: 30 });
const Gap = fc.constantFrom("", "", "", " ", "\n", "\r\n", " - ", ".", "/");

Deno.test(`findReference() finds each reference in mangled text (seed ${SEED})`, () => {
  const Around = fc.string({ unit: "binary", maxLength: 20 })
    .filter((text) => !/r[^a-z0-9]*f/i.test(text));
  const Gaps = fc.array(Gap, { minLength: 20, maxLength: 20 });
  fc.assert(
    fc.property(Id, Gaps, Around, Around, fc.boolean(), (id, gaps, before, after, is_lower) => {
      const reference = creditorReference(id);
      const mangled = [...reference].map((character, i) => character + gaps[i]).join("");
      const text = `${before}${is_lower ? mangled.toLowerCase() : mangled}${after}`;
      assert.equal(findReference(text), reference);
    }),
    { seed: SEED },
  );
});

Deno.test(`findReference() finds no reference with one wrong character (seed ${SEED})`, () => {
  const Other = fc.constantFrom(..."0123456789ABCDEFGHJKMNPQRSTVWXYZ");
  fc.assert(
    fc.property(Id, fc.integer({ min: 2, max: 19 }), Other, (id, at, other) => {
      const reference = creditorReference(id);
      const isDigit = (character = "") => /\d/.test(character);
      // A digit in place of a letter, or the reverse, shifts the rest and can stay undetected.
      fc.pre(reference[at] !== other && isDigit(reference[at]) === isDigit(other));
      assert.equal(findReference(reference.slice(0, at) + other + reference.slice(at + 1)), null);
    }),
    { seed: SEED, numRuns: 2000 },
  );
});

const TRANSFER = {
  iban: "DE09000000000000000001",
  bic: "PAYSDEF0",
  holder_name: "Payments Sandbox",
  reference: "RF33MSSYZKCZNCNZE40R",
  amount_minor: 1234,
  currency: "EUR",
};

Deno.test("epcQr() has the lines of version 002", () => {
  assert.equal(
    epcQr(TRANSFER),
    `BCD
002
1
SCT
PAYSDEF0
Payments Sandbox
DE09000000000000000001
EUR12.34

RF33MSSYZKCZNCNZE40R`,
  );
});

Deno.test("epcQr() has the amount up to its limit, in euros only", () => {
  const lineOf = (amount_minor: number, currency = "EUR") =>
    epcQr({ ...TRANSFER, amount_minor, currency })?.split("\n")[7] ?? null;
  assert.deepEqual(
    [1, 10, 100, 123_456, 99_999_999_999, 100_000_000_000].map((amount) => lineOf(amount)),
    ["EUR0.01", "EUR0.10", "EUR1.00", "EUR1234.56", "EUR999999999.99", null],
  );
  assert.equal(lineOf(1, "CHF"), null);
});

Deno.test("epcQr() cuts a name at 70 characters", () => {
  const holder_name = "é".repeat(71);
  assert.equal(epcQr({ ...TRANSFER, holder_name })?.split("\n")[5], "é".repeat(70));
});
