/**
 * Events in the outbox: the events that each change writes, their order, and their whole payload
 * (contract §4). The test reads the table for what the API does not show.
 */

import assert from "node:assert/strict";
import { recordOf } from "../support/database/payment_records.ts";
import {
  advance,
  APPROVED,
  card,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const AT = "2026-08-09T10:11:12.013Z";

serviceCase("an event shows the resource at the time of the event", async (t, service) => {
  await service.setClock(Date.parse(AT));
  const response = await service.make({ outcome: "refunded" }, { idempotency_key: "forced" });
  const { events } = await recordOf(service, response.body.id);
  const [created, completed, refund_created, refund_completed, refunded] = events;
  await t.step("sequences start at 1 and have no gap", () => {
    assert.deepEqual(events.map(({ type, sequence }) => `${sequence} ${type}`), [
      "1 payment.created",
      "2 payment.completed",
      "3 refund.created",
      "4 refund.completed",
      "5 payment.refunded",
    ]);
  });
  await t.step("the envelope has the members and the order of the contract", () => {
    for (const { id, type, sequence, payload } of events) {
      const { data, ...envelope } = payload;
      assert.deepEqual(Object.keys(payload), [
        "id",
        "object",
        "type",
        "api_version",
        "created_at",
        "livemode",
        "sequence",
        "data",
        "request",
      ]);
      assert.deepEqual(envelope, {
        id,
        object: "event",
        type,
        api_version: "v1",
        created_at: AT,
        livemode: false,
        sequence,
        request: { id: response.headers.get("Request-Id"), idempotency_key: "forced" },
      });
      assert.match(id, /^evt_[0-9a-hjkmnp-tv-z]{26}$/);
      assert.deepEqual(Object.keys(data), ["object"]);
    }
  });
  await t.step("ids sort like the sequence", () => {
    const ids = events.map(({ id }) => id);
    assert.deepEqual(ids, ids.toSorted());
    assert.equal(new Set(ids).size, ids.length);
  });
  await t.step("payment.created shows the payment as pending", () => {
    assert.deepEqual(created!.payload.data.object, {
      ...response.body,
      status: "pending",
      amount_refunded: 0,
      amount_captured: 0,
      sequence: 1,
      completed_at: null,
    });
  });
  await t.step("payment.completed shows the payment before the refund", () => {
    assert.deepEqual(completed!.payload.data.object, {
      ...response.body,
      status: "completed",
      amount_refunded: 0,
      sequence: 2,
    });
  });
  await t.step(
    "refund.created shows the refund as pending, refund.completed as it is",
    async () => {
      const { body } = await service.call("GET", `${PAYMENTS}/${response.body.id}/refunds`);
      assert.deepEqual(refund_created!.payload.data.object, {
        ...body.data[0],
        payment_status: "completed",
        status: "pending",
      });
      assert.deepEqual(refund_completed!.payload.data.object, body.data[0]);
    },
  );
  await t.step("payment.refunded holds the bytes of the refund's response", () => {
    assert.ok(refunded!.body.includes(`"data":{"object":${response.text}}`));
  });
});

/**
 * Requests that create a payment, or change one in a status, and the types of the events that each
 * writes.
 */
const WRITTEN: [string, string | null, (id: string) => [path: string, body?: unknown], string][] = [
  ["a create", null, () => [PAYMENTS, { amount: 1, currency: "EUR" }], "payment.created"],
  [
    "an approval",
    null,
    () => [PAYMENTS, { amount: 1, currency: "EUR", ...card({}) }],
    "payment.created payment.completed",
  ],
  [
    "an authorization",
    null,
    () => [PAYMENTS, { amount: 1, currency: "EUR", ...card({}), capture: "manual" }],
    "payment.created payment.authorized",
  ],
  ["a cancel", "pending", (id) => [`${PAYMENTS}/${id}/cancel`], "payment.cancelled"],
  [
    "a partial refund",
    "completed",
    (id) => [`${PAYMENTS}/${id}/refund`, { amount: 1 }],
    "refund.created refund.completed payment.partially_refunded",
  ],
  [
    "the rest",
    "partially_refunded",
    (id) => [`${PAYMENTS}/${id}/refund`],
    "refund.created refund.completed payment.refunded",
  ],
  ["a capture", "authorized", (id) => [`${PAYMENTS}/${id}/capture`], "payment.completed"],
  ["a release", "authorized", (id) => [`${PAYMENTS}/${id}/cancel`], "payment.cancelled"],
  [
    "a dispute that is won",
    "chargeback",
    (id) => [`${SANDBOX}/payments/${id}/advance`, { to: "completed" }],
    "dispute.won payment.completed",
  ],
  [
    "an authentication",
    "requires_action",
    (id) => [`${SANDBOX}/payments/${id}/authenticate`],
    "payment.completed",
  ],
  [
    "a chargeback",
    "completed",
    (id) => [`${SANDBOX}/payments/${id}/advance`, { to: "chargeback" }],
    "dispute.created payment.chargeback",
  ],
];

serviceCase("an event names the request that wrote it", async (t, service) => {
  for (const [name, from, request, types] of WRITTEN) {
    for (const idempotency_key of [null, `key_of_${name.replaceAll(" ", "_")}`]) {
      await t.step(`${name} ${idempotency_key ? "with" : "without"} a key`, async () => {
        const payment = from === null ? null : await paymentIn(service, from);
        const [path, body] = request(payment?.id ?? "");
        const before = payment ? await recordOf(service, payment.id) : null;
        const options = { body, ...(idempotency_key && { idempotency_key }) };
        const response = await service.call("POST", path, options);
        const { events } = await recordOf(service, payment?.id ?? response.body.id);
        const written = events.slice(before?.events.length ?? 0);
        assert.equal(written.map(({ type }) => type).join(" "), types);
        for (const { payload } of written) {
          const id = response.headers.get("Request-Id");
          assert.deepEqual(payload.request, { id, idempotency_key });
        }
      });
    }
  }
});

serviceCase("a request without a change writes no event", async (t, service) => {
  const payment = await paymentIn(service, "completed", APPROVED.sepa);
  const first = await service.pay({ ...card({}) }, { idempotency_key: "kept" });
  const count = async () =>
    (await service.sql`select count(*)::int as n from pay.events`)[0]!.n as number;
  const cases: [string, () => Promise<unknown>][] = [
    ["a read", () => service.call("GET", `${PAYMENTS}/${payment.id}`)],
    ["a list", () => service.call("GET", PAYMENTS)],
    ["a refused create", () => service.pay({ amount: 0 })],
    ["a refused cancel", () => service.call("POST", `${PAYMENTS}/${payment.id}/cancel`)],
    [
      "a refused cancel with a key",
      () =>
        service.call("POST", `${PAYMENTS}/${payment.id}/cancel`, { idempotency_key: "refused" }),
    ],
    [
      "a refund of too much",
      () => service.call("POST", `${PAYMENTS}/${payment.id}/refund`, { body: { amount: 1001 } }),
    ],
    ["an advance to where it is", () => advance(service, payment.id, "completed")],
    [
      "the same with a key",
      () => advance(service, payment.id, "completed", { idempotency_key: "here" }),
    ],
    ["a replay", () => service.pay({ ...card({}) }, { idempotency_key: "kept" })],
    ["a conflict", () => service.pay({ amount: 2 }, { idempotency_key: "kept" })],
    [
      "another environment's id",
      () => advance(service, payment.id, "refunded", { key: service.other.text }),
    ],
  ];
  for (const [name, request] of cases) {
    await t.step(name, async () => {
      const before = await count();
      await request();
      assert.equal(await count(), before);
    });
  }
  assert.equal((await recordOf(service, first.body.id)).events.length, 2);
});
