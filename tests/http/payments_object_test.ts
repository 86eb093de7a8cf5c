/**
 * The payment object in a response: its members, their order and their values, for each kind of
 * instrument and both forms of the request (contract §2).
 */

import assert from "node:assert/strict";
import { BASE_URL } from "../support/service/service.ts";
import { APPROVED, card, PAYMENTS, serviceCase } from "../support/service/service_case.ts";

const MEMBERS = "id object status amount amount_minor currency amount_refunded amount_refunding " +
  "amount_captured amount_disputed amount_received capability method_kind method customer payer " +
  "description reference metadata next_action return_url capture capture_before settlement " +
  "failure_code failure_message advice return_code livemode sequence created_at updated_at " +
  "completed_at cancelled_at";
const AT = Date.parse("2026-03-04T05:06:07.089Z");
const AT_TEXT = "2026-03-04T05:06:07.089Z";
const PERSON = { email: "ada@example.com", name: "Ada" };

/** The members of every new payment. Each case overrides some of them. */
const FRESH = {
  object: "payment",
  status: "pending",
  amount: 1000,
  amount_minor: 1000,
  currency: "EUR",
  amount_refunded: 0,
  amount_refunding: 0,
  amount_captured: 0,
  amount_disputed: 0,
  amount_received: null,
  capability: "card_payment",
  method_kind: "card",
  method: null,
  customer: null,
  payer: null,
  description: null,
  reference: null,
  metadata: {},
  next_action: null,
  return_url: null,
  capture: "automatic",
  capture_before: null,
  settlement: "instant",
  failure_code: null,
  failure_message: null,
  advice: null,
  return_code: null,
  livemode: false,
  sequence: 1,
  created_at: AT_TEXT,
  updated_at: AT_TEXT,
  completed_at: null,
  cancelled_at: null,
};
const DONE = { status: "completed", sequence: 2, amount_captured: 1000, completed_at: AT_TEXT };
const A = { amount: 5, currency: "usd", capability: "card_payment", customer: PERSON };
const B = { amount_minor: 5, currency: "USD", method_kind: "card", payer: PERSON };
const A_AND_B = { amount: 5, amount_minor: 5, currency: "USD", customer: PERSON, payer: PERSON };

const CASES: [string, Record<string, unknown>, Record<string, unknown>][] = [
  ["nothing but the amount", { amount: 1000, currency: "EUR" }, {}],
  ["variant A", A, A_AND_B],
  ["variant B", B, A_AND_B],
  [
    "amount with method_kind and customer",
    { ...A, capability: undefined, method_kind: "card" },
    A_AND_B,
  ],
  ["amount with payer", { ...A, customer: undefined, payer: PERSON }, A_AND_B],
  [
    "amount_minor with capability",
    { ...B, method_kind: undefined, capability: "card_payment" },
    A_AND_B,
  ],
  ["amount_minor with customer", { ...B, payer: undefined, customer: PERSON }, A_AND_B],
  ["both names of every field", { ...A, ...B }, A_AND_B],
  ["a person without a name", { ...A, customer: { email: "a@b.co" } }, {
    ...A_AND_B,
    customer: { email: "a@b.co" },
    payer: { email: "a@b.co" },
  }],
  ["a person with an id", { ...A, customer: { email: "a@b.co", id: "i".repeat(64) } }, {
    ...A_AND_B,
    customer: { id: "i".repeat(64), email: "a@b.co" },
    payer: { id: "i".repeat(64), email: "a@b.co" },
  }],
  ["texts", { ...B, payer: undefined, description: "d".repeat(500), reference: "r".repeat(255) }, {
    ...A_AND_B,
    customer: null,
    payer: null,
    description: "d".repeat(500),
    reference: "r".repeat(255),
  }],
  ["a card", { amount: 1000, currency: "EUR", ...card("5555-5555-5555-4444") }, {
    ...DONE,
    method: {
      type: "card",
      card: { brand: "mastercard", last4: "4444", exp_month: 12, exp_year: 2034 },
    },
  }],
  ["a token with manual capture", {
    amount: 1000,
    currency: "EUR",
    card: { token: "pm_card_visa" },
    capture: "manual",
    return_url: "https://shop.example/return",
  }, {
    status: "authorized",
    sequence: 2,
    capture: "manual",
    capture_before: "2026-03-11T05:06:07.089Z",
    return_url: "https://shop.example/return",
    method: {
      type: "card",
      card: { brand: "visa", last4: "4242", exp_month: 12, exp_year: 2040 },
    },
  }],
  ["manual settlement", { amount: 1000, currency: "EUR", ...card({}), settlement: "manual" }, {
    ...DONE,
    settlement: "manual",
    method: { type: "card", card: { brand: "visa", last4: "4242", exp_month: 12, exp_year: 2034 } },
  }],
  ["sepa", { amount: 1000, currency: "EUR", ...APPROVED.sepa }, {
    ...DONE,
    capability: "sepa_payment",
    method_kind: "sepa",
    method: { type: "sepa", iban: { country: "DE", last4: "3000" }, mandate: null, due_on: null },
  }],
  ["sepa with BIC and holder", {
    amount: 1000,
    currency: "EUR",
    capability: "sepa_payment",
    iban: { iban: "DE89370400440532013000", bic: "COBADEFFXXX", holder_name: "Ada" },
  }, {
    ...DONE,
    capability: "sepa_payment",
    method_kind: "sepa",
    method: { type: "sepa", iban: { country: "DE", last4: "3000" }, mandate: null, due_on: null },
  }],
  ["swift", { amount: 1000, currency: "USD", ...APPROVED.swift }, {
    ...DONE,
    currency: "USD",
    capability: "swift_payment",
    method_kind: "swift",
    method: { type: "swift", iban: { country: "GB", last4: "5432" }, mandate: null, due_on: null },
  }],
];

