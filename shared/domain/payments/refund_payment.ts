/**
 * Decides refunds of a payment, of a part or of the rest (contract §3). A refund begins `pending`
 * and holds its amount; the provider's answer completes it or makes it fail. Pure.
 */

import { formatTime } from "../../core/clock.ts";
import { formatAmount } from "../../core/currency.ts";
import { ApiError, invalidParameter } from "../../core/errors.ts";
import type { FailureCode, Payment } from "../../schema/payment.ts";
import type { CreateRefundBody, Refund, RefundStatus } from "../../schema/refund.ts";
import type { Change } from "../../store/commit_rows.ts";
import { invalidState, isRefundable, nextStatuses, refundable, refundStatus } from "./lifecycle.ts";
import type { EventContext, RequestContext } from "../changes/event.ts";
import { answerOnly, ChangeBuilder, type PaymentChange } from "../changes/change_builder.ts";
import { checkRefundDestination } from "./deposit.ts";
import { readRefund } from "../changes/read_resource.ts";
import { FAILURES } from "./settlement.ts";

/** The input of a new refund, besides its amount. */
type RefundInput = Pick<CreateRefundBody, "reason" | "metadata" | "destination">;

/**
 * Decides a refund of a payment. Without manual settlement the sandbox completes it at once.
 * @param amount_minor in minor units; undefined refunds the rest
 */
export function decideRefund(
  payment: Payment,
  amount_minor: number | undefined,
  body: CreateRefundBody,
  context: RequestContext,
): Change {
  const change = new ChangeBuilder(payment, context);
  const refund = claimRefund(change, amount_minor, body);
  const is_instant = payment.settlement !== "manual";
  const text = is_instant ? completeRefund(change, refund) : JSON.stringify(refund);
  return change.finish({ status: 201, body: text });
}

/** Adds a pending refund to a change. Throws `ApiError` if the amount is not left to refund. */
export function claimRefund(
  change: PaymentChange,
  amount_minor: number | undefined,
  body: CreateRefundBody,
): Refund {
  const { subject: payment } = change;
  if (!isRefundable(payment)) throw invalidState("refund", payment, nextStatuses(payment));
  checkRefundDestination(payment, body);
  const rest = refundable(payment);
  if (amount_minor !== undefined && amount_minor > rest) {
    throw invalidParameter(
      body.amount_minor === undefined ? "amount" : "amount_minor",
      `Only ${rest} is left to refund, which is ${formatAmount(rest, payment.currency)}: send at ` +
        "most that amount",
      { amount_refundable: rest },
    );
  }
  if (rest === 0) {
    throw new ApiError(
      "invalid_state",
      "Cannot refund: pending refunds hold the rest of the payment",
      { current_status: payment.status, allowed: nextStatuses(payment) },
    );
  }
  return beginRefund(change, amount_minor ?? rest, body);
}

/** Adds a completed refund to a change, for a sandbox payment that is refunded at once. */
export function addRefund(change: PaymentChange, amount_minor: number): void {
  completeRefund(change, beginRefund(change, amount_minor, {}));
}

/** Completes a pending refund: the money leaves. Returns the refund as JSON text. */
export function completeRefund(change: PaymentChange, refund: Refund): string {
  const { subject: payment } = change;
  const { amount_minor } = refund;
  const amount_refunded = payment.amount_refunded + amount_minor;
  const amount_refunding = payment.amount_refunding - amount_minor;
  // A payment that was charged back meanwhile keeps its status.
  const status = isRefundable(payment) ? refundStatus({ ...payment, amount_refunded }) : null;
  change.move("refund", amount_minor, refund.id);
  const text = change.addRefundEvent("refund.completed", {
    ...refund,
    payment_status: status ?? payment.status,
    status: "completed",
    updated_at: change.at,
  }, { amount_refunding, amount_refunded });
  if (status) change.addEvent(`payment.${status}`, { status });
  return text;
}

/** Makes a pending refund fail: its amount can be refunded again. Returns it as JSON text. */
export function failRefund(change: PaymentChange, refund: Refund, code: FailureCode): string {
  const { subject: payment } = change;
  return change.addRefundEvent("refund.failed", {
    ...refund,
    payment_status: payment.status,
    status: "failed",
    failure_code: code,
    failure_message: REFUND_FAILURES[code] ?? FAILURES[code],
    updated_at: change.at,
  }, { amount_refunding: payment.amount_refunding - refund.amount_minor });
}

