/**
 * Movements of Stripe's balance: every type has a place in the ledger, and a payout moves money at
 * every state, in both directions.
 */

import assert from "node:assert/strict";
import type Stripe from "stripe";
import {
  DISPUTE_STATUSES,
  type ProviderEventSource,
} from "../../shared/connectors/stripe/stripe_provider_events.ts";
import {
  MOVEMENT_CATEGORIES,
  movementEvents,
} from "../../shared/connectors/stripe/stripe_movements.ts";
import { payoutEvents } from "../../shared/connectors/stripe/stripe_payouts.ts";
import { BalanceTransaction, Payout } from "../../shared/connectors/stripe/stripe_objects.ts";
import { applyToAccount, isAccountEvent } from "../../shared/domain/providers/apply_to_account.ts";
import { bookedAtProvider } from "../../shared/domain/providers/effect.ts";
import { movedAtProvider } from "../../shared/domain/providers/moved_at_provider.ts";
import type { ProviderEvent } from "../../shared/domain/providers/connector.ts";
import {
  charge,
  dispute,
  type Members,
  movement,
  NOW,
  PAYMENT_ID,
  payout,
  refund,
} from "../support/connectors/stripe_case.ts";
import { requestContext } from "../support/domain/decided_change.ts";

/** The names of a union of the package. It adds `string` for names of later versions. */
type Known<Names extends string> = Names extends string ? string extends Names ? never : Names
  : never;

/** An error of the type check if the package has a type or a status that is not in our tables. */
MOVEMENT_CATEGORIES satisfies Record<Known<Stripe.BalanceTransaction.Type>, unknown>;
DISPUTE_STATUSES satisfies Record<Known<Stripe.Dispute.Status>, unknown>;
/** The same if a table has a name that the package does not have. */
const _OURS: {
  [Type in keyof typeof MOVEMENT_CATEGORIES]: Type extends Known<Stripe.BalanceTransaction.Type>
    ? true
    : never;
} = Object.fromEntries(Object.keys(MOVEMENT_CATEGORIES).map((type) => [type, true])) as never;

const ACCOUNT: ProviderEventSource = { account_id: "pac_1", livemode: true, event_seconds: null };
const eventsOf = (members: Members) =>
  movementEvents(ACCOUNT, BalanceTransaction.parse(movement(members)));
const short = (all: readonly ProviderEvent[]) =>
  all.map(({ reference, op, state, amount_minor }) =>
    `${reference} ${op} ${state} ${amount_minor}`
  );

/** A movement without a fee, by default one that belongs to no object. */
const moved = (type: string, amount: number, more: Members = {}) => ({
  type,
  amount,
  fee: 0,
  source: null,
  ...more,
});
const returned_refund = refund({ status: "failed", failure_balance_transaction: "txn_1" });
const failed_later = refund({ status: "failed", failure_balance_transaction: "txn_3" });
const reversal = { reporting_category: "partial_capture_reversal", source: refund() };
const disputed = dispute("needs_response", [-1099, 1500]);
const disputed_again = dispute("needs_response", [-1099, 0]);
const REFUNDED = "re_1:succeeded refund succeeded 300";
const GIVEN = "re_1:failed refund returned 300";
const FEE = "ch_1:fee fee succeeded 41";
const FEE_OF_DISPUTE = "du_1:fee fee succeeded 1500";
const TAKEN = "du_1:disputed dispute disputed 1099";

/** Each row: the movement, and its provider events. */
const CASES: [name: string, members: Members, ...provider_events: string[]][] = [
  ["a charge", { source: charge() }, FEE],
  [
    "a charge alone",
    { source: charge({ payment_intent: null }) },
    "ch_1:succeeded authorize succeeded 1099",
    FEE,
  ],
  [
    "a refund with a fee",
    moved("refund", -300, { fee: 7, source: refund() }),
    REFUNDED,
    "txn_1:fee fee succeeded 7",
  ],
  ["a refund that fails", moved("refund", -300, { source: failed_later }), REFUNDED],
  ["a failed refund", moved("refund_failure", 300, { source: returned_refund }), GIVEN],
  ["an adjustment for a refund", moved("adjustment", 300, { source: returned_refund }), GIVEN],
  ["the rest of a partial capture", moved("refund", -300, reversal)],
  [
    "a dispute",
    moved("adjustment", -1099, { id: "txn_0", fee: 1500, source: disputed }),
    TAKEN,
    FEE_OF_DISPUTE,
  ],
  [
    "a further movement of a dispute",
    moved("adjustment", -200, { id: "txn_9", source: disputed_again }),
    TAKEN,
    "txn_9:adjustment adjustment succeeded 200",
  ],
  [
    "a payout with a fee",
    moved("payout", -5000, { fee: 50, source: payout("paid") }),
    "po_1:created payout succeeded 5000",
    "txn_1:fee account_fee succeeded 50",
  ],
  [
    "a failed payout",
    moved("payout_failure", 5000, { source: payout("failed") }),
    "po_1:returned payout returned 5000",
  ],
  ["a fee of Stripe", moved("stripe_fee", -250), "txn_1:stripe_fee account_fee succeeded 250"],
  ["a fee that comes back", moved("stripe_fee", 250), "txn_1:stripe_fee account_fee returned 250"],
  ["a tax", moved("tax_fee", -50), "txn_1:tax_fee account_fee succeeded 50"],
  ["a reserve", moved("reserve_hold", -2000), "txn_1:reserve_hold reserve succeeded 2000"],
  ["its end", moved("reserve_release", 2000), "txn_1:reserve_release reserve returned 2000"],
  ["money from the bank account", moved("topup", 9000), "txn_1:topup payout returned 9000"],
  [
    "to another account",
    moved("transfer", -900, { source: "tr_1" }),
    "txn_1:transfer adjustment succeeded 900",
  ],
  [
    "money without a payment",
    moved("payment_unreconciled", 70, { fee: 2 }),
    "txn_1:payment_unreconciled adjustment returned 70",
    "txn_1:fee account_fee succeeded 2",
  ],
  ["an adjustment", moved("adjustment", -5), "txn_1:adjustment adjustment succeeded 5"],
  ["a type of next year", moved("moon_fee", -5), "txn_1:moon_fee adjustment succeeded 5"],
  // Its object gives provider events elsewhere. The daily totals show a difference.
  ["a refund that cannot be read", moved("refund", -300, { source: "re_1" })],
];
for (const [name, members, ...expected] of CASES) {
  Deno.test(`movementEvents() of ${name} are [${expected}]`, () => {
    assert.deepEqual(short(eventsOf(members)), expected);
  });
}

