/**
 * `pay.invariant_moves` repeats the lifecycle on purpose. The test makes every move of the
 * lifecycle, and the invariant must find nothing. It uses the real clock, because the invariant
 * skips old payments.
 */

import assert from "node:assert/strict";
import { PAYMENT_STATUSES } from "../../shared/core/vocabulary.ts";
import { nextStatuses } from "../../shared/domain/payments/lifecycle.ts";
import {
  advance,
  APPROVED,
  paymentIn,
  PAYMENTS,
  serviceCase,
} from "../support/service/service_case.ts";

/** Statuses of a payment before its capture, which the capture method changes. */
const OPEN: readonly string[] = ["pending", "requires_action", "processing", "authorized"];
const CAPTURED_LATER = { ...APPROVED.card, capture: "manual" };

serviceCase("pay.invariant_moves accepts every move of the lifecycle", async (_t, service) => {
  for (const from of PAYMENT_STATUSES) {
    const bodies = [
      ...from === "authorized" ? [] : [APPROVED.sepa],
      ...OPEN.includes(from) ? [CAPTURED_LATER] : [],
    ];
    for (const body of bodies) {
      const first = await paymentIn(service, from, body);
      for (const to of nextStatuses(first)) {
        const { id } = await paymentIn(service, from, body);
        const response = to === "cancelled"
          ? await service.call("POST", `${PAYMENTS}/${id}/cancel`)
          : await advance(service, id, to);
        assert.equal(response.status, 200, `${from} → ${to}: ${response.text}`);
      }
    }
  }
  const breaches = await service.sql`select distinct detail from pay.invariant_moves`;
  assert.deepEqual(
    breaches.map(({ detail }) => detail),
    [],
    "supabase/schemas/invariants_records.sql does not allow these moves",
  );
});
