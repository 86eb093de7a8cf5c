/**
 * Random moves of one payment by the pure rules, compared with independent bookkeeping. Money in
 * equals money out plus money held, `sequence` counts every event, and a final status stays, except
 * that a refund which fails later gives its money back.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { ApiError } from "../../shared/core/errors.ts";
import { CAPTURE_METHODS, METHOD_KINDS, PAYMENT_STATUSES } from "../../shared/core/vocabulary.ts";
import { Payment, type PaymentStatus } from "../../shared/schema/payment.ts";
import { Refund } from "../../shared/schema/refund.ts";
import type { Change } from "../../shared/store/commit_rows.ts";
import { decideAdvanceRefund, decideAuthenticate } from "../../shared/sandbox/advance.ts";
import {
  advanceTo,
  decideCancel,
  decideCapture,
  decideRefund,
  paymentWith,
  requestContext,
} from "../support/domain/decided_change.ts";

const SEED = Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31);
const RUNS = 2000;
const FINAL: ReadonlySet<string> = new Set(["declined", "failed", "cancelled"]);
/** Statuses that need money of the payer. */
const TAKEN: ReadonlySet<string> = new Set(["completed", "partially_refunded", "chargeback"]);

/** A payment with its refunds, by id. */
interface Subject {
  payment: Payment;
  refunds: Map<string, Refund>;
}
type Move = (subject: Subject) => Change | null;
const context = requestContext();
const Amount = fc.option(fc.integer({ min: 1, max: 30 }), { nil: undefined });

const advance = (to: PaymentStatus): Move => ({ payment }) => advanceTo(payment, to, context);
/** First moves that bring most payments to a status with many moves. */
const FIRST: readonly (readonly Move[])[] = [
  [],
  [advance("completed")],
  [advance("authorized"), advance("completed")],
];

const Moves = fc.array(
  fc.oneof(
    fc.constant<Move>(({ payment }) => decideCancel(payment, context)),
    fc.constantFrom("success", "failure").map((result): Move => ({ payment }) =>
      decideAuthenticate(payment, result as "success", context)
    ),
    Amount.map((amount): Move => ({ payment }) => decideCapture(payment, { amount }, context)),
    {
      weight: 2,
      arbitrary: Amount.map((amount): Move => ({ payment }) =>
        decideRefund(payment, amount, { amount }, context)
      ),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(fc.nat(3), fc.constantFrom("completed", "failed")).map(
        ([place, to]): Move => ({ payment, refunds }) => {
          const refund = [...refunds.values()].at(-1 - place);
          return refund
            ? decideAdvanceRefund(payment, JSON.stringify(refund), to as "failed", context)
            : null;
        },
      ),
    },
    {
      weight: 4,
      arbitrary: fc.constantFrom(...PAYMENT_STATUSES).map(advance),
    },
  ),
  { maxLength: 30, size: "max" },
);
const Start = fc.record({
  amount_minor: fc.integer({ min: 1, max: 40 }),
  method_kind: fc.constantFrom(...METHOD_KINDS),
  capture: fc.constantFrom(...CAPTURE_METHODS),
  settlement: fc.constantFrom("instant", "manual"),
});
const First = fc.constantFrom(...FIRST);

Deno.test(`random moves of a payment keep its books in order (seed ${SEED})`, () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(Start, First, Moves, (start, first, moves) => {
      let subject: Subject = {
        payment: paymentWith({ ...start as Partial<Payment>, sequence: 1 }),
        refunds: new Map(),
      };
      const balances = new Map<string, number>();
      for (const move of [...first, ...moves]) {
        const next = attempt(move, subject, balances);
        if (!next) continue;
        const { status } = subject.payment;
        // The refunds of a payment that was returned still complete or fail.
        assert.ok(!FINAL.has(status) || status === next.payment.status, `${status} is final`);
        const fails = assertRefunds(subject, next);
        assert.ok(status !== "refunded" || fails, "refunded is final");
        seen.add(`${subject.payment.status} → ${next.payment.status}`);
        subject = next;
        check(subject, balances);
      }
    }),
    { numRuns: RUNS, seed: SEED },
  );
  assert.deepEqual(HARD.filter((move) => !seen.has(move)), [], "not reached");
  const reached = PAYMENT_STATUSES.filter((status) => status !== "pending");
  const after = new Set([...seen].map((move) => move.split(" → ")[1]));
  assert.deepEqual([...after].sort(), reached.toSorted(), "every status was reached");
});

