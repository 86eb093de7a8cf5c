/**
 * The decisions of refunds. A refund completes at once, or waits for an advance if the settlement is
 * manual; meanwhile it holds its amount.
 */

import assert from "node:assert/strict";
import type { Payment } from "../../shared/schema/payment.ts";
import { Refund, type RefundStatus } from "../../shared/schema/refund.ts";
import { decideAdvanceRefund } from "../../shared/sandbox/advance.ts";
import {
  decideRefund,
  MADE_AT,
  NOW,
  paymentWith,
  refusalOf,
  requestContext,
} from "../support/domain/decided_change.ts";
import { type Decide, testMoves, testRefusals } from "../support/domain/move_case.ts";

const context = requestContext();
const DONE = paymentWith({ status: "completed" });
const PARTLY = paymentWith({ status: "partially_refunded", amount_refunded: 400 });
const MANUAL = paymentWith({ status: "completed", settlement: "manual" });
/** Of 1000, 300 are held by a pending refund. */
const HELD = paymentWith({ ...MANUAL, amount_refunding: 300 });
const HELD_PARTLY = paymentWith({ ...HELD, status: "partially_refunded", amount_refunded: 400 });
/** A payment of which the rest was charged back while 300 were being refunded. */
const DISPUTED = paymentWith({ ...HELD, status: "chargeback", amount_disputed: 700 });

const refund = (amount?: number) => (payment: Payment) =>
  decideRefund(payment, amount, { amount }, context);
const PENDING: Refund = {
  id: `re_${"3".repeat(26)}`,
  object: "refund",
  payment_id: DONE.id,
  payment_status: "completed",
  amount: 300,
  amount_minor: 300,
  currency: "EUR",
  status: "pending",
  failure_code: null,
  failure_message: null,
  return_code: null,
  reason: "duplicate",
  metadata: { order: "7" },
  destination: null,
  speed: null,
  payee_check: null,
  livemode: false,
  created_at: MADE_AT,
  updated_at: MADE_AT,
};
const move = (to: RefundStatus, members: Partial<Refund> = {}): Decide => (payment) =>
  decideAdvanceRefund(payment, JSON.stringify({ ...PENDING, ...members }), to, context);

testMoves([
  {
    name: "refund a part",
    payment: DONE,
    decide: refund(1),
    http: 201,
    events: ["refund.created", "refund.completed", "payment.partially_refunded"],
    ledger: ["refund available>processor 1"],
    refunds: ["completed 1"],
    members: { status: "partially_refunded", amount_refunded: 1 },
  },
  ...[refund(), refund(600)].map((decide, i) => ({
    name: ["refund the rest", "refund an amount that is the rest"][i]!,
    payment: PARTLY,
    decide,
    http: 201,
    events: ["refund.created", "refund.completed", "payment.refunded"],
    ledger: ["refund available>processor 600"],
    refunds: ["completed 600"],
    members: { status: "refunded", amount_refunded: 1000 } as const,
  })),
  {
    name: "refund a part with manual settlement",
    payment: MANUAL,
    decide: refund(300),
    http: 201,
    events: ["refund.created"],
    ledger: [],
    refunds: ["pending 300"],
    members: { amount_refunding: 300 },
  },
  {
    name: "refund the rest beside a pending refund",
    payment: HELD_PARTLY,
    decide: refund(),
    http: 201,
    events: ["refund.created"],
    ledger: [],
    refunds: ["pending 300"],
    members: { amount_refunding: 600 },
  },
  {
    name: "complete a pending refund of a part",
    payment: HELD,
    decide: move("completed"),
    http: 200,
    events: ["refund.completed", "payment.partially_refunded"],
    ledger: ["refund available>processor 300"],
    refunds: ["completed 300"],
    members: { status: "partially_refunded", amount_refunded: 300, amount_refunding: 0 },
  },
  {
    name: "complete a second refund of a part",
    payment: HELD_PARTLY,
    decide: move("completed"),
    http: 200,
    events: ["refund.completed", "payment.partially_refunded"],
    ledger: ["refund available>processor 300"],
    refunds: ["completed 300"],
    members: { amount_refunded: 700, amount_refunding: 0 },
  },
  {
    name: "complete a pending refund of the rest",
    payment: paymentWith({ ...HELD_PARTLY, amount_refunded: 700 }),
    decide: move("completed"),
    http: 200,
    events: ["refund.completed", "payment.refunded"],
    ledger: ["refund available>processor 300"],
    refunds: ["completed 300"],
    members: { status: "refunded", amount_refunded: 1000, amount_refunding: 0 },
  },
  {
    name: "complete a pending refund of a disputed payment",
    payment: DISPUTED,
    decide: move("completed"),
    http: 200,
    events: ["refund.completed"],
    ledger: ["refund available>processor 300"],
    refunds: ["completed 300"],
    members: { amount_refunded: 300, amount_refunding: 0 },
  },
  ...[HELD, HELD_PARTLY, DISPUTED].map((payment) => ({
    name: `fail a pending refund of a payment that is ${payment.status}`,
    payment,
    decide: move("failed"),
    http: 200,
    events: ["refund.failed"],
    ledger: [],
    refunds: ["failed 300"],
    members: { amount_refunding: 0 },
  })),
]);

