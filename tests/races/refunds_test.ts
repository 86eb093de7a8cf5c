/**
 * Concurrent refunds of one payment on two instances never exceed the payment, and every refusal
 * names its reason.
 */

import assert from "node:assert/strict";
import { ASKS, assertSound, sizeOf, startTwoInstances } from "../support/service/two_instances.ts";

const REFUNDS = 50;
const ROUNDS = sizeOf("ROUNDS", 20);
/** The amount of each refund of a payment of 1000, and how many of them fit. */
const AMOUNTS: [amount: number, fit: number][] = [[1, 50], [20, 50], [30, 33], [600, 1], [1000, 1]];

Deno.test(`${REFUNDS} concurrent refunds of one payment`, async (t) => {
  const two = await startTwoInstances();
  try {
    for (const [amount, fit] of AMOUNTS) {
      await t.step(`${fit} refunds of ${amount} succeed, the others are refused`, async () => {
        for (let round = 0; round < ROUNDS / AMOUNTS.length; round++) {
          const { id } = (await two.service.make({ outcome: "success" })).body;
          const told = await two.race(
            Array.from({ length: REFUNDS }, () => ASKS.refund(id, amount)),
          );
          const made = told.filter(({ status }) => status === 201);
          assert.equal(made.length, fit, JSON.stringify(told.map(({ status }) => status)));
          const rest = 1000 - fit * amount;
          for (const { status, body } of told) {
            if (status === 201) continue;
            // If nothing is left, the refund is a wrong state. Otherwise the amount is too high.
            if (rest === 0) {
              assert.deepEqual([status, body.error.code], [409, "invalid_state"]);
              assert.equal(body.error.current_status, "refunded");
            } else {
              assert.deepEqual([status, body.error.code], [400, "invalid_parameter"]);
              assert.ok(body.error.amount_refundable < amount);
            }
          }
          const [row] = await two.service.sql`
            select amount_refunded::int from pay.payments where id = ${id}`;
          assert.equal(row!.amount_refunded, fit * amount);
        }
        await assertSound(two.service);
      });
    }
  } finally {
    await two.close();
  }
});
