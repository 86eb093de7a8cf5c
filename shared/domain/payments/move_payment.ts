/**
 * Decides the moves of an existing payment: capture, cancel, advance and authenticate
 * (contract §2). Pure.
 */

import { formatAmount } from "../../core/currency.ts";
import { type ApiError, invalidParameter } from "../../core/errors.ts";
import { amountOf } from "../../schema/values.ts";

import type {
  AuthenticationResult,
  CapturePaymentBody,
  Payment,
  PaymentStatus,
} from "../../schema/payment.ts";
import type { Change } from "../../store/commit_rows.ts";
import {
  advancesOf,
  halfOfRest,
  invalidState,
  isCancellable,
  isDeposit,
  nextStatuses,
  refundable,
} from "./lifecycle.ts";
import type { Dispute, DisputeReason } from "../../schema/dispute.ts";
import type { RequestContext } from "../changes/event.ts";
import { ChangeBuilder, type PaymentChange } from "../changes/change_builder.ts";
import { advanceDeposit } from "./deposit.ts";
import type { PayerUrls } from "./challenge_url.ts";
import {
  closeDispute,
  disputeTestCard,
  invalidDisputeState,
  isOpen,
  openDispute,
} from "./dispute_payment.ts";
import { addRefund } from "./refund_payment.ts";
import type { ProviderFault } from "../providers/provider_fault.ts";
import { RAIL_FAILURES, transactionHash } from "../providers/sandbox_provider.ts";
import { faultyMove } from "./faulty_moves.ts";
import {
  authorize,
  cancel,
  complete,
  decline,
  declineAnswer,
  fail,
  requireChallenge,
} from "./settlement.ts";

/**
 * Decides a capture of an authorized payment, whole or in part. The rest is released.
 * @param fault the declared fault of the provider; null: none
 */
export function decideCapture(
  payment: Payment,
  body: CapturePaymentBody,
  context: RequestContext,
  fault: ProviderFault | null = null,
): Change {
  const amount_minor = captureAmount(payment, body);
  if (fault) return faultyMove(payment, { op: "capture", amount_minor }, fault, context);
  const change = new ChangeBuilder(payment, context);
  complete(change, { amount_minor });
  disputeTestCard(change);
  return change.finish({ status: 200, body: change.body });
}

/** Returns the amount to capture. Throws `ApiError` if the payment does not allow the capture. */
export function captureAmount(payment: Payment, body: CapturePaymentBody): number {
  if (payment.status !== "authorized") {
    throw invalidState("capture", payment, nextStatuses(payment));
  }
  const amount_minor = amountOf(body) ?? payment.amount_minor;
  if (amount_minor > payment.amount_minor) {
    throw invalidParameter(
      body.amount_minor === undefined ? "amount" : "amount_minor",
      `Only ${payment.amount_minor} is authorized, which is ` +
        `${formatAmount(payment.amount_minor, payment.currency)}: send at most that amount`,
      { amount_capturable: payment.amount_minor },
    );
  }
  return amount_minor;
}

/**
 * Decides a cancel. Throws `invalid_state` if money has moved or is in transit.
 * @param fault the declared fault of the provider; null: none
 */
export function decideCancel(
  payment: Payment,
  context: RequestContext,
  fault: ProviderFault | null = null,
): Change {
  if (!isCancellable(payment)) throw invalidState("cancel", payment, nextStatuses(payment));
  if (fault) {
    const { amount_minor } = payment;
    return faultyMove(payment, { op: "cancel", amount_minor }, fault, context);
  }
  const change = new ChangeBuilder(payment, context);
  cancel(change);
  return change.finish({ status: 200, body: change.body });
}

/** Options of an advance. */
interface AdvanceOptions {
  /** The present dispute of the payment. */
  dispute?: Dispute | null;
  /** The reason of a new dispute. */
  reason?: DisputeReason | undefined;
  /** The amount that the payer of a payment with an address sends now. */
  amount_received?: number | undefined;
}

/**
 * Decides an advance to the status `to`. Returns null if the payment has this status already.
 * @param urls for the URL of a next action
 * @param dispute of a payment that is charged back. Null for other payments, and if it has ended
 *   since the payment was loaded
 */
