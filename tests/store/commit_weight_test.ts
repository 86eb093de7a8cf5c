/** The estimated weight of a change, which bounds the text of one statement. */

import assert from "node:assert/strict";
import { charactersOf, commitParameters } from "../../shared/store/commit_statement.ts";
import {
  decideRefund,
  NOW_MS,
  paymentWith,
  requestContext,
} from "../support/domain/decided_change.ts";

const CASES: [name: string, metadata: Record<string, string>][] = [
  ["no metadata", {}],
  ["long metadata", { note: "x".repeat(5_000) }],
  // Each event of such a payment has its whole text before.
  ["long metadata of characters outside of the BMP", { note: "🎉".repeat(2_500) }],
];

for (const [name, metadata] of CASES) {
  Deno.test(`the weight of a refund with ${name} is about that of its text`, () => {
    const payment = paymentWith({ status: "completed", amount_captured: 1000, metadata });
    const change = decideRefund(payment, 100, { amount: 100 }, requestContext());
    const requested = {
      access: { key_hash: "ab".repeat(32), at_ms: NOW_MS },
      change,
      idempotency: null,
      has_quota: false,
    } as unknown as Parameters<typeof charactersOf>[0];
    const [text] = commitParameters([requested], null);
    const share = charactersOf(requested) / String(text).length;
    assert.ok(share > 0.6 && share < 1.2, `${share}`);
  });
}
