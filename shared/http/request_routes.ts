/**
 * The operations that show earlier requests: an idempotency key with its first request, and the log
 * of requests of a sandbox.
 */

import { maskSecrets } from "../core/masked_secrets.ts";
import { ApiError } from "../core/errors.ts";
import { ListRequestsQuery } from "../schema/request_query.ts";
import { type Route, route, SANDBOX_FUNCTION } from "./route.ts";
import { responsePage } from "./page.ts";
import { readOne } from "./read_one.ts";

const reads = { group: "Requests", method: "GET" } as const;

/** The operations of `api-v1-payments` on earlier requests. */
export const REQUEST_ROUTES: readonly Route[] = [route({
  ...reads,
  id: "getIdempotencyKey",
  summary: "Get an idempotency key",
  description:
    "Shows the first request with an idempotency key and its stored response, for 24 hours. An " +
    "API key sees only the idempotency keys that it has used itself. Percent-encode the " +
    "idempotency key in the path.",
  paths: ["/v1/idempotency_keys/:key"],
  scope: "payments:read",
  response: "IdempotencyKey",
  errors: ["not_found"],
  async run({ deps, request, named_key }) {
    // So that the response counts the replays that this isolate has sent before.
    await deps.request_log.flush();
    const loaded = await deps.store.load(request.access, "idempotency_keys", named_key)
      .catch((error) => {
        throw error instanceof ApiError && error.code === "not_found" ? unknownKey() : error;
      });
    return loaded.outcome === "found"
      ? { status: 200, body: maskSecrets(loaded.body) }
      : loaded.response;
  },
})];

/** `GET /requests`, an operation of `api-v1-sandbox`. */
export const listRequests: Route = route({
  ...reads,
  id: "listRequests",
  home: SANDBOX_FUNCTION,
  summary: "List requests",
  description:
    "The log of the sandbox's requests, newest first: the last 1 000 of at most 30 days. Reads " +
    "of this list, of inboxes and of changes are not in it. It shows no headers but `Idempotency-Key`.",
  paths: ["/requests", "/v1/requests"],
  scope: "sandbox:write",
  test_only: true,
  query: ListRequestsQuery,
  response: "LoggedRequestList",
  unlogged: true,
  async run(call) {
    // So that the list has the requests that this isolate has handled before.
    await call.deps.request_log.flush();
    const { limit: _, starting_after: __, include: ___, request_id: id, ...others } = call.query;
    return await responsePage(call, "/v1/requests", {
      kind: "requests",
      filters: { id, ...others },
    });
  },
});

/** `GET /requests/{id}`, an operation of `api-v1-sandbox`. */
export const getRequest: Route = readOne({
  id: "getRequest",
  group: "Requests",
  home: SANDBOX_FUNCTION,
  summary: "Get a request",
  description: "A request of the log with its bodies, without secrets.",
  paths: ["/requests/:id", "/v1/requests/:id"],
  kind: "requests",
  scope: "sandbox:write",
  test_only: true,
  response: "LoggedRequest",
  unlogged: true,
  before: ({ request_log }) => request_log.flush(),
});

function unknownKey(): ApiError {
  return new ApiError(
    "not_found",
    "This API key has stored no response under this idempotency key within the last 24 hours",
  );
}
