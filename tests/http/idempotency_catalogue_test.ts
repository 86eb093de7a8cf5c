/**
 * Idempotency keys on every operation that changes something (contract §5): a repeated
 * request gets the first response byte for byte and changes nothing, another request under its key
 * is a conflict, a duplicate of a request under way waits for it, a response is stored for 24 hours
 * to the millisecond, and the key belongs to one API key. A replay counts against no rate limit.
 */

import assert from "node:assert/strict";
import { fingerprint } from "../../shared/core/canonical_json.ts";
import { CATALOGUE, type CatalogueRequest } from "../support/catalogue/requests.ts";
import { fill, firstValues, saveId } from "../support/catalogue/run_catalogue.ts";
import { until } from "../support/common/until.ts";
import { claimKey, storeKey } from "../support/database/idempotency_keys.ts";
import { untilWaiting } from "../support/database/lock_waits.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { contentOf } from "../support/database/environment_content.ts";
import { IS_REMOTE } from "../support/service/product.ts";
import { startSecondService } from "../support/service/second_service.ts";
import { APPROVED_CARD, type TestResponse, type TestService } from "../support/service/service.ts";
import { openRecorder } from "../support/webhook/recording_receiver.ts";
import {
  assertRefused,
  assertReplay,
  PAYMENTS,
  serviceCase,
} from "../support/service/service_case.ts";

const KEYS = "/api-v1-payments/v1/idempotency_keys";
const DAY_MS = 24 * 3_600_000;
/** The time before the end of 24 hours: a clock that the test cannot set goes on. */
const REST_MS = IS_REMOTE ? 60_000 : 1;
/** The stored response of another request. No request could compute it by itself. */
const STORED = '{"id":"pay_stored"}';
const ANOTHER = "00".repeat(32);

/** A request, the request of the catalogue that it follows, and its status. */
type Further = CatalogueRequest & { after: string; status: number };

const EUR = { amount: 1999, currency: "EUR" };
const SECURE = { card: { ...APPROVED_CARD, number: "4000 0025 0000 3155" } };
const BLOCKED = { card: { ...APPROVED_CARD, number: "4100 0000 0000 0019" } };

/** Requests of other results that are stored: refusals, declines, and a move that moves nothing. */
const FURTHER: Further[] = ([
  ["advancePayment completed", "cancelPayment", 409, { of: "swift" }],
  ["cancelTransfer cancelled", "cancelTransfer", 409, { of: "waiting" }],
  ["createPayment outcome", "refundPayment", 409, { of: "pending" }],
  ["createPayment token", "capturePayment", 409, { of: "payment" }],
  ["authenticatePayment success", "authenticatePayment", 409, { of: "action", body: {} }],
  ["createPayment sepa_return", "advancePayment", 409, { of: "failed", body: { to: "completed" } }],
  ["acceptDispute lost", "acceptDispute", 409, { of: "dispute" }],
  ["payCheckout paid", "payCheckout", 409, { of: "checkout", body: SECURE }],
  ["cancelCheckout cancelled", "cancelCheckout", 409, { of: "link" }],
  ["createPayment swift", "advancePayment", 200, { of: "swift", body: { to: "pending" } }],
  ["createPayment token", "createPayment", 402, { body: { ...EUR, outcome: "declined" } }],
  ["createPayment outcome", "createPayment", 402, { body: { ...EUR, ...BLOCKED } }],
  ["createTransfer wallet", "createTransfer", 402, {
    body: { ...EUR, amount: 99_999_999_999, destination: { iban: "DE89 3704 0044 0532 0130 00" } },
  }],
  ["createPayment card", "createPayment", 201, { body: { ...EUR, ...SECURE }, save: "failing" }],
  ["createPayment three_d_secure", "authenticatePayment", 402, {
    of: "failing",
    body: { result: "failure" },
  }],
] as const).map(([after, operation, status, request]) => {
  const name = `${status}_after_${after.replace(" ", "_")}`;
  return { after, operation, status, name, ...request };
});

/**
 * The log of requests is off here, so that it is no change. A clock stores its response at the end
 * of its advance, and then by the new time (clock_test.ts, sandbox_clock_test.ts).
 */
const LEFT_OUT = ["listRequests", "getRequest", "setClock"];
const OWN = CATALOGUE.filter(({ operation }) => !LEFT_OUT.includes(operation));
const REQUESTS: (CatalogueRequest & { status?: number })[] = OWN.flatMap((request) => [
  request,
  ...FURTHER.filter(({ after }) => after === `${request.operation} ${request.name}`),
]);

/** A request that was sent: its first response, and how to send it again. */
interface Sent {
  name: string;
  method: string;
  path: string;
  options: { body?: unknown; idempotency_key: string };
  first: TestResponse;
}

