/**
 * The model of payments repeats the lifecycle on purpose. The test compares the two, because random
 * steps use only the statuses of the model and cannot notice that one is missing.
 */

import assert from "node:assert/strict";
import { METHOD_KINDS, PAYMENT_STATUSES } from "../../shared/core/vocabulary.ts";
import { advancesOf, isCancellable } from "../../shared/domain/payments/lifecycle.ts";
import { expectMove, type Move, STATUSES } from "../../torture/payment_model.ts";

Deno.test("STATUSES of the model are the statuses of a payment", () => {
  assert.deepEqual([...STATUSES], [...PAYMENT_STATUSES], "torture/payment_model.ts");
});

for (const status of PAYMENT_STATUSES) {
  Deno.test(`expectMove() from ${status} allows the moves of the lifecycle`, () => {
    for (const kind of METHOD_KINDS) {
      const amounts = { amount: 1000, refunded: status === "partially_refunded" ? 400 : 0 };
      const isAllowed = (move: Move) =>
        expectMove({ status, kind, sequence: 1, ...amounts }, move).code === null;
      const standing = {
        status,
        method_kind: kind,
        amount_minor: amounts.amount,
        amount_refunded: amounts.refunded,
      };
      const others = PAYMENT_STATUSES.filter((to) => to !== status);
      assert.deepEqual(
        others.filter((to) => isAllowed({ do: "advance", to })),
        others.filter((to) => advancesOf(standing).includes(to)),
        `advance by ${kind}`,
      );
      assert.equal(isAllowed({ do: "cancel" }), isCancellable(standing), `cancel by ${kind}`);
    }
  });
}
