/** Payments and refunds as the lines of a terminal. */

import type { Payment, Refund } from "../client/mod.ts";
import { formatAmount } from "../shared/core/currency.ts";

/** One line: id, status, amount, and the page of 3-D Secure if the payer must go there. */
export function paymentText({ id, status, amount, currency, next_action }: Payment): string {
  const line = `${id}  ${status}  ${formatAmount(amount, currency)}`;
  return next_action?.type === "authenticate" ? `${line}\n  payer: ${next_action.url}` : line;
}

/** One line: the refund, and the payment that it belongs to. */
export function refundText(refund: Refund): string {
  const { id, status, amount, currency, failure_code, payment_id, payment_status } = refund;
  return [
    id,
    failure_code === null ? status : `${status} ${failure_code}`,
    formatAmount(amount, currency),
    payment_id,
    payment_status,
  ].join("  ");
}