/** Moves that need several steps. The run must reach them. */
const HARD = [
  "authorized → completed",
  "authorized → cancelled",
  "completed → failed",
  "partially_refunded → failed",
  "partially_refunded → partially_refunded",
  "chargeback → chargeback",
  "chargeback → completed",
  "chargeback → partially_refunded",
  "refunded → completed",
  "refunded → partially_refunded",
];

/** Makes a move if it is legal. Returns the subject after it and books its money. */
function attempt(move: Move, subject: Subject, balances: Map<string, number>): Subject | null {
  const { payment } = subject;
  let change: Change | null;
  try {
    change = move(subject);
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    assert.ok(["invalid_state", "invalid_parameter"].includes(error.code), error.code);
    return null;
  }
  if (!change?.payment) {
    assert.deepEqual(change?.events ?? [], []);
    return null;
  }
  const sequences = change.events.map(({ sequence }) => sequence);
  assert.deepEqual(sequences, sequences.map((_, i) => payment.sequence + 1 + i));
  for (const { debit_account, credit_account, amount_minor, currency } of change.ledger) {
    assert.equal(currency, payment.currency);
    assert.ok(Number.isInteger(amount_minor) && amount_minor > 0);
    balances.set(debit_account, (balances.get(debit_account) ?? 0) + amount_minor);
    balances.set(credit_account, (balances.get(credit_account) ?? 0) - amount_minor);
  }
  const { body, ...row } = change.payment;
  const next = Payment.parse(JSON.parse(body)) as Payment;
  assert.equal(next.sequence, sequences.at(-1));
  const taken = next.amount_minor - (row.amount_released ?? 0);
  assert.equal(next.amount_captured, next.amount_captured === 0 ? 0 : taken);
  const refunds = new Map(subject.refunds);
  for (const { id, status, body } of change.refunds) {
    const refund = Refund.parse(JSON.parse(body)) as Refund;
    assert.deepEqual([refund.id, refund.status], [id, status]);
    refunds.set(id, refund);
  }
  return { payment: next, refunds };
}

/** A refund that has ended stays as it is, but a completed one can fail. Reports whether one did. */
function assertRefunds(before: Subject, after: Subject): boolean {
  let fails = false;
  for (const [id, refund] of before.refunds) {
    if (refund.status === "pending") continue;
    const now = after.refunds.get(id)!;
    if (refund.status === "completed" && now.status === "failed") fails = true;
    else assert.deepEqual(now, refund);
  }
  return fails;
}

/** Asserts the sums of the refunds and the balances that a payment must have by its status. */
function check({ payment, refunds }: Subject, balances: Map<string, number>): void {
  const { status, amount_captured, amount_refunded, amount_refunding, amount_disputed } = payment;
  const sum = (state: Refund["status"]) =>
    [...refunds.values()].filter(({ status }) => status === state)
      .reduce((total, { amount_minor }) => total + amount_minor, 0);
  assert.deepEqual([amount_refunded, amount_refunding], [sum("completed"), sum("pending")]);
  assert.ok(amount_refunded + amount_refunding + amount_disputed <= payment.amount_minor);

  const rest = amount_captured - amount_refunded;
  // After a return the whole amount is gone, and its refunds too.
  const held = TAKEN.has(status) ? rest : status === "failed" ? 0 - amount_refunded : 0;
  const shown = (account: string) => balances.get(account) ?? 0;
  assert.equal(0 - shown("available"), held - amount_disputed, `available when ${status}`);
  assert.equal(0 - shown("chargebacks"), amount_disputed, `charged back when ${status}`);
  assert.equal(shown("processor"), held, `held when ${status}`);
  assert.equal(status === "chargeback", amount_disputed > 0);
  if (status === "failed") return;
  assert.ok(held - amount_disputed >= amount_refunding, "the money of pending refunds is there");
  assert.equal(status === "refunded", amount_captured > 0 && rest === 0);
  if (status === "partially_refunded") assert.ok(amount_refunded > 0 && rest > 0);
  if (status === "completed") assert.equal(amount_refunded, 0);
}
