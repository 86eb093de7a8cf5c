/** Money that matches no payment: booked for the account, and reversed once it is matched. */

import assert from "node:assert/strict";
import fc from "fast-check";
import { movedAtProvider } from "../../shared/domain/providers/moved_at_provider.ts";
import type {
  ProviderEvent,
  ProviderEventOp,
  ProviderEventState,
} from "../../shared/domain/providers/connector.ts";
import type { Payment } from "../../shared/schema/payment.ts";
import {
  applyToSubject,
  applyUnmatched,
  book,
  type Effect,
  handleAll,
  providerEvent,
} from "../support/domain/applied_event.ts";
import { NOW, paymentWith, requestContext } from "../support/domain/decided_change.ts";

const SEED = Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31);
const context = requestContext(true);

/** A provider event about an object that no payment has made. */
function event(
  op: ProviderEventOp,
  state: ProviderEventState,
  amount_minor: number,
  reference = `${op}:${state}`,
): ProviderEvent {
  return providerEvent(op, state, { reference, subject_id: null, amount_minor });
}

const stored = (given: ProviderEvent, booked_minor = 0, is_elsewhere = false) => ({
  ...given,
  booked_minor,
  received_at: NOW,
  is_elsewhere,
});

/** Provider events, by the booking of their amount of 1000. */
const BOOKINGS: [kind: string | null, booked: number, ...events: [ProviderEventOp, string][]][] = [
  ["unmatched", 1000, ["authorize", "succeeded"], ["capture", "succeeded"], ["fee", "returned"]],
  ["unmatched", 1000, ["refund", "returned"], ["dispute", "dispute_won"]],
  ["unmatched_reversal", -1000, ["refund", "succeeded"], ["transfer", "succeeded"]],
  ["unmatched_reversal", -1000, ["dispute", "disputed"], ["fee", "succeeded"]],
  [null, 0, ["authorize", "authorized"], ["authorize", "declined"], ["cancel", "cancelled"]],
  [null, 0, ["refund", "pending"], ["refund", "failed"], ["transfer", "failed"]],
  [null, 0, ["dispute", "dispute_lost"]],
];
for (const [kind, booked, ...events] of BOOKINGS) {
  for (const [op, state] of events) {
    Deno.test(`applyUnmatched() books ${kind ?? "nothing"} for ${op} ${state}, once`, () => {
      const reported = event(op, state as ProviderEventState, 1000);
      const first = applyUnmatched(stored(reported), context);
      assert.ok(first.outcome === "unmatched");
      assert.equal(first.change?.booked_minor ?? 0, booked);
      const moves = first.change?.ledger.map((one) => [one.kind, one.subject_id]) ?? [];
      assert.deepEqual(moves, kind === null ? [] : [[kind, "pac_1"]]);
      const again = applyUnmatched(stored(reported, booked), context);
      assert.ok(again.outcome === "unmatched" && again.change === null);
    });
  }
}

Deno.test("applyUnmatched() books nothing for the test mode and for another account's object", () => {
  const paid = event("authorize", "succeeded", 5);
  for (const given of [stored({ ...paid, livemode: false }), stored(paid, 0, true)]) {
    const effect = applyUnmatched(given, context);
    assert.ok(effect.outcome === "unmatched" && effect.change === null);
  }
});

/** A payment, as the subject of a provider event that is about no refund and no dispute of ours. */
const only = (subject: Payment) => ({ subject, refund: null, dispute: null, deposit: null });

/** The sums of the accounts by subject, and the payment. */
interface Books {
  payment: Payment;
  sums: Record<string, number>;
}

function note(books: Books, effect: Effect): number {
  const change = "change" in effect ? effect.change : null;
  if (change?.subject?.object === "payment") books.payment = change.subject;
  book(books.sums, change?.ledger ?? [], (account, { subject_id }) => `${subject_id} ${account}`);
  return change?.booked_minor ?? 0;
}

const Foreign = fc.record({
  fee: fc.integer({ min: 1, max: 50 }),
  refunds: fc.array(fc.integer({ min: 1, max: 300 }), { maxLength: 3 }),
}).chain(({ fee, refunds }) => {
  const provider_events = [
    event("authorize", "succeeded", 1000),
    event("fee", "succeeded", fee),
    ...refunds.map((amount, i) => event("refund", "succeeded", amount, `re_${i}`)),
  ];
  return fc.tuple(
    fc.shuffledSubarray(provider_events, { minLength: provider_events.length }),
    // Whether the operator matches the provider events with a payment at the end.
    fc.boolean(),
  );
});

Deno.test(`unmatched money equals the provider's at each point (seed ${SEED})`, () => {
  fc.assert(
    fc.property(Foreign, ([provider_events, is_matched]) => {
      const payment = paymentWith({ status: "processing", livemode: true });
      const books: Books = { payment, sums: {} };
      const booked = new Map<ProviderEvent, number>();
      let at_provider = 0;
      const balance = () =>
        Object.entries(books.sums).reduce(
          (sum, [name, amount]) => /processor|chargebacks/.test(name) ? sum - amount : sum,
          0,
        );
      const matchAll = () => {
        const waiting = handleAll([...booked.keys()], (one) => {
          const was = booked.get(one)!;
          const known = { ...one, subject_id: payment.id };
          const effect = applyToSubject(only(books.payment), known, was, context);
          if (effect.outcome === "wait") return "wait";
          assert.equal(effect.outcome, "applied", one.reference);
          booked.set(one, was + note(books, effect));
          assert.equal(balance(), at_provider);
          return "applied";
        });
        assert.deepEqual(waiting, []);
      };
      for (const one of provider_events) {
        at_provider += movedAtProvider(one);
        booked.set(one, note(books, applyUnmatched(stored(one), context)));
        assert.equal(booked.get(one), movedAtProvider(one));
        assert.equal(balance(), at_provider);
      }
      if (!is_matched) return;
      matchAll();
      assert.equal(books.sums["pac_1 unapplied"], 0);
      assert.equal(books.sums["pac_1 processor"], 0);
      for (const [each, amount] of booked) assert.equal(amount, movedAtProvider(each));
    }),
    { seed: SEED, numRuns: 500 },
  );
});

Deno.test("a booked provider event that changes nothing at a payment stays unmatched", () => {
  const completed = paymentWith({ status: "completed", livemode: true });
  const again = { ...event("authorize", "succeeded", 1000, "pi_2"), subject_id: completed.id };
  const effect = applyToSubject(only(completed), again, 1000, context);
  assert.ok(effect.outcome === "unmatched" && effect.change === null);
  assert.match(effect.exception!, /^it changes nothing at pay_/);
});
