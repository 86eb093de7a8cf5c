/** The service changes payments of an older release, and the functions of that release still work. */

import assert from "node:assert/strict";
import { idMint } from "../../../shared/core/ids.ts";
import { Payment } from "../../../shared/schema/payment.ts";
import type { Refund } from "../../../shared/schema/refund.ts";
import type { Fixture } from "./fixture.ts";
import type { FixtureService } from "./fixture_service.ts";
import { commitAsOld, type OldChange } from "./old_functions.ts";

const PAYMENTS = "/api-v1-payments/v1/payments";
const REFUNDS = "/api-v1-payments/v1/refunds";
const ENDPOINTS = "/api-v1-payments/v1/webhook_endpoints";
const SANDBOX = "/api-v1-sandbox";

/** Tests of old payments, each in the context of the sandbox's key. */
type Check = (service: FixtureService, key: string, at_ms: number) => Promise<void>;

/** Runs each check in a step. */
export async function checkOldPayments(
  t: Deno.TestContext,
  service: FixtureService,
  { keys, at_ms, waiting }: Fixture,
  later_ms: number,
): Promise<void> {
  const checks: [name: string, check: Check][] = [
    ["an old chargeback is disputed as a whole", checkDisputed],
    ["a dispute of an old payment is won", checkWonDispute],
    ["an old payment is refunded with refund.created", checkRefund],
    ["an old pending payment is cancelled with all members", checkCancel],
    ["an old refund stays completed", checkOldRefund],
    ["the functions of 1.0.0 still commit", checkOldFunctions],
  ];
  // Nobody receives the events of these payments.
  await service.done("PUT", `${ENDPOINTS}/${waiting.endpoint_id}`, {
    key: keys.sandbox,
    body: { events: ["transfer.failed"] },
  });
  for (const [name, check] of checks) {
    await t.step(name, () => check(service, keys.sandbox, at_ms + later_ms));
  }
}

/** Returns a payment with a status, a minimum amount and no refund. */
async function paymentOf(service: FixtureService, key: string, status: string) {
  const { data } = await service.done("GET", `${PAYMENTS}?status=${status}&limit=100`, { key });
  const found = data.find((payment: Payment) =>
    payment.amount_minor >= 1000 && payment.amount_refunded === 0 && !payment.amount_refunding
  );
  assert.ok(found, `no ${status} payment`);
  return found;
}

async function checkDisputed({ sql }: FixtureService): Promise<void> {
  const rows = await sql<{ disputed: string; rest: string }[]>`
    select amount_disputed as disputed,
      amount_minor - amount_released - amount_refunded - amount_refunding as rest
    from pay.payments where status = 'chargeback'`;
  assert.ok(rows.length > 2);
  assert.deepEqual(rows.map(({ disputed }) => disputed), rows.map(({ rest }) => rest));
}

async function checkWonDispute(service: FixtureService, key: string): Promise<void> {
  const { id, amount_minor, currency, amount_disputed } = await paymentOf(
    service,
    key,
    "chargeback",
  );
  // Release 1.0.0 had no disputes, and its payments lack this member.
  const disputes = `/api-v1-payments/v1/disputes?payment_id=${id}`;
  const { data } = await service.done("GET", disputes, { key });
  assert.equal(data.length, amount_disputed === undefined ? 0 : 1);
  const won = await service.done("POST", `${SANDBOX}/payments/${id}/advance`, {
    key,
    body: { to: "completed" },
  });
  assertComplete(won);
  assert.deepEqual([won.status, won.amount_disputed, won.amount_captured], [
    "completed",
    0,
    amount_minor,
  ]);
  const [movement] = await service.sql`
    select kind, debit_account, credit_account, amount_minor, currency from pay.ledger_movements
    where subject_id = ${id} order by transaction_id desc limit 1`;
  assert.deepEqual({ ...movement }, {
    kind: "chargeback_reversal",
    debit_account: "chargebacks",
    credit_account: "available",
    amount_minor: String(amount_minor),
    currency,
  });
}

