/**
 * applyProviderEvent: every status with every provider event, and the independence from the order
 * of provider events.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { DISPUTE_STATUSES, PAYMENT_STATUSES } from "../../shared/core/vocabulary.ts";
import { movedAtProvider } from "../../shared/domain/providers/moved_at_provider.ts";
import type {
  ProviderEvent,
  ProviderEventOp,
  ProviderEventState,
} from "../../shared/domain/providers/connector.ts";
import type { Parts } from "../../shared/domain/providers/effect.ts";
import type { Dispute } from "../../shared/schema/dispute.ts";
import type { Payment } from "../../shared/schema/payment.ts";
import type { PaymentStatus } from "../../shared/schema/statuses.ts";
import type { PayeeCheck } from "../../shared/schema/bank_account.ts";
import type { Refund } from "../../shared/schema/refund.ts";
import {
  applyProviderEvent,
  applyToSubject,
  book,
  type Effect,
  endWait,
  handleAll,
  providerEvent,
} from "../support/domain/applied_event.ts";
import {
  NOW,
  paymentWith,
  refundWith,
  requestContext,
  transferWith,
} from "../support/domain/decided_change.ts";

const SEED = Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31);
const RUNS = 2000;
const AMOUNT = 1000;
const context = requestContext(true);

const REFUNDED: Partial<Record<PaymentStatus, number>> = {
  partially_refunded: 300,
  refunded: 1000,
};

/** A live payment in a status, with the amounts that the status implies. */
function livePayment(status: PaymentStatus, members: Partial<Payment> = {}): Payment {
  return paymentWith({
    status,
    livemode: true,
    amount_refunded: REFUNDED[status] ?? 0,
    amount_disputed: status === "chargeback" ? AMOUNT : 0,
    settlement: null,
    ...members,
  });
}

/** Makes a provider event about the payment. */
function event(
  op: ProviderEventOp,
  state: ProviderEventState,
  members: Partial<ProviderEvent> = {},
): ProviderEvent {
  return providerEvent(op, state, {
    // Provider events of one dispute are about one object.
    object_id: members.reference?.split(":")[0] ?? op,
    ...(state === "requires_action" && {
      next_action: { type: "authenticate", url: "https://bank.example/" },
    }),
    ...members,
  });
}

/**
 * An effect in one word: the new status, `=` for a movement that leaves the status, `-` for an
 * ignored provider event, `?` for one that waits, `!` for an exception, `u` for money without a
 * purpose.
 */
function wordOf(before: Payment, effect: Effect): string {
  switch (effect.outcome) {
    case "ignored":
      return "-";
    case "wait":
      return "?";
    case "exception":
      return "!";
    case "unmatched":
      return "m";
    case "applied": {
      if (effect.exception !== null) return "u";
      const { subject } = effect.change;
      const status = subject?.object === "payment" ? subject.status : "none";
      return status === before.status ? "=" : status;
    }
  }
}

const pending = refundWith({ amount_minor: 400, livemode: true });

/** The open dispute of a payment that is charged back. */
const disputed: Dispute = {
  id: `dp_${"4".repeat(26)}`,
  object: "dispute",
  payment_id: livePayment("pending").id,
  amount_minor: AMOUNT,
  currency: "EUR",
  reason: "general",
  status: "needs_response",
  evidence: null,
  evidence_due_by: null,
  created_at: NOW,
  closed_at: null,
};

/**
 * Applies a provider event. If the payment is charged back, `disputed` belongs to the provider
 * event's object.
 */
function apply(payment: Payment, reported: ProviderEvent, parts: Partial<Parts> = {}): Effect {
  const dispute = payment.status === "chargeback" && reported.state !== "disputed"
    ? disputed
    : null;
  return applyProviderEvent(payment, reported, { dispute, ...parts });
}

