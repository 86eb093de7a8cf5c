/** The access of a request and a pool of connections, for tests that call a store without one. */

import { Retries } from "../../../shared/jobs/retries.ts";
import { type Database, openDatabase } from "../../../shared/store/database.ts";
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

/** Opens a pool of connections as the functions do. `await using` closes it. */
export function openPool(options: Parameters<typeof openDatabase>[0]): Database & AsyncDisposable {
  const database = openDatabase(options);
  return { ...database, [Symbol.asyncDispose]: database.close };
}
