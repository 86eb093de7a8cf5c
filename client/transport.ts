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

/** The longest that timers count to: a longer one would end at once. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

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
  /** After the base URL: a collection as it is, then segments such as an id. */
  path: readonly string[];
  query?: object | undefined;
  body?: object | undefined;
}

/** What goes over the wire with each attempt. */
type Sent = Exchange["request"];

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
    const { signal } = options;
    const maxRetries = checkedRetries(options.maxRetries ?? this.#options.maxRetries);
    const timeoutMs = checkedTimeout(options.timeoutMs ?? this.#options.timeoutMs);
    const idempotencyKey = request.method === "GET"
      ? null
      : checkedIdempotencyKey(options.idempotencyKey ?? crypto.randomUUID());
    const { method } = request;
    const path = pathOf(request.path);
    const sent: Sent = {
      method,
      url: this.#options.baseUrl + path + searchOf(request.query),
      headers: this.#headers(request, idempotencyKey),
      body: request.body === undefined ? null : JSON.stringify(request.body),
    };
    for (let attempt = 1;; attempt++) {
      signal?.throwIfAborted();
      const outcome = await this.#attempt(sent, attempt, timeoutMs, signal);
      // The caller's own doing is not an error of the connection.
      if ("failure" in outcome) signal?.throwIfAborted();
      const failed = { operation: `${method} ${path}`, idempotencyKey, attempts: attempt };
      const result = this.#judge(outcome, failed, timeoutMs);
      if ("value" in result) return result.value as T;
      const delay_ms = result.transient && attempt <= maxRetries
        ? retryDelayMs(attempt, result.retryAfterMs, runtime.random())
        : null;
      if (delay_ms === null) throw result.error;
      await runtime.sleep(delay_ms, signal);
    }
  }

  #headers({ body }: ApiRequest, idempotencyKey: string | null): Record<string, string> {
    return {
      Authorization: `Bearer ${this.#options.apiKey}`,
      ...(body !== undefined && { "Content-Type": "application/json" }),
      ...(idempotencyKey !== null && { "Idempotency-Key": idempotencyKey }),
      ...USER_AGENT,
    };
  }

  async #attempt(
    { method, url, headers, body }: Sent,
    attempt: number,
    timeoutMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Outcome> {
    const { apiKey, fetch, onExchange } = this.#options;
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
        ...(body !== null && { body }),
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
    if (onExchange === undefined) return outcome;
    report(onExchange, {
      request: { method, url, headers: { ...headers, Authorization: masked(apiKey) }, body },
      response: "answer" in outcome ? outcome.answer : null,
      ...("failure" in outcome && { error: asError(outcome.failure) }),
      duration_ms: performance.now() - started,
      attempt,
    });
    return outcome;
  }

  /** Tells a result from an error, and whether another attempt can help. */
  #judge(outcome: Outcome, request: FailedRequest, timeoutMs: number):
    | { value: unknown }
    | { error: Error; transient: boolean; retryAfterMs?: number | undefined } {
    if ("failure" in outcome) {
      const error = outcome.timed_out
        ? new TimeoutError(request, timeoutMs)
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

/** Joins a path. Throws `TypeError` for an id that would lead elsewhere. */
function pathOf([collection, ...segments]: readonly string[]): string {
  for (const segment of segments) {
    if (typeof segment === "string" && !/^\.{0,2}$/.test(segment)) continue;
    throw new TypeError(`id is ${JSON.stringify(segment)}, which is none of ${collection}`);
  }
  return [collection, ...segments.map(encodeURIComponent)].join("/");
}

/** Throws `TypeError` for a count that is none. */
export function checkedRetries(maxRetries: number): number {
  if (Number.isInteger(maxRetries) && maxRetries >= 0) return maxRetries;
  throw new TypeError(`maxRetries is ${maxRetries}, which is not a whole number from 0 up`);
}

/** Throws `TypeError` for a time that timers do not keep. */
export function checkedTimeout(timeoutMs: number): number {
  if (timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS) return timeoutMs;
  throw new TypeError(
    `timeoutMs is ${timeoutMs}, which is not above 0 and up to ${MAX_TIMEOUT_MS}`,
  );
}

function checkedIdempotencyKey(key: string): string {
  if (typeof key === "string" && /^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new TypeError("idempotencyKey is not a text of 1 to 255 visible ASCII characters");
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
function report(listener: (exchange: Exchange) => void, exchange: Exchange): void {
  try {
    listener(exchange);
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
