/**
 * Commands of a clock at the same time. Every advance that returned has happened in the end, and
 * each response is of its own target or later.
 */

import assert from "node:assert/strict";
import { type Ask, sizeOf, startTwoInstances } from "../support/service/two_instances.ts";

const ROUNDS = sizeOf("ROUNDS", 3);
const DUPLICATES = 10;

const command = (body: unknown): Ask => ({
  path: "/api-v1-sandbox/clock",
  body,
  idempotency_key: crypto.randomUUID(),
});

Deno.test("commands of a clock at the same time", async (t) => {
  const two = await startTwoInstances();
  const send = async (ask: Ask) => {
    const response = await two.post(0, ask);
    assert.equal(response.status, 200, response.text);
    return response.body;
  };
  /** Sends commands at once. Those that find the clock set too often meanwhile are sent again. */
  const race = async (asks: readonly Ask[]) => {
    const bodies = [];
    for (const [i, { status, text, body }] of (await two.race(asks)).entries()) {
      assert.ok(status === 200 || status === 503, text);
      bodies.push(status === 200 ? body : await send(asks[i]!));
    }
    return bodies;
  };
  const freeze = async () => Date.parse((await send(command({ mode: "frozen" }))).now);
  /** Completes the advances, and returns the time of the clock. */
  const finish = async () => {
    for (;;) {
      const { has_more, now } = await send(command({ mode: "frozen" }));
      if (!has_more) return Date.parse(now);
    }
  };
  try {
    for (let round = 0; round < ROUNDS; round++) {
      await t.step(`each of ${DUPLICATES} advances counts, round ${round}`, async () => {
        const begin_ms = await freeze();
        const asks = Array.from({ length: DUPLICATES }, () => command({ advance: 10 }));
        const responses = await race(asks);
        assert.equal(await finish(), begin_ms + DUPLICATES * 10_000);
        // The first of n advances ends at 10 s, the next one at 20 s.
        const nows = responses.map(({ now }) => Date.parse(now)).sort((a, b) => a - b);
        for (const [i, now_ms] of nows.entries()) {
          assert.ok(now_ms >= begin_ms + (i + 1) * 10_000, `${i}: ${now_ms - begin_ms} ms`);
        }
      });
      await t.step(`modes at the same time lose no advance, round ${round}`, async () => {
        const begin_ms = await freeze();
        const advances = Array.from({ length: DUPLICATES }, () => command({ advance: 10 }));
        const modes = Array.from({ length: DUPLICATES }, () => command({ mode: "frozen" }));
        await race(advances.flatMap((ask, i) => [ask, modes[i]!]));
        assert.equal(await finish(), begin_ms + DUPLICATES * 10_000);
      });
    }
  } finally {
    await two.close();
  }
});
