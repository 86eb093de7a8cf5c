/**
 * Money that moves at the provider after a payment: refunds that fail, disputes of refunded
 * payments, movements of the account. After each, both sides have the same books.
 */

import assert from "node:assert/strict";
import { type LiveCase, liveCase } from "../support/live/live_case.ts";
import { atStripe, paid, referenceOf, refund } from "../support/live/live_actions.ts";
import {
  assertBalanced,
  balances,
  breaches,
  deliver,
  eventsOf,
  eventTypes,
  providerEventsOf,
  resumePolls,
  settle,
  shown,
  stopPolls,
  workAfter,
} from "../support/live/live_books.ts";

const HOUR_S = 3600;
const CHALLENGED = {
  card: { token: "pm_card_authenticationRequired" },
  return_url: "https://shop.example/back",
};

/** The status and the amounts of a payment. */
async function standing(given: LiveCase, id: string) {
  const { status, amount_refunded, amount_disputed } = await shown(given, id);
  return [status, amount_refunded, amount_disputed];
}

async function disputesOf(given: LiveCase, id: string) {
  const { data } = (await given.call("GET", `/disputes?payment_id=${id}`)).body;
  const all = data as { id: string; status: string; amount_minor: number }[];
  return all.map(({ status, amount_minor }) => [status, amount_minor]).sort();
}

liveCase("a refund that fails after it had succeeded", async (given, t) => {
  await t.step("is failed here, and its amount can be refunded again", async () => {
    const id = await paid(given);
    const { body: part } = await refund(given, id, { amount: 300 });
    const { body: rest } = await refund(given, id);
    assert.deepEqual(await standing(given, id), ["refunded", 1000, 0]);
    const [first, second] = (await given.books()).refund;
    await given.double.act("settle_refund", { refund: first!.id, status: "failed" });
    await deliver(given, await eventsOf(given));
    assert.deepEqual(await standing(given, id), ["partially_refunded", 700, 0]);
    const failed = (await given.call("GET", `/refunds/${part.id}`)).body;
    assert.deepEqual([failed.status, failed.failure_code, failed.payment_status], [
      "failed",
      "processing_failed",
      "partially_refunded",
    ]);
    await given.double.act("settle_refund", { refund: second!.id, status: "failed" });
    await deliver(given, await eventsOf(given));
    assert.deepEqual(await standing(given, id), ["completed", 0, 0]);
    assert.equal((await given.call("GET", `/refunds/${rest.id}`)).body.status, "failed");
    assert.deepEqual((await eventTypes(given, id)).slice(2), [
      "refund.created",
      "refund.completed",
      "payment.partially_refunded",
      "refund.created",
      "refund.completed",
      "payment.refunded",
      "refund.failed",
      "payment.partially_refunded",
      "refund.failed",
      "payment.completed",
    ]);
    assert.equal((await refund(given, id)).body.status, "completed");
    await assertBalanced(given);
  });
  await t.step("that somebody has made at the provider", async () => {
    const id = await paid(given);
    const payment_intent = await referenceOf(given, id);
    await atStripe(given, "/v1/refunds", { payment_intent, amount: "400" });
    await deliver(given, await eventsOf(given));
    assert.deepEqual(await standing(given, id), ["partially_refunded", 400, 0]);
    const { id: made } = (await given.books()).refund.at(-1)!;
    await given.double.act("settle_refund", { refund: made, status: "failed" });
    await deliver(given, await eventsOf(given));
    assert.deepEqual(await standing(given, id), ["completed", 0, 0]);
    await assertBalanced(given);
  });
  await t.step("whose success and failure come together", async () => {
    await stopPolls(given);
    const id = await paid(given);
    const payment_intent = await referenceOf(given, id);
    await atStripe(given, "/v1/refunds", { payment_intent, amount: "400" });
    const { id: made } = (await given.books()).refund.at(-1)!;
    await given.double.act("settle_refund", { refund: made, status: "failed" });
    const [failed] = (await eventsOf(given, "refund.failed"))
      .filter(({ data }) => data.object.id === made);
    await deliver(given, [failed!]);
    assert.deepEqual(await standing(given, id), ["completed", 0, 0]);
    assert.deepEqual((await eventTypes(given, id)).slice(2), [
      "refund.created",
      "refund.completed",
      "payment.partially_refunded",
      "refund.failed",
      "payment.completed",
    ]);
    await resumePolls(given);
    await assertBalanced(given);
  });
  await t.step("of a payment that this service has not made", async () => {
    await atStripe(given, "/v1/payment_intents", {
      amount: "500",
      currency: "eur",
      payment_method: "pm_card_visa",
      "allowed_payment_method_types[]": "card",
      confirm: "true",
      capture_method: "automatic",
    });
    const { id: payment_intent } = (await given.books()).payment_intent.at(-1)!;
    await atStripe(given, "/v1/refunds", { payment_intent, amount: "400" });
    const { id: made } = (await given.books()).refund.at(-1)!;
    await given.double.act("settle_refund", { refund: made, status: "failed" });
    await deliver(given, await eventsOf(given));
    // The fee of such a payment comes with the poll.
    await workAfter(given, HOUR_S + 60);
    assert.equal(await ledgerSum(given), (await balances(given)).EUR);
  });
});

