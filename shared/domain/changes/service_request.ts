/** A request as the domain sees it, and the domain's reply. */

import type { Answer } from "../../store/commit_rows.ts";
import type { Access, Idempotency } from "../../store/outcome.ts";
import type { RequestContext } from "./event.ts";

/** A request as the domain sees it. */
export interface ServiceRequest {
  access: Access;
  context: RequestContext;
  idempotency: Idempotency | null;
}

/** An answer, and whether it is that of an earlier request with the same key. */
export interface Reply {
  answer: Answer;
  replayed: boolean;
}

/** The access of a request's later round trips: the first round trip has counted the request. */
export function countedAlready(access: Access): Access {
  return {
    ...access,
    rate_limits: null,
    observe: (api_key_id) => access.observe(api_key_id, null),
  };
}
