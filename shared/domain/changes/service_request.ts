/** A request to the domain, and the domain's reply. */

import type { SandboxSettings } from "../../store/sandbox_settings.ts";
import type { ReservedOperation } from "../../store/store.ts";
import type { Access, Idempotency, Responded } from "../../store/outcome.ts";
import type { RequestContext } from "./event.ts";

export interface ServiceRequest {
  access: Access;
  context: RequestContext;
  idempotency: Idempotency | null;
  /** The settings of the sandbox; null: those of a live environment. */
  settings: SandboxSettings | null;
}

/** A declared fault of a sandbox that decides a response. */
export interface SandboxFault {
  /** Null: a header of the request asks for it. */
  id: string | null;
  fault: string;
}

export interface Reply extends Responded {
  /** The operation of a provider that the request has reserved and now sends. */
  operation?: ReservedOperation;
  /** The declared fault that the commit has counted. */
  fault_id?: string;
  /** The same fault, for the response. */
  fault?: SandboxFault;
  /** Further parts of the body, each of which is read when the client takes it. */
  rest?: AsyncGenerator<string>;
}

/** Returns the access for later round trips, which do not count against the rate limit again. */
export function withoutRateCount(access: Access): Access {
  return {
    ...access,
    rate_limits: null,
    observe: (api_key_id, _, environment_id) => access.observe(api_key_id, null, environment_id),
  };
}
