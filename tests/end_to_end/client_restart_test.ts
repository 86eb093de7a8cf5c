/**
 * `kill -9` of the server in the middle of creates, and its restart. The client's retries create
 * exactly one payment each, also where the first attempt was committed without a response.
 */

import assert from "node:assert/strict";
import { ConnectionError, type Exchange, PaymentsClient } from "../../packages/client/mod.ts";
import { launchServer } from "../support/service/server_process.ts";
import { startService } from "../support/service/service.ts";
import { until } from "../support/common/until.ts";

const LEASE_MS = 2_500;
/** Enough retries to outlast a restart. */
const MAX_RETRIES = 10;
const CLIENTS = 8;
const PAYMENTS = 400;
/** The server is killed when this number of payments have their response. */
const KILLS_AT = [100, 250];
const INPUT = { amount: 1000, currency: "EUR", outcome: "success" } as const;

Deno.test("create() gets the response of a commit that a killed server did not send", async () => {
  const service = await startService();
  let server = await launchServer(service.database.functions_url, { lease_ms: LEASE_MS });
  const port = Number(new URL(server.base_url).port);
  const exchanges: Exchange[] = [];
  const client = new PaymentsClient({
    apiKey: service.key.text,
    baseUrl: server.base_url,
    maxRetries: MAX_RETRIES,
    onExchange: (exchange) => exchanges.push(exchange),
  });
  const count = async () =>
    (await service.sql`select count(*)::int as payments from pay.payments`)[0]!.payments;
  try {
    const locked = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const lock = service.sql.begin(async (sql) => {
      await sql`lock table pay.payments in share mode`;
      locked.resolve();
      await release.promise;
    });
    await locked.promise;
    const creating = client.payments.create(INPUT);
    // Longer than the lock timeout of a statement with several changes, so this statement will
    // commit.
    await until("the create waits within its commit", async () => {
      const waiting = await service.sql`select from pg_locks
        where relation = 'pay.payments'::regclass and not granted
          and waitstart < clock_timestamp() - interval '200 ms'`;
      return waiting.length === 1;
    });
    await server.kill();
    release.resolve();
    await lock;
    await until("its database session commits without it", async () => await count() === 1);
    server = await launchServer(service.database.functions_url, { lease_ms: LEASE_MS, port });

    const paid = await creating;
    assert.equal(paid.status, "completed");
    assert.equal(await count(), 1);
    const [row] = await service.sql`select id from pay.payments`;
    assert.equal(row!.id, paid.id);
    const [first, last] = [exchanges[0]!, exchanges.at(-1)!];
    assert.equal(first.response, null);
    assert.equal(last.response!.headers["idempotent-replayed"], "true");
    const keys = exchanges.map(({ request }) => request.headers["Idempotency-Key"]);
    assert.equal(new Set(keys).size, 1);
  } finally {
    await server.kill();
    await service.close();
  }
});

Deno.test("create() by many clients, with two kills between, makes one payment each", async (t) => {
  const service = await startService();
  let server = await launchServer(service.database.functions_url, { lease_ms: LEASE_MS });
  const port = Number(new URL(server.base_url).port);
  let lost = 0;
  let replayed = 0;
  const client = new PaymentsClient({
    apiKey: service.key.text,
    baseUrl: server.base_url,
    maxRetries: MAX_RETRIES,
    onExchange({ response }) {
      if (response === null) lost++;
      else if (response.headers["idempotent-replayed"]) replayed++;
    },
  });
  const paid = new Map<string, string>();
  let next = 0;
  const clients = Array.from({ length: CLIENTS }, async () => {
    while (next < PAYMENTS) {
      const reference = `order-${next++}`;
      const { id } = await client.payments.create({ ...INPUT, reference });
      paid.set(reference, id);
    }
  });
  // Awaited below. This handler avoids an unhandled rejection after an earlier failure.
  const all = Promise.all(clients);
  all.catch(() => {});
  try {
    for (const payments of KILLS_AT) {
      await until(`${payments} payments`, () => paid.size >= payments, 30_000);
      await server.kill();
      server = await launchServer(service.database.functions_url, { lease_ms: LEASE_MS, port });
    }
    await all;
    console.log(`lost ${lost}, replayed ${replayed}`);
    await t.step("both kills came in the middle of creates", () => {
      assert.ok(lost >= KILLS_AT.length, `${lost}`);
    });
    await t.step("each payment was created once and equals its response", async () => {
      const rows = await service.sql`select id, reference
        from pay.payments`;
      assert.equal(rows.length, PAYMENTS);
      for (const { id, reference } of rows) assert.equal(paid.get(reference), id);
    });
  } finally {
    await server.kill();
    await Promise.allSettled(clients);
    await service.close();
  }
});

Deno.test("create() throws ConnectionError with the key if no server responds", async () => {
  const service = await startService();
  const server = await launchServer(service.database.functions_url, { lease_ms: LEASE_MS });
  const client = new PaymentsClient({
    apiKey: service.key.text,
    baseUrl: server.base_url,
    runtime: { sleep: () => Promise.resolve() },
  });
  await server.kill();
  try {
    const error = await client.payments.create(INPUT).catch((error) => error);
    assert.ok(error instanceof ConnectionError);
    assert.equal(error.attempts, 3);
    const port = Number(new URL(server.base_url).port);
    const again = await launchServer(service.database.functions_url, { lease_ms: LEASE_MS, port });
    const paid = await client.payments.create(INPUT, { idempotencyKey: error.idempotencyKey! })
      .finally(() => again.kill());
    assert.equal(paid.status, "completed");
  } finally {
    await service.close();
  }
});
