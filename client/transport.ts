/**
 * Sends requests: key, idempotency key, timeout, retries, and errors as classes. Knows HTTP and
 * nothing of payments.
 */

import {
  ApiError,
  ConnectionError,
  type ErrorBody,
  type FailedRequest,
  TimeoutError,
  UnexpectedResponseError,
} from "./errors.ts";
import { isTransient, parseRetryAfter, retryDelayMs } from "./retry.ts";

/** Version of this package. */
export const VERSION = "0.1.0";
/** How often a request is sent again unless said otherwise. */
export const DEFAULT_MAX_RETRIES = 2;
/** How long one attempt may take unless said otherwise. */
export const DEFAULT_TIMEOUT_MS = 30_000;

/** The part of `fetch` that is used: the global one, or any like it. */
export type Fetch = (url: string, init: {
  method: string;
  headers: Record<string, string>;
  body?: string;
  redirect: "manual";
  signal: AbortSignal;
}) => Promise<{
  status: number;
  headers: {
    get(name: string): string | null;
    forEach(visit: (value: string, name: string) => void): void;
  };
  text(): Promise<string>;
}>;

/** What a call can be given beside what the API takes. */
export interface RequestOptions {
  /**
   * 1 to 255 visible ASCII characters; a new UUID for each call unless given. Give your own, kept
   * with the order, and a call after a crash of your process does nothing twice either.
   */
  idempotencyKey?: string | undefined;
  /** Ends the call, waits between attempts included; it rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Milliseconds of one attempt; the client's unless given. */
  timeoutMs?: number | undefined;
  /** How often the request is sent again; the client's unless given. */
  maxRetries?: number | undefined;
}

/** Options of a call that changes nothing. */
export type ReadOptions = Omit<RequestOptions, "idempotencyKey">;

/** One attempt, as it went over the wire. Bodies are whole: what they hold may be secret. */
export interface Exchange {
  request: {
    method: string;
    url: string;
    /** As sent, but the key in `Authorization` masked. */
    headers: Record<string, string>;
    body: string | null;
  };
  /** Null when there was no answer; then `error` says why. */
  response: {
    status: number;
    /** Names in lower case. In a browser only what the service exposes. */
    headers: Record<string, string>;
    body: string;
  } | null;
  error?: Error;
  /** Until the whole answer was read. */
  duration_ms: number;
  /** 1 for the first. */
  attempt: number;
}

/** Time and chance, for tests. */
export interface Runtime {
  /** Milliseconds since 1970. */
  now(): number;
  /** 0 to below 1. */
  random(): number;
  /** Waits; rejects with the signal's reason when it aborts. */
  sleep(delay_ms: number, signal: AbortSignal | undefined): Promise<void>;
}

/** What a transport is made of. */
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

/** A request of the API. */
export interface ApiRequest {
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** After the base URL. */
  path: string;
  query?: object | undefined;
  body?: object | undefined;
}

/** What came back, or why nothing did. */
type Outcome =
  | { answer: NonNullable<Exchange["response"]> }
  | { failure: unknown; timed_out: boolean };