/** Each row: the provider event, and its effect on each status in the order of PAYMENT_STATUSES. */
const TABLE: [event: ProviderEvent, effects: string][] = [
  // Columns: pending requires_action processing authorized completed declined failed cancelled
  // partially_refunded refunded chargeback
  [event("authorize", "pending"), "processing - - - - - - - - - -"],
  [event("authorize", "requires_action"), "requires_action - requires_action - - - - - - - -"],
  [event("authorize", "authorized"), "authorized authorized authorized - - - - - - - -"],
  [event("authorize", "succeeded"), "completed completed completed completed - u u u - - -"],
  // An issuer that has authorized a payment does not decline it.
  [event("authorize", "declined"), "declined declined declined - - - - - - - -"],
  [event("authorize", "failed"), "failed failed failed failed - - - - - - -"],
  [event("cancel", "cancelled"), "cancelled cancelled cancelled cancelled - - - - - - -"],
  // A payer who has authenticated keeps the authorization.
  [event("abandon", "failed"), "failed failed failed - - - - - - - -"],
  // The bank takes the whole amount, refunded or not.
  [event("authorize", "returned"), "? ? ? ? failed = = = failed failed -"],
  [event("authorize", "returned", { amount_minor: 700 }), "? ? ? ? ! = = = ! ! -"],
  // A bank can take back money that is refunded, or held by another dispute.
  [event("dispute", "disputed"), "? ? ? ? chargeback = = = chargeback chargeback ="],
  [event("dispute", "dispute_won"), "? ? ? ? ? = = = ? ? completed"],
  [event("dispute", "dispute_lost"), "? ? ? ? ? - - - ? ? ="],
  [event("dispute", "dispute_under_review"), "? ? ? ? ? - - - ? ? ="],
  [event("fee", "succeeded"), "= = = = = = = = = = ="],
  [event("fee", "returned"), "= = = = = = = = = = ="],
  [event("capture", "failed"), "- - - - - - - - - - -"],
  [event("cancel", "failed"), "- - - - - - - - - - -"],
  // Refunds by hand.
  [event("refund", "succeeded", { amount_minor: 100 }), "? ? ? ? partially_refunded = = = = ! ="],
  [
    event("refund", "succeeded", { amount_minor: 700 }),
    "? ? ? ? partially_refunded = = = refunded ! =",
  ],
  [event("refund", "pending"), "- - - - - - - - - - -"],
  // Its money has not left.
  [event("refund", "failed"), "- - - - - - - - - - -"],
  [event("refund", "returned"), "? ? ? ? ? = = = ? ? ?"],
];
for (const [reported, effects] of TABLE) {
  const words = effects.split(" ");
  const name = `${reported.op} ${reported.state} ${reported.amount_minor}`;
  assert.equal(words.length, PAYMENT_STATUSES.length, `${name}: a column for each status`);
  for (const [i, status] of PAYMENT_STATUSES.entries()) {
    Deno.test(`applyProviderEvent() ${name} of a ${status} payment: ${words[i]}`, () => {
      const payment = livePayment(status);
      assert.equal(wordOf(payment, apply(payment, reported)), words[i]);
    });
  }
}

Deno.test("applyProviderEvent() moves a sandbox payment as it moves a live one", () => {
  const shown = (reported: ProviderEvent, status: PaymentStatus, livemode: boolean) => {
    const payment = livePayment(status, { livemode });
    const effect = apply(payment, { ...reported, livemode });
    if (effect.outcome !== "applied") return effect;
    const { subject, events, ledger } = effect.change;
    return {
      ...effect,
      change: null,
      subject: { ...subject, livemode },
      events: events.map(({ type, sequence }) => `${sequence} ${type}`),
      ledger: ledger.map(({ kind, amount_minor }) => `${kind} ${amount_minor}`),
    };
  };
  for (const [reported] of TABLE) {
    for (const status of PAYMENT_STATUSES) {
      const in_sandbox = shown(reported, status, false);
      const live = { ...shown(reported, status, true) };
      if ("subject" in live) live.subject = { ...live.subject, livemode: false } as never;
      assert.deepEqual(in_sandbox, live, `${reported.reference} of a ${status} payment`);
    }
  }
});

Deno.test("applyProviderEvent() no provider event waits for a payment that was returned", () => {
  for (const [reported] of TABLE) {
    const returned = livePayment("failed", { amount_captured: AMOUNT, amount_refunded: 300 });
    assert.notEqual(apply(returned, reported).outcome, "wait", reported.reference);
  }
});

Deno.test("endWait() each provider event that waits is an exception after a week, and its money is booked", () => {
  const week_ms = 7 * 24 * 3_600_000;
  for (const [reported] of TABLE) {
    for (const status of PAYMENT_STATUSES) {
      if (apply(livePayment(status), reported).outcome !== "wait") continue;
      const endAfter = (age_ms: number, booked_minor: number) => {
        const received_at = new Date(context.at_ms - age_ms).toISOString();
        const stored = { ...reported, booked_minor, received_at, is_elsewhere: false };
        return endWait(livePayment(status), stored, context);
      };
      const ended = movedAtProvider(reported) === 0 ? "exception" : "unmatched";
      assert.deepEqual(
        [endAfter(week_ms, 0), endAfter(week_ms + 1, 0), endAfter(week_ms + 1, -1)],
        ["wait", ended, "unmatched"],
        `${reported.reference} of a ${status} payment`,
      );
    }
  }
});

