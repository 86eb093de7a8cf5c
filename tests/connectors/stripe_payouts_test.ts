/** payoutEvents: the movements of the balance at every state, in both directions, by currency. */

import assert from "node:assert/strict";
import type { ProviderEventSource } from "../../shared/connectors/stripe/stripe_provider_events.ts";
import { Payout } from "../../shared/connectors/stripe/stripe_objects.ts";
import { payoutEvents } from "../../shared/connectors/stripe/stripe_payouts.ts";
import { type Members, NOW, payout } from "../support/connectors/stripe_case.ts";

const EVENT: ProviderEventSource = { account_id: "pac_1", livemode: true, event_seconds: NOW + 60 };

/** Each row: the payout's members, and reference, state and amount of its provider events. */
const CASES: [name: string, members: Members, provider_events: string[]][] = [
  ["that Stripe has created", { status: "pending" }, ["po_1:created succeeded 5000 EUR"]],
  ["on its way", { status: "in_transit" }, ["po_1:created succeeded 5000 EUR"]],
  ["that is paid", { status: "paid" }, ["po_1:created succeeded 5000 EUR"]],
  ["in a state of next year", { status: "paused" }, ["po_1:created succeeded 5000 EUR"]],
  ["that failed", { status: "failed" }, [
    "po_1:created succeeded 5000 EUR",
    "po_1:returned returned 5000 EUR",
  ]],
  ["that is canceled", { status: "canceled" }, [
    "po_1:created succeeded 5000 EUR",
    "po_1:returned returned 5000 EUR",
  ]],
  ["that debits the bank", { amount: -5000 }, ["po_1:created returned 5000 EUR"]],
  ["that could not debit the bank", { amount: -5000, status: "failed" }, [
    "po_1:created returned 5000 EUR",
    "po_1:returned succeeded 5000 EUR",
  ]],
  ["of nothing", { amount: 0 }, []],
  ["in JPY", { currency: "jpy", status: "failed" }, [
    "po_1:created succeeded 5000 JPY",
    "po_1:returned returned 5000 JPY",
  ]],
  ["in KRW that debits the bank", { currency: "krw", amount: -5000 }, [
    "po_1:created returned 5000 KRW",
  ]],
  // Stripe keeps two decimals for these currencies, and pays out whole units only.
  ["in ISK", { currency: "isk", amount: 500_000 }, ["po_1:created succeeded 5000 ISK"]],
  ["in UGX that failed", { currency: "ugx", amount: 500_000, status: "failed" }, [
    "po_1:created succeeded 5000 UGX",
    "po_1:returned returned 5000 UGX",
  ]],
  ["in HUF", { currency: "huf", amount: 500_000 }, ["po_1:created succeeded 500000 HUF"]],
];
for (const [name, members, expected] of CASES) {
  Deno.test(`payoutEvents() of a payout ${name} are [${expected}]`, () => {
    const provider_events = payoutEvents(EVENT, Payout.parse(payout("paid", members)));
    assert.deepEqual(
      provider_events.map(({ reference, state, amount_minor, currency }) =>
        `${reference} ${state} ${amount_minor} ${currency}`
      ),
      expected,
    );
    assert.ok(
      provider_events.every(({ op, subject_id }) => op === "payout" && subject_id === null),
    );
  });
}

Deno.test("payoutEvents() have the times of the payout and of the event that returns it", () => {
  const provider_events = payoutEvents(EVENT, Payout.parse(payout("failed")));
  const time = (seconds: number) => new Date(seconds * 1000).toISOString();
  assert.deepEqual(provider_events.map(({ at }) => at), [time(NOW), time(NOW + 60)]);
});
