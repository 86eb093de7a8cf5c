/**
 * The world of a request: its clock and its randomness, and what can go wrong there. Live keys have
 * the real one; each sandbox has its own. The service knows this interface alone.
 */

import type { Context, MiddlewareHandler } from "hono";
import type { RandomSource } from "../core/ids.ts";
import type { Scope } from "../schema/api_key.ts";
import type { Access } from "../store/outcome.ts";
import type { Route } from "./route.ts";
import type { Env, RequestState } from "./request_state.ts";

/** The randomness and the settings that a request has from its world. */
export interface Given {
  random: RandomSource;
  /** Takes part in the ids (`idGenerator`); undefined: they follow the time of the request. */
  order_ms: number | undefined;
  /** Number of the request in the run of a seeded sandbox; null: the sandbox has no seed. */
  run_number: number | null;
  /** What only the world itself reads, such as the faults that are declared there. */
  settings: unknown;
}

/** A request as far as a world reads it. */
interface Requested {
  route: Pick<Route, "method" | "home" | "paths" | "without_faults">;
  /** The id in the path as it was sent. */
  sent_id: string;
  idempotency_key: string | null;
}

/** Decides a request in its world, which gives the access. */
type Decide = <T>(
  scope: Scope | null,
  decide: (access: Access, given: Given) => Promise<T>,
) => Promise<T>;

/** The request as the server saw it. */
export interface Seen {
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

/** The worlds of a service. */
export interface World {
  /** Stands before all other middleware, so it sees the response of every error. */
  readonly around: MiddlewareHandler<Env>;
  /** Stands behind the check of the key's form. */
  readonly inside: MiddlewareHandler<Env>;
  /** Throws `test_key_required` if a request with a live key asks for what sandboxes have. */
  checkLive(headers: Headers): void;
  /** Reads what a request asks of its world. Throws `ApiError`. */
  read(c: Context<Env>, requested: Requested): Decide;
  /** Checks the key of a request. Throws the errors of `ask`. */
  admit<T>(
    c: Context<Env>,
    scope: Scope | null,
    ask: (access: Access) => Promise<T>,
  ): Promise<T>;
  /** Responds to an error of this world, or returns null. */
  responseTo(c: Context<Env>, error: unknown): Response | null;
  /** Logs a request after its response. */
  log(state: RequestState, seen: Seen): void;
}
