/**
 * Structured logs: one line for each request and for each attempt to deliver a webhook. A line has
 * only listed fields, and no header, body, path parameter or message.
 */

import { formatTime } from "../core/clock.ts";
import { isUnavailable } from "../core/database_error.ts";
import { ApiError, type ErrorCode } from "../core/errors.ts";
import type { DeliveryAttempt } from "../schema/webhook.ts";
import type { LeasedDelivery } from "../store/webhook_store.ts";

/** The fields of a log line (security §2, leaks through logs). */
export interface LogLine {
  /** RFC 3339, UTC. */
  time: string;
  /** For an attempt: the request that made the event. Null without a request. */
  request_id: string | null;
  /** The id of the API key; null before the database has admitted the key. */
  key_id: string | null;
  /** Method and route template, never the path itself. */
  route: string;
  status: number;
  /** Milliseconds from the first middleware to the response. */
  ms: number;
  /** The code of an error, or the `error` of an attempt; null if there is none. */
  code: ErrorCode | DeliveryAttempt["error"];
  /** Class, SQLSTATE and place of an unexpected error, or of the one behind a 503. */
  fault?: string;
  /** For an attempt: the ids of its event, delivery and endpoint, and its number. */
  event_id?: string;
  delivery_id?: string;
  endpoint_id?: string;
  attempt?: number;
}

/**
 * Describes an unexpected error for the operator by class, SQLSTATE and place, without its text.
 * For something that was given up it also names the kind and the id.
 */
export function faultOf(error: unknown): string {
  const { name, subject, code, constraint_name, stack, message } = error as Record<string, unknown>;
  // Removes the message, which can contain text of a client that looks like a stack frame.
  const frames = String(stack ?? "").replace(String(message), "");
  const place = /^ {4}at .*\/shared\/([\w/.-]+:\d+):\d+\)?$/m.exec(frames)?.[1];
  return [name, subject, code, constraint_name, place && `at ${place}`]
    .filter((part) => typeof part === "string").join(" ");
}

/** Makes the line of an attempt. `status` is the receiver's, or 0 without a response. */
export function attemptLine(
  { id, event_id, endpoint_id, body }: LeasedDelivery,
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

/** Returns the request id of an event. It is at the end, where no other text can look like it. */
function requestOf(event_body: string): string | null {
  const at = event_body.lastIndexOf(REQUEST);
  return at < 0 ? null : event_body.slice(at + REQUEST.length).split('"', 1)[0]!;
}
const REQUEST = '"request":{"id":"';

export function failedPoll(
  route: "dispatcher" | "provider worker" | "reads of changes" | "check of the books",
  at_ms: number,
  error: unknown,
): LogLine {
  // An error of a store is an ApiError already.
  const is_away = error instanceof ApiError
    ? error.code === "service_unavailable"
    : isUnavailable(error);
  return {
    time: formatTime(at_ms),
    request_id: null,
    key_id: null,
    route,
    status: is_away ? 503 : 500,
    ms: 0,
    code: is_away ? "service_unavailable" : "internal_error",
    fault: faultOf((is_away && (error as Error).cause) || error),
  };
}

export function lostEntries(at_ms: number, count: number): LogLine {
  return {
    time: formatTime(at_ms),
    request_id: null,
    key_id: null,
    route: "request log",
    status: 500,
    ms: 0,
    code: "internal_error",
    fault: `lost ${count}`,
  };
}

export function writeLogLine(line: LogLine): void {
  console.log(JSON.stringify(line));
}
