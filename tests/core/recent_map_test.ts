import assert from "node:assert/strict";
import { RecentMap } from "../../shared/core/recent_map.ts";

Deno.test("RecentMap forgets the entry that was used longest ago, and only that", () => {
  const map = new RecentMap<string, number>(3);
  for (const [i, key] of ["a", "b", "c"].entries()) map.set(key, i);
  map.get("a");
  map.set("b", 9);
  map.set("d", 3);
  assert.deepEqual(["a", "b", "c", "d"].map((key) => map.get(key)), [0, 9, undefined, 3]);
  map.delete("a");
  map.set("e", 4);
  assert.deepEqual(["a", "b", "d", "e"].map((key) => map.get(key)), [undefined, 9, 3, 4]);
});

Deno.test("RecentMap keeps a busy entry beside a flood of others", () => {
  const map = new RecentMap<string, number>(1_000);
  for (let i = 0; i < 50_000; i++) {
    map.set(`made ${i}`, i);
    if (i % 500 === 0) map.set("busy", map.get("busy") ?? i);
  }
  assert.equal(map.get("busy"), 0);
});
