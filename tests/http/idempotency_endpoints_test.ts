/**
 * Idempotency keys on webhook endpoints (contract §5): a repeated create, update, rotation
 * or deletion has one effect, and another method under the same key is a conflict.
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service/service.ts";
import { assertRefused, serviceCase } from "../support/service/service_case.ts";

const ENDPOINTS = "/api-v1-payments/v1/webhook_endpoints";
const HOOK = "http://127.0.0.1:9999/hook";

/** A request on an endpoint, and the status of its response. */
const REQUESTS: [method: string, path: string, body: unknown, http: number][] = [
  ["POST", "", { url: HOOK }, 201],
  ["PUT", "/{id}", { description: "changed" }, 200],
  ["POST", "/{id}/rotate_secret", {}, 200],
  ["POST", "/{id}/rotate_secret", { expires_in: 60 }, 200],
  ["DELETE", "/{id}", undefined, 200],
];

async function endpoint(service: TestService): Promise<string> {
  const made = await service.call("POST", ENDPOINTS, { body: { url: HOOK } });
  assert.equal(made.status, 201, made.text);
  return made.body.id;
}

/** Every row of the endpoints, to show that a replay changes none. */
async function rows({ sql }: TestService): Promise<string> {
  return JSON.stringify(await sql`select t::text from pay.webhook_endpoints t order by id`);
}

serviceCase("Idempotency-Key replays the first response of endpoint routes", async (t, service) => {
  for (const [method, path, body, http] of REQUESTS) {
    await t.step(`${method} ${path} ${JSON.stringify(body)} → ${http}, twice`, async () => {
      const url = ENDPOINTS + path.replace("{id}", await endpoint(service));
      const options = { body, idempotency_key: crypto.randomUUID() };
      const first = await service.call(method, url, options);
      assert.equal(first.status, http, first.text);
      assert.equal(first.headers.get("Idempotent-Replayed"), null);
      const before = await rows(service);
      const again = await service.call(method, url, options);
      assert.deepEqual([again.status, again.text], [first.status, first.text]);
      assert.equal(again.headers.get("Idempotent-Replayed"), "true");
      assert.equal(again.headers.get("Location"), first.headers.get("Location"));
      assert.equal(await rows(service), before);
      // Keeps the environment below its limit on endpoints.
      await service.sql`delete from pay.webhook_endpoints`;
    });
  }
});

serviceCase("Idempotency-Key conflicts on another method of one path", async (_t, service) => {
  const url = `${ENDPOINTS}/${await endpoint(service)}`;
  const options = { idempotency_key: "method" };
  const put = await service.call("PUT", url, { ...options, body: {} });
  assert.equal(put.status, 200, put.text);
  const before = await rows(service);
  assertRefused(await service.call("DELETE", url, options), 409, "idempotency_conflict");
  assert.equal(await rows(service), before);
  const again = await service.call("PUT", url, options);
  assert.deepEqual([again.status, again.text], [200, put.text]);
});
