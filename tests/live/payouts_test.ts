/**
 * Payouts: the ledger moves when the provider's balance does, at the creation, and back when a
 * payout fails or is cancelled, in whatever order the events come.
 */

import assert from "node:assert/strict";
import { type LiveCase, liveCase } from "../support/live/live_case.ts";
import { paid, referenceOf } from "../support/live/live_actions.ts";
import { assertBalanced, deliver, eventsOf, stopPolls } from "../support/live/live_books.ts";

/** Creates a payout of the whole balance, which is on its way. */
async function createPayout({ double, secret }: LiveCase, currency = "eur"): Promise<string> {
  return (await double.act("payouts", { owner: secret, currency, is_paid: false })).id;
}

/** The movements of payouts, the oldest first. */
async function settlements({ service }: LiveCase): Promise<string[]> {
  const rows = await service.sql`
    select kind, amount_minor, currency from pay.ledger_movements
    where kind like 'settlement%' order by transaction_id`;
  return rows.map(({ kind, amount_minor, currency }) => `${kind} ${amount_minor} ${currency}`);
}

/** Provider events that are leased together are applied in any order. */
const sorted = (lines: string[]) => lines.toSorted();

liveCase("a payout is booked when it is created", async (given, t) => {
  await paid(given);
  await stopPolls(given);
  const payout = await createPayout(given);
  await t.step("and the books agree while it is on its way", async () => {
    await deliver(given, await eventsOf(given, "payout.created"));
    assert.deepEqual(await settlements(given), ["settlement 960 EUR"]);
    await assertBalanced(given);
  });
  await t.step("once, when it is paid", async () => {
    await given.double.act("settle_payout", { payout, status: "paid" });
    const events = await eventsOf(given, "payout.created", "payout.paid");
    await deliver(given, [...events, ...events]);
    assert.deepEqual(await settlements(given), ["settlement 960 EUR"]);
    await assertBalanced(given);
  });
  await t.step("and back when it fails after that", async () => {
    await given.double.act("settle_payout", { payout, status: "failed" });
    await deliver(given, await eventsOf(given, "payout.failed"));
    assert.deepEqual(await settlements(given), [
      "settlement 960 EUR",
      "settlement_reversal 960 EUR",
    ]);
    await assertBalanced(given);
  });
});

/** Each row: the end of the payout, and the events that arrive, in this order. */
const ORDERS: [end: "paid" | "failed" | "canceled", arrive: string[], movements: string[]][] = [
  ["paid", ["paid"], ["settlement"]],
  ["paid", ["paid", "created"], ["settlement"]],
  ["failed", ["failed", "created", "failed"], ["settlement", "settlement_reversal"]],
  ["failed", ["failed"], ["settlement", "settlement_reversal"]],
  ["canceled", ["canceled", "canceled", "created"], ["settlement", "settlement_reversal"]],
];
liveCase("the order of the events of a payout does not matter", async (given, t) => {
  await stopPolls(given);
  const before: string[] = [];
  for (const [end, arrive, kinds] of ORDERS) {
    await t.step(`${arrive} of a payout that is ${end}: ${kinds}`, async () => {
      await paid(given);
      const payout = await createPayout(given);
      const { balance_transaction } = await given.books();
      const amount = -balance_transaction.at(-1)!.net;
      await given.double.act("settle_payout", { payout, status: end });
      const events = (await eventsOf(given)).filter(({ data }) => data.object.id === payout);
      const named = arrive.map((name) => events.find(({ type }) => type === `payout.${name}`)!);
      await deliver(given, named);
      before.push(...kinds.map((kind) => `${kind} ${amount} EUR`));
      assert.deepEqual(sorted(await settlements(given)), sorted(before));
    });
  }
  await assertBalanced(given);
});

liveCase("payouts of other signs and currencies", async (given, t) => {
  await stopPolls(given);
  await t.step("a payout below zero debits the bank, and gives back if it fails", async () => {
    const payment_intent = await referenceOf(given, await paid(given));
    const { id: dispute } = await given.double.act("disputes", { payment_intent });
    await given.double.act("close_dispute", { dispute, status: "lost" });
    const payout = await createPayout(given);
    await deliver(given, await eventsOf(given));
    assert.deepEqual(await settlements(given), ["settlement_reversal 1540 EUR"]);
    await given.double.act("settle_payout", { payout, status: "failed" });
    await deliver(given, await eventsOf(given));
    assert.deepEqual(await settlements(given), [
      "settlement_reversal 1540 EUR",
      "settlement 1540 EUR",
    ]);
  });
  await t.step("a payout in a currency without decimals", async () => {
    await given.pay({ currency: "JPY" });
    const payout = await createPayout(given, "jpy");
    await given.double.act("settle_payout", { payout, status: "canceled" });
    await deliver(given, await eventsOf(given));
    const movements = (await settlements(given)).filter((line) => line.endsWith("JPY"));
    assert.deepEqual(sorted(movements), ["settlement 960 JPY", "settlement_reversal 960 JPY"]);
  });
  await assertBalanced(given);
});
