/**
 * Refunds of a payment, of a part or of the rest (contract §3). A refund begins `pending` and holds
 * its amount; what the provider reports completes it or makes it fail. Pure.
 */

import { formatTime } from "../../core/clock.ts";
import { formatAmount } from "../../core/currency.ts";
import { ApiError, invalidParameter } from "../../core/errors.ts";
import { isValidAddress } from "../../core/wallet_address.ts";
import type { PayeeCheck } from "../../schema/bank_account.ts";
import type { FailureCode, Payment } from "../../schema/payment.ts";
import type { CreateRefundBody } from "../../schema/refund_body.ts";
import type { Refund } from "../../schema/refund.ts";
import { amountOf } from "../../schema/values.ts";
import {
  canBeReturned,
  invalidState,
  isDeposit,
  isRefundable,
  needsApproval,
  nextStatuses,
  refundStatus,
} from "./lifecycle.ts";
import type { EventContext, RequestContext } from "../changes/event.ts";
import { ChangeBuilder, type PaymentChange } from "../changes/change_builder.ts";
import type { BankDetails } from "../providers/bank_details.ts";
import { beginOperation, type Begun } from "../providers/operation.ts";
import { checkSpeed, type Payee, readPayee } from "../providers/payee.ts";
import { refundable } from "../payment_statuses.ts";
import { railNames, railOf, RAILS } from "../rails.ts";
import { type Failure, shownFailure } from "./payment_steps.ts";

type RefundInput =
  & Pick<CreateRefundBody, "reason" | "metadata" | "speed">
  & Partial<Pick<Refund, "destination">>;

/** Begins a refund of a payment. Throws `ApiError` if the amount is not left to refund. */
export function refundOf(payment: Payment, body: CreateRefundBody, context: RequestContext): Begun {
  const amount_minor = amountOf(body);
  if (!isRefundable(payment)) throw invalidState("refund", payment, nextStatuses(payment));
  const payee = readDestination(payment, body);
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
  const change = new ChangeBuilder(payment, context);
  const { destination, payee_check, details } = payee;
  const refund = beginRefund(change, amount_minor ?? rest, { ...body, destination });
  const begun = {
    ...beginOperation(change, "refund", { refund, amount_minor: refund.amount_minor, details }),
    payee_check,
  };
  if (needsApproval(payee_check)) {
    return { ...begun, test: { behaviour: null, outcome: null, is_manual: true } };
  }
  // By default the money goes back to the account that it came from.
  return { ...begun, is_bank_order: context.livemode && railOf(payment).bank !== null };
}

export function noteRefundCheck(
  change: PaymentChange,
  refund: Refund,
  payee_check: PayeeCheck,
): void {
  const payment_status = change.subject.status;
  const noted = { ...refund, payment_status, payee_check, updated_at: change.at };
  change.addRefundEvent("refund.updated", noted);
}

/** Completes a pending refund: the money leaves. */
export function completeRefund(change: PaymentChange, refund: Refund): void {
  const { subject: payment } = change;
  const { amount_minor } = refund;
  const amount_refunded = payment.amount_refunded + amount_minor;
  const amount_refunding = payment.amount_refunding - amount_minor;
  // A payment that was charged back or returned meanwhile keeps its status.
  const status = isRefundable(payment) ? refundStatus({ ...payment, amount_refunded }) : null;
  change.move("refund", amount_minor, refund.id);
  change.addRefundEvent("refund.completed", {
    ...refund,
    payment_status: status ?? payment.status,
    status: "completed",
    updated_at: change.at,
  }, { amount_refunding, amount_refunded });
  if (status) change.addEvent(`payment.${status}`, { status });
}

export function failRefund(change: PaymentChange, refund: Refund, failure: Failure): void {
  const { subject: payment } = change;
  change.addRefundEvent("refund.failed", {
    ...refund,
    payment_status: payment.status,
    status: "failed",
    ...shownFailure(failure, REFUND_FAILURES),
    updated_at: change.at,
  }, { amount_refunding: payment.amount_refunding - refund.amount_minor });
}

/**
 * Makes a completed refund fail: the provider has given its money back, which can be refunded
 * again.
 */
export function revertRefund(change: PaymentChange, refund: Refund, failure: Failure): void {
  const { subject: payment } = change;
  const amount_refunded = payment.amount_refunded - refund.amount_minor;
  // A payment that was charged back or returned meanwhile keeps its status.
  const status = canBeReturned(payment) ? refundStatus({ ...payment, amount_refunded }) : null;
  change.move("refund_reversal", refund.amount_minor, refund.id);
  change.addRefundEvent("refund.failed", {
    ...refund,
    payment_status: status ?? payment.status,
    status: "failed",
    ...shownFailure(failure, REFUND_FAILURES),
    updated_at: change.at,
  }, { amount_refunded });
  if (status) change.addEvent(`payment.${status}`, { status });
}

