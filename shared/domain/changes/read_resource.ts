/** Parses the bodies of stored resources, which the service itself has written. Pure. */

import type { Payment } from "../../schema/payment.ts";
import type { Refund } from "../../schema/refund.ts";
import type { Transfer } from "../../schema/transfer.ts";

export function readPayment(body: string): Payment {
  return JSON.parse(body);
}

export function readSubject(body: string): Payment | Transfer {
  return JSON.parse(body);
}

export function readRefund(body: string): Refund {
  return JSON.parse(body);
}
