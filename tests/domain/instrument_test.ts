/** Reading an instrument: its kind, its stored members, and refused instruments (contract §2). */

import assert from "node:assert/strict";
import { capabilityOf, readInstrument } from "../../shared/domain/providers/instrument.ts";
import { METHOD_KINDS } from "../../shared/core/vocabulary.ts";
import { CreatePaymentBody } from "../../shared/schema/payment.ts";
import { TEST_TOKENS } from "../../shared/domain/providers/test_values.ts";
import { MAX_RETURN_URL } from "../../shared/schema/limits.ts";
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

const REFUSED: [string, Record<string, unknown>, param: string][] = [
  ["a real card", { card: { ...CARD, number: "4111111111111111" } }, "card.number"],
  ["a past month", { card: { ...CARD, exp_month: 1 } }, "card.exp_month"],
  ["a past year", { card: { ...CARD, exp_year: 2025, exp_month: 12 } }, "card.exp_year"],
  ["four digits of CVC", { card: { ...CARD, cvc: "1234" } }, "card.cvc"],
  ["two instruments", { card: CARD, wallet: WALLET }, "wallet"],
  ["three instruments", { card: CARD, iban: "GB82WEST12345698765432", wallet: WALLET }, "iban"],
  ["kinds that differ", { capability: "card_payment", method_kind: "sepa" }, "method_kind"],
  ["a kind against the card", { card: CARD, method_kind: "sepa" }, "method_kind"],
  ["a capability against the wallet", { wallet: WALLET, capability: "card_payment" }, "capability"],
  ["SEPA in GBP", { method_kind: "sepa", currency: "GBP" }, "currency"],
  ["a card in USDT", { card: CARD, currency: "USDT" }, "currency"],
  ["an asset against the currency", {
    wallet: { address: WALLET, asset: "USDT" },
    currency: "USDC",
  }, "wallet.asset"],
  [
    "an address of another network",
    { wallet: { address: WALLET, network: "solana" } },
    "wallet.address",
  ],
  ["a wrong IBAN", { iban: "FR1520041010050500013M02606" }, "iban.iban"],
];

for (const [name, body, param] of REFUSED) {
  Deno.test(`readInstrument() refuses ${name}`, () => {
    assert.equal(refusalOf(() => read(body)), `invalid_parameter ${param}`);
  });
}

Deno.test("readInstrument() accepts a card until the last millisecond of its month, in UTC", () => {
  const end = Date.parse("2026-03-01T00:00:00.000Z");
  assert.equal(read({ card: CARD }, false, end - 1).kind, "card");
  assert.equal(
    refusalOf(() => read({ card: CARD }, false, end)),
    "invalid_parameter card.exp_month",
  );
});

Deno.test("readInstrument() refuses only card numbers in live mode", () => {
  assert.equal(refusalOf(() => read({ card: CARD }, true)), "invalid_parameter card.number");
  assert.equal(read({ iban: "GB82WEST12345698765432" }, true).kind, "swift");
  assert.equal(read({ wallet: WALLET }, true).kind, "stablecoin");
});

Deno.test("readInstrument() names card.token if a live key sends a card number", () => {
  assert.throws(() => read({ card: CARD }, true), /"card\.token"/);
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

/** Cards that the schema refuses, with the field that it names. */
const WRONG_CARDS: [name: string, card: Record<string, unknown>, param: string][] = [
  ["a token beside a whole card", { ...CARD, token: "pm_card_visa" }, "card.token"],
  ["a token beside a number", { number: CARD.number, token: "pm_card_visa" }, "card.token"],
  ["a token beside a postal code", { postal_code: "1", token: "pm_card_visa" }, "card.token"],
  ["a token of another form", { token: "tok_visa" }, "card.token"],
  ["a token without its name", { token: "pm_" }, "card.token"],
  ["a token with a space", { token: "pm_card visa" }, "card.token"],
  ["nothing", {}, "card.number"],
  ["a number alone", { number: CARD.number }, "card.exp_month"],
  ["no year", { number: CARD.number, exp_month: 2, cvc: "123" }, "card.exp_year"],
  ["no CVC", { number: CARD.number, exp_month: 2, exp_year: 2026 }, "card.cvc"],
];

for (const [name, card, param] of WRONG_CARDS) {
  Deno.test(`CreatePaymentBody refuses a card with ${name}: ${param}`, () => {
    const { error } = CreatePaymentBody.safeParse({ amount: 1, currency: "EUR", card });
    assert.deepEqual(error?.issues.map(({ path }) => path.join(".")), [param]);
  });
}

/** Addresses to which a payer can come back, and whether the schema accepts them. */
const RETURN_URLS: [url: string, is_valid: boolean][] = [
  ["https://shop.example/back?order=7", true],
  ["http://localhost:3000/back", true],
  ["http://127.0.0.1/back", true],
  ["http://[::1]:8000/", true],
  ["http://shop.example/back", false],
  ["http://localhost.shop.example/", false],
  ["https://user@shop.example/", false],
  ["https://:secret@shop.example/", false],
  ["javascript:alert(1)", false],
  ["/back", false],
  ["", false],
  [`https://shop.example/${"x".repeat(MAX_RETURN_URL - 20)}`, false],
  [`https://shop.example/${"x".repeat(MAX_RETURN_URL - 21)}`, true],
];

for (const [url, is_valid] of RETURN_URLS) {
  const name = url.length > 50 ? `${url.slice(0, 30)}… of ${url.length}` : url;
  Deno.test(`CreatePaymentBody ${is_valid ? "accepts" : "refuses"} return_url "${name}"`, () => {
    const body = { amount: 1, currency: "EUR", return_url: url };
    assert.equal(CreatePaymentBody.safeParse(body).success, is_valid);
  });
}

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

Deno.test("readInstrument() does not repeat a refused card number", () => {
  const number = "4111 1111 1111 1111";
  assert.throws(() => read({ card: { ...CARD, number } }), (error: Error) => {
    assert.ok(!/4111|1111/.test(`${error.message} ${JSON.stringify(error)}`));
    return true;
  });
});

for (const kind of METHOD_KINDS) {
  Deno.test(`capabilityOf() ${kind} is ${kind}_payment`, () => {
    assert.equal(capabilityOf(kind), `${kind}_payment`);
  });
}