liveCase(
  "a refund at the provider that fails before its money leaves is no exception",
  async (given) => {
    const id = await paid(given, "pm_card_pendingRefund");
    const payment_intent = await referenceOf(given, id);
    await atStripe(given, "/v1/refunds", { payment_intent, amount: "400" });
    const { id: made } = (await given.books()).refund.at(-1)!;
    await given.double.act("settle_refund", { refund: made, status: "failed" });
    await deliver(given, await eventsOf(given));
    assert.deepEqual(await standing(given, id), ["completed", 0, 0]);
    await assertBalanced(given);
  },
);

liveCase("a dispute of a refunded payment", async (given, t) => {
  for (const [end, status] of [["won", "refunded"], ["lost", "chargeback"]] as const) {
    await t.step(`that is ${end}`, async () => {
      const id = await paid(given);
      await refund(given, id);
      const payment_intent = await referenceOf(given, id);
      const { id: dispute } = await given.double.act("disputes", { payment_intent, amount: 1000 });
      await deliver(given, await eventsOf(given));
      assert.deepEqual(await standing(given, id), ["chargeback", 1000, 1000]);
      assert.deepEqual(await disputesOf(given, id), [["needs_response", 1000]]);
      await assertBalanced(given);
      await given.double.act("close_dispute", { dispute, status: end });
      await deliver(given, await eventsOf(given));
      assert.deepEqual(await standing(given, id), [status, 1000, end === "won" ? 0 : 1000]);
      assert.deepEqual((await eventTypes(given, id)).slice(5), [
        "dispute.created",
        "payment.chargeback",
        `dispute.${end}`,
        ...(end === "won" ? ["payment.refunded"] : []),
      ]);
      await assertBalanced(given);
    });
  }
});

/** The sum at the provider, according to our ledger. */
async function ledgerSum({ service }: LiveCase): Promise<number> {
  const [row] = await service.sql`
    select -sum(processor + chargebacks + external) as at_provider from pay_internal.subject_accounts`;
  return Number(row!.at_provider);
}

