/**
 * Idempotency keys (contract §5): the responses that are stored, those that are not,
 * for how long, and for which API key. idempotency_catalogue_test.ts repeats every operation.
 */

import assert from "node:assert/strict";
import type { TestResponse, TestService } from "../support/service/service.ts";
import { rowCounts } from "../support/database/payment_records.ts";
import {
  advance,
  assertRefused,
  card,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const CREATE = { amount: 700, currency: "EUR" };
const FIRST_AT = Date.parse("2026-03-01T12:00:00.000Z");
const DAY_MS = 24 * 60 * 60 * 1000;

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

serviceCase("Idempotency-Key is stored for 24 hours from the first request", async (t, service) => {
  await t.step("a replay does not extend the 24 hours", async () => {
    const send = () => service.pay({}, { idempotency_key: "length" });
    await service.setClock(FIRST_AT);
    const first = await send();
    await service.setClock(FIRST_AT + DAY_MS - 1);
    assert.equal((await send()).text, first.text);
    await service.setClock(FIRST_AT + DAY_MS);
    assert.notEqual((await send()).body.id, first.body.id);
  });
  await t.step("an expired key accepts a different request", async () => {
    await service.setClock(FIRST_AT);
    await service.pay({}, { idempotency_key: "reuse" });
    await service.setClock(FIRST_AT + DAY_MS - 1);
    const early = await service.pay({ amount: 5 }, { idempotency_key: "reuse" });
    assertRefused(early, 409, "idempotency_conflict");
    await service.setClock(FIRST_AT + DAY_MS);
    const late = await service.pay({ amount: 5 }, { idempotency_key: "reuse" });
    assert.deepEqual([late.status, late.body.amount], [201, 5]);
  });
});