/**
 * Makes a completed refund fail: the provider has given its money back, which can be refunded
 * again. Returns the refund as JSON text.
 */
export function revertRefund(change: PaymentChange, refund: Refund, code: FailureCode): string {
  const { subject: payment } = change;
  const amount_refunded = payment.amount_refunded - refund.amount_minor;
  // A payment that was charged back meanwhile keeps its status.
  const status = payment.status === "chargeback"
    ? null
    : refundStatus({ ...payment, amount_refunded });
  change.move("refund_reversal", refund.amount_minor, refund.id);
  const text = change.addRefundEvent("refund.failed", {
    ...refund,
    payment_status: status ?? payment.status,
    status: "failed",
    failure_code: code,
    failure_message: REFUND_FAILURES[code] ?? FAILURES[code],
    updated_at: change.at,
  }, { amount_refunded });
  if (status) change.addEvent(`payment.${status}`, { status });
  return text;
}

/** Reports whether the refunds of a payment can still fail after they have completed. */
export function canRevertRefund({ status }: Pick<Payment, "status">): boolean {
  // The bank has returned the payment, or it had no refund.
  return status === "partially_refunded" || status === "refunded" || status === "chargeback";
}

/** Messages of failed refunds, where those of payments do not fit. */
const REFUND_FAILURES: Partial<Record<FailureCode, string>> = {
  processing_failed: "The refund failed while it was processed",
  provider_refused: "The provider refused the refund",
};

/**
 * Decides an advance of a refund. If the refund has this status already, the change only answers.
 * @param body the refund as it is stored
 */
export function decideAdvanceRefund(
  payment: Payment,
  body: string,
  to: RefundStatus,
  context: RequestContext,
): Change {
  const refund = readRefund(body);
  if (to === refund.status) return answerOnly(payment, { status: 200, body });
  const allowed: RefundStatus[] = refund.status === "pending"
    ? ["completed", "failed"]
    : refund.status === "completed" && canRevertRefund(payment)
    ? ["failed"]
    : [];
  if (!allowed.includes(to)) {
    throw new ApiError(
      "invalid_state",
      `Cannot advance to "${to}": the refund is ${refund.status}`,
      { current_status: refund.status, allowed },
    );
  }
  const change = new ChangeBuilder(payment, context);
  const text = to === "completed"
    ? completeRefund(change, refund)
    : refund.status === "completed"
    ? revertRefund(change, refund, "processing_failed")
    : failRefund(change, refund, "processing_failed");
  return change.finish({ status: 200, body: text });
}

/** Makes a sample refund of the whole payment, for triggered events. */
export function sampleRefund(
  payment: Payment,
  status: RefundStatus,
  context: RequestContext,
): Refund {
  const refund = newRefund(payment, payment.amount_minor, {}, context);
  if (status === "failed") {
    const failure_code = "processing_failed";
    return { ...refund, status, failure_code, failure_message: REFUND_FAILURES[failure_code]! };
  }
  return status === "completed" ? { ...refund, status, payment_status: "refunded" } : refund;
}

/** Adds a pending refund to a change. */
export function beginRefund(
  change: PaymentChange,
  amount_minor: number,
  body: RefundInput,
): Refund {
  const { subject: payment, context } = change;
  const refund = newRefund(payment, amount_minor, body, context);
  change.addRefundEvent("refund.created", refund, {
    amount_refunding: payment.amount_refunding + amount_minor,
  });
  return refund;
}

function newRefund(
  payment: Payment,
  amount_minor: number,
  body: RefundInput,
  context: EventContext,
): Refund {
  const at = formatTime(context.at_ms);
  return {
    id: context.mint("re_"),
    object: "refund",
    payment_id: payment.id,
    payment_status: payment.status,
    amount: amount_minor,
    amount_minor,
    currency: payment.currency,
    status: "pending",
    failure_code: null,
    failure_message: null,
    reason: body.reason ?? null,
    metadata: body.metadata ?? {},
    destination: body.destination ?? null,
    livemode: payment.livemode,
    created_at: at,
    updated_at: at,
  };
}
