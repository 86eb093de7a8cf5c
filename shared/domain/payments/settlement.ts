/**
 * The steps that settle a payment, for a provider's answer, an advance and an authentication. Each
 * function adds one event to a change, with its ledger movement (contract §2). Pure.
 */

import { ApiError, type DeclineCode } from "../../core/errors.ts";
import type { FailureCode } from "../../schema/payment.ts";
import type { Answer } from "../../store/commit_rows.ts";
import { renderError } from "../changes/error_body.ts";
import type { PaymentChange } from "../changes/change_builder.ts";

/** Messages of declines, for people. */
const DECLINES: Record<DeclineCode, string> = {
  payment_declined: "The card issuer declined the payment",
  insufficient_funds: "The card has insufficient funds",
  aml_blocked: "The payment was blocked by fraud and money-laundering checks",
  authentication_failed: "The payer failed to authenticate",
};

/** Messages of failures, for people. */
export const FAILURES: Record<FailureCode, string> = {
  bank_return: "The bank returned the payment",
  onchain_reverted: "The transaction was reverted on chain",
  processing_failed: "The payment failed while it was processed",
  expired: "The payer did not pay in time",
  underpaid: "The payer sent less than the amount",
  provider_refused: "The provider refused the payment",
};

/** Completes the payment and captures the money in the ledger. */
export function complete(change: PaymentChange, tx_hash?: string): void {
  const { method, amount_minor } = change.subject;
  change.move("capture", amount_minor);
  change.addEvent("payment.completed", {
    status: "completed",
    completed_at: change.at,
    next_action: null,
    ...(tx_hash && method?.type === "stablecoin" &&
      { method: { ...method, wallet: { ...method.wallet, tx_hash } } }),
  });
}

/** Makes the payment wait for the payer's authentication. */
export function requireAction(change: PaymentChange, base_url: string): void {
  const url = `${base_url}/api-v1-sandbox/payments/${change.subject.id}/authenticate`;
  change.addEvent("payment.requires_action", {
    status: "requires_action",
    next_action: { type: "authenticate", url },
  });
}

/** Declines the payment. */
export function decline(change: PaymentChange, code: DeclineCode): void {
  change.addEvent("payment.declined", {
    status: "declined",
    failure_code: code,
    failure_message: DECLINES[code],
    next_action: null,
  });
}

/** Makes the payment fail. The caller reverses the capture of a completed payment. */
export function fail(change: PaymentChange, code: FailureCode, return_code: string | null): void {
  change.addEvent("payment.failed", {
    status: "failed",
    failure_code: code,
    failure_message: FAILURES[code],
    return_code,
    next_action: null,
  });
}

/** Charges back the amount that was not refunded. */
export function chargeBack(change: PaymentChange): void {
  const { amount_minor, amount_refunded } = change.subject;
  change.move("chargeback", amount_minor - amount_refunded);
  change.addEvent("payment.chargeback", { status: "chargeback" });
}

/** Makes the 402 of a declined payment, which contains the payment. */
export function declineAnswer(change: PaymentChange, code: DeclineCode): Answer {
  return {
    status: 402,
    body: renderError(
      new ApiError(code, DECLINES[code], { payment: change.subject }),
      change.context.request_id,
    ),
  };
}
