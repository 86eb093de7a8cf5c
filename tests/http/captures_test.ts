/**
 * Manual capture (contract §2): an authorization holds the amount, one capture takes it or a part,
 * and a cancel releases it. Later refunds and disputes concern the captured amount only.
 */

import assert from "node:assert/strict";
import type { CallOptions, TestService } from "../support/service/service.ts";
import { changesBetween, recordOf } from "../support/database/payment_records.ts";
import {
  advance,
  assertRefused,
  card,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
  STATUSES,
} from "../support/service/service_case.ts";

const AT = "2026-06-07T08:09:10.111Z";
const LATER = "2026-06-08T00:00:00.000Z";

function capture(service: TestService, id: string, body?: unknown, options: CallOptions = {}) {
  return service.call("POST", `${PAYMENTS}/${id}/capture`, { ...options, body });
}

async function authorized(service: TestService, body: Record<string, unknown> = {}) {
  return await paymentIn(service, "authorized", body);
}

serviceCase("POST /v1/payments with manual capture authorizes", async (t, service) => {
  const cases: [string, Record<string, unknown>][] = [
    ["an approved card", card("4242 4242 4242 4242")],
    ["a token", { card: { token: "pm_card_mastercard" } }],
    ["outcome success", { outcome: "success" }],
    ["outcome success over a declined card", {
      ...card("4000 0000 0000 0002"),
      outcome: "success",
    }],
  ];
  await service.setClock(Date.parse(AT));
  for (const [name, body] of cases) {
    await t.step(name, async () => {
      const response = await service.pay({ ...body, capture: "manual" });
      assert.equal(response.status, 201, response.text);
      const { status, capture_before, amount_captured, completed_at, id } = response.body;
      assert.deepEqual(
        [status, capture_before, amount_captured, completed_at],
        ["authorized", "2026-06-14T08:09:10.111Z", 0, null],
      );
      const { events, ledger } = await recordOf(service, id);
      assert.deepEqual(events.map(({ type }) => type), ["payment.created", "payment.authorized"]);
      assert.equal(ledger.size, 0);
    });
  }
  const others: [string, Record<string, unknown>, http: number, status: string][] = [
    ["a declined card", card("4000 0000 0000 0002"), 402, "declined"],
    ["a card that needs 3-D Secure", card("4000 0025 0000 3155"), 201, "requires_action"],
    ["a card with a late response", card("4000 0000 0000 0119"), 201, "processing"],
    ["no instrument", {}, 201, "pending"],
  ];
  for (const [name, body, http, status] of others) {
    await t.step(`${name} is ${status}`, async () => {
      const response = await service.pay({ ...body, capture: "manual" });
      const payment = response.body.error?.payment ?? response.body;
      assert.deepEqual([response.status, payment.status, payment.capture_before], [
        http,
        status,
        null,
      ]);
    });
  }
  await t.step("an authentication authorizes the payment", async () => {
    const { body: payment } = await service.pay({
      ...card("4000 0025 0000 3155"),
      capture: "manual",
    });
    const url = `${SANDBOX}/payments/${payment.id}/authenticate`;
    const { body } = await service.call("POST", url, { body: { result: "success" } });
    assert.deepEqual([body.status, body.capture_before, body.next_action], [
      "authorized",
      "2026-06-14T08:09:10.111Z",
      null,
    ]);
  });
  await t.step("an advance authorizes the late card", async () => {
    const { body: payment } = await service.pay({
      ...card("4000 0000 0000 0119"),
      capture: "manual",
    });
    assertRefused(await advance(service, payment.id, "completed"), 409, "invalid_state");
    assert.equal((await advance(service, payment.id, "authorized")).body.status, "authorized");
  });
});

/** Bodies of a capture of 1000, and the captured amount. */
const CAPTURES: [body: unknown, captured: number][] = [
  [undefined, 1000],
  [{}, 1000],
  [{ amount: 1000 }, 1000],
  [{ amount_minor: 999 }, 999],
  [{ amount: 1 }, 1],
  [{ amount: 400, amount_minor: 400 }, 400],
];

serviceCase("POST /v1/payments/{id}/capture takes the whole or less", async (t, service) => {
  for (const [body, captured] of CAPTURES) {
    await t.step(`${JSON.stringify(body) ?? "no body"} → ${captured}`, async () => {
      await service.setClock(Date.parse(AT));
      const payment = await authorized(service);
      await service.setClock(Date.parse(LATER));
      const before = await recordOf(service, payment.id);
      const response = await capture(service, payment.id, body);
      assert.equal(response.status, 200, response.text);
      assert.deepEqual(response.body, {
        ...payment,
        status: "completed",
        amount_captured: captured,
        capture_before: null,
        sequence: 3,
        updated_at: LATER,
        completed_at: LATER,
      });
      const after = await recordOf(service, payment.id);
      assert.deepEqual(changesBetween(before, after), {
        events: ["payment.completed"],
        sequences: [1, 2, 3],
        ledger: [`capture processor>available ${captured} EUR`],
      });
      assert.equal((await service.call("GET", `${PAYMENTS}/${payment.id}`)).text, response.text);
    });
  }
});

