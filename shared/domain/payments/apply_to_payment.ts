/**
 * Applies provider events to payments (architecture §7). Forward only: a provider event changes a
 * payment if the lifecycle allows the move, a late or repeated event changes nothing, and an event
 * whose amount, currency or mode differs from ours is an exception. Pure.
 */

import type { DeclineCode } from "../../core/errors.ts";
import type { Payment } from "../../schema/payment.ts";
import type { PaymentChange } from "../changes/change_builder.ts";
import { canBecome, canBeReturned, isCapturable, isDeposit } from "./lifecycle.ts";
import {
  authorize,
  become,
  complete,
  decline,
  fail,
  failureIn,
  process,
  requireAction,
  waitForMoney,
} from "./payment_steps.ts";
import type { ProviderEvent, ProviderEventOp } from "../providers/connector.ts";
import { applyEvidence, applyToDispute } from "./apply_to_dispute.ts";
import { applyRefundCheck, applyToRefund } from "./apply_to_refund.ts";
import {
  apply,
  applyAmount,
  applyWithoutCapture,
  type Effect,
  exception,
  IGNORED,
  isCaptured,
  type Parts,
} from "../providers/effect.ts";
import { RAILS } from "../rails.ts";
import { applyReceivedMoney } from "./received_money.ts";

/** The operations whose results are money that the payer sends, for payments of that kind. */
const DEPOSIT_OPS: ReadonlySet<ProviderEventOp> = new Set(["authorize", "abandon"]);

export function isReceivedMoney({ subject }: PaymentChange, event: ProviderEvent): boolean {
  return isDeposit(subject) && DEPOSIT_OPS.has(event.op);
}

export function applyToPayment(
  change: PaymentChange,
  { refund, dispute, deposit }: Parts,
  event: ProviderEvent,
): Effect {
  const { subject: payment } = change;
  if (event.livemode !== payment.livemode) {
    return exception(`the provider's object is ${event.livemode ? "live" : "in test mode"}`);
  }
  if (event.op === "renewal" || event.op === "detach") return applyToCard(change, event);
  if (isReceivedMoney(change, event)) return applyReceivedMoney(change, deposit, event);
  if (event.currency !== payment.currency) {
    return exception(`the currency is ${event.currency} instead of ${payment.currency}`);
  }
  // The card behind the token, which only the provider knows.
  if (payment.method === null && event.card?.shown) {
    change.amend({ method: { type: "card", card: event.card.shown } });
  }
  if (event.card?.kept) change.keepReferences(event.card.kept);
  switch (event.op) {
    case "authorize":
    case "capture":
    case "cancel":
      return applyOutcome(change, event);
    case "abandon":
      // The payer has authenticated at the last moment.
      return isCapturable(payment) ? IGNORED : applyOutcome(change, event);
    case "refund":
      return applyToRefund(change, refund, event);
    case "payee_check":
      return applyRefundCheck(change, refund, event);
    case "dispute":
      return applyToDispute(change, dispute, event);
    case "dispute_evidence":
    case "dispute_accept":
      // An operation that has failed leaves the dispute as it is.
      return event.state === "failed" ? IGNORED : applyEvidence(change, dispute, event);
    case "fee":
      // The provider has taken the fee, also if the payment is over or not captured yet.
      return apply(() => {
        change.move(event.state === "returned" ? "fee_reversal" : "fee", event.amount_minor);
      });
    default:
      return exception(`a payment has no provider event of ${event.op}`);
  }
}

