/**
 * A provider event that comes before the response of its operation: the payment still shows the
 * card.
 */

import assert from "node:assert/strict";
import { liveCase } from "../support/live/live_case.ts";

liveCase("a poll that settles an unknown create shows the card", async (given) => {
  const { double, pay, call, work } = given;
  await double.plant({
    method: "POST",
    path: "^/v1/payment_intents$",
    at: "after",
    act: "error",
  });
  const { body: created } = await pay();
  assert.equal(created.status, "processing");
  assert.equal(created.method, null);
  // The worker sends the operation again later, so only the poll can settle the payment now.
  await work();
  const { body: paid } = await call("GET", `/payments/${created.id}`);
  assert.equal(paid.status, "completed");
  const card = { brand: "visa", last4: "4242", exp_month: 12, exp_year: 2034 };
  assert.deepEqual(paid.method, { type: "card", card });
});
