/** The page for payers as a program sees it: the routes that its script calls. */

import assert from "node:assert/strict";
import type { CallOptions, TestResponse, TestService } from "./service.ts";

/** The URL of the page for the settings of a service. No test loads it. */
export const CHECKOUT_URL = "https://pay.example.com/page";
export const CHECKOUTS = "/api-v1-payments/v1/checkouts";
export const PAGE = "/api-v1-payments/checkout";

/** Members of checkouts. */
export const EUR = { amount: 1999, currency: "EUR" };
export const USDC = { other_prices: [{ amount_minor: 21_000_000, currency: "USDC" }] };
export const LINK = { max_payments: null };
export const PERSON = { customer: { id: "u1", email: "ada@example.com", name: "Ada" } };
/** Ways to pay. */
export const tokenOf = (name: string) => ({ card: { token: `pm_card_${name}` } });
export const VISA = tokenOf("visa");
export const DECLINED = tokenOf("chargeDeclined");
export const SECURE = tokenOf("authenticationRequired");
export const IBAN = { iban: "DE89 3704 0044 0532 0130 00" };

/** Makes a checkout. Returns it with the token in its URL. */
export async function openCheckout(
  service: TestService,
  body: object = {},
  options: CallOptions = {},
) {
  const made = await service.post(CHECKOUTS, { ...EUR, ...body }, options);
  return { ...made, token: made.url?.split("#")[1] as string };
}

/** Sends a request of the page: a read, or with a body an attempt. */
export function callPage(
  service: TestService,
  token: string | null,
  { body, attempt, ...options }: CallOptions & { attempt?: string } = {},
): Promise<TestResponse> {
  return service.call(body === undefined ? "GET" : "POST", body ? `${PAGE}/payments` : PAGE, {
    // The OpenAPI document does not have the page's routes.
    ...{ key: null, unchecked: true, ...options },
    ...(body !== undefined && { body }),
    headers: {
      ...(token !== null && { "Checkout-Token": token }),
      ...(attempt !== undefined && { "Checkout-Attempt": attempt }),
      ...options.headers,
    },
  });
}

/** Returns the route of the page's calls, without the function's base URL. */
export function challengePath(payment: { next_action: unknown }): string {
  const { url } = payment.next_action as { url: string };
  const [, token] = /\/#bank\/([0-9a-f]{48})$/.exec(url) ?? [];
  assert.ok(token, url);
  return `/api-v1-sandbox/challenges/${token}`;
}

/** Reads or completes the challenge, without an API key. */
export function callAsPayer(
  service: TestService,
  path: string,
  result?: "success" | "failure",
): Promise<TestResponse> {
  return service.call(result ? "POST" : "GET", path, {
    ...{ key: null, unchecked: true },
    ...(result && { body: { result } }),
  });
}
