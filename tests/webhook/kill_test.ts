/**
 * `kill -9` of the whole server in the middle of its deliveries (promises R1, R6, R7, R8), and by a
 * delivery that kills it each time it is sent, because its receiver does so.
 */

import assert from "node:assert/strict";
import { readArrival } from "../chaos/harness/receiver.ts";
import { SIGNATURE_AGE_MS, SIGNATURE_AHEAD_MS } from "../chaos/worlds/sandbox/delivery_audit.ts";
import { launchServer, type ServerProcess } from "../support/service/server_process.ts";
import { startService, type TestService } from "../support/service/service.ts";
import { addEndpoint, openRecorder } from "../support/webhook/recording_receiver.ts";
import { insertEndpoint, makeWaiting, NO_DISPATCHER } from "../support/webhook/dispatcher_polls.ts";
import { until } from "../support/common/until.ts";

/** Each payment has two events, and there is one endpoint. */
const PAYMENTS = 1000;
const CLIENTS = 8;
/** The server is killed when this number of deliveries have arrived. */
const KILLS_AT = [600, 1300];
/** Deliveries that become due before each start, so that each crash interrupts some. */
const NEIGHBOURS = 40;
const POISON = "poison";
const LEASE_MS = 2_500;
const DEADLINE_MS = 60_000;

/** Waits until no delivery is pending. */
function untilSent({ sql }: TestService): Promise<unknown> {
  return until("nothing is pending", async () => {
    const pending = await sql`
      select from pay.webhook_deliveries where status = 'pending' limit 1`;
    return pending.length === 0;
  }, DEADLINE_MS);
}

/**
 * Acknowledged payments exist, every event arrives, few twice, none out of order, all freshly
 * signed.
 */
Deno.test("kill -9 in the middle of 2 000 deliveries, twice", async (t) => {
  // The test uses only the database, the key and the endpoint of this service.
  const service = await startService();
  const hooks = openRecorder(async () => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    return 200;
  });
  const { secret } = await addEndpoint(service, hooks.url("/"));
  const launch = () => launchServer(service.database.functions_url, { lease_ms: LEASE_MS });
  let server = await launch();
  let retries = 0;

  /** Creates one payment, with retries until the server responds. */
  async function pay(i: number): Promise<void> {
    for (const started = Date.now(); Date.now() - started < DEADLINE_MS; retries++) {
      const response = await fetch(`${server.base_url}/api-v1-sandbox/payments`, {
        method: "POST",
        headers: {
          Authorization: `Bearer ${service.key.text}`,
          "Content-Type": "application/json",
          "Idempotency-Key": `payment-${i}`,
        },
        body: JSON.stringify({ amount_minor: 100, currency: "EUR", outcome: "success" }),
      }).catch(() => null);
      await response?.body?.cancel();
      if (response?.status === 201) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.fail(`payment ${i} got no response`);
  }
  let next = 0;
  const clients = Array.from({ length: CLIENTS }, async () => {
    while (next < PAYMENTS) await pay(next++);
  });

  try {
    const under_way: number[] = [];
    for (const arrived of KILLS_AT) {
      await until(`${arrived} have arrived`, () => hooks.arrivals.length >= arrived, DEADLINE_MS);
      await server.kill();
      const [row] = await service.sql`
        select count(*)::int as leased from pay.webhook_deliveries where leased_until is not null`;
      under_way.push(row!.leased);
      server = await launch();
    }
    await Promise.all(clients);
    await untilSent(service);

    const first = new Map<string, (typeof hooks.arrivals)[number]>();
    for (const arrival of hooks.arrivals) {
      if (!first.has(arrival.event.id)) first.set(arrival.event.id, arrival);
    }
    const duplicates = hooks.arrivals.length - first.size;
    console.log(
      `kills ${KILLS_AT.length}, leased when killed ${under_way}, client retries ${retries}, ` +
        `arrivals ${hooks.arrivals.length}, duplicates ${duplicates}`,
    );
    await t.step("both kills came in the middle of deliveries", () => {
      for (const leased of under_way) assert.ok(leased > 0);
    });
    await t.step("each payment was created once", async () => {
      const [row] = await service.sql`select count(*)::int as payments from pay.payments`;
      assert.equal(row!.payments, PAYMENTS);
    });
    await t.step("every event has arrived", async () => {
      const events = await service.sql`select id from pay.events`;
      assert.equal(events.length, 2 * PAYMENTS);
      assert.deepEqual(events.filter(({ id }) => !first.has(id)), []);
      assert.equal(first.size, events.length);
    });
    await t.step("every delivery is recorded as delivered", async () => {
      const rows = await service.sql`
        select status, count(*)::int as deliveries from pay.webhook_deliveries group by status`;
      assert.deepEqual([...rows], [{ status: "delivered", deliveries: 2 * PAYMENTS }]);
    });
    await t.step("only those have arrived twice that were under way at a kill", () => {
      const leased = under_way.reduce((sum, count) => sum + count, 0);
      assert.ok(duplicates <= leased, `${duplicates} of ${leased}`);
    });
    await t.step("no event arrived before an earlier one of its payment", () => {
      const last = new Map<string, number>();
      for (const { event } of first.values()) {
        const { id } = event.data.object;
        assert.equal(event.sequence, (last.get(id) ?? 0) + 1);
        last.set(id, event.sequence);
      }
    });
    await t.step("each body equals the committed event", async () => {
      const rows = await service.sql<
        { id: string; body: string }[]
      >`select id, pay_internal.event_body(e) as body from pay.events e`;
      const bodies = new Map(rows.map(({ id, body }) => [id, body]));
      for (const { event, text } of hooks.arrivals) assert.equal(text, bodies.get(event.id));
    });
    await t.step("each signature is valid and fresh", async () => {
      for (const { path, headers, bytes, at_ms } of hooks.arrivals) {
        const received = { path, headers, bytes, at_ms };
        const { is_genuine, age_ms, timestamps_apart_s } = await readArrival(received, secret);
        assert.ok(is_genuine);
        assert.ok(age_ms < SIGNATURE_AGE_MS && age_ms >= -SIGNATURE_AHEAD_MS, `${age_ms}`);
        assert.equal(timestamps_apart_s, 0);
      }
    });
  } finally {
    await server.kill();
    await Promise.allSettled(clients);
    await Promise.all([service.close(), hooks.close()]);
  }
});

