/** Makes the operations that read one resource by its id. */

import { EmptyBody, EmptyQuery } from "../schema/empty.ts";
import type { ResourceKind } from "../store/load_statement.ts";
import type { Dependencies } from "./dependencies.ts";
import { PAYMENTS_FUNCTION, type Route, route } from "./route.ts";

/** The parts that differ between these operations. By default: payments function, both modes. */
type Reading =
  & Pick<Route, "id" | "group" | "summary" | "scope" | "response">
  & Partial<Pick<Route, "description" | "home" | "test_only">>
  & ({ path: string } | Pick<Route, "paths">)
  & {
    kind: ResourceKind;
    /** Runs before the read. */
    before?: (deps: Dependencies) => Promise<void>;
  };

/** Makes the operation `GET <path>`, where the path ends in `:id`. One round trip. */
export function readOne({ kind, before, ...named }: Reading): Route {
  return route({
    home: PAYMENTS_FUNCTION,
    test_only: false,
    paths: "path" in named ? [named.path] : named.paths,
    ...named,
    body: EmptyBody,
    query: EmptyQuery,
    method: "GET",
    status: 200,
    async run({ deps, request, id }) {
      await before?.(deps);
      const loaded = await deps.store.load(request.access, kind, id);
      return loaded.outcome === "found" ? { status: 200, body: loaded.body } : loaded.response;
    },
  });
}
