/**
 * Makes the operations that read one resource by its id.
 */

import { EmptyBody, EmptyQuery } from "../schema/empty.ts";
import type { ResourceKind } from "../store/load_statement.ts";
import { type Operation, operation, PAYMENTS_FUNCTION } from "./operation.ts";

/** Makes the operation `GET <path>`, where the path ends in `:id`. One round trip. */
export function readOne(
  { path, kind, ...named }:
    & Pick<Operation, "id" | "group" | "summary" | "scope" | "answer">
    & { path: string; kind: ResourceKind },
): Operation {
  return operation({
    ...named,
    home: PAYMENTS_FUNCTION,
    test_only: false,
    body: EmptyBody,
    query: EmptyQuery,
    method: "GET",
    paths: [path],
    status: 200,
    async run({ deps, request, id }) {
      const loaded = await deps.store.load(request.access, kind, id);
      return loaded.outcome === "found" ? { status: 200, body: loaded.body } : loaded.answer;
    },
  });
}
