/** Checks the parts that every error response has. */

import assert from "node:assert/strict";
import { CODES } from "../core/error_codes.ts";
import { DOCS_URL, type TestResponse } from "../service/service.ts";

/** Asserts the headers that every response has, and the form of the request id. */
export function assertCommonHeaders({ headers }: TestResponse): void {
  assert.equal(headers.get("Cache-Control"), "no-store");
  assert.equal(headers.get("X-Content-Type-Options"), "nosniff");
  assert.match(headers.get("Request-Id") ?? "none", /^req_[0-9a-z]{26}$/);
}

/**
 * Asserts that a response is the error of a code, with all its members.
 * @param param the field that the error names; null for none; leave it out to accept any
 */
export function assertError(response: TestResponse, code: string, param?: string | null): void {
  const [status, type] = CODES[code]!;
  assert.equal(response.body?.error?.code, code, `${response.status} ${response.text}`);
  assert.equal(response.status, status, response.text);
  assertCommonHeaders(response);
  assert.equal(response.headers.get("Content-Type"), "application/json");
  assert.deepEqual(Object.keys(response.body), ["error"]);
  const { error } = response.body;
  assert.equal(error.type, type);
  assert.match(error.message, /^[A-Z"].+[^.]$/);
  assert.equal(error.doc_url, `${DOCS_URL}/errors.html#${code}`);
  assert.equal(error.request_id, response.headers.get("Request-Id"));
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
  if (param !== undefined) assert.equal(error.param ?? null, param, response.text);
  assert.equal(response.headers.get("WWW-Authenticate"), status === 401 ? "Bearer" : null);
  const waits = status === 503 && code !== "provider_not_configured" || status === 429;
  if (waits) assert.match(response.headers.get("Retry-After") ?? "none", /^[1-9]\d*$/);
}
