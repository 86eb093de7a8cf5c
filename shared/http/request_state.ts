/**
 * What one request carries through the middleware: Hono's typed variables.
 */

import type { ErrorCode } from "../core/errors.ts";
import type { Dependencies } from "./dependencies.ts";

/** The key of a request, as its text tells; whether it opens anything the database decides. */
export interface PresentedKey {
  /** Lower-case hex SHA-256 of the key text. */
  hash: string;
  livemode: boolean;
  /** The key itself; it goes into no log, no answer and no statement. */
  text: string;
}

/** State of one request. */
export interface RequestState {
  request_id: string;
  at_ms: number;
  key: PresentedKey | null;
  /** The API key's id, once the database has admitted the key. */
  key_id: string | null;
  /** Method and route template, for the log. */
  route: string;
  /** Requests that the key has left; null when it is not limited. */
  remaining: number | null;
  code: ErrorCode | null;
  /** Class and SQLSTATE of an unforeseen error, for the log. */
  fault: string | null;
  /** Set by our own clock's calls, which would fill the log. */
  is_tick: boolean;
}

/** Hono's environment of both functions. */
export interface Env {
  Variables: { state: RequestState; deps: Dependencies };
}
