/**
 * Live card payments from the create to refunds and disputes, with the payer, the worker and people
 * with the provider's dashboard: after each, both sides have the same books.
 */

import assert from "node:assert/strict";
import {
  CHALLENGED,
  challenged,
  deliver,
  eventsOf,
  eventTypes,
  Money,
  paid,
  providerEventsOf,
  referenceOf,
  shown,
  visit,
} from "../support/live/live_actions.ts";
import {
  balances,
  type LiveCase,
  liveCase,
  resumePolls,
  stopPolls,
  workAfter,
} from "../support/live/live_case.ts";

const DAY_S = 24 * 3600;

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
});

liveCase("a declined card is 402 with the advice, and ends at the provider", async (given) => {
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
});

liveCase("an authorization that the provider has ended", async (given, t) => {
  for (const [op, http] of [["capture", 409], ["cancel", 200]] as const) {
    await t.step(`${op}: ${http}`, async () => {
      const { id, capture_before } = (await given.pay({ capture: "manual" })).body;
      const { payment_method_details: { card } } = (await given.books()).charge.at(-1)!;
      assert.equal(Date.parse(capture_before), card.capture_before * 1000);
      await given.double.act("expire", { payment_intent: await referenceOf(given, id) });
      assert.equal((await given.call("POST", `/payments/${id}/${op}`, { body: {} })).status, http);
      assert.equal((await shown(given, id)).status, "cancelled");
    });
  }
});

liveCase("a payment whose payer does nothing ends after 24 hours", async (given, t) => {
  /** Creates a payment that waits for its payer. Nothing but its end brings results. */
  const waiting = async () => {
    await given.service.setClock(null);
    const made = await challenged(given);
    await stopPolls(given);
    await given.service.sql`update pay.provider_operations set next_sync_at = null`;
    return made;
  };
  await t.step("as failed, at the provider too, and the sandbox agrees", async () => {
    const { id } = await waiting();
    const simulated = (await given.service.pay(CHALLENGED)).body.id;
    await workAfter(given, DAY_S - 60);
    assert.equal((await shown(given, id)).status, "requires_action");
    await workAfter(given, 61);
    const path = `/api-v1-payments/v1/payments/${simulated}`;
    const ends = [await shown(given, id), (await given.service.call("GET", path)).body].map((
      of,
    ) => [...[of.status, of.failure_code, of.failure_message, of.next_action, of.sequence]]);
    assert.deepEqual(ends[0], ["failed", "expired", "The payer did not pay in time", null, 3]);
    assert.deepEqual(ends[1], ends[0]);
    const { status, cancellation_reason } = await intentOf(given, id);
    assert.deepEqual([status, cancellation_reason], ["canceled", "abandoned"]);
    // The notification of the cancel changes nothing any more.
    await deliver(given, await eventsOf(given));
    assert.equal((await eventTypes(given, id)).at(-1), "payment.failed");
  });
  await t.step("as the provider says if the payer was in time, which nobody heard of", async () => {
    const { id, url } = await waiting();
    await visit(url);
    await workAfter(given, DAY_S + 1);
    assert.equal((await shown(given, id)).status, "completed");
  });
});

/** Stories of a payment of 1000: the end has its refunded, refunding and disputed amounts. */
const STORIES: [
  name: string,
  play: (money: Money) => Promise<unknown>,
  end: [status: string, refunded: number, refunding: number, disputed: number],
  ...last_events: string[],
][] = [
  [
    "refunded in parts, of which one fails after it had succeeded",
    async (money) => {
      assert.equal((await money.refund(300)).status, "completed");
      assert.equal((await money.refund()).payment_status, "refunded");
      await money.settle("failed", 0);
      await money.learn();
    },
    ["partially_refunded", 700, 0, 0],
    "refund.failed",
    "payment.partially_refunded",
  ],
  [
    "two refunds by hand, which the worker applies together",
    async (money) => {
      await stopPolls(money.given);
      for (const amount of [100, 150]) await money.refundByHand(amount);
      await resumePolls(money.given);
      await money.given.work();
      assert.equal((await shown(money.given, money.id)).amount_refunded, 250);
      await money.settle("failed");
      await money.learn();
    },
    ["partially_refunded", 100, 0, 0],
    "refund.failed",
    "payment.partially_refunded",
  ],
  [
    "a won dispute after a refund, of more than what is left",
    async (money) => {
      await money.refund(300);
      await money.dispute({ amount: 1000 });
      assert.equal((await shown(money.given, money.id)).amount_disputed, 1000);
      await money.close("won");
    },
    ["partially_refunded", 300, 0, 0],
    "dispute.won",
    "payment.partially_refunded",
  ],
  [
    "two disputes of parts: the first is lost, the second is won",
    async (money) => {
      for (const amount of [400, 300]) await money.dispute({ amount });
      await money.close("lost", -2);
      await money.close("won");
    },
    ["chargeback", 0, 0, 400],
    "dispute.won",
    "payment.chargeback",
  ],
];

