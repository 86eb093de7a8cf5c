/** The decisions of cancels, advances, authentications and refunds, for a payment at sequence 3. */

import assert from "node:assert/strict";
import {
  decideAdvance,
  decideAuthenticate,
  decideCancel,
} from "../../shared/domain/payments/move_payment.ts";
import { answerOnly } from "../../shared/domain/changes/change_builder.ts";
import { decideRefund } from "../../shared/domain/payments/refund_payment.ts";
import type { Payment, PaymentStatus } from "../../shared/schema/payment.ts";
import type { Change } from "../../shared/store/commit_rows.ts";
import {
  BASE_URL,
  MADE_AT,
  NOW,
  paymentWith,
  refusalOf,
  requestContext,
  summaryOf,
} from "../support/domain/decided_change.ts";

const context = requestContext();
const advance = (to: PaymentStatus) => (payment: Payment) =>
  decideAdvance(payment, to, BASE_URL, context);
const refund = (amount?: number) => (payment: Payment) =>
  decideRefund(payment, amount, { amount }, context);

const PENDING = paymentWith({});
const WAITING = paymentWith({
  status: "requires_action",
  next_action: { type: "authenticate", url: `${BASE_URL}/x` },
});
const DONE = paymentWith({ status: "completed", completed_at: MADE_AT });
const SEPA = paymentWith({ ...DONE, method_kind: "sepa", capability: "sepa_payment" });
const PARTLY = paymentWith({ ...DONE, status: "partially_refunded", amount_refunded: 400 });

type Decide = (payment: Payment) => Change | null;

/** A move, its answer, its events from sequence 4, its movement, and the changed members. */
const MOVES: [string, Payment, Decide, http: number, string[], string[], Partial<Payment>][] = [
  ["cancel pending", PENDING, (p) => decideCancel(p, context), 200, ["4 payment.cancelled"], [], {
    status: "cancelled",
    cancelled_at: NOW,
  }],
  [
    "cancel requires_action",
    WAITING,
    (p) => decideCancel(p, context),
    200,
    ["4 payment.cancelled"],
    [],
    {
      status: "cancelled",
      cancelled_at: NOW,
      next_action: null,
    },
  ],
  [
    "authenticate",
    WAITING,
    (p) => decideAuthenticate(p, "success", context),
    200,
    [
      "4 payment.completed",
    ],
    ["capture processor>available 1000"],
    {
      status: "completed",
      completed_at: NOW,
      next_action: null,
    },
  ],
  [
    "fail to authenticate",
    WAITING,
    (p) => decideAuthenticate(p, "failure", context),
    402,
    [
      "4 payment.declined",
    ],
    [],
    {
      status: "declined",
      failure_code: "authentication_failed",
      failure_message: "The payer failed to authenticate",
      next_action: null,
    },
  ],
  ["advance to processing", PENDING, advance("processing"), 200, ["4 payment.processing"], [], {
    status: "processing",
  }],
  ["advance to completed", PENDING, advance("completed"), 200, ["4 payment.completed"], [
    "capture processor>available 1000",
  ], { status: "completed", completed_at: NOW }],
  ["bank return", SEPA, advance("failed"), 200, ["4 payment.failed"], [
    "capture_reversal available>processor 1000",
  ], {
    status: "failed",
    failure_code: "bank_return",
    failure_message: "The bank returned the payment",
    return_code: "R01",
  }],
  ["advance to chargeback", PARTLY, advance("chargeback"), 200, ["4 payment.chargeback"], [
    "chargeback available>chargebacks 600",
  ], { status: "chargeback" }],
  [
    "advance to partially_refunded",
    DONE,
    advance("partially_refunded"),
    200,
    [
      "4 refund.completed",
      "5 payment.partially_refunded",
    ],
    ["refund available>processor 500"],
    { status: "partially_refunded", amount_refunded: 500 },
  ],
  [
    "refund a part",
    DONE,
    refund(1),
    201,
    [
      "4 refund.completed",
      "5 payment.partially_refunded",
    ],
    ["refund available>processor 1"],
    { status: "partially_refunded", amount_refunded: 1 },
  ],
  ["refund the rest", PARTLY, refund(), 201, ["4 refund.completed", "5 payment.refunded"], [
    "refund available>processor 600",
  ], { status: "refunded", amount_refunded: 1000 }],
  [
    "refund all that is left",
    PARTLY,
    refund(600),
    201,
    [
      "4 refund.completed",
      "5 payment.refunded",
    ],
    ["refund available>processor 600"],
    { status: "refunded", amount_refunded: 1000 },
  ],
];

for (const [name, payment, decide, http, events, ledger, members] of MOVES) {
  Deno.test(`${name} → ${http} ${members.status}`, () => {
    const before = structuredClone(payment);
    const change = decide(payment)!;
    assert.deepEqual(payment, before, "the payment that was given is left as it was");
    const summary = summaryOf(change);
    assert.deepEqual({ ...summary, refunds: [] }, { events, ledger, refunds: [] });
    assert.deepEqual(change.expects, { id: payment.id, sequence: 3 });
    const sequence = 3 + events.length;
    const expected = { ...payment, ...members, sequence, updated_at: NOW };
    assert.deepEqual(JSON.parse(change.payment!.body), expected);
    assert.equal(change.payment!.sequence, sequence);
    assert.equal(change.answer.status, http);
    if (http === 200) assert.equal(change.answer.body, change.payment!.body);
    if (http === 402) {
      assert.deepEqual(JSON.parse(change.answer.body).error.payment, expected);
    }
    if (http === 201) {
      assert.equal(change.answer.body, change.refunds[0]!.body);
      assert.equal(change.ledger[0]!.refund_id, change.refunds[0]!.id);
    }
  });
}

Deno.test("decideAdvance() is null for the current status of the payment", () => {
  for (const status of ["pending", "completed", "refunded", "chargeback"] as const) {
    assert.equal(decideAdvance(paymentWith({ status }), status, BASE_URL, context), null);
  }
});

const REFUSED: [string, Payment, Decide, refusal: string][] = [
  ["cancel completed", DONE, (p) => decideCancel(p, context), "invalid_state"],
  [
    "authenticate pending",
    PENDING,
    (p) => decideAuthenticate(p, "success", context),
    "invalid_state",
  ],
  [
    "fail to authenticate pending",
    PENDING,
    (p) => decideAuthenticate(p, "failure", context),
    "invalid_state",
  ],
  ["refund pending", PENDING, refund(1), "invalid_state"],
  ["refund too much of pending", PENDING, refund(1001), "invalid_state"],
  ["refund too much", DONE, refund(1001), "invalid_parameter amount"],
  ["refund more than the rest", PARTLY, refund(601), "invalid_parameter amount"],
  ["advance to pending", PARTLY, advance("pending"), "invalid_state"],
  ["return a card payment", DONE, advance("failed"), "invalid_state"],
  [
    "halve one cent",
    paymentWith({ ...DONE, amount_minor: 1 }),
    advance("partially_refunded"),
    "invalid_state",
  ],
];

for (const [name, payment, decide, refusal] of REFUSED) {
  Deno.test(`${name} is ${refusal}`, () => assert.equal(refusalOf(() => decide(payment)), refusal));
}

Deno.test("answerOnly() changes nothing and requires the sequence of the payment", () => {
  const answer = { status: 409, body: "{}" };
  assert.deepEqual(answerOnly(PENDING, answer), {
    answer,
    expects: { id: PENDING.id, sequence: 3 },
    payment: null,
    transfer: null,
    refunds: [],
    ledger: [],
    events: [],
  });
});
