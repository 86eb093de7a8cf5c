/** Batcher: items share statements, owners take turns, and a failure harms only its own item. */

import assert from "node:assert/strict";
import { Batcher } from "../../shared/jobs/batcher.ts";

type Options = Partial<ConstructorParameters<typeof Batcher<string, string>>[0]>;

/** An error of the driver with this code. */
function driverError(code: string): Error {
  return Object.assign(new Error("as the driver's"), { code });
}

/** A batcher whose statements end when the test ends them. The response of an item is itself. */
function open(
  options: Options = {},
  fails: (items: readonly string[]) => string | null = () => null,
) {
  const sent: string[][] = [];
  const most_at_once = { value: 0 };
  const ends: PromiseWithResolvers<void>[] = [];
  const batcher = new Batcher<string, string>({
    most: 3,
    async send(items) {
      sent.push([...items]);
      const end = Promise.withResolvers<void>();
      ends.push(end);
      most_at_once.value = Math.max(most_at_once.value, ends.length);
      await end.promise;
      const code = fails(items);
      if (code !== null) throw driverError(code);
      return items;
    },
    ...options,
  });
  /** Ends the statements that are under way, and those that follow. */
  const endAll = async () => {
    while (ends.length > 0) {
      ends.shift()!.resolve();
      await new Promise((resolve) => setTimeout(resolve));
    }
  };
  /** Adds items; the first letter of each is its owner. */
  const add = (...items: string[]) =>
    items.map((item) => {
      const requested = batcher.add(item, item.charAt(0));
      requested.catch(() => {});
      return requested;
    });
  return { sent, most_at_once, add, endAll };
}

async function settle(requested: Promise<string>[]): Promise<string[]> {
  const settled = await Promise.allSettled(requested);
  return settled.map((one) => one.status === "fulfilled" ? one.value : one.reason.code);
}

Deno.test("Batcher sends an item at once, and those that wait together", async () => {
  const { sent, add, endAll } = open();
  const requested = add("a1", "a2", "a3", "a4", "a5");
  assert.deepEqual(sent, [["a1"]]);
  await endAll();
  assert.deepEqual(sent, [["a1"], ["a2", "a3", "a4"], ["a5"]]);
  assert.deepEqual(await settle(requested), ["a1", "a2", "a3", "a4", "a5"]);
});

Deno.test("Batcher waits for as many items as the last batch had, if these were many", async () => {
  const { sent, add, endAll } = open({ most: 64, gather_ms: 20 });
  add("a0", ...Array.from({ length: 8 }, (_, i) => `b${i}`));
  await endAll();
  add("c0");
  assert.equal(sent.length, 2);
  add(...Array.from({ length: 7 }, (_, i) => `d${i}`));
  assert.equal(sent[2]?.length, 8);
  await endAll();
  add("e0");
  assert.equal(sent.length, 3);
  await new Promise((resolve) => setTimeout(resolve, 40));
  assert.deepEqual(sent[3], ["e0"]);
  await endAll();
  add("f0");
  assert.deepEqual(sent[4], ["f0"]);
  await endAll();
});

Deno.test("Batcher takes owners in turns, for any number of items", async () => {
  const { sent, add, endAll } = open();
  add("a0", "a1", "a2", "a3", "a4", "b1", "c1", "b2");
  await endAll();
  assert.deepEqual(sent, [["a0"], ["a1", "b1", "c1"], ["a2", "b2", "a3"], ["a4"]]);
});

Deno.test("Batcher bounds the weight of a statement, and sends a heavier item alone", async () => {
  const weigh = (item: string) => Number(item.slice(1));
  const { sent, add, endAll } = open({ most_weight: 5, weigh });
  add("a1", "a2", "a3", "a4", "a9", "a1");
  await endAll();
  assert.deepEqual(sent, [["a1"], ["a2", "a3"], ["a4"], ["a9"], ["a1"]]);
});

Deno.test("Batcher has as many statements under way as it may", async () => {
  const { sent, add, endAll } = open({ concurrency: 2 });
  add("a1", "a2", "a3", "a4");
  assert.deepEqual(sent, [["a1"], ["a2"]]);
  await endAll();
  assert.deepEqual(sent, [["a1"], ["a2"], ["a3", "a4"]]);
});

Deno.test("Batcher sends a failed batch one by one", async () => {
  const { sent, most_at_once, add, endAll } = open(
    {},
    (items) => items.includes("bad") ? "23514" : null,
  );
  const requested = add("a1", "a2", "bad", "c1", "a3");
  await endAll();
  assert.deepEqual(await settle(requested), ["a1", "a2", "23514", "c1", "a3"]);
  assert.deepEqual(sent, [["a1"], ["a2", "bad", "c1"], ["a2"], ["bad"], ["c1"], ["a3"]]);
  assert.equal(most_at_once.value, 4);
});

Deno.test("Batcher sends an item again alone if it has waited too long for a lock", async () => {
  let tries = 0;
  const { add, endAll } = open({}, () => ++tries === 1 ? "55P03" : null);
  const requested = add("a1");
  await endAll();
  assert.deepEqual([await settle(requested), tries], [["a1"], 2]);
});

Deno.test("Batcher refuses a whole batch if the database is unavailable", async () => {
  const { sent, add, endAll } = open({}, (items) => items.length > 1 ? "57P01" : null);
  const requested = add("a1", "a2", "a3", "a4", "a5");
  await endAll();
  assert.deepEqual(await settle(requested), ["a1", "57P01", "57P01", "57P01", "a5"]);
  assert.equal(sent.length, 3);
});

Deno.test("Batcher refuses what waits after a deadline", async () => {
  const { sent, add, endAll } = open({}, () => "CONNECT_TIMEOUT");
  const requested = add("a1", "a2", "b1");
  await endAll();
  assert.deepEqual(await settle(requested), Array(3).fill("CONNECT_TIMEOUT"));
  assert.equal(sent.length, 1);
});
