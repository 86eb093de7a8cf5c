/**
 * The state of a request in the middleware, which is in Hono's typed variables, and what the
 * environment of its key does with it (request_environment.ts, shared/sandbox).
 */

import type { Context } from "hono";
import type { ErrorCode } from "../core/errors.ts";
import type { RandomSource } from "../core/ids.ts";
import type { SandboxFault } from "../domain/changes/service_request.ts";
import type { Retries } from "../jobs/retries.ts";
import type { Scope } from "../schema/api_key.ts";
import type { Access } from "../store/outcome.ts";
import type { SandboxSettings } from "../store/sandbox_settings.ts";
import type { Dependencies } from "./dependencies.ts";
import type { Route } from "./route.ts";

/** The well-formed key of a request. The database decides whether it is valid. */
export interface PresentedKey {
  /** Lower-case hex SHA-256 of the key text. */
  hash: string;
  livemode: boolean;
  /** The key itself. It appears in no log, no response and no statement. */
  text: string;
}

export interface RequestState {
  request_id: string;
  at_ms: number;
  retries: Retries;
  /** The place in a trace for the work that follows the request; null: none. */
  traceparent: string | null;
  key: PresentedKey | null;
  /** That of the key; without one the live one, which does nothing then. */
  environment: RequestEnvironment;
  /** True: the response is the stored one of an earlier request. */
  is_replay: boolean;
  /** True: the response was made with the headers that every response has. */
  has_own_headers: boolean;
  /** True: the request is counted against the rate limits of its key and account. */
  is_counted: boolean;
  /** The body after its parsing; null without a readable one. */
  body: unknown;
  body_bytes: number;
  /** The body of the response as JSON text; null without one, and before it is made. */
  response_body: string | null;
  /** The id of the API key; null before the database has admitted the key. */
  key_id: string | null;
  /** The environment of the key; null as long as `key_id` is. */
  environment_id: string | null;
  /** The idempotency key of the request; null without one, and before it is read. */
  idempotency_key: string | null;
  route_template: string;
  /** Null if the path has none. */
  route: Route | null;
  /** The header `RateLimit-Policy` of responses that are limited. */
  rate_policy: string;
  /** Requests left to the key or its account, the smaller number; null without limits. */
  remaining: number | null;
  code: ErrorCode | null;
  /** Class, SQLSTATE and place of an unexpected error, for the log. */
  fault: string | null;
  /** The declared fault that decides the response; null: none. */
  sandbox_fault: SandboxFault | null;
  /** The body of the response that a declared fault hides, as JSON text; null: it hides none. */
  hidden_body: string | null;
  /** The time by which the request was decided, of its sandbox if it has one; null: it was not. */
  decided_ms: number | null;
  /** True for calls of the internal routes and health checks, whose successes are not logged. */
  is_tick: boolean;
}

/** Hono's environment of both functions. */
export interface Env {
  Variables: { state: RequestState; deps: Dependencies };
}

export interface EnvironmentValues {
  random: RandomSource;
  /** Takes part in the ids (`idGenerator`); undefined: they follow the time of the request. */
  order_ms: number | undefined;
  /** Number of the request in the run of a seeded sandbox; null: the sandbox has no seed. */
  run_number: number | null;
  /** Null: those of a live environment. */
  settings: SandboxSettings | null;
}

export interface Requested {
  route: Pick<Route, "method" | "home" | "paths" | "without_faults">;
  sent_id: string;
  idempotency_key: string | null;
}

type Decide = <T>(
  scope: Scope | null,
  decide: (access: Access, values: EnvironmentValues) => Promise<T>,
) => Promise<T>;

export interface ObservedRequest {
  method: string;
  /** The whole URL, for its query. */
  url: string;
  path: string;
  status: number;
  is_replay: boolean;
  /** True if a web page sent the request. */
  is_from_page: boolean;
  duration_ms: number;
}

/** The live environments, or the sandboxes. */
export interface RequestEnvironment {
  /** Called before the route, which waits for it. */
  begin?(c: Context<Env>): Promise<void> | undefined;
  /** Reads what a request asks of its environment. Throws `ApiError`. */
  read(c: Context<Env>, requested: Requested): Decide;
  /** Asks with the access of a request, and with its settings. Throws the errors of `ask`. */
  admit<T>(
    c: Context<Env>,
    scope: Scope | null,
    ask: (access: Access, settings: SandboxSettings | null) => Promise<T>,
  ): Promise<T>;
  /** Responds to an error of this environment, or returns null. */
  responseTo?(c: Context<Env>, error: unknown): Response | null;
  /** Called with the response of a request, also that of an error. */
  end?(c: Context<Env>): Promise<void>;
  log?(state: RequestState, observed: ObservedRequest): void;
}