Deno.test("applyProviderEvent() money of a payment that is over goes through unapplied", () => {
  const MOVES: [reported: ProviderEvent, kind: string, booked: number][] = [
    [event("authorize", "succeeded"), "unmatched", 1000],
    [event("refund", "succeeded", { amount_minor: 100 }), "unmatched_reversal", -100],
    [event("dispute", "disputed"), "unmatched_reversal", -1000],
    [event("dispute", "dispute_won"), "unmatched", 1000],
    [event("fee", "succeeded", { amount_minor: 40 }), "fee", -40],
  ];
  for (const [reported, kind, booked] of MOVES) {
    const payment = livePayment("declined");
    const effect = apply(payment, reported);
    assert.ok(effect.outcome === "applied");
    assert.deepEqual(effect.change.ledger.map((movement) => movement.kind), [kind]);
    assert.equal(effect.change.booked_minor, booked);
    assert.equal(effect.change.payment, null);
  }
});

/** The effect of provider events on a dispute, by its status. */
const DISPUTES: [state: ProviderEventState, effects: string][] = [
  ["disputed", "- - - -"],
  ["dispute_under_review", "under_review - - -"],
  ["dispute_won", "won won - won"],
  ["dispute_lost", "lost lost - -"],
];
for (const [state, effects] of DISPUTES) {
  for (const [i, status] of DISPUTE_STATUSES.entries()) {
    Deno.test(`applyProviderEvent() ${state} of a dispute that is ${status}`, () => {
      const payment = livePayment(status === "won" ? "completed" : "chargeback");
      const dispute = { ...disputed, status };
      const effect = apply(payment, event("dispute", state), { dispute });
      const after = effect.outcome === "applied"
        ? JSON.parse(effect.change.disputes[0]!.body).status
        : "-";
      assert.equal(after, effects.split(" ")[i]);
    });
  }
}

Deno.test("applyProviderEvent() evidence that the provider has taken is kept, and submitted once", () => {
  const payment = livePayment("chargeback");
  for (const is_submitted of [false, true]) {
    const reported = event("dispute_evidence", "succeeded", {
      dispute: { reason: "general", evidence_due_by: null, evidence: { text: "a", is_submitted } },
    });
    const effect = apply(payment, reported);
    assert.ok(effect.outcome === "applied");
    assert.deepEqual(effect.change.events.map(({ type }) => type), ["dispute.updated"]);
    const { status, evidence } = JSON.parse(effect.change.disputes[0]!.body);
    assert.equal(status, is_submitted ? "under_review" : "needs_response");
    assert.deepEqual(evidence, { text: "a", submitted_at: is_submitted ? NOW : null });
    const lost = { ...disputed, status: "lost" as const };
    const late = apply(payment, reported, { dispute: lost });
    assert.equal(late.outcome, "ignored");
    const none = apply(payment, reported, { dispute: null });
    assert.equal(none.outcome, "exception");
  }
});

/** The effect on a payment's own refund of 400, by the refund's status. */
const REFUNDS: [state: ProviderEventState, members: Partial<ProviderEvent>, effects: string][] = [
  ["pending", {}, "- - -"],
  ["succeeded", {}, "partially_refunded - !"],
  ["succeeded", { amount_minor: 399 }, "! - !"],
  ["failed", {}, "= completed -"],
  // Its money has left before, and comes back by an event of its own.
  ["failed", { failure_code: "provider_refused" }, "= - -"],
  ["cancelled", {}, "= completed -"],
  // The success that comes before brings the money that came back.
  ["returned", {}, "? completed !"],
  ["returned", { amount_minor: 399 }, "? ! !"],
];
for (const [state, members, effects] of REFUNDS) {
  for (const [i, status] of (["pending", "completed", "failed"] as const).entries()) {
    const amount_minor = members.amount_minor ?? 400;
    const reason = members.failure_code ?? "";
    Deno.test(`applyProviderEvent() ${state} ${amount_minor} ${reason} of a ${status} refund`, () => {
      const payment = livePayment(status === "completed" ? "partially_refunded" : "completed", {
        amount_refunding: status === "pending" ? 400 : 0,
        amount_refunded: status === "completed" ? 400 : 0,
      });
      const refund = { ...pending, status };
      const reported = event("refund", state, { refund_id: refund.id, amount_minor, ...members });
      const effect = apply(payment, reported, { refund, dispute: null });
      assert.equal(wordOf(payment, effect), effects.split(" ")[i]);
    });
  }
}

