/** Reading an instrument: its kind, its stored members, and refused instruments (contract §2). */

import assert from "node:assert/strict";
import { capabilityOf, readInstrument } from "../../shared/domain/providers/instrument.ts";
import { METHOD_KINDS } from "../../shared/core/vocabulary.ts";
import { CreatePaymentBody } from "../../shared/schema/payment.ts";
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

Deno.test("readInstrument() keeps only the public parts of a card and of an IBAN", () => {
  assert.deepEqual(read({ card: { ...CARD, postal_code: "10115" } }).method, {
    type: "card",
    card: { brand: "visa", last4: "4242", exp_month: 2, exp_year: 2026 },
  });
  const iban = { iban: "fr14 2004 1010 0505 0001 3m02 606", holder_name: "Ada" };
  assert.deepEqual(read({ iban }).method, {
    type: "sepa",
    iban: { country: "FR", last4: "2606" },
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
