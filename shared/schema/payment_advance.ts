/**
 * The body of an advance (contract §2). It simulates the next step of a sandbox payment: a move, a
 * dispute, or money that the payer sends.
 */

import * as z from "zod";
import { rule } from "./rule.ts";
import { DisputeReason, PaymentStatus } from "./statuses.ts";
import { ReturnCode, returnCodeOfFailure } from "./payment_body.ts";
import { AmountMinor } from "./values.ts";

/** The body of an advance: the status to move to. */
export const AdvancePaymentBody = z.object({
  to: PaymentStatus,
  reason: DisputeReason.optional().describe(
    "The reason of the dispute, only with `chargeback`. By default `general`",
  ),
  amount_received: AmountMinor.optional().describe(
    "Amount that the payer sends now, in minor units, only for a payment by bank transfer or to " +
      "an address. Default: the missing amount. For late money, send the current status of the " +
      "payment as `to`",
  ),
  return_code: ReturnCode.optional(),
}).check(rule(returnCodeOfFailure)).check(rule(({ to, reason, amount_received }, context) => {
  if (reason !== undefined && to !== "chargeback") {
    const message = 'is only for an advance to "chargeback": remove it';
    context.addIssue({ code: "custom", path: ["reason"], message });
  }
  if (amount_received !== undefined && to === "requires_action") {
    const message = `cannot be sent with an advance to "${to}": remove it`;
    context.addIssue({ code: "custom", path: ["amount_received"], message });
  }
})).describe("The status to move to");
