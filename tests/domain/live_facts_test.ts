/** applyFact: every status with every fact, and the independence from the order of facts. */

import assert from "node:assert/strict";
import fc from "fast-check";
import { DISPUTE_STATUSES, PAYMENT_STATUSES } from "../../shared/core/vocabulary.ts";
import { objectOf } from "../../shared/domain/providers/effect.ts";
import { movedAtProvider } from "../../shared/domain/providers/moved_at_provider.ts";
import type { Fact, FactOp, FactState } from "../../shared/domain/providers/connector.ts";
import type { Dispute } from "../../shared/schema/dispute.ts";
import type { Payment, PaymentStatus } from "../../shared/schema/payment.ts";
import type { Refund } from "../../shared/schema/refund.ts";
import { applyFact, type Effect, endWait } from "../support/domain/applied_fact.ts";
import { NOW, paymentWith, requestContext } from "../support/domain/decided_change.ts";

const SEED = Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31);
const RUNS = 2000;
const AMOUNT = 1000;
const context = requestContext(true);

const TAKEN: readonly PaymentStatus[] = [
  "completed",
  "partially_refunded",
  "refunded",
  "chargeback",
];
const REFUNDED: Partial<Record<PaymentStatus, number>> = {
  partially_refunded: 300,
  refunded: 1000,
};

/** A live payment in a status, with the amounts that the status implies. */
function livePayment(status: PaymentStatus, members: Partial<Payment> = {}): Payment {
  return paymentWith({
    status,
    livemode: true,
    amount_captured: TAKEN.includes(status) ? AMOUNT : 0,
    amount_refunded: REFUNDED[status] ?? 0,
    amount_refunding: 0,
    amount_disputed: status === "chargeback" ? AMOUNT : 0,
    amount_received: null,
    return_url: null,
    capture: "automatic",
    capture_before: null,
    settlement: null,
    ...members,
  });
}

/** Makes a fact about the payment. */
function fact(op: FactOp, state: FactState, members: Partial<Fact> = {}): Fact {
  return {
    account_id: "pac_1",
    // Facts of one dispute are about one object.
    reference: `${op}:${state}`,
    op,
    state,
    subject_id: livePayment("pending").id,
    refund_id: null,
    provider_reference: "pi_1",
    amount_minor: AMOUNT,
    currency: "EUR",
    at: NOW,
    livemode: true,
    ...(state === "requires_action" && {
      next_action: { type: "authenticate", url: "https://bank.example/" },
    }),
    ...members,
  };
}

/**
 * An effect in one word: the new status, `=` for a movement that leaves the status, `-` for an
 * ignored fact, `?` for one that waits, `!` for a finding, `u` for money without a purpose.
 */
function wordOf(before: Payment, effect: Effect): string {
  switch (effect.outcome) {
    case "ignored":
      return "-";
    case "wait":
      return "?";
    case "finding":
      return "!";
    case "unmatched":
      return "m";
    case "applied": {
      if (effect.finding !== null) return "u";
      const { subject } = effect.change;
      const status = subject?.object === "payment" ? subject.status : "none";
      return status === before.status ? "=" : status;
    }
  }
}

const pending: Refund = {
  id: `re_${"3".repeat(26)}`,
  object: "refund",
  payment_id: livePayment("pending").id,
  payment_status: "completed",
  amount: 400,
  amount_minor: 400,
  currency: "EUR",
  status: "pending",
  failure_code: null,
  failure_message: null,
  reason: null,
  metadata: {},
  destination: null,
  livemode: true,
  created_at: NOW,
  updated_at: NOW,
};

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

/** The subject of a fact. If the payment is charged back, `disputed` belongs to the fact's object. */
function subjectOf(payment: Payment, { state }: Fact) {
  const dispute = payment.status === "chargeback" && state !== "disputed" ? disputed : null;
  return { payment, refund: null, dispute, deposit: null };
}

