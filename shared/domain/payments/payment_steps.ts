/**
 * The steps of a payment. Each function adds one event to a change, with its ledger movement
 * (contract §2). `applyEvent` alone takes them. Pure.
 */

import { formatTime } from "../../core/clock.ts";
import { ApiError, type DeclineAdvice, type DeclineCode, USUAL_ADVICE } from "../../core/errors.ts";
import type { FailureCode, NextAction, Payment } from "../../schema/payment.ts";
import type { PaymentStatus } from "../../schema/statuses.ts";
import type { StoredResponse } from "../../store/commit_rows.ts";
import { type ErrorOrigin, renderError } from "../changes/error_body.ts";
import type { PaymentChange } from "../changes/change_builder.ts";
import type { ProviderEvent } from "../providers/connector.ts";
import { STATUSES } from "../payment_statuses.ts";
import { railOf, withTransaction } from "../rails.ts";
import { endMandate, isCollected } from "./collection.ts";
import {
  AUTHENTICATION_WINDOW_MS,
  isOpenDeposit,
  refundStatus,
  settlesAtOnce,
} from "./lifecycle.ts";

const DECLINES: Record<DeclineCode, string> = {
  payment_declined: "The card issuer declined the payment",
  insufficient_funds: "The card has insufficient funds",
  aml_blocked: "The payment was blocked by fraud and money-laundering checks",
  authentication_failed: "The payer failed to authenticate",
  authentication_required: "The issuer wants the payer to authenticate",
};

const FAILURES: Record<FailureCode, string> = {
  bank_return: "The bank returned the payment",
  onchain_reverted: "The transaction was reverted on chain",
  processing_failed: "The payment failed while it was processed",
  expired: "The payer did not pay in time",
  underpaid: "The payer sent less than the amount",
  provider_refused: "The provider refused the payment",
};

/**
 * Time after which an uncaptured authorization ends, unless the provider names one (contract §2).
 */
export const CAPTURE_WINDOW_MS = 7 * 24 * 3_600_000;

/**
 * Shows that the provider works on the payment.
 * @param due_on of a collection, whose provider knows the day
 */
export function process(change: PaymentChange, due_on?: string): void {
  const { method } = change.subject;
  change.addEvent("payment.processing", {
    status: "processing",
    ...(due_on !== undefined && isCollected(method) && { method: { ...method, due_on } }),
  });
}

/** Makes the payment wait for money that the payer sends to a place of its own. */
export function waitForMoney(change: PaymentChange, next_action: NextAction): void {
  change.addEvent("payment.pending", { amount_received: 0, next_action });
}

/**
 * Adds a signed amount to `amount_received`. An open payment gets the status that follows from the
 * sum: it is `processing` while a chain can undo the money. A payment that is over keeps its
 * status.
 */
export function showReceived(change: PaymentChange, signed_minor: number): void {
  const { subject: payment } = change;
  const amount_received = (payment.amount_received ?? 0) + signed_minor;
  const open_status = amount_received > 0 && !settlesAtOnce(payment) ? "processing" : "pending";
  const status = isOpenDeposit(payment) ? open_status : payment.status;
  change.addEvent(`payment.${status}`, { status, amount_received });
}

/**
 * Holds the amount on the card. The ledger moves at the capture.
 * @param capture_before the provider's own time
 */
export function authorize(change: PaymentChange, capture_before?: string): void {
  change.addEvent("payment.authorized", {
    status: "authorized",
    capture_before: capture_before ?? formatTime(change.context.at_ms + CAPTURE_WINDOW_MS),
    next_action: null,
  });
}

/**
 * Completes the payment and captures money in the ledger.
 * @param options.amount_minor less than the amount of the payment releases the rest
 * @param options.tx_hash the provider's id of the transaction, if it tells one
 * @param options.received_minor a last part that the payer has sent
 */
