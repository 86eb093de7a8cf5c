/** A payment by the key that the local stack is seeded with. */

import { PUBLISHED_TEST_KEY } from "../../../shared/core/api_key.ts";

/** Creates a payment at a function. */
export function payByPublishedKey(origin: string): Promise<Response> {
  return fetch(`${origin}/api-v1-payments/v1/payments`, {
    method: "POST",
    headers: { Authorization: `Bearer ${PUBLISHED_TEST_KEY}`, "Content-Type": "application/json" },
    body: JSON.stringify({ amount: 1, currency: "EUR", outcome: "success" }),
  });
}
