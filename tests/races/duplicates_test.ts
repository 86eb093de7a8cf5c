/**
 * Concurrent duplicates of one request on two instances: one effect and one response, and 409 for a
 * different body.
 */

import assert from "node:assert/strict";
import {
  type Ask,
  ASKS,
  assertSound,
  sizeOf,
  startTwoInstances,
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

Deno.test(`${DUPLICATES} duplicates on two instances`, async (t) => {
  const two = await startTwoInstances();
  try {
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
        await assertSound(two.service);
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
      await assertSound(two.service);
    });
    await t.step("one idempotency key of two API keys: two effects", async () => {
      const idempotency_key = crypto.randomUUID();
      const key = two.service.other.text;
      const told = await two.race(Array.from({ length: DUPLICATES }, (_, i) => ({
        ...ASKS.create(),
        idempotency_key,
        ...((i >> 1) % 2 === 1 && { key }),
      })));
      assert.equal(new Set(told.map(({ body }) => body.id)).size, 2);
    });
  } finally {
    await two.close();
  }
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
