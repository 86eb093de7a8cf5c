/**
 * The lifecycles of payments and transfers: the statuses that can follow each status (contract §2,
 * contract §3). All moves check here first. Pure.
 */

import { ApiError } from "../../core/errors.ts";
import { CHECKS_TO_APPROVE } from "../../core/vocabulary.ts";
import type { PayeeCheck } from "../../schema/bank_account.ts";
import type { Payment, PaymentStatus } from "../../schema/payment.ts";
import type { Transfer, TransferStatus } from "../../schema/transfer.ts";
import { railOf, RAILS } from "../rails.ts";

/** The payments that an advance moves, or who moves them in its place. */
type Mover = ((payment: Standing) => boolean) | "only a cancel" | "only a provider";
const always = () => true;
const isAutomatic = ({ capture }: Standing) => capture === "automatic";
const isManual = ({ capture }: Standing) => capture === "manual";
const canBeDisputed = (payment: Standing) => refundable(payment) > 0;
/** A payment of 0 has no money that could go back. */
const hasMoney = ({ amount_captured }: Standing) => amount_captured > 0;
const hasNoPendingRefund = (payment: Standing) =>
  payment.amount_refunding === 0 && hasMoney(payment);
const isOnRailWithReturns = (payment: Standing) =>
  RAILS[payment.method_kind].returns !== null && hasMoney(payment);

/**
 * Statuses that can follow each status, for some payment (contract §2). `advancesOf` has the
 * advances of a payment that the payer sends. Money that a provider moves after a refund is not in
 * the table: a refund that fails, and a dispute or a return of a refunded payment.
 */
const MOVES: Record<PaymentStatus, Partial<Record<PaymentStatus, Mover>>> = {
  pending: {
    requires_action: always,
    processing: always,
    authorized: isManual,
    completed: isAutomatic,
    declined: always,
    failed: always,
    cancelled: always,
  },
  requires_action: {
    processing: "only a provider",
    authorized: isManual,
    completed: isAutomatic,
    declined: always,
    failed: always,
    cancelled: "only a cancel",
  },
  processing: {
    // Only of a payment to an address: the chain has undone its transfers.
    pending: "only a provider",
    requires_action: "only a provider",
    authorized: isManual,
    completed: isAutomatic,
    declined: always,
    failed: always,
    cancelled: "only a provider",
  },
  authorized: { completed: always, failed: always, cancelled: always },
  completed: {
    partially_refunded: (payment) => halfOfRest(payment) > 0,
    refunded: hasNoPendingRefund,
    chargeback: canBeDisputed,
    failed: isOnRailWithReturns,
  },
  partially_refunded: {
    partially_refunded: "only a provider",
    refunded: hasNoPendingRefund,
    chargeback: canBeDisputed,
    failed: isOnRailWithReturns,
  },
  // A dispute that the merchant has won gives the money back.
  chargeback: {
    completed: ({ amount_refunded }) => amount_refunded === 0,
    partially_refunded: ({ amount_refunded }) => amount_refunded > 0,
  },
  declined: {},
  failed: {},
  cancelled: {},
  refunded: {},
};

/** Statuses in which a payment can be cancelled: no money has moved and none is in transit. */
export const CANCELLABLE_STATUSES = Object.entries(MOVES)
  .filter(([, { cancelled = "only a provider" }]) => cancelled !== "only a provider")
  .map(([status]) => status as PaymentStatus);

/** Whether a payment is open: for money that the payer sends, or for a result of the provider. */
const OPEN_FOR: Record<PaymentStatus, "money" | "money or a result" | null> = {
  pending: "money",
  requires_action: null,
  processing: "money or a result",
  authorized: null,
  completed: null,
  declined: null,
  failed: null,
  cancelled: null,
  partially_refunded: null,
  refunded: null,
  chargeback: null,
};

/** Time after which a payment ends whose payer does not authenticate (contract §2). */
export const AUTHENTICATION_WINDOW_MS = 24 * 3_600_000;

/** Reports whether the provider has declined the payment, or the payment has failed. */
export function isUnsuccessful({ status }: Pick<Payment | Transfer, "status">): boolean {
  return status === "declined" || status === "failed";
}

/** The fields of a payment that decide its moves. */
export type Standing =
  & Pick<
    Payment,
    | "status"
    | "method_kind"
    | "capture"
    | "amount_captured"
    | "amount_refunded"
    | "amount_refunding"
  >
  & Partial<Pick<Payment, "amount_minor" | "amount_received">>;

/** Reports whether a status can follow the status of the payment. */
export function canBecome(payment: Standing, status: PaymentStatus): boolean {
  return MOVES[payment.status][status] !== undefined;
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
  const moves = Object.entries(MOVES[payment.status]) as [PaymentStatus, Mover][];
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

/** Reports whether a payment that the payer sends waits for money. */
export function isOpenDeposit({ status }: Pick<Standing, "status">): boolean {
  return OPEN_FOR[status] !== null;
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

/** Reports whether the payment can be cancelled. */
export function isCancellable(payment: Standing): boolean {
  return CANCELLABLE_STATUSES.includes(payment.status);
}

/** Reports whether the provider still has to say what becomes of the payment. */
export function isProcessing({ status }: Standing): boolean {
  return OPEN_FOR[status] === "money or a result";
}

/** Reports whether the payment can be refunded. */
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

/** Returns the captured amount less completed and pending refunds, in minor units. */
export function refundable(payment: Standing): number {
  return payment.amount_captured - payment.amount_refunded - payment.amount_refunding;
}

/** Returns the amount that an advance to `partially_refunded` refunds: half of the rest. */
export function halfOfRest(payment: Standing): number {
  return Math.floor(refundable(payment) / 2);
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
