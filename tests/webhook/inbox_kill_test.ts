/**
 * `kill -9` of the server and of PostgreSQL while a receiver reads its inbox (promises R1, R6, R7).
 * Every event arrives, none out of order, and none again after its acknowledgement was answered.
 * The receiver itself ends now and then: it forgets its cursor and goes on without one.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { PaymentsClient, verifyWebhook } from "../../client/mod.ts";
import { migrate } from "../../scripts/schema/migrate.ts";
import { makeSandboxKey } from "../support/database/api_keys.ts";
import { until } from "../support/common/until.ts";
import { launchServer } from "../support/service/server_process.ts";
import { startSupabaseServer } from "../support/supabase/supabase_server.ts";

/** Each payment has two events. */
const PAYMENTS = 400;
const CLIENTS = 4;
/** The numbers of events at which the server, PostgreSQL, and the server again are killed. */
const KILLS_AT = [200, 400, 600];
const DEADLINE_MS = 60_000;

Deno.test("kill -9 of the server and of PostgreSQL while an inbox is read", async (t) => {
  await using open = new AsyncDisposableStack();
  const database = await startSupabaseServer(17);
  open.defer(() => database.close());
  await migrate(database.url);
  const key = await makeSandboxKey(database.url);
  let server = await launchServer(database.url, { lease_ms: 2_500 });
  open.defer(() => server.kill());
  const client = new PaymentsClient({ apiKey: key, baseUrl: server.base_url, maxRetries: 0 });
  const endpoint = await client.webhookEndpoints.create({ delivery: "inbox" });

  /** Repeats a call until it is answered. */
  async function retried<T>(call: () => PromiseLike<T>): Promise<T> {
    for (const started = Date.now(); Date.now() - started < DEADLINE_MS;) {
      try {
        return await call();
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
    assert.fail("a call was not answered in time");
  }

  let next = 0;
  const payers = Array.from({ length: CLIENTS }, async () => {
    while (next < PAYMENTS) {
      const idempotencyKey = `payment-${next++}`;
      const payment = { amount: 100, currency: "EUR", outcome: "success" } as const;
      await retried(() => client.payments.create(payment, { idempotencyKey }));
    }
  });

  /** The events in the order of their first arrival: the payment and the sequence. */
  const first = new Map<string, { payment: string; sequence: number }>();
  const acknowledged = new Set<string>();
  const again_after_acknowledgement: string[] = [];
  let [reads, arrivals, restarts] = [0, 0, 0];
  let is_over = false;
  const receiver = (async () => {
    let read: string[] = [];
    let after: string | undefined;
    while (!is_over) {
      const params = { wait: 1, limit: 7, after };
      const page = await retried(() => client.webhookEndpoints.inbox(endpoint.id, params));
      reads++;
      // The answer shows that the service has recorded the acknowledgement.
      if (after !== undefined) { for (const id of read) acknowledged.add(id); }
      for (const { id, event_id, headers, body } of page.data) {
        const event = await verifyWebhook(body, headers["Payment-Signature"], endpoint.secret);
        assert.equal(event.id, event_id);
        arrivals++;
        if (acknowledged.has(id)) again_after_acknowledgement.push(id);
        if (!first.has(event_id)) {
          first.set(event_id, { payment: String(event.data.object.id), sequence: event.sequence });
        }
      }
      // The receiver ends before it has stored the cursor.
      const ends = reads % 10 === 0;
      restarts += ends ? 1 : 0;
      after = ends ? undefined : page.next_cursor;
      read = page.data.map(({ id }) => id);
    }
  })();

  for (const [i, arrived] of KILLS_AT.entries()) {
    await until(`${arrived} have arrived`, () => first.size >= arrived, DEADLINE_MS);
    if (i === 1) {
      Deno.kill(database.pid(), "SIGKILL");
      await database.restart();
    } else {
      const port = Number(new URL(server.base_url).port);
      await server.kill();
      server = await launchServer(database.url, { lease_ms: 2_500, port });
    }
  }
  await Promise.all(payers);
  const sql = postgres(database.admin_url, { max: 1, onnotice: () => {} });
  open.defer(() => sql.end());
  await until("every delivery is acknowledged", async () => {
    const left = await sql`select from pay.webhook_deliveries where status <> 'delivered' limit 1`;
    return left.length === 0;
  }, DEADLINE_MS);
  is_over = true;
  await receiver;

  console.log(
    `kills ${KILLS_AT.length}, reads ${reads}, restarts of the receiver ${restarts}, ` +
      `events ${first.size}, arrivals ${arrivals}`,
  );
  await t.step("each payment was created once, and every event has arrived", async () => {
    const [row] = await sql`select count(*)::int as payments from pay.payments`;
    assert.equal(row!.payments, PAYMENTS);
    const events = await sql`select id from pay.events`;
    assert.equal(events.length, 2 * PAYMENTS);
    assert.deepEqual(events.filter(({ id }) => !first.has(id)), []);
  });
  await t.step("no event arrived before an earlier one of its payment", () => {
    const last = new Map<string, number>();
    for (const { payment, sequence } of first.values()) {
      assert.equal(sequence, (last.get(payment) ?? 0) + 1);
      last.set(payment, sequence);
    }
  });
  await t.step("nothing came again after its acknowledgement", () => {
    assert.deepEqual(again_after_acknowledgement, []);
  });
  await t.step("the positions are a sequence without gaps", async () => {
    const [row] = await sql`
      select count(*)::int as entries, min(position)::int as least, max(position)::int as greatest
      from pay.inbox_entries`;
    assert.deepEqual({ ...row }, { entries: 2 * PAYMENTS, least: 1, greatest: 2 * PAYMENTS });
  });
});
