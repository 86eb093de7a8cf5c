/**
 * The fields of `POST /v1/payments`: the accepted and the refused values of each (contract §2). A
 * refusal is 400, names the field, and stores nothing.
 */

import assert from "node:assert/strict";
import { rowCounts } from "../support/database/payment_records.ts";
import {
  APPROVED,
  assertRefused,
  card,
  PAYMENTS,
  serviceCase,
} from "../support/service/service_case.ts";

const MAX = 999_999_999_999;

/** The text of `amount`, and the resulting amount or "refused". */
const AMOUNTS: [literal: string, result: number | "refused"][] = [
  ["1", 1],
  ["1000", 1000],
  [String(MAX), MAX],
  [" 7 ", 7],
  [String(MAX + 1), "refused"],
  ["9007199254740991", "refused"],
  ["0", "refused"],
  ["-0", "refused"],
  ["-1", "refused"],
  ["1.0", "refused"],
  ["1.5", "refused"],
  ["0.1", "refused"],
  ["1000.00", "refused"],
  ["1e3", "refused"],
  ["1E3", "refused"],
  ["10e-1", "refused"],
  ['"100"', "refused"],
  ['""', "refused"],
  ["null", "refused"],
  ["true", "refused"],
  ["[100]", "refused"],
  ["{}", "refused"],
];

serviceCase("POST /v1/payments checks the literal text of an amount", async (t, service) => {
  for (const path of [PAYMENTS, "/api-v1-sandbox/payments"]) {
    for (const field of ["amount", "amount_minor"]) {
      for (const [literal, result] of AMOUNTS) {
        await t.step(`${path} ${field}: ${literal} → ${result}`, async () => {
          const body = `{"${field}":${literal},"currency":"EUR"}`;
          const response = await service.call("POST", path, { body });
          if (result === "refused") return assertRefused(response, 400, "invalid_parameter", field);
          assert.equal(response.status, 201, response.text);
          assert.deepEqual([response.body.amount, response.body.amount_minor], [result, result]);
        });
      }
    }
  }
  const both: [body: string, param: string | null][] = [
    ['"amount":5,"amount_minor":5', null],
    ['"amount":5,"amount_minor":6', "amount_minor"],
    ['"amount_minor":5,"amount":6', "amount_minor"],
    ['"amount":5,"amount_minor":5.0', "amount_minor"],
    ['"amount":5,"amount_minor":null', "amount_minor"],
    ['"description":"none"', "amount"],
  ];
  for (const [members, param] of both) {
    await t.step(`${members} → ${param ?? "accepted"}`, async () => {
      const response = await service.call("POST", PAYMENTS, {
        body: `{"currency":"EUR",${members}}`,
      });
      if (param) return assertRefused(response, 400, "invalid_parameter", param);
      assert.equal(response.body.amount, 5);
    });
  }
});

/** Accepted fields, and the members of the response that show them. */
const TAKEN: [string, Record<string, unknown>, Record<string, unknown>][] = [
  ["currency in lower case", { currency: "eur" }, { currency: "EUR" }],
  ["currency in mixed case", { currency: "uSd" }, { currency: "USD" }],
  ["currency without decimals", { currency: "JPY" }, { currency: "JPY" }],
  ["a stablecoin currency", { currency: "usdc", method_kind: "stablecoin" }, { currency: "USDC" }],
  ["capability alone", { capability: "swift_payment" }, { method_kind: "swift" }],
  ["both kinds agreeing", { capability: "sepa_payment", method_kind: "sepa" }, {
    method_kind: "sepa",
  }],
  ["kind agreeing with the card", { ...card({}), method_kind: "card" }, { method_kind: "card" }],
  ["kind agreeing with the wallet", { ...APPROVED.stablecoin, capability: "stablecoin_payment" }, {
    method_kind: "stablecoin",
  }],
  ["the same person twice", { customer: { email: "a@b.co" }, payer: { email: "a@b.co" } }, {
    payer: { email: "a@b.co" },
  }],
  ["an empty metadata", { metadata: {} }, { metadata: {} }],
  ["metadata of 50 entries", { metadata: entries(50) }, { metadata: entries(50) }],
  ["a metadata key of 40", { metadata: { ["k".repeat(40)]: "v" } }, {}],
  ["a metadata value of 500", { metadata: { k: "v".repeat(500) } }, {}],
  ["an empty metadata value", { metadata: { k: "" } }, { metadata: { k: "" } }],
  ["metadata named as Object's members", { metadata: { constructor: "a", toString: "b" } }, {
    metadata: { constructor: "a", toString: "b" },
  }],
  ["a description of 500 characters beyond the BMP", { description: "\u{1f600}".repeat(500) }, {}],
  ["a card by manual settlement", { ...card({}), settlement: "manual" }, {
    status: "completed",
    settlement: "manual",
  }],
  ["no instrument by manual settlement", { settlement: "manual" }, { settlement: "manual" }],
  ["automatic capture of an IBAN", { ...APPROVED.sepa, capture: "automatic" }, {
    capture: "automatic",
    status: "completed",
  }],
  ["manual capture without an instrument", { capture: "manual" }, {
    capture: "manual",
    status: "pending",
  }],
  ["an empty description", { description: "" }, { description: "" }],
];

