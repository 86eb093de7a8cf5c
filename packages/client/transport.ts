/**
 * Sends requests with the API key, an idempotency key, a timeout and retries, and throws the error
 * classes. It does not depend on the resources.
 */

import { checkedObject, checkedOptions } from "./checked_object.ts";
import {
  ApiError,
  ConnectionError,
  type FailedRequest,
  TimeoutError,
  UnexpectedResponseError,
} from "./errors.ts";
import { type Exchange, exchange, type Fetch, type Outcome } from "./exchange.ts";
import {
  checkedIdempotencyKey,
  checkedRetries,
  checkedTimeout,
  faultHeader,
  READ_OPTIONS,
  type ReadOptions,
  REQUEST_OPTIONS,
  type RequestOptions,
} from "./request_options.ts";
import type { ErrorBody } from "./resources.ts";
import { isTransient, parseRetryAfter, retryDelayMs } from "./retry.ts";
import type { Runtime } from "./runtime.ts";
import { userAgentHeader } from "./user_agent.ts";

/** Options of a transport. */
export interface TransportOptions {
  apiKey: string;
  /** Without a slash at the end. */
  baseUrl: string;
  fetch: Fetch;
  maxRetries: number;
  timeoutMs: number;
  onExchange: ((exchange: Exchange) => void) | undefined;
  runtime: Runtime;
}

/** A request to the API. */
export interface ApiRequest {
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** The path after the base URL: first that of a collection, then segments such as an id. */
  path: readonly string[];
  query?: object | undefined;
  body?: object | undefined;
  /** True: the result is the text of the response, which is not JSON. */
  isText?: boolean;
}

/** Sends requests to one base URL with one key. */
export class Transport {
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /**
   * Sends a request, with retries if they can succeed.
   * @returns the parsed body of a 2xx response
   * @throws {PaymentsError} if the request fails
   * @throws {TypeError} if an option, an id or the body is invalid
   * @throws the reason of `options.signal` if it is aborted
   */
  async send<T>(request: ApiRequest, options: RequestOptions = {}): Promise<T> {
    const { baseUrl, fetch, onExchange, runtime } = this.#options;
    const is_read = request.method === "GET";
    const { signal } = checkedOptions(options, is_read ? READ_OPTIONS : REQUEST_OPTIONS);
    const maxRetries = checkedRetries(options.maxRetries ?? this.#options.maxRetries);
    const timeoutMs = checkedTimeout(options.timeoutMs ?? this.#options.timeoutMs);
    const idempotencyKey = is_read
      ? null
      : checkedIdempotencyKey(options.idempotencyKey ?? crypto.randomUUID());
    const { method } = request;
    const path = pathOf(request.path);
    const sent: Exchange["request"] = {
      method,
      url: baseUrl + path + searchOf(request.query),
      headers: this.#headers(request, idempotencyKey),
      body: request.body === undefined
        ? null
        : JSON.stringify(checkedObject("input", request.body)),
    };
    for (let attempt = 1;; attempt++) {
      signal?.throwIfAborted();
      const fault = attempt === 1 ? options.sandboxFault : undefined;
      const outcome = await exchange(withFault(sent, fault), {
        fetch,
        timeoutMs,
        signal,
        onExchange,
        attempt,
      });
      // If the caller has aborted the request, the error is the reason of the signal.
      if ("failure" in outcome) signal?.throwIfAborted();
      const failed = { operation: `${method} ${path}`, idempotencyKey, attempts: attempt };
      const result = this.#judge(outcome, failed, timeoutMs, request.isText === true);
      if ("value" in result) return result.value as T;
      const delay_ms = result.transient && attempt <= maxRetries
        ? retryDelayMs(attempt, result.retryAfterMs, runtime.random())
        : null;
      if (delay_ms === null) throw result.error;
      await runtime.sleep(delay_ms, signal);
    }
  }

  get<T>(path: readonly string[], options?: ReadOptions): Promise<T> {
    return this.send({ method: "GET", path }, options);
  }

  post<T>(path: readonly string[], body?: object, options?: RequestOptions): Promise<T> {
    return this.send({ method: "POST", path, body }, options);
  }

  delete<T>(path: readonly string[], options?: RequestOptions): Promise<T> {
    return this.send({ method: "DELETE", path }, options);
  }

  #headers({ body }: ApiRequest, idempotencyKey: string | null): Record<string, string> {
    return {
      Authorization: `Bearer ${this.#options.apiKey}`,
      ...(body !== undefined && { "Content-Type": "application/json" }),
      ...(idempotencyKey !== null && { "Idempotency-Key": idempotencyKey }),
      ...userAgentHeader(globalThis.navigator?.userAgent),
    };
  }

  /** Returns the result, or the error and whether a retry can succeed. */
  #judge(outcome: Outcome, request: FailedRequest, timeoutMs: number, isText: boolean):
    | { value: unknown }
    | { error: Error; transient: boolean; retryAfterMs?: number | undefined } {
    if ("failure" in outcome) {
      const error = outcome.timed_out
        ? new TimeoutError(request, timeoutMs)
        : new ConnectionError(request, outcome.failure);
      return { error, transient: true };
    }
    const { status, headers, body } = outcome.response;
    const parsed = parseObject(body);
    if (status >= 200 && status < 300 && (isText || parsed)) {
      return { value: isText ? body : parsed };
    }
    const retryAfterMs = parseRetryAfter(
      headers["retry-after"] ?? null,
      this.#options.runtime.now(),
    );
    const envelope = status >= 400 ? errorOf(parsed) : undefined;
    const error = envelope
      ? new ApiError({ status, body: envelope, retryAfterMs }, request)
      : new UnexpectedResponseError({ status, body }, request);
    return { error, transient: isTransient({ status, code: envelope?.code }), retryAfterMs };
  }
}

function withFault(
  sent: Exchange["request"],
  fault: RequestOptions["sandboxFault"],
): Exchange["request"] {
  if (fault === undefined) return sent;
  return { ...sent, headers: { ...sent.headers, "Sandbox-Fault": faultHeader(fault) } };
}

/** Joins a path. Throws a `TypeError` for an id that would lead to another path. */
function pathOf([collection, ...segments]: readonly string[]): string {
  for (const segment of segments) {
    if (typeof segment === "string" && !/^\.{0,2}$/.test(segment)) continue;
    throw new TypeError(`id is ${JSON.stringify(segment)}, which cannot be an id of ${collection}`);
  }
  return [collection, ...segments.map(encodeURIComponent)].join("/");
}

function searchOf(query: object | undefined): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) search.append(name, String(value));
  }
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

function errorOf(body: Record<string, unknown> | null): ErrorBody | undefined {
  const error = body?.error as Partial<ErrorBody> | null | undefined;
  return typeof error?.code === "string" && typeof error.message === "string"
    ? error as ErrorBody
    : undefined;
}
