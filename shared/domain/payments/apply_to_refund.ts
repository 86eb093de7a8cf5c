/**
 * Applies the provider events of refunds: of ours, and of those that somebody has made at the
 * provider without this service. Pure.
 */

import type { Refund } from "../../schema/refund.ts";
import type { PaymentChange } from "../changes/change_builder.ts";
import { refundable } from "../payment_statuses.ts";
import { isRefundable } from "./lifecycle.ts";
import {
  beginRefund,
  completeRefund,
  failRefund,
  noteRefundCheck,
  revertRefund,
} from "./refund_payment.ts";
import { failureIn } from "./payment_steps.ts";
import type { ProviderEvent } from "../providers/connector.ts";
import {
  apply,
  applyAmount,
  applyWithoutCapture,
  type Effect,
  exception,
  IGNORED,
  isCaptured,
  shown,
  WAIT,
} from "../providers/effect.ts";

/** Applies an event to its refund. A succeeded refund that is not ours yet becomes one. */
export function applyToRefund(
  change: PaymentChange,
  refund: Refund | null,
  event: ProviderEvent,
): Effect {
  if (refund) return applyOwn(change, refund, event);
  if (event.refund_id !== null) return exception("the refund is not one of ours");
  // A refund that has failed before its money left changes nothing.
  if (event.state !== "succeeded" && event.state !== "returned") return IGNORED;
  const { subject: payment } = change;
  if (!isCaptured(payment)) return applyWithoutCapture(change, event);
  if (event.state === "returned") {
    // Its success comes later, and becomes a refund here, unless it is an exception then.
    return payment.status === "failed"
      ? exception(`a refund of ${shown(event)} that has not succeeded here came back`)
      : WAIT;
  }
  // A pending refund of ours that holds the amount can still fail.
  const left = payment.amount_captured - payment.amount_refunded;
  if (event.amount_minor > refundable(payment) && event.amount_minor <= left) return WAIT;
  const is_disputed = payment.status === "chargeback";
  if (!(isRefundable(payment) || is_disputed) || event.amount_minor > refundable(payment)) {
    return exception(`a refund of ${shown(event)} at the provider is more than what is left`);
  }
  return apply(() => completeRefund(change, beginRefund(change, event.amount_minor, {})));
}

/** Applies the result about the payee. A refund that is over stays as it is. */
export function applyRefundCheck(
  change: PaymentChange,
  refund: Refund | null,
  { bank }: ProviderEvent,
): Effect {
  const payee_check = bank?.payee_check;
  if (refund === null || payee_check === undefined) return exception("no refund has this payee");
  if (refund.status !== "pending" || refund.payee_check === payee_check) return IGNORED;
  return apply(() => noteRefundCheck(change, refund, payee_check));
}

function applyOwn(change: PaymentChange, refund: Refund, event: ProviderEvent): Effect {
  if (event.state === "succeeded") {
    if (refund.status === "completed") return IGNORED;
    if (refund.status === "failed") {
      return exception("the refund succeeded at the provider, but is failed here");
    }
    return applyAmount(change, refund.amount_minor, event, () => completeRefund(change, refund));
  }
  // A refusal moves no money: if that of the refund has left, it comes back by an event of its own.
  if (refund.status === "completed" && event.failure_code === "provider_refused") return IGNORED;
  const is_returned = event.state === "returned";
  if (!is_returned && event.state !== "failed" && event.state !== "cancelled") return IGNORED;
  if (refund.status === "failed") {
    return is_returned
      ? exception("the money of the refund came back, but the refund had failed here before")
      : IGNORED;
  }
  // The money has left before: the success of the refund comes later here.
  if (refund.status === "pending" && is_returned) return WAIT;
  const end = refund.status === "completed" ? revertRefund : failRefund;
  // A refusal has no amount of its own.
  const amount_minor = is_returned ? refund.amount_minor : event.amount_minor;
  return applyAmount(change, amount_minor, event, () => end(change, refund, failureIn(event)));
}
