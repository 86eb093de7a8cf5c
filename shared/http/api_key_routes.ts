/** The operations of `api-v1-payments` on API keys. */

import { CreateApiKeyBody, ListApiKeysQuery, RotateApiKeyBody } from "../schema/api_key.ts";
import { type Route, route } from "./route.ts";
import { listRoute } from "./page.ts";
import { readOne } from "./read_one.ts";

const keys = { group: "API keys", scope: "keys:write", response: "ApiKey" } as const;

/** The operations on keys of the caller's environment. */
export const API_KEY_ROUTES: readonly Route[] = [
  route({
    ...keys,
    id: "createApiKey",
    summary: "Create a test key",
    description:
      "Creates a key for the same sandbox, with at most the scopes of the caller's key. It " +
      "expires with the caller's key at the latest. Only this response shows the key itself. " +
      "A sandbox has at most 100 keys that are neither revoked nor expired; one more is 400. " +
      "Only the operator's command creates live keys.",
    method: "POST",
    paths: ["/v1/api_keys"],
    body: CreateApiKeyBody,
    status: 201,
    errors: ["test_key_required"],
    run: ({ deps, request, key_text, body }) => deps.api_keys.create(request, key_text, body),
  }),
  listRoute({
    ...keys,
    id: "listApiKeys",
    summary: "List API keys",
    paths: ["/v1/api_keys"],
    query: ListApiKeysQuery,
    kind: "api_keys",
  }),
  readOne({
    ...keys,
    id: "getOwnApiKey",
    summary: "Get the key of the request",
    description:
      "Shows the key that sends the request, with its scopes. Every key can read itself.",
    paths: ["/v1/api_key"],
    scope: null,
    kind: "own_api_key",
  }),
  readOne({
    ...keys,
    id: "getApiKey",
    summary: "Get an API key",
    paths: ["/v1/api_keys/:id"],
    kind: "api_keys",
  }),
  route({
    ...keys,
    id: "rotateApiKey",
    summary: "Rotate an API key",
    description:
      "Gives the key a new secret, which works until the key's `expires_at`. Idempotency keys " +
      "stay valid. Rotating an ended key is 409. A key that expires cannot rotate one that " +
      "lives longer.",
    method: "POST",
    paths: ["/v1/api_keys/:id/rotate"],
    errors: ["test_key_required", "invalid_state"],
    body: RotateApiKeyBody,
    run: ({ deps, request, key_text, id, body }) =>
      deps.api_keys.rotate(request, key_text, id, body.expires_in),
  }),
  route({
    ...keys,
    id: "revokeApiKey",
    summary: "Revoke an API key",
    method: "DELETE",
    paths: ["/v1/api_keys/:id"],
    errors: ["test_key_required"],
    run: ({ deps, request, id }) => deps.api_keys.revoke(request, id),
  }),
];
