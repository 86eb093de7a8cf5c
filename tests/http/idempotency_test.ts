/**
 * Idempotency keys (contract §5): which responses are stored, duplicates
 * while the first request is in progress, and `GET /v1/idempotency_keys/{key}`.
 * idempotency_catalogue_test.ts repeats every operation, tests/races with two API keys.
 */

import assert from "node:assert/strict";
import { fingerprint } from "../../shared/core/canonical_json.ts";
import { claimKey } from "../support/database/idempotency_keys.ts";
import { timed } from "../support/common/timed.ts";
import { untilWaiting } from "../support/database/lock_waits.ts";
import { rowCounts } from "../support/database/payment_records.ts";
import type { TestService } from "../support/service/service.ts";
import {
  assertRefused,
  assertReplay,
  card,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const V1 = "/api-v1-payments/v1";
const ENDPOINTS = `${V1}/webhook_endpoints`;
const KEYS = `${V1}/idempotency_keys`;
const CREATE = { amount: 700, currency: "EUR" };
const HOOK = { url: "https://example.com/hook" };
const UNKNOWN = `pay_${"0".repeat(26)}`;
const DAY_MS = 24 * 60 * 60 * 1000;

/** Requests whose error is not stored under the idempotency key. */
const NOT_KEPT: [
  string,
  path: string,
  body: unknown,
  http: number,
  headers?: Record<string, string>,
][] = [
  ["400 of a field", PAYMENTS, { ...CREATE, amount: 0 }, 400],
  ["400 of JSON", PAYMENTS, "{", 400],
  ["400 of a refund that is too much", `${PAYMENTS}/{id}/refund`, { amount: 1001 }, 400],
  ["404", `${PAYMENTS}/${UNKNOWN}/cancel`, undefined, 404],
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
    assertRefused(refused, "permission_denied");
    const kept = await service.sql`select * from pay.idempotency_keys where key = 'scope'`;
    assert.equal(kept.length, 0);
  });
});

serviceCase("a create is replayed after its card has expired", async (_, service) => {
  const body = card({ exp_month: 11, exp_year: 2026 });
  await service.setClock(Date.parse("2026-11-30T23:59:59.999Z"));
  const first = await service.pay(body, { idempotency_key: "month" });
  assert.equal(first.status, 201);
  await service.setClock(Date.parse("2026-12-01T00:00:00.000Z"));
  assertReplay(await service.pay(body, { idempotency_key: "month" }), first);
  assertRefused(await service.pay(body), "invalid_parameter", "card.exp_month");
});

/** The time that a concurrent duplicate waits (contract §5), and the delay on a busy machine. */
const PATIENCE_MS = 3000;
const SLACK_MS = 1500;
/** The stored response of the first request. No duplicate could compute it by itself. */
const STORED = '{"id":"pay_first"}';

type Duplicated = [name: string, path: string, body: Record<string, unknown>, from: string | null];

const DUPLICATED: Duplicated[] = [
  ["POST /v1/payments", PAYMENTS, CREATE, null],
  ["POST /v1/payments/{id}/refund", `${PAYMENTS}/{id}/refund`, { amount: 5 }, "completed"],
  ["POST /v1/payments/{id}/cancel", `${PAYMENTS}/{id}/cancel`, {}, "pending"],
  // Last, because it admits no other changes meanwhile.
  ["POST /reset", `${SANDBOX}/reset`, {}, null],
];

/** Claims a key as a first request does, and prepares its duplicate, on a payment of its own. */
async function claim(service: TestService, [name, path, body, from]: Duplicated, why: string) {
  const url = path.replace("{id}", from === null ? "" : (await paymentIn(service, from)).id);
  const idempotency_key = `${why} ${name}`.replaceAll(/\W/g, "_");
  const hash = fingerprint("POST", url, body as never);
  return {
    first: await claimKey(service, idempotency_key, hash, STORED),
    send: () => service.call("POST", url, { body, idempotency_key, unchecked: true }),
  };
}

serviceCase("a duplicate of a request in progress", async (t, service) => {
  for (const request of DUPLICATED) {
    // The first request locks the payment's row before its key, so a duplicate of a move waits for
    // that row.
    if (request[3] !== null) {
      await t.step(`${request[0]} waits for the payment's row, and replays`, async () => {
        const { first, send } = await claim(service, request, "moved");
        await using _ = first;
        // Increments the sequence, as the change of the first request does.
        await first`update pay.payments set sequence = sequence + 1`;
        const duplicate = send();
        await untilWaiting(service.sql);
        await first`commit`;
        const response = await duplicate;
        assert.deepEqual([response.status, response.text], [201, STORED]);
        assert.equal(response.headers.get("Idempotent-Replayed"), "true");
      });
    }
    await t.step(`${request[0]} runs after the first is rolled back`, async () => {
      const { first, send } = await claim(service, request, "undone");
      await using _ = first;
      const duplicate = send();
      await untilWaiting(service.sql);
      await first`rollback`;
      const response = await duplicate;
      assert.equal(response.headers.get("Idempotent-Replayed"), null, response.text);
      assert.notEqual(response.text, STORED);
      assertReplay(await send(), response);
    });
  }
});

