/**
 * Reads stored payments and refunds. Bodies of release 1.0.0 lack the members that came later. A
 * change of such a resource adds them (ADR 0044). Pure.
 */

import type * as z from "zod";
import type { Payment, Payment as PaymentSchema, PaymentStatus } from "../../schema/payment.ts";
import type { Transfer } from "../../schema/transfer.ts";
import type { Refund } from "../../schema/refund.ts";

/** Statuses in which the amount of a payment of release 1.0.0 was taken. */
const CAPTURED: ReadonlySet<PaymentStatus> = new Set<PaymentStatus>([
  "completed",
  "partially_refunded",
  "refunded",
  "chargeback",
]);

/** A payment in an answer, which can lack members that a later release has added. */
type ShownPayment = z.infer<typeof PaymentSchema>;

/** Parses the body of a payment. */
export function readPayment(body: string): Payment {
  return completePayment(JSON.parse(body));
}

/** Adds the members that the payment lacks. */
export function completePayment(stored: ShownPayment): Payment {
  if (isComplete(stored)) return stored;
  const { status, amount_minor, amount_refunded } = stored;
  const amount_captured = CAPTURED.has(status) ? amount_minor : 0;
  return {
    ...stored,
    amount_refunding: 0,
    amount_captured,
    amount_disputed: status === "chargeback" ? amount_captured - amount_refunded : 0,
    amount_received: null,
    return_url: null,
    capture: "automatic",
    capture_before: null,
    settlement: stored.livemode ? null : "instant",
  };
}

function isComplete(stored: ShownPayment): stored is Payment {
  return stored.amount_captured !== undefined;
}

/** Parses the body of a payment or transfer. */
export function readSubject(body: string): Payment | Transfer {
  const stored: Payment | Transfer = JSON.parse(body);
  return stored.object === "payment" ? completePayment(stored) : stored;
}

/** Parses the body of a refund. */
export function readRefund(body: string): Refund {
  const stored: Refund = JSON.parse(body);
  const destination = stored.destination ?? null;
  if (stored.updated_at !== undefined) return { ...stored, destination };
  const { created_at: updated_at } = stored;
  return { ...stored, failure_code: null, failure_message: null, updated_at, destination };
}
