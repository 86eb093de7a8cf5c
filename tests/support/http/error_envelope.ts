/**
 * Checks the parts that every error answer has. The table of codes is written by hand and not read
 * from the code, so a changed status or type fails a test.
 */

import assert from "node:assert/strict";
import type { TestAnswer } from "../service/service.ts";

/** HTTP status and type of each code. */
export const CODES: Record<string, [status: number, type: string]> = {
  invalid_parameter: [400, "invalid_request"],
  invalid_json: [400, "invalid_request"],
  unauthorized: [401, "authentication"],
  payment_declined: [402, "payment"],
  insufficient_funds: [402, "payment"],
  aml_blocked: [402, "payment"],
  authentication_failed: [402, "payment"],
  balance_insufficient: [402, "payment"],
  test_key_required: [403, "permission"],
  permission_denied: [403, "permission"],
  origin_not_allowed: [403, "permission"],
  not_found: [404, "invalid_request"],
  method_not_allowed: [405, "invalid_request"],
  payload_too_large: [413, "invalid_request"],
  unsupported_media_type: [415, "invalid_request"],
  idempotency_conflict: [409, "idempotency"],
  idempotency_in_progress: [409, "idempotency"],
  invalid_state: [409, "invalid_request"],
  rate_limited: [429, "rate_limit"],
  internal_error: [500, "api"],
  service_unavailable: [503, "api"],
  provider_not_configured: [503, "api"],
};

/** Asserts the headers that every answer has, and the form of the request id. */
export function assertCommonHeaders({ headers }: TestAnswer): void {
  assert.equal(headers.get("Cache-Control"), "no-store");
  assert.equal(headers.get("X-Content-Type-Options"), "nosniff");
  assert.match(headers.get("Request-Id") ?? "none", /^req_[0-9a-z]{26}$/);
}

/**
 * Asserts that an answer is the error of a code, with all its members.
 * @param param the field that the error names; null for none; leave it out to accept any
 */
export function assertError(answer: TestAnswer, code: string, param?: string | null): void {
  const [status, type] = CODES[code]!;
  assert.equal(answer.body?.error?.code, code, `${answer.status} ${answer.text}`);
  assert.equal(answer.status, status, answer.text);
  assertCommonHeaders(answer);
  assert.equal(answer.headers.get("Content-Type"), "application/json");
  assert.deepEqual(Object.keys(answer.body), ["error"]);
  const { error } = answer.body;
  assert.equal(error.type, type);
  assert.match(error.message, /^[A-Z"].+[^.]$/);
  assert.equal(error.doc_url, `docs/errors.md#${code}`);
  assert.equal(error.request_id, answer.headers.get("Request-Id"));
  assert.deepEqual(
    Object.keys(error).slice(0, error.param === undefined ? 5 : 6),
    [
      "type",
      "code",
      "message",
      ...(error.param === undefined ? [] : ["param"]),
      "request_id",
      "doc_url",
    ],
  );
  if (param !== undefined) assert.equal(error.param ?? null, param, answer.text);
  assert.equal(answer.headers.get("WWW-Authenticate"), status === 401 ? "Bearer" : null);
  const waits = status === 503 && code !== "provider_not_configured" || status === 429;
  if (waits) assert.match(answer.headers.get("Retry-After") ?? "none", /^[1-9]\d*$/);
}
