/** Disputes, payouts and daily totals: after each, both sides have the same books. */

import assert from "node:assert/strict";
import { liveCase } from "../support/live/live_case.ts";
import { paid, referenceOf, refund } from "../support/live/live_actions.ts";
import {
  assertBalanced,
  breaches,
  deliver,
  eventsOf,
  eventTypes,
  settle,
  shown,
  workAfter,
} from "../support/live/live_books.ts";

const HOUR_S = 3600 + 60;

liveCase("disputes, lost and won, and the payout", async (given, t) => {
  const ENDS = [["lost", "chargeback"], ["won", "completed"]] as const;
  for (const [end, status] of ENDS) {
    await t.step(`a dispute that is ${end}`, async () => {
      const id = await paid(given);
      const payment_intent = await referenceOf(given, id);
      const { id: dispute } = await given.double.act("disputes", { payment_intent });
      await deliver(given, await eventsOf(given));
      assert.equal((await shown(given, id)).status, "chargeback");
      await given.double.act("close_dispute", { dispute, status: end });
      await deliver(given, await eventsOf(given));
      assert.equal((await shown(given, id)).status, status);
      assert.deepEqual(await eventTypes(given, id), [
        "payment.created",
        "payment.completed",
        "dispute.created",
        "payment.chargeback",
        `dispute.${end}`,
        ...(end === "won" ? ["payment.completed"] : []),
      ]);
    });
  }
  await t.step("of what a refund has left, after which the refunded part is booked", async () => {
    const id = await paid(given);
    await refund(given, id, { amount: 300 });
    const payment_intent = await referenceOf(given, id);
    const { id: dispute } = await given.double.act("disputes", { payment_intent });
    await given.double.act("close_dispute", { dispute, status: "won" });
    await deliver(given, await eventsOf(given));
    assert.equal((await shown(given, id)).status, "partially_refunded");
  });
  await assertBalanced(given);
  await t.step("a payout empties the balance", async () => {
    // The lost dispute has taken more than the other payments have brought.
    await paid(given);
    await paid(given);
    await paid(given);
    await paid(given);
    await given.double.act("payouts", { owner: given.secret, currency: "eur" });
    await deliver(given, await eventsOf(given));
    const balance = await given.call("GET", "/balance");
    assert.equal(balance.status, 200);
  });
  await assertBalanced(given);
});

liveCase("the daily totals of the provider agree with the ledger", async (given) => {
  const { sql } = given.service;
  // The first day that is read is the one after the account was added.
  await sql`update pay.provider_accounts set created_at = created_at - interval '2 days'`;
  await paid(given);
  // The provider's balance has changed, although the payout is on its way.
  await given.double.act("payouts", { owner: given.secret, currency: "eur", is_paid: false });
  await paid(given);
  await workAfter(given, 2 * 24 * HOUR_S);
  await settle(given);
  const totals = await sql`
    select provider_minor::int from pay.provider_totals where provider_minor <> 0`;
  assert.deepEqual(totals.map(({ provider_minor }) => provider_minor), [960]);
  await assertBalanced(given);
  await sql`update pay.provider_totals set provider_minor = 961 where provider_minor = 960`;
  assert.match((await breaches(given)).join(), /provider 961 EUR, ledger 960/);
});
