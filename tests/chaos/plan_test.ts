/** The plan of a chaos run depends on its seed only, and has every kind of operation and kill. */

import assert from "node:assert/strict";
import { isRead, planOf, SANDBOXES, VICTIMS } from "./plan.ts";

const OPERATIONS = 5_000;

Deno.test("planOf() depends only on the seed", () => {
  assert.deepEqual(planOf(7, OPERATIONS, 10), planOf(7, OPERATIONS, 10));
  assert.notDeepEqual(planOf(7, OPERATIONS, 10), planOf(8, OPERATIONS, 10));
});

Deno.test("planOf() numbers every operation once", () => {
  const { stories, operations } = planOf(7, OPERATIONS, 0);
  const numbers = stories.flatMap(({ groups }) => groups.flat().map(({ number }) => number));
  assert.deepEqual(numbers, Array.from({ length: operations }, (_, i) => i));
  assert.ok(operations >= OPERATIONS && operations < OPERATIONS + 10);
});

Deno.test("planOf() has every kind of operation in every sandbox, with 1 to 16 duplicates", () => {
  const { stories } = planOf(7, OPERATIONS, 0);
  const operations = stories.flatMap(({ groups }) => groups.flat());
  assert.deepEqual(new Set(stories.map(({ sandbox }) => sandbox)), new Set(SANDBOXES));
  assert.deepEqual(
    [...new Set(operations.map(({ action }) => action.do))].sort(),
    [
      "advance",
      "advance_refund",
      "advance_transfer",
      "authenticate",
      "balance",
      "cancel",
      "cancel_transfer",
      "capture",
      "create",
      "get",
      "list",
      "list_refunds",
      "refund",
      "reset",
      "transfer",
    ],
  );
  const duplicates = new Set(operations.map(({ duplicates }) => duplicates));
  assert.deepEqual(
    [...duplicates].sort((a, b) => a - b),
    Array.from({ length: 16 }, (_, i) => i + 1),
  );
  const writes = operations.filter(({ action }) => !isRead(action));
  const changed = writes.filter(({ is_changed }) => is_changed).length / writes.length;
  assert.ok(changed > 0.07 && changed < 0.13, `${changed}`);
});

Deno.test("planOf() kills every process, in order and within the run", () => {
  const { kills, operations } = planOf(7, OPERATIONS, 10);
  assert.equal(kills.length, 10);
  assert.deepEqual(new Set(kills.map(({ victim }) => victim)), new Set(VICTIMS));
  const times = kills.map(({ at_operation }) => at_operation);
  assert.deepEqual(times, times.toSorted((a, b) => a - b));
  assert.ok(times[0]! > 0 && times.at(-1)! < operations);
});