serviceCase("POST /v1/payments returns the whole object in its order", async (t, service) => {
  await service.setClock(AT);
  for (const [name, body, members] of CASES) {
    await t.step(name, async () => {
      const response = await service.call("POST", PAYMENTS, { body });
      assert.equal(response.status, 201, response.text);
      assert.equal(Object.keys(response.body).join(" "), MEMBERS);
      assert.match(response.body.id, /^pay_[0-9a-hjkmnp-tv-z]{26}$/);
      assert.deepEqual(response.body, { ...FRESH, ...members, id: response.body.id });
      assert.equal(response.headers.get("Content-Type"), "application/json");
    });
  }
});

serviceCase("POST /v1/payments shows a wallet's address, network and asset", async (t, service) => {
  const address = APPROVED.stablecoin.wallet;
  const cases: [string, Record<string, unknown>, network: string, asset: string][] = [
    ["plain in EUR", { wallet: address }, "ethereum", "USDC"],
    ["plain in USDT", { wallet: address, currency: "usdt" }, "ethereum", "USDT"],
    ["network", { wallet: { address, network: "solana" } }, "solana", "USDC"],
    ["asset", { wallet: { address, asset: "USDT" } }, "ethereum", "USDT"],
    [
      "asset and currency",
      {
        wallet: { address, network: "base", asset: "USDC" },
        currency: "USDC",
      },
      "base",
      "USDC",
    ],
  ];
  for (const [name, body, network, asset] of cases) {
    await t.step(`${name} → ${asset} on ${network}`, async () => {
      const { body: payment } = await service.pay(body);
      const { tx_hash, ...wallet } = payment.method.wallet;
      assert.match(tx_hash, /^0x[0-9a-f]{64}$/);
      assert.deepEqual([payment.method.type, wallet], ["stablecoin", { address, network, asset }]);
      assert.equal(Object.keys(payment.method.wallet).join(" "), "address network asset tx_hash");
    });
  }
});

serviceCase(
  "POST /v1/payments derives the tx_hash from the input",
  async (t, service) => {
    const address = APPROVED.stablecoin.wallet;
    const hashOf = async (body: Record<string, unknown>) =>
      (await service.pay({ wallet: address, ...body })).body.method.wallet.tx_hash;
    const hash = await hashOf({});
    await t.step("the same input with another name, at another time, gives the same", async () => {
      await service.setClock(AT);
      assert.equal(await hashOf({ description: "other", customer: PERSON }), hash);
      await service.setClock(null);
    });
    const others: [string, Record<string, unknown>][] = [
      ["amount", { amount: 1001 }],
      ["currency", { currency: "USD" }],
      ["network", { wallet: { address, network: "tron" } }],
      ["asset", { wallet: { address, asset: "USDT" } }],
      ["address", { wallet: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed" }],
    ];
    for (const [name, body] of others) {
      await t.step(`another ${name} gives another hash`, async () => {
        assert.match(await hashOf(body), /^0x[0-9a-f]{64}$/);
        assert.notEqual(await hashOf(body), hash);
      });
    }
    await t.step("a manual settlement has the hash after completion, and not before", async () => {
      const { body: pending } = await service.pay({ wallet: address, settlement: "manual" });
      assert.equal(pending.method.wallet.tx_hash, null);
      const url = `/api-v1-sandbox/payments/${pending.id}/advance`;
      const { body: done } = await service.call("POST", url, { body: { to: "completed" } });
      assert.equal(done.method.wallet.tx_hash, hash);
    });
    await t.step("a reverted payment has no hash", async () => {
      const wallet = "0x0000000000000000000000000000000000000BAD";
      assert.equal((await service.pay({ wallet })).body.method.wallet.tx_hash, null);
    });
  },
);

serviceCase("POST /v1/payments with 3-D Secure names the next action", async (_t, service) => {
  const { body } = await service.pay(card("4000 0025 0000 3155"));
  assert.deepEqual(body.next_action, {
    type: "authenticate",
    url: `${BASE_URL}/api-v1-sandbox/payments/${body.id}/authenticate`,
  });
  assert.deepEqual([body.completed_at, body.sequence], [null, 2]);
});
