/**
 * The statuses of a payment: everything that differs between them (contract §2). No rule elsewhere
 * lists statuses, and `deno task generate` writes the lists of the database. A new status without a
 * row is a type error. Pure.
 */

import type { Payment } from "../schema/payment.ts";
import type { PaymentStatus } from "../schema/statuses.ts";
import { RAILS } from "./rails.ts";

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

/** The payments that an advance moves, or who moves them in its place. */
export type Mover = ((payment: Standing) => boolean) | "only a cancel" | "only a provider";
const always = () => true;
const isAutomatic = ({ capture }: Standing) => capture === "automatic";
const isManual = ({ capture }: Standing) => capture === "manual";
const canBeDisputed = (payment: Standing) => refundable(payment) > 0;
/** A payment of 0 has no money that could go back. */
export const hasMoney = ({ amount_captured }: Standing) => amount_captured > 0;
const hasNoPendingRefund = (payment: Standing) =>
  payment.amount_refunding === 0 && hasMoney(payment);
const isOnRailWithReturns = (payment: Standing) =>
  RAILS[payment.method_kind].returns !== null && hasMoney(payment);

/** The step that comes next. At `result` the payer can still send money to an address. */
export type WaitsFor = "money" | "authentication" | "result" | "capture" | "evidence";

interface StatusRules {
  waits_for: WaitsFor | null;
  /** Null: the payment is open. */
  result: "paid" | "unpaid" | null;
  /**
   * Statuses that can follow, for some payment. `advancesOf` has the advances of a payment that the
   * payer sends. Money that a provider moves after a refund is not here: a refund that fails, and a
   * dispute or a return of a refunded payment.
   */
  moves: Partial<Record<PaymentStatus, Mover>>;
}

export const STATUSES: Readonly<Record<PaymentStatus, StatusRules>> = {
  pending: {
    ...{ waits_for: "money", result: null },
    moves: {
      requires_action: always,
      processing: always,
      authorized: isManual,
      completed: isAutomatic,
      declined: always,
      failed: always,
      cancelled: always,
    },
  },
  requires_action: {
    ...{ waits_for: "authentication", result: null },
    moves: {
      processing: "only a provider",
      authorized: isManual,
      completed: isAutomatic,
      declined: always,
      failed: always,
      cancelled: "only a cancel",
    },
  },
  processing: {
    ...{ waits_for: "result", result: null },
    moves: {
      // Only of a payment to an address: the chain has undone its transfers.
      pending: "only a provider",
      requires_action: "only a provider",
      authorized: isManual,
      completed: isAutomatic,
      declined: always,
      failed: always,
      cancelled: "only a provider",
    },
  },
  authorized: {
    ...{ waits_for: "capture", result: null },
    moves: { completed: always, failed: always, cancelled: always },
  },
  completed: {
    ...{ waits_for: null, result: "paid" },
    moves: {
      partially_refunded: (payment) => halfOfRest(payment) > 0,
      refunded: hasNoPendingRefund,
      chargeback: canBeDisputed,
      failed: isOnRailWithReturns,
    },
  },
  partially_refunded: {
    ...{ waits_for: null, result: "paid" },
    moves: {
      partially_refunded: "only a provider",
      refunded: hasNoPendingRefund,
      chargeback: canBeDisputed,
      failed: isOnRailWithReturns,
    },
  },
  chargeback: {
    ...{ waits_for: "evidence", result: "paid" },
    // A dispute that the merchant has won gives the money back.
    moves: {
      completed: ({ amount_refunded }) => amount_refunded === 0,
      partially_refunded: ({ amount_refunded }) => amount_refunded > 0,
    },
  },
  declined: { waits_for: null, result: "unpaid", moves: {} },
  failed: { waits_for: null, result: "unpaid", moves: {} },
  cancelled: { waits_for: null, result: "unpaid", moves: {} },
  refunded: { waits_for: null, result: "paid", moves: {} },
};

/** Returns the captured amount less completed and pending refunds, in minor units. */
export function refundable(payment: Standing): number {
  return payment.amount_captured - payment.amount_refunded - payment.amount_refunding;
}

/** Returns the amount that an advance to `partially_refunded` refunds: half of the rest. */
export function halfOfRest(payment: Standing): number {
  return Math.floor(refundable(payment) / 2);
}
