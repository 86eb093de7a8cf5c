/** Checkouts as the lines of a terminal. */

import { formatAmount } from "../../shared/core/currency.ts";
import type { Checkout } from "../client/mod.ts";
import { oneLine } from "./terminal_text.ts";

/**
 * One line: id, status, amount, of a link its payments, and the merchant's reference. Another one has
 * the page of the payer while the checkout is open.
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
