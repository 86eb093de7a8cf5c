/**
 * The status and the masked method that a payment gives to the instrument that it saves, and what it
 * means to its checkout. Pure.
 */

import type { EventType } from "../../schema/event_type.ts";
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

/** Reports whether an event of a payment is that of a successful attempt of a checkout. */
export function isPaidCheckout({ method }: Pick<Payment, "method">, type: EventType): boolean {
  if (type === "payment.authorized" || type === "payment.completed") return true;
  // A collection, and no transfer of the payer.
  return type === "payment.processing" && method !== null && "mandate" in method &&
    method.mandate !== null;
}

/** Returns the masked instrument of a payment as JSON text; null: it is not known yet. */
export function maskedMethod({ method }: Pick<Payment, "method">): string | null {
  if (method === null) return null;
  return JSON.stringify("iban" in method ? { type: method.type, iban: method.iban } : method);
}
