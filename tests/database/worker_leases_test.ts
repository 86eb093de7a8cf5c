/**
 * The leases of the provider worker, called as pay_api: there is a quota for each kind of work,
 * and the totals of a day that several jobs read count each page once.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { startService } from "../support/service/service.ts";
import {
  addAccount,
  openProviderStore,
  reserve,
  succeeded,
} from "../support/database/provider_flow.ts";

/** The most work that the worker leases at once. */
const LIMIT = 32;
const LEASE_MS = 30_000;
const DAY = "2026-11-23";

Deno.test("the leases of the provider worker", async (t) => {
  const service = await startService();
  const { sql, live } = service;
  const functions = postgres(service.database.functions_url, { max: 1, onnotice: () => {} });
  const { store, close } = openProviderStore(service);
  try {
    let now = Date.parse(`${DAY}T12:00:00Z`) - 24 * 3_600_000;
    await service.setClock(now);
    const account_id = await addAccount(sql, live.environment_id);
    const work = async () => (await store.leaseWork(LIMIT, LIMIT, LEASE_MS, now)).work;
    /** The numbers of pieces that are leased next, by kind. */
    const poll = async () => {
      const counts: Record<string, number> = {};
      for (const { kind } of await work()) counts[kind] = (counts[kind] ?? 0) + 1;
      return counts;
    };
    await t.step(
      "lease due provider events before more than a quarter of the operations",
      async () => {
        for (let i = 0; i < 2 * LIMIT; i++) {
          const made = await reserve(functions, live, { delay_ms: 0 });
          if (i % 4 > 0) continue;
          const { outcome: _, exception: __, booked_minor: ___, ...event } = succeeded(made);
          await store.storeProviderEvents(account_id, [{ ...event, state: "pending" }]);
        }
        assert.deepEqual(await poll(), { event: 16, operation: 15, poll: 1 });
        assert.deepEqual(await poll(), { operation: 32 });
        assert.deepEqual((await store.leaseWork(LIMIT, 5, LEASE_MS, now)).work.length, 5);
        assert.deepEqual(await poll(), { operation: 12 });
        assert.deepEqual(await poll(), {});
      },
    );
    await sql`update pay.provider_operations set state = 'settled', settled_at = now(),
      next_attempt_at = null, leased_until = null, next_sync_at = null`;
    await sql`delete from pay.provider_events`;

    const cursorOf = async () =>
      (await sql`select totals_cursor from pay.provider_cursors`)[0]!
        .totals_cursor;
    /** The totals that a job would read: their day, and the cursor to go on. */
    const totals = async () => {
      await store.saveCursor(account_id, null, true);
      const [found, ...more] = await work();
      assert.deepEqual(more, []);
      return [found!.kind, found!.day, found!.cursor];
    };
    await service.setClock(now += 2 * 24 * 3_600_000);
    await t.step("go on with the totals of a day at the stored place", async () => {
      assert.deepEqual(await totals(), ["totals", DAY, null]);
      await store.saveTotalsCursor(account_id, DAY, { after: "txn_1" });
      assert.deepEqual(await totals(), ["totals", DAY, { after: "txn_1" }]);
    });
    await t.step("of which the last one begins the next day", async () => {
      await store.storeTotals(account_id, DAY, [{ currency: "EUR", net_minor: 5 }]);
      assert.equal(await cursorOf(), null);
    });
    await t.step("of which a late one changes neither the next day nor its lease", async () => {
      await service.setClock(now += 24 * 3_600_000);
      const [, day] = await totals();
      assert.equal(day, "2026-11-24");
      await store.saveTotalsCursor(account_id, "2026-11-24", { after: "txn_9" });
      await store.saveTotalsCursor(account_id, DAY, { after: "txn_2" });
      await store.storeTotals(account_id, DAY, [{ currency: "EUR", net_minor: 5 }]);
      assert.deepEqual(await cursorOf(), { after: "txn_9" });
      assert.deepEqual(await work(), []);
    });
  } finally {
    await close();
    await functions.end();
    await service.close();
  }
});
