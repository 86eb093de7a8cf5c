/** The decisions of cancels, advances and authentications, for a payment at sequence 3. */

import assert from "node:assert/strict";
import { responseOnly } from "../../shared/domain/changes/change_builder.ts";
import type { Payment, PaymentStatus } from "../../shared/schema/payment.ts";
import { decideAdvance, decideAuthenticate } from "../../shared/sandbox/advance.ts";
import {
  advanceTo,
  BASE_URL,
  decideCancel,
  MADE_AT,
  NOW,
  paymentWith,
  requestContext,
  URLS,
} from "../support/domain/decided_change.ts";
import { testMoves, testRefusals } from "../support/domain/move_case.ts";

const context = requestContext();
const advance = (to: PaymentStatus, return_code?: string) => (payment: Payment) =>
  advanceTo(payment, to, context, return_code);

const PENDING = paymentWith({});
const WAITING = paymentWith({
  status: "requires_action",
  next_action: { type: "authenticate", url: `${BASE_URL}/x` },
});
const DONE = paymentWith({ status: "completed", completed_at: MADE_AT });
const SEPA = paymentWith({ ...DONE, method_kind: "sepa", capability: "sepa_payment" });
const SEPA_REFUNDING = paymentWith({ ...SEPA, amount_refunding: 1 });
const PARTLY = paymentWith({ ...DONE, status: "partially_refunded", amount_refunded: 400 });
const DISPUTED = paymentWith({ ...DONE, status: "chargeback", amount_disputed: 1000 });
const DISPUTED_PARTLY = paymentWith({ ...DISPUTED, amount_refunded: 400, amount_disputed: 600 });
const RETURNED: Partial<Payment> = {
  status: "failed",
  failure_code: "bank_return",
  failure_message: "The bank returned the payment",
  return_code: "R01",
};
const COMPLETE = advance("completed");
const HALVE = advance("partially_refunded");

const cancel = (payment: Payment) => decideCancel(payment, context);
const authenticate = (result: "success" | "failure") => (payment: Payment) =>
  decideAuthenticate(payment, result, context);
const CAPTURE = "capture processor>available 1000";

testMoves([
  {
    name: "cancel pending",
    payment: PENDING,
    decide: cancel,
    http: 200,
    events: ["payment.cancelled"],
    ledger: [],
    members: { status: "cancelled", cancelled_at: NOW },
  },
  {
    name: "cancel requires_action",
    payment: WAITING,
    decide: cancel,
    http: 200,
    events: ["payment.cancelled"],
    ledger: [],
    members: { status: "cancelled", cancelled_at: NOW, next_action: null },
  },
  {
    name: "authenticate",
    payment: WAITING,
    decide: authenticate("success"),
    http: 200,
    events: ["payment.completed"],
    ledger: [CAPTURE],
    members: {
      status: "completed",
      amount_captured: 1000,
      completed_at: NOW,
      next_action: null,
    },
  },
  {
    name: "fail to authenticate",
    payment: WAITING,
    decide: authenticate("failure"),
    http: 402,
    events: ["payment.declined"],
    ledger: [],
    members: {
      status: "declined",
      failure_code: "authentication_failed",
      failure_message: "The payer failed to authenticate",
      advice: "authenticate",
      next_action: null,
    },
  },
  {
    name: "advance to processing",
    payment: PENDING,
    decide: advance("processing"),
    http: 200,
    events: ["payment.processing"],
    ledger: [],
    members: { status: "processing" },
  },
  {
    name: "advance to completed",
    payment: PENDING,
    decide: advance("completed"),
    http: 200,
    events: ["payment.completed"],
    ledger: [CAPTURE],
    members: { status: "completed", amount_captured: 1000, completed_at: NOW },
  },
  {
    name: "bank return",
    payment: SEPA,
    decide: advance("failed"),
    http: 200,
    events: ["payment.failed"],
    ledger: ["capture_reversal available>processor 1000"],
    members: RETURNED,
  },
  {
    name: "bank return while a refund is pending",
    payment: SEPA_REFUNDING,
    decide: advance("failed", "AM04"),
    http: 200,
    events: ["payment.failed"],
    ledger: ["capture_reversal available>processor 1000"],
    members: { ...RETURNED, return_code: "AM04", amount_refunding: 1 },
  },
  {
    name: "bank return after a partial refund",
    payment: paymentWith({ ...SEPA, status: "partially_refunded", amount_refunded: 400 }),
    decide: advance("failed"),
    http: 200,
    events: ["payment.failed"],
    ledger: ["capture_reversal available>processor 1000"],
    members: RETURNED,
  },
  {
    name: "advance to chargeback",
    payment: PARTLY,
    decide: advance("chargeback"),
    http: 200,
    events: ["dispute.created", "payment.chargeback"],
    ledger: ["chargeback available>chargebacks 600"],
    members: { status: "chargeback", amount_disputed: 600 },
  },
  {
    name: "advance to chargeback while a refund is pending",
    payment: paymentWith({ ...PARTLY, amount_refunding: 250 }),
    decide: advance("chargeback"),
    http: 200,
    events: ["dispute.created", "payment.chargeback"],
    ledger: ["chargeback available>chargebacks 350"],
    members: { status: "chargeback", amount_disputed: 350 },
  },
  {
    name: "win a dispute",
    payment: DISPUTED,
    decide: advance("completed"),
    http: 200,
    events: ["dispute.won", "payment.completed"],
    ledger: ["chargeback_reversal chargebacks>available 1000"],
    members: { status: "completed", amount_disputed: 0 },
  },
  {
    name: "win a dispute while a refund is pending",
    payment: paymentWith({ ...DISPUTED, amount_refunding: 300, amount_disputed: 700 }),
    decide: advance("completed"),
    http: 200,
    events: ["dispute.won", "payment.completed"],
    ledger: ["chargeback_reversal chargebacks>available 700"],
    members: { status: "completed", amount_disputed: 0 },
  },
  {
    name: "win a dispute after a partial refund",
    payment: DISPUTED_PARTLY,
    decide: advance("partially_refunded"),
    http: 200,
    events: ["dispute.won", "payment.partially_refunded"],
    ledger: ["chargeback_reversal chargebacks>available 600"],
    members: { status: "partially_refunded", amount_disputed: 0 },
  },
  {
    name: "advance to partially_refunded",
    payment: DONE,
    decide: advance("partially_refunded"),
    http: 200,
    events: ["refund.created", "refund.completed", "payment.partially_refunded"],
    ledger: ["refund available>processor 500"],
    refunds: ["completed 500"],
    members: { status: "partially_refunded", amount_refunded: 500 },
  },
  {
    name: "advance to refunded",
    payment: PARTLY,
    decide: advance("refunded"),
    http: 200,
    events: ["refund.created", "refund.completed", "payment.refunded"],
    ledger: ["refund available>processor 600"],
    refunds: ["completed 600"],
    members: { status: "refunded", amount_refunded: 1000 },
  },
]);

