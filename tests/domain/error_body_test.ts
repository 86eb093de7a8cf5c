/** The renderer of error bodies (contract §6): members and their order. */

import assert from "node:assert/strict";
import { ApiError } from "../../shared/core/errors.ts";
import { renderError } from "../../shared/domain/changes/error_body.ts";

const CASES: [string, ApiError, text: string][] = [
  [
    "nothing more",
    new ApiError("not_found", "No such resource"),
    '{"error":{"type":"invalid_request","code":"not_found","message":"No such resource",' +
    '"request_id":"req_1","doc_url":"https://docs.example.com/errors.html#not_found"}}',
  ],
  [
    "a param",
    new ApiError("invalid_parameter", "Bad", { param: "amount" }),
    '{"error":{"type":"invalid_request","code":"invalid_parameter","message":"Bad",' +
    '"param":"amount","request_id":"req_1","doc_url":"https://docs.example.com/errors.html#invalid_parameter"}}',
  ],
  [
    "further members",
    new ApiError("invalid_state", "No", { current_status: "failed", allowed: [] }),
    '{"error":{"type":"invalid_request","code":"invalid_state","message":"No",' +
    '"request_id":"req_1","doc_url":"https://docs.example.com/errors.html#invalid_state","current_status":"failed","allowed":[]}}',
  ],
  [
    "quotes and line ends",
    new ApiError("internal_error", '"\n'),
    '{"error":{"type":"api","code":"internal_error","message":"\\"\\n","request_id":"req_1",' +
    '"doc_url":"https://docs.example.com/errors.html#internal_error"}}',
  ],
];

const ORIGIN = { request_id: "req_1", docs_url: "https://docs.example.com" };

for (const [name, error, text] of CASES) {
  Deno.test(`renderError() with ${name}`, () => assert.equal(renderError(error, ORIGIN), text));
}

Deno.test("renderError() without a documentation has no doc_url", () => {
  const text = renderError(new ApiError("not_found", "No"), { ...ORIGIN, docs_url: null });
  assert.doesNotMatch(text, /doc_url/);
});
