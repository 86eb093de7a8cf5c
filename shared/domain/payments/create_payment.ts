/**
 * Decides the creation of a payment. The result is the change with the payment, its events and its
 * ledger movements (contract §2). In a sandbox the change has the whole result. With a live key it
 * is the claim: a pending payment, and the call that the provider gets next. Pure.
 */

import { formatTime } from "../../core/clock.ts";
import { isStablecoin } from "../../core/currency.ts";
import { invalidParameter } from "../../core/errors.ts";
import type { CreatePaymentBody, Payment } from "../../schema/payment.ts";
import { amountOf } from "../../schema/values.ts";
import type { Change } from "../../store/commit_rows.ts";
import { capabilityOf, type Instrument, readInstrument } from "../providers/instrument.ts";
import type { RequestContext } from "../changes/event.ts";
import { ChangeBuilder, type PaymentChange } from "../changes/change_builder.ts";
import {
  countFault,
  faultyAuthorization,
  lostCall,
  type ProviderFault,
} from "../providers/provider_fault.ts";
import { type Authorization, authorizePayment } from "../providers/sandbox_provider.ts";
import type { PayerUrls } from "./challenge_url.ts";
import { addExpiry, depositMembers } from "./deposit.ts";
import { isDeposit } from "./lifecycle.ts";
import { openDispute } from "./dispute_payment.ts";
import { addRefund } from "./refund_payment.ts";
import {
  authorize,
  complete,
  decline,
  declineAnswer,
  fail,
  requireChallenge,
} from "./settlement.ts";

/** Time after which a payment with a late answer completes in the sandbox. */
const LATE_ANSWER_MS = 2_000;

/** The input of `decideCreate` besides the body. */
interface CreateContext extends RequestContext {
  /** For the URL of a next action. */
  urls: PayerUrls;
  /** True: a decline answers 402. False: it answers 201, as the sandbox function does. */
  decline_is_error: boolean;
  /** The declared fault of the provider; absent: none. */
  fault?: ProviderFault | null;
}

/** Decides the creation of a sandbox payment. Throws `ApiError` if the request is refused. */
export function decideCreate(body: CreatePaymentBody, context: CreateContext): Change {
  const { change, instrument } = beginPayment(body, context);
  const manual = body.settlement === "manual";
  const usual = authorizePayment({
    amount_minor: change.subject.amount_minor,
    currency: body.currency,
    instrument,
    outcome: body.outcome ?? null,
    manual,
  });
  const { fault = null } = context;
  const authorization = fault === null ? usual : faultyAuthorization(fault, instrument.kind);
  settle(change, authorization, context.urls);
  if (isDeposit(change.subject)) addExpiry(change);
  const { status } = change.subject;
  if (status === "processing" && !manual) {
    change.addCall(
      fault === null
        ? { op: "authorize", delay_ms: LATE_ANSWER_MS }
        : { op: "authorize", ...lostCall(usual) },
    );
  }
  const decided = change.finish(
    authorization.result === "declined" && context.decline_is_error
      ? declineAnswer(change.subject, authorization.code, context.request_id)
      : { status: 201, body: change.body },
  );
  return countFault(fault, decided);
}

/** Begins a payment: checks the body and adds `payment.created`. Throws `ApiError`. */
export function beginPayment(
  body: CreatePaymentBody,
  context: RequestContext & Pick<CreateContext, "fault">,
): { change: PaymentChange; instrument: Instrument } {
  checkMode(body, context.livemode);
  const instrument = readInstrument(body, context.livemode, context.at_ms);
  checkCapture(body, instrument);
  if (context.livemode) checkLiveStablecoin(instrument, body.currency);
  const change = new ChangeBuilder(newPayment(body, instrument, context), context);
  change.addEvent("payment.created", depositOf(change.subject, body, context));
  return { change, instrument };
}

/**
 * Returns the members of a sandbox payment by stablecoin without a wallet and an outcome, which the
 * payer sends to an address. A payment with a declared fault gets no address.
 */