/** Each row: the fact, and its effect on each status in the order of PAYMENT_STATUSES. */
const TABLE: [name: string, fact: Fact, effects: string][] = [
  // Columns: pending requires_action processing authorized completed declined failed cancelled
  // partially_refunded refunded chargeback
  ["pending", fact("authorize", "pending"), "processing - - - - - - - - - -"],
  [
    "requires_action",
    fact("authorize", "requires_action"),
    "requires_action - requires_action - - - - - - - -",
  ],
  [
    "authorized",
    fact("authorize", "authorized"),
    "authorized authorized authorized - - - - - - - -",
  ],
  [
    "succeeded",
    fact("authorize", "succeeded"),
    "completed completed completed completed - u u u - - -",
  ],
  [
    "declined",
    fact("authorize", "declined"),
    "declined declined declined - - - - - - - -",
  ],
  ["failed", fact("authorize", "failed"), "failed failed failed failed - - - - - - -"],
  [
    "cancelled",
    fact("cancel", "cancelled"),
    "cancelled cancelled cancelled cancelled - - - - - - -",
  ],
  // A payer who has authenticated keeps the authorization.
  ["abandoned", fact("abandon", "failed"), "failed failed failed - - - - - - - -"],
  ["returned", fact("authorize", "returned"), "? ? ? ? failed = = = ! - -"],
  // A bank can take back money that is refunded, or held by another dispute.
  ["disputed", fact("dispute", "disputed"), "? ? ? ? chargeback = = = chargeback chargeback ="],
  ["dispute_won", fact("dispute", "dispute_won"), "? ? ? ? ? = = = ? ? completed"],
  ["dispute_lost", fact("dispute", "dispute_lost"), "? ? ? ? ? - - - ? ? ="],
  [
    "dispute_under_review",
    fact("dispute", "dispute_under_review"),
    "? ? ? ? ? - - - ? ? =",
  ],
  ["fee", fact("fee", "succeeded"), "= = = = = = = = = = ="],
  ["fee returned", fact("fee", "returned"), "= = = = = = = = = = ="],
  ["capture failed", fact("capture", "failed"), "- - - - - - - - - - -"],
  ["cancel failed", fact("cancel", "failed"), "- - - - - - - - - - -"],
  [
    "a refund by hand",
    fact("refund", "succeeded", { amount_minor: 100 }),
    "? ? ? ? partially_refunded = = = = ! =",
  ],
  [
    "a refund by hand of the rest",
    fact("refund", "succeeded", { amount_minor: 700 }),
    "? ? ? ? partially_refunded = = = refunded ! =",
  ],
  ["a pending refund by hand", fact("refund", "pending"), "- - - - - - - - - - -"],
  // Its money has not left.
  ["a failed refund by hand", fact("refund", "failed"), "- - - - - - - - - - -"],
  ["a refund by hand that came back", fact("refund", "returned"), "? ? ? ? ? = = = ? ? ?"],
];
for (const [name, reported, effects] of TABLE) {
  const words = effects.split(" ");
  assert.equal(words.length, PAYMENT_STATUSES.length, name);
  for (const [i, status] of PAYMENT_STATUSES.entries()) {
    Deno.test(`applyFact() ${name} of a ${status} payment: ${words[i]}`, () => {
      const payment = livePayment(status);
      assert.equal(
        wordOf(payment, applyFact(subjectOf(payment, reported), reported, context)),
        words[i],
      );
    });
  }
}

Deno.test("applyFact() no fact waits for a payment that is over", () => {
  for (const [name, reported] of TABLE) {
    for (const status of ["declined", "failed", "cancelled"] as const) {
      const returned = { amount_captured: AMOUNT, amount_refunded: 300 };
      for (const members of status === "failed" ? [{}, returned] : [{}]) {
        const payment = livePayment(status, members);
        const { outcome } = applyFact(subjectOf(payment, reported), reported, context);
        assert.notEqual(outcome, "wait", `${name} of a ${status} payment`);
      }
    }
  }
});

Deno.test("endWait() each fact that waits is a finding after a week, and its money is booked", () => {
  const week_ms = 7 * 24 * 3_600_000;
  for (const [name, reported] of TABLE) {
    for (const status of PAYMENT_STATUSES) {
      const effect = applyFact(subjectOf(livePayment(status), reported), reported, context);
      if (effect.outcome !== "wait") continue;
      const endAfter = (age_ms: number, booked_minor: number) => {
        const received_at = new Date(context.at_ms - age_ms).toISOString();
        const stored = { ...reported, booked_minor, received_at, is_elsewhere: false };
        return endWait(livePayment(status), stored, context);
      };
      assert.equal(endAfter(week_ms, 0), "wait", `${name} of a ${status} payment`);
      const ended = movedAtProvider(reported) === 0 ? "finding" : "unmatched";
      assert.equal(endAfter(week_ms + 1, 0), ended, `${name} of a ${status} payment`);
      assert.equal(endAfter(week_ms + 1, -1), "unmatched", `${name} of a ${status} payment`);
    }
  }
});

Deno.test("applyFact() money of a payment that is over goes through unapplied", () => {
  const MOVES: [reported: Fact, kind: string, booked: number][] = [
    [fact("authorize", "succeeded"), "unmatched", 1000],
    [fact("refund", "succeeded", { amount_minor: 100 }), "unmatched_reversal", -100],
    [fact("dispute", "disputed"), "unmatched_reversal", -1000],
    [fact("dispute", "dispute_won"), "unmatched", 1000],
    [fact("fee", "succeeded", { amount_minor: 40 }), "fee", -40],
  ];
  for (const [reported, kind, booked] of MOVES) {
    const payment = livePayment("declined");
    const effect = applyFact(subjectOf(payment, reported), reported, context);
    assert.ok(effect.outcome === "applied");
    assert.deepEqual(effect.change.ledger.map((movement) => movement.kind), [kind]);
    assert.equal(effect.change.booked_minor, booked);
    assert.equal(effect.change.payment, null);
  }
});

