/** Calls Stripe's API without the service, and reads the response. */

import type { StripeObject } from "./journal.ts";

/** A response. `body` is empty if the response is not JSON. */
export interface StripeResponse {
  status: number;
  headers: Headers;
  text: string;
  body: StripeObject;
}

/** The parameters of a call: a POST has a form. */
interface StripeCall {
  secret: string;
  form?: Record<string, string>;
  /** The idempotency key. */
  key?: string;
  /** The connected account. */
  account?: string;
  version?: string;
}

const DEADLINE_MS = 8_000;

/** A card payment of 10.99 EUR. */
export const CARD_FORM = {
  amount: "1099",
  currency: "eur",
  confirm: "true",
  capture_method: "automatic",
  payment_method: "pm_card_visa",
  "allowed_payment_method_types[]": "card",
  return_url: "https://shop.example/back",
};

/** Makes a call. Throws if the connection breaks, or after eight seconds. */
export async function callStripe(
  base_url: string,
  path: string,
  { secret, form, key, account, version }: StripeCall,
): Promise<StripeResponse> {
  const response = await fetch(`${base_url}/v1/${path}`, {
    method: form ? "POST" : "GET",
    headers: {
      authorization: `Bearer ${secret}`,
      ...(form ? { "content-type": "application/x-www-form-urlencoded" } : {}),
      ...(key ? { "idempotency-key": key } : {}),
      ...(account ? { "stripe-account": account } : {}),
      ...(version ? { "stripe-version": version } : {}),
    },
    // If a kept connection breaks, Deno's fetch sends every other body again.
    body: form ? new Blob([new URLSearchParams(form).toString()]).stream() : null,
    signal: AbortSignal.timeout(DEADLINE_MS),
  });
  const text = await response.text();
  const { status, headers } = response;
  return { status, headers, text, body: readJson(text) as StripeObject };
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
