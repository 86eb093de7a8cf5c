/**
 * The rules of orders to a bank: each row breaks or just keeps one rule of a sound order. Their texts
 * in the characters of SEPA.
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

/** The member at fault; null: the order keeps all rules. */
type Field = string | null;

const SEPA: [criterion: string, change: Partial<PayoutOrder>, field: Field][] = [
  ["nothing", {}, null],
  ["a dollar", { currency: "USD" }, "currency"],
  ["the largest amount", { amount_minor: 99_999_999_999 }, null],
  ["one cent more", { amount_minor: 100_000_000_000 }, "amount_minor"],
  ["the largest instant amount", { amount_minor: 99_999_999_999, speed: "instant" }, null],
  ["one cent", { amount_minor: 1 }, null],
  ["no amount", { amount_minor: 0 }, "amount_minor"],
  ["a fraction", { amount_minor: 1.5 }, "amount_minor"],
  ["charges that the payer bears", { charges: "DEBT" }, "charges"],
  ["shared charges by their name of SWIFT", { charges: "SHAR" }, "charges"],
  ["a UETR", { uetr: SWIFT_PAYOUT.uetr }, "uetr"],
  ["an instant one", { speed: "instant" }, null],
  ["no remittance", { remittance: null }, null],
  ["140 characters", { remittance: { text: "a".repeat(140) } }, null],
  ["141 characters", { remittance: { text: "a".repeat(141) } }, "remittance.text"],
  ["141 after conversion", { remittance: { text: "a".repeat(139) + "ü" } }, "remittance.text"],
  ["a text without a letter", { remittance: { text: "--" } }, "remittance.text"],
  ["a creditor reference", { remittance: { reference: "RF18539007547034" } }, null],
  ["a wrong one", { remittance: { reference: "RF19539007547034" } }, "remittance.reference"],
  ["one in lower case", { remittance: { reference: "rf18539007547034" } }, "remittance.reference"],
  ["a name of 70 characters", { payee: { ...payee, name: "a".repeat(70) } }, null],
  ["a name of 71", { payee: { ...payee, name: "a".repeat(71) } }, "payee.name"],
  ["a name of 71 after conversion", { payee: { ...payee, name: "ß".repeat(36) } }, "payee.name"],
  ["an empty name", { payee: { ...payee, name: " " } }, "payee.name"],
  ["a name that becomes empty", { payee: { ...payee, name: "李明" } }, "payee.name"],
  ["a name in Greek", { payee: { ...payee, name: "Γιώργος" } }, null],
  ["a wrong IBAN", { payee: { ...payee, iban: "FR1420041010050500013M02607" } }, "payee.iban"],
  [
    "a bank outside SEPA",
    { payee: { ...payee, iban: "TR330006100519786457841326" } },
    "payee.iban",
  ],
  ["a BIC", { payee: { ...payee, bic: "BNPAFRPP" } }, null],
  ["a BIC of an overseas territory", { payee: { ...payee, bic: "BNPAGPGX" } }, null],
  ["a BIC of another country", { payee: { ...payee, bic: "COBADEFF" } }, "payee.bic"],
  ["a wrong BIC", { payee: { ...payee, bic: "BNPAFRP" } }, "payee.bic"],
  ["a payee in London without an address", {
    payee: { ...swift_payee, address: null },
  }, "payee.address"],
  ["a payee in London with an address", { payee: swift_payee }, null],
  ["an address without a town", {
    payee: { ...payee, address: { ...LONDON, city: "" } },
  }, "payee.address.city"],
];

for (const [criterion, change, field] of SEPA) {
  Deno.test(`payoutFault() by SEPA, ${criterion}: ${field ?? "sound"}`, () => {
    assert.equal(payoutFault({ ...SEPA_PAYOUT, ...change }, OWN_ACCOUNT)?.field ?? null, field);
  });
}

const IN_USD: OwnBankAccount = { ...OWN_ACCOUNT, currency: "USD" };

const SWIFT: [
  criterion: string,
  change: Partial<PayoutOrder>,
  field: Field,
  account?: OwnBankAccount,
][] = [
  ["nothing", {}, null],
  ["dollars from an account in dollars", { currency: "USD" }, null, IN_USD],
  ["dollars from an account in euros", { currency: "USD" }, "currency"],
  ["more than the limit of SEPA", { amount_minor: 999_999_999_999 }, null],
  ["charges of the payer", { charges: "DEBT" }, null],
  ["charges of the payee", { charges: "CRED" }, null],
  ["charges of SEPA", { charges: "SLEV" }, "charges"],
  ["an instant one", { speed: "instant" }, "speed"],
  ["no UETR", { uetr: null }, "uetr"],
  ["a UETR of version 1", { uetr: "eb6305c9-1f7f-11de-aed0-16487c27b42d" }, "uetr"],
  ["a UETR in upper case", { uetr: "EB6305C9-1F7F-49DE-AED0-16487C27B42D" }, "uetr"],
  ["no address", { payee: { ...swift_payee, address: null } }, "payee.address"],
  ["no address within the EEA", { payee }, null],
  ["a name of 140 characters", { payee: { ...swift_payee, name: "a".repeat(140) } }, null],
  ["a name of 141", { payee: { ...swift_payee, name: "a".repeat(141) } }, "payee.name"],
  ["a bank outside SEPA", {
    payee: { ...swift_payee, iban: "TR330006100519786457841326", address: LONDON },
  }, null],
];

