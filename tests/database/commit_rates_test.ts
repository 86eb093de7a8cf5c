/**
 * pay.commit() of a list at the rate limit of its key: replays do not count, so the other requests
 * have the whole limit. A request above the limit is refused and stores nothing.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { startService } from "../support/service/service.ts";
import { commit, created, NOW, type Requested } from "../support/database/commit_list.ts";

/** Five requests a second allow ten in two seconds. */
const LIMIT = 10;
const RATE_LIMITS = { key: LIMIT / 2, account: 0 };
/** A time after the window of the first requests. */
const LATER = NOW + 60_000;

Deno.test("pay.commit() at the rate limit", async (t) => {
  const service = await startService();
  const functions = postgres(service.database.functions_url, { max: 1, onnotice: () => {} });
  const requested = (idempotency_key: string, at_ms = LATER): Requested => ({
    change: created(),
    key: service.key.text,
    rate_limits: RATE_LIMITS,
    idempotency_key,
    at_ms,
  });
  const list = (from: number, to: number, at_ms?: number) =>
    Array.from({ length: to - from }, (_, i) => requested(`key ${from + i}`, at_ms));
  const outcomes = async (asks: readonly Requested[]) =>
    (await commit(functions, asks)).map(({ outcome, remaining }) => `${outcome} ${remaining}`);
  const used = async () => {
    const [row] = await service.sql`
      select sum(current_count)::int as requests from pay.rate_counters`;
    return row!.requests;
  };
  try {
    await t.step("each request of a list counts once", async () => {
      const told = Array.from({ length: LIMIT }, (_, i) => `committed ${LIMIT - 1 - i}`);
      assert.deepEqual(await outcomes(list(0, LIMIT, NOW)), told);
      assert.equal(await used(), LIMIT);
    });
    await t.step("replays leave the whole limit to the other requests", async () => {
      const replays = list(0, LIMIT);
      const others = list(LIMIT, 2 * LIMIT + 1);
      const told = await outcomes([...replays, ...others]);
      assert.deepEqual(told, [
        ...replays.map(() => `replay ${LIMIT}`),
        ...Array.from({ length: LIMIT }, (_, i) => `committed ${LIMIT - 1 - i}`),
        "rate_limited 0",
      ]);
      assert.equal(await used(), LIMIT);
    });
    await t.step("a refused request stores no response", async () => {
      const kept = await service.sql`
        select from pay.idempotency_keys where key = ${`key ${2 * LIMIT}`}`;
      assert.equal(kept.count, 0);
    });
    await t.step("replays succeed at an exhausted limit", async () => {
      const told = await outcomes([...list(0, 2), ...list(2 * LIMIT, 2 * LIMIT + 1)]);
      assert.deepEqual(told, ["replay 0", "replay 0", "rate_limited 0"]);
      assert.equal(await used(), LIMIT);
    });
  } finally {
    await functions.end();
    await service.close();
  }
});