function applyOutcome(change: PaymentChange, event: ProviderEvent): Effect {
  const { subject: payment } = change;
  const { state, next_action, later } = event;
  switch (state) {
    case "pending":
      if (payment.status !== "pending") return IGNORED;
      return apply(() => {
        if (!next_action) return process(change, event.bank?.due_on);
        waitForMoney(change, next_action);
        if (later) change.addOperation(later);
      });
    case "requires_action":
      if (!canBecome(payment, "requires_action")) return IGNORED;
      if (!next_action) return exception("the payer's next action is missing");
      return apply(() => requireAction(change, next_action));
    case "authorized":
      if (!canBecome(payment, "authorized")) return IGNORED;
      return applyAmount(change, payment.amount_minor, event, () => {
        authorize(change, event.card?.capture_before);
        if (later) change.addOperation(later);
      });
    case "succeeded":
      return applySuccess(change, event);
    case "declined":
      if (!canBecome(payment, "declined")) return IGNORED;
      return apply(() => {
        decline(change, declineCodeIn(payment, event), event.advice);
        closeAtProvider(change, event);
      });
    case "failed":
      // A capture or a cancel that has failed leaves the payment as it is.
      if (
        event.op === "capture" || event.op === "cancel" || isCaptured(payment) ||
        !canBecome(payment, "failed")
      ) {
        return IGNORED;
      }
      return apply(() => {
        fail(change, failureIn(event));
        if (event.op === "authorize") closeAtProvider(change, event);
      });
    case "returned":
      return applyReturn(change, event);
    case "received":
    case "reorged":
    case "disputed":
    case "dispute_under_review":
    case "dispute_won":
    case "dispute_lost":
      return exception(`a payment has no provider event ${state}`);
    default:
      return canBecome(payment, state) ? apply(() => become(change, state)) : IGNORED;
  }
}

/** Applies an event about the card that a payment has saved. The end by a request comes first. */
function applyToCard(change: PaymentChange, { op, card }: ProviderEvent): Effect {
  const { instrument_id: id } = change.subject;
  if (id === null) return IGNORED;
  return apply(() => {
    if (op === "detach") {
      change.addInstrument({ act: "end", id, reason: "removed_at_provider" });
    } else if (card?.shown) {
      const method = JSON.stringify({ type: "card", card: card.shown });
      change.addInstrument({ act: "renew", id, method });
    }
  });
}

/** With the payer present, an issuer that wants the payer had the chance to get an answer. */
function declineCodeIn(
  { off_session }: Payment,
  { decline_code = "payment_declined" }: ProviderEvent,
): DeclineCode {
  return decline_code === "authentication_required" && !off_session
    ? "authentication_failed"
    : decline_code;
}

/** Lets the worker cancel a payment at the provider that is over here and still open there. */
function closeAtProvider(
  change: PaymentChange,
  { provider_reference, source }: ProviderEvent,
): void {
  const { livemode, method_kind } = change.subject;
  const is_open = livemode && RAILS[method_kind].stays_open && provider_reference !== null &&
    !source;
  if (is_open) change.addOperation({ op: "abandon", delay_ms: 0 });
}

/** Applies money that has arrived. It is booked even if the payment is over. */
function applySuccess(change: PaymentChange, event: ProviderEvent): Effect {
  const { subject: payment } = change;
  const { amount_minor, chain } = event;
  const is_open = canBecome(payment, "completed");
  // To save a card alone moves no money, also if it comes late.
  if (isCaptured(payment) || amount_minor === 0 && !is_open) return IGNORED;
  if (!is_open) {
    return apply(
      () => change.move("unmatched", amount_minor),
      `money arrived for a payment that is ${payment.status}`,
    );
  }
  const may_be_part = payment.capture === "manual" || isCapturable(payment);
  const is_part = may_be_part && amount_minor < payment.amount_minor;
  const captured = is_part ? amount_minor : payment.amount_minor;
  return applyAmount(change, captured, event, () => {
    complete(change, { amount_minor: captured, tx_hash: chain?.tx_hash });
    if (event.later) change.addOperation(event.later);
  });
}

/** Applies a return. The bank takes the whole amount, also if a refund has given a part back. */
function applyReturn(change: PaymentChange, event: ProviderEvent): Effect {
  const { subject: payment } = change;
  if (!isCaptured(payment)) return applyWithoutCapture(change, event);
  if (!canBeReturned(payment)) return IGNORED;
  return applyAmount(change, payment.amount_captured, event, () => {
    fail(change, { ...failureIn(event), code: "bank_return" });
  });
}
