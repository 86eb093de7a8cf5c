/**
 * Attempts of a checkout (contract §2): whether it takes one, the create of the payment that a
 * payer's choice makes, and the checkout after it. Pure.
 */

import { type CheckoutMethod, methodsFor } from "../../core/checkout_methods.ts";
import { formatTime } from "../../core/clock.ts";
import { ApiError, invalidParameter } from "../../core/errors.ts";
import { STATUSES, type WaitsFor } from "../payment_statuses.ts";
import type { CreatePaymentBody, MethodKind } from "../../schema/payment_body.ts";
import type { Checkout } from "../../schema/checkout.ts";
import type { PayCheckoutBody } from "../../schema/checkout_body.ts";
import type { PaymentStatus } from "../../schema/statuses.ts";
import { METHOD_KIND } from "./offers.ts";

/** Most attempts of a checkout that is no link. */
const MAX_ATTEMPTS = 20;
/** Most declines of a checkout and of a link within an hour. */
const MAX_DECLINES = { checkout: 10, link: 30 };
const HOUR_MS = 3_600_000;

/** A checkout as stored: with a reference in place of its URL (`pay_internal.checkout_detail`). */
export interface StoredCheckout {
  checkout: Checkout;
  revision: number;
  attempts: number;
  attempt_id: string | null;
  /** Of the last attempt; null: there is none, or retention has deleted it. */
  attempt_status: PaymentStatus | null;
  declines: number;
  declines_since: string | null;
}

/** Reports whether any number of payers can pay. */
export function isLink({ checkout }: StoredCheckout): boolean {
  return checkout.max_payments === null;
}

/** Reports whether the number of attempts allows one more. That of a link is not limited. */
export function hasAttemptsLeft(stored: StoredCheckout): boolean {
  return isLink(stored) || stored.attempts < MAX_ATTEMPTS;
}

/** Throws `invalid_state` or `rate_limited` if the checkout takes no attempt now. */
export function checkAttempt(stored: StoredCheckout, at_ms: number): void {
  const { declines, declines_since } = stored;
  checkOpen(stored, "pay");
  if (!hasAttemptsLeft(stored)) {
    throw refusal("pay", `it has had ${MAX_ATTEMPTS} attempts, which is the limit`, "open");
  }
  const most = isLink(stored) ? MAX_DECLINES.link : MAX_DECLINES.checkout;
  const rest_ms = declines_since === null ? 0 : Date.parse(declines_since) + HOUR_MS - at_ms;
  if (declines < most || rest_ms <= 0) return;
  throw new ApiError(
    "rate_limited",
    `${most} attempts of this checkout were declined within an hour: try again when it is over`,
    {},
    { "Retry-After": String(Math.ceil(rest_ms / 1000)) },
  );
}

/** Throws `invalid_state` unless the checkout is open and no attempt has its money on the way. */
export function checkOpen(stored: StoredCheckout, action: string): void {
  const { status } = stored.checkout;
  if (status !== "open") throw refusal(action, `it is ${status}`, status);
  if (!isLink(stored) && waitsFor(stored) === "result") throw underWay(action);
}

/** Makes the 409 while an attempt is under way, which is not stored under a key. */
export function underWay(action: string): ApiError {
  return refusal(action, "a payment of it is under way: wait for its result", "processing");
}

function refusal(action: string, why: string, current_status: string): ApiError {
  return new ApiError("invalid_state", `Cannot ${action} the checkout: ${why}`, {
    current_status,
    allowed: [],
  });
}

/**
 * Returns the last attempt if it must be cancelled before a new one. Payers of a link never meet.
 */
export function abandonedAttempt(stored: StoredCheckout): string | null {
  const step = waitsFor(stored);
  return !isLink(stored) && (step === "money" || step === "authentication")
    ? stored.attempt_id
    : null;
}

function waitsFor({ attempt_status }: StoredCheckout): WaitsFor | null {
  return attempt_status && STATUSES[attempt_status].waits_for;
}

/**
 * Returns the create of the payment. Throws `invalid_parameter` with the field at fault.
 * @param used_kind the kind of the saved instrument that the body names; null: it names none
 */
