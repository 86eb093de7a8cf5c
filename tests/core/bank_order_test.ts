/**
 * The rules of orders to a bank: each row breaks or just keeps one rule of a sound order. Their
 * texts in the characters of SEPA.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import {
  accountFault,
  addressFault,
  collectionFault,
  type CollectionOrder,
  needsAddress,
  type OwnBankAccount,
  payoutFault,
  type PayoutOrder,
  type PostalAddress,
} from "../../shared/core/bank_order.ts";
import { saysAnything, toSepaText } from "../../shared/core/sepa_text.ts";
import {
  COLLECTION,
  LONDON,
  OWN_ACCOUNT,
  SEPA_PAYOUT,
  SWIFT_PAYOUT,
} from "../support/connectors/bank_case.ts";

const { payee } = SEPA_PAYOUT;
const swift_payee = SWIFT_PAYOUT.payee;

/**
 * Registers a test for each change of a sound order: the member at fault, or null if the order
 * keeps all rules.
 */
function testFaults<T>(
  name: string,
  find: (change: T) => { field: string } | null,
  rows: readonly [field: string | null, ...changes: T[]][],
): void {
  for (const [field, ...changes] of rows) {
    for (const change of changes) {
      Deno.test(`${name} ${JSON.stringify(change).slice(0, 90)}: ${field ?? "sound"}`, () => {
        assert.equal(find(change)?.field ?? null, field);
      });
    }
  }
}

const long = (length: number) => "a".repeat(length);
const text = (text: string) => ({ remittance: { text } });
const to = (members: Partial<PayoutOrder["payee"]>) => ({ payee: { ...payee, ...members } });
const bySwift = (members: Partial<PayoutOrder["payee"]>) => ({
  payee: { ...swift_payee, ...members },
});
const TURKEY = "TR330006100519786457841326";
const SWITZERLAND = "CH9300762011623852957";

testFaults<Partial<PayoutOrder>>(
  "payoutFault() by SEPA",
  (change) => payoutFault({ ...SEPA_PAYOUT, ...change }, OWN_ACCOUNT),
  [
    [null, {}, { speed: "instant" }, { remittance: null }, bySwift({})],
    ["currency", { currency: "USD" }],
    [null, { amount_minor: 1 }, { amount_minor: 99_999_999_999 }],
    [null, { amount_minor: 99_999_999_999, speed: "instant" }],
    ["amount_minor", { amount_minor: 0 }, { amount_minor: 1.5 }, { amount_minor: 100_000_000_000 }],
    ["charges", { charges: "DEBT" }, { charges: "SHAR" }],
    ["uetr", { uetr: SWIFT_PAYOUT.uetr }],
    // A text counts as the bank gets it: "ü" becomes two characters.
    [null, text(long(140))],
    ["remittance.text", text(long(141)), text(`${long(139)}ü`), text("--")],
    [null, { remittance: { reference: "RF18539007547034" } }],
    ["remittance.reference", { remittance: { reference: "RF19539007547034" } }],
    ["remittance.reference", { remittance: { reference: "rf18539007547034" } }],
    [null, to({ name: long(70) }), to({ name: "Γιώργος" })],
    ["payee.name", to({ name: long(71) }), to({ name: "ß".repeat(36) })],
    ["payee.name", to({ name: " " }), to({ name: "李明" })],
    ["payee.iban", to({ iban: "FR1420041010050500013M02607" }), to({ iban: TURKEY })],
    [null, to({ bic: "BNPAFRPP" }), to({ bic: "BNPAGPGX" })],
    ["payee.bic", to({ bic: "COBADEFF" }), to({ bic: "BNPAFRP" })],
    ["payee.address", bySwift({ address: null })],
    ["payee.address.city", to({ address: { ...LONDON, city: "" } })],
  ],
);

testFaults<Partial<PayoutOrder>>(
  "payoutFault() by SWIFT",
  (change) => payoutFault({ ...SWIFT_PAYOUT, ...change }, OWN_ACCOUNT),
  [
    [null, {}, { amount_minor: 999_999_999_999 }, { charges: "DEBT" }, { charges: "CRED" }],
    ["currency", { currency: "USD" }],
    ["charges", { charges: "SLEV" }],
    ["speed", { speed: "instant" }],
    ["uetr", { uetr: null }, { uetr: "eb6305c9-1f7f-11de-aed0-16487c27b42d" }],
    ["uetr", { uetr: "EB6305C9-1F7F-49DE-AED0-16487C27B42D" }],
    ["payee.address", bySwift({ address: null })],
    // Within the EEA no address is needed.
    [null, { payee }, bySwift({ name: long(140) }), bySwift({ iban: TURKEY, address: LONDON })],
    ["payee.name", bySwift({ name: long(141) })],
  ],
);
Deno.test("payoutFault() by SWIFT, dollars from an account in dollars: sound", () => {
  const order = { ...SWIFT_PAYOUT, currency: "USD" };
  assert.equal(payoutFault(order, { ...OWN_ACCOUNT, currency: "USD" }), null);
});

const { payer, mandate } = COLLECTION;
const from = (members: Partial<CollectionOrder["payer"]>) => ({ payer: { ...payer, ...members } });
const withMandate = (members: Partial<CollectionOrder["mandate"]>) => ({
  mandate: { ...mandate, ...members },
});

