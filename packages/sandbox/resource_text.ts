/** Payments, refunds, checkouts and instruments as the lines of a terminal. */

import { formatAmount } from "../../shared/core/currency.ts";
import type { Checkout, Instrument, Payment, Refund } from "../client/mod.ts";
import { oneLine } from "./terminal_text.ts";

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
  const shown = [id, statusText(refund), formatAmount(amount, currency)];
  return [...shown, payment_id, payment_status].join("  ");
}

/**
 * One line: id, status, amount, of a link its payments, and the merchant's reference. Another one
 * has the page of the payer while the checkout is open.
 */
export function checkoutText(checkout: Checkout): string {
  const { id, status, amount, currency, max_payments, payments_count, reference, url } = checkout;
  const line = [
    ...[id, status, formatAmount(amount, currency)],
    ...(max_payments === null ? [`link, ${payments_count} paid`] : []),
    ...(reference === null ? [] : [oneLine(reference)]),
  ].join("  ");
  return status === "open" && url !== null ? `${line}\n  payer: ${url}` : line;
}

/** One line: id, status with the reason of its end, kind, usage, masked value and customer. */
export function instrumentText(instrument: Instrument): string {
  const { id, status, ended_reason, method_kind, method, usage, customer } = instrument;
  const shown = method === null
    ? []
    : "card" in method
    ? [`${method.card.brand} …${method.card.last4}`]
    : [`…${method.iban.last4}`];
  return [
    id,
    ended_reason === null ? status : `${status} ${ended_reason}`,
    ...[method_kind, usage, ...shown],
    ...(customer?.id ? [oneLine(customer.id)] : []),
  ].join("  ");
}

function statusText({ status, failure_code }: Payment | Refund): string {
  return failure_code === null ? status : `${status} ${failure_code}`;
}
