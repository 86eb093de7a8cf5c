/**
 * Concurrent duplicates of one request on two instances: one effect and one response, and 409 for a
 * different body. Keys that are older than 24 hours are deleted without a deadlock.
 */

import assert from "node:assert/strict";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { commit, created, DAY, NOW } from "../support/database/commit_list.ts";
import { connect, openSession } from "../support/database/database.ts";
import { untilWaiting } from "../support/database/lock_waits.ts";
import { startService } from "../support/service/service.ts";
import {
  type Ask,
  ASKS,
  raceCase,
  sizeOf,
  type TwoInstances,
} from "../support/service/two_instances.ts";

const DUPLICATES = sizeOf("DUPLICATES", 40);
/** The number of idempotency keys of each kind of request. */
const KEYS = sizeOf("ROUNDS", 1);

/** A request, and the status of every response to it. */
const REQUESTS: [name: string, make: (two: TwoInstances) => Promise<Ask>, status: number][] = [
  ["a create", () => Promise.resolve(ASKS.create({ outcome: "success" })), 201],
  ["a declined create", () => Promise.resolve(ASKS.create({ outcome: "declined" })), 402],
  ["a refund", async (two) => ASKS.refund(await payment(two, "success"), 10), 201],
  ["a refused refund", async (two) => ASKS.refund(await payment(two, "declined"), 10), 409],
  ["a cancel", async (two) => ASKS.cancel(await payment(two, "pending")), 200],
  ["an advance", async (two) => ASKS.advance(await payment(two, "pending"), "completed"), 200],
];

raceCase(`${DUPLICATES} duplicates on two instances`, async (t, two) => {
  for (const [name, make, status] of REQUESTS) {
    await t.step(`${name}: one effect and ${DUPLICATES} equal responses`, async () => {
      for (let n = 0; n < KEYS; n++) {
        const ask = { ...await make(two), idempotency_key: crypto.randomUUID() };
        const before = await countRows(two);
        const told = await two.race(Array.from({ length: DUPLICATES }, () => ask));
        assert.deepEqual(new Set(told.map((one) => one.status)), new Set([status]));
        assert.equal(new Set(told.map(({ text }) => text)).size, 1);
        const replays = told.filter(({ headers }) => headers.has("Idempotent-Replayed"));
        assert.equal(replays.length, DUPLICATES - 1);
        const after = await countRows(two);
        assert.equal(after.keys - before.keys, 1);
        assert.equal(after.payments - before.payments, name.endsWith("create") ? 1 : 0);
        assert.equal(after.refunds - before.refunds, name === "a refund" ? 1 : 0);
      }
      await assertSilent(two.service.sql);
    });
  }
  await t.step("two bodies under one key: one succeeds, the other is a conflict", async () => {
    for (let round = 0; round < 25; round++) {
      const idempotency_key = crypto.randomUUID();
      const before = await countRows(two);
      const told = await two.race(Array.from({ length: 16 }, (_, i) => ({
        ...ASKS.create({ amount: 1 + (i >> 1) % 2 }),
        idempotency_key,
      })));
      const winner = told.find(({ status }) => status === 201)!.body;
      for (const [i, { status, body }] of told.entries()) {
        if (winner.amount === 1 + (i >> 1) % 2) assert.deepEqual([status, body], [201, winner]);
        else assert.deepEqual([status, body.error.code], [409, "idempotency_conflict"]);
      }
      assert.equal((await countRows(two)).payments - before.payments, 1);
    }
    await assertSilent(two.service.sql);
  });
});

async function payment({ service }: TwoInstances, outcome: string): Promise<string> {
  return (await service.make({ outcome })).body.id;
}

async function countRows({ service }: TwoInstances) {
  const [row] = await service.sql<{ payments: number; refunds: number; keys: number }[]>`
    select (select count(*)::int from pay.payments) as payments,
      (select count(*)::int from pay.refunds) as refunds,
      (select count(*)::int from pay.idempotency_keys) as keys`;
  return row!;
}

/**
 * Two lists of changes have the same idempotency keys, all older than 24 hours, in opposite orders.
 * Each list deletes the old responses, and there is no deadlock.
 */
Deno.test("pay.commit() of two lists deletes expired keys in opposite orders", async () => {
  await using service = await startService();
  const { sql, key, database: { functions_url } } = service;
  await using one = connect(functions_url);
  await using other = connect(functions_url);
  await using holder_of_a = await openSession(sql);
  await using holder_of_b = await openSession(sql);
  const send = async (functions: typeof one, keys: readonly string[]) => {
    const list = keys.map((idempotency_key) => ({
      ...{ change: created(), key: key.text, idempotency_key },
    }));
    return await commit(functions, list);
  };
  await service.setClock(NOW - DAY);
  await send(one, ["a", "b"]);
  await service.setClock(NOW);
  for (const [name, holder] of Object.entries({ a: holder_of_a, b: holder_of_b })) {
    await holder`begin`;
    await holder`select from pay.idempotency_keys where key = ${name} for update`;
  }
  const lists = Promise.allSettled([send(one, ["a", "b"]), send(other, ["b", "a"])]);
  // Both lists wait. When the holder of "a" ends, a list that deletes "a" first goes on to wait
  // for "b".
  await untilWaiting(sql, { sessions: 2 });
  await holder_of_a`rollback`;
  await holder_of_b`rollback`;
  for (const list of await lists) {
    assert.equal(list.status, "fulfilled", String((list as PromiseRejectedResult).reason));
    const { value } = list as PromiseFulfilledResult<Awaited<ReturnType<typeof commit>>>;
    assert.deepEqual(value.map(({ outcome }) => outcome), ["expired", "expired"]);
  }
  assert.equal(await service.count("idempotency_keys"), 0);
});
