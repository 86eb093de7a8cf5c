/** A delivery that kills the server each time it is sent, because its receiver does so (R6). */

import assert from "node:assert/strict";
import { launchServer, type ServerProcess } from "../support/service/server_process.ts";
import { startService } from "../support/service/service.ts";
import { openRecorder } from "../support/webhook/recording_receiver.ts";
import { insertEndpoint, makeWaiting, NO_DISPATCHER } from "../support/webhook/dispatcher_polls.ts";
import { until } from "../support/common/until.ts";

/** Deliveries that become due before each start, so that each crash interrupts some. */
const NEIGHBOURS = 40;
const POISON = "poison";
const LEASE_MS = 2_500;
const DEADLINE_MS = 60_000;

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
      await until("nothing is pending", async () => {
        const rows = await service.sql`
          select from pay.webhook_deliveries where status = 'pending' limit 1`;
        return rows.length === 0;
      }, DEADLINE_MS);
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
