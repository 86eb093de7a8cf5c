/** Makes the operations that read one resource by its id. */

import type { ResourceKind } from "../store/load_statement.ts";
import type { Dependencies } from "./dependencies.ts";
import { type Route, route } from "./route.ts";

/** The parts that differ between these operations. */
type Reading =
  & Pick<Route, "id" | "group" | "summary" | "paths" | "scope" | "response">
  & Partial<Pick<Route, "description" | "home" | "test_only" | "without_faults" | "unlogged">>
  & {
    kind: ResourceKind;
    /** Runs before the read. */
    before?: (deps: Dependencies) => Promise<void>;
  };

/** Makes the operation. Its path ends in `:id`, or the key has one such resource. One trip. */
export function readOne({ kind, before, ...named }: Reading): Route {
  return route({
    ...named,
    method: "GET",
    async run({ deps, request, id }) {
      if (before) await before(deps);
      const loaded = await deps.store.load(request.access, kind, id);
      return loaded.outcome === "found" ? { status: 200, body: loaded.body } : loaded.response;
    },
  });
}
