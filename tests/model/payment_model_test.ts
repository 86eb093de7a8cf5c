/**
 * The model of payments repeats the lifecycle on purpose. The test compares the two, because random
 * steps use only the statuses of the model and cannot notice that one is missing.
 */

import assert from "node:assert/strict";
import { METHOD_KINDS, PAYMENT_STATUSES } from "../../shared/core/vocabulary.ts";
import { TEST_CARDS, TEST_TOKENS } from "../../shared/domain/providers/test_values.ts";
import { normalizeCardNumber } from "../../shared/core/card_number.ts";
import { advancesOf, isCancellable } from "../../shared/domain/payments/lifecycle.ts";
import { INSTRUMENTS } from "../support/model/instruments.ts";
import { expectMove, type Move, type Standing, STATUSES } from "../support/model/payment_model.ts";

Deno.test("STATUSES of the model are the statuses of a payment", () => {
  assert.deepEqual([...STATUSES], [...PAYMENT_STATUSES], "tests/support/model/payment_model.ts");
});

Deno.test("INSTRUMENTS has only test cards and test tokens", () => {
  const numbers = TEST_CARDS.map(({ value }) => normalizeCardNumber(value));
  for (const [name, { body }] of Object.entries(INSTRUMENTS)) {
    const { number, token } = (body["card"] ?? {}) as { number?: string; token?: string };
    if (number !== undefined) assert.ok(numbers.includes(number), name);
    if (token !== undefined) assert.ok(Object.hasOwn(TEST_TOKENS, token), name);
  }
});

const CAPTURED: readonly string[] = ["completed", "partially_refunded", "chargeback"];

for (const status of PAYMENT_STATUSES) {
  Deno.test(`expectMove() from ${status} allows the moves of the lifecycle`, () => {
    for (const [name, payment] of standingsIn(status)) {
      const isAllowed = (move: Move) => expectMove(payment, move).code === null;
      const standing = {
        status,
        method_kind: payment.kind as typeof METHOD_KINDS[number],
        capture: payment.is_captured_later ? "manual" as const : "automatic" as const,
        amount_captured: payment.captured,
        amount_refunded: payment.refunded,
        amount_refunding: payment.refunding,
      };
      const others = PAYMENT_STATUSES.filter((to) => to !== status);
      assert.deepEqual(
        others.filter((to) => isAllowed({ do: "advance", to })),
        others.filter((to) => advancesOf(standing).includes(to)),
        `advance: ${name}`,
      );
      assert.equal(isAllowed({ do: "cancel" }), isCancellable(standing), `cancel: ${name}`);
    }
  });
}

/** The states of payments with a status that the lifecycle can tell apart. */
function* standingsIn(status: string): Generator<[name: string, payment: Standing]> {
  const captured = CAPTURED.includes(status) ? 1_000 : 0;
  const all_refunded = status === "partially_refunded" ? [400] : [0];
  if (status === "chargeback") all_refunded.push(400);
  for (const kind of METHOD_KINDS) {
    for (const is_captured_later of kind === "card" ? [false, true] : [false]) {
      for (const refunded of all_refunded) {
        // No pending refund, one of a part, and one of the rest.
        for (const refunding of captured === 0 ? [0] : [0, 300, captured - refunded]) {
          const payment = {
            ...{ status, kind, is_captured_later, captured, refunded, refunding },
            amount: 1_000,
            refunds_wait: true,
            disputed: 0,
            dispute: null,
            refunds: [],
            sequence: 1,
          };
          yield [JSON.stringify(payment), payment];
        }
      }
    }
  }
}