testFaults<Partial<CollectionOrder>>(
  "collectionFault()",
  (change) => collectionFault({ ...COLLECTION, ...change }, OWN_ACCOUNT),
  [
    [null, {}, { amount_minor: 99_999_999_999 }, { due_on: "2027-05-17" }],
    ["amount_minor", { amount_minor: 100_000_000_000 }],
    ["payer.iban", from({ iban: OWN_ACCOUNT.iban, bic: null })],
    ["payer.name", from({ name: "" })],
    ["payer.address", from({ iban: SWITZERLAND, bic: null })],
    // The mandate is signed on the due date at the latest.
    [null, withMandate({ signed_on: "2026-12-11" })],
    ["mandate.signed_on", withMandate({ signed_on: "2026-12-12" })],
    ["due_on", { due_on: "2026-12-12" }, { due_on: "2026-05-01" }],
    [null, ...["a", "ABC-1/2 (x)", long(35)].map((id) => withMandate({ id }))],
    [
      "mandate.id",
      ...["", long(36), "/a", "a/", "a//b", "a_b", " a", "a ", "a  b", "ü", "a\n"].map((id) =>
        withMandate({ id })
      ),
    ],
  ],
);
testFaults<Partial<OwnBankAccount>>(
  "collectionFault() for an account with",
  (account) =>
    collectionFault(
      { ...COLLECTION, currency: account.currency ?? "EUR" },
      { ...OWN_ACCOUNT, ...account },
    ),
  [
    ["creditor_identifier", { creditor_identifier: null }],
    ["creditor_identifier", { creditor_identifier: "DE97ZZZ09999999999" }],
    ["currency", { currency: "CHF" }],
    ["payer.address", { iban: SWITZERLAND }],
  ],
);

testFaults<Partial<PostalAddress>>(
  "addressFault()",
  (change) => addressFault({ ...LONDON, ...change }),
  [
    [null, {}, { line1: null }, { line2: null }, { line1: null, line2: null }],
    [null, { line1: null, line2: null, postal_code: null }],
    ["city", { city: "" }, { city: "-" }, { city: long(36) }],
    ["country", { country: "" }, { country: "United Kingdom" }, { country: "gb" }],
    // Nobody splits a long line.
    ["line1", { line1: long(71) }],
    ["line2", { line2: long(71) }],
    [null, { line1: long(70) }, { city: long(35) }],
    ["postal_code", { postal_code: "1".repeat(17) }, { postal_code: "" }],
  ],
);

const NEEDS: [ibans: string[], expected: boolean][] = [
  [["DE89370400440532013000"], false],
  [["NO9386011117947"], false],
  [["GB82WEST12345698765432"], true],
  [["CH9300762011623852957"], true],
  [["DE89370400440532013000", "CH9300762011623852957"], true],
];

for (const [ibans, expected] of NEEDS) {
  Deno.test(`needsAddress() ${ibans.join(" and ")}: ${expected}`, () => {
    assert.equal(needsAddress(...ibans), expected);
  });
}

Deno.test("accountFault() checks our own account, which needs no address", () => {
  assert.equal(accountFault({ ...OWN_ACCOUNT, address: null }, "sepa"), null);
  assert.equal(accountFault({ ...OWN_ACCOUNT, bic: "BNPAFRPP" }, "sepa")?.field, "account.bic");
});

const CONVERTED: [text: string, expected: string][] = [
  ["Müller & Söhne GmbH", "Mueller + Soehne GmbH"],
  ["Größe ÄÖÜ ẞ", "Groesse AeOeUe SS"],
  ["Mu\u0308ller", "Mueller"], // a letter and a mark
  ["Bärbel Garçon", "Baerbel Garcon"],
  ["François Lefèvre-Béziers", "Francois Lefevre-Beziers"],
  ["Núñez Ibáñez", "Nunez Ibanez"],
  ["Åse Ørsted Æbelø", "Ase Orsted Abelo"],
  ["Łukasz Żółć", "Lukasz Zolc"],
  ["Đorđe Šarić", "Dorde Saric"],
  ["Ştefan Țurcanu", "Stefan Turcanu"],
  ["Őrsi Tűz", "Orsi Tuz"],
  ["Þór Ðúr", "Tor Dur"],
  ["İpek Işık ığ", "Ipek Isik ig"],
  ["Γιώργος Θεός Ψυχή", "Giorgos THeos PSychi"],
  ["Иван Щърбов", "Ivan SHTarbov"],
  ["Ђорђе Љубић Њега", "DJordje LJubic NJega"],
  ["Їжак Євген", "Izhak YEvgen"],
  ["O’Brien “Sons”", "O'Brien 'Sons'"],
  ["A – B — C", "A - B - C"],
  ["a_b~c|d\\e", "a-b-c/d/e"],
  ["[x] {y} <z>", "(x) (y) (z)"],
  ["me@example.org; you", "me(at)example.org, you"],
  ["100 € !", "100 E ."],
  ["½ of 3²", "1/2 of 32"],
  ["ﬁne Ｗｉｄｅ", "fine Wide"],
  ["  two\t\n spaces  ", "two spaces"],
  ["non\u00a0breaking", "non breaking"],
  ["李明", ".."],
  ["😀", "."],
  ["\u0000\u0007", ".."],
  ["\u0301", ""],
  ["abc XYZ 019 /-?:().,'+", "abc XYZ 019 /-?:().,'+"],
];

for (const [text, expected] of CONVERTED) {
  Deno.test(`toSepaText() ${JSON.stringify(text)} is ${JSON.stringify(expected)}`, () => {
    assert.equal(toSepaText(text), expected);
  });
}

Deno.test("toSepaText() gives only characters of SEPA, and changes none of its own texts", () => {
  fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => {
    const converted = toSepaText(text);
    assert.match(converted, /^[A-Za-z0-9/\-?:().,'+ ]*$/);
    assert.equal(toSepaText(converted), converted);
  }));
});

Deno.test("saysAnything() needs a letter or a digit", () => {
  const found = ["A", ". 7", "", "..", "- / +"].filter(saysAnything);
  assert.deepEqual(found, ["A", ". 7"]);
});
