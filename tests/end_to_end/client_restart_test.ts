/**
 * `kill -9` of the server in the middle of creates, and its restart. The client's retries create
 * exactly one payment each, also where the first attempt was committed without a response.
 */

import assert from "node:assert/strict";
import {
  ConnectionError,
  type Exchange,
  PaymentsClient,
  type PaymentsClientOptions,
} from "../../packages/client/mod.ts";
import { launchServer } from "../support/service/server_process.ts";
import { startService, type TestService } from "../support/service/service.ts";
import { until } from "../support/common/until.ts";

const LEASE_MS = 2_500;
/** Enough retries to outlast a restart. */
const MAX_RETRIES = 10;
const CLIENTS = 8;
const PAYMENTS = 400;
/** The server is killed when this number of payments have their response. */
const KILLS_AT = [100, 250];
const INPUT = { amount: 1000, currency: "EUR", outcome: "success" } as const;

/** A server that a test kills and starts again at its address, and a client of it. */
interface Killable {
  service: TestService;
  client: PaymentsClient;
  exchanges: Exchange[];
  kill(): Promise<unknown>;
  restart(): Promise<void>;
}

async function withKillable(
  options: Partial<PaymentsClientOptions>,
  run: (killable: Killable) => Promise<void>,
): Promise<void> {
  const service = await startService();
  const launch = (port?: number) =>
    launchServer(service.database.functions_url, {
      lease_ms: LEASE_MS,
      ...(port !== undefined && { port }),
    });
  let server = await launch();
  const exchanges: Exchange[] = [];
  const client = new PaymentsClient({
    apiKey: service.key.text,
    baseUrl: server.base_url,
    onExchange: (exchange) => exchanges.push(exchange),
    ...options,
  });
  try {
    await run({
      service,
      client,
      exchanges,
      kill: () => server.kill(),
      async restart() {
        server = await launch(Number(new URL(server.base_url).port));
      },
    });
  } finally {
    await server.kill();
    await service.close();
  }
}

Deno.test("create() gets the response of a commit that a killed server did not send", () =>
  withKillable({ maxRetries: MAX_RETRIES }, async (killable) => {
    const { service, client, exchanges } = killable;
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
    const killed = killable.kill();
    // At once, because the statement waits three seconds at most.
    release.resolve();
    await Promise.all([killed, lock]);
    const made = () => service.sql`select id from pay.payments`;
    await until("its session commits without it", async () => (await made()).length === 1);
    await killable.restart();

    const paid = await creating;
    assert.equal(paid.status, "completed");
    assert.deepEqual((await made()).map(({ id }) => id), [paid.id]);
    assert.equal(exchanges[0]!.response, null);
    assert.equal(exchanges.at(-1)!.response!.headers["idempotent-replayed"], "true");
    const keys = exchanges.map(({ request }) => request.headers["Idempotency-Key"]);
    assert.equal(new Set(keys).size, 1);
  }));

Deno.test("create() by many clients, with two kills between, makes one payment each", () =>
  withKillable({ maxRetries: MAX_RETRIES }, async (killable) => {
    const { service, client, exchanges } = killable;
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
    for (const payments of KILLS_AT) {
      await until(`${payments} payments`, () => paid.size >= payments, 30_000);
      await killable.kill();
      await killable.restart();
    }
    await all;
    const lost = exchanges.filter(({ response }) => response === null).length;
    assert.ok(lost >= KILLS_AT.length, `both kills came amid creates: ${lost} lost responses`);
    const rows = await service.sql`select id, reference from pay.payments`;
    assert.equal(rows.length, PAYMENTS);
    for (const { id, reference } of rows) assert.equal(paid.get(reference), id);
  }));

Deno.test("create() throws ConnectionError with the key if no server responds", () =>
  withKillable({ runtime: { sleep: () => Promise.resolve() } }, async (killable) => {
    const { client } = killable;
    await killable.kill();
    const error = await client.payments.create(INPUT).catch((error) => error);
    assert.ok(error instanceof ConnectionError);
    assert.equal(error.attempts, 3);
    await killable.restart();
    const paid = await client.payments.create(INPUT, { idempotencyKey: error.idempotencyKey! });
    assert.equal(paid.status, "completed");
  }));
