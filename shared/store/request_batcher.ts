/**
 * Requests that arrive while a statement runs share the next one (ADR 0001). Tenants take turns,
 * and each request gets the outcome that it would get alone.
 */

import { Batcher } from "../jobs/batcher.ts";
import { toApiError } from "./database.ts";
import type { KnownTenants } from "./known_tenants.ts";
import type { Access, Row } from "./outcome.ts";

export interface BatchLimits {
  /** Most statements under way. */
  concurrency: number;
  most: number;
  /** Longest wait for as many requests as the last statement had, under load. */
  gather_ms?: number;
}

/**
 * At most 64 requests, because more do not reduce the cost of a request further. A commit costs
 * PostgreSQL as much as ten of its changes, so under load a statement waits for some.
 */
const LIMITS: BatchLimits = { concurrency: 1, most: 64, gather_ms: 2 };
/** Most characters of the requests of one statement. */
const MOST_CHARACTERS = 1_000_000;

export interface ListRow<Own extends string = never> extends Row<Own> {
  /** Position of the request in the list, from 1. */
  n: number;
}

/**
 * Returns a function that sends requests of one kind, and throws `ApiError`. The places of requests
 * bound those that wait (shared/jobs/places.ts).
 * @param send sends a list in one statement. Returns a row for each request, in any order
 * @param weigh estimates the number of characters of a request
 * @param limits only measurements pass others
 */
export function batchRequests<
  Request extends { access: Access },
  ApiResponse extends ListRow<string> = ListRow,
>(
  tenants: KnownTenants,
  send: (list: readonly Request[], is_alone: boolean) => Promise<ApiResponse[]>,
  weigh: (request: Request) => number = () => 0,
  limits: BatchLimits = LIMITS,
): (request: Request) => Promise<ApiResponse> {
  const batcher = new Batcher<Request, ApiResponse>({
    ...limits,
    most_weight: MOST_CHARACTERS,
    weigh,
    send: async (list, is_alone) =>
      (await send(list, is_alone)).toSorted((one, other) => one.n - other.n),
    errorOf: toApiError,
  });
  return (request) => batcher.add(request, tenants.nameOf(request.access.key_hash));
}
