/** Responses of lists (contract §5). The items are JSON text already. */

import { idFloor } from "../core/ids.ts";
import type { StoredResponse } from "../store/commit_rows.ts";
import type { PageRequest } from "../store/page_request.ts";
import type { RouteInput } from "./route.ts";

/** The query parameters of every list. */
interface PageQuery {
  limit: number;
  starting_after?: string | undefined;
}

/** The kind of a list, and its filters from the query. */
type Requested = Pick<PageRequest, "kind" | "parent_id"> & {
  filters: Record<string, string | undefined>;
};

/** Returns a page of a list: `{object, url, data, has_more, next_cursor}`. One round trip. */
export async function responsePage(
  call: RouteInput<unknown, PageQuery>,
  url: string,
  { filters, ...request }: Requested,
): Promise<StoredResponse> {
  const { limit, starting_after } = call.query;
  const page = await call.deps.store.list(call.request.access, {
    ...request,
    filters: Object.fromEntries(
      Object.entries(filters).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, value]]
      ),
    ),
    limit,
    starting_after: starting_after ?? null,
  });
  const { data, has_more, next_cursor } = page;
  return {
    status: 200,
    body: `{"object":"list","url":${JSON.stringify(url)},"data":[${data}],` +
      `"has_more":${has_more},"next_cursor":${JSON.stringify(next_cursor)}}`,
  };
}

/** Converts exclusive bounds of the creation time to bounds of the id. */
export function createdBetween(
  prefix: Parameters<typeof idFloor>[0],
  after_ms: number | undefined,
  before_ms: number | undefined,
): Record<string, string | undefined> {
  return {
    id_from: after_ms === undefined ? undefined : idFloor(prefix, after_ms + 1),
    id_before: before_ms === undefined ? undefined : idFloor(prefix, before_ms),
  };
}