for (const [criterion, change, field, account = OWN_ACCOUNT] of SWIFT) {
  Deno.test(`payoutFault() by SWIFT, ${criterion}: ${field ?? "sound"}`, () => {
    assert.equal(payoutFault({ ...SWIFT_PAYOUT, ...change }, account)?.field ?? null, field);
  });
}

const { payer, mandate } = COLLECTION;

const COLLECTIONS: [
  criterion: string,
  change: Partial<CollectionOrder>,
  field: Field,
  account?: Partial<OwnBankAccount>,
][] = [
  ["nothing", {}, null],
  ["an account without a creditor identifier", {}, "creditor_identifier", {
    creditor_identifier: null,
  }],
  ["a wrong creditor identifier", {}, "creditor_identifier", {
    creditor_identifier: "DE97ZZZ09999999999",
  }],
  ["another currency", { currency: "CHF" }, "currency", { currency: "CHF" }],
  ["the largest amount", { amount_minor: 99_999_999_999 }, null],
  ["one cent more", { amount_minor: 100_000_000_000 }, "amount_minor"],
  ["the own IBAN", { payer: { ...payer, iban: OWN_ACCOUNT.iban, bic: null } }, "payer.iban"],
  ["a payer without a name", { payer: { ...payer, name: "" } }, "payer.name"],
  ["a payer outside the EEA", {
    payer: { ...payer, iban: "CH9300762011623852957", bic: null },
  }, "payer.address"],
  ["our own account outside the EEA", {}, "payer.address", { iban: "CH9300762011623852957" }],
  ["a signature on the due date", { mandate: { ...mandate, signed_on: "2026-12-11" } }, null],
  ["a later signature", { mandate: { ...mandate, signed_on: "2026-12-12" } }, "mandate.signed_on"],
  ["a due date on a Saturday", { due_on: "2026-12-12" }, "due_on"],
  ["a due date on 1 May", { due_on: "2026-05-01" }, "due_on"],
  ["a due date on Whit Monday", { due_on: "2027-05-17" }, null],
];

for (const [criterion, change, field, account] of COLLECTIONS) {
  Deno.test(`collectionFault(), ${criterion}: ${field ?? "sound"}`, () => {
    const found = collectionFault({ ...COLLECTION, ...change }, { ...OWN_ACCOUNT, ...account });
    assert.equal(found?.field ?? null, field);
  });
}

const ADDRESSES: [criterion: string, change: Partial<PostalAddress>, field: Field][] = [
  ["hybrid with two lines", {}, null],
  ["hybrid with one line", { line2: null }, null],
  ["structured", { line1: null, line2: null }, null],
  ["structured without a postal code", { line1: null, line2: null, postal_code: null }, null],
  ["hybrid with the second line alone", { line1: null }, null],
  ["unstructured: no town", { city: "" }, "city"],
  ["unstructured: a town without a letter", { city: "-" }, "city"],
  ["unstructured: no country", { country: "" }, "country"],
  ["a country in words", { country: "United Kingdom" }, "country"],
  ["a country in lower case", { country: "gb" }, "country"],
  ["a line of 70 characters", { line1: "a".repeat(70) }, null],
  ["a line of 71: nobody splits it", { line1: "a".repeat(71) }, "line1"],
  ["a second line of 71", { line2: "a".repeat(71) }, "line2"],
  ["a town of 35 characters", { city: "a".repeat(35) }, null],
  ["a town of 36", { city: "a".repeat(36) }, "city"],
  ["a postal code of 17", { postal_code: "1".repeat(17) }, "postal_code"],
  ["an empty postal code", { postal_code: "" }, "postal_code"],
];

for (const [criterion, change, field] of ADDRESSES) {
  Deno.test(`addressFault(), ${criterion}: ${field ?? "sound"}`, () => {
    assert.equal(addressFault({ ...LONDON, ...change })?.field ?? null, field);
  });
}

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

/** Ids of mandates. */
const MANDATE_IDS: [id: string, is_sound: boolean][] = [
  ["a", true],
  ["ABC-1/2 (x)", true],
  ["a".repeat(35), true],
  ["a".repeat(36), false],
  ["", false],
  ["/a", false],
  ["a/", false],
  ["a//b", false],
  ["a_b", false],
  [" a", false],
  ["a ", false],
  ["a  b", false],
  ["ü", false],
  ["a\n", false],
];

for (const [id, is_sound] of MANDATE_IDS) {
  const verb = is_sound ? "accepts" : "refuses";
  Deno.test(`collectionFault() ${verb} a mandate ${JSON.stringify(id)}`, () => {
    const order = { ...COLLECTION, mandate: { ...mandate, id } };
    assert.equal(collectionFault(order, OWN_ACCOUNT) === null, is_sound);
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

const SAYS: [text: string, expected: boolean][] = [
  ["A", true],
  [". 7", true],
  ["", false],
  ["..", false],
  ["- / +", false],
];

for (const [text, expected] of SAYS) {
  Deno.test(`saysAnything() ${JSON.stringify(text)} is ${expected}`, () => {
    assert.equal(saysAnything(text), expected);
  });
}
