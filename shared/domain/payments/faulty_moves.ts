/**
 * Decides captures, cancels and refunds of the sandbox whose call to the provider has a declared
 * fault, as with a live provider (ADR 0023): after a timeout the result is unknown and comes later;
 * a refused capture or cancel changes nothing; a refused refund is stored as failed. Pure.
 */

import { ApiError } from "../../core/errors.ts";
import type { Payment } from "../../schema/payment.ts";
import type { CreateRefundBody, Refund } from "../../schema/refund.ts";
import type { CallRow, Change } from "../../store/commit_rows.ts";
import { answerOnly, ChangeBuilder } from "../changes/change_builder.ts";
import { renderError } from "../changes/error_body.ts";
import type { RequestContext } from "../changes/event.ts";
import { countFault, lostCall, type ProviderFault } from "../providers/provider_fault.ts";
import { claimRefund, failRefund } from "./refund_payment.ts";
import { FAILURES } from "./settlement.ts";

/** Decides a capture or cancel with a fault: 200 with the payment as it is, or 402. */
export function faultyMove(
  payment: Payment,
  call: Pick<CallRow, "op" | "amount_minor">,
  fault: ProviderFault,
  context: RequestContext,
): Change {
  if (fault.fault === "timeout") {
    const change = new ChangeBuilder(payment, context);
    change.addCall({ ...call, ...lostCall() });
    return countFault(fault, change.finish({ status: 200, body: JSON.stringify(payment) }));
  }
  const error = new ApiError("provider_refused", FAILURES.provider_refused, { payment });
  const body = renderError(error, context.request_id);
  return countFault(fault, answerOnly(payment, { status: error.status, body }));
}

/** Decides a refund with a fault: 201 with the refund, which is pending or failed. */
export function faultyRefund(
  payment: Payment,
  amount_minor: number | undefined,
  body: CreateRefundBody,
  fault: ProviderFault,
  context: RequestContext,
): Change {
  const change = new ChangeBuilder(payment, context);
  const refund = claimRefund(change, amount_minor, body);
  if (fault.fault === "timeout") addLostRefund(change, refund);
  const text = fault.fault === "timeout" ? JSON.stringify(refund) : failRefund(
    change,
    refund,
    fault.fault === "declined" ? "provider_refused" : "processing_failed",
  );
  return countFault(fault, change.finish({ status: 201, body: text }));
}

function addLostRefund(change: ChangeBuilder<Payment>, { id, amount_minor }: Refund): void {
  change.addCall({ op: "refund", refund_id: id, amount_minor, ...lostCall() });
}
