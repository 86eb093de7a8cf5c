/**
 * The rate limit of one key: its burst, its sliding window, the requests that do not count, and the
 * headers of every response.
 */

import assert from "node:assert/strict";
import type { TestResponse, TestService } from "../support/service/service.ts";
import { APPROVED, PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";

const V1 = "/api-v1-payments/v1";
/** Requests a second. A window lasts two seconds. */
const RATE = 5;
const QUOTA = 2 * RATE;
/** The start of a window. */
const START = Date.parse("2030-01-01T00:00:00Z");

/** Sends requests until a 429. Returns the number of admitted ones. */
async function exhaust(service: TestService, key = service.key.text): Promise<number> {
  for (let admitted = 0; admitted < 3 * QUOTA; admitted++) {
    const { status } = await service.call("GET", PAYMENTS, { key });
    if (status === 429) return admitted;
  }
  throw new Error("never limited");
}

function left({ headers }: TestResponse): string | null {
  return headers.get("RateLimit");
}

serviceCase("the rate limit of a key", async (t, service) => {
  /** [ms after the burst, requests admitted then]. The burst's weight fades over two seconds. */
  const slides: [number, number][] = [
    [0, 0],
    [1999, 0],
    [2000, 0],
    [2200, 1],
    [2500, 2],
    [3000, 5],
    [
      3800,
      9,
    ],
    [4000, 10],
    [60_000, 10],
  ];
  for (const [i, [later_ms, admitted]] of slides.entries()) {
    await t.step(`${later_ms} ms after a burst of ${QUOTA} it admits ${admitted}`, async () => {
      const start = START + i * 1_000_000;
      await service.setClock(start);
      assert.equal(await exhaust(service), QUOTA);
      await service.setClock(start + later_ms);
      assert.equal(await exhaust(service), admitted);
    });
  }
  await t.step("is not shared with another key of the environment", async () => {
    await service.setClock(START + 20_000_000);
    const { text } = await service.issueKey(service.key.environment_id);
    await exhaust(service);
    assert.equal(await exhaust(service, text), QUOTA);
  });
  await t.step("is shared by the secrets of a key", async () => {
    await service.setClock(START + 21_000_000);
    const made = await service.call("POST", `${V1}/api_keys`, { body: { name: "two" } });
    const path = `${V1}/api_keys/${made.body.id}/rotate`;
    const turned = await service.call("POST", path, { body: { expires_in: 600 } });
    await exhaust(service, made.body.secret);
    assert.equal(await exhaust(service, turned.body.secret), 0);
  });
  await t.step("every authenticated response states the policy and the remainder", async () => {
    const { text: narrow } = await service.issueKey(service.key.environment_id, {
      scopes: ["payments:read"],
    });
    const iban = { iban: "DE89 3704 0044 0532 0130 00" };
    const cases: [number, string, string, Record<string, unknown>?][] = [
      [200, "GET", PAYMENTS],
      [201, "POST", PAYMENTS, { body: { amount: 1, currency: "EUR" }, idempotency_key: "a" }],
      [201, "POST", PAYMENTS, { body: { amount: 1, currency: "EUR" } }],
      [409, "POST", PAYMENTS, { body: { amount: 2, currency: "EUR" }, idempotency_key: "a" }],
      [409, "POST", `${V1}/api_keys`, { body: { name: "x" }, idempotency_key: "a" }],
      [400, "POST", PAYMENTS, { body: {} }],
      [400, "POST", PAYMENTS, { body: {}, idempotency_key: "b" }],
      [404, "GET", `${PAYMENTS}/pay_${"0".repeat(26)}`],
      [404, "POST", `${PAYMENTS}/pay_${"0".repeat(26)}/cancel`],
      [404, "GET", `${V1}/nothing`],
      [402, "POST", `${V1}/transfers`, { body: { amount: 1, currency: "EUR", destination: iban } }],
      [402, "POST", `${V1}/transfers`, {
        body: { amount: 1, currency: "EUR", destination: iban },
        idempotency_key: "c",
      }],
      [403, "POST", PAYMENTS, { body: { amount: 1, currency: "EUR" }, key: narrow }],
      [403, "GET", `${V1}/balance`, { key: narrow }],
    ];
    for (const [i, [status, method, path, options]] of cases.entries()) {
      await service.setClock(START + 30_000_000 + i * 10_000);
      const response = await service.call(method, path, options ?? {});
      assert.equal(response.status, status, response.text);
      assert.equal(left(response), `"default";r=${QUOTA - 1};t=2`, `${status} ${method} ${path}`);
      assert.equal(response.headers.get("RateLimit-Policy"), `"default";q=${QUOTA};w=2`);
    }
  });
  await t.step("beyond the limit every kind of refusal is 429", async () => {
    await service.setClock(START + 40_000_000);
    await exhaust(service);
    const cases: [string, string, Record<string, unknown>?][] = [
      ["POST", PAYMENTS, { body: {} }],
      ["POST", PAYMENTS, { body: { amount: 2, currency: "EUR" }, idempotency_key: "a" }],
      ["POST", `${V1}/api_keys`, { body: { name: "x" }, idempotency_key: "a" }],
      ["POST", `${PAYMENTS}/pay_${"0".repeat(26)}/cancel`],
      ["GET", `${V1}/nothing`],
      ["GET", `${V1}/balance`],
      ["POST", `${SANDBOX}/reset`],
    ];
    for (const [method, path, options] of cases) {
      const response = await service.call(method, path, options ?? {});
      assert.equal(response.status, 429, `${method} ${path}: ${response.text}`);
      assert.equal(response.body.error.code, "rate_limited");
      assert.match(response.headers.get("Retry-After")!, /^[1-9]\d*$/);
      assert.equal(left(response), `"default";r=0;t=2`);
    }
  });
}, { rate_limit: RATE });

serviceCase("replays at an exhausted rate limit", async (t, service) => {
  let at_ms = START;
  const calls: [string, string, Record<string, unknown>][] = [];
  /** Sends a request in a window of its own, to be replayed later. */
  const first = async (
    method: string,
    path: string,
    body: unknown = {},
    key = service.key.text,
  ) => {
    await service.setClock(at_ms += 10_000);
    const options = { key, body, idempotency_key: `k${calls.length}` };
    const response = await service.call(method, path, options);
    calls.push([method, path, options]);
    return response.body;
  };
  const paid = await first("POST", PAYMENTS, { amount: 1000, currency: "EUR", outcome: "success" });
  await first("POST", PAYMENTS, { amount: 1, currency: "EUR", outcome: "declined" });
  await first("POST", `${PAYMENTS}/${paid.id}/refund`, { amount: 1 });
  await first("POST", `${PAYMENTS}/${paid.id}/cancel`);
  const waiting = await first("POST", `${SANDBOX}/payments`, { amount: 1, currency: "EUR" });
  await first("POST", `${SANDBOX}/payments/${waiting.id}/advance`, { to: "requires_action" });
  await first("POST", `${SANDBOX}/payments/${waiting.id}/authenticate`);
  const transfer = { amount: 1, currency: "EUR", destination: APPROVED.sepa };
  const sent = await first("POST", `${V1}/transfers`, { ...transfer, settlement: "manual" });
  await first("POST", `${V1}/transfers`, { ...transfer, amount: 999_999 });
  await first("POST", `${SANDBOX}/transfers/${sent.id}/advance`, { to: "completed" });
  await first("POST", `${V1}/transfers/${sent.id}/cancel`);
  const url = "http://127.0.0.1:47999/hook";
  const endpoint = await first("POST", `${V1}/webhook_endpoints`, { url });
  await first("PUT", `${V1}/webhook_endpoints/${endpoint.id}`, { description: "x" });
  await first("POST", `${V1}/webhook_endpoints/${endpoint.id}/rotate_secret`);
  await first("POST", `${SANDBOX}/webhooks/trigger`, {
    endpoint_id: endpoint.id,
    payment_id: paid.id,
    event: "payment.completed",
  });
  await service.make();
  const list = await service.call("GET", `${V1}/webhook_deliveries`);
  await first("POST", `${V1}/webhook_deliveries/${list.body.data[0].id}/redeliver`);
  await first("DELETE", `${V1}/webhook_endpoints/${endpoint.id}`);
  const made = await first("POST", `${V1}/api_keys`, { name: "made" });
  await first("POST", `${V1}/api_keys/${made.id}/rotate`);
  await first("DELETE", `${V1}/api_keys/${made.id}`);
  await first("POST", `${SANDBOX}/reset`, {}, service.other.text);

  await service.setClock(at_ms += 10_000);
  await exhaust(service);
  await exhaust(service, service.other.text);
  for (const [method, path, options] of calls) {
    await t.step(`${method} ${path.replaceAll(/_[0-9a-z]{26}/g, "_")} replays`, async () => {
      for (let i = 0; i < 2; i++) {
        const replay = await service.call(method, path, options);
        assert.equal(replay.headers.get("Idempotent-Replayed"), "true", replay.text);
        assert.equal(left(replay), `"default";r=0;t=2`);
      }
    });
  }
  await t.step("do not count against the limit", async () => {
    await service.setClock(at_ms + 3_000);
    for (const [method, path, options] of calls.slice(0, 4)) {
      assert.equal(left(await service.call(method, path, options)), `"default";r=${RATE};t=2`);
    }
    assert.equal(await exhaust(service), RATE);
  });
}, { rate_limit: RATE });
