/**
 * Paging through a list that changes at the same time (contract §5). Payments are created and moved
 * between and during the pages, and every payment of the start is still listed exactly once, newest
 * first. The seed of a run is in the name of its step; `SEED` sets it.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import type { TestService } from "../support/service/service.ts";
import { advance, PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";

const SEED = Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31);
const RUNS = 60;

/** The changes beside one page: new payments, and moves of payments of the start. */
const Turn = fc.record({
  creates: fc.integer({ min: 0, max: 4 }),
  moved: fc.array(fc.nat({ max: 40 }), { maxLength: 2 }),
  is_during: fc.boolean(),
});
const Paging = fc.record({
  initial: fc.integer({ min: 0, max: 25 }),
  limit: fc.integer({ min: 1, max: 9 }),
  by_status: fc.boolean(),
  turns: fc.array(Turn, { minLength: 1, maxLength: 6 }),
});
type Paging = typeof Paging extends fc.Arbitrary<infer T> ? T : never;

serviceCase(
  "GET /v1/payments lists each payment once while others are created",
  async (t, service) => {
    await t.step(`seed ${SEED}`, async () => {
      await fc.assert(
        fc.asyncProperty(Paging, (paging) => pageThrough(service, paging)),
        { numRuns: RUNS, seed: SEED },
      );
    });
  },
);

async function pageThrough(service: TestService, paging: Paging): Promise<void> {
  await service.call("POST", `${SANDBOX}/reset`);
  const start: string[] = [];
  for (let i = 0; i < paging.initial; i++) start.push((await service.make()).body.id);
  // A move takes a payment out of the list of pending ones, so this list gets no moves.
  const query = paging.by_status ? "&status=pending" : "";
  const met: string[] = [];
  let cursor = "";
  for (let page = 0;; page++) {
    const turn = paging.turns[page % paging.turns.length]!;
    const work = () => disturb(service, turn, paging.by_status ? [] : start);
    const url = `${PAYMENTS}?limit=${paging.limit}${query}${cursor}`;
    const read = () => service.call("GET", url);
    const { body } = turn.is_during
      ? (await Promise.all([read(), work()]))[0]
      : (await work(), await read());
    met.push(...body.data.map(({ id }: { id: string }) => id));
    assert.ok(body.data.length <= paging.limit);
    assert.equal(new Set(met).size, met.length, "none twice");
    assert.equal(body.next_cursor, body.has_more ? met.at(-1) : null);
    if (!body.has_more) break;
    assert.equal(body.data.length, paging.limit);
    cursor = `&starting_after=${body.next_cursor}`;
  }
  assert.deepEqual(met, met.toSorted().reverse(), "newest first");
  const known = new Set(start);
  assert.deepEqual(met.filter((id) => known.has(id)).toSorted(), start.toSorted(), "all once");
}

async function disturb(
  service: TestService,
  turn: { creates: number; moved: number[] },
  movable: string[],
): Promise<void> {
  const creates = Array.from({ length: turn.creates }, () => service.make());
  const moves = turn.moved.filter((i) => i < movable.length)
    .map((i) => advance(service, movable[i]!, "completed"));
  const responses = await Promise.all([...creates, ...moves]);
  for (const { status, text } of responses) assert.ok(status < 300, text);
}
