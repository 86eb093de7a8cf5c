/** Operations that list items (contract §5). The items are JSON text already. */

import type * as z from "zod";
import { idFloor } from "../core/ids.ts";
import { MAX_COUNTED } from "../schema/limits.ts";
import type { StoredResponse } from "../store/commit_rows.ts";
import type { PageRequest } from "../store/page_request.ts";
import { type Route, route, type RouteDefinition, type RouteInput } from "./route.ts";

/** The query parameters of every list. */
interface PageQuery {
  /** Absent: a page has as many items as the database returns. */
  limit?: number;
  starting_after?: string | undefined;
  include?: "total" | undefined;
}

type Filters = Record<string, string | undefined>;

type Requested = Pick<PageRequest, "kind" | "parent_id"> & { filters: Filters };

/** The parts that differ between these operations. */
interface Listing<Query extends PageQuery>
  extends Omit<RouteDefinition<unknown, Query>, "method" | "body" | "run"> {
  query: z.ZodType<Query>;
  /** Name of the schema of an item. */
  response: string;
  kind: PageRequest["kind"];
  /** Makes the filters from the query. Absent: they are its parameters. */
  filters?(query: Omit<Query, keyof PageQuery>): Filters;
}

/** Makes the operation that lists items at its first path. */
export function listRoute<Query extends PageQuery>(
  { kind, filters, ...named }: Listing<Query>,
): Route {
  return route({
    ...named,
    method: "GET",
    response: `${named.response}List`,
    run(call) {
      const { limit: _, starting_after: __, include: ___, ...own } = call.query;
      const found = filters ? filters(own) : own as Filters;
      return responsePage(call, named.paths[0], { kind, filters: found });
    },
  });
}

/** Returns a page of a list: `{object, url, data, has_more, next_cursor}`. One round trip. */
export async function responsePage(
  call: RouteInput<unknown, PageQuery>,
  url: string,
  { filters, ...request }: Requested,
): Promise<StoredResponse> {
  const { limit = 1, starting_after, include } = call.query;
  const page = await call.deps.store.list(call.request.access, {
    ...request,
    filters: Object.fromEntries(
      Object.entries(filters).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, value]]
      ),
    ),
    limit,
    starting_after: starting_after ?? null,
    counts: include === "total",
  });
  const { data, has_more, next_cursor, total } = page;
  const count = total === null ? null : Math.min(total, MAX_COUNTED);
  return {
    status: 200,
    body: `{"object":"list","url":${JSON.stringify(url)},"data":[${data}],` +
      `"has_more":${has_more},"next_cursor":${JSON.stringify(next_cursor)}` +
      (include === "total"
        ? `,"total":${
          JSON.stringify(count === null ? null : { count, is_exact: count === total })
        }}`
        : "}"),
  };
}

/** Converts exclusive bounds of the creation time to bounds of the id. */
export function createdBetween(
  prefix: Parameters<typeof idFloor>[0],
  after_ms: number | undefined,
  before_ms: number | undefined,
): Filters {
  return {
    id_from: after_ms === undefined ? undefined : idFloor(prefix, after_ms + 1),
    id_before: before_ms === undefined ? undefined : idFloor(prefix, before_ms),
  };
}
