/**
 * Idempotency keys on every operation that changes something (contract §5): a repeated
 * request gets the first response byte for byte and changes nothing, another request under its key
 * is a conflict, a duplicate of a request under way waits for it, a response is stored for 24 hours
 * to the millisecond, and the key belongs to one API key.
 */

import assert from "node:assert/strict";
import { fingerprint } from "../../shared/core/canonical_json.ts";
import { CATALOGUE, type CatalogueRequest } from "../support/catalogue/requests.ts";
import { fill, firstValues, keep } from "../support/catalogue/run_catalogue.ts";
import { claimKey, storeKey } from "../support/database/idempotency_keys.ts";
import { untilWaiting } from "../support/database/lock_waits.ts";
import { contentOf } from "../support/database/environment_content.ts";
import type { TestResponse } from "../support/service/service.ts";
import { openRecorder } from "../support/webhook/recording_receiver.ts";
import { assertRefused, PAYMENTS, serviceCase } from "../support/service/service_case.ts";

const KEYS = "/api-v1-payments/v1/idempotency_keys";
const DAY_MS = 24 * 3_600_000;
/** The stored response of another request. No request could compute it by itself. */
const STORED = '{"id":"pay_stored"}';
const ANOTHER = "00".repeat(32);

/** Requests whose refusal is stored, after the request of the catalogue that makes their resource. */
const REFUSED: readonly (CatalogueRequest & { after: string })[] = [
  { after: "advancePayment completed", operation: "cancelPayment", name: "refused", of: "swift" },
  {
    after: "cancelTransfer cancelled",
    operation: "cancelTransfer",
    name: "refused",
    of: "waiting",
  },
  { after: "createPayment outcome", operation: "refundPayment", name: "refused", of: "pending" },
  { after: "createPayment token", operation: "capturePayment", name: "refused", of: "payment" },
  {
    after: "authenticatePayment success",
    operation: "authenticatePayment",
    name: "refused",
    of: "action",
    body: {},
  },
  {
    after: "createPayment sepa_return",
    operation: "advancePayment",
    name: "refused",
    of: "failed",
    body: { to: "completed" },
  },
];

/**
 * The log of requests is off here, so that it is no change. A clock stores its response at the end of
 * its advance, and then by the new time (clock_test.ts, pending_advances_test.ts).
 */
const LEFT_OUT = ["listRequests", "getRequest", "setClock"];
const REQUESTS = CATALOGUE.filter(({ operation }) => !LEFT_OUT.includes(operation)).flatMap((
  request,
) => [
  request,
  ...REFUSED.filter(({ after }) => after === `${request.operation} ${request.name}`),
]);

function assertReplay(again: TestResponse, first: TestResponse, name?: string): void {
  assert.deepEqual([again.status, again.text], [first.status, first.text], name);
  assert.equal(again.headers.get("Idempotent-Replayed"), "true");
  for (const name of ["Location", "Content-Type", "Cache-Control"]) {
    assert.equal(again.headers.get(name), first.headers.get(name), name);
  }
  assert.notEqual(again.headers.get("Request-Id"), first.headers.get("Request-Id"));
}

serviceCase("Idempotency-Key on every operation that changes something", async (t, service) => {
  const hooks = openRecorder();
  const saved = firstValues(hooks.url("/"));
  /** The first response of each request, and how to send it again. */
  const done: { name: string; first: TestResponse; send(): Promise<TestResponse> }[] = [];
  const second = await service.issueKey(service.key.environment_id);
  let now = Date.now();
  const { environment_id } = service.key;
  for (const request of REQUESTS) {
    await service.setClock(now += 2_000);
    if (request.operation === "resetSandbox") {
      await t.step("responses are replayed after all later changes", async () => {
        for (const { name, first, send } of done) {
          await service.setClock(now += 100);
          assertReplay(await send(), first, name);
        }
      });
    }
    const { method, path, own_path, aliases, body } = fill(request, saved);
    if (method === "GET") {
      keep(request, await service.call("GET", path), saved);
      continue;
    }
    const key = request.key ?? `${request.operation}-${request.name}`;
    const hash = fingerprint(method, own_path, (body ?? {}) as never);
    const send = (address = path, idempotency_key = key) =>
      service.call(method, address, { body, idempotency_key, unchecked: true });
    const content = async () => {
      const { idempotency_keys: _, ...rows } = await contentOf(service, environment_id);
      return rows;
    };
    const assertStored = (response: TestResponse) => {
      assert.deepEqual([response.status, response.text], [201, STORED]);
      assert.equal(response.headers.get("Idempotent-Replayed"), "true");
    };

    await t.step(`${request.operation} ${request.name}`, async (t) => {
      const before = await content();
      for (const [name, claimed] of [["equal", hash], ["other", ANOTHER]] as const) {
        await t.step(`waits for an ${name} request under way`, async () => {
          const first = await claimKey(service, `${key}-${name}`, claimed, STORED);
          try {
            const duplicate = send(path, `${key}-${name}`);
            await untilWaiting(service.sql);
            await first`commit`;
            if (claimed === hash) assertStored(await duplicate);
            else assertRefused(await duplicate, 409, "idempotency_conflict");
          } finally {
            await first.end();
          }
        });
      }
      await t.step("gets a response that is stored for less than 24 hours", async () => {
        await storeKey(service, `${key}-stored`, hash, STORED, now - DAY_MS + 1);
        assertStored(await send(path, `${key}-stored`));
        assert.deepEqual(await content(), before);
      });
      let first: TestResponse;
      await t.step("is new after 24 hours", async () => {
        await storeKey(service, key, hash, STORED, now - DAY_MS);
        first = await send();
        assert.equal(first.headers.get("Idempotent-Replayed"), null);
        if (request.name === "refused") assertRefused(first, 409, "invalid_state");
        else keep(request, first, saved);
      });
      await t.step("replays its response at each address, and changes nothing", async () => {
        const [after, arrivals] = [await content(), hooks.arrivals.length];
        for (const address of [path, ...aliases]) assertReplay(await send(address), first);
        assert.deepEqual(await content(), after);
        if (request.operation === "triggerWebhook") assert.equal(hooks.arrivals.length, arrivals);
        done.push({ name: key, first, send });
      });
      await t.step("conflicts with another request", async () => {
        const other = await service.call("POST", PAYMENTS, {
          body: { amount: 77, currency: "EUR" },
          idempotency_key: key,
        });
        assertRefused(other, 409, "idempotency_conflict");
      });
      await t.step("is shown to its API key, without secrets", async () => {
        const { body: shown } = await service.call("GET", `${KEYS}/${key}`);
        const { secret, test_key, ...response } = first!.body;
        assert.deepEqual(shown, {
          key,
          object: "idempotency_key",
          first_request_id: first!.headers.get("Request-Id"),
          method,
          path: own_path,
          status: first!.status,
          created_at: new Date(now).toISOString(),
          expires_at: new Date(now + DAY_MS).toISOString(),
          replays: 1 + aliases.length,
          body: {
            ...response,
            ...(secret && { secret: "***" }),
            ...(test_key && { test_key: "***" }),
          },
        });
        const [row] = await service.sql`select body from pay.idempotency_keys where key = ${key}`;
        assert.ok(!(row!.body ?? "").includes(secret ?? test_key ?? "none"));
        const foreign = await service.call("GET", `${KEYS}/${key}`, { key: second.text });
        assertRefused(foreign, 404, "not_found");
      });
    });
  }
  await hooks.close();
});
