/**
 * The moves that a test makes in a sandbox (contract §2): an advance to a status, and the result of
 * 3-D Secure. Each becomes provider events of the simulated provider. Pure.
 */

import { ApiError, invalidParameter } from "../core/errors.ts";
import type { Dispute } from "../schema/dispute.ts";
import type { DisputeReason, PaymentStatus, RefundStatus } from "../schema/statuses.ts";
import type { AuthenticationResult } from "../schema/payment_body.ts";
import type { Payment } from "../schema/payment.ts";
import type { Transfer } from "../schema/transfer.ts";
import type { Change } from "../store/commit_rows.ts";
import { applyEvent, NO_PARTS } from "../domain/operations/apply_event.ts";
import type { Parts } from "../domain/providers/effect.ts";
import {
  ChangeBuilder,
  type PaymentChange,
  responseOnly,
} from "../domain/changes/change_builder.ts";
import type { RequestContext } from "../domain/changes/event.ts";
import { readRefund } from "../domain/changes/read_resource.ts";
import { invalidDisputeState, isOpen } from "../domain/payments/dispute_payment.ts";
import {
  advancesOf,
  type Deposit,
  invalidState,
  invalidTransferState,
  isDeposit,
  isOpenDeposit,
  isRefundable,
  missingAmount,
  nextStatuses,
  settlesAtOnce,
  transferAdvances,
} from "../domain/payments/lifecycle.ts";
import { declineResponse } from "../domain/payments/payment_steps.ts";
import type { ProviderEvent } from "../domain/providers/connector.ts";
import { beginOperation, type Operation } from "../domain/providers/operation.ts";
import { halfOfRest, refundable } from "../domain/payment_statuses.ts";
import { type Rail, railNames } from "../domain/rails.ts";
import type { PayerUrls } from "./challenge_url.ts";
import {
  authenticationEvent,
  authorizedEvent,
  challengeEvent,
  disputedEvent,
  eventOf,
  finalEvents,
  hashOf,
  type PayerPage,
  type RailFailure,
  railFailure,
} from "./sandbox_replies.ts";

interface AdvanceOptions {
  dispute?: Dispute | null;
  reason?: DisputeReason | undefined;
  /** The amount that the payer sends now, of a payment that the payer sends. */
  amount_received?: number | undefined;
  /** The bank's code of the return or rejection. */
  return_code?: string | undefined;
}

/**
 * Decides an advance to the status `to`. Returns null if the payment has this status already.
 * @param urls for the URL of a next action
 * @param options.dispute of a payment that is charged back. Null for other payments, and if it has
 *   ended since the payment was loaded
 */
export function decideAdvance(
  payment: Payment,
  to: PaymentStatus,
  urls: PayerUrls,
  context: RequestContext,
  { dispute = null, reason, amount_received, return_code }: AdvanceOptions = {},
): Change | null {
  if (amount_received !== undefined && !isDeposit(payment)) {
    throw invalidParameter(
      "amount_received",
      '"amount_received" is only for payments with a bank transfer or an address as ' +
        '"next_action": leave it out',
    );
  }
  const failure = failureOf(payment, return_code);
  const { operation, change } = beginOperation(new ChangeBuilder(payment, context), "authorize");
  if (to === payment.status) {
    if (amount_received === undefined || !isDeposit(payment)) return null;
    if (to === "pending" && !settlesAtOnce(payment)) throw undoneAndSent();
    return applied(change, NO_PARTS, partEvents(operation, payment, amount_received), to);
  }
  const allowed = advancesOf(payment);
  if (!allowed.includes(to)) throw invalidState(`advance to "${to}"`, payment, allowed);
  if (dispute && !isOpen(dispute)) {
    throw invalidDisputeState(`Cannot advance to "${to}": the dispute is lost`, dispute);
  }
  // Another request has ended the dispute since the payment was loaded, so this commit is stale.
  if (payment.status === "chargeback" && !dispute) {
    return responseOnly(payment, { status: 200, body: JSON.stringify(payment) });
  }
  let provider_events: ProviderEvent[];
  if (isDeposit(payment) && isOpenDeposit(payment)) {
    provider_events = depositEvents(operation, payment, to, amount_received);
  } else if (amount_received !== undefined) throw lateWithMove(payment);
  else if (to === "chargeback") {
    provider_events = [disputedEvent(operation, refundable(payment), reason)];
  } else {
    const page = { random: context.random, urls };
    provider_events = [eventTo(operation, payment, to, { dispute, failure, page })];
  }
  return applied(change, { ...NO_PARTS, dispute }, provider_events, to);
}

