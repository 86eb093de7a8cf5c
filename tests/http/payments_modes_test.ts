/**
 * The modes of a create (contract §2): a test key may add `outcome` and `settlement`, and an
 * outcome overrides every instrument. Live mode stores nothing until a provider is configured.
 */

import assert from "node:assert/strict";
import { runUnguarded } from "../support/database/invariant_breaches.ts";
import { recordOf, rowCounts } from "../support/database/payment_records.ts";
import {
  advance,
  APPROVED,
  assertRefused,
  card,
  KINDS,
  PAYMENTS,
  serviceCase,
} from "../support/service/service_case.ts";

/** An outcome, and its result for any payment. */
const OUTCOMES: [outcome: string, http: number, status: string, events: string, ledger: string][] =
  [
    ["success", 201, "completed", "payment.created payment.completed", "capture"],
    ["declined", 402, "declined", "payment.created payment.declined", ""],
    ["pending", 201, "pending", "payment.created", ""],
    [
      "refunded",
      201,
      "refunded",
      "payment.created payment.completed refund.created refund.completed payment.refunded",
      "capture refund",
    ],
    [
      "chargeback",
      201,
      "chargeback",
      "payment.created payment.completed dispute.created payment.chargeback",
      "capture chargeback",
    ],
  ];

const INSTRUMENTS: [string, Record<string, unknown>][] = [
  ["nothing", {}],
  ["an approved card", card("4242 4242 4242 4242")],
  ["a declined card", card("4000 0000 0000 0002")],
  ["a card without funds", card("4000 0000 0000 9995")],
  ["a 3-D Secure card", card("4000 0025 0000 3155")],
  ["a blocked card", card("4100 0000 0000 0019")],
  ["the expired card", card("4000 0000 0000 0069")],
  ["an approved IBAN", APPROVED.sepa],
  ["a returned IBAN", { iban: "DE00 0000 0000 0000 0000 99" }],
  ["a SWIFT IBAN", APPROVED.swift],
  ["an approved wallet", APPROVED.stablecoin],
  ["a reverting wallet", { wallet: "0x0000000000000000000000000000000000000BAD" }],
];

serviceCase("POST /v1/payments with an outcome overrides the instrument", async (t, service) => {
  for (const [name, body] of INSTRUMENTS) {
    for (const [outcome, http, status, events, ledger] of OUTCOMES) {
      await t.step(`${outcome} with ${name} → ${http} ${status}`, async () => {
        const response = await service.pay({ ...body, outcome });
        assert.equal(response.status, http, response.text);
        if (http === 402) assert.equal(response.body.error.code, "payment_declined");
        const payment = http === 402 ? response.body.error.payment : response.body;
        const failed = status === "declined" ? "payment_declined" : null;
        assert.deepEqual(
          [payment.status, payment.failure_code, payment.return_code, payment.next_action],
          [status, failed, null, null],
        );
        assert.equal(payment.amount_refunded, status === "refunded" ? 1000 : 0);
        const record = await recordOf(service, payment.id);
        assert.equal(record.events.map(({ type }) => type).join(" "), events);
        const kinds = [...record.ledger.values()].map((line) => line.split(" ")[0]);
        assert.equal(kinds.join(" "), ledger);
        assert.equal(payment.sequence, record.events.length);

        const made = await service.make({ ...body, outcome });
        assert.deepEqual([made.status, made.body.status], [201, status]);
      });
    }
  }
});

serviceCase("POST /v1/payments with manual settlement waits for an advance", async (t, service) => {
  const rails: [string, Record<string, unknown>][] = [
    ["sepa", APPROVED.sepa],
    ["swift", APPROVED.swift],
    ["stablecoin", APPROVED.stablecoin],
    ["a returned IBAN", { iban: "DE00 0000 0000 0000 0000 99" }],
    ["sepa without an IBAN", { method_kind: "sepa" }],
  ];
  for (const [name, body] of rails) {
    await t.step(`${name} is pending, then completed by an advance`, async () => {
      const { body: payment, status } = await service.pay({ ...body, settlement: "manual" });
      assert.deepEqual([status, payment.status, payment.completed_at], [201, "pending", null]);
      const record = await recordOf(service, payment.id);
      assert.deepEqual(record.events.map(({ type }) => type), ["payment.created"]);
      assert.equal(record.ledger.size, 0);
      assert.equal((await advance(service, payment.id, "completed")).body.status, "completed");
    });
  }
  for (const kind of KINDS) {
    await t.step(`${kind} with instant settlement is completed`, async () => {
      const { body } = await service.pay({ ...APPROVED[kind], settlement: "instant" });
      assert.equal(body.status, "completed");
    });
  }
});

