/** Live payments from the create to the payout: after each, both sides have the same books. */

import assert from "node:assert/strict";
import { type LiveCase, liveCase } from "../support/live/live_case.ts";
import { atStripe, paid, referenceOf, refund } from "../support/live/live_actions.ts";
import {
  assertBalanced,
  deliver,
  eventsOf,
  eventTypes,
  resumePolls,
  shown,
  stopPolls,
  workAfter,
} from "../support/live/live_books.ts";

const HOUR_S = 3600 + 60;
const RETURN_URL = "https://shop.example/back";

liveCase("POST /v1/payments with a live key takes the money and books the fee", async (given) => {
  const paid = await given.pay();
  assert.equal(paid.status, 201);
  assert.equal(paid.body.status, "completed");
  assert.equal(paid.body.livemode, true);
  // The fee is in the provider's response, so it is recorded with the payment and not by the
  // worker.
  const waiting = await given.service.sql`
    select from pay.provider_events where outcome is null`;
  assert.equal(waiting.length, 0);
  assert.deepEqual(await eventTypes(given, paid.body.id), [
    "payment.created",
    "payment.completed",
  ]);
  assert.equal((await given.books()).charge.length, 1);
  await assertBalanced(given);
});

const DECLINES: [token: string, code: string, advice: string][] = [
  ["pm_card_chargeDeclined", "payment_declined", "use_another_method"],
  ["pm_card_chargeDeclinedInsufficientFunds", "insufficient_funds", "retry_later"],
  ["pm_card_chargeDeclinedFraudulent", "aml_blocked", "do_not_retry"],
  ["pm_card_chargeDeclinedExpiredCard", "payment_declined", "use_another_method"],
  ["pm_card_chargeDeclinedProcessingError", "payment_declined", "retry_later"],
  ["pm_card_chargeDeclinedLostCard", "payment_declined", "do_not_retry"],
  ["pm_card_authenticationRequired", "authentication_failed", "authenticate"],
];
liveCase("POST /v1/payments a declined card returns 402 with the payment", async (given, t) => {
  for (const [token, code, advice] of DECLINES) {
    await t.step(`${token} is ${code}: ${advice}`, async () => {
      const declined = await given.pay({ card: { token } });
      assert.equal(declined.status, 402, declined.text);
      assert.equal(declined.body.error.code, code);
      assert.equal(declined.body.error.payment.status, "declined");
      assert.equal(declined.body.error.payment.failure_code, code);
      assert.equal(declined.body.error.advice, advice);
      assert.equal(declined.body.error.payment.advice, advice);
      const { id } = declined.body.error.payment;
      assert.deepEqual(await eventTypes(given, id), ["payment.created", "payment.declined"]);
    });
  }
  await given.work();
  await assertBalanced(given);
});

/** Creates a payment that waits for the payer, and opens the payer's page. */
async function authenticate(given: LiveCase, result: string, token: string) {
  const created = await given.pay({ card: { token }, return_url: RETURN_URL });
  assert.equal(created.status, 201, created.text);
  assert.equal(created.body.status, "requires_action");
  const { url } = created.body.next_action;
  const page = await fetch(`${url}?result=${result}`, { redirect: "manual" });
  await page.body?.cancel();
  assert.equal(page.status, 303);
  assert.ok(page.headers.get("location")!.startsWith(RETURN_URL));
  return created.body.id;
}

const AUTHENTICATIONS: [result: string, token: string, status: string, code: string | null][] = [
  ["success", "pm_card_authenticationRequired", "completed", null],
  ["failure", "pm_card_authenticationRequired", "declined", "authentication_failed"],
  [
    "success",
    "pm_card_authenticationRequiredChargeDeclinedInsufficientFunds",
    "declined",
    "insufficient_funds",
  ],
];
liveCase("3-D Secure: the payer's page settles the payment", async (given, t) => {
  for (const [result, token, status, code] of AUTHENTICATIONS) {
    await t.step(`${result} with ${token}, by notification`, async () => {
      const id = await authenticate(given, result, token);
      await deliver(given, await eventsOf(given));
      const payment = await shown(given, id);
      assert.equal(payment.status, status);
      assert.equal(payment.failure_code, code);
      assert.equal(payment.next_action, null);
      assert.deepEqual(await eventTypes(given, id), [
        "payment.created",
        "payment.requires_action",
        `payment.${status}`,
      ]);
    });
  }
  for (const [result, token, status] of AUTHENTICATIONS) {
    await t.step(`${result} with ${token}, by the hourly sync`, async () => {
      const id = await authenticate(given, result, token);
      // A poll brings the same provider events: without it, only the sync can settle the payment.
      await stopPolls(given);
      await workAfter(given, HOUR_S);
      assert.equal((await shown(given, id)).status, status);
    });
  }
  await resumePolls(given);
  await given.work();
  await assertBalanced(given);
});

