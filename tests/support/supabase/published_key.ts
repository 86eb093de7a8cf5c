/** Creates payments with the published test key, which the seed of the local stack contains. */

import { PUBLISHED_TEST_KEY } from "../../../shared/core/api_key.ts";

/** Creates a payment with the payments function at this origin. */
export function payByPublishedKey(origin: string): Promise<Response> {
  return fetch(`${origin}/api-v1-payments/v1/payments`, {
    method: "POST",
    headers: { Authorization: `Bearer ${PUBLISHED_TEST_KEY}`, "Content-Type": "application/json" },
    body: JSON.stringify({ amount: 1, currency: "EUR", outcome: "success" }),
  });
}
