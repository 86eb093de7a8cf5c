/** pointlessRecord(): the statuses of a payment in which an operation still has something to do. */

import assert from "node:assert/strict";
import { PAYMENT_STATUSES } from "../../shared/core/vocabulary.ts";
import { pointlessRecord } from "../../shared/domain/operations/decide_result.ts";
import type { Operation, ProviderOp } from "../../shared/domain/providers/connector.ts";
import { FIRST_ATTEMPT } from "../support/connectors/stripe_case.ts";
import { paymentWith } from "../support/domain/decided_change.ts";

const ALL = PAYMENT_STATUSES.join(" ");
/** [operation, the statuses in which it is sent in a sandbox, and those in a live environment] */
const ROWS: [op: ProviderOp, sandbox: string, live: string][] = [
  ["authorize", "processing", ALL],
  ["capture", "authorized", ALL],
  ["cancel", ALL, ALL],
  // A payment that was declined or has failed here can still be open at a live provider.
  ["abandon", "requires_action", "requires_action declined failed"],
  ["expire", "authorized", "authorized"],
];

function operationFor(op: ProviderOp, subject: Operation["subject"]): Operation {
  return {
    id: `pc_${"1".repeat(26)}`,
    environment_id: `env_${"1".repeat(26)}`,
    op,
    subject_id: subject.id,
    subject,
    refund_id: null,
    refund: null,
    dispute: null,
    amount_minor: subject.amount_minor,
    currency: subject.currency,
    request: { token: null },
    provider_reference: "pi_1",
    ...FIRST_ATTEMPT,
  };
}

for (const [op, sandbox, live] of ROWS) {
  for (const livemode of [false, true]) {
    Deno.test(`pointlessRecord() of ${op} ${livemode ? "live" : "in a sandbox"}`, () => {
      const sent = PAYMENT_STATUSES.filter((status) =>
        pointlessRecord(operationFor(op, paymentWith({ status, livemode }))) === null
      );
      assert.equal(sent.join(" "), livemode ? live : sandbox);
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
