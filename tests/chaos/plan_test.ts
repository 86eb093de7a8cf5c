/** The plan of a chaos run depends on its seed only, and has every kind of operation. */

import assert from "node:assert/strict";
import { isRead, planOf, SANDBOXES } from "./worlds/sandbox/plan.ts";

const PLAN = planOf(7, 5_000, 10);
const KINDS = "advance advance_refund advance_transfer authenticate balance cancel " +
  "cancel_transfer capture create get list list_refunds refund reset transfer";

Deno.test("planOf() depends only on the seed", () => {
  assert.deepEqual(planOf(7, 5_000, 10), PLAN);
  assert.notDeepEqual(planOf(8, 5_000, 10), PLAN);
});

Deno.test("planOf() has every kind of operation in every sandbox, with 1 to 16 duplicates", () => {
  const all = PLAN.stories.flatMap(({ groups }) => groups.flat());
  assert.deepEqual(new Set(PLAN.stories.map(({ sandbox }) => sandbox)), new Set(SANDBOXES));
  assert.equal([...new Set(all.map(({ action }) => action.do))].sort().join(" "), KINDS);
  assert.deepEqual(
    new Set(all.map(({ duplicates }) => duplicates)),
    new Set(Array.from({ length: 16 }, (_, i) => i + 1)),
  );
  const writes = all.filter(({ action }) => !isRead(action));
  const changed = writes.filter(({ is_changed }) => is_changed).length / writes.length;
  assert.ok(changed > 0.07 && changed < 0.13, `${changed}`);
});