liveCase("money that comes back after an exception is in the ledger at once", async (given, t) => {
  await t.step("of a refund that was more than what was left", async () => {
    const id = await paid(given);
    const payment_intent = await referenceOf(given, id);
    await refund(given, id, { amount: 700 });
    const [ours] = (await given.books()).refund;
    // At the provider the first refund has failed already.
    await given.double.act("settle_refund", { refund: ours!.id, status: "failed" });
    await atStripe(given, "/v1/refunds", { payment_intent, amount: "900" });
    const { id: made } = (await given.books()).refund.at(-1)!;
    const of = async (type: string, refund: string) =>
      (await eventsOf(given, type)).filter(({ data }) => data.object.id === refund);
    await deliver(given, await of("refund.created", made));
    await given.double.act("settle_refund", { refund: made, status: "failed" });
    await deliver(given, await of("refund.failed", made));
    await deliver(given, await of("refund.failed", ours!.id));
    assert.deepEqual(await standing(given, id), ["completed", 0, 0]);
    assert.deepEqual(
      (await providerEventsOf(given, id)).findLast(([, outcome]) => outcome === "unmatched"),
      [
        "refund returned",
        "unmatched",
        "refund returned builds on a provider event that is unmatched",
      ],
    );
    assert.equal(await ledgerSum(given), (await balances(given)).EUR);
  });
  await t.step("of a dispute that was more than the payment has taken", async () => {
    const id = await paid(given);
    const payment_intent = await referenceOf(given, id);
    const { id: dispute } = await given.double.act("disputes", { payment_intent, amount: 1500 });
    await deliver(given, await eventsOf(given));
    await given.double.act("close_dispute", { dispute, status: "won" });
    await deliver(given, await eventsOf(given));
    assert.deepEqual(await standing(given, id), ["completed", 0, 0]);
    assert.deepEqual(
      (await providerEventsOf(given, id)).findLast(([, outcome]) => outcome === "unmatched"),
      [
        "dispute dispute_won",
        "unmatched",
        "dispute dispute_won builds on a provider event that is unmatched",
      ],
    );
    assert.equal(await ledgerSum(given), (await balances(given)).EUR);
  });
});

/** Each row: the ends of two partial disputes, in this order, and the payment after each. */
const TWO: [ends: ("won" | "lost" | "prevented")[], after: [string, number][]][] = [
  [["won", "won"], [["chargeback", 300], ["completed", 0]]],
  [["lost", "won"], [["chargeback", 700], ["chargeback", 400]]],
  [["won", "lost"], [["chargeback", 300], ["chargeback", 300]]],
  [["lost", "prevented"], [["chargeback", 700], ["chargeback", 700]]],
];
liveCase("a second dispute of a part", async (given, t) => {
  for (const [ends, after] of TWO) {
    await t.step(`the first is ${ends.join(", the second is ")}`, async () => {
      const id = await paid(given);
      const payment_intent = await referenceOf(given, id);
      const disputes: string[] = [];
      for (const amount of [400, 300]) {
        disputes.push((await given.double.act("disputes", { payment_intent, amount })).id);
        await deliver(given, await eventsOf(given));
      }
      assert.deepEqual(await standing(given, id), ["chargeback", 0, 700]);
      assert.deepEqual(await disputesOf(given, id), [
        ["needs_response", 300],
        ["needs_response", 400],
      ]);
      for (const [i, status] of ends.entries()) {
        await given.double.act("close_dispute", { dispute: disputes[i]!, status });
        await deliver(given, await eventsOf(given));
        const [payment, disputed] = after[i]!;
        assert.deepEqual(await standing(given, id), [payment, 0, disputed]);
        await assertBalanced(given);
      }
    });
  }
  await t.step("after a lost one of the rest", async () => {
    const id = await paid(given);
    const payment_intent = await referenceOf(given, id);
    for (const amount of [600, 400]) {
      const { id: dispute } = await given.double.act("disputes", { payment_intent, amount });
      await given.double.act("close_dispute", { dispute, status: "lost" });
      await deliver(given, (await eventsOf(given)).toReversed());
    }
    assert.deepEqual(await standing(given, id), ["chargeback", 0, 1000]);
    await assertBalanced(given);
  });
});