testRefusals([
  ["cancel completed", DONE, cancel, "invalid_state"],
  ["authenticate pending", PENDING, authenticate("success"), "invalid_state"],
  ["fail to authenticate pending", PENDING, authenticate("failure"), "invalid_state"],
  ["advance to pending", PARTLY, advance("pending"), "invalid_state"],
  ["return a card payment", DONE, advance("failed"), "invalid_state"],
  [
    "return a card payment with a code",
    DONE,
    advance("failed", "AC04"),
    "invalid_parameter return_code",
  ],
  ["halve one cent", paymentWith({ status: "completed", amount_minor: 1 }), HALVE, "invalid_state"],
  ["win a dispute as if nothing was refunded", DISPUTED_PARTLY, COMPLETE, "invalid_state"],
  ["win a dispute as if a part was refunded", DISPUTED, HALVE, "invalid_state"],
  ["lose a dispute a second time", DISPUTED, advance("refunded"), "invalid_state"],
  ["cancel a disputed payment", DISPUTED, cancel, "invalid_state"],
]);

Deno.test("decideAdvance() of a dispute that has just ended expects the old sequence", () => {
  const change = decideAdvance(DISPUTED, "completed", URLS, context, { dispute: null })!;
  assert.deepEqual(change.expects, { id: DISPUTED.id, sequence: DISPUTED.sequence });
});

Deno.test("decideAdvance() is null for the current status of the payment", () => {
  for (const status of ["pending", "completed", "refunded", "chargeback"] as const) {
    assert.equal(decideAdvance(paymentWith({ status }), status, URLS, context), null);
  }
});

Deno.test("decideAdvance() refuses a sum of received amounts that JSON cannot hold", () => {
  for (const [method_kind, to] of [["sepa", "pending"], ["stablecoin", "processing"]] as const) {
    const sent = paymentWith({ method_kind, amount_received: Number.MAX_SAFE_INTEGER });
    assert.throws(
      () => decideAdvance(sent, to, URLS, context, { amount_received: 1 }),
      { code: "invalid_parameter", details: { param: "amount_received" } },
    );
  }
});

Deno.test("responseOnly() changes nothing and requires the sequence of the payment", () => {
  const response = { status: 409, body: "{}" };
  assert.deepEqual(responseOnly(PENDING, response), {
    response,
    expects: { id: PENDING.id, sequence: 3 },
    payment: null,
    transfer: null,
    refunds: [],
    disputes: [],
    ledger: [],
    events: [],
    operations: [],
  });
});
