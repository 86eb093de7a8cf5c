/**
 * A function with a wrong clock deletes nothing early and keeps nothing forever, because the
 * database's time decides (docs/decisions/0008-what-retention-deletes.md).
 */

import assert from "node:assert/strict";
import postgres from "postgres";

import { addEndpoint, RETENTION, settle } from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";
import { RELAY_TOKEN } from "../support/service/service.ts";
import { paymentIn, PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";
import { rowCounts } from "../support/database/payment_records.ts";

const DAY_MS = 86_400_000;
/** The lead of the clock; a negative one is a delay. */
const WRONG: [name: string, by_ms: number][] = [
  ["a day ahead", DAY_MS + 1_000],
  ["ten years ahead", 3_653 * DAY_MS],
  ["two days behind", -2 * DAY_MS],
  ["ten years behind", -3_653 * DAY_MS],
];

/** Requests that have an effect each time unless they are replayed. */
const REPEATABLE: [string, path: string, body: unknown, from: string | null][] = [
  ["a create", PAYMENTS, { amount: 700, currency: "EUR", outcome: "success" }, null],
  ["a sandbox create", `${SANDBOX}/payments`, { amount_minor: 7, currency: "EUR" }, null],
  ["a refund", `${PAYMENTS}/{id}/refund`, { amount: 5 }, "completed"],
  ["a transfer", "/api-v1-payments/v1/transfers", {
    amount: 5,
    currency: "EUR",
    destination: { iban: "DE89370400440532013000" },
  }, "completed"],
  [
    "an endpoint",
    "/api-v1-payments/v1/webhook_endpoints",
    { url: "http://127.0.0.1:47999/" },
    null,
  ],
  ["an API key", "/api-v1-payments/v1/api_keys", { name: "other" }, null],
  ["a reset", `${SANDBOX}/reset`, {}, null],
];

serviceCase("a wrong clock replays each keyed request", async (t, service) => {
  for (const [clock, by_ms] of WRONG) {
    for (const [name, path, body, from] of REPEATABLE) {
      for (const wrong_first of [false, true]) {
        const when = wrong_first ? "the first request's" : "the retry's";
        await t.step(`${name}, ${when} clock ${clock}`, async () => {
          await service.setClock(null);
          const id = from === null ? "" : (await paymentIn(service, from)).id;
          const idempotency_key = `${name}-${by_ms}-${wrong_first}`.replaceAll(" ", "-");
          const send = (is_wrong: boolean) => {
            service.setWrongClock(Date.now() + (is_wrong ? by_ms : 0));
            return service.call("POST", path.replace("{id}", id), { body, idempotency_key });
          };
          const first = await send(wrong_first);
          assert.ok(first.status < 300, first.text);
          const retry = await send(!wrong_first);
          assert.deepEqual(
            [retry.text, retry.headers.get("Idempotent-Replayed")],
            [first.text, "true"],
          );
        });
      }
    }
  }
});

serviceCase("a clock ten years ahead stores a response for 24 hours", async (_, service) => {
  const now_ms = Date.now();
  await service.setClock(now_ms);
  service.setWrongClock(now_ms + 3_653 * DAY_MS);
  const first = await service.pay({}, { idempotency_key: "ahead" });
  await service.setClock(now_ms + DAY_MS - 1);
  assert.equal((await service.pay({}, { idempotency_key: "ahead" })).text, first.text);
  await service.setClock(now_ms + DAY_MS);
  const later = await service.pay({}, { idempotency_key: "ahead" });
  assert.notEqual(later.body.id, first.body.id);
});

serviceCase("retention with a wrong clock deletes nothing early", async (t, service) => {
  await service.call("POST", "/api-v1-payments/v1/webhook_endpoints", {
    body: { url: "http://127.0.0.1:47999/" },
  });
  await service.make({ outcome: "refunded" }, { idempotency_key: "kept" });
  const before = await rowCounts(service);
  for (const [clock, by_ms] of WRONG) {
    await t.step(clock, async () => {
      service.setWrongClock(Date.now() + by_ms);
      const response = await service.call("POST", RETENTION, { key: RELAY_TOKEN });
      assert.deepEqual([response.status, response.body], [200, { purged: 0 }]);
      assert.deepEqual(await rowCounts(service), before);
    });
  }
});

webhookCase("a dispatcher whose clock is ahead", async (t, service, hooks) => {
  const { id } = await addEndpoint(service, hooks.url("/"));
  hooks.judge = () => 500;
  await t.step("makes no retry before its time", async () => {
    await service.make({ outcome: "pending" });
    await settle(service);
    assert.equal(hooks.arrivals.length, 1);
    service.setWrongClock(Date.now() + 3_653 * DAY_MS);
    await settle(service);
    assert.equal(hooks.arrivals.length, 1);
  });
  await t.step("makes a first attempt at once, and the next within the schedule", async () => {
    await service.make({ outcome: "pending" });
    await settle(service);
    assert.equal(hooks.arrivals.length, 2);
    const [row] = await service.sql`
      select count(*)::int as waiting, max(next_attempt_at) < now() + interval '1 hour' as is_soon
      from pay.webhook_deliveries where status = 'pending' and leased_until is null`;
    assert.deepEqual({ ...row }, { waiting: 2, is_soon: true });
  });
  await t.step("disables no endpoint that has just begun to fail", async () => {
    const endpoint = await service.call("GET", `/api-v1-payments/v1/webhook_endpoints/${id}`);
    assert.equal(endpoint.body.status, "enabled");
  });
});

serviceCase("pay_internal.server_time() is the database's time", async (t, { database }) => {
  await t.step("pay_api can neither replace nor call it", async () => {
    const functions = postgres(database.functions_url, { max: 1, onnotice: () => {} });
    try {
      await assert.rejects(
        functions`create or replace function pay_internal.server_time() returns timestamptz
          language sql stable parallel safe as 'select pg_catalog.now()'`,
        { code: "42501" },
      );
      await assert.rejects(functions`select pay_internal.server_time()`, { code: "42501" });
    } finally {
      await functions.end();
    }
  });
});