serviceCase("POST /v1/payments with a live key", async (t, service) => {
  const { text: key } = service.live;
  const unconfigured: [string, Record<string, unknown>][] = [
    ["nothing", {}],
    ["capability", { capability: "sepa_payment" }],
    ["an IBAN with a mandate", {
      ...APPROVED.sepa,
      iban: { iban: APPROVED.sepa.iban, holder_name: "Jan Payer" },
      mandate: { id: "M-1", signed_at: new Date().toISOString(), sequence: "first" },
    }],
    ["a SWIFT IBAN", APPROVED.swift],
    ["a stablecoin", { method_kind: "stablecoin", currency: "USDC" }],
    ["a token", { card: { token: "pm_1PxNowTwo3Four5" } }],
    ["a token of the sandbox", { card: { token: "pm_card_chargeDeclined" } }],
    ["manual capture", { card: { token: "pm_1PxNowTwo3Four5" }, capture: "manual" }],
    ["a return URL", { card: { token: "pm_1Px" }, return_url: "https://shop.example/return" }],
  ];
  const before = await rowCounts(service);
  for (const [name, body] of unconfigured) {
    await t.step(`${name} → 503 provider_not_configured`, async () => {
      const response = await service.pay(body, { key, idempotency_key: name.replaceAll(" ", "_") });
      assertRefused(response, 503, "provider_not_configured");
      assert.equal(response.body.error.type, "api");
      assert.deepEqual(await rowCounts(service), before);
    });
  }
  const refused: [string, Record<string, unknown>, param: string][] = [
    ["outcome", { outcome: "success" }, "outcome"],
    ["outcome pending", { outcome: "pending" }, "outcome"],
    ["settlement manual", { ...APPROVED.sepa, settlement: "manual" }, "settlement"],
    ["settlement instant", { ...APPROVED.sepa, settlement: "instant" }, "settlement"],
    ["a test card", card("4242 4242 4242 4242"), "card.number"],
    ["a declined test card", card("4000 0000 0000 0002"), "card.number"],
    ["another card", card("4111 1111 1111 1111"), "card.number"],
    ["a return URL without TLS", { return_url: "http://localhost:3000/return" }, "return_url"],
  ];
  for (const [name, body, param] of refused) {
    await t.step(`${name} → 400 ${param}`, async () => {
      const response = await service.pay(body, { key, idempotency_key: name.replaceAll(" ", "_") });
      assertRefused(response, 400, "invalid_parameter", param);
      assert.deepEqual(await rowCounts(service), before);
    });
  }
  await t.step("the list of the live environment is empty", async () => {
    await service.pay({ outcome: "success" });
    const { body } = await service.call("GET", PAYMENTS, { key });
    assert.deepEqual([body.data, body.has_more], [[], false]);
  });
});

serviceCase(
  "a live payment is not moved, because no provider is configured",
  async (t, service) => {
    const { text: key, environment_id } = service.live;
    const cases: [command: string, outcome: string, http: number, code: string][] = [
      ["cancel", "pending", 503, "provider_not_configured"],
      ["refund", "success", 503, "provider_not_configured"],
      ["capture", "authorized", 503, "provider_not_configured"],
      ["cancel", "authorized", 503, "provider_not_configured"],
      ["capture", "success", 409, "invalid_state"],
      ["cancel", "success", 409, "invalid_state"],
      ["refund", "pending", 409, "invalid_state"],
    ];
    for (const [command, outcome, http, code] of cases) {
      await t.step(`${command} ${outcome} → ${http} ${code}`, async () => {
        const { body } = await service.make(
          outcome === "authorized" ? { outcome: "success", capture: "manual" } : { outcome },
        );
        // No operation creates a live payment yet, so the test moves this one to the live
        // environment, with the events that show it.
        await service.sql`update pay.payments set environment_id = ${environment_id}
        where id = ${body.id}`;
        await runUnguarded(
          service.sql,
          `update pay.events set environment_id = '${environment_id}'
           where subject_id = '${body.id}'`,
        );
        const before = await recordOf(service, body.id);
        const options = { key, idempotency_key: `${command}_${outcome}` };
        const response = await service.call("POST", `${PAYMENTS}/${body.id}/${command}`, options);
        assertRefused(response, http, code);
        assert.equal((await recordOf(service, body.id)).text, before.text);
      });
    }
  },
);
