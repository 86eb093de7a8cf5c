/** Checks the parts that every error answer has. */

import assert from "node:assert/strict";
import { CODES } from "../core/error_codes.ts";
import type { TestAnswer } from "../service/service.ts";

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
