/** Concurrent collections under one mandate on two instances: one that must be alone wins. */

import assert from "node:assert/strict";
import { ASKS, assertSound, sizeOf, startTwoInstances } from "../support/service/two_instances.ts";

const REQUESTS = 8;
const ROUNDS = sizeOf("ROUNDS", 10);

Deno.test(`${REQUESTS} concurrent collections under one mandate`, async (t) => {
  const two = await startTwoInstances();
  const collect = (id: string, sequence: string) =>
    ASKS.create({
      iban: "DE89 3704 0044 0532 0130 00",
      mandate: { id, signed_at: new Date().toISOString(), sequence },
    });
  try {
    for (const sequence of ["first", "one_off"]) {
      await t.step(`one ${sequence} wins, the others are refused`, async () => {
        for (let round = 0; round < ROUNDS; round++) {
          const request = collect(`${sequence.length} ${round}`, sequence);
          const told = await two.race(Array.from({ length: REQUESTS }, () => request));
          const statuses = told.map(({ status }) => status).sort();
          assert.deepEqual(statuses, [201, ...Array(REQUESTS - 1).fill(400)]);
        }
      });
    }
    await t.step("duplicates of one request all get its response", async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const request = { ...collect(`same ${round}`, "one_off"), idempotency_key: `${round}` };
        const told = await two.race(Array.from({ length: REQUESTS }, () => request));
        assert.equal(new Set(told.map(({ text }) => text)).size, 1);
        assert.equal(told[0]!.status, 201);
      }
    });
    await t.step("a final one ends the mandate for those that come later", async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const id = `final ${round}`;
        const requests = ["recurring", "recurring", "final", "recurring", "recurring", "final"];
        const told = await two.race(requests.map((sequence) => collect(id, sequence)));
        const finals = [told[2]!, told[5]!].map(({ status }) => status).sort();
        assert.deepEqual(finals, [201, 400]);
        const late = await two.post(0, collect(id, "recurring"));
        assert.deepEqual([late.status, late.body.error.param], [400, "mandate.id"]);
      }
    });
    await assertSound(two.service);
  } finally {
    await two.close();
  }
});
