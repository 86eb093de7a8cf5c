/**
 * Random moves of one payment by the pure rules, compared with independent bookkeeping. Money in
 * equals money out plus money held, `sequence` counts every event, and a final status stays.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { ApiError } from "../../shared/core/errors.ts";
import {
  decideAdvance,
  decideAuthenticate,
  decideCancel,
} from "../../shared/domain/payments/move_payment.ts";
import { decideRefund } from "../../shared/domain/payments/refund_payment.ts";
import { METHOD_KINDS, PAYMENT_STATUSES } from "../../shared/core/vocabulary.ts";
import { Payment, type PaymentStatus } from "../../shared/schema/payment.ts";
import type { Change } from "../../shared/store/commit_rows.ts";
import { BASE_URL, paymentWith, requestContext } from "../support/domain/decided_change.ts";

const SEED = Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31);
const RUNS = 2000;
const FINAL: ReadonlySet<string> = new Set([
  "declined",
  "failed",
  "cancelled",
  "refunded",
  "chargeback",
]);

type Move = (payment: Payment) => Change | null;
const context = requestContext();

const Moves = fc.array(
  fc.oneof(
    fc.constant<Move>((payment) => decideCancel(payment, context)),
    fc.constantFrom("success", "failure").map((result): Move => (payment) =>
      decideAuthenticate(payment, result as "success", context)
    ),
    fc.option(fc.integer({ min: 1, max: 30 }), { nil: undefined }).map(
      (amount): Move => (payment) => decideRefund(payment, amount, { amount }, context),
    ),
    {
      weight: 3,
      arbitrary: fc.constantFrom(...PAYMENT_STATUSES).map((to: PaymentStatus): Move => (payment) =>
        decideAdvance(payment, to, BASE_URL, context)
      ),
    },
  ),
  { maxLength: 20 },
);
const Start = fc.record({
  amount_minor: fc.integer({ min: 1, max: 40 }),
  method_kind: fc.constantFrom(...METHOD_KINDS),
});

Deno.test(`random moves of a payment keep its books in order (seed ${SEED})`, () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(Start, Moves, (start, moves) => {
      let payment = paymentWith({ ...start, amount: start.amount_minor, sequence: 1 });
      const balances = new Map<string, number>();
      for (const move of moves) {
        const next = attempt(move, payment, balances);
        if (!next) continue;
        assert.ok(!FINAL.has(payment.status), `${payment.status} is final`);
        payment = next;
        seen.add(payment.status);
        check(payment, balances);
      }
    }),
    { numRuns: RUNS, seed: SEED },
  );
  const reached = PAYMENT_STATUSES.filter((status) => status !== "pending");
  assert.deepEqual([...seen].sort(), reached.toSorted(), "every status was reached");
});

/** Makes a move if it is legal. Returns the payment after it and books its money. */
function attempt(move: Move, payment: Payment, balances: Map<string, number>): Payment | null {
  let change: Change | null;
  try {
    change = move(payment);
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    assert.ok(["invalid_state", "invalid_parameter"].includes(error.code), error.code);
    return null;
  }
  if (!change) return null;
  const sequences = change.events.map(({ sequence }) => sequence);
  assert.deepEqual(sequences, sequences.map((_, i) => payment.sequence + 1 + i));
  for (const { debit_account, credit_account, amount_minor, currency } of change.ledger) {
    assert.equal(currency, payment.currency);
    assert.ok(Number.isInteger(amount_minor) && amount_minor > 0);
    balances.set(debit_account, (balances.get(debit_account) ?? 0) + amount_minor);
    balances.set(credit_account, (balances.get(credit_account) ?? 0) - amount_minor);
  }
  const next = Payment.parse(JSON.parse(change.payment!.body));
  assert.equal(next.sequence, sequences.at(-1));
  const given = change.refunds.reduce((sum, refund) => sum + refund.amount_minor, 0);
  assert.equal(next.amount_refunded, payment.amount_refunded + given);
  return next;
}

/** Asserts the balances that a payment must have by its status. */
function check(payment: Payment, balances: Map<string, number>): void {
  const { status, amount_minor, amount_refunded } = payment;
  const rest = amount_minor - amount_refunded;
  const available = ["completed", "partially_refunded"].includes(status) ? rest : 0;
  const charged_back = status === "chargeback" ? rest : 0;
  const shown = (account: string) => balances.get(account) ?? 0;
  assert.equal(0 - shown("available"), available, `available when ${status}`);
  assert.equal(0 - shown("chargebacks"), charged_back, `charged back when ${status}`);
  assert.equal(shown("processor"), available + charged_back, `held when ${status}`);
  assert.equal(status === "refunded", amount_refunded === amount_minor);
  if (status === "partially_refunded") assert.ok(amount_refunded > 0 && rest > 0);
}
