/**
 * Collections: payments by SEPA that are drawn from an IBAN under a mandate of the payer (contract
 * §2). Their money comes on the due date, and the payer's bank can return it for months. Which
 * mandates are used up, the database decides at the commit. Pure.
 */

import { formatTime } from "../../core/clock.ts";
import { invalidParameter } from "../../core/errors.ts";
import { ibanCountry, ibanLastFour, ibanRemainder } from "../../core/iban.ts";
import { addDays, firstTargetDay } from "../../core/target_calendar.ts";
import type { InstrumentEndReason } from "../../schema/instrument.ts";
import type { CreatePaymentBody } from "../../schema/payment_body.ts";
import type { Payment, PaymentMethod } from "../../schema/payment.ts";
import { amountOf } from "../../schema/values.ts";
import type { RequestContext } from "../changes/event.ts";
import type { PaymentChange } from "../changes/change_builder.ts";
import { RAILS } from "../rails.ts";
import { isOwnTestIban } from "../providers/test_values.ts";

/** Days from the notice to the payer to the collection, unless both agree otherwise (EPC016-06). */
export const PRENOTIFICATION_DAYS = 14;

/** Return codes after which nothing more is collected under a mandate, and why. */
const END_REASONS: ReadonlyMap<string, InstrumentEndReason> = new Map([
  ["MD01", "revoked"],
  ["AC04", "account_closed"],
  ["AC06", "account_closed"],
  ["MD07", "account_closed"],
]);
/** The 400 for a collection from the account to which it would go. */
export const OWN_IBAN = {
  param: "iban.iban",
  message: "This is the account of the merchant, and not of a payer: send the IBAN of the payer",
};
/** Keeps of an IBAN only 16 bits besides those that responses show. */
const FINGERPRINT_MODULUS = 65_521;

/**
 * Returns the method of a new payment with its mandate, and in a sandbox with its due date: with a
 * live key the account at the bank decides it. Throws `invalid_parameter` for a mandate where none
 * belongs, and for a live collection without one.
 */
export function methodWithMandate(
  method: PaymentMethod | null,
  { mandate, iban, ...body }: CreatePaymentBody,
  payment_id: string,
  { at_ms, livemode }: Pick<RequestContext, "at_ms" | "livemode">,
): PaymentMethod | null {
  if (mandate === undefined) {
    if (!livemode || !isCollected(method)) return method;
    throw invalidParameter(
      "mandate",
      'A live payment by SEPA from an "iban" needs the "mandate" of the payer: send its "id", ' +
        '"signed_at" and "sequence"',
    );
  }
  if (!isCollected(method)) {
    throw invalidParameter(
      "mandate",
      '"mandate" is only for a payment by SEPA with the "iban" of the payer: leave it out',
    );
  }
  if (!livemode && iban && isOwnTestIban(iban.iban)) {
    throw invalidParameter(OWN_IBAN.param, OWN_IBAN.message);
  }
  if (Date.parse(mandate.signed_at) > at_ms) {
    throw invalidParameter("mandate.signed_at", '"mandate.signed_at" is in the future');
  }
  const { id = newMandateId(payment_id), signed_at, sequence = "recurring" } = mandate;
  return {
    ...method,
    mandate: { id, signed_at, sequence },
    // Nothing is collected to save alone.
    due_on: amountOf(body) === 0 ? null : dueDateOfNew({ at_ms, livemode }),
  };
}

/** Returns the due date of a new collection; null: the account at the bank decides it. */
export function dueDateOfNew(
  { at_ms, livemode }: Pick<RequestContext, "at_ms" | "livemode">,
): string | null {
  return livemode ? null : dueDate(at_ms, PRENOTIFICATION_DAYS);
}

/** Makes the id of a mandate that a payment saves: `M`, and 20 capitals and digits. */
function newMandateId(payment_id: string): string {
  return `M${payment_id.slice(-20).toUpperCase()}`;
}

/** Returns the first TARGET day at or after the days that the notice to the payer takes. */
export function dueDate(at_ms: number, prenotification_days: number): string {
  return firstTargetDay(addDays(formatTime(at_ms).slice(0, 10), prenotification_days));
}

/**
 * Tells IBANs of a sandbox apart without a secret, which a sandbox has none to keep: by what
 * responses show, and 16 bits. So the stored text does not tell the IBAN.
 */
export function sandboxFingerprint(iban: string): string {
  const rest = ibanRemainder(iban, FINGERPRINT_MODULUS);
  return `sandbox:${ibanCountry(iban)}${ibanLastFour(iban)}:${rest}`;
}

/** Ends the mandate of a payment if its bank says that nothing more can be collected. */
export function endMandate(change: PaymentChange, return_code: string | null): void {
  const { mandate } = collectionOf(change.subject);
  const reason = END_REASONS.get(return_code ?? "");
  if (mandate && reason) change.addInstrument({ act: "end", mandate_id: mandate.id, reason });
}

/** Returns the id under which a mandate is known: to banks its id is one in any case. */
export function mandateKey(id: string): string {
  return id.toUpperCase();
}

/** Returns the mandate and the due date of a payment; both are null for one that has none. */
export function collectionOf({ method }: Pick<Payment, "method">) {
  return isCollected(method) ? method : { mandate: null, due_on: null };
}

export function isCollected(
  method: PaymentMethod | null,
): method is Extract<PaymentMethod, { mandate: unknown }> {
  return method !== null && "mandate" in method && RAILS[method.type].collects;
}