const payout = transferWith({ amount_minor: AMOUNT });

/** [the result of the bank before, the next one, the effect by the status of the payout] */
const CHECKS: [before: PayeeCheck | null, told: PayeeCheck, effects: Record<string, string>][] = [
  [null, "no_match", { pending: "updated", completed: "-", failed: "-" }],
  ["pending", "match", { pending: "updated", completed: "-", failed: "-" }],
  ["close_match", "unavailable", { pending: "updated" }],
  ["no_match", "no_match", { pending: "-", completed: "-" }],
];
for (const [payee_check, told, effects] of CHECKS) {
  for (const [status, expected] of Object.entries(effects)) {
    Deno.test(`applyEvent() ${told} after ${payee_check} of a ${status} payout: ${expected}`, () => {
      const members = { status: status as Refund["status"], payee_check };
      const reported = event("payee_check", "succeeded", { bank: { payee_check: told } });
      const refund = { ...pending, ...members };
      const payment = livePayment("completed", { amount_refunding: 400 });
      const parts = { refund: null, dispute: null, deposit: null };
      const applied = [
        applyToSubject({ ...parts, subject: { ...payout, ...members } }, reported, 0, context),
        applyToSubject({ ...parts, subject: payment, refund }, reported, 0, context),
      ];
      for (const [i, effect] of applied.entries()) {
        if (effect.outcome !== "applied") {
          assert.deepEqual([effect.outcome, expected], ["ignored", "-"]);
          continue;
        }
        const { events, ledger, subject, refund_body } = effect.change;
        const shown = [subject, JSON.parse(refund_body ?? "null")][i];
        assert.deepEqual(events.map(({ type }) => type), [
          `${["transfer", "refund"][i]}.${expected}`,
        ]);
        assert.deepEqual([shown.status, shown.payee_check, ledger], [status, told, []]);
      }
    });
  }
}

/** An event that does not fit its payment. */
const MISMATCHES: [status: PaymentStatus, reported: ProviderEvent, payment?: Partial<Payment>][] = [
  ["processing", event("authorize", "succeeded", { amount_minor: 999 })],
  ["processing", event("authorize", "succeeded", { amount_minor: 1001 }), { capture: "manual" }],
  ["processing", event("authorize", "succeeded", { currency: "USD" })],
  ["processing", event("authorize", "succeeded", { livemode: false })],
  ["chargeback", event("dispute", "dispute_won", { amount_minor: 999 })],
];
Deno.test("applyProviderEvent() another amount, currency or mode is an exception", () => {
  for (const [status, reported, members] of MISMATCHES) {
    const { outcome } = apply(livePayment(status, members), reported);
    assert.equal(outcome, "exception", JSON.stringify(reported));
  }
});
Deno.test("applyProviderEvent() a part is captured of an authorization", () => {
  const payment = livePayment("authorized", { capture: "manual" });
  const reported = event("capture", "succeeded", { amount_minor: 400 });
  const effect = apply(payment, reported);
  assert.ok(effect.outcome === "applied");
  assert.equal(effect.change.booked_minor, 400);
});

/** The standing of a payment and its ledger after some provider events. */
interface Books {
  payment: Payment;
  /** By the provider's id. */
  disputes: Map<string, Dispute>;
  refunds: Map<string, Refund>;
  ledger: Record<string, number>;
  outcomes: Map<string, string>;
  /** The signed change of the balance at the provider. */
  booked: number;
}

/** Applies provider events, each reference once. */
function applyAll(payment: Payment, provider_events: readonly ProviderEvent[]): Books {
  const books: Books = {
    payment,
    disputes: new Map(),
    refunds: new Map(),
    ledger: {},
    outcomes: new Map(),
    booked: 0,
  };
  handleAll(provider_events, (next) => {
    if (books.outcomes.has(next.reference)) return "ignored";
    const dispute = books.disputes.get(next.object_id) ?? null;
    const refund = books.refunds.get(next.object_id) ?? null;
    const effect = apply(books.payment, next, { refund, dispute });
    if (effect.outcome !== "wait") books.outcomes.set(next.reference, effect.outcome);
    if (effect.outcome !== "applied") return effect.outcome;
    const { change } = effect;
    books.booked += change.booked_minor;
    for (const { body } of change.disputes) books.disputes.set(next.object_id, JSON.parse(body));
    for (const { body } of change.refunds) books.refunds.set(next.object_id, JSON.parse(body));
    if (change.payment) books.payment = change.subject as Payment;
    book(books.ledger, change.ledger);
    return "applied";
  });
  return books;
}

