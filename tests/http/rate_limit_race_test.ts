/**
 * The rate limit under concurrency: how many requests can exceed it, and that requests of one key
 * never wait for each other's commit.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { parseApiKey } from "../../shared/core/api_key.ts";
import { startSecondService } from "../support/service/second_service.ts";
import type { TestService } from "../support/service/service.ts";
import { PAYMENTS, serviceCase } from "../support/service/service_case.ts";

const RATE = 20;
/** The number of concurrent requests: above the limit, and low enough for a busy machine. */
const REQUESTS = 200;
const POOL = 10;
/**
 * The number of requests that the other isolate may have in progress: 64 changes in one statement,
 * or a read on each connection.
 */
const MAX_OVER = 64;
const START = Date.parse("2030-01-01T00:00:00Z");

serviceCase("the rate limit on two isolates", async (t, first) => {
  const second = startSecondService(first, {
    rate_limit: RATE,
    max_connections: POOL,
    clock: () => START,
  });
  await first.setClock(START);
  try {
    const body = { amount: 1, currency: "EUR" };
    /** [name, sends one request and returns whether it was admitted] */
    const kinds: [string, (i: number, key: string) => Promise<boolean>][] = [
      ["creates", async (i, key) => {
        const response = await [first, second][i % 2]!.call("POST", PAYMENTS, { key, body });
        return admitted(response.status, 201);
      }],
      ["reads", async (i, key) => {
        const response = await [first, second][i % 2]!.call("GET", PAYMENTS, { key });
        return admitted(response.status, 200);
      }],
      ["keyed creates", async (i, key) => {
        const options = { key, body, idempotency_key: `k${i}` };
        return admitted(
          (await [first, second][i % 2]!.call("POST", PAYMENTS, options)).status,
          201,
        );
      }],
    ];
    for (const [name, send] of kinds) {
      await t.step(
        `${REQUESTS} ${name} at once exceed the limit by at most ${MAX_OVER}`,
        async () => {
          const { text } = await first.issueKey(first.key.environment_id);
          const responses = await Promise.all(
            Array.from({ length: REQUESTS }, (_, i) => send(i, text)),
          );
          const over = responses.filter((is_admitted) => is_admitted).length - 2 * RATE;
          console.log(`${name}: ${over} over the limit, ${2 * POOL} connections`);
          assert.ok(over >= 0 && over <= MAX_OVER, `${over} over the limit`);
          assert.equal(await send(REQUESTS, text), false);
        },
      );
    }
  } finally {
    await second.close();
  }
}, { rate_limit: RATE, max_connections: POOL });

serviceCase("counting a request never waits for an open transaction", async (t, service) => {
  await t.step("of a new key with 80 requests that have not committed", async () => {
    const { text } = await service.issueKey(service.key.environment_id);
    await holdOpen(service, text, 80);
    const [row] = await service.sql`
      select count(*)::int as stripes, sum(current_count)::int as counted from pay.rate_counters
      where api_key_id = (select api_key_id from pay.api_key_secrets
        where hash = decode(${parseApiKey(text)!.hash}, 'hex'))`;
    assert.deepEqual(row, { stripes: 64, counted: 64 });
  });
  await t.step("of a key whose stripes are locked; a create succeeds meanwhile", async () => {
    const { text } = await service.issueKey(service.key.environment_id);
    await holdOpen(service, text, 5);
    await holdOpen(service, text, 30, async () => {
      const made = await service.pay({}, { key: text });
      assert.equal(made.status, 201, made.text);
    });
  });
}, { rate_limit: 1000 });

/**
 * Opens this many transactions one after another, each with a counted request, before any of them
 * commits.
 */
async function holdOpen(
  service: TestService,
  key: string,
  requests: number,
  meanwhile: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const sql = postgres(service.database.functions_url, { max: requests, onnotice: () => {} });
  try {
    const held: postgres.ReservedSql[] = [];
    for (let i = 0; i < requests; i++) {
      const connection = await sql.reserve();
      held.push(connection);
      await connection`begin`;
      // A request that waits for a lock fails here.
      await connection`set local lock_timeout = '500ms'`;
      const [row] = await connection`
        select outcome from pay.load(p_requests => json_build_array(json_build_object(
          'n', 1, 'key_hash', ${parseApiKey(key)!.hash}::text, 'at', now(),
          'rate', json_build_array(1000, 0)))::text)`;
      assert.equal(row!.outcome, "ok");
    }
    await meanwhile();
    for (const connection of held) {
      await connection`commit`;
      connection.release();
    }
  } finally {
    // Also closes connections that are still open after a failed assertion.
    await sql.end({ timeout: 1 });
  }
}

function admitted(status: number, expected: number): boolean {
  assert.ok(status === expected || status === 429, `status ${status}`);
  return status === expected;
}