/** Refused fields, and the field that the error names. */
const REFUSED: [string, Record<string, unknown>, param: string][] = [
  ["no currency", { currency: undefined }, "currency"],
  ["an unknown currency", { currency: "ABC" }, "currency"],
  ["an unknown currency without an amount", { amount: undefined, currency: "ABC" }, "currency"],
  ["a long currency without an amount", { amount: undefined, currency: "x".repeat(9) }, "currency"],
  ["a currency of four letters", { currency: "EURO" }, "currency"],
  ["an empty currency", { currency: "" }, "currency"],
  ["a currency with a space", { currency: "EUR " }, "currency"],
  ["a currency as a number", { currency: 978 }, "currency"],
  ["a long s in the currency", { currency: "u\u017fd" }, "currency"],
  ["SEPA in dollars", { method_kind: "sepa", currency: "USD" }, "currency"],
  [
    "SEPA in dollars with its IBAN",
    { ...APPROVED.sepa, method_kind: "sepa", currency: "USD" },
    "currency",
  ],
  ["a card in USDC", { ...card({}), currency: "USDC" }, "currency"],
  ["SWIFT in USDT", { ...APPROVED.swift, currency: "USDT" }, "currency"],
  ["USDC without a kind", { currency: "USDC" }, "currency"],
  ["another asset than the currency", {
    wallet: { address: APPROVED.stablecoin.wallet, asset: "USDT" },
    currency: "USDC",
  }, "wallet.asset"],
  ["an unknown capability", { capability: "card" }, "capability"],
  ["an unknown kind", { method_kind: "card_payment" }, "method_kind"],
  ["kinds that differ", { capability: "card_payment", method_kind: "sepa" }, "method_kind"],
  ["capability against the card", { ...card({}), capability: "sepa_payment" }, "capability"],
  ["kind against the card", { ...card({}), method_kind: "swift" }, "method_kind"],
  ["kind against the IBAN", { ...APPROVED.sepa, method_kind: "card" }, "method_kind"],
  ["kind against the wallet", { ...APPROVED.stablecoin, method_kind: "sepa" }, "method_kind"],
  ["a card and an IBAN", { ...card({}), ...APPROVED.sepa }, "iban"],
  ["a card and a wallet", { ...card({}), ...APPROVED.stablecoin }, "wallet"],
  ["an IBAN and a wallet", { ...APPROVED.sepa, ...APPROVED.stablecoin }, "wallet"],
  ["persons that differ", { customer: { email: "a@b.co" }, payer: { email: "c@b.co" } }, "payer"],
  ["names that differ", {
    customer: { email: "a@b.co", name: "A" },
    payer: { email: "a@b.co", name: "B" },
  }, "payer"],
  ["ids that differ", {
    customer: { id: "a", email: "a@b.co" },
    payer: { id: "b", email: "a@b.co" },
  }, "payer"],
  ["an empty id", { customer: { id: "", email: "a@b.co" } }, "customer.id"],
  ["an id of 65 characters", { payer: { id: "u".repeat(65), email: "a@b.co" } }, "payer.id"],
  ["an id that is a number", { customer: { id: 7, email: "a@b.co" } }, "customer.id"],
  ["an id without an address", { customer: { id: "u1" } }, "customer.email"],
  ["no address", { customer: { name: "A" } }, "customer.email"],
  ["a bad address", { customer: { email: "nobody" } }, "customer.email"],
  ["a bad address of a payer", { payer: { email: "a@b" } }, "payer.email"],
  ["a person as text", { customer: "a@b.co" }, "customer"],
  ["a description of 501 characters beyond the BMP", {
    description: "\u{1f600}".repeat(501),
  }, "description"],
  ["a description of 501", { description: "d".repeat(501) }, "description"],
  ["a reference of 256", { reference: "r".repeat(256) }, "reference"],
  ["a reference as a number", { reference: 7 }, "reference"],
  ["metadata of 51 entries", { metadata: entries(51) }, "metadata"],
  ["a metadata value of 501", { metadata: { k: "v".repeat(501) } }, "metadata.k"],
  ["a metadata value as a number", { metadata: { k: 1 } }, "metadata.k"],
  ["a nested metadata value", { metadata: { k: { a: "b" } } }, "metadata.k"],
  ["metadata as an array", { metadata: ["a"] }, "metadata"],
  ["an unknown outcome", { outcome: "completed" }, "outcome"],
  ["an unknown settlement", { settlement: "later" }, "settlement"],
  ["an unknown capture", { capture: "later" }, "capture"],
  ["manual capture of an IBAN", { ...APPROVED.sepa, capture: "manual" }, "capture"],
  ["manual capture of a wallet", { ...APPROVED.stablecoin, capture: "manual" }, "capture"],
  ["manual capture by swift", { method_kind: "swift", capture: "manual" }, "capture"],
  ["manual capture of a refund", { capture: "manual", outcome: "refunded" }, "capture"],
  ["manual capture of a chargeback", { capture: "manual", outcome: "chargeback" }, "capture"],
  ["an IBAN with a wrong check digit", { iban: "DE88370400440532013000" }, "iban"],
  ["the same as an object", { iban: { iban: "DE88370400440532013000" } }, "iban.iban"],
  ["a bad BIC", { iban: { iban: "DE89370400440532013000", bic: "X" } }, "iban.bic"],
  ["an IBAN as a number", { iban: 89 }, "iban"],
  [
    "a wallet with a wrong checksum",
    { wallet: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD" },
    "wallet",
  ],
  ["the same as an object", {
    wallet: { address: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD" },
  }, "wallet.address"],
  ["an address of another network", {
    wallet: { address: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", network: "tron" },
  }, "wallet.address"],
  ["an unknown network", { wallet: { ...wallet(), network: "bitcoin" } }, "wallet.network"],
  ["an unknown asset", { wallet: { ...wallet(), asset: "DAI" } }, "wallet.asset"],
];

serviceCase("POST /v1/payments accepts these fields", async (t, service) => {
  for (const [name, body, shown] of TAKEN) {
    await t.step(name, async () => {
      const response = await service.pay(body);
      assert.equal(response.status, 201, response.text);
      assert.deepEqual({ ...response.body, ...shown }, response.body);
    });
  }
});

serviceCase("POST /v1/payments refuses these fields", async (t, service) => {
  for (const [name, body, param] of REFUSED) {
    await t.step(`${name} → ${param}`, async () => {
      const before = await rowCounts(service);
      const response = await service.pay(body, { idempotency_key: crypto.randomUUID() });
      assertRefused(response, 400, "invalid_parameter", param);
      assert.deepEqual(await rowCounts(service), before);
    });
  }
  await t.step("a metadata key of 41 characters is refused", async () => {
    const response = await service.pay({ metadata: { ["k".repeat(41)]: "v" } });
    assert.match(response.body.error.param, /^metadata/);
    assertRefused(response, 400, "invalid_parameter", response.body.error.param);
  });
});

function entries(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`key_${i}`, `${i}`]));
}

function wallet() {
  return { address: APPROVED.stablecoin.wallet };
}
