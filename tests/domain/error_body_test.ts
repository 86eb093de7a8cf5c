/** The renderer of error bodies (contract §6): members and their order. */

import assert from "node:assert/strict";
import { ApiError } from "../../shared/core/errors.ts";
import { renderError } from "../../shared/domain/changes/error_body.ts";

/** [error, its type, and the members around the ones that all have] */
const CASES: [ApiError, type: string, before: string, after: string][] = [
  [new ApiError("not_found", "No"), "invalid_request", "", ""],
  [new ApiError("invalid_parameter", "No", { param: "a" }), "invalid_request", '"param":"a",', ""],
  [
    new ApiError("invalid_state", "No", { current_status: "failed", allowed: [] }),
    "invalid_request",
    "",
    ',"current_status":"failed","allowed":[]',
  ],
  [new ApiError("internal_error", '"\n'), "api", "", ""],
];

const ORIGIN = { request_id: "req_1", docs_url: "https://docs.example.com" };

for (const [error, type, before, after] of CASES) {
  Deno.test(`renderError() of ${error.code} with ${JSON.stringify(error.details)}`, () => {
    const message = JSON.stringify(error.message);
    const text =
      `{"error":{"type":"${type}","code":"${error.code}","message":${message},${before}` +
      `"request_id":"req_1","doc_url":"https://docs.example.com/errors.html#${error.code}"${after}}}`;
    assert.equal(renderError(error, ORIGIN), text);
  });
}

Deno.test("renderError() without a documentation has no doc_url", () => {
  const text = renderError(new ApiError("not_found", "No"), { ...ORIGIN, docs_url: null });
  assert.doesNotMatch(text, /doc_url/);
});
