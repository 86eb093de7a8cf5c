/**
 * The operations of `api-v1-payments` on API keys.
 */

import { CreateApiKeyBody, ListApiKeysQuery, RotateApiKeyBody } from "../schema/api_key.ts";
import { EmptyQuery } from "../schema/list.ts";
import { EmptyBody } from "../schema/payment.ts";
import { type Operation, operation, PAYMENTS_FUNCTION } from "./operation.ts";
import { answerPage } from "./page.ts";
import { readOne } from "./read_one.ts";

const keys = {
  home: PAYMENTS_FUNCTION,
  test_only: false,
  scope: "keys:write",
  body: EmptyBody,
  query: EmptyQuery,
} as const;

/** Keys of the caller's environment. */
export const API_KEY_OPERATIONS: readonly Operation[] = [
  operation({
    ...keys,
    method: "POST",
    paths: ["/v1/api_keys"],
    body: CreateApiKeyBody,
    run: ({ deps, request, key_text, body }) => deps.api_keys.create(request, key_text, body),
  }),
  operation({
    ...keys,
    method: "GET",
    paths: ["/v1/api_keys"],
    query: ListApiKeysQuery,
    run: (call) => answerPage(call, "/v1/api_keys", { kind: "api_keys", filters: {} }),
  }),
  readOne("/v1/api_keys/:id", "api_keys", "keys:write"),
  operation({
    ...keys,
    method: "POST",
    paths: ["/v1/api_keys/:id/rotate"],
    body: RotateApiKeyBody,
    run: ({ deps, request, key_text, id, body }) =>
      deps.api_keys.rotate(request, key_text, id, body.expires_in),
  }),
  operation({
    ...keys,
    method: "DELETE",
    paths: ["/v1/api_keys/:id"],
    run: ({ deps, request, id }) => deps.api_keys.revoke(request, id),
  }),
];
