/**
 * Structured logs: one line per request, of an allow-list of fields. No header, body, path
 * parameter or message ever gets into it.
 */

import { formatTime } from "../core/clock.ts";

/** What a log line may hold (security §2, leaks through logs). */
export interface LogLine {
  /** RFC 3339, UTC. */
  time: string;
  /** Null of a line that is of no request. */
  request_id: string | null;
  /** The API key's id once the database has named it. */
  key_id: string | null;
  /** Method and route template, never the path itself. */
  route: string;
  status: number;
  /** Milliseconds from the first middleware to the answer. */
  ms: number;
  /** The error's code, or null. */
  code: string | null;
  /** Only with `internal_error`: class, SQLSTATE and place of what was thrown. */
  fault?: string;
}

/** What an operator may know of an unforeseen error: its class, SQLSTATE and place, never its text. */
export function faultOf(error: unknown): string {
  const { name, code, constraint_name, stack, message } = error as Record<string, unknown>;
  // Without the message, which may hold what a client sent, also in the form of a frame.
  const frames = String(stack ?? "").replace(String(message), "");
  const place = /^ {4}at .*\/shared\/([\w/.-]+:\d+):\d+\)?$/m.exec(frames)?.[1];
  return [name, code, constraint_name, place && `at ${place}`]
    .filter((part) => typeof part === "string").join(" ");
}

/** The line of a relay's turn that failed. */
export function failedTurn(at_ms: number, error: unknown): LogLine {
  return {
    time: formatTime(at_ms),
    request_id: null,
    key_id: null,
    route: "relay",
    status: 500,
    ms: 0,
    code: "internal_error",
    fault: faultOf(error),
  };
}

/** Writes a line to standard output. */
export function writeLogLine(line: LogLine): void {
  console.log(JSON.stringify(line));
}
