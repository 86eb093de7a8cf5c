/** The end of a form that creates a payment: the page of the payment, with a message. */

import { ApiError, type Payment } from "../../../packages/client/mod.ts";
import { showDecline } from "./flash.ts";
import { go } from "./route.ts";
import { label } from "./words.ts";

/** Opens the page of a new payment. Returns the message about it. */
export function openCreated({ id, status }: Payment): string {
  go(["payments", id]);
  return `Payment created: ${label(status).toLowerCase()}.`;
}

/** Opens the page of a payment that was declined and is stored. Returns false for other errors. */
export function openDeclined(error: unknown): boolean {
  if (!(error instanceof ApiError) || error.payment === undefined) return false;
  go(["payments", error.payment.id]);
  showDecline(error);
  return true;
}
