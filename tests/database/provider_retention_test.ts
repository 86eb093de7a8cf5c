/**
 * Operations and provider events in retention and in a reset: those of sandboxes go, those of live
 * environments stay.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { idGenerator } from "../../shared/core/ids.ts";
import { startService } from "../support/service/service.ts";
import {
  addAccount,
  completion,
  openProviderStore,
  reserve,
} from "../support/database/provider_flow.ts";

const DAY_MS = 86_400_000;

Deno.test("operations and provider events in retention and in a reset", async (t) => {
  const service = await startService();
  const { sql, live, key } = service;
  const functions = postgres(service.database.functions_url, { max: 1, onnotice: () => {} });
  const { store, close } = openProviderStore(service);
  /** A recorded operation of an age, with its provider event. Returns the id of the payment. */
  const recorded = async (of: typeof key, days: number) => {
    const at_ms = Date.now() - days * DAY_MS;
    await service.setClock(at_ms);
    const made = await reserve(functions, of, { id: idGenerator(at_ms)("pc_") });
    const [outcome] = await store.record([completion(made)]);
    assert.equal(outcome!.outcome, "recorded");
    await service.setClock(null);
    return made.payment.id;
  };
  const left = async (subject_id: string) => {
    const operations =
      await sql`select from pay.provider_operations where subject_id = ${subject_id}`;
    const provider_events =
      await sql`select from pay.provider_events where subject_id = ${subject_id}`;
    return [operations.count, provider_events.count];
  };
  const purge = async () => {
    for (;;) {
      const [row] = await sql`select pay.purge(now(), 1)::int as rows`;
      if (row!.rows === 0) return;
    }
  };
  try {
    await addAccount(sql, live.environment_id);
    const cases: [name: string, of: typeof key, days: number, rows: number][] = [
      ["of a sandbox, 29.9 days old: stay", key, 29.9, 1],
      ["of a sandbox, 30.1 days old: deleted", key, 30.1, 0],
      ["of a live environment, 30.1 days old: stay", live, 30.1, 1],
    ];
    for (const [name, of, days, rows] of cases) {
      await t.step(name, async () => {
        const id = await recorded(of, days);
        assert.deepEqual(await left(id), [1, 1]);
        await purge();
        assert.deepEqual(await left(id), [rows, rows]);
      });
    }
    await t.step("of a sandbox that was reset: deleted with its environment", async () => {
      const id = await recorded(key, 0);
      const reset = await service.call("POST", "/api-v1-sandbox/reset", {});
      assert.equal(reset.status, 200, reset.text);
      await purge();
      assert.deepEqual(await left(id), [0, 0]);
      const old = await sql`select from pay.environments where id = ${key.environment_id}`;
      assert.equal(old.count, 0);
      const [rows] = await sql`
        select (select count(*) from pay.provider_operations
            where environment_id = ${key.environment_id})
          + (select count(*) from pay.provider_events
            where environment_id = ${key.environment_id}) as n`;
      assert.equal(rows!.n, "0");
    });
  } finally {
    await close();
    await functions.end();
    await service.close();
  }
});
