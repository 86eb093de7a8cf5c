/** The status and the masked method that a payment gives to the instrument that it saves. Pure. */

import type { InstrumentStatus } from "../../schema/instrument.ts";
import type { Payment } from "../../schema/payment.ts";
import { RAILS } from "../rails.ts";

/** Returns the status that a payment gives to the instrument that it saves. */
export function statusOfSaved(
  { status, method_kind }: Pick<Payment, "status" | "method_kind">,
): InstrumentStatus {
  switch (status) {
    case "declined":
    case "failed":
    case "cancelled":
      return "failed";
    case "pending":
    case "requires_action":
      return "pending";
    case "processing":
      // The bank has taken the collection.
      return RAILS[method_kind].collects ? "active" : "pending";
    case "authorized":
    case "completed":
    case "partially_refunded":
    case "refunded":
    case "chargeback":
      return "active";
    default:
      return status satisfies never;
  }
}

/** Returns the masked instrument of a payment as JSON text; null: it is not known yet. */
export function maskedMethod({ method }: Pick<Payment, "method">): string | null {
  if (method === null) return null;
  return JSON.stringify("iban" in method ? { type: method.type, iban: method.iban } : method);
}
