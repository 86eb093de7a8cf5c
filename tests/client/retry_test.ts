/** The conditions and the delays of retries, as tables. */

import assert from "node:assert/strict";
import {
  BASE_DELAY_MS,
  isTransient,
  MAX_DELAY_MS,
  MAX_RETRY_AFTER_MS,
  parseRetryAfter,
  retryDelayMs,
} from "../../packages/client/retry.ts";
import { ERROR_CATALOGUE } from "../../shared/core/errors.ts";

/** Codes for which a retry can succeed. A retry after any other code of the catalogue cannot. */
const CODES = ["idempotency_in_progress", "rate_limited", "internal_error", "service_unavailable"];

for (const [code, { status }] of Object.entries(ERROR_CATALOGUE)) {
  const expected = CODES.includes(code);
  Deno.test(`isTransient() ${status} ${code} is ${expected}`, () => {
    assert.equal(isTransient({ status, code }), expected);
  });
}

Deno.test("isTransient() without a code depends on the status", () => {
  const statuses = [200, 301, 400, 404, 408, 429, 500, 502, 504, 546];
  const found = statuses.filter((status) => isTransient({ status, code: undefined }));
  assert.deepEqual(found, [408, 429, 500, 502, 504, 546]);
});

Deno.test("retryDelayMs() doubles up to its limit, and half of each delay is random", () => {
  for (let attempt = 1; attempt <= 12; attempt++) {
    const backoff = Math.min(BASE_DELAY_MS * 2 ** (attempt - 1), MAX_DELAY_MS);
    assert.equal(retryDelayMs(attempt, undefined, 0), backoff / 2);
    assert.equal(retryDelayMs(attempt, undefined, 0.5), backoff * 3 / 4);
    assert.ok(retryDelayMs(attempt, undefined, 1 - Number.EPSILON)! <= backoff);
  }
});

const REQUESTED: [requested_ms: number, random: number, delay_ms: number | null][] = [
  [0, 0, 250],
  [0, 0.5, 375],
  [1_000, 0, 1_000],
  [1_000, 0.5, 1_250],
  [MAX_RETRY_AFTER_MS, 0, MAX_RETRY_AFTER_MS],
  [MAX_RETRY_AFTER_MS + 1, 0, null],
  [3_600_000, 0, null],
];
for (const [requested_ms, random, delay_ms] of REQUESTED) {
  Deno.test(`retryDelayMs() after Retry-After ${requested_ms} ms at ${random}: ${delay_ms}`, () => {
    assert.equal(retryDelayMs(1, requested_ms, random), delay_ms);
  });
}

const NOW = Date.parse("2026-11-20T12:00:00Z");
const HEADERS: [delay_ms: number | undefined, ...values: (string | null)[]][] = [
  [undefined, null, "", "-1", "1.5", "1e3", "soon", "2026-11-20T12:00:05Z"],
  [undefined, "Fri, 99 Nov 2026 12:00:05 GMT"],
  [0, "0", "Fri, 20 Nov 2026 11:59:00 GMT"],
  [1_000, "1"],
  [5_000, "Fri, 20 Nov 2026 12:00:05 GMT"],
  [7_000, " 7 "],
  [2_026_000, "2026"],
];
for (const [delay_ms, ...values] of HEADERS) {
  Deno.test(`parseRetryAfter() ${JSON.stringify(values)} is ${delay_ms}`, () => {
    for (const value of values) assert.equal(parseRetryAfter(value, NOW), delay_ms, value ?? "");
  });
}
