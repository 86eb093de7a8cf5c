/** The error catalogue equals CONTRACT, a table written by hand; ApiError carries a code. */

import assert from "node:assert/strict";
import {
  ApiError,
  ERROR_CATALOGUE,
  type ErrorCode,
  invalidParameter,
} from "../../shared/core/errors.ts";

const CONTRACT: [status: number, type: string, codes: string][] = [
  [400, "invalid_request", "invalid_parameter invalid_json"],
  [401, "authentication", "unauthorized"],
  [
    402,
    "payment",
    "payment_declined insufficient_funds aml_blocked authentication_failed balance_insufficient",
  ],
  [403, "permission", "test_key_required permission_denied origin_not_allowed"],
  [404, "invalid_request", "not_found"],
  [405, "invalid_request", "method_not_allowed"],
  [409, "idempotency", "idempotency_conflict idempotency_in_progress"],
  [409, "invalid_request", "invalid_state"],
  [413, "invalid_request", "payload_too_large"],
  [415, "invalid_request", "unsupported_media_type"],
  [429, "rate_limit", "rate_limited"],
  [500, "api", "internal_error"],
  [503, "api", "service_unavailable provider_not_configured"],
];

Deno.test("ERROR_CATALOGUE equals CONTRACT", () => {
  const expected = Object.fromEntries(
    CONTRACT.flatMap(([status, type, codes]) =>
      codes.split(" ").map((code) => [code, { status, type }])
    ),
  );
  assert.deepEqual({ ...ERROR_CATALOGUE }, expected);
});

for (const code of Object.keys(ERROR_CATALOGUE) as ErrorCode[]) {
  Deno.test(`ApiError() of ${code} has the status of its row`, () => {
    assert.equal(new ApiError(code, "message").status, ERROR_CATALOGUE[code].status);
  });
}

Deno.test("ApiError() carries code, message, details and headers", () => {
  const error = new ApiError("rate_limited", "too many", { limit: 100 }, { "Retry-After": "1" });
  assert.ok(error instanceof Error);
  assert.equal(error.name, "ApiError");
  assert.equal(error.code, "rate_limited");
  assert.equal(error.message, "too many");
  assert.deepEqual(error.details, { limit: 100 });
  assert.deepEqual(error.headers, { "Retry-After": "1" });
});

Deno.test("ApiError() has no details and no headers by default", () => {
  const error = new ApiError("not_found", "no such payment");
  assert.deepEqual(error.details, {});
  assert.deepEqual(error.headers, {});
});

Deno.test("invalidParameter() is a 400 that names the field", () => {
  const error = invalidParameter("amount", "too much", { amount_refundable: 5 });
  assert.equal(error.code, "invalid_parameter");
  assert.equal(error.status, 400);
  assert.deepEqual(error.details, { param: "amount", amount_refundable: 5 });
});
