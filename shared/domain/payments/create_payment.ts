/** Begins payments: checks the body of a create, and makes the payment (contract §2). Pure. */

import { formatTime } from "../../core/clock.ts";
import { isStablecoin } from "../../core/currency.ts";
import { invalidParameter } from "../../core/errors.ts";
import type { CreatePaymentBody } from "../../schema/payment_body.ts";
import type { Payment } from "../../schema/payment.ts";
import { amountOf } from "../../schema/values.ts";
import type { InstrumentProvider } from "../../store/instrument_provider.ts";
import { ChangeBuilder } from "../changes/change_builder.ts";
import type { RequestContext } from "../changes/event.ts";
import {
  capabilityOf,
  checkAmount,
  type Instrument,
  readInstrument,
} from "../providers/instrument.ts";
import { bankDetailsOf, checkAddress } from "../providers/bank_details.ts";
import { beginOperation, type Begun } from "../providers/operation.ts";
import { RAILS } from "../rails.ts";
import { methodWithMandate } from "./collection.ts";
import {
  checkSave,
  recordInstrument,
  type StoredInstrument,
  useInstrument,
} from "./instruments.ts";

/**
 * Begins a payment: checks the body. Throws `ApiError`.
 * @param decline_is_error true: a decline returns 402. False: 201, as the sandbox function does
 * @param used the saved instrument that the body names
 * @param checkout_id the checkout whose attempt it is
 */
export function paymentOf(
  body: CreatePaymentBody,
  decline_is_error: boolean,
  context: RequestContext,
  used: StoredInstrument | null = null,
  checkout_id: string | null = null,
): Begun {
  checkMode(body, context.livemode);
  const id = context.newId("pay_");
  const instrument = used === null
    ? newInstrument(body, id, context)
    : useInstrument(body, used, context);
  checkSave(body, instrument, checkout_id !== null);
  checkCapture(body, instrument);
  checkAmount(instrument.kind, body);
  if (body.iban && body.mandate) checkAddress(body.iban, "iban.", context.livemode);
  if (context.livemode) checkLiveStablecoin(instrument, body.currency);
  const { token = null, behaviour } = instrument;
  const outcome = body.outcome ?? null;
  if (behaviour === "expired" && outcome === null) {
    throw invalidParameter(
      "card.exp_year",
      "This test card simulates an expired card. Use another, such as 4242 4242 4242 4242",
    );
  }
  const saves = body.save === undefined ? null : context.newId("ins_");
  const payment = newPayment(id, body, instrument, context);
  payment.instrument_id = used?.shown.id ?? saves;
  payment.checkout_id = checkout_id;
  if (used !== null) Object.assign(payment, personOf(used, payment.customer));
  const change = new ChangeBuilder(payment, context);
  recordInstrument(change, body, used, behaviour);
  // By a bank rail that does not collect the payer sends the money.
  const { bank, collects, needs_token } = RAILS[instrument.kind];
  const details = context.livemode && body.iban && collects && bank
    ? bankDetailsOf(body.iban, "iban.", bank)
    : used?.details ?? null;
  const request = {
    token,
    ...(details?.address && { has_address: true as const }),
    ...(context.livemode && needs_token && savingOf(change.subject, body)),
    ...(used?.provider && { instrument: accountOf(used.provider) }),
  };
  const begun = beginOperation(change, "authorize", { request, decline_is_error, details });
  const is_manual = body.settlement === "manual";
  if (!context.livemode) {
    const usage = used && (body.off_session ? "off_session" : "on_session");
    return { ...begun, test: { behaviour, outcome, is_manual, usage } };
  }
  return { ...begun, is_bank_order: details !== null && payment.amount_minor > 0 };
}

/** The members of the request by which a provider saves the card. */
function savingOf({ customer }: Payment, { save: usage }: CreatePaymentBody) {
  return usage && { save: { usage, customer_id: customer!.id! } };
}

function accountOf({ account, customer }: InstrumentProvider) {
  return { account, customer };
}

/** Reads the card, IBAN or wallet of a create, with its mandate. */
function newInstrument(body: CreatePaymentBody, id: string, context: RequestContext): Instrument {
  const read = readInstrument(body, context.livemode, context.at_ms);
  return { ...read, method: methodWithMandate(read.method, body, id, context) };
}

/** The customer of an instrument, with what the request says about this payment. */
function personOf(
  { shown: { customer } }: StoredInstrument,
  sent: Payment["customer"],
): Pick<Payment, "customer" | "payer"> {
  const email = sent?.email ?? customer?.email;
  const name = sent?.name ?? customer?.name;
  const person = customer && {
    ...(customer.id !== null && { id: customer.id }),
    email: email ?? null,
    ...(name && { name }),
  };
  return { customer: person, payer: person };
}

function checkCapture({ capture, outcome }: CreatePaymentBody, { kind }: Instrument): void {
  if (capture !== "manual") return;
  if (!RAILS[kind].has_manual_capture) {
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
  if (!RAILS[kind].is_for_stablecoins) return;
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
  id: string,
  body: CreatePaymentBody,
  instrument: Instrument,
  context: RequestContext,
): Payment {
  const amount_minor = amountOf(body)!;
  const person = agreedPerson(body);
  const at = formatTime(context.at_ms);
  return {
    id,
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
    instrument_id: null,
    checkout_id: null,
    off_session: body.off_session ?? false,
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
    advice: null,
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
  const members = ["id", "email", "name"] as const;
  if (customer && payer && members.some((member) => customer[member] !== payer[member])) {
    throw invalidParameter(
      "payer",
      '"payer" is another name for "customer": send one of them, or the same values in both',
    );
  }
  const person = customer ?? payer;
  // Only beside an instrument there can be none, whose customer it then is (`personOf`).
  return person ? { ...person, email: person.email ?? null } : null;
}
