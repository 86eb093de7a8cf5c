/** The error catalogue equals a table written by hand; ApiError carries a code. */

import assert from "node:assert/strict";
import { ApiError, ERROR_CATALOGUE, invalidParameter } from "../../shared/core/errors.ts";
import { CODES } from "../support/core/error_codes.ts";

Deno.test("ERROR_CATALOGUE equals the table of error_codes.ts", () => {
  const catalogue = Object.entries(ERROR_CATALOGUE).map(([code, { status, type }]) => [
    code,
    [status, type],
  ]);
  assert.deepEqual(Object.fromEntries(catalogue), CODES);
});

Deno.test("ApiError() carries code, status, message, details and headers", () => {
  const error = new ApiError("rate_limited", "too many", { limit: 100 }, { "Retry-After": "1" });
  const { name, code, status, message, details, headers } = error;
  assert.deepEqual([name, code, status, message], ["ApiError", "rate_limited", 429, "too many"]);
  assert.deepEqual([details, headers], [{ limit: 100 }, { "Retry-After": "1" }]);
  const bare = new ApiError("not_found", "no such payment");
  assert.deepEqual([bare.details, bare.headers], [{}, {}]);
});

Deno.test("invalidParameter() is a 400 that names the field", () => {
  const error = invalidParameter("amount", "too much", { amount_refundable: 5 });
  assert.equal(error.code, "invalid_parameter");
  assert.equal(error.status, 400);
  assert.deepEqual(error.details, { param: "amount", amount_refundable: 5 });
});
