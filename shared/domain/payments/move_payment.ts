/**
 * Decides the moves of an existing payment: cancel, advance and authenticate (contract §2). Pure.
 */

import type { FailureCode, MethodKind, Payment, PaymentStatus } from "../../schema/payment.ts";
import type { Change } from "../../store/commit_rows.ts";
import {
  advancesOf,
  halfOfRest,
  invalidState,
  isCancellable,
  nextStatuses,
  refundable,
} from "./lifecycle.ts";
import type { RequestContext } from "../changes/event.ts";
import { ChangeBuilder, type PaymentChange } from "../changes/change_builder.ts";
import { addRefund } from "./refund_payment.ts";
import { transactionHash } from "../providers/sandbox_provider.ts";
import { chargeBack, complete, decline, declineAnswer, fail, requireAction } from "./settlement.ts";

/** The failure of each rail, for an advance to `failed`. */
const FAILURE_OF: Record<MethodKind, { code: FailureCode; return_code: string | null }> = {
  card: { code: "processing_failed", return_code: null },
  sepa: { code: "bank_return", return_code: "R01" },
  swift: { code: "bank_return", return_code: "R01" },
  stablecoin: { code: "onchain_reverted", return_code: null },
};

/** Decides a cancel. Throws `invalid_state` if money has moved or is in transit. */
export function decideCancel(payment: Payment, context: RequestContext): Change {
  if (!isCancellable(payment)) throw invalidState("cancel", payment, nextStatuses(payment));
  const change = new ChangeBuilder(payment, context);
  cancel(change);
  return change.finish({ status: 200, body: change.body });
}

/**
 * Decides an advance to the status `to`. Returns null if the payment has this status already.
 * @param base_url base URL of the functions, for the URL of a next action
 */
export function decideAdvance(
  payment: Payment,
  to: PaymentStatus,
  base_url: string,
  context: RequestContext,
): Change | null {
  if (to === payment.status) return null;
  const allowed = advancesOf(payment);
  if (!allowed.includes(to)) throw invalidState(`advance to "${to}"`, payment, allowed);
  const change = new ChangeBuilder(payment, context);
  advance(change, to, base_url);
  return change.finish({ status: 200, body: change.body });
}

/** Decides an authentication with the given answer of the payer's bank. */
export function decideAuthenticate(
  payment: Payment,
  result: "success" | "failure",
  context: RequestContext,
): Change {
  if (payment.status !== "requires_action") {
    throw invalidState("authenticate", payment, nextStatuses(payment));
  }
  const change = new ChangeBuilder(payment, context);
  if (result === "success") {
    complete(change);
    return change.finish({ status: 200, body: change.body });
  }
  decline(change, "authentication_failed");
  return change.finish(declineAnswer(change, "authentication_failed"));
}

function advance(change: PaymentChange, to: PaymentStatus, base_url: string): void {
  const { subject: payment } = change;
  switch (to) {
    case "completed":
      return complete(change, hashOf(payment));
    case "requires_action":
      return requireAction(change, base_url);
    case "processing":
      return change.addEvent("payment.processing", { status: "processing" });
    case "cancelled":
      return cancel(change);
    case "declined":
      return decline(change, "payment_declined");
    case "failed": {
      if (payment.status === "completed") change.move("capture_reversal", payment.amount_minor);
      const { code, return_code } = FAILURE_OF[payment.method_kind];
      return fail(change, code, return_code);
    }
    case "chargeback":
      return chargeBack(change);
    case "refunded":
      return void addRefund(change, refundable(payment), {});
    case "partially_refunded":
      return void addRefund(change, halfOfRest(payment), {});
    case "pending":
      throw new Error("no payment can be moved to pending");
    default:
      to satisfies never;
  }
}

function cancel(change: PaymentChange): void {
  change.addEvent("payment.cancelled", {
    status: "cancelled",
    cancelled_at: change.at,
    next_action: null,
  });
}

function hashOf(payment: Payment): string | undefined {
  const { method, amount_minor, currency } = payment;
  return method?.type === "stablecoin"
    ? transactionHash(amount_minor, currency, method.wallet)
    : undefined;
}
