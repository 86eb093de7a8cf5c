/**
 * The environment of a request: its clock and its randomness, and the faults that can happen there.
 * A live environment has the real ones. Each sandbox has its own (shared/sandbox).
 */

import type { Context } from "hono";
import type { Scope } from "../schema/api_key.ts";
import type { Access } from "../store/outcome.ts";
import type { Env, RequestEnvironment } from "./request_state.ts";

/** The live environments. Requests without a well-formed key count as theirs. */
export const LIVE_ENVIRONMENT: RequestEnvironment = {
  read: (c) => (scope, decide) => {
    const { random } = c.get("deps");
    const values = { random, order_ms: undefined, run_number: null, settings: null };
    return decide(liveAccess(c, scope), values);
  },
  admit: (c, scope, ask) => ask(liveAccess(c, scope), null),
};

function liveAccess(c: Context<Env>, scope: Scope | null): Access {
  return accessOf(c, scope, { version: 0, at_ms: c.get("state").at_ms, storage: null });
}

/** Makes the access of a request. `decided` is what its environment decides. */
export function accessOf(
  c: Context<Env>,
  scope: Scope | null,
  decided: Pick<Access, "version" | "at_ms" | "storage">,
): Access {
  const state = c.get("state");
  return {
    key_hash: state.key!.hash,
    scope,
    ...decided,
    request_id: state.request_id,
    retries: state.retries,
    rate_limits: state.is_counted ? null : c.get("deps").rate_limits,
    observe(api_key_id, remaining, environment_id) {
      state.key_id = api_key_id;
      state.environment_id = environment_id;
      if (remaining !== null) state.remaining = remaining;
    },
  };
}