const Refunds = fc.array(
  fc.record({ requested: fc.integer({ min: 1, max: 600 }), fails: fc.boolean() }),
  { maxLength: 3 },
);
/** Each takes some of the captured money, whatever refunds and other disputes have taken. */
const Disputes = fc.array(
  fc.record({
    amount_minor: fc.integer({ min: 1, max: AMOUNT }),
    end: fc.constantFrom("open", "lost", "won"),
  }),
  { maxLength: 2 },
);

/** The life of a payment at the provider, in order. */
const Life = fc.record({
  begins: fc.subarray(["pending", "requires_action"] as const),
  end: fc.constantFrom("declined", "failed", "cancelled", "succeeded", "succeeded", "succeeded"),
  fee: fc.integer({ min: 0, max: 50 }),
  refunds: Refunds,
  disputes: Disputes,
}).map(({ begins, end, fee, refunds, disputes }) => {
  const provider_events: ProviderEvent[] = begins.map((state) => event("authorize", state));
  if (end !== "succeeded") {
    return [
      ...provider_events,
      event(end === "cancelled" ? "cancel" : "authorize", end as ProviderEventState),
    ];
  }
  provider_events.push(event("authorize", "succeeded"));
  if (fee > 0) provider_events.push(event("fee", "succeeded", { amount_minor: fee }));
  let left = AMOUNT;
  for (const [i, { requested, fails }] of refunds.entries()) {
    // A refund that fails is not counted as left again: its failure can come after the others.
    const amount_minor = Math.min(requested, left);
    if (amount_minor === 0) break;
    left -= amount_minor;
    const done = (state: ProviderEventState) =>
      provider_events.push(event("refund", state, { amount_minor, reference: `re_${i}:${state}` }));
    done("succeeded");
    if (fails) done("returned");
  }
  for (const [i, { amount_minor, end }] of disputes.entries()) {
    const happens = (state: ProviderEventState) =>
      provider_events.push(
        event("dispute", state, { amount_minor, reference: `du_${i}:${state}` }),
      );
    happens("disputed");
    if (end === "open") continue;
    happens("dispute_under_review");
    happens(end === "won" ? "dispute_won" : "dispute_lost");
  }
  return provider_events;
});

/** The members of the end that count, without times and sequence. */
function endOf({ payment, disputes, refunds, ledger, outcomes, booked }: Books) {
  const { status, amount_captured, amount_refunded, amount_refunding, amount_disputed } = payment;
  const accounts = Object.entries(ledger).filter(([, sum]) => sum !== 0).sort();
  return {
    ...{ status, amount_captured, amount_refunded, amount_refunding, amount_disputed },
    disputes: [...disputes].map(([id, { status, amount_minor }]) => [id, status, amount_minor])
      .sort(),
    refunds: [...refunds].map(([id, { status, amount_minor }]) => [id, status, amount_minor])
      .sort(),
    booked,
    accounts,
    exceptions: [...outcomes.values()].filter((outcome) => outcome === "exception").length,
    open: outcomes.size,
  };
}

Deno.test(`provider events in any order, and repeated, lead to the same books (seed ${SEED})`, () => {
  const Shuffled = Life.chain((provider_events) =>
    fc.tuple(
      fc.constant(provider_events),
      fc.array(fc.constantFrom(...provider_events), { maxLength: 4 }).chain((copies) =>
        fc.shuffledSubarray([...provider_events, ...copies], {
          minLength: provider_events.length + copies.length,
        })
      ),
    )
  );
  fc.assert(
    fc.property(Shuffled, ([provider_events, shuffled]) => {
      const payment = livePayment("pending");
      const expected = endOf(applyAll(payment, provider_events));
      assert.equal(expected.exceptions, 0);
      assert.equal(
        expected.booked,
        provider_events.reduce((sum, one) => sum + movedAtProvider(one), 0),
      );
      assert.equal(expected.open, provider_events.length);
      assert.deepEqual(endOf(applyAll(payment, shuffled)), expected);
    }),
    { seed: SEED, numRuns: RUNS },
  );
});