serviceCase("POST /v1/payments/{id}/capture refuses other amounts", async (t, service) => {
  const payment = await authorized(service);
  const before = await recordOf(service, payment.id);
  const cases: [body: string, param: string][] = [
    ['{"amount":0}', "amount"],
    ['{"amount":-1}', "amount"],
    ['{"amount":1.0}', "amount"],
    ['{"amount":"100"}', "amount"],
    ['{"amount":null}', "amount"],
    ['{"amount_minor":1000000000000}', "amount_minor"],
    ['{"amount":1,"amount_minor":2}', "amount_minor"],
  ];
  for (const [body, param] of cases) {
    await t.step(`${body} → 400 ${param}`, async () => {
      const response = await capture(service, payment.id, body);
      assertRefused(response, 400, "invalid_parameter", param);
      assert.equal(response.body.error.amount_capturable, undefined);
    });
  }
  for (const field of ["amount", "amount_minor"]) {
    await t.step(`${field} above the authorized amount → 400 with amount_capturable`, async () => {
      const response = await capture(service, payment.id, { [field]: 1001 });
      assertRefused(response, 400, "invalid_parameter", field);
      assert.equal(response.body.error.amount_capturable, 1000);
    });
  }
  assert.equal((await recordOf(service, payment.id)).text, before.text);
});

serviceCase("POST /v1/payments/{id}/capture works once", async (t, service) => {
  const allowed: Record<string, string[]> = {
    pending: [
      "cancelled",
      "completed",
      "declined",
      "failed",
      "processing",
      "requires_action",
    ],
    completed: ["chargeback", "partially_refunded", "refunded"],
    chargeback: ["completed"],
  };
  for (const status of STATUSES.filter((status) => status !== "authorized")) {
    await t.step(`${status} → 409`, async () => {
      const payment = await paymentIn(service, status);
      // The status decides before the amount.
      const response = await capture(service, payment.id, { amount: 5000 });
      assertRefused(response, 409, "invalid_state");
      assert.equal(response.body.error.current_status, status);
      const expected = allowed[status];
      if (expected) assert.deepEqual(response.body.error.allowed.toSorted(), expected);
    });
  }
  await t.step("the rest of a part cannot be captured later", async () => {
    const payment = await authorized(service);
    await capture(service, payment.id, { amount: 400 });
    assertRefused(await capture(service, payment.id, { amount: 1 }), 409, "invalid_state");
  });
  await t.step("ten captures at once: one takes the amount", async () => {
    const payment = await authorized(service);
    const responses = await Promise.all(
      Array.from({ length: 10 }, (_, i) => capture(service, payment.id, { amount: 100 + i })),
    );
    const given = responses.filter(({ status }) => status === 200);
    assert.equal(given.length, 1);
    for (const response of responses) {
      if (response !== given[0]) assertRefused(response, 409, "invalid_state");
    }
    assert.equal((await recordOf(service, payment.id)).ledger.size, 1);
  });
  await t.step("a read-only key cannot capture", async () => {
    const payment = await authorized(service);
    const { text: key } = await service.issueKey(service.key.environment_id, {
      scopes: ["payments:read", "refunds:write"],
    });
    assertRefused(await capture(service, payment.id, {}, { key }), 403, "permission_denied");
  });
});

serviceCase("a captured part bounds refunds and disputes", async (t, service) => {
  const partly = async () => {
    const payment = await authorized(service);
    await capture(service, payment.id, { amount: 400 });
    return payment.id;
  };
  await t.step("one cent above the captured amount is not refundable", async () => {
    const id = await partly();
    const response = await service.call("POST", `${PAYMENTS}/${id}/refund`, {
      body: { amount: 401 },
    });
    assertRefused(response, 400, "invalid_parameter", "amount");
    assert.equal(response.body.error.amount_refundable, 400);
  });
  await t.step("a refund without an amount refunds the captured amount", async () => {
    const id = await partly();
    const { body } = await service.call("POST", `${PAYMENTS}/${id}/refund`);
    assert.deepEqual([body.amount, body.payment_status], [400, "refunded"]);
  });
  await t.step("a chargeback takes the captured amount", async () => {
    const { body } = await advance(service, await partly(), "chargeback");
    assert.equal(body.amount_disputed, 400);
  });
  await t.step("a cancel releases the whole authorization", async () => {
    const payment = await authorized(service);
    const { body } = await service.call("POST", `${PAYMENTS}/${payment.id}/cancel`);
    assert.deepEqual([body.status, body.amount_captured, body.capture_before], [
      "cancelled",
      0,
      null,
    ]);
    assert.equal((await recordOf(service, payment.id)).ledger.size, 0);
  });
});
