/** The operations of live keys for programs that have no live keys. */

import type { LivePayments } from "../shared/domain/payments/payments.ts";

/** Operations that refuse every request. */
export const NO_LIVE_PAYMENTS: LivePayments = {
  create: refuse,
  capture: refuse,
  cancel: refuse,
  refund: refuse,
  submitEvidence: refuse,
  acceptDispute: refuse,
};

function refuse(): never {
  throw new Error("the benchmark has no live keys here");
}
