/** Actions of live tests: payments, refunds, and clicks in the provider's dashboard. */

import assert from "node:assert/strict";
import type { LiveCase } from "./live_case.ts";

/** Returns the id of a payment at the double. */
export async function referenceOf({ books }: LiveCase, id: string): Promise<string> {
  const { payment_intent } = await books();
  return payment_intent.find(({ metadata }) => metadata.payment === id)!.id;
}

/** Pays with a token, and returns the id. */
export async function paid(given: LiveCase, token = "pm_card_visa"): Promise<string> {
  const { status, body } = await given.pay({ card: { token } });
  assert.equal(status, 201);
  await given.work();
  return body.id;
}

/** Refunds a payment. */
export function refund(given: LiveCase, id: string, body: object = {}) {
  return given.call("POST", `/payments/${id}/refund`, { body });
}

/** Calls the double as somebody with the dashboard does. */
export async function atStripe(given: LiveCase, path: string, form: Record<string, string>) {
  const response = await fetch(given.double.base_url + path, {
    method: "POST",
    headers: { Authorization: `Bearer ${given.secret}` },
    body: new URLSearchParams(form),
  });
  assert.equal(response.status, 200, await response.text());
}
