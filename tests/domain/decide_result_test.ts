/**
 * Operations: the statuses of a payment in which one still has something to do, the events that are
 * recorded with its result, and replies that are refused or not known.
 */

import assert from "node:assert/strict";
import { PAYMENT_STATUSES } from "../../shared/core/vocabulary.ts";
import { decideResult, pointlessRecord } from "../../shared/domain/operations/decide_result.ts";
import { STATUSES, type WaitsFor } from "../../shared/domain/payment_statuses.ts";
import type { ProviderOp, ProviderReply } from "../../shared/domain/providers/connector.ts";
import { eventOf } from "../../shared/domain/providers/operation.ts";
import type { PaymentStatus } from "../../shared/schema/statuses.ts";
import { operationFor } from "../support/domain/applied_event.ts";
import {
  NOW_MS,
  paymentWith,
  requestContext,
  transferWith,
} from "../support/domain/decided_change.ts";

const ALL = PAYMENT_STATUSES;
const waitingFor = (step: WaitsFor) =>
  PAYMENT_STATUSES.filter((status) => STATUSES[status].waits_for === step);
const ASKED = waitingFor("authentication");
const HELD = waitingFor("capture");
/** [operation, the statuses in which it is sent in a sandbox, and those in a live environment] */
const ROWS: [op: ProviderOp, ...sent: (readonly PaymentStatus[])[]][] = [
  ["authorize", waitingFor("result"), ALL],
  ["capture", HELD, ALL],
  ["cancel", ALL, ALL],
  // A payment that was declined or has failed here can still be open at a live provider.
  ["abandon", ASKED, [...ASKED, "declined", "failed"]],
  ["expire", HELD, HELD],
];

for (const [op, ...expected] of ROWS) {
  for (const livemode of [false, true]) {
    Deno.test(`pointlessRecord() of ${op} ${livemode ? "live" : "in a sandbox"}`, () => {
      const sent = PAYMENT_STATUSES.filter((status) =>
        pointlessRecord(operationFor(op, paymentWith({ status, livemode }))) === null
      );
      assert.deepEqual(sent, expected[Number(livemode)]);
    });
  }
}

Deno.test("pointlessRecord() settles the operation and changes nothing else", () => {
  const record = pointlessRecord(operationFor("expire", paymentWith({ status: "cancelled" })));
  assert.deepEqual(record, {
    environment_id: `env_${"1".repeat(26)}`,
    operation_id: `pc_${"1".repeat(26)}`,
    operation: { state: "settled", last_reply: "not sent: it is cancelled" },
    provider_events: [],
    change: null,
    response: null,
  });
});

/** [status of a live payment whose authorization succeeds, outcome of the fee beside it] */
const FEES: [PaymentStatus, outcome: string | null][] = [
  ["processing", "applied"],
  // Nothing happens, so the worker records the fee: it can be booked already.
  ["completed", null],
];
for (const [status, outcome] of FEES) {
  Deno.test(`decideResult() of a success with its fee for a ${status} payment: ${outcome}`, () => {
    const operation = operationFor("authorize", paymentWith({ status, livemode: true }));
    const told = (op: "authorize" | "fee", amount_minor: number) => ({
      ...eventOf(operation, "succeeded", { op, amount_minor }),
      account_id: "pac_1",
    });
    const reply = { provider_events: [told("authorize", 1000), told("fee", 40)] } as ProviderReply;
    const { record } = decideResult(operation, reply, requestContext(true));
    assert.equal(record.provider_events[1]!.outcome, outcome);
    const kinds = record.change?.ledger.map(({ kind }) => kind) ?? [];
    assert.deepEqual(kinds, outcome === "applied" ? ["capture", "fee"] : []);
  });
}

const CARD = paymentWith({ status: "processing", livemode: true, amount_captured: 0 });
const HOUR_MS = 3_600_000;
/** [reply, age of the operation, its state afterwards] */
const UNKNOWN: [ProviderReply, age_ms: number, "pending" | "operator"][] = [
  [{ absent: true }, HOUR_MS, "pending"],
  [{ absent: true }, HOUR_MS + 1, "operator"],
  [{ unknown: "timeout", may_repeat: true }, HOUR_MS + 1, "pending"],
  [{ unknown: "timeout", may_repeat: true }, 7 * 24 * HOUR_MS, "pending"],
  [{ unknown: "timeout", may_repeat: true }, 7 * 24 * HOUR_MS + 1, "operator"],
];
for (const [reply, age_ms, state] of UNKNOWN) {
  Deno.test(`decideResult() of ${JSON.stringify(reply)} after ${age_ms} ms: ${state}`, () => {
    const created_at = new Date(NOW_MS - age_ms).toISOString();
    const operation = operationFor("authorize", CARD, { created_at });
    const { record } = decideResult(operation, reply, requestContext(true));
    assert.equal(record.operation!.state, state);
  });
}

for (
  const [subject, param, has_payment] of [
    [CARD, "card.token", true],
    [CARD, undefined, true],
    [transferWith({}), undefined, false],
  ] as const
) {
  Deno.test(`decideResult() of a refused ${subject.object}: the field ${param} is told`, () => {
    const op = subject === CARD ? "authorize" : "transfer";
    const refused: ProviderReply = {
      refused: "provider_refused",
      message: "No",
      ...(param && { param }),
    };
    const { response } = decideResult(
      operationFor(op, subject, { decline_is_error: true }),
      refused,
      requestContext(true),
    );
    const { error } = JSON.parse(response.body);
    assert.equal(error.param, param);
    assert.equal("payment" in error, has_payment);
  });
}
