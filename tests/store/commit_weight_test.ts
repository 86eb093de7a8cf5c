/** The estimated weight of a change, which bounds the text of one statement. */

import assert from "node:assert/strict";
import {
  ChangeCost,
  commitParameters,
  type RequestedChange,
} from "../../shared/store/commit_statement.ts";
import { refundOf } from "../../shared/domain/payments/refund_payment.ts";
import { decided, NOW_MS, paymentWith, requestContext } from "../support/domain/decided_change.ts";

const CASES: [name: string, metadata: Record<string, string>][] = [
  ["no metadata", {}],
  ["long metadata", { note: "x".repeat(5_000) }],
  // Each event of such a payment has its whole text before.
  ["long metadata of characters outside of the BMP", { note: "🎉".repeat(2_500) }],
];

function requestedWith(metadata: Record<string, string>): RequestedChange {
  const payment = paymentWith({ status: "completed", amount_captured: 1000, metadata });
  const change = decided(refundOf(payment, { amount: 100 }, requestContext()));
  return {
    access: { key_hash: "ab".repeat(32), at_ms: NOW_MS },
    change,
    idempotency: null,
    has_quota: false,
  } as unknown as RequestedChange;
}

for (const [name, metadata] of CASES) {
  Deno.test(`the weight of a refund with ${name} is about that of its text`, () => {
    const requested = requestedWith(metadata);
    const text = commitParameters([requested], null).join();
    const share = new ChangeCost().of(requested) / text.length;
    assert.ok(share > 0.6 && share < 1.2, `${share}`);
  });
}

Deno.test("the weight of a change counts the deliveries that events had of late", () => {
  const requested = requestedWith({});
  const { events } = requested.change;
  const cost = new ChangeCost();
  const without = cost.of(requested);
  cost.learn([requested, requested], [{ deliveries: String(2 * events.length * 64) }]);
  const each = 64 * 200 * events.length;
  assert.equal(cost.of(requested) - without, each);
  cost.learn([requested], [{ deliveries: "0" }]);
  assert.equal(cost.of(requested) - without, 0.75 * each);
  cost.learn([], []);
  assert.equal(cost.of(requested) - without, 0.75 * each, "a list without events tells nothing");
});