serviceCase("a duplicate gives up after 3 s", async (t, service) => {
  // A create is in database_unavailable_test.ts, and a cancel waits as a refund does.
  for (const request of [DUPLICATED[1]!, DUPLICATED[3]!]) {
    await t.step(request[0], async () => {
      const { first, send } = await claim(service, request, "slow");
      await using _ = first;
      // The time that a request takes on this machine now.
      const { ms: usual_ms } = await timed(service.pay());
      const before = await rowCounts(service);
      const { response, ms } = await timed(send());
      assert.deepEqual(await rowCounts(service), before);
      assertRefused(response, "idempotency_in_progress");
      assert.equal(response.body.error.type, "idempotency");
      assert.equal(response.headers.get("Retry-After"), "1");
      const is_in_time = ms >= PATIENCE_MS - 50 && ms < PATIENCE_MS + SLACK_MS + usual_ms;
      assert.ok(is_in_time, `waited ${Math.round(ms)} ms`);
      await first`commit`;
      assert.equal((await send()).text, STORED);
    });
  }
});

function look(service: TestService, key: string, api_key = service.key.text) {
  return service.call("GET", `${KEYS}/${encodeURIComponent(key)}`, { key: api_key });
}

serviceCase("GET /v1/idempotency_keys/{key}", async (t, service) => {
  await t.step("counts replays, not conflicts, also of live keys", async () => {
    for (const key of [service.key.text, service.live.text]) {
      const [path, body] = key === service.live.text ? [ENDPOINTS, HOOK] : [PAYMENTS, CREATE];
      const send = (body: unknown) =>
        service.call("POST", path, { key, body, idempotency_key: "again" });
      assert.equal((await send(body)).status, 201);
      await Promise.all(Array.from({ length: 7 }, () => send(body)));
      assertRefused(await send({ ...body, description: "other" }), "idempotency_conflict");
      assert.equal((await look(service, "again", key)).body.replays, 7);
      assert.equal((await send(body)).headers.get("Idempotent-Replayed"), "true");
      assert.equal((await look(service, "again", key)).body.replays, 8);
    }
  });
  const visible = Array.from({ length: 94 }, (_, i) => String.fromCharCode(0x21 + i)).join("");
  const odd = ["a/b", "%2F", "%", "a%20b", "?x=1#y", "..%2f..", "+", ":id", "Case", "case"];
  for (const idempotency_key of [visible, "a".repeat(255), ...odd]) {
    await t.step(`takes ${idempotency_key.slice(0, 20)}, encoded`, async () => {
      const first = await service.pay(CREATE, { idempotency_key });
      assert.equal(first.status, 201, first.text);
      assert.equal(first.headers.get("Idempotent-Replayed"), null);
      const { status, body } = await look(service, idempotency_key);
      assert.deepEqual([status, body.key], [200, idempotency_key]);
      assert.equal(body.body.id, first.body.id);
    });
  }
  await t.step("shows a request under way", async () => {
    await service.sql`insert into pay.idempotency_keys
      (environment_id, api_key_id, key, fingerprint, request_id, request_line, status, body, created_at)
      values (${service.key.environment_id}, ${service.key.id}, 'slow', ${new Uint8Array(32)},
        ${"req_" + "0".repeat(26)}, ${`POST ${PAYMENTS}`}, 102, '', now())`;
    const { status, body } = await look(service, "slow");
    assert.equal(status, 200);
    assert.deepEqual([body.status, body.body, body.replays, body.path], [null, null, 0, PAYMENTS]);
  });
  for (const key of ["unknown", "with space", "é", "x".repeat(256), "%00", "\0"]) {
    await t.step(`is 404 for ${JSON.stringify(key).slice(0, 20)}`, async () => {
      assertRefused(await look(service, key), "not_found");
    });
  }
  await t.step("is 404 after 24 hours", async () => {
    await service.setClock(Date.now() + DAY_MS + 60_000);
    assertRefused(await look(service, "a/b"), "not_found");
  });
});
