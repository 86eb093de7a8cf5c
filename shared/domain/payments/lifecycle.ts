/**
 * The lifecycles of payments and transfers: the statuses that can follow each status (contract §2,
 * contract §3). All moves check here first. Pure.
 */

import { ApiError } from "../../core/errors.ts";
import type { MethodKind, Payment, PaymentStatus } from "../../schema/payment.ts";
import type { Transfer, TransferStatus } from "../../schema/transfer.ts";

/** Statuses to which `advance` can move a payment, by its current status. */
const ADVANCES: Record<PaymentStatus, readonly PaymentStatus[]> = {
  pending: ["requires_action", "processing", "completed", "declined", "failed", "cancelled"],
  requires_action: ["completed", "declined", "failed"],
  processing: ["completed", "declined", "failed"],
  completed: ["partially_refunded", "refunded", "chargeback"],
  partially_refunded: ["refunded", "chargeback"],
  declined: [],
  failed: [],
  cancelled: [],
  refunded: [],
  chargeback: [],
};

/** Statuses in which a payment can be cancelled: no money has moved and none is in transit. */
export const CANCELLABLE_STATUSES: readonly PaymentStatus[] = ["pending", "requires_action"];

/** Rails on which the bank can return a completed payment. */
const RETURNABLE: ReadonlySet<MethodKind> = new Set(["sepa", "swift"]);

/** The fields of a payment that decide its moves. */
export type Standing = Pick<
  Payment,
  "status" | "method_kind" | "amount_minor" | "amount_refunded"
>;

/** Returns the statuses to which `advance` can move the payment now. */
export function advancesOf(payment: Standing): PaymentStatus[] {
  const next = ADVANCES[payment.status].filter((status) =>
    status !== "partially_refunded" || halfOfRest(payment) > 0
  );
  if (payment.status === "completed" && RETURNABLE.has(payment.method_kind)) next.push("failed");
  return next;
}

/** Returns the statuses that can follow by any request. */
export function nextStatuses(payment: Standing): PaymentStatus[] {
  const next = advancesOf(payment);
  return isCancellable(payment) && !next.includes("cancelled") ? [...next, "cancelled"] : next;
}

/** Reports whether the payment can be cancelled. */
export function isCancellable(payment: Standing): boolean {
  return CANCELLABLE_STATUSES.includes(payment.status);
}

/** Reports whether the payment can be refunded. */
export function isRefundable(payment: Standing): boolean {
  return payment.status === "completed" || payment.status === "partially_refunded";
}

/** Returns the amount that is left to refund, in minor units. */
export function refundable(payment: Standing): number {
  return payment.amount_minor - payment.amount_refunded;
}

/** Returns the amount that an advance to `partially_refunded` refunds: half of the rest. */
export function halfOfRest(payment: Standing): number {
  return Math.floor(refundable(payment) / 2);
}

/** Returns the statuses to which a transfer can move now: only a pending one can move. */
export function transferAdvances(transfer: Pick<Transfer, "status">): TransferStatus[] {
  return transfer.status === "pending" ? ["completed", "failed", "cancelled"] : [];
}

/** Makes the 409 for a move that the status of the transfer does not allow. */
export function invalidTransferState(action: string, transfer: Pick<Transfer, "status">): ApiError {
  return new ApiError(
    "invalid_state",
    `Cannot ${action}: the transfer is ${transfer.status}`,
    { current_status: transfer.status, allowed: transferAdvances(transfer) },
  );
}

/**
 * Makes the 409 for a move that the status of the payment does not allow.
 * @param action the attempted action, such as "cancel"
 * @param allowed the statuses that can follow
 */
export function invalidState(
  action: string,
  payment: Standing,
  allowed: readonly PaymentStatus[],
): ApiError {
  return new ApiError(
    "invalid_state",
    `Cannot ${action}: the payment is ${payment.status}`,
    { current_status: payment.status, allowed },
  );
}
