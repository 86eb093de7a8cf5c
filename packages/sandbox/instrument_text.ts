/** Instruments as the lines of a terminal. */

import type { Instrument } from "../client/mod.ts";
import { oneLine } from "./terminal_text.ts";

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