/**
 * The dispatcher records an attempt as crashed after the third expired lease. No other delivery is
 * interrupted twice, and all others arrive. The same is true for its later attempts.
 */
Deno.test("a delivery that kills the server interrupts no other delivery twice", async (t) => {
  const service = await startService(NO_DISPATCHER);
  let server: ServerProcess | null = null;
  let kills = 0;
  const hooks = openRecorder(async ({ event }) => {
    if (event.data.object.reference !== POISON) {
      // With this delay some attempts are in progress at each moment.
      await new Promise((resolve) => setTimeout(resolve, 5));
      return 200;
    }
    await server!.kill();
    kills++;
    return 200;
  });
  const launch = async () => {
    server = await launchServer(service.database.functions_url, { lease_ms: LEASE_MS });
  };
  const poison = async () => {
    const [row] = await service.sql`
      select d.* from pay.webhook_deliveries d
      join pay.payments p on p.id = d.subject_id where p.body like ${`%"${POISON}"%`}`;
    return row!;
  };
  /**
   * The highest number of expired leases of any other delivery, including the one that was just
   * lost.
   */
  const mostLost = async () => {
    const { id } = await poison();
    const [row] = await service.sql`
      select max(expired_leases + (leased_until is not null)::int) as lost,
        count(*) filter (where leased_until is not null)::int as taken
      from pay.webhook_deliveries where id <> ${id}`;
    return row!;
  };
  try {
    await insertEndpoint(service, 0, { url: hooks.url("/") });
    await makeWaiting(service, NEIGHBOURS / 2);
    await service.make({ outcome: "pending", reference: POISON });
    for (let kill = 1; kill <= 3; kill++) {
      await makeWaiting(service, NEIGHBOURS);
      await launch();
      await until(`it has killed the server, ${kill}`, () => kills === kill, DEADLINE_MS);
      const { lost, taken } = await mostLost();
      console.log(
        `kill ${kill}: ${taken} others were leased, the most that one has lost: ${lost}`,
      );
      assert.ok(lost <= 1, `a delivery was taken along ${lost} times`);
    }
    await launch();
    await t.step(
      "the dispatcher records the attempt as crashed after the third crash",
      async () => {
        await until(
          "an attempt is on record",
          async () => (await poison()).attempts[0],
          DEADLINE_MS,
        );
        const { status, attempts: [attempt, ...more] } = await poison();
        const { number, error } = attempt;
        assert.deepEqual([status, number, error, more], ["pending", 3, "crashed", []]);
        assert.equal(kills, 3);
      },
    );
    await t.step("its next attempt crashes once and is recorded", async () => {
      await server!.kill();
      await makeWaiting(service, NEIGHBOURS);
      await service.sql`
        update pay.webhook_deliveries set next_attempt_at = now() where id = ${
        (await poison()).id
      }`;
      await launch();
      await until("it has killed the server", () => kills === 4, DEADLINE_MS);
      assert.ok((await mostLost()).lost <= 1);
      await launch();
      await until("it is given up", async () => (await poison()).status === "failed", DEADLINE_MS);
      assert.equal(kills, 4);
    });
    await t.step("all others arrive, each at most twice", async () => {
      await untilSent(service);
      const times = new Map<string, number>();
      for (const { event: { id, data } } of hooks.arrivals) {
        if (data.object.reference !== POISON) times.set(id, (times.get(id) ?? 0) + 1);
      }
      assert.equal(times.size, NEIGHBOURS / 2 + 4 * NEIGHBOURS);
      assert.ok(Math.max(...times.values()) <= 2);
    });
  } finally {
    await server!.kill();
    await Promise.all([service.close(), hooks.close()]);
  }
});
