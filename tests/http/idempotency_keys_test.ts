/**
 * `GET /v1/idempotency_keys/{key}` (contract §5): the first request of an idempotency key and its
 * stored response, for the API key that has used it.
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service/service.ts";
import { assertRefused, PAYMENTS, serviceCase } from "../support/service/service_case.ts";

const KEYS = "/api-v1-payments/v1/idempotency_keys";
const V1 = "/api-v1-payments/v1";
const CREATE = { amount: 700, currency: "EUR" };
const DAY_MS = 24 * 3600 * 1000;

function look(service: TestService, key: string, api_key?: string) {
  return service.call("GET", `${KEYS}/${encodeURIComponent(key)}`, api_key ? { key: api_key } : {});
}

serviceCase("GET /v1/idempotency_keys/{key} counts replays, not conflicts", async (_, service) => {
  for (const key of [service.key.text, service.live.text]) {
    const path = key === service.live.text ? `${V1}/webhook_endpoints` : PAYMENTS;
    const body = key === service.live.text ? { url: "https://example.com/hook" } : CREATE;
    const send = (body: unknown) =>
      service.call("POST", path, { key, body, idempotency_key: "again" });
    assert.equal((await send(body)).status, 201);
    await Promise.all(Array.from({ length: 7 }, () => send(body)));
    assertRefused(await send({ ...body, description: "other" }), 409, "idempotency_conflict");
    assert.equal((await look(service, "again", key)).body.replays, 7);
    assert.equal((await send(body)).headers.get("Idempotent-Replayed"), "true");
    assert.equal((await look(service, "again", key)).body.replays, 8);
  }
});

serviceCase("GET /v1/idempotency_keys/{key} takes every key, encoded", async (_, service) => {
  const ascii = Array.from({ length: 94 }, (_, i) => String.fromCharCode(0x21 + i)).join("");
  const keys = [
    ascii,
    "a/b",
    "%2F",
    "%",
    "a%20b",
    "?x=1#y",
    "..%2f..",
    "a".repeat(255),
    "+",
    ":id",
  ];
  for (const idempotency_key of keys) {
    const first = await service.pay(CREATE, { idempotency_key });
    assert.equal(first.status, 201, first.text);
    const { status, body } = await look(service, idempotency_key);
    assert.deepEqual([status, body.key], [200, idempotency_key]);
    assert.equal(body.body.id, first.body.id);
  }
});

serviceCase("GET /v1/idempotency_keys/{key} of an unknown key is 404", async (t, service) => {
  const second = await service.issueKey(service.key.environment_id);
  await service.pay(CREATE, { idempotency_key: "mine" });
  const keys = { other: service.other.text, live: service.live.text, second: second.text };
  for (const [name, key] of Object.entries(keys)) {
    await t.step(`a key of ${name}`, async () => {
      const foreign = await look(service, "mine", key);
      assertRefused(foreign, 404, "not_found");
      const unknown = await look(service, "unknown", key);
      assert.equal(foreign.body.error.message, unknown.body.error.message);
    });
  }
  for (const key of ["unknown", "with space", "é", "x".repeat(256), "%00", "\0"]) {
    await t.step(`unknown ${JSON.stringify(key).slice(0, 20)}`, async () => {
      assertRefused(await look(service, key), 404, "not_found");
    });
  }
  await t.step("a key after 24 hours", async () => {
    await service.setClock(Date.now() + DAY_MS + 60_000);
    assertRefused(await look(service, "mine"), 404, "not_found");
    await service.setClock(null);
  });
  await t.step("needs payments:read", async () => {
    const { text } = await service.issueKey(service.key.environment_id, {
      scopes: ["payments:write"],
    });
    assertRefused(await look(service, "mine", text), 403, "permission_denied");
  });
});

serviceCase("GET /v1/idempotency_keys/{key} while the request is under way", async (_, service) => {
  await service.sql`insert into pay.idempotency_keys
    (environment_id, api_key_id, key, fingerprint, request_id, request_line, status, body, created_at)
    values (${service.key.environment_id}, ${service.key.id}, 'slow', ${new Uint8Array(32)},
      ${"req_" + "0".repeat(26)}, ${`POST ${PAYMENTS}`}, 102, '', now())`;
  const { status, body } = await look(service, "slow");
  assert.equal(status, 200);
  assert.deepEqual([body.status, body.body, body.replays, body.path], [null, null, 0, PAYMENTS]);
});
