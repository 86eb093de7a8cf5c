/**
 * Collections: payments by SEPA that are drawn from an IBAN under a mandate of the payer (contract
 * §2). Their money comes on the due date, and the payer's bank can return it for months. Which
 * mandates are used up, the database decides at the commit. Pure.
 */

import { formatTime } from "../../core/clock.ts";
import { invalidParameter } from "../../core/errors.ts";
import { addDays, firstTargetDay } from "../../core/target_calendar.ts";
import type { CreatePaymentBody, Payment, PaymentMethod } from "../../schema/payment.ts";
import type { RequestContext } from "../changes/event.ts";
import type { PaymentChange } from "../changes/change_builder.ts";

/** Days between the notice to the payer and the collection, unless both agree otherwise (EPC016-06). */
export const PRENOTIFICATION_DAYS = 14;

/** The return code of a bank that knows no valid mandate: nothing more is collected under it. */
const NO_MANDATE = "MD01";

/**
 * Returns the method of a new payment with its mandate, and in a sandbox with its due date: with a
 * live key the account at the bank decides it. Throws `invalid_parameter` for a mandate where none
 * belongs, and for a live collection without one.
 */
export function methodWithMandate(
  method: PaymentMethod | null,
  { mandate }: CreatePaymentBody,
  { at_ms, livemode }: Pick<RequestContext, "at_ms" | "livemode">,
): PaymentMethod | null {
  if (mandate === undefined) {
    if (!livemode || method?.type !== "sepa") return method;
    throw invalidParameter(
      "mandate",
      'A live payment by SEPA from an "iban" needs the "mandate" of the payer: send its "id", ' +
        '"signed_at" and "sequence"',
    );
  }
  if (method?.type !== "sepa") {
    throw invalidParameter(
      "mandate",
      '"mandate" is only for a payment by SEPA with the "iban" of the payer: leave it out',
    );
  }
  if (Date.parse(mandate.signed_at) > at_ms) {
    throw invalidParameter("mandate.signed_at", '"mandate.signed_at" is in the future');
  }
  return { ...method, mandate, due_on: livemode ? null : dueDate(at_ms, PRENOTIFICATION_DAYS) };
}

/** Returns the first TARGET day at or after the days that the notice to the payer takes. */
export function dueDate(at_ms: number, prenotification_days: number): string {
  return firstTargetDay(addDays(formatTime(at_ms).slice(0, 10), prenotification_days));
}

/** Records that a new payment uses its mandate, if it has one. */
export function useMandate(change: PaymentChange): void {
  const { mandate } = collectionOf(change.subject);
  if (!mandate) return;
  const { id, sequence, signed_at } = mandate;
  const is_over = sequence === "final" || sequence === "one_off";
  // Without the offset of its time zone, of which the database takes fewer.
  change.setMandate({ id, is_over, sequence, signed_at: formatTime(Date.parse(signed_at)) });
}

/** Ends the mandate of a payment if the bank says that there is none. */
export function endMandate(change: PaymentChange, return_code: string | null): void {
  const { mandate } = collectionOf(change.subject);
  if (mandate && return_code === NO_MANDATE) change.setMandate({ id: mandate.id, is_over: true });
}

/** Returns the mandate and the due date of a payment; both are null for one that has none. */
export function collectionOf({ method }: Pick<Payment, "method">) {
  return method?.type === "sepa" ? method : { mandate: null, due_on: null };
}
