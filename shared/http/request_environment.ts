/**
 * The environment of a request: its clock and its randomness, and the faults that can happen there.
 * A live environment has the real ones. Each sandbox has its own (shared/sandbox).
 */

import type { Context } from "hono";
import type { RandomSource } from "../core/ids.ts";
import type { Scope } from "../schema/api_key.ts";
import type { Access } from "../store/outcome.ts";
import type { SandboxSettings } from "../store/sandbox_settings.ts";
import type { Route } from "./route.ts";
import type { Env, RequestState } from "./request_state.ts";

/** The randomness and the settings that a request has from its environment. */
export interface EnvironmentValues {
  random: RandomSource;
  /** Takes part in the ids (`idGenerator`); undefined: they follow the time of the request. */
  order_ms: number | undefined;
  /** Number of the request in the run of a seeded sandbox; null: the sandbox has no seed. */
  run_number: number | null;
  /** Null: those of a live environment. */
  settings: SandboxSettings | null;
}

/** The parts of a request that its environment reads. */
export interface Requested {
  route: Pick<Route, "method" | "home" | "paths" | "without_faults">;
  /** The id in the path as it was sent. */
  sent_id: string;
  idempotency_key: string | null;
}

/** Decides a request in its environment, which gives the access. */
type Decide = <T>(
  scope: Scope | null,
  decide: (access: Access, values: EnvironmentValues) => Promise<T>,
) => Promise<T>;

/** A request that has its response, as the server observed it. */
export interface ObservedRequest {
  method: string;
  /** The whole URL, for its query. */
  url: string;
  /** The path from the name of the function on. */
  path: string;
  status: number;
  is_replay: boolean;
  /** True if a web page sent the request. */
  is_from_page: boolean;
  duration_ms: number;
}

/** The live environments, or the sandboxes. */
export interface RequestEnvironment {
  /** Called before the route. */
  begin?(c: Context<Env>): Promise<void>;
  /** Reads what a request asks of its environment. Throws `ApiError`. */
  read(c: Context<Env>, requested: Requested): Decide;
  /** Checks the key of a request. Throws the errors of `ask`. */
  admit<T>(
    c: Context<Env>,
    scope: Scope | null,
    ask: (access: Access) => Promise<T>,
  ): Promise<T>;
  /** Responds to an error of this environment, or returns null. */
  responseTo?(c: Context<Env>, error: unknown): Response | null;
  /** Called with the response of a request, also that of an error. */
  end?(c: Context<Env>): Promise<void>;
  /** Logs a request after its response. */
  log?(state: RequestState, observed: ObservedRequest): void;
}

/** The live environments. Requests without a well-formed key count as theirs. */
export const LIVE_ENVIRONMENT: RequestEnvironment = {
  read: (c) => (scope, decide) => {
    const { random } = c.get("deps");
    const values = { random, order_ms: undefined, run_number: null, settings: null };
    return decide(liveAccess(c, scope), values);
  },
  admit: (c, scope, ask) => ask(liveAccess(c, scope)),
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
