/** Cards that the double keeps: customers, payment methods, and cards that are saved alone. */

import type { StripeActions } from "./double.ts";
import type { StripeObject } from "./journal.ts";
import { paymentMethod, type Token, TOKENS } from "./tokens.ts";
import {
  done,
  type Form,
  metadataOf,
  missing,
  nowSeconds,
  type Outcome,
  refuse,
  shown,
  unexpectedState,
  type Work,
} from "./work.ts";

/** A card that a payment or setup names, and its payment method if it is one of the books. */
interface NamedCard {
  token: Token;
  method: StripeObject | null;
}

/** POST /v1/customers. */
export function createCustomer(work: Work, form: Form): Outcome {
  const customer = work.make("customer", "cus", {
    email: form.email ?? null,
    metadata: metadataOf(form),
  });
  work.event("customer.created", customer);
  return done(customer);
}

/** Makes a payment method as Stripe's fields in the payer's browser do. It pays once. */
function createMethod(work: Work, name: string) {
  const token = TOKENS.get(name)!;
  const { id: _, created: __, object: ___, ...fields } = paymentMethod(name, token);
  return work.make("payment_method", "pm", {
    ...{ ...fields, customer: null, _token: token, _is_used: false },
  });
}

/** Finds the card of a request, or refuses it as Stripe does. */
export function namedCard(
  work: Work,
  { payment_method = "", customer }: Form,
): NamedCard | Outcome {
  if (customer && !work.find("customer", customer)) return missing("customer", 400);
  const test = TOKENS.get(payment_method);
  if (test) return { token: test, method: customer ? createMethod(work, payment_method) : null };
  const method = work.find("payment_method", payment_method);
  if (!method) return missing("payment_method", 400);
  if (method.customer === null && method._is_used) {
    return refuse({
      message: "The provided PaymentMethod was previously used with a PaymentIntent without " +
        "Customer attachment, shared with a connected account without Customer attachment, or was " +
        "detached from a Customer. It may not be used again. To use a PaymentMethod multiple " +
        "times, you must attach it to a Customer first.",
    });
  }
  if (method.customer !== null && method.customer !== customer) {
    return refuse({
      message:
        `The customer does not have a payment method with the ID ${method.id}. The payment ` +
        "method must be attached to the customer.",
    });
  }
  work.put(method)._is_used = true;
  return { token: method._token, method };
}

/** Attaches the card of a payment or setup that has succeeded, if it is to be saved. */
export function keepCard(work: Work, intent: StripeObject): void {
  const method = work.find("payment_method", intent.payment_method);
  if (!intent._saves || !method || method.customer !== null) return;
  Object.assign(work.put(method), {
    customer: intent.customer,
    // The payer has authenticated for later payments.
    ...(method._token.once && { _token: { ...method._token, card: "approved" } }),
  });
  work.event("payment_method.attached", method);
}

/** POST /v1/payment_methods/{id}/detach. */
export function detach(work: Work, id: string): Outcome {
  const method = work.find("payment_method", id);
  if (!method) return missing("payment_method");
  if (method.customer === null) {
    return refuse({
      message: "The payment method you provided is not attached to a customer so detachment is " +
        "impossible.",
    }, true);
  }
  Object.assign(work.put(method), { customer: null, _is_used: true });
  work.event("payment_method.detached", method);
  return done(method);
}

/** The network gives a card another expiry. */
export function renew(work: Work, { payment_method, exp_year }: StripeActions["renew"]): Outcome {
  const method = work.find("payment_method", payment_method);
  if (!method?.customer) return unexpectedState(method);
  work.put(method).card.exp_year = exp_year;
  work.event("payment_method.automatically_updated", method);
  return done(method);
}

/** POST /v1/setup_intents, with `confirm`. */
export async function createSetup(work: Work, form: Form): Promise<Outcome> {
  const named = namedCard(work, form);
  if ("status" in named) return named;
  const { token, method } = named;
  const setup: StripeObject = work.make("setup_intent", "seti", {
    customer: form.customer ?? null,
    payment_method: method?.id ?? form.payment_method,
    usage: form.usage ?? "off_session",
    status: "requires_confirmation",
    next_action: null,
    last_setup_error: null,
    cancellation_reason: null,
    metadata: metadataOf(form),
    _token: token,
    _return_url: form.return_url,
    _saves: form.customer !== undefined,
  });
  const { status, body } = await work.engine.judgeSetup(token.setup ?? token.card);
  work.event("setup_intent.created", setup);
  if (status === 402) return decline(work, setup, "card_declined");
  if (body.status !== "requires_action") return succeed(work, setup);
  return askPayer(work, setup);
}

/** Lets a payment or setup wait for the payer, on the page of the bank if there is a way back. */
export function askPayer(work: Work, intent: StripeObject): Outcome {
  const [url, return_url] = [`${work.public_url}/authenticate/${intent.id}`, intent._return_url];
  intent.status = "requires_action";
  intent.next_action = return_url
    ? { type: "redirect_to_url", redirect_to_url: { url, return_url } }
    : { type: "use_stripe_sdk", use_stripe_sdk: {} };
  work.event(`${intent.object}.requires_action`, intent);
  return done(intent);
}

/** Ends the authentication on the page of the payer's bank. */
export async function authenticateSetup(
  work: Work,
  setup: StripeObject,
  success: boolean,
): Promise<Outcome> {
  if (setup.status !== "requires_action") return unexpectedState(setup);
  work.put(setup).next_action = null;
  if (!success) return decline(work, setup, "setup_intent_authentication_failure");
  const token: Token = setup._token;
  const { status } = await work.engine.judgeSetup(token.setup ?? token.card, true);
  return status === 200 ? succeed(work, setup) : decline(work, setup, "card_declined");
}

/** POST /v1/setup_intents/{id}/cancel. */
export function cancelSetup(work: Work, id: string, form: Form): Outcome {
  const setup = work.find("setup_intent", id);
  if (!setup || ["succeeded", "canceled", "processing"].includes(setup.status)) {
    return unexpectedState(setup);
  }
  const { cancellation_reason = null } = form;
  Object.assign(work.put(setup), { status: "canceled", cancellation_reason, next_action: null });
  setup.canceled_at = nowSeconds();
  work.event("setup_intent.canceled", setup);
  return done(setup);
}

function succeed(work: Work, setup: StripeObject): Outcome {
  setup.status = "succeeded";
  keepCard(work, setup);
  work.event("setup_intent.succeeded", setup);
  return done(setup);
}

function decline(work: Work, setup: StripeObject, code: string): Outcome {
  const is_card = code === "card_declined";
  const error = {
    type: is_card ? "card_error" : "invalid_request_error",
    code,
    ...(is_card && { decline_code: setup._token.decline }),
    message: "Your card was declined.",
    payment_method: paymentMethod(setup.payment_method, setup._token),
  };
  Object.assign(setup, {
    status: "requires_payment_method",
    payment_method: null,
    last_setup_error: error,
  });
  work.event("setup_intent.setup_failed", setup);
  const body = { error: { ...error, setup_intent: shown(structuredClone(setup)) } };
  return { status: is_card ? 402 : 400, body, keep: true };
}
