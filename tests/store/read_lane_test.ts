/**
 * The read lane: one read at a time, tenants in turns, pauses between reads, and a bounded wait.
 */

import assert from "node:assert/strict";
import { tryAgain } from "../../shared/core/errors.ts";
import { ReadLane, REST_MAX_MS } from "../../shared/store/read_lane.ts";

const UNPACED = {
  rest_factor: 0,
  waiting_of_tenant: 50,
  waiting: 1_000,
  patience_ms: 60_000,
};

/** A lane whose reads end when the test ends them. */
class Lane {
  readonly begun: string[] = [];
  readonly ends: PromiseWithResolvers<void>[] = [];
  readonly lane: ReadLane;

  constructor(limits: Partial<typeof UNPACED> = {}) {
    this.lane = new ReadLane({ ...UNPACED, ...limits });
  }

  /** @param name of the read; its first letter is the tenant */
  read(name: string): Promise<void> {
    return this.lane.run(name.charAt(0), () => {
      this.begun.push(name);
      const end = Promise.withResolvers<void>();
      this.ends.push(end);
      return end.promise;
    });
  }

  /** Waits until read number `n` has begun. Returns its end. */
  async end(n: number): Promise<PromiseWithResolvers<void>> {
    while (this.ends.length < n) await new Promise((resolve) => setTimeout(resolve));
    return this.ends[n - 1]!;
  }

  /** Ends `count` reads, one after another. */
  async endAll(count: number): Promise<void> {
    for (let n = 1; n <= count; n++) (await this.end(n)).resolve();
  }
}

function refusalOf(promise: Promise<unknown>) {
  return promise.then(() => null, (error) => [error.code, error.headers["Retry-After"]]);
}

Deno.test("ReadLane.run() runs one read at a time and returns its result", async () => {
  const lane = new ReadLane(UNPACED);
  let under_way = 0;
  const results = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      lane.run("key", async () => {
        assert.equal(++under_way, 1);
        await new Promise((resolve) => setTimeout(resolve));
        under_way--;
        return i;
      })),
  );
  assert.deepEqual(results, Array.from({ length: 20 }, (_, i) => i));
});

Deno.test("ReadLane.run() passes on a failure and continues", async () => {
  const lane = new ReadLane(UNPACED);
  const failure = new Error("of this read");
  const failing = lane.run("key", () => Promise.reject(failure));
  const next = lane.run("key", () => Promise.resolve("read"));
  await assert.rejects(failing, failure);
  assert.equal(await next, "read");
});

Deno.test("ReadLane.run() takes tenants in turns, for any number of requests", async () => {
  const lane = new Lane();
  const reads = ["a1", "a2", "a3", "a4", "a5", "b1", "c1", "c2", "b2"].map((name) =>
    lane.read(name)
  );
  await lane.endAll(reads.length);
  await Promise.all(reads);
  assert.deepEqual(lane.begun, [
    ...["a1", "a2", "b1", "c1"],
    ...["a3", "b2", "c2"],
    ...["a4", "a5"],
  ]);
});

Deno.test("ReadLane.run() refuses a read only if its tenant's queue is full", async () => {
  const lane = new Lane({ waiting_of_tenant: 3, waiting: 5 });
  const busy = lane.read("a");
  const reads = ["a", "a", "a"].map((key) => lane.read(key));
  assert.deepEqual(await refusalOf(lane.read("a")), ["rate_limited", "1"]);
  reads.push(lane.read("b"), lane.read("b"));
  // The lane's common queue is full.
  assert.deepEqual(await refusalOf(lane.read("c")), ["rate_limited", "1"]);
  await lane.endAll(1 + reads.length);
  await Promise.all([busy, ...reads]);
});

Deno.test("ReadLane.run() refuses reads that wait too long behind another", async () => {
  const lane = new Lane({ patience_ms: 20 });
  const hanging = lane.read("a");
  const waiting = [lane.read("a"), lane.read("b"), lane.read("b")];
  for (const read of waiting) {
    assert.deepEqual(await refusalOf(read), ["service_unavailable", "1"]);
  }
  (await lane.end(1)).resolve();
  await hanging;
  // The queues still work: the next read begins.
  const next = lane.read("b");
  (await lane.end(2)).resolve();
  await next;
  assert.deepEqual(lane.begun, ["a", "b"]);
});

Deno.test("ReadLane.run() refuses all waiting reads when the database is unavailable", async () => {
  const lane = new Lane();
  const reads = ["a", "b", "a"].map((key) => lane.read(key));
  (await lane.end(1)).reject(tryAgain("service_unavailable", "away"));
  for (const read of reads) assert.equal((await refusalOf(read))![0], "service_unavailable");
  assert.deepEqual(lane.begun, ["a"]);
});

Deno.test("ReadLane.run() pauses after a read for a multiple of its time", async () => {
  const lane = new ReadLane({ ...UNPACED, rest_factor: 5 });
  const spans: { began: number; ended: number }[] = [];
  const read = async () => {
    const began = performance.now();
    while (performance.now() - began < 4);
    await Promise.resolve();
    spans.push({ began, ended: performance.now() });
  };
  await Promise.all([1, 2, 3, 4].map(() => lane.run("key", read)));
  for (const [i, { began }] of spans.entries()) {
    const before = spans[i - 1];
    if (before === undefined) continue;
    // A timer may fire a millisecond early.
    const least = Math.min(5 * (before.ended - before.began), REST_MAX_MS) - 1;
    assert.ok(began - before.ended >= least, `${began - before.ended} of ${least} ms`);
  }
});