liveCase(
  "every movement of the account is in the ledger, and the day's totals agree",
  async (given) => {
    const { sql } = given.service;
    // The first day that is read is the one after the account was added.
    await sql`update pay.provider_accounts set created_at = created_at - interval '2 days'`;
    await paid(given);
    const owner = given.secret;
    const book = async (type: string, amount: number, fee = 0) =>
      await given.double.act("movements", { owner, type, amount, fee });
    await book("stripe_fee", -120);
    await book("tax_fee", -23);
    await book("reserve_hold", -300);
    await book("topup", 5000);
    await book("reserve_release", 100);
    await workAfter(given, HOUR_S + 60);
    await assertBalanced(given);
    const movements = await sql`
    select kind, amount_minor::int as amount from pay.ledger_movements
    where subject_id = ${given.account_id} order by amount_minor`;
    assert.deepEqual(movements.map(({ kind, amount }) => `${kind} ${amount}`), [
      "fee 23",
      "reserve_reversal 100",
      "fee 120",
      "reserve 300",
      "settlement_reversal 5000",
    ]);
    const { balances: shown } = (await given.call("GET", "/balance")).body;
    const reserve = shown.find(({ account }: { account: string }) => account === "reserve");
    assert.equal(reserve.amount_minor, -200);
    // Money of a product that this service does not know.
    await book("issuing_transaction", -70, 2);
    await workAfter(given, 2 * 24 * HOUR_S);
    await settle(given);
    const found = await breaches(given);
    assert.deepEqual(found.map((line) => line.replace(/.*: /, "")), [
      "the provider has booked -0.70 EUR as issuing_transaction, outside of payments",
    ]);
    const totals = await sql`
    select sum(provider_minor)::int as sum from pay.provider_totals`;
    assert.equal(totals[0]!.sum, (await balances(given)).EUR);
  },
);

liveCase(
  "a declined payment is cancelled at the provider, so nobody can pay it later",
  async (given, t) => {
    const intentOf = async (id: string) => {
      const reference = await referenceOf(given, id);
      return (await given.books()).payment_intent.find((one) => one.id === reference)!;
    };
    await t.step("after the response to the create", async () => {
      const { body } = await given.pay({ card: { token: "pm_card_chargeDeclined" } });
      const { id } = body.error.payment;
      await given.work();
      assert.equal((await intentOf(id)).status, "canceled");
      assert.equal((await shown(given, id)).status, "declined");
    });
    await t.step("after an authentication that has failed", async () => {
      const { body: { id } } = await given.pay(CHALLENGED);
      const page = await fetch(
        `${given.double.base_url}/authenticate/${await referenceOf(given, id)}?result=failure`,
        { redirect: "manual" },
      );
      await page.body?.cancel();
      await deliver(given, await eventsOf(given));
      assert.equal((await shown(given, id)).status, "declined");
      assert.equal((await intentOf(id)).status, "canceled");
    });
    await t.step("also if Stripe does not respond at first", async () => {
      await given.double.plant({ method: "POST", path: "cancel$", at: "before", act: "error" });
      const { body } = await given.pay({ card: { token: "pm_card_chargeDeclined" } });
      await given.work();
      await workAfter(given, 60);
      assert.equal((await intentOf(body.error.payment.id)).status, "canceled");
    });
    await t.step(
      "also if somebody has authorized it meanwhile, whose amount is released",
      async () => {
        const { body } = await given.pay({
          capture: "manual",
          card: { token: "pm_card_chargeDeclined" },
        });
        const { id } = body.error.payment;
        const payment_intent = await referenceOf(given, id);
        await given.double.act("confirm_again", { payment_intent, payment_method: "pm_card_visa" });
        assert.equal((await intentOf(id)).status, "requires_capture");
        await given.work();
        assert.equal((await intentOf(id)).status, "canceled");
        assert.equal((await shown(given, id)).status, "declined");
      },
    );
    await t.step(
      "unless somebody has paid it meanwhile: the money is booked and shown",
      async () => {
        const { body } = await given.pay({ card: { token: "pm_card_chargeDeclined" } });
        const { id } = body.error.payment;
        const payment_intent = await referenceOf(given, id);
        await given.double.act("confirm_again", { payment_intent, payment_method: "pm_card_visa" });
        await given.work();
        assert.equal((await intentOf(id)).status, "succeeded");
        assert.match(
          (await breaches(given)).join(),
          /money arrived for a payment that is declined/,
        );
        await given.service.sql`update pay.provider_events set dismissed_at = now(),
      dismissed_reason = 'refunded' where exception is not null`;
      },
    );
    await assertBalanced(given);
  },
);

