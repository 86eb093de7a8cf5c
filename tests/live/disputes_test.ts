/**
 * Live disputes: how they end for the payment and the ledger, and the evidence and acceptance that
 * go to the provider. After each, both sides have the same books.
 */

import assert from "node:assert/strict";
import { type LiveCase, liveCase, paid, referenceOf, refund } from "../support/live/live_case.ts";
import {
  assertBalanced,
  deliver,
  eventsOf,
  eventTypes,
  shown,
} from "../support/live/live_books.ts";

const TEXT = "A signed receipt";

/** A dispute of a new payment, on both sides. */
interface Disputed {
  payment_id: string;
  /** `dp_…` */
  id: string;
  /** `du_…` */
  reference: string;
}

async function disputed(given: LiveCase, more: { reason?: string } = {}): Promise<Disputed> {
  const payment_id = await paid(given);
  const payment_intent = await referenceOf(given, payment_id);
  const { id: reference } = await given.double.act("disputes", { payment_intent, ...more });
  await deliver(given, (await eventsOf(given)).filter(({ data }) => data.object.id === reference));
  const { body } = await given.call("GET", `/disputes?payment_id=${payment_id}`);
  assert.equal(body.data.length, 1);
  return { payment_id, id: body.data[0].id, reference };
}

async function close(given: LiveCase, dispute: string, status: "won" | "lost" | "prevented") {
  await given.double.act("close_dispute", { dispute, status });
  await deliver(given, await eventsOf(given));
}

/** The status and the amounts of a payment. */
async function standing(given: LiveCase, id: string) {
  const { status, amount_refunded, amount_disputed } = await shown(given, id);
  return [status, amount_refunded, amount_disputed];
}

const evidence = (given: LiveCase, id: string, body: object, options: object = {}) =>
  given.call("POST", `/disputes/${id}/evidence`, { body, ...options });
const present = async (given: LiveCase, { id }: Disputed) =>
  (await given.call("GET", `/disputes/${id}`)).body;
const atProvider = async (given: LiveCase, { reference }: Disputed) =>
  (await given.books()).dispute.find(({ id }) => id === reference)!;

liveCase("disputes, lost and won", async (given, t) => {
  await t.step("won after a refund, of more than what is left", async () => {
    const id = await paid(given);
    await refund(given, id, { amount: 300 });
    const payment_intent = await referenceOf(given, id);
    const { id: dispute } = await given.double.act("disputes", { payment_intent, amount: 1000 });
    await deliver(given, await eventsOf(given));
    assert.deepEqual(await standing(given, id), ["chargeback", 300, 1000]);
    await close(given, dispute, "won");
    assert.deepEqual(await standing(given, id), ["partially_refunded", 300, 0]);
    assert.deepEqual((await eventTypes(given, id)).slice(-4), [
      "dispute.created",
      "payment.chargeback",
      "dispute.won",
      "payment.partially_refunded",
    ]);
  });
  await t.step("two of parts: the first is lost, the second is won", async () => {
    const id = await paid(given);
    const payment_intent = await referenceOf(given, id);
    const made: string[] = [];
    for (const amount of [400, 300]) {
      made.push((await given.double.act("disputes", { payment_intent, amount })).id);
      await deliver(given, await eventsOf(given));
    }
    await close(given, made[0]!, "lost");
    assert.deepEqual(await standing(given, id), ["chargeback", 0, 700]);
    await close(given, made[1]!, "won");
    assert.deepEqual(await standing(given, id), ["chargeback", 0, 400]);
  });
  await t.step("one that is prevented after it took the money is lost", async () => {
    const made = await disputed(given);
    await close(given, made.reference, "prevented");
    assert.equal((await present(given, made)).status, "lost");
  });
  await assertBalanced(given);
});

liveCase("evidence of a live dispute goes to the provider", async (given, t) => {
  const made = await disputed(given, { reason: "credit_not_processed" });
  await t.step("first saved, then submitted", async () => {
    const saved = await evidence(given, made.id, { text: "A draft", submit: false });
    assert.deepEqual(
      [saved.status, saved.body.status, saved.body.evidence],
      [200, "needs_response", { text: "A draft", submitted_at: null }],
    );
    assert.equal((await atProvider(given, made)).evidence.uncategorized_text, "A draft");
    const sent = await evidence(given, made.id, { text: TEXT }, { idempotency_key: "key" });
    assert.deepEqual([sent.status, sent.body.status], [200, "under_review"]);
    assert.equal(sent.body.evidence.text, TEXT);
    assert.notEqual(sent.body.evidence.submitted_at, null);
    const again = await evidence(given, made.id, { text: TEXT }, { idempotency_key: "key" });
    assert.equal(again.text, sent.text);
    const { status, evidence: kept, evidence_details } = await atProvider(given, made);
    assert.deepEqual([status, kept.uncategorized_text], ["under_review", TEXT]);
    assert.equal(evidence_details.submission_count, 1);
  });
  await t.step("a second submission is refused, and the notification changes nothing", async () => {
    const { body } = await evidence(given, made.id, { text: "More" });
    assert.equal(body.error.code, "invalid_state");
    const before = await eventTypes(given, made.payment_id);
    await deliver(given, await eventsOf(given, "charge.dispute.updated"));
    assert.deepEqual(await eventTypes(given, made.payment_id), before);
    assert.deepEqual(before.slice(-4), [
      "dispute.created",
      "payment.chargeback",
      "dispute.updated",
      "dispute.updated",
    ]);
  });
  await t.step("an acceptance loses the dispute at once", async () => {
    const lost = await disputed(given);
    const { status, body } = await given.call("POST", `/disputes/${lost.id}/accept`);
    assert.deepEqual([status, body.status], [200, "lost"]);
    assert.equal((await atProvider(given, lost)).status, "lost");
    await deliver(given, await eventsOf(given));
    assert.deepEqual((await eventTypes(given, lost.payment_id)).at(-1), "dispute.lost");
    const again = await given.call("POST", `/disputes/${lost.id}/accept`);
    assert.deepEqual([again.status, again.body.error.code], [409, "invalid_state"]);
  });
  await t.step("a dispute that has ended at the provider is refused there", async () => {
    const ended = await disputed(given);
    await given.double.act("close_dispute", { dispute: ended.reference, status: "lost" });
    const { status, body } = await evidence(given, ended.id, { text: TEXT });
    assert.deepEqual([status, body.error.code], [402, "provider_refused"]);
    assert.equal((await present(given, ended)).status, "needs_response");
    await deliver(given, await eventsOf(given));
    assert.equal((await present(given, ended)).status, "lost");
  });
  await assertBalanced(given);
});
