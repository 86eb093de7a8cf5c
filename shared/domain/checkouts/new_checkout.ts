/** Makes a new checkout (contract §2). Pure. */

import { formatTime } from "../../core/clock.ts";
import { invalidParameter } from "../../core/errors.ts";
import type { Checkout, CheckoutPrice } from "../../schema/checkout.ts";
import type { CreateCheckoutBody } from "../../schema/checkout_body.ts";
import { CHECKOUT_HOURS, MAX_CHECKOUT_HOURS } from "../../schema/limits.ts";
import { amountOf } from "../../schema/values.ts";
import type { CheckoutRow } from "../../store/checkout_store.ts";
import type { RequestContext } from "../changes/event.ts";
import { newSalt } from "../webhooks/endpoint_secret.ts";
import { checkoutReference, checkoutToken, tokenHash } from "./checkout_url.ts";
import { chooseMethods, type Offer } from "./offers.ts";

const HOUR_MS = 3_600_000;

/** Returns the prices of a create. */
export function pricesOf({ currency, other_prices = [], ...body }: CreateCheckoutBody) {
  return [{ amount_minor: amountOf(body)!, currency }, ...other_prices] satisfies CheckoutPrice[];
}

/**
 * Returns the row of a new checkout, and the checkout with a reference in place of its URL. Throws
 * `ApiError`.
 */
export function newCheckout(
  body: CreateCheckoutBody,
  offers: readonly Offer[],
  context: RequestContext,
  master_secret: string,
): { row: CheckoutRow; checkout: Checkout } {
  const id = context.newId("chk_");
  const salt = newSalt(context);
  const created_at = formatTime(context.at_ms);
  const fixed = fixedMembers(body, offers, context);
  const { max_payments, reference, customer } = fixed;
  return {
    checkout: {
      ...{ id, object: "checkout", status: "open", url: checkoutReference(id, salt) },
      ...fixed,
      ...{ payments_count: 0, payment_id: null, created_at, updated_at: created_at },
    },
    row: {
      ...{ id, salt, token_hash: tokenHash(checkoutToken(id, salt, master_secret)) },
      ...{ max_payments, reference, created_at, body: JSON.stringify(fixed) },
      customer_id: customer?.id ?? null,
      expires_at: fixed.expires_at ??
        (context.livemode ? null : formatTime(context.at_ms + MAX_CHECKOUT_HOURS * HOUR_MS)),
    },
  };
}

/** The members of a checkout that never change. */
function fixedMembers(
  body: CreateCheckoutBody,
  offers: readonly Offer[],
  context: RequestContext,
): Omit<
  Checkout,
  | ("id" | "object" | "status" | "url")
  | ("payments_count" | "payment_id" | "created_at" | "updated_at")
> {
  const amount_minor = amountOf(body)!;
  const { currency, other_prices = [], customer, max_payments = 1 } = body;
  return {
    amount: amount_minor,
    amount_minor,
    currency,
    other_prices,
    methods: chooseMethods(body.methods, offers),
    customer: customer ? { ...customer, email: customer.email ?? null } : null,
    description: body.description ?? null,
    reference: body.reference ?? null,
    metadata: body.metadata ?? {},
    capture: body.capture ?? "automatic",
    save: body.save ?? null,
    locale: body.locale ?? null,
    return_url: urlOf("return_url", body, context),
    cancel_url: urlOf("cancel_url", body, context),
    max_payments,
    expires_at: endOf(body.expires_at, context),
    livemode: context.livemode,
  };
}

function endOf(
  expires_at: number | null | undefined,
  { at_ms }: RequestContext,
): string | null {
  if (expires_at === null) return null;
  const end_ms = expires_at ?? at_ms + CHECKOUT_HOURS * HOUR_MS;
  if (end_ms <= at_ms) {
    throw invalidParameter("expires_at", '"expires_at" must be a time in the future');
  }
  if (end_ms > at_ms + MAX_CHECKOUT_HOURS * HOUR_MS) {
    throw invalidParameter("expires_at", '"expires_at" must be at most 30 days ahead');
  }
  return formatTime(end_ms);
}

function urlOf(
  name: "return_url" | "cancel_url",
  body: CreateCheckoutBody,
  { livemode }: RequestContext,
): string | null {
  const url = body[name] ?? null;
  if (livemode && url?.startsWith("http:")) {
    throw invalidParameter(name, `"${name}" must begin with https for a live key`);
  }
  return url;
}
