/**
 * The lifecycle table (contract §2): the statuses that can follow each status, on each rail, for
 * any amount.
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
  invalidState,
  isCancellable,
  isRefundable,
  nextStatuses,
  refundable,
  type Standing,
} from "../../shared/domain/payments/lifecycle.ts";
import type { PaymentStatus } from "../../shared/schema/payment.ts";
import { paymentWith } from "../support/domain/decided_change.ts";

/**
 * [status, statuses that an advance can set, further statuses that can follow, possible requests],
 * for a payment with automatic capture.
 */
const ROWS: [PaymentStatus, advances: string, more: string, can: string][] = [
  ["pending", "requires_action processing completed declined failed cancelled", "", "cancel"],
  ["requires_action", "completed declined failed", "cancelled", "cancel"],
  ["processing", "completed declined failed", "", ""],
  ["authorized", "completed failed cancelled", "", "cancel"],
  ["completed", "partially_refunded refunded chargeback", "", "refund"],
  ["partially_refunded", "refunded chargeback", "", "refund"],
  ["declined", "", "", ""],
  ["failed", "", "", ""],
  ["cancelled", "", "", ""],
  ["refunded", "", "", ""],
  ["chargeback", "completed", "", ""],
];

for (const [status, advances, more, can] of ROWS) {
  for (const method_kind of METHOD_KINDS) {
    const can_return = can === "refund" && ["sepa", "swift"].includes(method_kind);
    const expected = [...words(advances), ...(can_return ? ["failed"] : [])].sort();
    const standing = standingOf({ status, method_kind });
    Deno.test(`advancesOf() ${status} by ${method_kind}: ${expected.join(" ") || "none"}`, () => {
      assert.deepEqual(advancesOf(standing).toSorted(), expected);
    });
    Deno.test(`nextStatuses() ${status} by ${method_kind} adds: ${more || "none"}`, () => {
      assert.deepEqual(nextStatuses(standing).toSorted(), [...expected, ...words(more)].sort());
    });
  }
  Deno.test(`isCancellable() and isRefundable() of ${status}: ${can || "neither"}`, () => {
    const standing = standingOf({ status });
    assert.equal(isCancellable(standing), can === "cancel");
    assert.equal(isRefundable(standing), can === "refund");
  });
}

/** Statuses with other rules for a payment with manual capture, and its advances. */
const MANUAL: [PaymentStatus, advances: string][] = [
  ["pending", "requires_action processing authorized declined failed cancelled"],
  ["requires_action", "authorized declined failed"],
  ["processing", "authorized declined failed"],
  ["authorized", "completed failed cancelled"],
];

for (const [status, advances] of MANUAL) {
  Deno.test(`advancesOf() ${status} with manual capture: ${advances}`, () => {
    const standing = standingOf({ status, capture: "manual" });
    assert.deepEqual(advancesOf(standing).toSorted(), words(advances).sort());
  });
}

/** [method kind, status, amount received of 1000 that the payer sends, advances] */
const SENT: [Standing["method_kind"], PaymentStatus, received: number, advances: string][] = [
  ["stablecoin", "pending", 0, "processing completed failed cancelled"],
  ["stablecoin", "processing", 1, "pending completed failed"],
  ["stablecoin", "processing", 1000, "pending completed"],
  ["sepa", "pending", 0, "completed failed cancelled"],
  ["swift", "pending", 1, "completed failed cancelled"],
];

for (const [method_kind, status, amount_received, advances] of SENT) {
  Deno.test(`advancesOf() ${status} by ${method_kind} with ${amount_received} received`, () => {
    const standing = {
      ...standingOf({ status, method_kind }),
      amount_minor: 1000,
      amount_received,
    };
    assert.deepEqual(advancesOf(standing).toSorted(), words(advances).sort());
  });
}

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

Deno.test("invalidState() names the status and the statuses that can follow", () => {
  const standing = standingOf({ status: "processing" });
  const error = invalidState("cancel", standing, nextStatuses(standing));
  assert.deepEqual([error.code, error.status, error.details], ["invalid_state", 409, {
    current_status: "processing",
    allowed: ["completed", "declined", "failed"],
  }]);
});

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
