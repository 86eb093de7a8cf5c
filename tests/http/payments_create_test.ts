/**
 * `POST /v1/payments` as it is stored and shown (contract §2): its rows, its refusals, what no row
 * has, and live keys without a provider. tests/domain has the rules of bodies and test values.
 */

import assert from "node:assert/strict";
import { APPROVED_CARD, BASE_URL } from "../support/service/service.ts";
import { runUnguarded } from "../support/database/invariant_breaches.ts";
import { recordOf, rowCounts } from "../support/database/payment_records.ts";
import {
  advance,
  APPROVED,
  assertRefused,
  card,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const CAPTURE = "capture processor>available 1000 EUR";
const RETURNED = { iban: "DE00 0000 0000 0000 0000 99" };

/** A body, its HTTP status, its status, failure code, events and movements. */
const RESULTS: [
  name: string,
  body: Record<string, unknown>,
  http: number,
  status: string,
  code: string | null,
  events: string,
  ledger: string[],
][] = [
  [
    "an approved card",
    card("4242-4242-4242-4242"),
    201,
    "completed",
    null,
    "created completed",
    [CAPTURE],
  ],
  [
    "a declined token",
    { card: { token: "pm_card_chargeDeclined" } },
    402,
    "declined",
    "payment_declined",
    "created declined",
    [],
  ],
  ["a bank return", RETURNED, 201, "failed", "bank_return", "created failed", []],
  [
    "an outcome over the expired card",
    { ...card("4000 0000 0000 0069"), outcome: "chargeback" },
    201,
    "chargeback",
    null,
    "created completed dispute.created chargeback",
    [CAPTURE, "chargeback available>chargebacks 1000 EUR"],
  ],
  [
    "manual capture with a return URL in its normal form",
    { ...card({}), capture: "manual", return_url: "https://shop.example" },
    201,
    "authorized",
    null,
    "created authorized",
    [],
  ],
];

serviceCase("POST /v1/payments stores what it returns", async (t, service) => {
  for (const [name, body, http, status, code, events, ledger] of RESULTS) {
    await t.step(`${name} → ${http} ${status}`, async () => {
      const response = await service.pay(body);
      assert.equal(response.status, http, response.text);
      const payment = response.body.error?.payment ?? response.body;
      assert.deepEqual([payment.status, payment.failure_code], [status, code]);
      const { error } = response.body;
      if (http === 402) assert.deepEqual([error.code, error.type], [code, "payment"]);
      const location = http === 402
        ? null
        : `${BASE_URL}/api-v1-payments/v1/payments/${payment.id}`;
      assert.equal(response.headers.get("Location"), location);
      assert.equal(response.headers.get("Content-Type"), "application/json");
      if (body.return_url) assert.equal(payment.return_url, `${body.return_url}/`);
      const stored = await service.call("GET", `${PAYMENTS}/${payment.id}`);
      assert.equal(stored.text, JSON.stringify(payment));
      const record = await recordOf(service, payment.id);
      const types = record.events.map(({ type }) => type.replace("payment.", ""));
      assert.deepEqual([types.join(" "), [...record.ledger.values()]], [events, ledger]);
      // The sandbox function returns a decline as a payment.
      const made = await service.make(body);
      assert.deepEqual([made.status, made.body.status, made.body.failure_code], [
        201,
        status,
        code,
      ]);
    });
  }
  await t.step("a manual settlement gets the hash of an instant one", async () => {
    const hash = (payment: typeof stored) => payment.method.wallet.tx_hash;
    const { body: instant } = await service.pay({ ...APPROVED.stablecoin, description: "other" });
    const { body: stored } = await service.pay({ ...APPROVED.stablecoin, settlement: "manual" });
    assert.deepEqual([stored.status, hash(stored)], ["pending", null]);
    const { body: done } = await advance(service, stored.id, "completed");
    assert.deepEqual([done.status, hash(done)], ["completed", hash(instant)]);
  });
});

/** Refused bodies, one for each rule that checks them, and the field that the error names. */
const REFUSED: [body: string | Record<string, unknown>, param: string][] = [
  ['{"amount":1.0,"currency":"EUR"}', "amount"],
  [{ currency: "ABC" }, "currency"],
  [{ return_url: "http://shop.example/return" }, "return_url"],
  [{ customer: { email: "a@b.co" }, payer: { email: "c@b.co" } }, "payer"],
  [card({ number: "4111 1111 1111 1111" }), "card.number"],
  [{ card: { token: "pm_card_visa", cvc: "123" } }, "card.token"],
  [{ iban: "DE88370400440532013000" }, "iban"],
  [{ ...APPROVED.sepa, capture: "manual" }, "capture"],
];

serviceCase("POST /v1/payments stores nothing of a refused body", async (t, service) => {
  const before = await rowCounts(service);
  for (const [body, param] of REFUSED) {
    for (const path of [PAYMENTS, `${SANDBOX}/payments`]) {
      await t.step(`${JSON.stringify(body)} at ${path} → 400 ${param}`, async () => {
        const response = await service.call("POST", path, {
          body: typeof body === "string" ? body : { amount: 1000, currency: "EUR", ...body },
          idempotency_key: "refused",
        });
        assertRefused(response, 400, "invalid_parameter", param);
        assert.deepEqual(await rowCounts(service), before);
      });
    }
  }
});

/** Live bodies: those that a provider would take, and a refused one with its field. */
const LIVE: [string, Record<string, unknown>, param?: string][] = [
  ["an IBAN with a mandate", {
    iban: { iban: APPROVED.sepa.iban, holder_name: "Jan Payer" },
    mandate: { id: "M-1", signed_at: new Date().toISOString(), sequence: "first" },
  }],
  ["a SWIFT IBAN", APPROVED.swift],
  ["a stablecoin", { method_kind: "stablecoin", currency: "USDC" }],
  ["a token", { card: { token: "pm_1PxNowTwo3Four5" }, capture: "manual" }],
  ["a token of the sandbox", { card: { token: "pm_card_chargeDeclined" } }],
  ["a return URL", { card: { token: "pm_1Px" }, return_url: "https://shop.example/return" }],
  ["a card number", { card: APPROVED_CARD }, "card.number"],
];

serviceCase("POST /v1/payments with a live key and no provider", async (t, service) => {
  const { text: key } = service.live;
  const before = await rowCounts(service);
  for (const [name, body, param] of LIVE) {
    await t.step(`${name} → ${param ?? "503"}`, async () => {
      service.logs.length = 0;
      const response = await service.pay(body, { key, idempotency_key: "live" });
      if (param) assertRefused(response, 400, "invalid_parameter", param);
      else assertRefused(response, 503, "provider_not_configured");
      assert.ok(!JSON.stringify([response.text, service.logs]).includes(APPROVED_CARD.number));
      assert.deepEqual(await rowCounts(service), before);
    });
  }
  await t.step("the list of the live environment is empty", async () => {
    await service.pay({ outcome: "success" });
    const { body } = await service.call("GET", PAYMENTS, { key });
    assert.deepEqual([body.data, body.has_more], [[], false]);
  });
});

serviceCase("a live payment is not moved without a provider", async (t, service) => {
  const { text: key, environment_id } = service.live;
  const cases: [command: string, body: Record<string, unknown>, http: number, code: string][] = [
    ["cancel", { outcome: "pending" }, 503, "provider_not_configured"],
    ["refund", { outcome: "success" }, 503, "provider_not_configured"],
    ["capture", { outcome: "success", capture: "manual" }, 503, "provider_not_configured"],
    ["cancel", { outcome: "success", capture: "manual" }, 503, "provider_not_configured"],
    ["capture", { outcome: "success" }, 409, "invalid_state"],
  ];
  for (const [i, [command, body, http, code]] of cases.entries()) {
    await t.step(`${command} ${JSON.stringify(body)} → ${http} ${code}`, async () => {
      const { body: { id } } = await service.make(body);
      // No operation creates a live payment yet, so the test moves this one to the live
      // environment, with the events that show it.
      await service.sql`
        update pay.payments set environment_id = ${environment_id} where id = ${id}`;
      await runUnguarded(
        service.sql,
        `update pay.events set environment_id = '${environment_id}' where subject_id = '${id}'`,
      );
      const before = await recordOf(service, id);
      const options = { key, idempotency_key: `${i}` };
      const response = await service.call("POST", `${PAYMENTS}/${id}/${command}`, options);
      assertRefused(response, http, code);
      assert.equal((await recordOf(service, id)).text, before.text);
    });
  }
});
