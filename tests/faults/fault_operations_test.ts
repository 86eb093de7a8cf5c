/** The operations on declared faults: refusals, limits and retention (contract §7). */

import assert from "node:assert/strict";
import { declare, FAULTS } from "../support/service/declared_faults.ts";
import { assertRefused, serviceCase } from "../support/service/service_case.ts";

const ENDPOINT = `whe_${"0".repeat(26)}`;
const OK = { on: "request", fault: "rate_limited" };

serviceCase("declared faults of a sandbox", async (t, service) => {
  await t.step("a deleted fault does not happen", async () => {
    const { id } = await declare(service, OK);
    assert.equal((await service.call("DELETE", `${FAULTS}/${id}`)).status, 200);
    assert.equal((await service.pay()).status, 201);
  });
  await t.step("retention deletes them after 30 days", async () => {
    await declare(service, OK);
    await service.setClock(Date.now() + 31 * 86_400_000);
    await service.sql`select pay.purge(now() + interval '31 days', 1000)`;
    await service.setClock(null);
    assert.deepEqual([...await service.sql`select from pay.faults`], []);
  });
  await t.step("a sandbox has at most 100 faults that can happen", async () => {
    const body = { on: "provider", fault: "declined", where: { operation: "transfer" } };
    for (let i = 0; i < 100; i++) await declare(service, body);
    const { id } = (await service.get(`${FAULTS}?limit=1`)).data[0];
    const options = { body, idempotency_key: "full" };
    const refused = await service.call("POST", FAULTS, options);
    assertRefused(refused, "invalid_parameter", "times");
    assert.match(refused.body.error.message, /has 100 that have not happened/);
    await service.call("DELETE", `${FAULTS}/${id}`);
    assert.equal((await service.call("POST", FAULTS, options)).status, 201);
  });
});

/** Refused bodies, the field at fault and a part of the message. */
const REFUSED: [body: Record<string, unknown>, param: string, words: RegExp][] = [
  [{ on: "request", fault: "declined" }, "fault", /of a request must be "rate_limited"/],
  [{ on: "delivery", fault: "timeout" }, "fault", /of a delivery must be "duplicate"/],
  [{ on: "provider", fault: "delay", delay_ms: 5 }, "fault", /of a provider must be "timeout"/],
  [{ on: "request", fault: "delay" }, "delay_ms", /is required for a delay/],
  [{ on: "delivery", fault: "delay" }, "delay_ms", /is required for a delay/],
  [{ ...OK, delay_ms: 5 }, "delay_ms", /for the fault "delay" only/],
  [{ ...OK, where: { endpoint_id: ENDPOINT } }, "where.endpoint_id", /no condition.*a request/],
  [{ ...OK, where: { method_kind: "card" } }, "where.method_kind", /no condition.*a request/],
  [
    { on: "delivery", fault: "reorder", where: { path: "/v1/payments" } },
    "where.path",
    /send "endpoint_id" or "event_type"/,
  ],
  [
    { on: "provider", fault: "failed", where: { event_type: "payment.created" } },
    "where.event_type",
    /send "method_kind" or "operation"/,
  ],
  [
    { ...OK, where: { route: "/v1/payments" } },
    "where.route",
    /The names here are "method", "path"/,
  ],
  [{ ...OK, where: { path: "/v1/payments?limit=1" } }, "where.path", /a path such as/],
  [
    { on: "delivery", fault: "duplicate", where: { event_type: "payment.*" } },
    "where.event_type",
    /an event type/,
  ],
];

serviceCase("POST /faults refuses a body that makes no sense", async (t, service) => {
  for (const [body, param, words] of REFUSED) {
    await t.step(`${JSON.stringify(body)} → 400 ${param}`, async () => {
      const response = await service.call("POST", FAULTS, { body });
      assertRefused(response, "invalid_parameter", param);
      assert.match(response.body.error.message, words);
    });
  }
  await t.step("nothing was declared", async () => {
    assert.deepEqual((await service.get(FAULTS)).data, []);
    assert.equal((await service.pay()).status, 201);
  });
});
