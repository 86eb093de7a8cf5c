/** The error catalogue equals a table written by hand; ApiError carries a code. */

import assert from "node:assert/strict";
import {
  ApiError,
  ERROR_CATALOGUE,
  type ErrorCode,
  invalidParameter,
} from "../../shared/core/errors.ts";
import { CODES } from "../support/core/error_codes.ts";

Deno.test("ERROR_CATALOGUE equals the table of error_codes.ts", () => {
  const catalogue = Object.entries(ERROR_CATALOGUE).map(([code, { status, type }]) => [
    code,
    [status, type],
  ]);
  assert.deepEqual(Object.fromEntries(catalogue), CODES);
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