export function complete(
  change: PaymentChange,
  options: {
    amount_minor?: number;
    tx_hash?: string | undefined;
    received_minor?: number;
  } = {},
): void {
  const { method, amount_received } = change.subject;
  const { amount_minor = change.subject.amount_minor, tx_hash, received_minor = 0 } = options;
  if (amount_minor > 0) change.move("capture", amount_minor);
  change.addEvent("payment.completed", {
    status: "completed",
    amount_captured: amount_minor,
    amount_received: amount_received === null ? null : amount_received + received_minor,
    completed_at: change.at,
    next_action: null,
    capture_before: null,
    ...(tx_hash && method && { method: withTransaction(method, railOf(change.subject), tx_hash) }),
  });
}

/** Makes the payment wait for the payer. The worker ends a payment whose payer does nothing. */
export function requireAction(change: PaymentChange, next_action: NextAction): void {
  change.addEvent("payment.requires_action", { status: "requires_action", next_action });
  if (next_action.type === "authenticate") {
    change.addOperation({ op: "abandon", delay_ms: AUTHENTICATION_WINDOW_MS });
  }
}

/**
 * Declines the payment.
 * @param advice the provider's own
 */
export function decline(
  change: PaymentChange,
  code: DeclineCode,
  advice: DeclineAdvice = USUAL_ADVICE[code],
): void {
  change.addEvent("payment.declined", {
    status: "declined",
    failure_code: code,
    failure_message: DECLINES[code],
    advice,
    next_action: null,
  });
}

/** Why a payment, refund or transfer fails. */
export interface Failure {
  code: FailureCode;
  /** Of a bank. */
  return_code?: string | undefined;
  /** True: of a whole file or batch, so that the mandate of the payment stays. */
  is_whole?: boolean;
  /** In place of the usual words of the code. */
  message?: string | undefined;
}

export function failureIn({ failure_code, return_code, reason, bank }: ProviderEvent): Failure {
  const code = failure_code ?? "processing_failed";
  return { code, return_code, message: reason, is_whole: bank?.is_whole ?? false };
}

/**
 * Returns a failure as the resource shows it.
 * @param words of codes that have others than for payments
 */
export function shownFailure(
  { code, return_code, message }: Failure,
  words: Partial<Record<FailureCode, string>> = {},
) {
  const failure_message = message ?? words[code] ?? FAILURES[code];
  return { failure_code: code, failure_message, return_code: return_code ?? null };
}

/**
 * Makes the payment fail. If money was captured, the bank has returned all of it. Its refunds stay,
 * so the merchant has paid them out of the available balance.
 */
export function fail(change: PaymentChange, failure: Failure): void {
  const { amount_captured } = change.subject;
  if (amount_captured > 0) change.move("capture_reversal", amount_captured);
  if (!failure.is_whole) endMandate(change, failure.return_code ?? null);
  change.addEvent("payment.failed", {
    status: "failed",
    ...shownFailure(failure),
    next_action: null,
    capture_before: null,
  });
}

/** Gives the payment a status without money, such as `cancelled`, that needs no other members. */
export function become(change: PaymentChange, status: PaymentStatus): void {
  change.addEvent(`payment.${status}`, {
    status,
    ...(status === "cancelled" && { cancelled_at: change.at }),
    next_action: null,
    ...(STATUSES[status].waits_for !== "capture" && { capture_before: null }),
  });
}

export function chargeBack(change: PaymentChange, amount_minor: number): void {
  change.move("chargeback", amount_minor);
  const amount_disputed = change.subject.amount_disputed + amount_minor;
  change.addEvent("payment.chargeback", { status: "chargeback", amount_disputed });
}

/**
 * Gives back the amount of a dispute that the merchant has won. A payment with another dispute that
 * is open or lost stays charged back.
 */
export function winDispute(change: PaymentChange, amount_minor: number): void {
  const amount_disputed = change.subject.amount_disputed - amount_minor;
  change.move("chargeback_reversal", amount_minor);
  const status = amount_disputed > 0 ? "chargeback" : refundStatus(change.subject);
  change.addEvent(`payment.${status}`, { status, amount_disputed });
}

export function declineResponse(
  payment: Payment,
  code: DeclineCode,
  origin: ErrorOrigin,
): StoredResponse {
  const error = new ApiError(code, DECLINES[code], { advice: payment.advice, payment });
  return { status: error.status, body: renderError(error, origin) };
}
