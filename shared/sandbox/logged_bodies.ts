/**
 * The bodies in the log of requests (contract §5): those of the first requests of each second of a
 * sandbox, without secrets. A person who looks at single requests finds them, and a program that
 * sends thousands does not pay for them.
 */

import { withoutKeys } from "../core/masked_secrets.ts";
import type { RequestState } from "../http/request_state.ts";
import type { RequestLogEntry } from "../store/request_log.ts";
import { maskedRequest, maskedResponse, MAX_BYTES, withoutCardNumbers } from "./masked_body.ts";

/** Requests of a sandbox whose bodies are logged in a second, and of all sandboxes together. */
const PER_SECOND = 20;
const PER_SECOND_IN_ALL = 200;

type Bodies = Pick<RequestLogEntry, "request_body" | "response_body">;

const encoder = new TextEncoder();

/** Decides which bodies are logged, for one instance of the functions. */
export class LoggedBodies {
  #second = 0;
  #taken = 0;
  /** The requests of the present second, by environment. */
  readonly #counts = new Map<string, number>();

  /** Returns the bodies of a request for its log entry. Those that are not logged are absent. */
  of(state: RequestState): Bodies {
    const { body, body_bytes, response_body, route } = state;
    if (!this.#take(state.environment_id!, state.at_ms)) return {};
    const request = body === null || body_bytes > MAX_BYTES
      ? null
      : bounded(maskedRequest(body, route?.body));
    const response = response_body === null || response_body.length > MAX_BYTES
      ? null
      : bounded(withoutCardNumbers(maskedResponse(response_body)));
    return { request_body: request, response_body: response };
  }

  #take(environment_id: string, at_ms: number): boolean {
    const second = Math.floor(at_ms / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#taken = 0;
      this.#counts.clear();
    }
    const count = this.#counts.get(environment_id) ?? 0;
    if (count >= PER_SECOND || this.#taken >= PER_SECOND_IN_ALL) return false;
    this.#counts.set(environment_id, count + 1);
    this.#taken++;
    return true;
  }
}

/** Returns a body as JSON text without secrets; null: it is too long, or no JSON object. */
function bounded(body: unknown): string | null {
  if (typeof body !== "object") return null;
  const text = withoutKeys(JSON.stringify(body));
  return encoder.encode(text).length <= MAX_BYTES ? text : null;
}