async function standing({ given, id }: Money) {
  const { status, ...payment } = await shown(given, id);
  return [status, payment.amount_refunded, payment.amount_refunding, payment.amount_disputed];
}

liveCase("the money of a payment after its create", async (given, t) => {
  for (const [name, play, end, ...last_events] of STORIES) {
    await t.step(name, async () => {
      const money = new Money(given, await paid(given));
      await play(money);
      assert.deepEqual(await standing(money), end);
      const types = await eventTypes(given, money.id);
      assert.deepEqual(types.slice(-last_events.length), last_events);
    });
  }
});

liveCase(
  "a refund by hand of more than what is left: its return is booked at once",
  async (given) => {
    await stopPolls(given);
    const money = new Money(given, await paid(given));
    await money.refund(700);
    // At the provider the first refund has failed already.
    await money.settle("failed");
    await money.refundByHand(900);
    await money.settle("failed");
    const [ours, made] = (await given.books()).refund;
    for (const [type, refund] of [["created", made], ["failed", made], ["failed", ours]] as const) {
      const events = await eventsOf(given, `refund.${type}`);
      await deliver(given, events.filter(({ data }) => data.object.id === refund!.id));
    }
    assert.deepEqual(await standing(money), ["completed", 0, 0, 0]);
    const unmatched = (await providerEventsOf(given, money.id))
      .filter(([, outcome]) => outcome === "unmatched").map(([, , exception]) => exception);
    assert.deepEqual(unmatched.sort(), [
      "a refund of 9.00 EUR at the provider is more than what is left",
      "refund returned builds on a provider event that is unmatched",
    ]);
    const [row] = await given.service.sql`
    select -sum(processor + chargebacks + external)::int as sum from pay_internal.subject_accounts`;
    assert.equal(row!.sum, (await balances(given)).EUR);
  },
  { is_open: true },
);

liveCase("evidence and acceptance of a live dispute go to the provider", async (given, t) => {
  const TEXT = "A signed receipt";
  const disputed = async () => {
    const money = new Money(given, await paid(given));
    await money.dispute({ reason: "credit_not_processed" });
    const { data: [{ id }] } = (await given.call("GET", `/disputes?payment_id=${money.id}`)).body;
    return { money, path: `/disputes/${id}` };
  };
  const atProvider = async () => (await given.books()).dispute.at(-1)!;
  await t.step("first saved, then submitted once", async () => {
    const { money, path } = await disputed();
    const send = (body: object, options = {}) =>
      given.call("POST", `${path}/evidence`, { body, ...options });
    const saved = await send({ text: "A draft", submit: false });
    assert.deepEqual(
      [saved.status, saved.body.status, saved.body.evidence],
      [200, "needs_response", { text: "A draft", submitted_at: null }],
    );
    assert.equal((await atProvider()).evidence.uncategorized_text, "A draft");
    const sent = await send({ text: TEXT }, { idempotency_key: "key" });
    assert.deepEqual([sent.status, sent.body.status], [200, "under_review"]);
    assert.equal(sent.body.evidence.text, TEXT);
    assert.notEqual(sent.body.evidence.submitted_at, null);
    assert.equal((await send({ text: TEXT }, { idempotency_key: "key" })).text, sent.text);
    const { status, evidence, evidence_details } = await atProvider();
    assert.deepEqual(
      [status, evidence.uncategorized_text, evidence_details.submission_count],
      ["under_review", TEXT, 1],
    );
    assert.equal((await send({ text: "More" })).body.error.code, "invalid_state");
    const before = await eventTypes(given, money.id);
    await money.learn();
    assert.deepEqual(await eventTypes(given, money.id), before);
    assert.deepEqual(before.slice(-3), [
      ...["payment.chargeback", "dispute.updated", "dispute.updated"],
    ]);
  });
  await t.step("an acceptance loses the dispute at once", async () => {
    const { money, path } = await disputed();
    const { status, body } = await given.call("POST", `${path}/accept`);
    assert.deepEqual([status, body.status], [200, "lost"]);
    assert.equal((await atProvider()).status, "lost");
    await money.learn();
    assert.equal((await eventTypes(given, money.id)).at(-1), "dispute.lost");
    const again = await given.call("POST", `${path}/accept`);
    assert.deepEqual([again.status, again.body.error.code], [409, "invalid_state"]);
  });
});
