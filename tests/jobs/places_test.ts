/**
 * The places of requests: each bound, and that all places together leave connections free. Costly
 * work has one place, with a rest after each. FairQueue has the other rules.
 */

import assert from "node:assert/strict";
import type { Slot } from "../../shared/jobs/fair_queue.ts";
import { tryAgain } from "../../shared/core/errors.ts";
import { CostlyWork } from "../../shared/jobs/costly_work.ts";
import {
  CONNECTIONS,
  COSTLY_READS,
  createPlaces,
  PLACE_BOUNDS,
  type Places,
} from "../../shared/jobs/places.ts";

const KINDS = Object.keys(PLACE_BOUNDS) as (keyof Places)[];

/** Takes places until one is refused. Returns how many it got. */
async function fill(places: Places, kind: keyof Places, owner: string, most = 2_000) {
  const slots: Slot[] = [];
  try {
    while (slots.length < most) slots.push(await places[kind].take([owner]));
  } catch (error) {
    assert.equal((error as { code: string }).code, "rate_limited");
  }
  return slots;
}

Deno.test("PLACE_BOUNDS leave some of the connections free", () => {
  const { key_checks, keyless, sandboxes, live, long_waits } = PLACE_BOUNDS;
  const most = key_checks.in_all + keyless.in_all + sandboxes.in_all + live.in_all;
  assert.ok(most <= CONNECTIONS * 15 / 16, String(most));
  assert.ok(long_waits.in_all < sandboxes.in_all && long_waits.of_owner < sandboxes.of_owner);
});

for (const kind of KINDS) {
  const { of_owner, in_all, reserved } = PLACE_BOUNDS[kind];

  Deno.test(`places of ${kind}: one owner gets ${of_owner}, and the next one its own`, async () => {
    const places = createPlaces();
    const slots = await fill(places, kind, "a");
    assert.equal(slots.length, of_owner);
    assert.ok((await fill(places, kind, "b")).length >= reserved.few);
    while (slots.length > 0) slots.pop()!.leave();
    assert.ok((await fill(places, kind, "a")).length >= reserved.few);
  });

  Deno.test(`places of ${kind}: ${in_all} in all`, async () => {
    const places = createPlaces();
    let all = 0;
    for (let i = 0; i < in_all; i++) all += (await fill(places, kind, `owner ${i}`)).length;
    assert.equal(all, in_all);
  });
}

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
