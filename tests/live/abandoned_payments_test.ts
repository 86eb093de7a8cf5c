/**
 * Payments whose payer does not authenticate within 24 hours: the service cancels them at the
 * provider, and the provider's response counts. The sandbox ends the same payment in the same way.
 */

import assert from "node:assert/strict";
import {
  CHALLENGED,
  challenged,
  type LiveCase,
  liveCase,
  referenceOf,
  visit,
} from "../support/live/live_case.ts";
import {
  assertBalanced,
  deliver,
  eventsOf,
  eventTypes,
  resumePolls,
  returnToPresent,
  shown,
  stopPolls,
  workAfter,
} from "../support/live/live_books.ts";

const DAY_S = 24 * 3600;

/** Creates a payment that waits for its payer. Nothing but its end brings results. */
async function waiting(given: LiveCase) {
  await returnToPresent(given);
  const made = await challenged(given);
  await stopPolls(given);
  await given.service.sql`update pay.provider_operations set next_sync_at = null`;
  return made;
}

/** The operations to end a payment: their states, and whether they were sent. */
async function endingsOf({ service }: LiveCase, id: string) {
  const rows = await service.sql`
    select state, first_sent_at is not null as is_sent from pay.provider_operations
    where subject_id = ${id} and op = 'abandon'`;
  return rows.map(({ state, is_sent }) => `${state} ${is_sent ? "sent" : "unsent"}`);
}

liveCase("a payment whose payer does nothing ends after 24 hours", async (given, t) => {
  const { double, service } = given;
  await t.step("as failed, at the provider too, and the sandbox agrees", async () => {
    const { id } = await waiting(given);
    const simulated = (await service.pay(CHALLENGED)).body.id;
    await workAfter(given, DAY_S - 60);
    assert.equal((await shown(given, id)).status, "requires_action");
    assert.deepEqual(await endingsOf(given, id), ["pending unsent"]);
    await workAfter(given, 61);
    const payment = await shown(given, id);
    const { body: other } = await service.call("GET", `/api-v1-payments/v1/payments/${simulated}`);
    const endOf = (of: typeof payment) => [
      of.status,
      of.failure_code,
      of.failure_message,
      of.next_action,
      of.sequence,
    ];
    assert.deepEqual(endOf(payment), [
      "failed",
      "expired",
      "The payer did not pay in time",
      null,
      3,
    ]);
    assert.deepEqual(endOf(other), endOf(payment));
    const { payment_intent: [intent] } = await given.books();
    assert.deepEqual([intent!.status, intent!.cancellation_reason], ["canceled", "abandoned"]);
    // The notification of the cancel changes nothing any more.
    await deliver(given, await eventsOf(given));
    assert.deepEqual(await eventTypes(given, id), [
      "payment.created",
      "payment.requires_action",
      "payment.failed",
    ]);
  });
  await t.step("as the provider says if the payer was in time, which nobody heard of", async () => {
    const { id, url } = await waiting(given);
    await visit(url);
    await workAfter(given, DAY_S + 1);
    assert.equal((await shown(given, id)).status, "completed");
    assert.deepEqual(await endingsOf(given, id), ["settled sent"]);
  });
  await t.step("also if the response to the cancel is lost", async () => {
    const { id } = await waiting(given);
    const path = `^/v1/payment_intents/${await referenceOf(given, id)}/cancel$`;
    await double.plant({ method: "POST", path, at: "after", act: "error" });
    await workAfter(given, DAY_S + 1);
    assert.equal((await shown(given, id)).status, "requires_action");
    await workAfter(given, 60);
    assert.equal((await shown(given, id)).failure_code, "expired");
    assert.deepEqual(await endingsOf(given, id), ["settled sent"]);
  });
  await t.step("and nothing is sent for a payment that has ended before", async () => {
    const { id, url } = await waiting(given);
    await visit(url);
    await deliver(given, await eventsOf(given));
    assert.equal((await shown(given, id)).status, "completed");
    await workAfter(given, DAY_S + 1);
    const [operation] = await service.sql`
      select state, last_reply from pay.provider_operations where subject_id = ${id} and op = 'abandon'`;
    assert.deepEqual({ ...operation }, {
      state: "settled",
      last_reply: "not sent: it is completed",
    });
  });
  await returnToPresent(given);
  await resumePolls(given);
  await given.work();
  await assertBalanced(given);
});