serviceCase("Idempotency-Key on every operation that changes something", async (t, service) => {
  assert.equal(REQUESTS.length, OWN.length + FURTHER.length);
  const hooks = openRecorder();
  const saved = firstValues(hooks.url("/"));
  const done: Sent[] = [];
  const second = await service.issueKey(service.key.environment_id);
  let now = Date.now();
  const pass = (by_ms: number) => now = service.trySetClock(now + by_ms) ? now + by_ms : Date.now();
  for (const request of REQUESTS) {
    pass(2_000);
    if (request.operation === "resetSandbox") await replayAll(t, service, done, pass);
    const { method, path, own_path, aliases, body } = fill(request, saved);
    if (method === "GET") {
      const read = await service.get(path);
      saveId(request, read, saved);
      continue;
    }
    const key = request.key ?? `${request.operation}-${request.name}`;
    const whole_path = request.query ? `${own_path}?${request.query}` : own_path;
    const hash = fingerprint(method, whole_path, (body ?? {}) as never);
    const send = (address = path, idempotency_key = key) =>
      service.call(method, address, { body, idempotency_key, unchecked: true });
    const content = async () => {
      const id = await service.environmentOf(service.key);
      const { idempotency_keys: _, ...rows } = await contentOf(service, id);
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
          await using first = await claimKey(service, `${key}-${name}`, claimed, STORED);
          const duplicate = send(path, `${key}-${name}`);
          await untilWaiting(service.sql);
          await first`commit`;
          if (claimed === hash) assertStored(await duplicate);
          else assertRefused(await duplicate, "idempotency_conflict");
        });
      }
      await t.step("gets a response that is stored for less than 24 hours", async () => {
        await storeKey(service, `${key}-stored`, hash, STORED, now - DAY_MS + REST_MS);
        assertStored(await send(path, `${key}-stored`));
        assert.deepEqual(await content(), before);
      });
      let first: TestResponse;
      await t.step("is new after 24 hours", async () => {
        await storeKey(service, key, hash, STORED, now - DAY_MS);
        first = await send();
        assert.equal(first.headers.get("Idempotent-Replayed"), null);
        const is_expected = request.status
          ? first.status === request.status
          : first.status < 300 || first.status === 402;
        assert.ok(is_expected, first.text);
        saveId(request, first.body, saved);
      });
      await t.step("replays its response at each address, and changes nothing", async () => {
        // A second reset would delete it.
        if (request.operation === "resetSandbox") await service.pay();
        const [after, arrivals] = [await content(), hooks.arrivals.length];
        for (const address of [path, ...aliases]) assertReplay(await send(address), first);
        assert.deepEqual(await content(), after);
        if (request.operation === "triggerWebhook") assert.equal(hooks.arrivals.length, arrivals);
        done.push({ name: key, method, path, options: { body, idempotency_key: key }, first });
      });
      await t.step("conflicts with another request", async () => {
        const other = await service.call("POST", PAYMENTS, {
          body: { amount: 77, currency: "EUR" },
          idempotency_key: key,
        });
        assertRefused(other, "idempotency_conflict");
      });
      await t.step("is shown to its API key, without secrets", async () => {
        const look = async () => await service.get(`${KEYS}/${key}`);
        const replays = 1 + aliases.length;
        // Another process counts replays behind their responses.
        if (IS_REMOTE) {
          await until("all are counted", async () => (await look()).replays === replays);
        }
        const { created_at, expires_at, ...shown } = await look();
        const { secret, test_key, ...response } = first!.body;
        assert.deepEqual(shown, {
          key,
          object: "idempotency_key",
          first_request_id: first!.headers.get("Request-Id"),
          method,
          path: own_path,
          status: first!.status,
          replays,
          body: {
            ...response,
            ...(secret && { secret: "***" }),
            ...(response["object"] === "checkout" && { url: "***" }),
            ...(test_key && { test_key: "***" }),
          },
        });
        if (!IS_REMOTE) assert.equal(created_at, new Date(now).toISOString());
        assert.equal(Date.parse(expires_at) - Date.parse(created_at), DAY_MS);
        const [row] = await service.sql`select body from pay.idempotency_keys where key = ${key}`;
        assert.ok(!(row!.body ?? "").includes(secret ?? test_key ?? "none"));
        const foreign = await service.call("GET", `${KEYS}/${key}`, { key: second.text });
        assertRefused(foreign, "not_found");
      });
    });
  }
  await hooks.close();
}, { rate_limit: 1_000 });

/** Replays every response, then again at an exhausted rate limit. */
async function replayAll(
  t: Deno.TestContext,
  service: TestService,
  done: readonly Sent[],
  pass: (by_ms: number) => number,
): Promise<void> {
  const counted = () =>
    service.sql`select sum(current_count)::int as requests from pay.rate_counters`;
  await t.step("the invariants hold after every operation", async () => {
    await service.sql`delete from pay.idempotency_keys where body = ${STORED}`;
    await assertSilent(service.sql);
  });
  await t.step("responses are replayed after all later changes, and not counted", async () => {
    pass(60_000);
    await service.call("GET", PAYMENTS);
    const before = await counted();
    assert.ok(before[0]!.requests > 0);
    for (const { name, method, path, options, first } of done) {
      assertReplay(await service.call(method, path, { ...options, unchecked: true }), first, name);
    }
    if (!IS_REMOTE) assert.deepEqual(await counted(), before);
  });
  if (IS_REMOTE) return;
  await t.step("responses are replayed at an exhausted rate limit", async () => {
    const limited = startSecondService(service, {
      rate_limit: 1,
      allow_private_webhooks: true,
      clock: () => pass(0),
    });
    try {
      while ((await limited.call("GET", PAYMENTS)).status !== 429);
      for (const { name, method, path, options, first } of done) {
        const replay = await limited.call(method, path, options);
        assertReplay(replay, first, name);
        assert.equal(replay.headers.get("RateLimit"), '"default";r=0;t=2', name);
      }
    } finally {
      await limited.close();
    }
  });
}