/** The effect of facts on a dispute, by its status. */
const DISPUTES: [state: FactState, effects: string][] = [
  ["disputed", "- - - -"],
  ["dispute_under_review", "under_review - - -"],
  ["dispute_won", "won won - won"],
  ["dispute_lost", "lost lost - -"],
];
for (const [state, effects] of DISPUTES) {
  for (const [i, status] of DISPUTE_STATUSES.entries()) {
    Deno.test(`applyFact() ${state} of a dispute that is ${status}`, () => {
      const payment = livePayment(status === "won" ? "completed" : "chargeback");
      const dispute = { ...disputed, status };
      const effect = applyFact(
        { payment, refund: null, deposit: null, dispute },
        fact("dispute", state),
        context,
      );
      const after = effect.outcome === "applied"
        ? JSON.parse(effect.change.disputes[0]!.body).status
        : "-";
      assert.equal(after, effects.split(" ")[i]);
    });
  }
}

Deno.test("applyFact() evidence that the provider has taken is kept, and submitted once", () => {
  const payment = livePayment("chargeback");
  for (const is_submitted of [false, true]) {
    const reported = fact("dispute_evidence", "succeeded", {
      dispute: { reason: "general", evidence_due_by: null, evidence: { text: "a", is_submitted } },
    });
    const effect = applyFact(
      { payment, refund: null, deposit: null, dispute: disputed },
      reported,
      context,
    );
    assert.ok(effect.outcome === "applied");
    assert.deepEqual(effect.change.events.map(({ type }) => type), ["dispute.updated"]);
    const { status, evidence } = JSON.parse(effect.change.disputes[0]!.body);
    assert.equal(status, is_submitted ? "under_review" : "needs_response");
    assert.deepEqual(evidence, { text: "a", submitted_at: is_submitted ? NOW : null });
    const lost = { ...disputed, status: "lost" as const };
    const late = applyFact(
      { payment, refund: null, deposit: null, dispute: lost },
      reported,
      context,
    );
    assert.equal(late.outcome, "ignored");
    const none = applyFact(
      { payment, refund: null, deposit: null, dispute: null },
      reported,
      context,
    );
    assert.equal(none.outcome, "finding");
  }
});

/** The effect on a payment's own refund of 400, by the refund's status. */
const REFUNDS: [state: FactState, members: Partial<Fact>, effects: string][] = [
  ["pending", {}, "- - -"],
  ["succeeded", {}, "partially_refunded - !"],
  ["succeeded", { amount_minor: 399 }, "! - !"],
  ["failed", {}, "= completed -"],
  ["cancelled", {}, "= completed -"],
  // The success that comes before brings the money that came back.
  ["returned", {}, "? completed !"],
  ["returned", { amount_minor: 399 }, "? ! !"],
];
for (const [state, members, effects] of REFUNDS) {
  for (const [i, status] of (["pending", "completed", "failed"] as const).entries()) {
    const amount_minor = members.amount_minor ?? 400;
    Deno.test(`applyFact() ${state} ${amount_minor} of a ${status} refund of 400`, () => {
      const payment = livePayment(status === "completed" ? "partially_refunded" : "completed", {
        amount_refunding: status === "pending" ? 400 : 0,
        amount_refunded: status === "completed" ? 400 : 0,
      });
      const refund = { ...pending, status };
      const reported = fact("refund", state, { refund_id: refund.id, amount_minor });
      const effect = applyFact(
        { payment, refund, dispute: null, deposit: null },
        reported,
        context,
      );
      assert.equal(wordOf(payment, effect), effects.split(" ")[i]);
    });
  }
}

const MISMATCHES: [name: string, members: Partial<Fact>, payment?: Partial<Payment>][] = [
  ["another amount", { amount_minor: 999 }],
  ["a higher amount with manual capture", { amount_minor: 1001 }, { capture: "manual" }],
  ["another currency", { currency: "USD" }],
  ["an object of the test mode", { livemode: false }],
];
for (const [name, members, payment_members] of MISMATCHES) {
  Deno.test(`applyFact() ${name} is a finding`, () => {
    const payment = livePayment("processing", payment_members);
    const reported = fact("authorize", "succeeded", members);
    assert.equal(applyFact(subjectOf(payment, reported), reported, context).outcome, "finding");
  });
}
Deno.test("applyFact() a dispute that is won with another amount is a finding", () => {
  const reported = fact("dispute", "dispute_won", { amount_minor: 999 });
  const payment = livePayment("chargeback");
  assert.equal(applyFact(subjectOf(payment, reported), reported, context).outcome, "finding");
});
Deno.test("applyFact() a part is captured of an authorization", () => {
  const payment = livePayment("authorized", { capture: "manual" });
  const reported = fact("capture", "succeeded", { amount_minor: 400 });
  const effect = applyFact(subjectOf(payment, reported), reported, context);
  assert.ok(effect.outcome === "applied");
  assert.equal(effect.change.booked_minor, 400);
});

