/** Live payments from the create to the capture: after each, both sides have the same books. */

import assert from "node:assert/strict";
import {
  atStripe,
  challenged,
  type LiveCase,
  liveCase,
  referenceOf,
  visit,
} from "../support/live/live_case.ts";
import {
  assertBalanced,
  breaches,
  deliver,
  eventsOf,
  eventTypes,
  providerEventsOf,
  resumePolls,
  shown,
  stopPolls,
  workAfter,
} from "../support/live/live_books.ts";

const HOUR_S = 3600 + 60;

/** The payment at the provider. */
async function intentOf(given: LiveCase, id: string) {
  const { payment_intent } = await given.books();
  return payment_intent.find(({ metadata }) => metadata.payment === id)!;
}

liveCase("POST /v1/payments with a live key takes the money and books the fee", async (given) => {
  const { status, body } = await given.pay();
  assert.deepEqual([status, body.status, body.livemode], [201, "completed", true]);
  const card = { brand: "visa", last4: "4242", exp_month: 12, exp_year: 2034 };
  assert.deepEqual(body.method, { type: "card", card });
  // The fee is in the provider's response, so it is recorded with the payment and not by the
  // worker.
  const waiting = await given.service.sql`
    select from pay.provider_events where outcome is null`;
  assert.equal(waiting.length, 0);
  assert.deepEqual(await eventTypes(given, body.id), ["payment.created", "payment.completed"]);
  assert.equal((await given.books()).charge.length, 1);
  await assertBalanced(given);
});

liveCase(
  "a declined card returns 402 with the payment, which ends at the provider",
  async (given, t) => {
    await t.step("with the issuer's advice", async () => {
      const declined = await given.pay({ card: { token: "pm_card_chargeDeclinedLostCard" } });
      const { error } = declined.body;
      const { id, status, failure_code, advice } = error.payment;
      assert.deepEqual([declined.status, error.code, error.advice], [
        ...[402, "payment_declined", "do_not_retry"],
      ]);
      assert.deepEqual([status, failure_code, advice], ["declined", error.code, error.advice]);
      assert.deepEqual(await eventTypes(given, id), ["payment.created", "payment.declined"]);
      // Nobody can pay it later with another card.
      await given.work();
      assert.equal((await intentOf(given, id)).status, "canceled");
      assert.equal((await shown(given, id)).status, "declined");
    });
    await t.step(
      "unless somebody has paid it meanwhile: the money is booked and shown",
      async () => {
        await stopPolls(given);
        const { body } = await given.pay({ card: { token: "pm_card_chargeDeclined" } });
        const { id } = body.error.payment;
        const payment_intent = await referenceOf(given, id);
        await given.double.act("confirm_again", { payment_intent, payment_method: "pm_card_visa" });
        const [paid] = await eventsOf(given, "payment_intent.succeeded");
        await deliver(given, [paid!]);
        assert.equal((await intentOf(given, id)).status, "succeeded");
        assert.deepEqual(await eventTypes(given, id), ["payment.created", "payment.declined"]);
        assert.match(
          (await breaches(given)).join(),
          /money arrived for a payment that is declined/,
        );
        const sums = async () => {
          const [row] = await given.service.sql`
        select -sum(processor)::int as at_provider, sum(unapplied)::int as unapplied
        from pay_internal.subject_accounts where subject_id = ${id}`;
          return Object.values(row!);
        };
        // The fee of 0.40 EUR comes with the notification.
        assert.deepEqual(await sums(), [960, 1000]);
        await atStripe(given, "/v1/refunds", { payment_intent, amount: "1000" });
        await deliver(given, (await eventsOf(given)).toReversed());
        assert.deepEqual(await sums(), [-40, 0]);
        await given.service.sql`
      select pay.dismiss_provider_event(account_id, reference, 'refunded') from pay.list_reported_events()`;
        await resumePolls(given);
      },
    );
    await assertBalanced(given);
  },
);

const AUTHENTICATIONS: [
  result: string,
  token: string,
  way: "notification" | "sync",
  status: string,
  code: string | null,
][] = [
  ["success", "pm_card_authenticationRequired", "notification", "completed", null],
  ["success", "pm_card_authenticationRequired", "sync", "completed", null],
  [
    "success",
    "pm_card_authenticationRequiredChargeDeclinedInsufficientFunds",
    "notification",
    "declined",
    "insufficient_funds",
  ],
];
liveCase("3-D Secure: the payer's page settles the payment", async (given, t) => {
  // A poll would bring the same provider events, and the fee.
  await stopPolls(given);
  for (const [result, token, way, status, code] of AUTHENTICATIONS) {
    await t.step(`${result} with ${token}, by ${way}`, async () => {
      const { id, url } = await challenged(given, { card: { token } });
      await visit(url, result);
      if (way === "notification") await deliver(given, await eventsOf(given));
      else await workAfter(given, HOUR_S);
      const payment = await shown(given, id);
      assert.deepEqual([payment.status, payment.failure_code, payment.next_action], [
        status,
        code,
        null,
      ]);
      const types = ["payment.created", "payment.requires_action", `payment.${status}`];
      assert.deepEqual(await eventTypes(given, id), types);
      if (status === "declined") {
        assert.equal((await intentOf(given, id)).status, "canceled", "nobody can pay it later");
        return;
      }
      const reported = (await providerEventsOf(given, id)).map(([reported]) => reported);
      assert.ok(reported.includes("fee succeeded"), `${reported}`);
    });
  }
  await resumePolls(given);
  await assertBalanced(given);
});

liveCase("manual capture", async (given, t) => {
  // Only the responses and the notifications bring the fees.
  await stopPolls(given);
  const authorize = async () => {
    const { status, body } = await given.pay({ capture: "manual" });
    assert.equal(status, 201);
    assert.equal(body.status, "authorized");
    return body;
  };
  const move = (id: string, op: string, body: object = {}) =>
    given.call("POST", `/payments/${id}/${op}`, { body });
  const named = async () => {
    const { payment_method_details } = (await given.books()).charge.at(-1)!;
    return new Date(payment_method_details.card.capture_before * 1000).toISOString();
  };
  await t.step("captures a part once, until the time that the charge names", async () => {
    const { id, capture_before } = await authorize();
    assert.equal(capture_before, await named());
    const response = await move(id, "capture", { amount: 400 });
    assert.equal(response.status, 200, response.text);
    assert.deepEqual([response.body.status, response.body.amount_captured], ["completed", 400]);
    await deliver(given, await eventsOf(given));
    const types = ["payment.created", "payment.authorized", "payment.completed"];
    assert.deepEqual(await eventTypes(given, id), types);
    assert.equal((await move(id, "capture")).body.error.code, "invalid_state");
  });
  for (const [op, status] of [["capture", 409], ["cancel", 200]] as const) {
    await t.step(`${op} of an authorization that the provider has ended: ${status}`, async () => {
      const { id } = await authorize();
      await given.double.act("expire", { payment_intent: await referenceOf(given, id) });
      assert.equal((await move(id, op)).status, status);
      assert.equal((await shown(given, id)).status, "cancelled");
    });
  }
  await assertBalanced(given);
});