liveCase("the fee comes with the notification that completes a payment", async (given, t) => {
  await stopPolls(given);
  const authenticate = async (id: string) => {
    const url = `${given.double.base_url}/authenticate/${await referenceOf(given, id)}`;
    await (await fetch(`${url}`, { redirect: "manual" })).body?.cancel();
  };
  await t.step("after an authentication", async () => {
    const { body: { id } } = await given.pay(CHALLENGED);
    await authenticate(id);
    await deliver(given, await eventsOf(given, "payment_intent.succeeded"));
    assert.equal((await shown(given, id)).status, "completed");
    assert.deepEqual((await providerEventsOf(given, id)).map(([reported]) => reported).sort(), [
      "authorize requires_action",
      "authorize succeeded",
      "fee succeeded",
    ]);
  });
  await t.step("and its money counts for the day of the movement", async () => {
    const { body: { id } } = await given.pay(CHALLENGED);
    await authenticate(id);
    const [event] = (await eventsOf(given, "payment_intent.succeeded"))
      .filter(({ data }) => data.object.metadata.payment === id);
    // Stripe makes an event some seconds after the movement, which can be the next day.
    await deliver(given, [{ ...event!, created: event!.created + 86_400 }]);
    const [row] = await given.service.sql`
      select extract(epoch from happened_at)::int as at from pay.provider_events
      where subject_id = ${id} and op = 'authorize' and state = 'succeeded'`;
    const moved = (await given.books()).balance_transaction.at(-1)!;
    assert.deepEqual([moved.type, row!.at], ["charge", moved.created]);
  });
  await t.step("after a capture in the dashboard", async () => {
    const { body: { id } } = await given.pay({ capture: "manual" });
    const reference = await referenceOf(given, id);
    await atStripe(given, `/v1/payment_intents/${reference}/capture`, {});
    await deliver(given, await eventsOf(given, "payment_intent.succeeded"));
    assert.equal((await shown(given, id)).status, "completed");
  });
  await assertBalanced(given);
});

liveCase("capture_before is the time that the charge names", async (given, t) => {
  await stopPolls(given);
  const named = async () => {
    const { payment_method_details } = (await given.books()).charge.at(-1)!;
    return new Date(payment_method_details.card.capture_before * 1000).toISOString();
  };
  await t.step("in the response", async () => {
    const { body } = await given.pay({ capture: "manual" });
    assert.equal(body.capture_before, await named());
  });
  await t.step("in a notification", async () => {
    const { body: { id } } = await given.pay({ ...CHALLENGED, capture: "manual" });
    const url = `${given.double.base_url}/authenticate/${await referenceOf(given, id)}`;
    await (await fetch(`${url}`, { redirect: "manual" })).body?.cancel();
    await deliver(given, await eventsOf(given, "payment_intent.amount_capturable_updated"));
    const { status, capture_before } = await shown(given, id);
    assert.deepEqual([status, capture_before], ["authorized", await named()]);
  });
});

liveCase("a poll reads the events of an account with an older version", async (given) => {
  await given.double.act("event_version", { version: "2020-08-27" });
  try {
    // Its payer authenticates, and somebody then gives the authorization up as abandoned.
    const { body: { id } } = await given.pay({ ...CHALLENGED, capture: "manual" });
    const reference = await referenceOf(given, id);
    const url = `${given.double.base_url}/authenticate/${reference}`;
    await (await fetch(url, { redirect: "manual" })).body?.cancel();
    const form = { cancellation_reason: "abandoned" };
    await atStripe(given, `/v1/payment_intents/${reference}/cancel`, form);
    await workAfter(given, HOUR_S + 60);
    assert.equal((await shown(given, id)).status, "cancelled");
    await assertBalanced(given);
  } finally {
    await given.double.act("event_version", { version: "2026-10-28.endive" });
  }
});
