/**
 * The advances of a payment by its amounts, and the statuses that nothing follows (contract §2).
 * move_payment_test.ts has the statuses that can follow each status on each rail.
 */

import assert from "node:assert/strict";
import {
  FINAL_PAYMENT_STATUSES,
  METHOD_KINDS,
  PAYMENT_STATUSES,
} from "../../shared/core/vocabulary.ts";
import {
  advancesOf,
  halfOfRest,
  nextStatuses,
  refundable,
  type Standing,
} from "../../shared/domain/payments/lifecycle.ts";
import { paymentWith } from "../support/domain/decided_change.ts";

/** [members of a SEPA payment of 1000, its advances] */
const HELD: [Partial<Standing>, advances: string][] = [
  [{ status: "completed", amount_refunding: 1 }, "partially_refunded chargeback failed"],
  [{ status: "completed", amount_refunding: 999 }, "chargeback failed"],
  [{ status: "completed", amount_refunding: 1000 }, "failed"],
  [{ status: "completed", amount_captured: 1 }, "refunded chargeback failed"],
  [{ status: "partially_refunded", amount_refunding: 1 }, "chargeback failed"],
  [{ status: "partially_refunded", amount_refunding: 600 }, "failed"],
  [{ status: "chargeback", amount_refunding: 300 }, "completed"],
  [{ status: "chargeback", amount_refunded: 1 }, "partially_refunded"],
];

for (const [members, advances] of HELD) {
  Deno.test(`advancesOf() ${JSON.stringify(members)}: ${advances || "none"}`, () => {
    const standing = standingOf({ method_kind: "sepa", ...members });
    assert.deepEqual(advancesOf(standing).toSorted(), words(advances).sort());
  });
}

Deno.test("FINAL_PAYMENT_STATUSES are the statuses that nothing follows on any rail", () => {
  const final = PAYMENT_STATUSES.filter((status) =>
    METHOD_KINDS.every((method_kind) =>
      nextStatuses(standingOf({ status, method_kind })).length === 0
    )
  );
  assert.deepEqual(final, [...FINAL_PAYMENT_STATUSES]);
});

const RESTS: [amount_captured: number, amount_refunded: number, rest: number, half: number][] = [
  [1000, 0, 1000, 500],
  [1000, 400, 600, 300],
  [1000, 999, 1, 0],
  [999, 0, 999, 499],
  [1, 0, 1, 0],
  [2, 0, 2, 1],
  [3, 1, 2, 1],
  [999_999_999_999, 0, 999_999_999_999, 499_999_999_999],
];

for (const [amount_captured, amount_refunded, rest, half] of RESTS) {
  Deno.test(`halfOfRest() of ${amount_captured} less ${amount_refunded} is ${half}`, () => {
    for (const held of [{ amount_refunded }, { amount_refunding: amount_refunded }]) {
      const standing = standingOf({ status: "completed", amount_captured, ...held });
      assert.equal(refundable(standing), rest);
      assert.equal(halfOfRest(standing), half);
      assert.equal(advancesOf(standing).includes("partially_refunded"), half > 0);
    }
  });
}

/** Returns the standing of a card payment of 1000, of which 400 are refunded if a part is. */
function standingOf(members: Partial<Standing>): Standing {
  const { status, method_kind, capture, amount_captured, amount_refunded, amount_refunding } =
    paymentWith(members);
  return {
    status,
    method_kind,
    capture,
    amount_captured,
    amount_refunded: members.status === "partially_refunded" ? 400 : amount_refunded,
    amount_refunding,
  };
}

function words(text: string): string[] {
  return text.split(" ").filter(Boolean);
}
