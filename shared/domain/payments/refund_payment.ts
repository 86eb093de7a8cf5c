/**
 * Decides a refund of a part of a payment, or of the rest (contract §3). Pure.
 */

import { formatTime } from "../../core/clock.ts";
import { formatAmount } from "../../core/currency.ts";
import { invalidParameter } from "../../core/errors.ts";
import type { Payment, PaymentStatus } from "../../schema/payment.ts";
import type { CreateRefundBody, Refund } from "../../schema/refund.ts";
import type { Change } from "../../store/commit_rows.ts";
import { invalidState, isRefundable, nextStatuses, refundable } from "./lifecycle.ts";
import type { RequestContext } from "../changes/event.ts";
import { ChangeBuilder, type PaymentChange } from "../changes/change_builder.ts";

/**
 * Decides a refund of a payment.
 * @param amount_minor in minor units; undefined refunds the rest
 */
export function decideRefund(
  payment: Payment,
  amount_minor: number | undefined,
  body: CreateRefundBody,
  context: RequestContext,
): Change {
  if (!isRefundable(payment)) throw invalidState("refund", payment, nextStatuses(payment));
  const rest = refundable(payment);
  if (amount_minor !== undefined && amount_minor > rest) {
    throw invalidParameter(
      body.amount_minor === undefined ? "amount" : "amount_minor",
      `Only ${rest} is left to refund, which is ${formatAmount(rest, payment.currency)}: send at ` +
        "most that amount",
      { amount_refundable: rest },
    );
  }
  const change = new ChangeBuilder(payment, context);
  const refund = addRefund(change, amount_minor ?? rest, body);
  return change.finish({ status: 201, body: refund });
}

/** Adds a refund to a change. Returns the refund as JSON text. */
export function addRefund(
  change: PaymentChange,
  amount_minor: number,
  body: Pick<CreateRefundBody, "reason" | "metadata">,
): string {
  const { subject: payment, context } = change;
  const amount_refunded = payment.amount_refunded + amount_minor;
  const status = amount_refunded === payment.amount_minor ? "refunded" : "partially_refunded";
  const refund = newRefund(payment, amount_minor, status, body, context);
  const text = change.refund(refund);
  change.addEvent(`payment.${status}`, { status, amount_refunded });
  return text;
}

/** Makes a sample refund of the whole payment, for triggered events. */
export function sampleRefund(payment: Payment, context: RequestContext): Refund {
  return newRefund(payment, payment.amount_minor, "refunded", {}, context);
}

function newRefund(
  payment: Payment,
  amount_minor: number,
  payment_status: PaymentStatus,
  body: Pick<CreateRefundBody, "reason" | "metadata">,
  context: RequestContext,
): Refund {
  return {
    id: context.mint("re_"),
    object: "refund",
    payment_id: payment.id,
    payment_status,
    amount: amount_minor,
    amount_minor,
    currency: payment.currency,
    status: "completed",
    reason: body.reason ?? null,
    metadata: body.metadata ?? {},
    livemode: payment.livemode,
    created_at: formatTime(context.at_ms),
  };
}
