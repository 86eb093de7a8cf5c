/** Costly work: one at a time, with a rest after each. FairQueue has the other rules. */

import assert from "node:assert/strict";
import { tryAgain } from "../../shared/core/errors.ts";
import { CostlyWork } from "../../shared/jobs/costly_work.ts";
import { COSTLY_READS } from "../../shared/jobs/places.ts";

Deno.test("CostlyWork.run() rests after a read for a multiple of its time", async () => {
  const reads = new CostlyWork(COSTLY_READS);
  const spans: { began: number; ended: number }[] = [];
  const read = () => {
    const began = performance.now();
    while (performance.now() - began < 4);
    spans.push({ began, ended: performance.now() });
    return Promise.resolve();
  };
  await Promise.all([1, 2, 3].map(() => reads.run("tenant", read)));
  for (const [i, { began }] of spans.entries()) {
    const before = spans[i - 1];
    if (before === undefined) continue;
    // A timer may fire a millisecond early.
    const least = Math.min(9 * (before.ended - before.began), 50) - 1;
    assert.ok(began - before.ended >= least, `${began - before.ended} of ${least} ms`);
  }
});

Deno.test("CostlyWork.run() refuses all waiting reads if the database is unavailable", async () => {
  const reads = new CostlyWork(COSTLY_READS);
  const begun: string[] = [];
  const requested = ["a", "b", "a"].map((tenant) =>
    reads.run(tenant, () => {
      begun.push(tenant);
      return Promise.reject(tryAgain("service_unavailable", "away"));
    })
  );
  for (const one of await Promise.allSettled(requested)) {
    assert.equal((one as PromiseRejectedResult).reason.code, "service_unavailable");
  }
  assert.deepEqual(begun, ["a"]);
});
