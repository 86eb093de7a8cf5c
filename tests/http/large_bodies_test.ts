/**
 * Bodies above 4 096 bytes: the database admits and counts the request before the service reads
 * them, and accounts take turns at parsing them (contract §6, security §2).
 */

import assert from "node:assert/strict";
import { generateApiKey } from "../../shared/core/api_key.ts";
import { createPaymentsFunction } from "../../shared/functions/payments_function.ts";
import { LARGE_BODIES } from "../../shared/jobs/places.ts";
import { SMALL_BODY_BYTES } from "../../shared/schema/limits.ts";
import { NeedsInternals } from "../support/service/needs_internals.ts";
import { IS_REMOTE } from "../support/service/product.ts";
import { PAYMENTS, serviceCase } from "../support/service/service_case.ts";
import type { TestService } from "../support/service/service.ts";

const RATE = 5;
const START = Date.parse("2030-01-01T00:00:00Z");
const CHUNK = 1_024;

/** A create of this many bytes. */
function create(bytes: number): string {
  return '{"amount":1,"currency":"EUR"}'.padEnd(bytes);
}

/** Sends an endless body that is no JSON. Returns the status and the bytes that were taken. */
async function sendEndless(service: TestService, key: string): Promise<[number, number]> {
  let taken = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      taken += CHUNK;
      controller.enqueue(new Uint8Array(CHUNK).fill(0x20));
    },
  });
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  const request = new Request(`http://localhost${PAYMENTS}`, { method: "POST", headers, body });
  const response = await createPaymentsFunction(service.deps)(request);
  await response.text();
  return [response.status, taken];
}

serviceCase("a caller who is refused sends no large body", async (t, service) => {
  if (IS_REMOTE) throw new NeedsInternals("the bytes that are read");
  await service.setClock(START);
  const { environment_id } = service.key;
  const narrow = await service.issueKey(environment_id, { scopes: ["ledger:read"] });
  const busy = await service.issueKey(environment_id);
  const known = await service.issueKey(environment_id);
  await service.call("GET", PAYMENTS, { key: known.text });
  await service.sql`update pay.api_key_secrets set revoked_at = now()
    where api_key_id = ${known.id}`;
  for (let i = 0; i < 2 * RATE; i++) await service.call("GET", PAYMENTS, { key: busy.text });
  // One chunk is taken before the function runs.
  const small = SMALL_BODY_BYTES + 2 * CHUNK;
  const rows: [name: string, key: string, status: number, most: number][] = [
    ["a made-up key", generateApiKey("test"), 401, CHUNK],
    ["no key", "none", 401, CHUNK],
    ["a revoked key that the isolate knew", known.text, 401, small],
    ["a key without the scope", narrow.text, 403, small],
    ["a key above its rate", busy.text, 429, small],
    ["a valid key", service.key.text, 413, 65_536 + 2 * CHUNK],
  ];
  for (const [name, key, status, most] of rows) {
    await t.step(`${name}: ${status}, and at most ${most} bytes are read`, async () => {
      const [got, taken] = await sendEndless(service, key);
      assert.equal(got, status);
      assert.ok(taken <= most, `${taken} bytes`);
    });
  }
}, { rate_limit: RATE });

serviceCase("a replay counts if its body is large", async (t, service) => {
  const rows: [bytes: number, length: string | null, left: number][] = [
    [SMALL_BODY_BYTES, null, 2 * RATE],
    [SMALL_BODY_BYTES + 1, null, 2 * RATE - 1],
    [SMALL_BODY_BYTES, String(SMALL_BODY_BYTES), 2 * RATE],
    [SMALL_BODY_BYTES + 1, String(SMALL_BODY_BYTES + 1), 2 * RATE - 1],
  ];
  for (const [i, [bytes, length, left]] of rows.entries()) {
    await t.step(`${bytes} bytes, Content-Length ${length}`, async () => {
      const options = {
        body: create(bytes),
        idempotency_key: `${i}`,
        headers: length === null ? {} : { "Content-Length": length },
      };
      await service.setClock(START + i * 100_000);
      const first = await service.call("POST", PAYMENTS, options);
      assert.equal(first.headers.get("RateLimit"), `"default";r=${2 * RATE - 1};t=2`, first.text);
      await service.setClock(START + i * 100_000 + 10_000);
      const again = await service.call("POST", PAYMENTS, options);
      assert.equal(again.text, first.text);
      assert.equal(again.headers.get("RateLimit"), `"default";r=${left};t=2`);
    });
  }
}, { rate_limit: RATE });

serviceCase("accounts take turns at large bodies", async (_, service) => {
  const large = { body: create(60_000) };
  const other = { ...large, key: service.other.text };
  await service.pay();
  await service.pay({}, { key: service.other.text });
  const ended: string[] = [];
  const send = async (name: string, options: typeof large) => {
    const { status } = await service.call("POST", PAYMENTS, options);
    if (status === 201) ended.push(name);
    return status;
  };
  const count = 4 * LARGE_BODIES.waiting_of_owner;
  const flood = Array.from({ length: count }, () => send("flood", large));
  const [small, first] = await Promise.all([
    service.pay({}, { key: service.other.text }),
    send("other", other),
  ]);
  assert.deepEqual([small.status, first], [201, 201]);
  const before = ended.indexOf("other");
  const statuses = await Promise.all(flood);
  const done = statuses.filter((status) => status === 201).length;
  // Some have their turns while the others arrive.
  assert.ok(done <= 1.5 * LARGE_BODIES.waiting_of_owner, `${done} of ${count} were parsed`);
  assert.equal(statuses.filter((status) => status === 429).length, count - done);
  assert.ok(before <= 3, `${before} of the flood were parsed before that of another account`);
});