/** Sends requests to one base URL with one key. */
export class Transport {
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /**
   * Sends a request, again where that can help, and returns the parsed body of a 2xx.
   * Errors: every `PaymentsError`; the reason of the caller's signal.
   */
  async send<T>(request: ApiRequest, options: RequestOptions = {}): Promise<T> {
    const { runtime } = this.#options;
    const { signal, maxRetries = this.#options.maxRetries } = options;
    const idempotencyKey = request.method === "GET"
      ? null
      : options.idempotencyKey ?? crypto.randomUUID();
    const operation = `${request.method} ${request.path}`;
    for (let attempt = 1;; attempt++) {
      signal?.throwIfAborted();
      const outcome = await this.#attempt(request, idempotencyKey, attempt, options);
      // The caller's own doing is not an error of the connection.
      if ("failure" in outcome) signal?.throwIfAborted();
      const failed = { operation, idempotencyKey, attempts: attempt };
      const result = this.#judge(outcome, failed, options);
      if ("value" in result) return result.value as T;
      const delay_ms = result.transient && attempt <= maxRetries
        ? retryDelayMs(attempt, result.retryAfterMs, runtime.random())
        : null;
      if (delay_ms === null) throw result.error;
      await runtime.sleep(delay_ms, signal);
    }
  }

  async #attempt(
    { method, path, query, body }: ApiRequest,
    idempotencyKey: string | null,
    attempt: number,
    options: RequestOptions,
  ): Promise<Outcome> {
    const { apiKey, baseUrl, fetch, onExchange } = this.#options;
    const { signal, timeoutMs = this.#options.timeoutMs } = options;
    const url = baseUrl + path + searchOf(query);
    const text = body === undefined ? null : JSON.stringify(body);
    const headers: Record<string, string> = {
      Authorization: `Bearer ${apiKey}`,
      ...(text !== null && { "Content-Type": "application/json" }),
      ...(idempotencyKey !== null && { "Idempotency-Key": idempotencyKey }),
      ...USER_AGENT,
    };
    const controller = new AbortController();
    let timed_out = false;
    const timer = setTimeout(() => {
      timed_out = true;
      controller.abort();
    }, timeoutMs);
    const abort = () => controller.abort();
    signal?.addEventListener("abort", abort);
    const started = performance.now();
    let outcome: Outcome;
    try {
      const response = await fetch(url, {
        method,
        headers,
        ...(text !== null && { body: text }),
        // Followed, a POST would become a GET and a list look like its result.
        redirect: "manual",
        signal: controller.signal,
      });
      const answer = { status: response.status, headers: {}, body: await response.text() };
      response.headers.forEach((value, name) => Object.assign(answer.headers, { [name]: value }));
      outcome = { answer };
    } catch (failure) {
      outcome = { failure, timed_out };
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
    report(onExchange, {
      request: { method, url, headers: { ...headers, Authorization: masked(apiKey) }, body: text },
      response: "answer" in outcome ? outcome.answer : null,
      ...("failure" in outcome && { error: asError(outcome.failure) }),
      duration_ms: performance.now() - started,
      attempt,
    });
    return outcome;
  }

  /** Tells a result from an error, and whether another attempt can help. */
  #judge(outcome: Outcome, request: FailedRequest, options: RequestOptions):
    | { value: unknown }
    | { error: Error; transient: boolean; retryAfterMs?: number | undefined } {
    if ("failure" in outcome) {
      const error = outcome.timed_out
        ? new TimeoutError(request, options.timeoutMs ?? this.#options.timeoutMs)
        : new ConnectionError(request, outcome.failure);
      return { error, transient: true };
    }
    const { status, headers, body } = outcome.answer;
    const parsed = parseObject(body);
    if (status >= 200 && status < 300 && parsed) return { value: parsed };
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

/** The path of a resource: `/v1/payments` and an id. Throws `TypeError` for what is no id. */
export function pathOf(collection: string, id: string, rest = ""): string {
  if (typeof id !== "string" || id === "" || id === "." || id === "..") {
    throw new TypeError(`Cannot address ${collection} by ${JSON.stringify(id)}: not an id`);
  }
  return `${collection}/${encodeURIComponent(id)}${rest}`;
}

/** The waits of production. */
export const RUNTIME: Runtime = {
  now: Date.now,
  random: Math.random,
  sleep: (delay_ms, signal) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", end);
        if (signal?.aborted) reject(signal.reason);
        else resolve();
      };
      const timer = setTimeout(end, delay_ms);
      signal?.addEventListener("abort", end);
    }),
};

/**
 * For the operator's logs. Not from a browser: there it is the browser's own, and a header that the
 * service would have to allow.
 */
const USER_AGENT: { "User-Agent"?: string } =
  globalThis.navigator?.userAgent?.startsWith("Mozilla/")
    ? {}
    : { "User-Agent": `payments-client/${VERSION}` };

function searchOf(query: object | undefined): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) search.append(name, String(value));
  }
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}

function masked(apiKey: string): string {
  const [, start = ""] = /^([A-Za-z0-9]+_(?:test|live)_)/.exec(apiKey) ?? [];
  return `Bearer ${start}…`;
}

/** Tells the listener. What it throws must not make a payment that was made look failed. */
function report(listener: TransportOptions["onExchange"], exchange: Exchange): void {
  try {
    listener?.(exchange);
  } catch {
    // The listener's own affair.
  }
}

function asError(failure: unknown): Error {
  return failure instanceof Error ? failure : new Error(String(failure));
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
