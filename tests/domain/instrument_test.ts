/**
 * Reading an instrument: its kind and its stored members (contract §2). create_body_test.ts has the
 * refused ones.
 */

import assert from "node:assert/strict";
import { capabilityOf, readInstrument } from "../../shared/domain/providers/instrument.ts";
import { METHOD_KINDS } from "../../shared/core/vocabulary.ts";
import { CreatePaymentBody } from "../../shared/schema/payment.ts";
import { TEST_TOKENS } from "../../shared/domain/providers/test_values.ts";
import { NOW_MS, refusalOf } from "../support/domain/decided_change.ts";

const WALLET = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
const CARD = { number: "4242424242424242", exp_month: 2, exp_year: 2026, cvc: "123" };

function read(body: Record<string, unknown>, livemode = false, at_ms = NOW_MS) {
  const parsed = CreatePaymentBody.parse({ amount: 1, currency: "EUR", ...body });
  return readInstrument(parsed, livemode, at_ms);
}

const READ: [string, Record<string, unknown>, kind: string, behaviour: string | null][] = [
  ["nothing", {}, "card", null],
  ["a capability", { capability: "swift_payment" }, "swift", null],
  ["a kind", { method_kind: "stablecoin" }, "stablecoin", null],
  ["a card", { card: CARD }, "card", "approve"],
  ["an IBAN in EUR", { iban: "FR1420041010050500013M02606" }, "sepa", "approve"],
  ["an IBAN in USD", { iban: "FR1420041010050500013M02606", currency: "USD" }, "swift", "approve"],
  [
    "an IBAN by swift in EUR",
    { iban: "FR1420041010050500013M02606", method_kind: "swift" },
    "swift",
    "approve",
  ],
  ["GB82 in EUR", { iban: "GB82WEST12345698765432" }, "swift", "approve"],
  [
    "GB82 by sepa",
    { iban: "GB82WEST12345698765432", capability: "sepa_payment" },
    "sepa",
    "approve",
  ],
  ["DE00", { iban: "DE00000000000000000099" }, "sepa", "bank_return"],
  [
    "DE00 by swift",
    { iban: "DE00000000000000000099", method_kind: "swift" },
    "swift",
    "bank_return",
  ],
  ["a wallet", { wallet: WALLET }, "stablecoin", "approve"],
  [
    "a reverting wallet",
    { wallet: "0x0000000000000000000000000000000000000bad" },
    "stablecoin",
    "revert",
  ],
];

for (const [name, body, kind, behaviour] of READ) {
  Deno.test(`readInstrument() of ${name} is ${kind}, ${behaviour}`, () => {
    const instrument = read(body);
    assert.deepEqual([instrument.kind, instrument.behaviour], [kind, behaviour]);
    assert.equal(instrument.method?.type ?? kind, kind);
  });
}

Deno.test("readInstrument() refuses only card numbers in live mode", () => {
  assert.equal(refusalOf(() => read({ card: CARD }, true)), "invalid_parameter card.number");
  assert.equal(read({ iban: "GB82WEST12345698765432" }, true).kind, "swift");
  assert.equal(read({ wallet: WALLET }, true).kind, "stablecoin");
});

/** Each test token, with the members that a response shows and its behaviour. */
const TOKENS: [token: string, brand: string, last4: string, behaviour: string][] = [
  ["pm_card_visa", "visa", "4242", "approve"],
  ["pm_card_mastercard", "mastercard", "4444", "approve"],
  ["pm_card_amex", "amex", "0005", "approve"],
  ["pm_card_chargeDeclined", "visa", "0002", "decline"],
  ["pm_card_chargeDeclinedInsufficientFunds", "visa", "9995", "no_funds"],
  ["pm_card_authenticationRequired", "visa", "3184", "authenticate"],
  ["pm_card_late", "visa", "0119", "late"],
  ["pm_card_createDispute", "visa", "0259", "dispute"],
];

for (const [token, brand, last4, behaviour] of TOKENS) {
  Deno.test(`readInstrument() of ${token} is ${brand} ${last4}, ${behaviour}`, () => {
    assert.deepEqual(read({ card: { token } }), {
      kind: "card",
      method: { type: "card", card: { brand, last4, exp_month: 12, exp_year: 2040 } },
      behaviour,
    });
  });
}

Deno.test("TEST_TOKENS has the published tokens and no other", () => {
  assert.deepEqual(Object.keys(TEST_TOKENS).sort(), TOKENS.map(([token]) => token).sort());
});

Deno.test("readInstrument() leaves a token of a live card to the provider", () => {
  for (const token of ["pm_1NxYz", "pm_card_visa"]) {
    assert.deepEqual(read({ card: { token } }, true), {
      kind: "card",
      method: null,
      behaviour: null,
      token,
    });
  }
});

Deno.test("readInstrument() keeps only the public parts of a card and of an IBAN", () => {
  assert.deepEqual(read({ card: { ...CARD, postal_code: "10115" } }).method, {
    type: "card",
    card: { brand: "visa", last4: "4242", exp_month: 2, exp_year: 2026 },
  });
  const iban = { iban: "fr14 2004 1010 0505 0001 3m02 606", holder_name: "Ada" };
  assert.deepEqual(read({ iban }).method, {
    type: "sepa",
    iban: { country: "FR", last4: "2606" },
    mandate: null,
    due_on: null,
  });
});

for (const kind of METHOD_KINDS) {
  Deno.test(`capabilityOf() ${kind} is ${kind}_payment`, () => {
    assert.equal(capabilityOf(kind), `${kind}_payment`);
  });
}
