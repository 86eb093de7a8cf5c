/** Live refunds, also those that fail later: after each, both sides have the same books. */

import assert from "node:assert/strict";
import {
  atStripe,
  type LiveCase,
  liveCase,
  paid,
  referenceOf,
  refund,
} from "../support/live/live_case.ts";
import {
  assertBalanced,
  balances,
  deliver,
  eventsOf,
  eventTypes,
  providerEventsOf,
  resumePolls,
  shown,
  stopPolls,
} from "../support/live/live_books.ts";

/** The status and the amounts of a payment. */
async function standing(given: LiveCase, id: string) {
  const { status, amount_refunded, amount_refunding } = await shown(given, id);
  return [status, amount_refunded, amount_refunding];
}

/** Makes a refund in the provider's dashboard. Returns its id there. */
async function refundedByHand(given: LiveCase, payment_intent: string, amount: string) {
  await atStripe(given, "/v1/refunds", { payment_intent, amount });
  return (await given.books()).refund.at(-1)!.id;
}

liveCase("refunds", async (given, t) => {
  await t.step(
    "of a part, then of the rest, and the part fails after it had succeeded",
    async () => {
      const id = await paid(given);
      const part = await refund(given, id, { amount: 300 });
      assert.deepEqual([part.status, part.body.status], [201, "completed"], part.text);
      assert.equal((await refund(given, id)).body.payment_status, "refunded");
      assert.equal((await refund(given, id)).body.error.code, "invalid_state");
      const [first] = (await given.books()).refund;
      await given.double.act("settle_refund", { refund: first!.id, status: "failed" });
      await deliver(given, await eventsOf(given));
      assert.deepEqual(await standing(given, id), ["partially_refunded", 700, 0]);
      const { status, failure_code } = (await given.call("GET", `/refunds/${part.body.id}`)).body;
      assert.deepEqual([status, failure_code], ["failed", "processing_failed"]);
      assert.deepEqual((await eventTypes(given, id)).slice(-2), [
        "refund.failed",
        "payment.partially_refunded",
      ]);
      assert.equal((await refund(given, id)).body.status, "completed");
      await assertBalanced(given);
    },
  );
  const ENDS = [["succeeded", "completed", 1000], ["failed", "failed", 0]] as const;
  for (const [status, shows, refunded] of ENDS) {
    await t.step(`pending, then ${status}`, async () => {
      const id = await paid(given, "pm_card_pendingRefund");
      const pending = await refund(given, id);
      assert.deepEqual([pending.status, pending.body.status], [201, "pending"]);
      assert.equal((await shown(given, id)).amount_refunding, 1000);
      const { refund: refunds } = await given.books();
      await given.double.act("settle_refund", { refund: refunds.at(-1)!.id, status });
      await deliver(given, await eventsOf(given));
      assert.equal((await given.call("GET", `/refunds/${pending.body.id}`)).body.status, shows);
      const payment = refunded > 0 ? "refunded" : "completed";
      assert.deepEqual(await standing(given, id), [payment, refunded, 0]);
    });
  }
  await t.step(
    "two by hand, which the worker applies together, and one of them fails",
    async () => {
      await stopPolls(given);
      const id = await paid(given);
      const payment_intent = await referenceOf(given, id);
      await refundedByHand(given, payment_intent, "100");
      const second = await refundedByHand(given, payment_intent, "150");
      await resumePolls(given);
      await given.work();
      assert.deepEqual(await standing(given, id), ["partially_refunded", 250, 0]);
      await given.double.act("settle_refund", { refund: second, status: "failed" });
      await deliver(given, await eventsOf(given));
      assert.deepEqual(await standing(given, id), ["partially_refunded", 100, 0]);
    },
  );
  await assertBalanced(given);
  await t.step("by hand, of more than what is left: its return is booked at once", async () => {
    await stopPolls(given);
    const id = await paid(given);
    const payment_intent = await referenceOf(given, id);
    await refund(given, id, { amount: 700 });
    const { id: ours } = (await given.books()).refund.at(-1)!;
    // At the provider the first refund has failed already.
    await given.double.act("settle_refund", { refund: ours, status: "failed" });
    const made = await refundedByHand(given, payment_intent, "900");
    const of = async (type: string, refund: string) =>
      (await eventsOf(given, type)).filter(({ data }) => data.object.id === refund);
    await deliver(given, await of("refund.created", made));
    await given.double.act("settle_refund", { refund: made, status: "failed" });
    await deliver(given, await of("refund.failed", made));
    await deliver(given, await of("refund.failed", ours));
    assert.deepEqual(await standing(given, id), ["completed", 0, 0]);
    const unmatched = (await providerEventsOf(given, id))
      .filter(([, outcome]) => outcome === "unmatched").map(([, , exception]) => exception);
    assert.deepEqual(unmatched.sort(), [
      "a refund of 9.00 EUR at the provider is more than what is left",
      "refund returned builds on a provider event that is unmatched",
    ]);
    const [row] = await given.service.sql`
      select -sum(processor + chargebacks + external)::int as sum from pay_internal.subject_accounts`;
    assert.equal(row!.sum, (await balances(given)).EUR);
  });
});
