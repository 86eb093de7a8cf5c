/** The status and the masked method that a payment gives to the instrument that it saves. Pure. */

import type { InstrumentStatus } from "../../schema/statuses.ts";
import type { Payment } from "../../schema/payment.ts";
import { STATUSES } from "../payment_statuses.ts";
import { RAILS } from "../rails.ts";

export function statusOfSaved(
  { status, method_kind }: Pick<Payment, "status" | "method_kind">,
): InstrumentStatus {
  const { waits_for, result } = STATUSES[status];
  if (result === "unpaid") return "failed";
  // At "result" the bank has taken a collection.
  const is_taken = result === "paid" || waits_for === "capture" ||
    waits_for === "result" && RAILS[method_kind].collects;
  return is_taken ? "active" : "pending";
}

/** Returns the masked instrument of a payment as JSON text; null: it is not known yet. */
export function maskedMethod({ method }: Pick<Payment, "method">): string | null {
  if (method === null) return null;
  return JSON.stringify("iban" in method ? { type: method.type, iban: method.iban } : method);
}
