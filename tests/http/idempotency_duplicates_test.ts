/**
 * Duplicates: a keyed request is repeated while the first one is still in progress (contract §5). A
 * duplicate waits for the first and replays its response (idempotency_catalogue_test.ts). It runs
 * itself if the first is rolled back, and gives up after 3 s.
 */

import assert from "node:assert/strict";
import type postgres from "postgres";
import { fingerprint } from "../../shared/core/canonical_json.ts";
import type { TestResponse, TestService } from "../support/service/service.ts";
import { rowCounts } from "../support/database/payment_records.ts";
import {
  assertRefused,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";
import { claimKey } from "../support/database/idempotency_keys.ts";
import { untilWaiting } from "../support/database/lock_waits.ts";

const CREATE = { amount: 700, currency: "EUR" };
/**
 * The time that a concurrent duplicate waits (contract §5), and the delay of its response allowed
 * on a busy machine.
 */
const PATIENCE_MS = 3000;
const SLACK_MS = 1500;
/** The stored response of the first request. No duplicate could compute it by itself. */
const FIRST_RESPONSE = '{"id":"pay_first"}';

type Request = [name: string, path: string, body: Record<string, unknown>, from: string | null];

const REQUESTS: Request[] = [
  ["POST /v1/payments", PAYMENTS, CREATE, null],
  ["POST /payments", `${SANDBOX}/payments`, CREATE, null],
  ["POST /v1/payments/{id}/refund", `${PAYMENTS}/{id}/refund`, { amount: 5 }, "completed"],
  ["POST /v1/payments/{id}/cancel", `${PAYMENTS}/{id}/cancel`, {}, "pending"],
  ["a refused cancel", `${PAYMENTS}/{id}/cancel`, {}, "completed"],
  ["POST /payments/{id}/advance", `${SANDBOX}/payments/{id}/advance`, {
    to: "partially_refunded",
  }, "completed"],
  ["POST /reset", `${SANDBOX}/reset`, {}, null],
];

/** Prepares one of the requests, on a payment of its own, to be sent under any key. */
async function prepare(service: TestService, [, path, body, from]: Request) {
  const url = path.replace("{id}", from === null ? "" : (await paymentIn(service, from)).id);
  return {
    send: (idempotency_key: string) =>
      service.call("POST", url, { body, idempotency_key, unchecked: true }),
    fingerprint: fingerprint("POST", url, body as never),
  };
}

serviceCase(
  "Idempotency-Key: a duplicate that waits for the payment's row replays",
  async (t, service) => {
    // The first request locks the payment's row before its key, so a duplicate of a move waits for
    // that row.
    for (const request of REQUESTS.filter(([, , , from]) => from !== null)) {
      await t.step(request[0], async () => {
        const { send, fingerprint } = await prepare(service, request);
        const first = await claimKey(service, "moved", fingerprint, FIRST_RESPONSE);
        try {
          // Increments the sequence, as the change of the first request does.
          await first`update pay.payments set sequence = sequence + 1`;
          const duplicate = send("moved");
          await untilWaiting(service.sql);
          await first`commit`;
          const response = await duplicate;
          assert.deepEqual([response.status, response.text], [201, FIRST_RESPONSE]);
          assert.equal(response.headers.get("Idempotent-Replayed"), "true");
          await service.sql`delete from pay.idempotency_keys`;
        } finally {
          await first.end();
        }
      });
    }
  },
);

serviceCase(
  "Idempotency-Key: a duplicate runs after the first is rolled back",
  async (t, service) => {
    for (const request of REQUESTS) {
      await t.step(request[0], async () => {
        const { send, fingerprint } = await prepare(service, request);
        const first = await claimKey(service, "undone", fingerprint, FIRST_RESPONSE);
        try {
          const duplicate = send("undone");
          await untilWaiting(service.sql);
          await first`rollback`;
          const response = await duplicate;
          assert.equal(response.headers.get("Idempotent-Replayed"), null, response.text);
          assert.notEqual(response.text, FIRST_RESPONSE);
          const replay = await send("undone");
          assert.deepEqual([replay.status, replay.text], [response.status, response.text]);
          await service.sql`delete from pay.idempotency_keys`;
        } finally {
          await first.end();
        }
      });
    }
  },
);

serviceCase("Idempotency-Key: a duplicate gives up after 3 s", async (t, service) => {
  const duplicates: {
    name: string;
    first: postgres.Sql;
    key: string;
    send: (key: string) => Promise<TestResponse>;
  }[] = [];
  for (const [i, request] of REQUESTS.entries()) {
    const { send, fingerprint } = await prepare(service, request);
    const key = `slow_${i}`;
    duplicates.push({
      name: request[0],
      key,
      send,
      first: await claimKey(service, key, fingerprint, FIRST_RESPONSE),
    });
  }
  try {
    const timed = async (call: Promise<TestResponse>) => {
      const started = performance.now();
      const response = await call;
      return { response, waited_ms: performance.now() - started };
    };
    // The time that as many unhindered requests take on this machine now.
    const unhindered = await Promise.all(duplicates.map(() => timed(service.pay())));
    const usual_ms = Math.max(...unhindered.map(({ waited_ms }) => waited_ms));
    const before = await rowCounts(service);
    // The duplicates wait at the same time, so the test takes as long as one of them. The reset
    // follows, because a reset admits no other changes.
    const wait = ({ key, send }: typeof duplicates[number]) => timed(send(key));
    const [reset, ...others] = duplicates.toReversed();
    const responses = [...await Promise.all(others.reverse().map(wait)), await wait(reset!)];
    assert.deepEqual(await rowCounts(service), before);
    for (const [i, { name, key, send, first }] of duplicates.entries()) {
      await t.step(name, async () => {
        const { response, waited_ms } = responses[i]!;
        assertRefused(response, 409, "idempotency_in_progress");
        assert.equal(response.body.error.type, "idempotency");
        assert.equal(response.headers.get("Retry-After"), "1");
        const is_in_time = waited_ms >= PATIENCE_MS - 50 &&
          waited_ms < PATIENCE_MS + SLACK_MS + usual_ms;
        assert.ok(is_in_time, `waited ${Math.round(waited_ms)} ms`);
        await first`commit`;
        assert.equal((await send(key)).text, FIRST_RESPONSE);
      });
    }
  } finally {
    for (const { first } of duplicates) await first.end();
  }
}, { max_connections: REQUESTS.length });