const CAPTURES: [name: string, body: object, captured: number][] = [
  ["the whole", {}, 1000],
  ["a part", { amount: 400 }, 400],
];
liveCase("manual capture", async (given, t) => {
  const authorize = async () => {
    const { status, body } = await given.pay({ capture: "manual" });
    assert.equal(status, 201);
    assert.equal(body.status, "authorized");
    return body.id;
  };
  for (const [name, body, captured] of CAPTURES) {
    await t.step(`captures ${name}`, async () => {
      const id = await authorize();
      const response = await given.call("POST", `/payments/${id}/capture`, { body });
      assert.equal(response.status, 200, response.text);
      assert.equal(response.body.status, "completed");
      assert.equal(response.body.amount_captured, captured);
      await deliver(given, await eventsOf(given));
      assert.deepEqual(await eventTypes(given, id), [
        "payment.created",
        "payment.authorized",
        "payment.completed",
      ]);
      const again = await given.call("POST", `/payments/${id}/capture`, { body: {} });
      assert.equal(again.body.error.code, "invalid_state");
    });
  }
  await t.step("cancel releases the amount", async () => {
    const id = await authorize();
    const response = await given.call("POST", `/payments/${id}/cancel`);
    assert.equal(response.status, 200, response.text);
    assert.equal(response.body.status, "cancelled");
    const intent = (await given.books()).payment_intent.at(-1)!;
    assert.equal(intent.status, "canceled");
  });
  await t.step("the provider ends an authorization after seven days", async () => {
    const id = await authorize();
    await given.double.act("expire", { payment_intent: await referenceOf(given, id) });
    await deliver(given, await eventsOf(given));
    assert.equal((await shown(given, id)).status, "cancelled");
  });
  for (const op of ["capture", "cancel"]) {
    await t.step(`${op} of an authorization that the provider has ended`, async () => {
      const id = await authorize();
      await given.double.act("expire", { payment_intent: await referenceOf(given, id) });
      const response = await given.call("POST", `/payments/${id}/${op}`, { body: {} });
      assert.equal(response.status, op === "capture" ? 409 : 200, response.text);
      assert.equal((await shown(given, id)).status, "cancelled");
    });
  }
  await t.step(
    "cancel of an authorization that somebody has captured at the provider",
    async () => {
      const id = await authorize();
      await atStripe(given, `/v1/payment_intents/${await referenceOf(given, id)}/capture`, {});
      const response = await given.call("POST", `/payments/${id}/cancel`);
      assert.equal(response.status, 409, response.text);
      assert.equal(response.body.error.code, "invalid_state");
      assert.equal((await shown(given, id)).status, "completed");
    },
  );
  await given.work();
  await assertBalanced(given);
});

liveCase("refunds", async (given, t) => {
  await t.step("of a part, then of the rest", async () => {
    const id = await paid(given);
    const part = await refund(given, id, { amount: 300 });
    assert.equal(part.status, 201, part.text);
    assert.equal(part.body.status, "completed");
    assert.equal(part.body.payment_status, "partially_refunded");
    assert.equal((await refund(given, id)).body.payment_status, "refunded");
    assert.equal((await refund(given, id)).body.error.code, "invalid_state");
    await deliver(given, await eventsOf(given));
    assert.deepEqual(await eventTypes(given, id), [
      "payment.created",
      "payment.completed",
      "refund.created",
      "refund.completed",
      "payment.partially_refunded",
      "refund.created",
      "refund.completed",
      "payment.refunded",
    ]);
  });
  for (const [status, shows, left] of [["succeeded", "completed", 0], ["failed", "failed", 1000]]) {
    await t.step(`pending, then ${status}`, async () => {
      const id = await paid(given, "pm_card_pendingRefund");
      const pending = await refund(given, id);
      assert.equal(pending.status, 201);
      assert.equal(pending.body.status, "pending");
      assert.equal((await shown(given, id)).amount_refunding, 1000);
      const { refund: refunds } = await given.books();
      const settled = { refund: refunds.at(-1)!.id, status: status as "succeeded" | "failed" };
      await given.double.act("settle_refund", settled);
      await deliver(given, await eventsOf(given));
      const found = await given.call("GET", `/refunds/${pending.body.id}`);
      assert.equal(found.body.status, shows);
      const payment = await shown(given, id);
      assert.equal(payment.amount_refunding, 0);
      assert.equal(payment.amount_captured - payment.amount_refunded, left);
    });
  }
  await t.step("by hand in the provider's dashboard", async () => {
    const id = await paid(given);
    const payment_intent = await referenceOf(given, id);
    await atStripe(given, "/v1/refunds", { payment_intent, amount: "250" });
    await deliver(given, await eventsOf(given));
    const payment = await shown(given, id);
    assert.equal(payment.status, "partially_refunded");
    assert.equal(payment.amount_refunded, 250);
  });
  await t.step("two by hand, whose provider events the worker applies together", async () => {
    await stopPolls(given);
    const id = await paid(given);
    const payment_intent = await referenceOf(given, id);
    await atStripe(given, "/v1/refunds", { payment_intent, amount: "100" });
    await atStripe(given, "/v1/refunds", { payment_intent, amount: "150" });
    await resumePolls(given);
    await given.work();
    assert.equal((await shown(given, id)).amount_refunded, 250);
  });
  await assertBalanced(given);
});