/** Messages of failed refunds, where those of payments do not fit. */
const REFUND_FAILURES: Partial<Record<FailureCode, string>> = {
  processing_failed: "The refund failed while it was processed",
  provider_refused: "The provider refused the refund",
};

export function sampleRefund(
  payment: Payment,
  { status, payee_check = null }: Pick<Refund, "status"> & Partial<Pick<Refund, "payee_check">>,
  context: RequestContext,
): Refund {
  const refund = { ...newRefund(payment, payment.amount_minor, {}, context), payee_check };
  if (status === "failed") {
    const failure_code = "processing_failed";
    return { ...refund, status, failure_code, failure_message: REFUND_FAILURES[failure_code]! };
  }
  return status === "completed" ? { ...refund, status, payment_status: "refunded" } : refund;
}

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
    id: context.newId("re_"),
    object: "refund",
    payment_id: payment.id,
    payment_status: payment.status,
    amount: amount_minor,
    amount_minor,
    currency: payment.currency,
    status: "pending",
    failure_code: null,
    failure_message: null,
    return_code: null,
    reason: body.reason ?? null,
    metadata: body.metadata ?? {},
    destination: body.destination ?? null,
    speed: railOf(payment).bank === null ? null : body.speed ?? "standard",
    payee_check: null,
    livemode: payment.livemode,
    created_at: at,
    updated_at: at,
  };
}

/** Where a refund goes, without the secret parts of an account. */
interface RefundPayee extends Pick<Payee, "payee_check"> {
  destination: Refund["destination"];
  /** The whole account of a live payee; null: it is that of the payer, or no bank pays. */
  details: BankDetails | null;
}

const TO_THE_PAYER: RefundPayee = {
  destination: null,
  payee_check: null,
  details: null,
};

/** Reads where a refund goes, and checks its speed. Throws `invalid_parameter`. */
function readDestination(
  payment: Payment,
  { destination, speed }: Pick<CreateRefundBody, "destination" | "speed">,
): RefundPayee {
  const { method_kind, currency, livemode } = payment;
  const { refund_to } = RAILS[method_kind];
  if (!destination) checkSpeed(speed, method_kind);
  if (refund_to === "wallet") return readRefundWallet(payment, destination);
  if (!destination) return TO_THE_PAYER;
  if (refund_to === "payer") {
    throw invalidParameter(
      "destination",
      `"destination" is not for payments by ${method_kind}: leave it out`,
    );
  }
  refund_to satisfies "account";
  const { iban, address, ...details } = destination;
  if (!iban) {
    const names = railNames((rail) => rail.refund_to === "account");
    throw invalidParameter(
      "destination",
      `"destination" of a refund by ${names} must have the "iban" of the payee`,
    );
  }
  checkPostalAddress(address);
  const payee = readPayee({ ...details, address, iban }, { currency, livemode });
  checkSpeed(speed, payee.kind);
  const { method, payee_check } = payee;
  if (!method || !("iban" in method)) throw new Error("a payee has an account");
  return { destination: { iban: method.iban }, payee_check, details: payee.details };
}

function checkPostalAddress(
  address: NonNullable<CreateRefundBody["destination"]>["address"],
): void {
  if (!address || !address.wallet && address.city && address.country) return;
  const field = address.wallet ? "address" : address.city ? "address.country" : "address.city";
  throw invalidParameter(
    `destination.${field}`,
    'The "address" of a payee by bank is a postal address: send "city" and "country" at least',
  );
}

/**
 * Reads the wallet of a refund. Throws `invalid_parameter` if a payment that was sent to an address
 * has none, or if it is not an address of the network.
 */
function readRefundWallet(
  payment: Payment,
  destination: CreateRefundBody["destination"],
): RefundPayee {
  if (!destination) {
    if (!isDeposit(payment)) return TO_THE_PAYER;
    throw invalidParameter(
      "destination",
      'A payment that was sent to an address needs a "destination": ask the payer for a wallet ' +
        "address, because the sender can be an exchange",
    );
  }
  const { method } = payment;
  const network = method && "wallet" in method ? method.wallet.network : "ethereum";
  const wallet = destination.address?.wallet ?? "";
  if (
    Object.keys(destination).length === 1 && isValidAddress(network, wallet) &&
    !/^0x0{40}$/i.test(wallet)
  ) {
    return { destination: { address: wallet }, payee_check: null, details: null };
  }
  throw invalidParameter(
    "destination.address",
    `"destination" must have the address of a wallet on ${network} alone: check each character`,
  );
}