/**
 * Applies events, and returns 200 with the resource. Throws `invalid_state` if one changes nothing.
 */
function applied(
  change: PaymentChange,
  parts: Parts,
  provider_events: readonly ProviderEvent[],
  to: PaymentStatus,
): Change {
  const { subject: payment } = change;
  for (const event of provider_events) {
    const { provider_reference } = event;
    if (provider_reference !== null) change.addOperation({ op: "authorize", provider_reference });
    const { effect } = applyEvent(change, parts, event);
    if (effect.outcome !== "applied") {
      throw invalidState(`advance to "${to}"`, payment, advancesOf(payment));
    }
  }
  return change.finish({ status: 200, body: change.body || JSON.stringify(payment) });
}

/**
 * Returns how a payment or transfer fails. Throws `invalid_parameter` for a return code on a rail
 * without one.
 */
function failureOf(subject: Payment | Transfer, return_code?: string): RailFailure {
  const failure = railFailure(subject);
  if (return_code === undefined) return failure;
  if (failure.return_code === undefined) {
    throw invalidParameter(
      "return_code",
      `"return_code" is only for money by ${railNames(isReturned)}: leave it out`,
    );
  }
  return { ...failure, return_code };
}

function isReturned({ returns }: Rail): boolean {
  return returns !== null;
}

function eventTo(
  operation: Operation,
  payment: Payment,
  to: Exclude<PaymentStatus, "chargeback">,
  { dispute, failure, page }: { dispute: Dispute | null; failure: RailFailure; page: PayerPage },
): ProviderEvent {
  if (dispute) {
    const { amount_minor } = dispute;
    return eventOf(operation, "dispute_won", { op: "dispute", amount_minor });
  }
  switch (to) {
    case "authorized":
      return authorizedEvent(operation);
    case "completed":
      return eventOf(operation, "succeeded", hashOf(payment));
    case "requires_action":
      return challengeEvent(operation, page);
    case "processing":
      return eventOf(operation, "pending");
    case "failed":
      return isRefundable(payment)
        ? eventOf(operation, "returned", { amount_minor: payment.amount_captured, ...failure })
        : eventOf(operation, "failed", failure);
    case "refunded":
      return refundEvent(operation, refundable(payment));
    case "partially_refunded":
      return refundEvent(operation, halfOfRest(payment));
    case "pending":
      throw new Error("only a payment that the payer sends can be moved to pending");
    default:
      return eventOf(operation, to);
  }
}

function refundEvent(operation: Operation, amount_minor: number): ProviderEvent {
  return eventOf(operation, "succeeded", { op: "refund", amount_minor });
}

/**
 * Returns the events that advance an open payment that the payer sends.
 * @param sent the amount that the payer sends now; undefined: the missing amount
 */
function depositEvents(
  operation: Operation,
  payment: Payment & Deposit,
  to: PaymentStatus,
  sent: number | undefined,
): ProviderEvent[] {
  const missing = missingAmount(payment);
  const parts = (amount: number) => amount > 0 ? partEvents(operation, payment, amount) : [];
  const final = (amount: number) =>
    finalEvents(operation, { ...payment, amount_received: payment.amount_received + amount });
  switch (to) {
    case "processing":
      return parts(sent ?? missing);
    case "completed": {
      if (sent !== undefined && sent < missing && !settlesAtOnce(payment)) throw tooLittle(missing);
      const more = sent ?? missing;
      return [...parts(more), ...final(more)];
    }
    case "pending":
      if (sent !== undefined) throw undoneAndSent();
      return [
        eventOf(operation, "reorged", {
          amount_minor: payment.amount_received,
          is_counted: true,
        }),
      ];
    case "failed": {
      if (sent !== undefined && sent >= missing) throw notUnderpaid(missing);
      return [
        ...parts(sent ?? 0),
        ...final(sent ?? 0),
        eventOf(operation, "failed", { op: "abandon" }),
      ];
    }
    case "cancelled":
      return [eventOf(operation, "cancelled", { op: "cancel" })];
    default:
      throw new Error(`no payment that the payer sends can be moved to ${to}`);
  }
}

