/** The bank step of the page for payers as a program sees it: the routes that its script calls. */

import assert from "node:assert/strict";
import type { TestResponse, TestService } from "./service.ts";

/** The URL of the page for the settings of a service. No test loads it. */
export const CHECKOUT_URL = "https://pay.example.com/page";

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
    key: null,
    // The OpenAPI document does not have the page's routes.
    unchecked: true,
    ...(result && { body: { result } }),
  });
}
