/**
 * How a payment comes to rest, whoever brings it there: a provider's answer, an advance, an
 * authentication. Each function is one event, with the ledger transaction that belongs to it. Pure.
 */

import { ApiError, type DeclineCode } from "../../core/errors.ts";
import type { FailureCode } from "../../schema/payment.ts";
import type { Answer } from "../../store/commit_rows.ts";
import { renderError } from "../changes/error_body.ts";
import type { PaymentChange } from "../changes/change_builder.ts";

/** What an issuer's no means to a person. */
const DECLINES: Record<DeclineCode, string> = {
  payment_declined: "The card issuer declined the payment",
  insufficient_funds: "The card has insufficient funds",
  aml_blocked: "The payment was blocked by fraud and money-laundering checks",
  authentication_failed: "The payer failed to authenticate",
};

/** What a broken rail means to a person. */
export const FAILURES: Record<FailureCode, string> = {
  bank_return: "The bank returned the payment",
  onchain_reverted: "The transaction was reverted on chain",
  processing_failed: "The payment failed while it was processed",
};

/** The money is in: captured in the ledger. */
export function complete(change: PaymentChange, tx_hash?: string): void {
  const { method, amount_minor } = change.subject;
  change.move("capture", amount_minor);
  change.happen("payment.completed", {
    status: "completed",
    completed_at: change.at,
    next_action: null,
    ...(tx_hash && method?.type === "stablecoin" &&
      { method: { ...method, wallet: { ...method.wallet, tx_hash } } }),
  });
}

/** The payer has to authenticate. */
export function requireAction(change: PaymentChange, base_url: string): void {
  const url = `${base_url}/api-v1-sandbox/payments/${change.subject.id}/authenticate`;
  change.happen("payment.requires_action", {
    status: "requires_action",
    next_action: { type: "authenticate", url },
  });
}

/** The issuer says no. */
export function decline(change: PaymentChange, code: DeclineCode): void {
  change.happen("payment.declined", {
    status: "declined",
    failure_code: code,
    failure_message: DECLINES[code],
    next_action: null,
  });
}

/** The rail broke. */
export function fail(change: PaymentChange, code: FailureCode, return_code: string | null): void {
  change.happen("payment.failed", {
    status: "failed",
    failure_code: code,
    failure_message: FAILURES[code],
    return_code,
    next_action: null,
  });
}

/** The payer disputes what is left of the payment. */
export function chargeBack(change: PaymentChange): void {
  const { amount_minor, amount_refunded } = change.subject;
  change.move("chargeback", amount_minor - amount_refunded);
  change.happen("payment.chargeback", { status: "chargeback" });
}

/** The 402 of a payment that an issuer declined; it carries the stored payment. */
export function declineAnswer(change: PaymentChange, code: DeclineCode): Answer {
  return {
    status: 402,
    body: renderError(
      new ApiError(code, DECLINES[code], { payment: change.subject }),
      change.context.request_id,
    ),
  };
}