async function checkRefund(service: FixtureService, key: string): Promise<void> {
  const { id, amount_minor } = await paymentOf(service, key, "completed");
  await service.done("POST", `${PAYMENTS}/${id}/refund`, { key, body: { amount: 400 } });
  const paid = await service.done("GET", `${PAYMENTS}/${id}`, { key });
  assertComplete(paid);
  const { status, amount_refunded, amount_refunding, amount_captured } = paid;
  assert.deepEqual(
    { status, amount_refunded, amount_refunding, amount_captured },
    {
      status: "partially_refunded",
      amount_refunded: 400,
      amount_refunding: 0,
      amount_captured: amount_minor,
    },
  );
  assert.deepEqual(await newestEvents(service, id, 3), [
    "refund.created",
    "refund.completed",
    "payment.partially_refunded",
  ]);
}

async function checkCancel(service: FixtureService, key: string): Promise<void> {
  const { id } = await paymentOf(service, key, "requires_action");
  const cancelled = await service.done("POST", `${PAYMENTS}/${id}/cancel`, { key });
  assertComplete(cancelled);
  const { status, amount_captured, capture, settlement } = cancelled;
  assert.deepEqual({ status, amount_captured, capture, settlement }, {
    status: "cancelled",
    amount_captured: 0,
    capture: "automatic",
    settlement: "instant",
  });
}

async function checkOldRefund(service: FixtureService, key: string): Promise<void> {
  const { data } = await service.done("GET", `${REFUNDS}?limit=100`, { key });
  // Refunds of one millisecond have no order.
  const { id } = data.findLast((refund: Refund) => refund.status === "completed");
  const { text } = await service.call("GET", `${REFUNDS}/${id}`, { key });
  const path = `${SANDBOX}/refunds/${id}/advance`;
  const same = await service.call("POST", path, { key, body: { to: "completed" } });
  assert.deepEqual([same.status, same.text], [200, text]);
  const failed = await service.call("POST", path, { key, body: { to: "failed" } });
  assert.equal(failed.body.error.code, "invalid_state", failed.text);
}

async function checkOldFunctions(
  service: FixtureService,
  key: string,
  at_ms: number,
): Promise<void> {
  const commit = async (change: OldChange, is_new = false) => {
    const { outcome, payment } = await commitAsOld(service.sql, { key, at_ms, is_new }, change);
    assert.equal(outcome, "committed");
    const { text } = await service.call("GET", `${PAYMENTS}/${payment.id}`, { key });
    assert.equal(text, JSON.stringify(payment), "the row keeps the body of the old functions");
    return payment;
  };
  const old = await paymentOf(service, key, "completed");
  const { amount_minor } = old;
  const capture: OldChange["ledger"][number] = ["capture", "processor", "available", amount_minor];
  const created = () => ({ ...old, id: idMint(at_ms)("pay_") });
  await commit({
    payment: created(),
    members: { status: "completed" },
    events: ["payment.created", "payment.completed"],
    ledger: [capture],
  }, true);
  await commit({
    payment: created(),
    members: { status: "chargeback" },
    events: ["payment.created", "payment.completed", "payment.chargeback"],
    ledger: [capture, ["chargeback", "available", "chargebacks", amount_minor]],
  }, true);
  const partly = await commit({
    payment: old,
    members: { status: "partially_refunded", amount_refunded: 400 },
    events: ["refund.completed", "payment.partially_refunded"],
    refunded: 400,
    ledger: [["refund", "available", "processor", 400]],
  });
  const disputed = await commit({
    payment: partly,
    members: { status: "chargeback" },
    events: ["payment.chargeback"],
    ledger: [["chargeback", "available", "chargebacks", amount_minor - 400]],
  });
  const won = await service.done("POST", `${SANDBOX}/payments/${disputed.id}/advance`, {
    key,
    body: { to: "partially_refunded" },
  });
  assertComplete(won);
  assert.deepEqual([won.amount_disputed, won.amount_refunded], [0, 400]);
}

/** Asserts that a payment has every member. */
function assertComplete(payment: Record<string, unknown>): void {
  assert.deepEqual(Object.keys(payment).sort(), Object.keys(Payment.shape).sort());
}

async function newestEvents({ sql }: FixtureService, id: string, count: number): Promise<string[]> {
  const events = await sql<{ type: string }[]>`
    select type from pay.events where subject_id = ${id} order by sequence desc limit ${count}`;
  return events.map(({ type }) => type).reverse();
}
