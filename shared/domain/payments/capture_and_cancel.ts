/** Begins captures and cancels of a payment (contract §2). Pure. */

import { formatAmount } from "../../core/currency.ts";
import { invalidParameter } from "../../core/errors.ts";
import type { CapturePaymentBody } from "../../schema/payment_body.ts";
import type { Payment } from "../../schema/payment.ts";
import { amountOf } from "../../schema/values.ts";
import { ChangeBuilder } from "../changes/change_builder.ts";
import type { RequestContext } from "../changes/event.ts";
import { beginOperation, type Begun } from "../providers/operation.ts";
import { invalidState, isCancellable, isCapturable, isDeposit, nextStatuses } from "./lifecycle.ts";

/** Begins the capture of an authorized payment, whole or in part. Throws `ApiError`. */
export function captureOf(
  payment: Payment,
  body: CapturePaymentBody,
  context: RequestContext,
): Begun {
  const amount_minor = captureAmount(payment, body);
  return beginOperation(new ChangeBuilder(payment, context), "capture", { amount_minor });
}

/** Begins a cancel. Throws `invalid_state` if money has moved or is in transit. */
export function cancelOf(payment: Payment, context: RequestContext): Begun {
  if (!isCancellable(payment)) throw invalidState("cancel", payment, nextStatuses(payment));
  const begun = beginOperation(new ChangeBuilder(payment, context), "cancel");
  // No provider takes part: the payer sends the money. If it comes later, it is unapplied.
  return { ...begun, is_internal: isDeposit(payment) };
}

/** Returns the amount to capture. Throws `ApiError` if the payment does not allow the capture. */
function captureAmount(payment: Payment, body: CapturePaymentBody): number {
  if (!isCapturable(payment)) {
    throw invalidState("capture", payment, nextStatuses(payment));
  }
  const amount_minor = amountOf(body) ?? payment.amount_minor;
  if (amount_minor > payment.amount_minor) {
    throw invalidParameter(
      body.amount_minor === undefined ? "amount" : "amount_minor",
      `Only ${payment.amount_minor} is authorized, which is ` +
        `${formatAmount(payment.amount_minor, payment.currency)}: send at most that amount`,
      { amount_capturable: payment.amount_minor },
    );
  }
  return amount_minor;
}