function depositOf(
  payment: Payment,
  { outcome }: CreatePaymentBody,
  { livemode, at_ms, fault = null }: RequestContext & Pick<CreateContext, "fault">,
): Partial<Payment> {
  const { method_kind, method } = payment;
  if (livemode || fault || outcome || method || method_kind !== "stablecoin") return {};
  return depositMembers(payment, at_ms) ?? {};
}

function checkCapture({ capture, outcome }: CreatePaymentBody, { kind }: Instrument): void {
  if (capture !== "manual") return;
  if (kind !== "card") {
    throw invalidParameter("capture", '"capture" can be "manual" for cards only: leave it out');
  }
  if (outcome === "refunded" || outcome === "chargeback") {
    throw invalidParameter(
      "capture",
      `"capture" cannot be "manual" with the outcome "${outcome}", which needs a captured ` +
        "payment: leave it out",
    );
  }
}

/** Refuses a `wallet` and other currencies: the payer sends to an address, from any wallet. */
function checkLiveStablecoin({ kind, method }: Instrument, currency: string): void {
  if (kind !== "stablecoin") return;
  if (method !== null) {
    throw invalidParameter(
      "wallet",
      '"wallet" is for test keys only: leave it out, and show the payer "next_action.address"',
    );
  }
  if (!isStablecoin(currency)) {
    throw invalidParameter(
      "currency",
      '"currency" must be USDC or USDT for a live payment by stablecoin',
    );
  }
}

function checkMode(body: CreatePaymentBody, livemode: boolean): void {
  if (livemode && body.return_url?.startsWith("http:")) {
    throw invalidParameter("return_url", '"return_url" must begin with https for a live key');
  }
  for (const field of ["outcome", "settlement"] as const) {
    if (livemode && body[field] !== undefined) {
      throw invalidParameter(field, `"${field}" is for test keys only: leave it out`);
    }
  }
}

function newPayment(
  body: CreatePaymentBody,
  instrument: Instrument,
  context: RequestContext,
): Payment {
  const amount_minor = amountOf(body)!;
  const person = agreedPerson(body);
  const at = formatTime(context.at_ms);
  return {
    id: context.mint("pay_"),
    object: "payment",
    status: "pending",
    amount: amount_minor,
    amount_minor,
    currency: body.currency,
    amount_refunded: 0,
    amount_refunding: 0,
    amount_captured: 0,
    amount_disputed: 0,
    amount_received: null,
    capability: capabilityOf(instrument.kind),
    method_kind: instrument.kind,
    method: instrument.method,
    customer: person,
    payer: person,
    description: body.description ?? null,
    reference: body.reference ?? null,
    metadata: body.metadata ?? {},
    next_action: null,
    return_url: body.return_url ?? null,
    capture: body.capture ?? "automatic",
    capture_before: null,
    settlement: context.livemode ? null : body.settlement ?? "instant",
    failure_code: null,
    failure_message: null,
    return_code: null,
    livemode: context.livemode,
    sequence: 0,
    created_at: at,
    updated_at: at,
    completed_at: null,
    cancelled_at: null,
  };
}

function agreedPerson(body: CreatePaymentBody): Payment["customer"] {
  const { customer, payer } = body;
  if (customer && payer && (customer.email !== payer.email || customer.name !== payer.name)) {
    throw invalidParameter(
      "payer",
      '"payer" is another name for "customer": send one of them, or the same values in both',
    );
  }
  return customer ?? payer ?? null;
}

function settle(change: PaymentChange, authorization: Authorization, urls: PayerUrls): void {
  switch (authorization.result) {
    case "pending":
      return;
    case "processing":
      return change.addEvent("payment.processing", { status: "processing" });
    case "requires_action":
      return requireChallenge(change, urls);
    case "declined":
      return decline(change, authorization.code);
    case "failed":
      return fail(change, authorization.code, authorization.return_code ?? null);
  }
  if (change.subject.capture === "manual") return authorize(change);
  complete(change, { tx_hash: authorization.tx_hash });
  if (authorization.result === "refunded") addRefund(change, change.subject.amount_minor);
  if (authorization.result === "chargeback") openDispute(change, authorization.reason);
}
