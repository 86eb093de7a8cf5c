/** Payments at Stripe itself: requests, replays, declines, 3-D Secure, currencies and captures. */

import assert from "node:assert/strict";
import { callStripe, isUnknown } from "../../shared/connectors/stripe/stripe_call.ts";
import { requestOf } from "../../shared/connectors/stripe/stripe_requests.ts";

import {
  ACCOUNT,
  authorize,
  change,
  eventOf,
  liveCard,
  send,
  sync,
  testCall,
} from "../support/live_card/live_card_case.ts";
import { patient } from "../support/connectors/stripe_case.ts";

liveCard("the test call responds in test mode", async () => {
  assert.match(await testCall(), /in test mode$/);
});

liveCard("the pinned version takes a payment, and shows its card and fee at once", async () => {
  const { reply } = await authorize("pm_card_visa");
  assert.ok("provider_events" in reply, JSON.stringify(reply));
  const [event, fee] = reply.provider_events;
  assert.deepEqual([event.state, event.amount_minor, event.currency], ["succeeded", 1099, "EUR"]);
  assert.deepEqual([event.card?.shown?.brand, event.card?.shown?.last4], ["visa", "4242"]);
  assert.equal(event.livemode, false);
  assert.equal(fee?.op, "fee", "the account must settle in EUR");
});

liveCard("an operation that is sent again is replayed, and marked as such", async () => {
  const first = await authorize("pm_card_visa");
  const request = requestOf(ACCOUNT.environment_id, first.operation);
  assert.ok(!("refused" in request));
  const again = await callStripe(ACCOUNT, request, patient());
  assert.ok(!isUnknown(again), JSON.stringify(again));
  assert.equal(again.replayed, true);
  assert.equal(again.body.id, eventOf(first.reply).provider_reference);
});

liveCard("another request under the same key is a conflict", async () => {
  const { operation } = await authorize("pm_card_visa");
  const { reply } = await send({ ...operation, amount_minor: 1100 });
  assert.deepEqual(reply, { unknown: "idempotency_conflict", may_repeat: false });
});

const DECLINES: [token: string, code: string][] = [
  ["pm_card_chargeDeclined", "payment_declined"],
  ["pm_card_chargeDeclinedInsufficientFunds", "insufficient_funds"],
  ["pm_card_chargeDeclinedFraudulent", "aml_blocked"],
  ["pm_card_chargeDeclinedExpiredCard", "payment_declined"],
  ["pm_card_chargeDeclinedIncorrectCvc", "payment_declined"],
  ["pm_card_chargeDeclinedProcessingError", "payment_declined"],
];
for (const [token, code] of DECLINES) {
  liveCard(`${token} is declined with ${code}, and shows its card`, async () => {
    const event = eventOf((await authorize(token)).reply);
    assert.deepEqual([event.state, event.decline_code], ["declined", code]);
    assert.equal(event.card?.shown?.brand, "visa");
  });
}

liveCard("a challenge redirects to a page, and shows the card", async () => {
  const event = eventOf((await authorize("pm_card_authenticationRequired")).reply);
  assert.equal(event.state, "requires_action");
  assert.equal(event.next_action?.type, "authenticate");
  assert.equal(event.card?.shown?.brand, "visa");
});

liveCard("a challenge without return_url is declined", async () => {
  const { reply } = await authorize("pm_card_authenticationRequired", { return_url: null });
  const { state, decline_code } = eventOf(reply);
  assert.deepEqual([state, decline_code], ["declined", "authentication_failed"]);
});

liveCard("an unknown token is refused for card.token", async () => {
  const { reply } = await authorize("pm_0123456789abcdef");
  assert.ok("refused" in reply, JSON.stringify(reply));
  assert.deepEqual([reply.refused, reply.param], ["invalid_parameter", "card.token"]);
});

const AMOUNTS: [currency: string, amount_minor: number][] = [
  ["JPY", 500],
  ["ISK", 500],
  ["UGX", 20_000],
  ["KWD", 5_120],
];
for (const [currency, amount_minor] of AMOUNTS) {
  liveCard(`${amount_minor} ${currency} is the amount that Stripe takes`, async () => {
    const event = eventOf((await authorize("pm_card_visa", {}, { currency, amount_minor })).reply);
    assert.deepEqual([event.state, event.amount_minor], ["succeeded", amount_minor]);
  });
}

liveCard("a part is captured once", async () => {
  const held = await authorize("pm_card_visa", { capture: "manual" });
  assert.equal(eventOf(held.reply).state, "authorized");
  const captured = eventOf((await change(held, "capture", 700)).reply);
  assert.deepEqual([captured.op, captured.state, captured.amount_minor], [
    "capture",
    "succeeded",
    700,
  ]);
  assert.equal(eventOf((await change(held, "capture", 399)).reply).reference, captured.reference);
  assert.equal(eventOf((await change(held, "cancel")).reply).reference, captured.reference);
});

liveCard("a cancel releases an authorization", async () => {
  const held = await authorize("pm_card_visa", { capture: "manual" });
  assert.equal(eventOf((await change(held, "cancel")).reply).state, "cancelled");
});

liveCard("a cancel ends a challenge", async () => {
  const waiting = await authorize("pm_card_authenticationRequired");
  assert.equal(eventOf((await change(waiting, "cancel")).reply).state, "cancelled");
});

liveCard(
  "a challenge whose payer does nothing is expired, and an authorization is not",
  async () => {
    const waiting = await authorize("pm_card_authenticationRequired");
    const { state, failure_code } = eventOf((await change(waiting, "abandon")).reply);
    assert.deepEqual([state, failure_code], ["failed", "expired"]);
    const held = await authorize("pm_card_visa", { capture: "manual" });
    assert.equal(eventOf((await change(held, "abandon")).reply).state, "authorized");
  },
);

liveCard("a sync without Stripe's id finds the payment at once", async () => {
  const { operation, reply } = await authorize("pm_card_visa");
  assert.equal(eventOf(await sync(operation)).reference, eventOf(reply).reference);
  assert.deepEqual(await sync({ ...operation, id: `${operation.id.slice(0, -4)}none` }), {
    absent: true,
  });
});