/** The standing of a payment and its ledger after some facts. */
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

/** Applies facts as the worker does: each reference once, and waiting ones again after others. */
function applyAll(payment: Payment, facts: readonly Fact[]): Books {
  const books: Books = {
    payment,
    disputes: new Map(),
    refunds: new Map(),
    ledger: {},
    outcomes: new Map(),
    booked: 0,
  };
  let waiting: Fact[] = [...facts];
  for (let has_moved = true; has_moved;) {
    has_moved = false;
    const again: Fact[] = [];
    for (const next of waiting) {
      if (books.outcomes.has(next.reference)) continue;
      const dispute = books.disputes.get(objectOf(next)) ?? null;
      const refund = books.refunds.get(objectOf(next)) ?? null;
      const effect = applyFact(
        { payment: books.payment, refund, dispute, deposit: null },
        next,
        context,
      );
      if (effect.outcome === "wait") {
        again.push(next);
        continue;
      }
      has_moved = true;
      books.outcomes.set(next.reference, effect.outcome);
      if (effect.outcome !== "applied") continue;
      books.booked += effect.change.booked_minor;
      for (const { body } of effect.change.disputes) {
        books.disputes.set(objectOf(next), JSON.parse(body));
      }
      for (const { body } of effect.change.refunds) {
        books.refunds.set(objectOf(next), JSON.parse(body));
      }
      if (effect.change.payment) books.payment = effect.change.subject as Payment;
      for (const { debit_account, credit_account, amount_minor } of effect.change.ledger) {
        books.ledger[debit_account] = (books.ledger[debit_account] ?? 0) - amount_minor;
        books.ledger[credit_account] = (books.ledger[credit_account] ?? 0) + amount_minor;
      }
    }
    waiting = again;
  }
  return books;
}

const Refunds = fc.array(
  fc.record({ asked: fc.integer({ min: 1, max: 600 }), fails: fc.boolean() }),
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
  const facts: Fact[] = begins.map((state) => fact("authorize", state));
  if (end !== "succeeded") {
    return [...facts, fact(end === "cancelled" ? "cancel" : "authorize", end as FactState)];
  }
  facts.push(fact("authorize", "succeeded"));
  if (fee > 0) facts.push(fact("fee", "succeeded", { amount_minor: fee }));
  let left = AMOUNT;
  for (const [i, { asked, fails }] of refunds.entries()) {
    // A refund that fails is not counted as left again: its failure can come after the others.
    const amount_minor = Math.min(asked, left);
    if (amount_minor === 0) break;
    left -= amount_minor;
    const done = (state: FactState) =>
      facts.push(fact("refund", state, { amount_minor, reference: `re_${i}:${state}` }));
    done("succeeded");
    if (fails) done("returned");
  }
  for (const [i, { amount_minor, end }] of disputes.entries()) {
    const happens = (state: FactState) =>
      facts.push(fact("dispute", state, { amount_minor, reference: `du_${i}:${state}` }));
    happens("disputed");
    if (end === "open") continue;
    happens("dispute_under_review");
    happens(end === "won" ? "dispute_won" : "dispute_lost");
  }
  return facts;
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
    findings: [...outcomes.values()].filter((outcome) => outcome === "finding").length,
    open: outcomes.size,
  };
}

Deno.test(`facts in any order, and repeated, lead to the same books (seed ${SEED})`, () => {
  const Shuffled = Life.chain((facts) =>
    fc.tuple(
      fc.constant(facts),
      fc.array(fc.constantFrom(...facts), { maxLength: 4 }).chain((copies) =>
        fc.shuffledSubarray([...facts, ...copies], { minLength: facts.length + copies.length })
      ),
    )
  );
  fc.assert(
    fc.property(Shuffled, ([facts, shuffled]) => {
      const payment = livePayment("pending");
      const expected = endOf(applyAll(payment, facts));
      assert.equal(expected.findings, 0);
      assert.equal(expected.booked, facts.reduce((sum, one) => sum + movedAtProvider(one), 0));
      assert.equal(expected.open, facts.length);
      assert.deepEqual(endOf(applyAll(payment, shuffled)), expected);
    }),
    { seed: SEED, numRuns: RUNS },
  );
});