/**
 * Returns the event that a part of the money has come. A bank books it, and so is late money: the
 * part is final. A block that has it can still be undone.
 */
function partEvents(
  operation: Operation,
  payment: Payment & Deposit,
  amount_minor: number,
): [ProviderEvent] {
  if (!Number.isSafeInteger(payment.amount_received + amount_minor)) {
    throw invalidParameter("amount_received", "The sum of the received amounts is too large");
  }
  const is_final = settlesAtOnce(payment) || !isOpenDeposit(payment);
  return [eventOf(operation, is_final ? "succeeded" : "received", { amount_minor })];
}

function undoneAndSent(): ApiError {
  return invalidParameter(
    "amount_received",
    '"amount_received" cannot be sent with an advance to "pending": remove it',
  );
}

function tooLittle(missing: number): ApiError {
  return invalidParameter(
    "amount_received",
    `A payment completes with its whole amount: send at least the missing ${missing}, or advance ` +
      'to "processing"',
  );
}

function notUnderpaid(missing: number): ApiError {
  return invalidParameter(
    "amount_received",
    `A payment fails as underpaid below its amount: send less than the missing ${missing}`,
  );
}

function lateWithMove({ status }: Payment): ApiError {
  return invalidParameter(
    "amount_received",
    `The payment is ${status}: to simulate late money, advance it to "${status}"`,
  );
}

export function decideAuthenticate(
  payment: Payment,
  result: AuthenticationResult,
  context: RequestContext,
): Change {
  const change = new ChangeBuilder(payment, context);
  authenticate(change, result);
  return change.finish(
    result === "success"
      ? { status: 200, body: change.body }
      : declineResponse(change.subject, "authentication_failed", context),
  );
}

/** Applies the result of 3-D Secure. Throws `invalid_state` if the payment waits for none. */
export function authenticate(change: PaymentChange, result: AuthenticationResult): void {
  const { subject: payment } = change;
  if (payment.status !== "requires_action") {
    throw invalidState("authenticate", payment, nextStatuses(payment));
  }
  const { operation } = beginOperation(change, "authorize");
  applyEvent(change, NO_PARTS, authenticationEvent(operation, payment, result));
}

/**
 * Decides an advance of a refund. If the refund has this status already, the change only has a
 * response.
 * @param body the refund as it is stored
 */
export function decideAdvanceRefund(
  payment: Payment,
  body: string,
  to: RefundStatus,
  context: RequestContext,
  return_code?: string,
): Change {
  const refund = readRefund(body);
  const failure = return_code === undefined ? {} : failureOf(payment, return_code);
  const { id: refund_id, status, amount_minor } = refund;
  if (to === status) return responseOnly(payment, { status: 200, body });
  const allowed: RefundStatus[] = status === "pending"
    ? ["completed", "failed"]
    : status === "completed"
    ? ["failed"]
    : [];
  if (!allowed.includes(to)) {
    throw new ApiError("invalid_state", `Cannot advance to "${to}": the refund is ${status}`, {
      current_status: status,
      allowed,
    });
  }
  const { operation, change } = beginOperation(new ChangeBuilder(payment, context), "refund");
  const state = to === "completed" ? "succeeded" : status === "completed" ? "returned" : "failed";
  applyEvent(
    change,
    { ...NO_PARTS, refund },
    eventOf(operation, state, { refund_id, amount_minor, ...failure }),
  );
  return change.finish({ status: 200, body: change.refund_body ?? body });
}

/** Decides an advance of a transfer. Returns null if it has the status already. */
export function decideAdvanceTransfer(
  transfer: Transfer,
  to: Transfer["status"],
  context: RequestContext,
  return_code?: string,
): Change | null {
  const failure = failureOf(transfer, return_code);
  if (to === transfer.status) return null;
  if (!transferAdvances(transfer).includes(to)) {
    throw invalidTransferState(`advance to "${to}"`, transfer);
  }
  const { operation, change } = beginOperation(new ChangeBuilder(transfer, context), "transfer");
  const event = to === "completed"
    ? eventOf(operation, "succeeded", hashOf(transfer))
    : to === "failed"
    ? eventOf(operation, transfer.status === "completed" ? "returned" : "failed", failure)
    : eventOf(operation, "cancelled");
  applyEvent(change, NO_PARTS, event);
  return change.finish({ status: 200, body: change.body });
}
