/** Payments: create with confirm, 3-D Secure, capture and cancel. localstripe decides. */

import type { EnginePayment } from "./engine.ts";
import type { StripeObject } from "./journal.ts";
import { askPayer, keepCard, namedCard } from "./cards.ts";
import { OWN_CODES, paymentMethod } from "./tokens.ts";
import {
  done,
  type Form,
  metadataOf,
  nowSeconds,
  type Outcome,
  refuse,
  shown,
  unexpectedState,
  type Work,
} from "./work.ts";

/** Time of an authorization. That of a Visa card is shorter than that of others. */
const CAPTURE_WINDOW_S = 5 * 24 * 3600;
const UNAUTHENTICATED = "payment_intent_authentication_failure";
/** The fee of this double: 1.5 % and 25 minor units. */
const feeOf = (amount: number) => Math.round(amount * 0.015) + 25;

/** POST /v1/payment_intents, with `confirm`. */
export async function createPayment(work: Work, form: Form): Promise<Outcome> {
  const named = namedCard(work, form);
  if ("status" in named) return named;
  const { token, method } = named;
  const intent: StripeObject = work.make("payment_intent", "pi", {
    amount: Number(form.amount),
    amount_capturable: 0,
    amount_received: 0,
    currency: form.currency,
    status: "requires_confirmation",
    capture_method: form.capture_method ?? "automatic_async",
    description: form.description ?? null,
    payment_method: method?.id ?? form.payment_method,
    customer: form.customer ?? null,
    setup_future_usage: form.setup_future_usage ?? null,
    latest_charge: null,
    next_action: null,
    metadata: metadataOf(form),
    last_payment_error: null,
    canceled_at: null,
    cancellation_reason: null,
    _token: token,
    _return_url: form.return_url,
    _saves: form.customer !== undefined && form.setup_future_usage !== undefined,
  });
  intent.client_secret = `${intent.id}_secret_${crypto.randomUUID()}`;
  const { status, body } = await work.engine.judge(asEngineSees(intent));
  work.event("payment_intent.created", intent);
  if (status === 402) return decline(work, intent, token.decline);
  if (body.status !== "requires_action") return charge(work, intent);
  if (form.off_session === "true" || form.error_on_requires_action === "true") {
    return decline(work, intent, "authentication_required");
  }
  return askPayer(work, intent);
}

/** Ends the authentication on the page of the payer's bank. */
export async function authenticate(work: Work, id: string, success: boolean): Promise<Outcome> {
  const intent = work.find("payment_intent", id);
  if (intent?.status !== "requires_action") return unexpectedState(intent);
  const change = { verb: "authenticate", authenticated: success } as const;
  const { status } = await work.engine.judge(asEngineSees(intent), change);
  work.put(intent).next_action = null;
  if (!success) return decline(work, intent, UNAUTHENTICATED);
  return status === 402 ? decline(work, intent, intent._token.decline) : charge(work, intent);
}

/** POST /v1/payment_intents/{id}/capture. */
export async function capture(work: Work, id: string, form: Form): Promise<Outcome> {
  const intent = work.find("payment_intent", id);
  if (intent?.status !== "requires_capture") return unexpectedState(intent);
  const amount = Number(form.amount_to_capture ?? intent.amount);
  const change = { verb: "capture", amount, authenticated: true } as const;
  const { status } = await work.engine.judge(asEngineSees(intent), change);
  if (status !== 200) return refuse({ code: "amount_too_large", param: "amount_to_capture" });
  const held = work.put(work.find("charge", intent.latest_charge)!);
  return take(work, work.put(intent), held, amount, "charge.captured");
}

