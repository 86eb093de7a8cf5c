/** Results at Stripe itself that come after the payment: refunds, disputes, polls and versions. */

import assert from "node:assert/strict";
import { STRIPE_EVENT_TYPES } from "../../shared/connectors/stripe/stripe_events.ts";
import { STRIPE_VERSION } from "../../shared/connectors/stripe/stripe_settings.ts";
import {
  authorize,
  change,
  eventOf,
  liveCard,
  polled,
  request,
  type Sent,
  sync,
  syncShows,
  totals,
} from "../support/live_card/live_card_case.ts";

/** Matches a provider event of the same payment at Stripe. */
const of = ({ reply }: Sent, state: string) => {
  const { provider_reference } = eventOf(reply);
  return (event: { provider_reference: string | null; state: string; op: string }) =>
    event.provider_reference === provider_reference && event.state === state &&
    event.op === "dispute";
};

liveCard("refunds never exceed the payment", async () => {
  const paid = await authorize("pm_card_visa");
  const part = eventOf((await change(paid, "refund", 300)).reply);
  assert.deepEqual([part.op, part.amount_minor], ["refund", 300]);
  const { reply: too_much } = await change(paid, "refund", 800);
  assert.ok("refused" in too_much && too_much.refused === "provider_refused");
  assert.equal(eventOf((await change(paid, "refund", 799)).reply).amount_minor, 799);
  const { reply: again } = await change(paid, "refund", 1);
  assert.ok("refused" in again && again.refused === "provider_refused");
});

liveCard("a sync finds a refund by our id", async () => {
  const refunded = await change(await authorize("pm_card_visa"), "refund", 300);
  assert.equal(
    eventOf(await sync(refunded.operation)).reference,
    eventOf(refunded.reply).reference,
  );
});

liveCard("a pending refund is pending at first", async () => {
  const refunded = await change(await authorize("pm_card_pendingRefund"), "refund");
  assert.equal(eventOf(refunded.reply).state, "pending");
});

liveCard("a refund that the bank refuses fails later", async () => {
  const refunded = await change(await authorize("pm_card_refundFail"), "refund");
  await syncShows(refunded.operation, "returned");
});

liveCard("a dispute takes the money, and refunds are refused then", async () => {
  const paid = await authorize("pm_card_createDispute");
  const { amount_minor } = await polled("the dispute", of(paid, "disputed"));
  assert.equal(amount_minor, 1099);
  const { reply } = await change(paid, "refund");
  assert.ok("refused" in reply && reply.refused === "provider_refused", JSON.stringify(reply));
});

liveCard("a dispute that is won gives the money back", async () => {
  const paid = await authorize("pm_card_createDispute");
  const { reference } = await polled("the dispute", of(paid, "disputed"));
  const [id] = reference.split(":");
  const won = await request("POST", `/v1/disputes/${id}`, [
    ["evidence[uncategorized_text]", "winning_evidence"],
    ["submit", "true"],
  ]);
  assert.equal(won.status, 200, JSON.stringify(won.body));
  await polled("the end of the dispute", of(paid, "dispute_won"));
}, { only_stripe: true });

liveCard("polls and totals can be read", async () => {
  const { reply } = await authorize("pm_card_visa");
  const { reference } = eventOf(reply);
  await polled("the payment", (event) => event.reference === reference);
  assert.ok((await totals()).length > 0);
});

liveCard("a webhook endpoint takes the version and the types of the connector", async () => {
  const made = await request("POST", "/v1/webhook_endpoints", [
    ["url", "https://example.com/live-card"],
    ["api_version", STRIPE_VERSION],
    ...STRIPE_EVENT_TYPES.map((type): [string, string] => ["enabled_events[]", type]),
    ["disabled", "true"],
  ]);
  try {
    assert.equal(made.status, 200, JSON.stringify(made.body));
    assert.equal(made.body.api_version, STRIPE_VERSION);
  } finally {
    await remove(String(made.body.id));
  }
}, { only_stripe: true });

async function remove(id: string): Promise<void> {
  const key = Deno.env.get("STRIPE_TEST_KEY");
  const response = await fetch(`https://api.stripe.com/v1/webhook_endpoints/${id}`, {
    method: "DELETE",
    headers: { Authorization: `Bearer ${key}`, "Stripe-Version": STRIPE_VERSION },
  });
  await response.body?.cancel();
}
