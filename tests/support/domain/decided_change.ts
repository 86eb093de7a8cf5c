/**
 * Values for the tests of domain rules: the context of a request with a fixed time, a payment in
 * any state, and a short form of a decided change.
 */

import { formatTime } from "../../../shared/core/clock.ts";
import { ApiError } from "../../../shared/core/errors.ts";
import { idGenerator, systemRandom } from "../../../shared/core/ids.ts";
import { sampleDispute } from "../../../shared/domain/payments/dispute_payment.ts";
import type { RequestContext } from "../../../shared/domain/changes/event.ts";
import { STATUSES } from "../../../shared/domain/payment_statuses.ts";
import { cancelled, changeAtOnce } from "../../../shared/domain/operations/operations.ts";
import type { Begun } from "../../../shared/domain/providers/operation.ts";
import { decideAdvance } from "../../../shared/sandbox/advance.ts";
import type { PayerUrls } from "../../../shared/sandbox/challenge_url.ts";
import { replyAtOnce } from "../../../shared/sandbox/sandbox_replies.ts";
import type { CreatePaymentBody } from "../../../shared/schema/payment_body.ts";
import type { Transfer } from "../../../shared/schema/transfer.ts";
import type { Payment } from "../../../shared/schema/payment.ts";
import type { PaymentStatus } from "../../../shared/schema/statuses.ts";
import type { Refund } from "../../../shared/schema/refund.ts";
import type { Change } from "../../../shared/store/commit_rows.ts";

export const MADE_AT = "2026-01-02T03:04:05.006Z";
export const NOW_MS = Date.parse("2026-02-03T04:05:06.007Z");
export const NOW = formatTime(NOW_MS);
export const BASE_URL = "https://pay.example.com/functions/v1";
/** The URLs for a payer of a service whose console is not hosted. */
export const URLS = { base_url: BASE_URL, checkout_url: null };

/** Returns the context of a request at `NOW`, by default with a test key. */
export function requestContext(livemode = false): RequestContext {
  const context = {
    request_id: `req_${"1".repeat(26)}`,
    idempotency_key: "key",
    livemode,
    at_ms: NOW_MS,
    newId: idGenerator(NOW_MS),
    random: systemRandom,
    docs_url: null,
    run_number: null,
  };
  return context;
}

/** Decides an operation with the reply of the sandbox's provider. */
export function decided(begun: Begun, urls: PayerUrls = URLS): Change {
  if (begun.is_internal) return cancelled(begun);
  const { at_ms, random } = begun.change.context;
  return changeAtOnce(begun, { reply: replyAtOnce(begun, null, at_ms, { random, urls }) });
}

/** Decides an advance of a payment. One that is charged back has an open dispute. */
export function advanceTo(
  payment: Payment,
  to: PaymentStatus,
  context = requestContext(),
  return_code?: string,
): Change | null {
  const { status, amount_disputed } = payment;
  const dispute = status === "chargeback"
    ? { ...sampleDispute(payment, "needs_response", context), amount_minor: amount_disputed }
    : null;
  return decideAdvance(payment, to, URLS, context, { dispute, return_code });
}

/** Each field of a create that the payment shows, with a value that it has only if it was sent. */
export const SHOWN_FIELDS: {
  [F in keyof CreatePaymentBody & keyof Payment]: NonNullable<Payment[F]>;
} = {
  amount: 7,
  amount_minor: 7,
  currency: "CHF",
  capability: "card_payment",
  method_kind: "card",
  customer: { id: "i".repeat(64), email: "a@b.co" },
  payer: { id: "i".repeat(64), email: "a@b.co" },
  description: "d".repeat(500),
  reference: "r".repeat(255),
  metadata: { order: "7" },
  capture: "manual",
  return_url: "http://localhost:3000/back",
  settlement: "manual",
  off_session: false,
};

/**
 * Returns a card payment of 1000 EUR cents, with these members in place of its own. By default the
 * whole amount is captured if the status says that money was taken.
 */
export function paymentWith(members: Partial<Payment>): Payment {
  const { amount_minor = 1000, status = "pending" } = members;
  return {
    id: `pay_${"2".repeat(26)}`,
    object: "payment",
    status: "pending",
    amount: amount_minor,
    amount_minor,
    currency: "EUR",
    amount_refunded: 0,
    amount_refunding: 0,
    amount_captured: STATUSES[status].result === "paid" ? amount_minor : 0,
    amount_disputed: 0,
    amount_received: null,
    capability: "card_payment",
    method_kind: "card",
    method: null,
    instrument_id: null,
    checkout_id: null,
    off_session: false,
    customer: null,
    payer: null,
    description: null,
    reference: null,
    metadata: {},
    next_action: null,
    return_url: null,
    capture: "automatic",
    capture_before: null,
    settlement: "instant",
    failure_code: null,
    failure_message: null,
    advice: null,
    return_code: null,
    livemode: false,
    sequence: 3,
    created_at: MADE_AT,
    updated_at: MADE_AT,
    completed_at: null,
    cancelled_at: null,
    ...members,
  };
}

/** Returns a pending refund of 300 of that payment, with these members in place of its own. */
export function refundWith(members: Partial<Refund>): Refund {
  const { amount_minor = 300 } = members;
  return {
    id: `re_${"3".repeat(26)}`,
    object: "refund",
    payment_id: paymentWith({}).id,
    payment_status: "completed",
    amount: amount_minor,
    amount_minor,
    currency: "EUR",
    status: "pending",
    failure_code: null,
    failure_message: null,
    return_code: null,
    reason: null,
    metadata: {},
    destination: null,
    speed: null,
    payee_check: null,
    livemode: false,
    created_at: MADE_AT,
    updated_at: MADE_AT,
    ...members,
  };
}

/** Returns a pending live transfer of 1000 EUR cents to a bank, with these members. */
export function transferWith(members: Partial<Transfer>): Transfer {
  return {
    id: `tr_${"2".repeat(26)}`,
    object: "transfer",
    status: "pending",
    amount: 1000,
    amount_minor: 1000,
    currency: "EUR",
    destination: { type: "iban", iban: { country: "DE", last4: "3000" } },
    description: null,
    metadata: {},
    speed: "standard",
    payee_check: null,
    failure_code: null,
    failure_message: null,
    return_code: null,
    livemode: true,
    sequence: 1,
    created_at: MADE_AT,
    updated_at: MADE_AT,
    completed_at: null,
    cancelled_at: null,
    ...members,
  };
}

/** Returns a short form of a change. A movement is `capture processor>available 1000`. */
export function summaryOf({ events, ledger, refunds }: Change) {
  return {
    events: events.map(({ type, sequence }) => `${sequence} ${type}`),
    ledger: ledger.map((movement) =>
      `${movement.kind} ${movement.debit_account}>${movement.credit_account} ` +
      movement.amount_minor
    ),
    refunds: refunds.map(({ status, amount_minor }) => `${status} ${amount_minor}`),
  };
}

/** Returns the code and param of the `ApiError` that a call throws, or "none". */
export function refusalOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return [error.code, error.details.param].filter(Boolean).join(" ");
  }
  return "none";
}
