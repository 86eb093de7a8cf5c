/** The payer's page of 3-D Secure as a program sees it: the routes that its script calls. */

import assert from "node:assert/strict";
import type { TestResponse, TestService } from "./service.ts";

/** The console's URL for the settings of a service. No test loads it. */
export const CONSOLE_URL = "https://console.example.com/sandbox";

/** Returns the route of the page's calls, without the function's base URL. */
export function challengePath(payment: { next_action: unknown }): string {
  const { url } = payment.next_action as { url: string };
  const [, token] = /\/#\/challenge\/([0-9a-f]{48})$/.exec(url) ?? [];
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
