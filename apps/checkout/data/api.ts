/** The calls of the page. They have the token of a checkout or of a bank step, and no API key. */

import type { Challenge } from "../../../shared/schema/challenge.ts";
import type { CheckoutPage, PayPageBody } from "../../../shared/schema/checkout_page.ts";

/** Longest wait for a response. */
const DEADLINE_MS = 30_000;

/** The API has refused a call. With any other error the page does not know what has happened. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly param: string | null,
    /** Time until another try, of a 429. */
    readonly retry_ms: number,
  ) {
    super(code);
  }

  /** Whether the same call can have another result soon. */
  get is_passing(): boolean {
    return this.status >= 500
      ? this.code !== "provider_not_configured"
      : this.code === "idempotency_in_progress";
  }
}

/** Reads a checkout. `attempt` is the payer's own one in this tab. */
export function readCheckout(token: string, attempt: string | null): Promise<CheckoutPage> {
  return call("/api-v1-payments/checkout", {
    headers: {
      "Checkout-Token": token,
      ...(attempt !== null && { "Checkout-Attempt": attempt }),
    },
  });
}

/** Begins an attempt. The same key again makes no second one. */
export function payCheckout(
  token: string,
  key: string,
  body: PayPageBody,
): Promise<CheckoutPage> {
  return call("/api-v1-payments/checkout/payments", {
    method: "POST",
    headers: { "Checkout-Token": token, "Idempotency-Key": key, ...JSON_TYPE },
    body: JSON.stringify(body),
  });
}

/** Reads the bank step of a payment, or ends it with the payer's decision. */
export function callChallenge(
  token: string,
  result?: "success" | "failure",
): Promise<Challenge> {
  return call(`/api-v1-sandbox/challenges/${encodeURIComponent(token)}`, {
    ...(result && { method: "POST", headers: JSON_TYPE, body: JSON.stringify({ result }) }),
  });
}

const JSON_TYPE = { "Content-Type": "application/json" };

async function call<T>(path: string, init: RequestInit): Promise<T> {
  const base = document.querySelector<HTMLMetaElement>('meta[name="api-base-url"]')!.content;
  const response = await fetch(new URL(base + path, location.origin), {
    ...init,
    signal: AbortSignal.timeout(DEADLINE_MS),
  });
  const received = await response.json();
  if (response.ok) return received;
  const { code, param = null } = received.error;
  const seconds = Number(response.headers.get("Retry-After") ?? 1);
  throw new Refused(response.status, code, param, seconds * 1_000);
}