export function decideAdvance(
  payment: Payment,
  to: PaymentStatus,
  urls: PayerUrls,
  context: RequestContext,
  { dispute = null, reason, amount_received }: AdvanceOptions = {},
): Change | null {
  if (amount_received !== undefined && !isDeposit(payment)) {
    throw invalidParameter(
      "amount_received",
      '"amount_received" is only for payments that are sent to an address: leave it out',
    );
  }
  if (to === payment.status) {
    return amount_received === undefined ? null : receiveMore(payment, amount_received, context);
  }
  const allowed = advancesOf(payment);
  if (!allowed.includes(to)) throw invalidState(`advance to "${to}"`, payment, allowed);
  if (dispute && !isOpen(dispute)) {
    throw invalidDisputeState(`Cannot advance to "${to}": the dispute is lost`, dispute);
  }
  const change = new ChangeBuilder(payment, context);
  if (isDeposit(payment) && isOpenDeposit(payment)) advanceDeposit(change, to, amount_received);
  else if (amount_received !== undefined) throw lateWithMove(payment);
  else if (payment.status === "chargeback") closeDispute(change, dispute, "won");
  else if (to === "chargeback") openDispute(change, reason);
  else advance(change, to, urls);
  return change.finish({ status: 200, body: change.body });
}

/** Adds money to a payment that keeps its status: a further part, or late money. */
function receiveMore(payment: Payment, amount_minor: number, context: RequestContext): Change {
  const change = new ChangeBuilder(payment, context);
  if (payment.status === "processing") {
    advanceDeposit(change, "processing", amount_minor);
    return change.finish({ status: 200, body: change.body });
  }
  // The payment is over, so it stays as it is.
  change.move("unmatched", amount_minor);
  return change.finish({ status: 200, body: JSON.stringify(payment) });
}

function lateWithMove({ status }: Payment): ApiError {
  return invalidParameter(
    "amount_received",
    `The payment is ${status}: to simulate late money, advance it to "${status}"`,
  );
}

function isOpenDeposit({ status }: Payment): boolean {
  return status === "pending" || status === "processing";
}

/** Decides an authentication with the given answer of the payer's bank. */
export function decideAuthenticate(
  payment: Payment,
  result: AuthenticationResult,
  context: RequestContext,
): Change {
  const change = new ChangeBuilder(payment, context);
  authenticate(change, result);
  return change.finish(
    result === "success"
      ? { status: 200, body: change.body }
      : declineAnswer(change.subject, "authentication_failed", context.request_id),
  );
}

/** Applies the answer of the payer's bank. Throws `invalid_state` if the payment waits for none. */
export function authenticate(change: PaymentChange, result: AuthenticationResult): void {
  const { subject: payment } = change;
  if (payment.status !== "requires_action") {
    throw invalidState("authenticate", payment, nextStatuses(payment));
  }
  if (result === "failure") return decline(change, "authentication_failed");
  if (payment.capture === "manual") return authorize(change);
  complete(change);
}

function advance(
  change: PaymentChange,
  to: Exclude<PaymentStatus, "chargeback">,
  urls: PayerUrls,
): void {
  const { subject: payment } = change;
  switch (to) {
    case "authorized":
      return authorize(change);
    case "completed":
      return complete(change, { tx_hash: hashOf(payment) });
    case "requires_action":
      return requireChallenge(change, urls);
    case "processing":
      return change.addEvent("payment.processing", { status: "processing" });
    case "cancelled":
      return cancel(change);
    case "declined":
      return decline(change, "payment_declined");
    case "failed": {
      const { code, return_code } = RAIL_FAILURES[payment.method_kind];
      return fail(change, code, return_code);
    }
    case "refunded":
      return addRefund(change, refundable(payment));
    case "partially_refunded":
      return addRefund(change, halfOfRest(payment));
    case "pending":
      throw new Error("only a payment with an address can be moved to pending");
    default:
      to satisfies never;
  }
}

function hashOf(payment: Payment): string | undefined {
  const { method, amount_minor, currency } = payment;
  return method?.type === "stablecoin"
    ? transactionHash(amount_minor, currency, method.wallet)
    : undefined;
}
