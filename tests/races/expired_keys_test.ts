/**
 * Two lists of changes have the same idempotency keys, all older than 24 hours, in opposite orders.
 * Each list deletes the old responses, and there is no deadlock.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { commit, created, DAY, NOW } from "../support/database/commit_list.ts";
import { startService } from "../support/service/service.ts";
import { untilWaiting } from "../support/database/lock_waits.ts";

/** A deadline for work that takes milliseconds. */

Deno.test("pay.commit() of two lists deletes expired keys in opposite orders", async () => {
  const service = await startService();
  const { sql, key } = service;
  const pools = [0, 1].map(() =>
    postgres(service.database.functions_url, { max: 1, onnotice: () => {} })
  );
  const holders = [await sql.reserve(), await sql.reserve()];
  const send = async (pool: number, keys: readonly string[]) => {
    const change = await created();
    const list = keys.map((idempotency_key) => ({ change, key: key.text, idempotency_key }));
    return await commit(pools[pool]!, list);
  };
  try {
    await service.setClock(NOW - DAY);
    await commit(pools[0]!, [
      { change: await created(), key: key.text, idempotency_key: "a" },
      { change: await created(), key: key.text, idempotency_key: "b" },
    ]);
    await service.setClock(NOW);
    for (const [i, name] of ["a", "b"].entries()) {
      await holders[i]!`begin`;
      await holders[i]!`select from pay.idempotency_keys where key = ${name} for update`;
    }
    const lists = Promise.allSettled([send(0, ["a", "b"]), send(1, ["b", "a"])]);
    // Both lists wait. When the holder of "a" ends, a list that deletes "a" first goes on to wait
    // for "b".
    await untilWaiting(sql, { sessions: 2 });
    await holders[0]!`rollback`;
    await holders[1]!`rollback`;
    for (const list of await lists) {
      assert.equal(list.status, "fulfilled", String((list as PromiseRejectedResult).reason));
      const { value } = list as PromiseFulfilledResult<Awaited<ReturnType<typeof commit>>>;
      assert.deepEqual(value.map(({ outcome }) => outcome), ["expired", "expired"]);
    }
    const [kept] = await sql`select count(*)::int as keys from pay.idempotency_keys`;
    assert.equal(kept!.keys, 0);
  } finally {
    for (const holder of holders) {
      await holder`rollback`;
      holder.release();
    }
    for (const pool of pools) await pool.end();
    await service.close();
  }
});
