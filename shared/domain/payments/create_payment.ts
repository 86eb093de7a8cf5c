/**
 * Decides the creation of a payment. The input is the body of the request and the answer of a
 * provider; the result is the change with the payment, its events and its ledger movements
 * (contract §2). Pure, except for the provider.
 */

import { formatTime } from "../../core/clock.ts";
import { invalidParameter } from "../../core/errors.ts";
import type { CreatePaymentBody, Payment } from "../../schema/payment.ts";
import { amountOf } from "../../schema/values.ts";
import type { Change } from "../../store/commit_rows.ts";
import { capabilityOf, type Instrument, readInstrument } from "../providers/instrument.ts";
import type { RequestContext } from "../changes/event.ts";
import { ChangeBuilder, type PaymentChange } from "../changes/change_builder.ts";
import type { Authorization, Provider } from "../providers/provider.ts";
import { addRefund } from "./refund_payment.ts";
import { chargeBack, complete, decline, declineAnswer, fail, requireAction } from "./settlement.ts";

/** The input of `decideCreate` besides the body. */
interface CreateContext extends RequestContext {
  provider: Provider;
  /** Base URL of the functions. The URLs of next actions begin with it. */
  base_url: string;
  /** True: a decline answers 402. False: it answers 201, as the sandbox function does. */
  decline_is_error: boolean;
}

/** Decides the creation of a payment. Throws `ApiError` if the request is refused. */
export async function decideCreate(
  body: CreatePaymentBody,
  context: CreateContext,
): Promise<Change> {
  const amount_minor = amountOf(body)!;
  checkMode(body, context.livemode);
  const instrument = readInstrument(body, context.livemode, context.at_ms);
  if (body.settlement === "manual" && instrument.kind === "card") {
    throw invalidParameter(
      "settlement",
      '"settlement" cannot be "manual" for a card: leave it out, or send an "iban" or a "wallet"',
    );
  }
  const authorization = await context.provider.authorize({
    amount_minor,
    currency: body.currency,
    instrument,
    outcome: body.outcome ?? null,
    manual: body.settlement === "manual",
  });
  const change = new ChangeBuilder(newPayment(body, amount_minor, instrument, context), context);
  change.addEvent("payment.created");
  settle(change, authorization, context.base_url);
  return change.finish(
    authorization.result === "declined" && context.decline_is_error
      ? declineAnswer(change, authorization.code)
      : { status: 201, body: change.body },
  );
}

function checkMode(body: CreatePaymentBody, livemode: boolean): void {
  for (const field of ["outcome", "settlement"] as const) {
    if (livemode && body[field] !== undefined) {
      throw invalidParameter(field, `"${field}" is for test keys only: leave it out`);
    }
  }
}

function newPayment(
  body: CreatePaymentBody,
  amount_minor: number,
  instrument: Instrument,
  context: CreateContext,
): Payment {
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
    capability: capabilityOf(instrument.kind),
    method_kind: instrument.kind,
    method: instrument.method,
    customer: person,
    payer: person,
    description: body.description ?? null,
    reference: body.reference ?? null,
    metadata: body.metadata ?? {},
    next_action: null,
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

function settle(change: PaymentChange, authorization: Authorization, base_url: string): void {
  switch (authorization.result) {
    case "pending":
      return;
    case "requires_action":
      return requireAction(change, base_url);
    case "declined":
      return decline(change, authorization.code);
    case "failed":
      return fail(change, authorization.code, authorization.return_code ?? null);
  }
  complete(change, authorization.tx_hash);
  if (authorization.result === "refunded") addRefund(change, change.subject.amount_minor, {});
  if (authorization.result === "chargeback") chargeBack(change);
}
