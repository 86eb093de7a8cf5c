/** The access of a request, for tests that call a store without one. */

import { Retries } from "../../../shared/jobs/retries.ts";
import type { Access } from "../../../shared/store/outcome.ts";

/** Returns an access with no limits and with any scope, and with these members. */
export function accessWith(members: Pick<Access, "key_hash"> & Partial<Access>): Access {
  return {
    scope: null,
    version: 0,
    at_ms: Date.now(),
    request_id: "req_1",
    rate_limits: null,
    storage: null,
    retries: new Retries(),
    observe: () => {},
    ...members,
  };
}
