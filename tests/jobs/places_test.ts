/** The places of requests: each bound, and that all places together leave connections free. */

import assert from "node:assert/strict";
import type { Slot } from "../../shared/jobs/fair_queue.ts";
import { CONNECTIONS, createPlaces, PLACE_BOUNDS, type Places } from "../../shared/jobs/places.ts";

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

  Deno.test(`places of ${kind}: two greedy owners leave ${reserved.few} to others`, async () => {
    const places = createPlaces();
    await fill(places, kind, "a");
    await fill(places, kind, "b");
    // The second greedy owner can have few of the reserved ones.
    for (let i = 1; i < reserved.slots / reserved.few; i++) {
      assert.equal((await fill(places, kind, `other ${i}`)).length, reserved.few);
    }
  });
}
