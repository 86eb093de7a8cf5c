/** Payments and refunds as the lines of a terminal. */

import type { Payment, Refund } from "../client/mod.ts";
import { formatAmount } from "../../shared/core/currency.ts";

/**
 * One line: id, status with the code of a failure, amount, and the parts that were captured or
 * refunded. Another one has the page of 3-D Secure if the payer must go there.
 */
export function paymentText(payment: Payment): string {
  const { id, amount, amount_captured, amount_refunded, currency, next_action } = payment;
  const line = [
    `${id}  ${statusText(payment)}  ${formatAmount(amount, currency)}`,
    ...(amount_captured > 0 && amount_captured < amount
      ? [`captured ${formatAmount(amount_captured, currency)}`]
      : []),
    ...(amount_refunded > 0 ? [`refunded ${formatAmount(amount_refunded, currency)}`] : []),
  ].join(", ");
  return next_action?.type === "authenticate" ? `${line}\n  payer: ${next_action.url}` : line;
}

/** One line: the refund, and the payment that it belongs to. */
export function refundText(refund: Refund): string {
  const { id, amount, currency, payment_id, payment_status } = refund;
  return [
    id,
    statusText(refund),
    formatAmount(amount, currency),
    payment_id,
    payment_status,
  ].join("  ");
}

function statusText({ status, failure_code }: Payment | Refund): string {
  return failure_code === null ? status : `${status} ${failure_code}`;
}
