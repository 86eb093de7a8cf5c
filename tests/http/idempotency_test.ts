/**
 * Idempotency keys (contract §5): a repeated request gets the first response byte for
 * byte and changes nothing. Some errors are stored under the key, others are not.
 */

import assert from "node:assert/strict";
import type { TestResponse, TestService } from "../support/service/service.ts";
import { recordOf, rowCounts } from "../support/database/payment_records.ts";
import {
  advance,
  ADVANCE_ADDRESSES,
  assertRefused,
  card,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const CREATE = { amount: 700, currency: "EUR" };

/** A request, the status that its payment is in, and the HTTP status of the response. */
type Request = [name: string, path: string, body: unknown, from: string | null, http: number];

const REQUESTS: Request[] = [
  ["POST /v1/payments", PAYMENTS, CREATE, null, 201],
  ["… declined", PAYMENTS, { ...CREATE, ...card("4000 0000 0000 0002") }, null, 402],
  ["… without funds", PAYMENTS, { ...CREATE, ...card("4000 0000 0000 9995") }, null, 402],
  ["… blocked", PAYMENTS, { ...CREATE, ...card("4100 0000 0000 0019") }, null, 402],
  ["… 3-D Secure", PAYMENTS, { ...CREATE, ...card("4000 0025 0000 3155") }, null, 201],
  ["… by a declined outcome", PAYMENTS, { ...CREATE, outcome: "declined" }, null, 402],
  ["POST /payments", `${SANDBOX}/payments`, { ...CREATE, outcome: "refunded" }, null, 201],
  ["POST /v1/payments in the sandbox", `${SANDBOX}/v1/payments`, CREATE, null, 201],
  ["POST /v1/payments/{id}/cancel", `${PAYMENTS}/{id}/cancel`, undefined, "pending", 200],
  ["… refused", `${PAYMENTS}/{id}/cancel`, undefined, "completed", 409],
  ["POST /v1/payments/{id}/refund", `${PAYMENTS}/{id}/refund`, undefined, "completed", 201],
  ["… of a part", `${PAYMENTS}/{id}/refund`, { amount: 5 }, "completed", 201],
  ["… refused", `${PAYMENTS}/{id}/refund`, { amount: 5 }, "pending", 409],
  ...ADVANCE_ADDRESSES.flatMap((address): Request[] => [
    [`POST ${address("{id}")}`, address("{id}"), { to: "completed" }, "pending", 200],
    ["… to a partial refund", address("{id}"), { to: "partially_refunded" }, "completed", 200],
    ["… to where it is", address("{id}"), { to: "pending" }, "pending", 200],
    ["… refused", address("{id}"), { to: "completed" }, "declined", 409],
  ]),
  [
    "POST /payments/{id}/authenticate",
    `${SANDBOX}/payments/{id}/authenticate`,
    undefined,
    "requires_action",
    200,
  ],
  [
    "… failing",
    `${SANDBOX}/payments/{id}/authenticate`,
    { result: "failure" },
    "requires_action",
    402,
  ],
  ["… refused", `${SANDBOX}/v1/payments/{id}/authenticate`, {}, "completed", 409],
  ["POST /reset", `${SANDBOX}/reset`, undefined, "completed", 200],
  ["POST /v1/reset", `${SANDBOX}/v1/reset`, {}, "completed", 200],
];

serviceCase("Idempotency-Key replays the first response", async (t, service) => {
  for (const [name, path, body, from, http] of REQUESTS) {
    await t.step(`${name} → ${http}, twice`, async () => {
      const id = from === null ? "" : (await paymentIn(service, from)).id;
      const idempotency_key = crypto.randomUUID();
      const send = () => service.call("POST", path.replace("{id}", id), { body, idempotency_key });
      const first = await send();
      assert.equal(first.status, http, first.text);
      assert.equal(first.headers.get("Idempotent-Replayed"), null);
      const rows = await rowCounts(service);
      const payment = id && await recordOf(service, id);
      for (const again of [await send(), await send()]) {
        assertReplay(again, first);
      }
      assert.deepEqual(await rowCounts(service), rows);
      if (payment) assert.equal((await recordOf(service, id)).text, payment.text);
    });
  }
});

function assertReplay(again: TestResponse, first: TestResponse): void {
  assert.deepEqual([again.status, again.text], [first.status, first.text]);
  assert.equal(again.headers.get("Idempotent-Replayed"), "true");
  for (const name of ["Location", "Content-Type", "Cache-Control"]) {
    assert.equal(again.headers.get(name), first.headers.get(name), name);
  }
  assert.notEqual(again.headers.get("Request-Id"), first.headers.get("Request-Id"));
}

serviceCase(
  "Idempotency-Key keeps a refusal after the payment has changed",
  async (t, service) => {
    await t.step("a refund that was refused as too early stays refused", async () => {
      const { id } = await paymentIn(service, "pending");
      const refund = () =>
        service.call("POST", `${PAYMENTS}/${id}/refund`, { idempotency_key: "early" });
      const first = await refund();
      assertRefused(first, 409, "invalid_state");
      await advance(service, id, "completed");
      assertReplay(await refund(), first);
    });
    await t.step("a create replays its response after the payment has changed", async () => {
      const first = await service.pay(card({}), { idempotency_key: "create" });
      await service.call("POST", `${PAYMENTS}/${first.body.id}/refund`);
      assertReplay(await service.pay(card({}), { idempotency_key: "create" }), first);
    });
    await t.step("a create replays its response after its card has expired", async () => {
      const body = card({ exp_month: 11, exp_year: 2026 });
      await service.setClock(Date.parse("2026-11-30T23:59:59.999Z"));
      const first = await service.pay(body, { idempotency_key: "month" });
      assert.equal(first.status, 201);
      await service.setClock(Date.parse("2026-12-01T00:00:00.000Z"));
      assertReplay(await service.pay(body, { idempotency_key: "month" }), first);
      assertRefused(await service.pay(body), 400, "invalid_parameter", "card.exp_month");
      await service.setClock(null);
    });
  },
);

/** Requests whose error is not stored under the idempotency key. */
const NOT_KEPT: [
  string,
  path: string,
  body: unknown,
  http: number,
  headers?: Record<string, string>,
][] = [
  ["400 of a field", PAYMENTS, { ...CREATE, amount: 0 }, 400],
  ["400 of a card", PAYMENTS, { ...CREATE, ...card("4000 0000 0000 0069") }, 400],
  ["400 of JSON", PAYMENTS, "{", 400],
  ["400 of a refund that is too much", `${PAYMENTS}/{id}/refund`, { amount: 1001 }, 400],
  ["400 of an advance", `${SANDBOX}/payments/{id}/advance`, { to: "done" }, 400],
  ["404", `${PAYMENTS}/pay_${"0".repeat(26)}/cancel`, undefined, 404],
  ["405", `${PAYMENTS}/{id}`, {}, 405],
  ["413", PAYMENTS, { ...CREATE, description: "d".repeat(70_000) }, 413],
  ["415", PAYMENTS, CREATE, 415, { "Content-Type": "text/plain" }],
];

serviceCase("Idempotency-Key is not used up by requests without effect", async (t, service) => {
  for (const [name, path, body, http, headers = {}] of NOT_KEPT) {
    await t.step(name, async () => {
      const { id } = await paymentIn(service, "completed");
      const idempotency_key = crypto.randomUUID();
      const url = path.replace("{id}", id);
      const before = await rowCounts(service);
      const refused = await service.call("POST", url, { body, headers, idempotency_key });
      assert.equal(refused.status, http, refused.text);
      assert.deepEqual(await rowCounts(service), before);
      const made = await service.pay({}, { idempotency_key });
      assert.deepEqual([made.status, made.headers.get("Idempotent-Replayed")], [201, null]);
    });
  }
  await t.step("403 for a missing scope", async () => {
    const { text: key } = await service.issueKey(service.key.environment_id, {
      scopes: ["payments:read"],
    });
    const refused = await service.pay({}, { key, idempotency_key: "scope" });
    assertRefused(refused, 403, "permission_denied");
    const kept = await service.sql`select * from pay.idempotency_keys where key = 'scope'`;
    assert.equal(kept.length, 0);
  });
});

serviceCase("Idempotency-Key must be visible ASCII, 1 to 255 characters", async (t, service) => {
  const visible = Array.from({ length: 94 }, (_, i) => String.fromCharCode(0x21 + i)).join("");
  const cases: [string, key: string][] = [
    ["one character", "a"],
    ["255 characters", "k".repeat(255)],
    ["all visible ASCII", visible],
    ["white space around it, which HTTP drops", "  padded  "],
  ];
  for (const [name, key] of cases) {
    await t.step(`${name} is taken`, async () => {
      const response = await service.pay({}, { headers: { "Idempotency-Key": key } });
      assert.equal(response.status, 201, response.text);
      assertReplay(await service.pay({}, { headers: { "Idempotency-Key": key } }), response);
    });
  }
  await t.step("upper and lower case make two keys", async () => {
    const lower = await service.pay({}, { idempotency_key: "case" });
    const upper = await service.pay({}, { idempotency_key: "CASE" });
    assert.notEqual(lower.body.id, upper.body.id);
  });
});

async function payIds(service: TestService, keys: string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const key of keys) {
    ids.push((await service.pay({}, { key, idempotency_key: "own" })).body.id);
  }
  return ids;
}

serviceCase("Idempotency-Key belongs to one API key", async (t, service) => {
  const { environment_id } = service.key;
  const second = await service.issueKey(environment_id);
  await t.step("two API keys of one environment do not share it", async () => {
    const ids = await payIds(service, [service.key.text, second.text, service.other.text]);
    assert.equal(new Set(ids).size, 3);
    assert.deepEqual(await payIds(service, [service.key.text, second.text]), ids.slice(0, 2));
  });
  await t.step("another body under another API key is no conflict", async () => {
    const response = await service.pay({ amount: 9 }, {
      key: (await service.issueKey(environment_id)).text,
      idempotency_key: "own",
    });
    assert.equal(response.status, 201);
  });
});
