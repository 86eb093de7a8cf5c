/** The decisions about a payment with manual capture: authorize, capture once, release the rest. */

import assert from "node:assert/strict";
import type { Payment, PaymentStatus } from "../../shared/schema/payment.ts";
import { decideAdvance, decideAuthenticate } from "../../shared/sandbox/advance.ts";
import {
  BASE_URL,
  decideCancel,
  decideCapture,
  decideRefund,
  NOW,
  NOW_MS,
  paymentWith,
  requestContext,
  URLS,
} from "../support/domain/decided_change.ts";
import { type MoveCase, testMoves, testRefusals } from "../support/domain/move_case.ts";

const context = requestContext();
/** Seven days after the authorization. */
const CAPTURE_BEFORE = new Date(NOW_MS + 7 * 86_400_000).toISOString();

const PENDING = paymentWith({ capture: "manual" });
const WAITING = paymentWith({
  status: "requires_action",
  capture: "manual",
  next_action: { type: "authenticate", url: `${BASE_URL}/x` },
});
const HELD = paymentWith({
  status: "authorized",
  capture: "manual",
  capture_before: "2026-01-09T03:04:05.006Z",
});
const TAKEN_IN_PART = paymentWith({
  status: "completed",
  capture: "manual",
  amount_captured: 700,
});

const capture = (amount?: number) => (payment: Payment) =>
  decideCapture(payment, { amount }, context);
const refund = (amount?: number) => (payment: Payment) =>
  decideRefund(payment, amount, { amount }, context);
const cancel = (payment: Payment) => decideCancel(payment, context);
const advance = (to: PaymentStatus) => (payment: Payment) =>
  decideAdvance(payment, to, URLS, context);

const AUTHORIZED = { http: 200, events: ["payment.authorized"], ledger: [] };
const CANCELLED: Omit<MoveCase, "name" | "decide"> = {
  payment: HELD,
  http: 200,
  events: ["payment.cancelled"],
  ledger: [],
  members: { status: "cancelled", cancelled_at: NOW, capture_before: null },
};

testMoves([
  {
    name: "advance to authorized",
    payment: PENDING,
    decide: advance("authorized"),
    ...AUTHORIZED,
    members: { status: "authorized", capture_before: CAPTURE_BEFORE },
  },
  {
    name: "authenticate for a manual capture",
    payment: WAITING,
    decide: (payment) => decideAuthenticate(payment, "success", context),
    ...AUTHORIZED,
    members: { status: "authorized", capture_before: CAPTURE_BEFORE, next_action: null },
  },
  ...[capture(), capture(1000), advance("completed")].map((decide, i): MoveCase => ({
    name: ["capture", "capture 1000", "advance to completed"][i]!,
    payment: HELD,
    decide,
    http: 200,
    events: ["payment.completed"],
    ledger: ["capture processor>available 1000"],
    members: {
      status: "completed",
      amount_captured: 1000,
      completed_at: NOW,
      capture_before: null,
    },
  })),
  ...[1, 999].map((amount): MoveCase => ({
    name: `capture ${amount}`,
    payment: HELD,
    decide: capture(amount),
    http: 200,
    events: ["payment.completed"],
    ledger: [`capture processor>available ${amount}`],
    members: {
      status: "completed",
      amount_captured: amount,
      completed_at: NOW,
      capture_before: null,
    },
  })),
  { name: "cancel authorized", decide: cancel, ...CANCELLED },
  { name: "advance authorized to cancelled", decide: advance("cancelled"), ...CANCELLED },
  {
    name: "advance authorized to failed",
    payment: HELD,
    decide: advance("failed"),
    http: 200,
    events: ["payment.failed"],
    ledger: [],
    members: {
      status: "failed",
      failure_code: "processing_failed",
      failure_message: "The payment failed while it was processed",
      capture_before: null,
    },
  },
  {
    name: "refund all of a partial capture",
    payment: TAKEN_IN_PART,
    decide: refund(),
    http: 201,
    events: ["refund.created", "refund.completed", "payment.refunded"],
    ledger: ["refund available>processor 700"],
    refunds: ["completed 700"],
    members: { status: "refunded", amount_refunded: 700 },
  },
  {
    name: "refund a part of a partial capture",
    payment: TAKEN_IN_PART,
    decide: refund(699),
    http: 201,
    events: ["refund.created", "refund.completed", "payment.partially_refunded"],
    ledger: ["refund available>processor 699"],
    refunds: ["completed 699"],
    members: { status: "partially_refunded", amount_refunded: 699 },
  },
  {
    name: "charge back a partial capture",
    payment: TAKEN_IN_PART,
    decide: advance("chargeback"),
    http: 200,
    events: ["dispute.created", "payment.chargeback"],
    ledger: ["chargeback available>chargebacks 700"],
    members: { status: "chargeback", amount_disputed: 700 },
  },
]);

testRefusals([
  ["capture too much", HELD, capture(1001), "invalid_parameter amount"],
  [
    "capture too much in minor units",
    HELD,
    (payment) => decideCapture(payment, { amount_minor: 1001 }, context),
    "invalid_parameter amount_minor",
  ],
  ["capture a second time", TAKEN_IN_PART, capture(300), "invalid_state"],
  ["capture pending", PENDING, capture(), "invalid_state"],
  ["capture a cancelled payment", paymentWith({ status: "cancelled" }), capture(), "invalid_state"],
  ["cancel after a capture", TAKEN_IN_PART, cancel, "invalid_state"],
  ["refund authorized", HELD, refund(1), "invalid_state"],
  ["refund more than was captured", TAKEN_IN_PART, refund(701), "invalid_parameter amount"],
  ["complete pending without a capture", PENDING, advance("completed"), "invalid_state"],
  ["authorize for automatic capture", paymentWith({}), advance("authorized"), "invalid_state"],
  ["charge back authorized", HELD, advance("chargeback"), "invalid_state"],
]);

Deno.test("decideCapture() names the authorized amount if the capture is too high", () => {
  assert.throws(() => capture(1001)(HELD), {
    details: { param: "amount", amount_capturable: 1000 },
  });
});