export function attemptBody(
  checkout: Checkout,
  body: PayCheckoutBody,
  used_kind: MethodKind | null,
  at_ms: number,
): CreatePaymentBody {
  const method = methodOfAttempt(checkout, body, used_kind);
  const price = priceOfAttempt(checkout, method, body.currency);
  const saves = savesInstrument(checkout, body);
  const { customer, description, reference, metadata, return_url, capture } = checkout;
  const { id, email, name } = customer ?? {};
  return {
    ...price,
    ...(used_kind === null && { method_kind: METHOD_KIND[method] }),
    ...(customer && {
      customer: { ...(id !== undefined && { id }), email: email!, ...(name && { name }) },
    }),
    ...(body.card && { card: body.card }),
    ...(body.iban && {
      iban: body.iban,
      mandate: {
        signed_at: formatTime(at_ms),
        sequence: saves ? "recurring" as const : "one_off" as const,
      },
    }),
    ...(body.instrument !== undefined && { instrument: body.instrument }),
    ...(saves && { save: checkout.save! }),
    ...(description !== null && { description }),
    ...(reference !== null && { reference }),
    metadata,
    ...(return_url !== null && { return_url }),
    ...(method === "card" && price.amount_minor > 0 && { capture }),
  };
}

/** Returns whether the payer lets the merchant save the instrument. */
function savesInstrument(checkout: Checkout, { save, instrument }: PayCheckoutBody): boolean {
  if (save && (checkout.save === null || instrument !== undefined)) {
    throw invalidParameter(
      "save",
      instrument === undefined
        ? 'The checkout has no "save", so it saves nothing: leave "save" out'
        : 'The instrument is saved already: leave "save" out',
    );
  }
  if (checkout.amount_minor === 0 && instrument !== undefined) {
    throw invalidParameter("instrument", "The checkout only saves a new instrument");
  }
  if (checkout.amount_minor === 0 && !save) {
    throw invalidParameter("save", 'The checkout only saves an instrument: send "save": true');
  }
  return save === true;
}

/** Returns the method of an attempt: that of its instrument, or one that the payer sends. */
function methodOfAttempt(
  checkout: Checkout,
  body: PayCheckoutBody,
  used_kind: MethodKind | null,
): CheckoutMethod {
  const sent = (["card", "iban", "instrument"] as const).filter((name) => body[name] !== undefined);
  if (sent.length > 1) throw invalidParameter(sent[1]!, `Send only one of "${sent.join('", "')}"`);
  const [name] = sent;
  const kind = name === "instrument" ? used_kind : name === "card" ? "card" : "sepa";
  const own = name && (kind === "card" ? "card" : "sepa_debit");
  const method = own ?? body.method ?? methodOfCurrency(checkout, body.currency);
  if (body.method !== undefined && body.method !== method) {
    throw invalidParameter("method", `"method" must be "${method}" with "${name}": leave it out`);
  }
  if (!checkout.methods.includes(method)) {
    throw invalidParameter(
      body.method === undefined ? name ?? "currency" : "method",
      `This checkout takes ${checkout.methods.join(", ")}, and not ${method}`,
    );
  }
  const needed = method === "card" ? "card" : method === "sepa_debit" ? "iban" : null;
  if (needed !== null && name === undefined) {
    throw invalidParameter(needed, `"${needed}" is required to pay by ${method}`);
  }
  return method;
}

/** Returns the only method by which the payer sends money in a currency. */
function methodOfCurrency(checkout: Checkout, currency: string | undefined): CheckoutMethod {
  const [method, other] = checkout.methods.filter((method) =>
    method !== "card" && method !== "sepa_debit" &&
    (currency === undefined || methodsFor(currency, 1).includes(method))
  );
  if (method !== undefined && other === undefined) return method;
  throw invalidParameter("method", '"method" is required without a "card" or an "iban"');
}

function priceOfAttempt(
  { amount_minor, currency, other_prices }: Checkout,
  method: CheckoutMethod,
  chosen: string | undefined,
) {
  const prices = [{ amount_minor, currency }, ...other_prices]
    .filter((price) => methodsFor(price.currency, price.amount_minor).includes(method));
  const price = prices.find((price) => chosen === undefined || price.currency === chosen);
  if (price) return price;
  throw invalidParameter(
    "currency",
    `"currency" must be a price of this checkout that ${method} takes: ` +
      prices.map((price) => price.currency).join(", "),
  );
}

/** Returns the checkout after an attempt. */
export function afterAttempt(
  checkout: Checkout,
  payment_id: string,
  is_paid: boolean,
  at_ms: number,
): Checkout {
  if (!is_paid) return checkout;
  return {
    ...checkout,
    status: checkout.max_payments === null ? "open" : "completed",
    payments_count: checkout.payments_count + 1,
    payment_id,
    updated_at: formatTime(at_ms),
  };
}