Deno.test("movementEvents() name our payment and the time of the movement", () => {
  const [fee] = eventsOf({ source: charge() });
  assert.equal(fee!.subject_id, PAYMENT_ID);
  const at = new Date((NOW + 2) * 1000).toISOString();
  const failed = payout("failed", { created: NOW - 90_000 });
  const [back] = eventsOf({ type: "payout_failure", amount: 5000, fee: 0, source: failed });
  assert.deepEqual([fee!.at, back!.at], [at, at]);
});

/** Types whose money is in the provider events of an object. */
const OF_OBJECTS = new Set(["charge", "refund", "refund_failure", "payout", "payout_return"]);

for (const [type, place] of Object.entries(MOVEMENT_CATEGORIES)) {
  if (OF_OBJECTS.has(place)) continue;
  Deno.test(`movementEvents() of ${type} without an object move its net amount in the ledger`, () => {
    const context = requestContext(true);
    for (const amount of [-1000, 1000]) {
      const all = eventsOf({ type, amount, fee: 30, net: amount - 30, source: null });
      const booked = all.map((event) => {
        assert.ok(isAccountEvent(event));
        const stored = { ...event, booked_minor: 0, received_at: event.at, is_elsewhere: false };
        const effect = applyToAccount(stored, context);
        assert.ok(effect.outcome === "applied" || effect.outcome === "unmatched");
        // Money that nobody can explain is for the operator.
        assert.equal(effect.exception !== null, event.op === "adjustment");
        if (effect.exception) assert.match(effect.exception, new RegExp(`as ${type},`));
        return bookedAtProvider([effect.movement!]);
      });
      assert.equal(booked.reduce((sum, minor) => sum + minor, 0), amount - 30);
    }
  });
}

Deno.test("applyToAccount() books an adjustment once", () => {
  const [event] = eventsOf({ type: "transfer", amount: -900, fee: 0, source: null });
  assert.ok(isAccountEvent(event!));
  const booked_minor = movedAtProvider(event);
  const stored = { ...event, booked_minor, received_at: event.at, is_elsewhere: false };
  const effect = applyToAccount(stored, requestContext(true));
  assert.ok(effect.outcome === "unmatched" && effect.movement === null);
});

const FROM_EVENT: ProviderEventSource = { ...ACCOUNT, event_seconds: NOW + 60 };

const CREATED = "po_1:created succeeded 5000 EUR";
const RETURNED = "po_1:returned returned 5000 EUR";
/** Each row: the members of the payout, and reference, state and amount of its provider events. */
const PAYOUTS: [name: string, members: Members, ...provider_events: string[]][] = [
  ["that Stripe has created", { status: "pending" }, CREATED],
  ["on its way", { status: "in_transit" }, CREATED],
  ["that is paid", { status: "paid" }, CREATED],
  ["in a state of next year", { status: "paused" }, CREATED],
  ["that failed", { status: "failed" }, CREATED, RETURNED],
  ["that is canceled", { status: "canceled" }, CREATED, RETURNED],
  ["that debits the bank", { amount: -5000 }, "po_1:created returned 5000 EUR"],
  [
    "that could not debit the bank",
    { amount: -5000, status: "failed" },
    "po_1:created returned 5000 EUR",
    "po_1:returned succeeded 5000 EUR",
  ],
  ["of nothing", { amount: 0 }],
  ["in JPY", { currency: "jpy" }, "po_1:created succeeded 5000 JPY"],
  // Stripe keeps two decimals for these currencies, and pays out whole units only.
  ["in ISK", { currency: "isk", amount: 500_000 }, "po_1:created succeeded 5000 ISK"],
  ["in UGX", { currency: "ugx", amount: 500_000 }, "po_1:created succeeded 5000 UGX"],
  ["in HUF", { currency: "huf", amount: 500_000 }, "po_1:created succeeded 500000 HUF"],
];
for (const [name, members, ...expected] of PAYOUTS) {
  Deno.test(`payoutEvents() of a payout ${name} are [${expected}]`, () => {
    const provider_events = payoutEvents(FROM_EVENT, Payout.parse(payout("paid", members)));
    assert.deepEqual(
      provider_events.map(({ reference, state, amount_minor, currency }) =>
        `${reference} ${state} ${amount_minor} ${currency}`
      ),
      expected,
    );
    assert.ok(provider_events.every(({ op, subject_id }) => op === "payout" && !subject_id));
  });
}

Deno.test("payoutEvents() have the times of the payout and of the event that returns it", () => {
  const provider_events = payoutEvents(FROM_EVENT, Payout.parse(payout("failed")));
  const time = (seconds: number) => new Date(seconds * 1000).toISOString();
  assert.deepEqual(provider_events.map(({ at }) => at), [time(NOW), time(NOW + 60)]);
});
