/**
 * The lifecycles of payments and transfers: what can follow for a payment, by its status, and for a
 * transfer (contract §2, contract §3). All moves check here first. Pure.
 */

import { ApiError } from "../../core/errors.ts";
import { CHECKS_TO_APPROVE } from "../../core/vocabulary.ts";
import type { PayeeCheck } from "../../schema/bank_account.ts";
import type { Payment } from "../../schema/payment.ts";
import type { PaymentStatus, TransferStatus } from "../../schema/statuses.ts";
import type { Transfer } from "../../schema/transfer.ts";
import { hasMoney, type Mover, type Standing, STATUSES } from "../payment_statuses.ts";
import { railOf, RAILS } from "../rails.ts";

/** Statuses in which a payment can be cancelled: no money has moved and none is in transit. */
export const CANCELLABLE_STATUSES = Object.entries(STATUSES)
  .filter(([, { moves: { cancelled = "only a provider" } }]) => cancelled !== "only a provider")
  .map(([status]) => status as PaymentStatus);

/** Time after which a payment ends whose payer does not authenticate (contract §2). */
export const AUTHENTICATION_WINDOW_MS = 24 * 3_600_000;

export function isUnsuccessful({ status }: Pick<Payment | Transfer, "status">): boolean {
  return status === "declined" || status === "failed";
}

export function canBecome(payment: Standing, status: PaymentStatus): boolean {
  return STATUSES[payment.status].moves[status] !== undefined;
}

/** Returns the statuses to which `advance` can move the payment now. */
export function advancesOf(payment: Standing): PaymentStatus[] {
  if (isDeposit(payment)) {
    if (payment.status === "pending") {
      return settlesAtOnce(payment)
        ? ["completed", "failed", "cancelled"]
        : ["processing", "completed", "failed", "cancelled"];
    }
    if (payment.status === "processing") {
      // The whole amount has arrived, so only the chain decides.
      return missingAmount(payment) > 0
        ? ["pending", "completed", "failed"]
        : ["pending", "completed"];
    }
  }
  const moves = Object.entries(STATUSES[payment.status].moves) as [PaymentStatus, Mover][];
  return moves.filter(([, mover]) => typeof mover === "function" && mover(payment))
    .map(([next]) => next);
}

/** Reports whether money that the payer sends is final when the provider reports it. */
export function settlesAtOnce({ method_kind }: Pick<Standing, "method_kind">): boolean {
  return RAILS[method_kind].payer_sends?.settles !== "when_final";
}

/** A payment that the payer sends: to an address of its own, or with a reference of its own. */
export type Deposit = { amount_minor: number; amount_received: number };

/**
 * Reports whether the payer sends the payment, by a bank transfer or to an address on a chain.
 * `amount_received` is not null for these payments and for no others.
 */
export function isDeposit<T extends Pick<Standing, "amount_received">>(
  payment: T,
): payment is T & Deposit {
  return (payment.amount_received ?? null) !== null;
}

export function isOpenDeposit({ status }: Pick<Standing, "status">): boolean {
  const { waits_for } = STATUSES[status];
  return waits_for === "money" || waits_for === "result";
}

/** Returns the amount that the payer has not sent yet, in minor units. */
export function missingAmount({ amount_minor, amount_received }: Deposit): number {
  return Math.max(amount_minor - amount_received, 0);
}

/** Returns the statuses that can follow by any request. */
export function nextStatuses(payment: Standing): PaymentStatus[] {
  const next = advancesOf(payment);
  return isCancellable(payment) && !next.includes("cancelled") ? [...next, "cancelled"] : next;
}

export function isCancellable(payment: Standing): boolean {
  return CANCELLABLE_STATUSES.includes(payment.status);
}

/** Reports whether the provider still has to say what becomes of the payment. */
export function isProcessing({ status }: Standing): boolean {
  return STATUSES[status].waits_for === "result";
}

export function isCapturable({ status }: Pick<Payment, "status">): boolean {
  return STATUSES[status].waits_for === "capture";
}

export function isRefundable(payment: Standing): boolean {
  return hasMoney(payment) &&
    (payment.status === "completed" || payment.status === "partially_refunded");
}

/** Reports whether the bank can take back the money of the payment, refunded or not. */
export function canBeReturned(payment: Standing): boolean {
  return isRefundable(payment) || payment.status === "refunded";
}

/** Returns the status of a payment whose money is captured and not disputed. */
export function refundStatus(
  { amount_captured, amount_refunded }: Pick<Standing, "amount_captured" | "amount_refunded">,
): "completed" | "partially_refunded" | "refunded" {
  if (amount_refunded === 0) return "completed";
  return amount_refunded === amount_captured ? "refunded" : "partially_refunded";
}

/** A result of the verification of a payee with which a payout waits for an operator. */
export type CheckToApprove = typeof CHECKS_TO_APPROVE[number];

/** Reports whether a payout with this result waits until an operator approves it (contract §3). */
export function needsApproval(payee_check: PayeeCheck | null): payee_check is CheckToApprove {
  const checks: readonly (PayeeCheck | null)[] = CHECKS_TO_APPROVE;
  return checks.includes(payee_check);
}

/** Returns the statuses to which a transfer can move now. A bank can return one that completed. */
export function transferAdvances(
  transfer: Pick<Transfer, "object" | "status" | "destination" | "currency">,
): TransferStatus[] {
  const { status } = transfer;
  if (status === "pending") return ["completed", "failed", "cancelled"];
  return status === "completed" && railOf(transfer).returns !== null ? ["failed"] : [];
}

/** Makes the 409 for a move that the status of the transfer does not allow. */
export function invalidTransferState(action: string, transfer: Transfer): ApiError {
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
    `Cannot ${action}: the payment ${
      payment.amount_minor === 0 ? "has the amount 0 and " : ""
    }is ` +
      payment.status,
    { current_status: payment.status, allowed },
  );
}