testRefusals([
  ["refund pending", paymentWith({}), refund(1), "invalid_state"],
  ["refund too much of pending", paymentWith({}), refund(1001), "invalid_state"],
  ["refund too much", DONE, refund(1001), "invalid_parameter amount"],
  ["refund more than the rest", PARTLY, refund(601), "invalid_parameter amount"],
  ["refund an amount that is held", HELD, refund(701), "invalid_parameter amount"],
  [
    "refund if all is held",
    paymentWith({ ...MANUAL, amount_refunding: 1000 }),
    refund(),
    "invalid_state",
  ],
  ["refund a disputed payment", DISPUTED, refund(1), "invalid_state"],
  ["complete a failed refund", DONE, move("completed", { status: "failed" }), "invalid_state"],
  ["move a completed refund back", DONE, move("pending", { status: "completed" }), "invalid_state"],
]);

for (const status of ["pending", "completed", "failed"] as const) {
  Deno.test(`decideAdvanceRefund() to ${status} returns a ${status} refund as it is`, () => {
    const body = JSON.stringify({ ...PENDING, status });
    const change = decideAdvanceRefund(HELD, body, status, context);
    assert.deepEqual(change.response, { status: 200, body });
    const { payment, refunds, ledger, events } = change;
    assert.deepEqual({ payment, refunds, ledger, events }, {
      payment: null,
      refunds: [],
      ledger: [],
      events: [],
    });
  });
}

/** [advance, status of the payment, changed members of the refund] */
const SHOWN: [RefundStatus, Payment, Partial<Refund>][] = [
  ["completed", HELD, { status: "completed", payment_status: "partially_refunded" }],
  ["completed", DISPUTED, { status: "completed", payment_status: "chargeback" }],
  ["failed", HELD, {
    status: "failed",
    payment_status: "completed",
    failure_code: "processing_failed",
    failure_message: "The refund failed while it was processed",
  }],
];

for (const [to, payment, members] of SHOWN) {
  Deno.test(`decideAdvanceRefund() to ${to} by ${payment.status} keeps the other members`, () => {
    const change = move(to)(payment)!;
    const expected = { ...PENDING, ...members, updated_at: NOW };
    assert.deepEqual(JSON.parse(change.response.body), expected);
    assert.deepEqual(Refund.parse(expected), expected);
    const event = change.events.find(({ type }) => type === `refund.${to}`)!;
    assert.equal(event.object, change.response.body);
    assert.equal(change.refunds[0]!.created_at, MADE_AT);
  });
}

Deno.test("decideRefund() shows the pending refund in refund.created, its end in the response", () => {
  const change = refund(300)(DONE)!;
  const [created, completed] = change.events.slice(0, 2).map(({ object }) => JSON.parse(object!));
  const begun = { status: "pending", payment_status: "completed" };
  const { status, payment_status, created_at, updated_at } = created;
  assert.deepEqual({ status, payment_status, created_at, updated_at }, {
    ...begun,
    created_at: NOW,
    updated_at: NOW,
  });
  assert.deepEqual({ ...completed, ...begun }, created);
  assert.deepEqual(completed, JSON.parse(change.response.body));
});

Deno.test("decideRefund() names the amount that is left", () => {
  assert.throws(() => refund(701)(HELD), { details: { param: "amount", amount_refundable: 700 } });
});

Deno.test("pending refunds can hold the whole payment, and no cent more", () => {
  let payment = MANUAL;
  for (const amount of [1, 998, 1]) {
    payment = JSON.parse(refund(amount)(payment).payment!.body);
  }
  assert.deepEqual([payment.amount_refunding, payment.amount_refunded], [1000, 0]);
  assert.equal(refusalOf(() => refund(1)(payment)), "invalid_parameter amount");
  assert.equal(refusalOf(() => refund()(payment)), "invalid_state");
});
