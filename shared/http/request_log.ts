/**
 * Structured logs: one line per request and one per attempt to deliver a webhook, of an allow-list of
 * fields. No header, body, path parameter or message ever gets into it.
 */

import { formatTime } from "../core/clock.ts";
import type { ErrorCode } from "../core/errors.ts";
import type { DeliveryAttempt } from "../schema/webhook.ts";
import type { ClaimedDelivery } from "../store/webhook_store.ts";

/** What a log line may hold (security §2, leaks through logs). */
export interface LogLine {
  /** RFC 3339, UTC. */
  time: string;
  /** Of an attempt: the request that made the event. Null where there was none. */
  request_id: string | null;
  /** The API key's id once the database has named it. */
  key_id: string | null;
  /** Method and route template, never the path itself. */
  route: string;
  status: number;
  /** Milliseconds from the first middleware to the answer. */
  ms: number;
  /** The code of an error, or the fault of an attempt; null if there is none. */
  code: ErrorCode | DeliveryAttempt["error"];
  /** Only with `internal_error`: class, SQLSTATE and place of what was thrown. */
  fault?: string;
  /** Only of an attempt: what was sent, to be found again among events and deliveries. */
  event_id?: string;
  delivery_id?: string;
  endpoint_id?: string;
  attempt?: number;
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

/** The line of an attempt: its status is the receiver's, 0 when there was no answer. */
export function attemptLine(
  { id, event_id, endpoint_id, body }: ClaimedDelivery,
  { number, at, response_status, duration_ms, error }: DeliveryAttempt,
): LogLine {
  return {
    time: at,
    request_id: requestOf(body),
    key_id: null,
    route: "webhook attempt",
    status: response_status ?? 0,
    ms: duration_ms,
    code: error,
    event_id,
    delivery_id: id,
    endpoint_id,
    attempt: number,
  };
}

/** The request that an event's text names; it stands at its end, where no text can look like it. */
function requestOf(event_body: string): string | null {
  const at = event_body.lastIndexOf(REQUEST);
  return at < 0 ? null : event_body.slice(at + REQUEST.length).split('"', 1)[0]!;
}
const REQUEST = '"request":{"id":"';

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
