/**
 * The state of a request in the middleware: Hono's typed variables.
 */

import type { ErrorCode } from "../core/errors.ts";
import type { Retries } from "../jobs/retries.ts";
import type { Dependencies } from "./dependencies.ts";
import type { RequestEnvironment } from "./request_environment.ts";
import type { Route } from "./route.ts";

/** The well-formed key of a request. The database decides whether it is valid. */
export interface PresentedKey {
  /** Lower-case hex SHA-256 of the key text. */
  hash: string;
  livemode: boolean;
  /** The key itself. It appears in no log, no response and no statement. */
  text: string;
}

/** State of one request. */
export interface RequestState {
  request_id: string;
  at_ms: number;
  retries: Retries;
  /** The place in a trace for the work that follows the request; null: none. */
  traceparent: string | null;
  key: PresentedKey | null;
  /** That of the key; without one the live one, which does nothing then. */
  environment: RequestEnvironment;
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
  /** Route template, for the log. */
  route_template: string;
  /** Null if the path has none. */
  route: Route | null;
  /** Requests left to the key or its account, the smaller number; null without limits. */
  remaining: number | null;
  code: ErrorCode | null;
  /** Class, SQLSTATE and place of an unexpected error, for the log. */
  fault: string | null;
  /** True for calls of the internal routes and health checks, whose successes are not logged. */
  is_tick: boolean;
}

/** Hono's environment of both functions. */
export interface Env {
  Variables: { state: RequestState; deps: Dependencies };
}
