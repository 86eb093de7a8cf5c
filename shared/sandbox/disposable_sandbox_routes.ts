/** The operations of `api-v1-sandbox` on disposable sandboxes (ADR 0022). */

import { CreateSandboxBody, CreateSandboxKeyBody, ListSandboxesQuery } from "../schema/sandbox.ts";
import { type Route, SANDBOX_FUNCTION } from "../http/route.ts";
import { listRoute } from "../http/page.ts";
import { sandboxRoute } from "./sandbox.ts";
import { readOne } from "../http/read_one.ts";

const sandboxes = {
  home: SANDBOX_FUNCTION,
  group: "Sandbox",
  scope: "sandbox:write",
  test_only: true,
  response: "DisposableSandbox",
} as const;

export const DISPOSABLE_SANDBOX_ROUTES: readonly Route[] = [
  sandboxRoute({
    ...sandboxes,
    id: "createSandbox",
    summary: "Make a disposable sandbox",
    description:
      "Makes a new, empty sandbox of the same account, with a key of its own, so that each test, " +
      "branch or pull request has its own data and rate limits. Only this response shows " +
      "`test_key`. The sandbox ends after `expires_in` seconds. An account has at most 1000 that " +
      "have not ended; one more is 400. The key of a disposable sandbox makes no further ones. " +
      "With a `seed` the same requests give the same bytes; a seed that another sandbox of the " +
      "account has is 409.",
    method: "POST",
    paths: ["/sandboxes", "/v1/sandboxes"],
    body: CreateSandboxBody,
    status: 201,
    errors: ["invalid_state"],
    run: ({ deps, request, key_text, body }) =>
      deps.sandbox.disposable.create(request, key_text, body),
  }),
  listRoute({
    ...sandboxes,
    id: "listSandboxes",
    summary: "List disposable sandboxes",
    description: "Lists the sandboxes that the caller's sandbox has made and that have not ended.",
    paths: ["/sandboxes", "/v1/sandboxes"],
    query: ListSandboxesQuery,
    kind: "sandboxes",
  }),
  readOne({
    ...sandboxes,
    id: "getSandbox",
    summary: "Get a disposable sandbox",
    description: "A sandbox that has ended can be read for 24 hours.",
    paths: ["/sandboxes/:id", "/v1/sandboxes/:id"],
    kind: "sandboxes",
  }),
  sandboxRoute({
    ...sandboxes,
    id: "createSandboxKey",
    summary: "Make a key of a disposable sandbox",
    description:
      "Makes a further key of a sandbox that the caller's sandbox has made, with at most the " +
      "scopes of the caller's key. So a page or a colleague can look at the sandbox of a program " +
      "without its key. Only this response shows the key itself. Its times are those of the " +
      "sandbox's clock. A sandbox has at most 100 keys that are neither revoked nor expired; one " +
      "more is 400. For a sandbox that has ended it is 409.",
    method: "POST",
    paths: ["/sandboxes/:id/keys", "/v1/sandboxes/:id/keys"],
    body: CreateSandboxKeyBody,
    response: "ApiKey",
    status: 201,
    errors: ["invalid_state"],
    run: ({ deps, request, key_text, id, body }) =>
      deps.sandbox.disposable.createKey(request, key_text, id, body),
  }),
  sandboxRoute({
    ...sandboxes,
    id: "deleteSandbox",
    summary: "Delete a disposable sandbox",
    description:
      "Ends the sandbox and its keys at once. The service then deletes its data. Deleting it " +
      "again within 24 hours changes nothing and returns the same.",
    method: "DELETE",
    paths: ["/sandboxes/:id", "/v1/sandboxes/:id"],
    run: ({ deps, request, id }) => deps.sandbox.disposable.end(request, id),
  }),
];
