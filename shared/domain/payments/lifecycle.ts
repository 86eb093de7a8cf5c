/**
 * The lifecycle of a payment as one table (contract §2): which status can follow which, by what.
 * Pure; everything that moves a payment asks here first.
 */

import { ApiError } from "../../core/errors.ts";
import type { MethodKind, Payment, PaymentStatus } from "../../schema/payment.ts";
import type { Transfer, TransferStatus } from "../../schema/transfer.ts";

/** Statuses that `advance` may ask for, by current status. */
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

/** Rails whose bank can send a completed payment back. */
const RETURNABLE: ReadonlySet<MethodKind> = new Set(["sepa", "swift"]);

/** What a payment must be for a move to be judged. */
export type Standing = Pick<
  Payment,
  "status" | "method_kind" | "amount_minor" | "amount_refunded"
>;

/** Statuses to which `advance` can move the payment now. */
export function advancesOf(payment: Standing): PaymentStatus[] {
  const next = ADVANCES[payment.status].filter((status) =>
    status !== "partially_refunded" || halfOfRest(payment) > 0
  );
  if (payment.status === "completed" && RETURNABLE.has(payment.method_kind)) next.push("failed");
  return next;
}

/** Statuses that can follow by any means. */
export function nextStatuses(payment: Standing): PaymentStatus[] {
  const next = advancesOf(payment);
  return isCancellable(payment) && !next.includes("cancelled") ? [...next, "cancelled"] : next;
}

/** Whether the payment can be cancelled: no money has moved and none is on its way. */
export function isCancellable(payment: Standing): boolean {
  return payment.status === "pending" || payment.status === "requires_action";
}

/** Whether money can be given back. */
export function isRefundable(payment: Standing): boolean {
  return payment.status === "completed" || payment.status === "partially_refunded";
}

/** What is left to refund, in minor units. */
export function refundable(payment: Standing): number {
  return payment.amount_minor - payment.amount_refunded;
}

/** What an advance to `partially_refunded` gives back: half of the rest, rounded down. */
export function halfOfRest(payment: Standing): number {
  return Math.floor(refundable(payment) / 2);
}

/** Statuses to which a transfer can move now; the money is on its way only while it is pending. */
export function transferAdvances(transfer: Pick<Transfer, "status">): TransferStatus[] {
  return transfer.status === "pending" ? ["completed", "failed", "cancelled"] : [];
}

/** The 409 for a move that the transfer's status does not allow. */
export function invalidTransferState(action: string, transfer: Pick<Transfer, "status">): ApiError {
  return new ApiError(
    "invalid_state",
    `Cannot ${action}: the transfer is ${transfer.status}`,
    { current_status: transfer.status, allowed: transferAdvances(transfer) },
  );
}

/**
 * The 409 for a move that the payment's status does not allow.
 * @param action what was attempted, as in "cancel"
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