/** POST /v1/payment_intents/{id}/cancel, and the end of an authorization after seven days. */
export async function cancel(work: Work, id: string, form: Form): Promise<Outcome> {
  const intent = work.find("payment_intent", id);
  if (!intent || ["succeeded", "canceled"].includes(intent.status)) return unexpectedState(intent);
  if (intent.status !== "requires_payment_method") {
    const authenticated = intent.status === "requires_capture";
    const change = { verb: "cancel", ...(authenticated ? { authenticated } : {}) } as const;
    const { status } = await work.engine.judge(asEngineSees(intent), change);
    if (status !== 200) return unexpectedState(intent);
  }
  Object.assign(work.put(intent), {
    status: "canceled",
    canceled_at: nowSeconds(),
    cancellation_reason: form.cancellation_reason ?? null,
    next_action: null,
    amount_capturable: 0,
  });
  // A released authorization shows as a refund of the charge, without a refund object.
  const held = work.find("charge", intent.latest_charge);
  if (held?.paid) Object.assign(work.put(held), { refunded: true, amount_refunded: held.amount });
  work.event("payment_intent.canceled", intent);
  return done(intent);
}

/** Returns a payment as localstripe confirms it. */
function asEngineSees({ amount, currency, capture_method, _token }: StripeObject): EnginePayment {
  return { amount, currency, manual: capture_method === "manual", card: _token.card };
}

function makeCharge(work: Work, intent: StripeObject, fields: object): StripeObject {
  const { brand, last4 } = intent._token;
  const capture_before = intent.capture_method === "manual" && {
    capture_before: nowSeconds() + CAPTURE_WINDOW_S,
  };
  return work.make("charge", "ch", {
    amount: intent.amount,
    amount_captured: 0,
    amount_refunded: 0,
    captured: false,
    balance_transaction: null,
    currency: intent.currency,
    disputed: false,
    refunded: false,
    payment_intent: intent.id,
    metadata: intent.metadata,
    failure_code: null,
    payment_method_details: {
      type: "card",
      card: { brand, last4, exp_month: 12, exp_year: 2034, ...capture_before },
    },
    ...fields,
  });
}

function charge(work: Work, intent: StripeObject): Outcome {
  const held = makeCharge(work, intent, { status: "succeeded", paid: true });
  intent.latest_charge = held.id;
  keepCard(work, intent);
  if (intent.capture_method !== "manual") {
    return take(work, intent, held, intent.amount, "charge.succeeded");
  }
  Object.assign(intent, { status: "requires_capture", amount_capturable: intent.amount });
  work.event("charge.succeeded", held);
  work.event("payment_intent.amount_capturable_updated", intent);
  return done(intent);
}

/** Takes the money of a charge. */
function take(
  work: Work,
  intent: StripeObject,
  held: StripeObject,
  amount: number,
  event_type: string,
): Outcome {
  const moved = work.move("charge", held, amount, feeOf(amount));
  Object.assign(held, { captured: true, amount_captured: amount });
  Object.assign(intent, { status: "succeeded", amount_received: amount, amount_capturable: 0 });
  // With `automatic_async` Stripe does not know the fee yet when the response leaves.
  const is_late = intent.capture_method === "automatic_async";
  if (!is_late) held.balance_transaction = moved.id;
  work.event(event_type, held);
  work.event("payment_intent.succeeded", intent);
  const later = () => {
    held.balance_transaction = moved.id;
    if (is_late) work.event("charge.updated", held);
    if (intent._token.dispute) work.dispute(held);
  };
  return { ...done(intent), later };
}

function decline(work: Work, intent: StripeObject, decline_code: string): Outcome {
  const is_own = decline_code === UNAUTHENTICATED || OWN_CODES.includes(decline_code);
  const code = is_own ? decline_code : "card_declined";
  const error: Partial<StripeObject> = {
    code,
    message: "Your card was declined.",
    payment_method: paymentMethod(intent.payment_method, intent._token),
    ...(intent._token.advice && { advice_code: intent._token.advice }),
  };
  if (decline_code === UNAUTHENTICATED) {
    error.type = "invalid_request_error";
  } else {
    const failed = makeCharge(work, intent, { status: "failed", paid: false, failure_code: code });
    intent.latest_charge = failed.id;
    Object.assign(error, { type: "card_error", decline_code, charge: failed.id });
    work.event("charge.failed", failed);
  }
  Object.assign(intent, {
    status: "requires_payment_method",
    payment_method: null,
    last_payment_error: error,
  });
  work.event("payment_intent.payment_failed", intent);
  const body = { error: { ...error, payment_intent: shown(structuredClone(intent)) } };
  return { status: 402, body, keep: true };
}
