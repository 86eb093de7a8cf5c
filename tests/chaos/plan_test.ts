/** The plan of a chaos run depends on its seed only, and has every kind of operation and kill. */

import assert from "node:assert/strict";
import { isRead, planOf, SANDBOXES, VICTIMS } from "./worlds/sandbox/plan.ts";

const OPERATIONS = 5_000;
const PLAN = planOf(7, OPERATIONS, 10);
const ALL = PLAN.stories.flatMap(({ groups }) => groups.flat());
const KINDS = "advance advance_refund advance_transfer authenticate balance cancel " +
  "cancel_transfer capture create get list list_refunds refund reset transfer";

Deno.test("planOf() depends only on the seed", () => {
  assert.deepEqual(planOf(7, OPERATIONS, 10), PLAN);
  assert.notDeepEqual(planOf(8, OPERATIONS, 10), PLAN);
});

Deno.test("planOf() numbers every operation once", () => {
  assert.deepEqual(ALL.map(({ number }) => number), [...ALL.keys()]);
  assert.ok(ALL.length >= OPERATIONS && ALL.length < OPERATIONS + 10);
});

Deno.test("planOf() has every kind of operation in every sandbox, with 1 to 16 duplicates", () => {
  assert.deepEqual(new Set(PLAN.stories.map(({ sandbox }) => sandbox)), new Set(SANDBOXES));
  assert.equal([...new Set(ALL.map(({ action }) => action.do))].sort().join(" "), KINDS);
  assert.deepEqual(
    new Set(ALL.map(({ duplicates }) => duplicates)),
    new Set(Array.from({ length: 16 }, (_, i) => i + 1)),
  );
  const writes = ALL.filter(({ action }) => !isRead(action));
  const changed = writes.filter(({ is_changed }) => is_changed).length / writes.length;
  assert.ok(changed > 0.07 && changed < 0.13, `${changed}`);
});

Deno.test("planOf() kills every process, in order and within the run", () => {
  assert.equal(PLAN.kills.length, 10);
  assert.deepEqual(new Set(PLAN.kills.map(({ victim }) => victim)), new Set(VICTIMS));
  const times = PLAN.kills.map(({ at_operation }) => at_operation);
  assert.deepEqual(times, times.toSorted((a, b) => a - b));
  assert.ok(times[0]! > 0 && times.at(-1)! < PLAN.operations);
});
