/**
 * The rules of the domain and the model of payments, which repeats them on purpose, agree: random
 * moves of one payment, and in each state every move. The ledger is the balance of the model.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { normalizeCardNumber } from "../../shared/core/card_number.ts";
import { ApiError, ERROR_CATALOGUE } from "../../shared/core/errors.ts";
import {
  CAPTURE_METHODS,
  METHOD_KINDS,
  PAYMENT_STATUSES,
  TRANSFER_STATUSES,
} from "../../shared/core/vocabulary.ts";
import { statusOfSaved } from "../../shared/domain/changes/saved_instrument.ts";
import { STATUSES as RULES } from "../../shared/domain/payment_statuses.ts";
import { transferAdvances } from "../../shared/domain/payments/lifecycle.ts";
import { TEST_CARDS, TEST_TOKENS } from "../../shared/domain/providers/test_values.ts";
import { RAILS } from "../../shared/domain/rails.ts";
import { decideAdvanceRefund, decideAuthenticate } from "../../shared/sandbox/advance.ts";
import { CreatePaymentBody } from "../../shared/schema/payment_body.ts";
import { Payment } from "../../shared/schema/payment.ts";
import { type PaymentStatus } from "../../shared/schema/statuses.ts";
import { Refund } from "../../shared/schema/refund.ts";
import type { Change } from "../../shared/store/commit_rows.ts";
import { cancelOf, captureOf } from "../../shared/domain/payments/capture_and_cancel.ts";
import { paymentOf } from "../../shared/domain/payments/create_payment.ts";
import { refundOf } from "../../shared/domain/payments/refund_payment.ts";
import {
  advanceTo,
  decided,
  paymentWith,
  requestContext,
} from "../support/domain/decided_change.ts";
import { readProjectFile } from "../support/documents/project_files.ts";
import { INSTRUMENTS } from "../support/model/instruments.ts";
import {
  availableOf,
  expectMove,
  type Move,
  nameNewestRefund,
  type Standing,
} from "../support/model/payment_model.ts";
import { newSaved } from "../support/model/saved_model.ts";
import { MOVES, STATUSES } from "../support/model/statuses.ts";
import { expectTransferMove } from "../support/model/transfer_model.ts";

const SEED = Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31);
const RUNS = 500;
const context = requestContext();

Deno.test("the statuses of the service have the moves of the model", () => {
  assert.deepEqual(STATUSES, [...PAYMENT_STATUSES], "tests/support/model/statuses.ts");
  for (const status of PAYMENT_STATUSES) {
    assert.deepEqual(Object.keys(RULES[status].moves).sort(), [...MOVES[status]!].sort(), status);
  }
});

Deno.test("the invariants have the moves of the model", async () => {
  const sql = await readProjectFile("supabase/schemas/invariants_records.sql");
  const listOf = (name: string) => {
    const [, list] = new RegExp(`/\\* ${name} \\*/ ('[^)]*')`).exec(sql)!;
    return [...list!.matchAll(/'([^']+)'/g)].map(([, each]) => each!).sort();
  };
  // Only a payment to an address shows that it is pending, after its creation.
  const moves = [["created", "pending"]];
  for (const to of ["processing", "completed", "failed", "cancelled"]) moves.push(["pending", to]);
  for (const [from, all] of Object.entries(MOVES)) {
    for (const to of all) moves.push([from === "pending" ? "created" : from, to]);
  }
  const events = moves.map(([from, to]) => `payment.${from}>${to}`);
  assert.deepEqual(listOf("moves of payments"), events.sort());
  // A payment without money, except one that its bank has returned: it can have refunds.
  const without_money = ["authorized", "cancelled", "declined", "pending", "processing"];
  assert.deepEqual(
    listOf("events without money"),
    [...without_money, "requires_action"].map((status) => `payment.${status}`),
  );
  assert.deepEqual(listOf("unpaid"), ["cancelled", "declined", "failed"]);
});

Deno.test("INSTRUMENTS has every method kind, and only test cards and test tokens", () => {
  const kinds = Object.values(INSTRUMENTS).map(({ kind }) => kind);
  assert.deepEqual(METHOD_KINDS.filter((kind) => !kinds.includes(kind)), [], "no instrument");
  const numbers = TEST_CARDS.map(({ value }) => normalizeCardNumber(value));
  for (const [name, { body }] of Object.entries(INSTRUMENTS)) {
    const { number, token } = (body["card"] ?? {}) as { number?: string; token?: string };
    if (number !== undefined) assert.ok(numbers.includes(number), name);
    if (token !== undefined) assert.ok(Object.hasOwn(TEST_TOKENS, token), name);
  }
});

Deno.test("a completed payment shows its transaction, if its rail has one", () => {
  const shown = Object.entries(INSTRUMENTS).filter(([name, { body, kind, status }]) => {
    const { shows_transaction: place, only_currency } = RAILS[kind as Payment["method_kind"]];
    if (place === null || status !== "completed") return false;
    const currency = only_currency ?? "EUR";
    const sent = CreatePaymentBody.parse({ amount: 1, currency, ...body });
    const change = decided(paymentOf(sent, true, context));
    const { method } = JSON.parse(change.payment!.body);
    assert.match(method[place[0]][place[1]], /./, name);
    return true;
  });
  assert.notEqual(shown.length, 0);
});

for (const is_to_wallet of [false, true]) {
  Deno.test(`expectTransferMove() ${is_to_wallet ? "to a wallet" : "to a bank"} as the domain`, () => {
    const wallet = { address: "0x1", network: "base", asset: "USDC", tx_hash: null } as const;
    const destination = is_to_wallet
      ? { type: "wallet" as const, wallet }
      : { type: "iban" as const, iban: { country: "DE", last4: "3000" } };
    for (const status of TRANSFER_STATUSES) {
      const standing = { status, is_to_wallet, amount: 1, sequence: 1 };
      const expected = TRANSFER_STATUSES.filter((to) =>
        to !== status && expectTransferMove(standing, { do: "advance", to }).http === 200
      );
      const currency = is_to_wallet ? "USDC" : "EUR";
      const allowed = transferAdvances({ object: "transfer", status, destination, currency });
      assert.deepEqual(allowed.toSorted(), expected.toSorted(), status);
    }
  });
}

Deno.test("newSaved() has the status of an instrument as the domain", () => {
  for (const method_kind of METHOD_KINDS) {
    for (const status of PAYMENT_STATUSES) {
      const { status: expected } = newSaved("card", "off_session", { status, kind: method_kind });
      assert.equal(statusOfSaved({ status, method_kind }), expected, `${method_kind} ${status}`);
    }
  }
});

/** A payment in the domain and in the model, with its refunds and its ledger. */
interface Subject {
  payment: Payment;
  refunds: Map<string, Refund>;
  /** By account. */
  balances: Map<string, number>;
  standing: Standing;
}

function decide({ payment, refunds }: Subject, move: Move): Change | null {
  switch (move.do) {
    case "cancel":
      return decided(cancelOf(payment, context));
    case "capture":
      return decided(captureOf(payment, { amount: move.amount ?? undefined }, context));
    case "refund":
      return decided(refundOf(payment, { amount: move.amount ?? undefined }, context));
    case "authenticate":
      return decideAuthenticate(payment, move.result, context);
    case "advance":
      return advanceTo(payment, move.to as PaymentStatus, context);
    case "advance_refund":
      return decideAdvanceRefund(payment, JSON.stringify(refunds.get(move.id)), move.to, context);
    default:
      throw new Error(`${move.do} needs the dispute`);
  }
}

/** Makes a move in both, compares the results, and returns the subject after it. */
function compare(subject: Subject, move: Move): Subject {
  const { standing } = subject;
  const name = `${JSON.stringify(move)} of ${JSON.stringify(standing)}`;
  const expected = expectMove(standing, move);
  let change: Change | null;
  try {
    change = decide(subject, move);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { status } = ERROR_CATALOGUE[error.code];
    assert.deepEqual([status, error.code], [expected.http, expected.code], name);
    return subject;
  }
  const { status: http, body } = change?.response ?? { status: 200, body: "{}" };
  const { error, id } = JSON.parse(body);
  assert.deepEqual([http, error?.code ?? null], [expected.http, expected.code], name);
  assert.deepEqual(change?.events.map(({ type }) => type) ?? [], expected.events, name);
  if (!change?.payment) return subject;
  const sequences = change.events.map(({ sequence }) => sequence);
  assert.deepEqual(sequences, sequences.map((_, i) => standing.sequence + 1 + i), name);
  const refunds = new Map(subject.refunds);
  for (const { body } of change.refunds) {
    const refund = Refund.parse(JSON.parse(body)) as Refund;
    refunds.set(refund.id, refund);
  }
  const balances = new Map(subject.balances);
  const add = (account: string, amount: number) =>
    balances.set(account, (balances.get(account) ?? 0) + amount);
  for (const { debit_account, credit_account, amount_minor } of change.ledger) {
    assert.ok(Number.isInteger(amount_minor) && amount_minor > 0, name);
    add(debit_account, -amount_minor);
    add(credit_account, amount_minor);
  }
  const payment = Payment.parse(JSON.parse(change.payment.body)) as Payment;
  const made = [...refunds.keys()].find((id) => !subject.refunds.has(id));
  const next = made
    ? nameNewestRefund(expected.next, id?.startsWith("re_") ? id : made)
    : expected.next;
  const after = { payment, refunds, balances, standing: next };
  assertSame(after, name);
  return after;
}

/** Asserts that the payment, its refunds and its ledger are as the model says. */
function assertSame({ payment, refunds, balances, standing }: Subject, name: string): void {
  const { status, sequence, amount_captured, amount_disputed } = payment;
  const { amount_refunded, amount_refunding } = payment;
  assert.deepEqual(
    { status, sequence, amount_captured, amount_refunded, amount_refunding, amount_disputed },
    {
      status: standing.status,
      sequence: standing.sequence,
      amount_captured: standing.captured,
      amount_refunded: standing.refunded,
      amount_refunding: standing.refunding,
      amount_disputed: standing.disputed,
    },
    name,
  );
  assert.deepEqual(
    [...refunds.values()].map(({ id, amount, status, payment_status }) => ({
      ...{ id, amount, status, payment_status },
    })),
    standing.refunds,
    name,
  );
  const balance = (account: string) => balances.get(account) ?? 0;
  const available = 0 + availableOf(standing);
  assert.equal(balance("available"), available, name);
  assert.equal(balance("chargebacks"), amount_disputed, name);
  assert.equal(balance("processor"), 0 - available - amount_disputed, name);
}

/** Every move of a payment, with the amounts at the limits of each. */
function movesOf({ amount, captured, refunded, refunding, refunds }: Standing): Move[] {
  const rest = captured - refunded - refunding;
  return [
    { do: "cancel" },
    ...[null, 1, amount, amount + 1].map((amount) => ({ do: "capture", amount }) as const),
    ...[null, 1, Math.max(rest, 1), rest + 1].map((amount) => ({ do: "refund", amount }) as const),
    ...(["success", "failure"] as const).map((result) => ({ do: "authenticate", result }) as const),
    ...PAYMENT_STATUSES.map((to) => ({ do: "advance", to }) as const),
    ...refunds.flatMap(({ id }) =>
      (["completed", "failed"] as const).map((to) =>
        ({ do: "advance_refund", id: id!, to }) as const
      )
    ),
  ];
}

const Start = fc.record({
  amount: fc.integer({ min: 0, max: 40 }),
  kind: fc.constantFrom(...METHOD_KINDS),
  capture: fc.constantFrom(...CAPTURE_METHODS),
  refunds_wait: fc.boolean(),
});
/** Each number chooses one of the moves that change the payment. */
const Choices = fc.array(fc.nat(), { maxLength: 12, size: "max" });

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

Deno.test(`the domain makes the moves of the model (seed ${SEED})`, () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(Start, Choices, ({ amount, kind, refunds_wait, ...start }, choices) => {
      // Of a payment of 0 there is nothing to capture.
      const capture = amount === 0 ? "automatic" : start.capture;
      const settlement = refunds_wait ? "manual" : "instant";
      let subject: Subject = {
        payment: paymentWith({
          ...{ amount_minor: amount, method_kind: kind, capture, settlement, sequence: 1 },
        }),
        refunds: new Map(),
        balances: new Map(),
        standing: {
          ...{ status: "pending", kind, amount, refunds_wait, sequence: 1, dispute: null },
          ...{ is_captured_later: capture === "manual", refunds: [] },
          ...{ captured: 0, refunded: 0, refunding: 0, disputed: 0, saved: null },
        },
      };
      for (const choice of [...choices, 0]) {
        const before = subject;
        const all = movesOf(before.standing).map((move) => compare(before, move));
        const changed = all.filter((after) => after !== before);
        if (changed.length === 0) return;
        for (const { payment } of changed) {
          seen.add(`${before.payment.status} → ${payment.status}`);
        }
        subject = changed[choice % changed.length]!;
      }
    }),
    { numRuns: RUNS, seed: SEED },
  );
  assert.deepEqual(HARD.filter((move) => !seen.has(move)), [], "not reached");
  const reached = new Set([...seen].map((move) => move.split(" → ")[1]));
  assert.deepEqual([...reached].sort(), PAYMENT_STATUSES.slice(1).toSorted());
});
