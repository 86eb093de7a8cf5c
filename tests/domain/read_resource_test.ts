/**
 * Reading stored bodies. Bodies of release 1.0.0 come from the fixture of the upgrade test, and
 * lack the members that came later.
 */

import assert from "node:assert/strict";
import {
  completePayment,
  readPayment,
  readRefund,
} from "../../shared/domain/changes/read_resource.ts";
import { PAYMENT_STATUSES } from "../../shared/core/vocabulary.ts";
import { Payment } from "../../shared/schema/payment.ts";
import { Refund } from "../../shared/schema/refund.ts";
import { paymentWith } from "../support/domain/decided_change.ts";
import { readFixture } from "../support/upgrade/fixture.ts";

const { gets } = await readFixture("1.0.0");
const bodiesOf = (list: string) =>
  gets.filter(({ path }) => new RegExp(`/v1/${list}/[^?]+$`).test(path)).map(({ answer }) =>
    answer
  );

/** The members that release 1.0.0 lacks, by status, for a payment of 1999 minor units. */
const ADDED: Record<string, { amount_captured: number; amount_disputed: number }> = {
  completed: { amount_captured: 1999, amount_disputed: 0 },
  partially_refunded: { amount_captured: 1999, amount_disputed: 0 },
  refunded: { amount_captured: 1999, amount_disputed: 0 },
  chargeback: { amount_captured: 1999, amount_disputed: 1999 },
};

Deno.test("readPayment() adds the members that a body of 1.0.0 lacks", () => {
  const seen = new Set<string>();
  for (const body of bodiesOf("payments")) {
    const old = JSON.parse(body);
    if (old.amount_minor !== 1999) continue;
    seen.add(old.status);
    const read = readPayment(body);
    assert.deepEqual(read, {
      ...old,
      amount_refunding: 0,
      ...ADDED[old.status] ?? { amount_captured: 0, amount_disputed: 0 },
      amount_received: null,
      return_url: null,
      capture: "automatic",
      capture_before: null,
      settlement: "instant",
    });
    assert.deepEqual(Object.keys(read).sort(), Object.keys(Payment.shape).sort());
    assert.deepEqual(Payment.parse(old), old, "the schema of answers accepts the old body");
  }
  const all = PAYMENT_STATUSES.filter((status) => status !== "authorized");
  assert.deepEqual([...seen].sort(), all.toSorted());
});

Deno.test("completePayment() disputes what an old chargeback had not refunded", () => {
  const {
    amount_refunding: _1,
    amount_captured: _2,
    amount_disputed: _3,
    amount_received: _4,
    return_url: _5,
    capture: _6,
    capture_before: _7,
    settlement: _8,
    ...old
  } = paymentWith({ status: "chargeback", amount_refunded: 400 });
  const read = completePayment(old);
  assert.deepEqual([read.amount_captured, read.amount_disputed], [1000, 600]);
  assert.equal(completePayment({ ...old, livemode: true }).settlement, null);
});

Deno.test("readPayment() and readRefund() leave a complete body as it is", () => {
  const payment = paymentWith({ status: "authorized", capture: "manual", amount_minor: 5 });
  assert.deepEqual(readPayment(JSON.stringify(payment)), payment);
  const updated_at = "2026-01-02T03:04:05.006Z";
  const refund = { id: "re_1", status: "failed", updated_at, destination: null };
  assert.deepEqual(readRefund(JSON.stringify(refund)), refund);
});

Deno.test("readRefund() adds the members that a body of 1.0.0 lacks", () => {
  const bodies = bodiesOf("refunds");
  assert.ok(bodies.length > 5);
  for (const body of bodies) {
    const old = JSON.parse(body);
    const read = readRefund(body);
    assert.deepEqual(read, {
      ...old,
      failure_code: null,
      failure_message: null,
      updated_at: old.created_at,
      destination: null,
    });
    assert.deepEqual(Object.keys(read).sort(), Object.keys(Refund.shape).sort());
    assert.deepEqual(Refund.parse(old), old, "the schema of answers accepts the old body");
  }
});
