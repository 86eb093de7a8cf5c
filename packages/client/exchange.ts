/**
 * Makes one attempt of a request: sends it, reads the whole response within the timeout, and
 * reports both to `onExchange`. Retries belong to transport.ts.
 */

/** The part of `fetch` that the client uses. The global `fetch` has this type. */
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

/**
 * One attempt, as it was sent and received. Bodies are complete, so they can contain secrets and
 * personal data.
 */
export interface Exchange {
  request: {
    method: string;
    url: string;
    /** The headers that were sent, but with a masked key in `Authorization`. */
    headers: Record<string, string>;
    body: string | null;
  };
  /** Null if there was no response. `error` is set then. */
  response: {
    status: number;
    /** Names are in lower case. A browser only shows headers that the service exposes. */
    headers: Record<string, string>;
    body: string;
  } | null;
  /** The reason if there was no response. */
  error?: Error;
  /** Time from the start until the whole response was read. */
  duration_ms: number;
  /** Number of the attempt, from 1. */
  attempt: number;
}

/** Options of an attempt. */
export interface ExchangeOptions {
  fetch: Fetch;
  /** Timeout until the end of the response. */
  timeoutMs: number;
  signal: AbortSignal | undefined;
  onExchange: ((exchange: Exchange) => void) | undefined;
  /** Number of the attempt, from 1. */
  attempt: number;
}

/** The response, or the failure if there is none. */
export type Outcome =
  | { response: NonNullable<Exchange["response"]> }
  | { failure: unknown; timed_out: boolean };

/** Makes one attempt. Never rejects: it returns a failure as an outcome. */
export async function exchange(
  { method, url, headers, body }: Exchange["request"],
  options: ExchangeOptions,
): Promise<Outcome> {
  const { fetch, timeoutMs, signal, onExchange, attempt } = options;
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
      // `fetch` would follow some redirects of a POST with a GET. The response of that GET, such as
      // a list, would look like the result of the POST.
      redirect: "manual",
      signal: controller.signal,
    });
    const received = { status: response.status, headers: {}, body: await response.text() };
    response.headers.forEach((value, name) => Object.assign(received.headers, { [name]: value }));
    outcome = { response: received };
  } catch (failure) {
    outcome = { failure, timed_out };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
  if (onExchange === undefined) return outcome;
  report(onExchange, {
    request: {
      method,
      url,
      headers: { ...headers, Authorization: masked(headers.Authorization) },
      body,
    },
    response: "response" in outcome ? outcome.response : null,
    ...("failure" in outcome && { error: asError(outcome.failure) }),
    duration_ms: performance.now() - started,
    attempt,
  });
  return outcome;
}

/** Returns the header `Authorization` with only the prefix and the mode of the key. */
function masked(authorization: string | undefined): string {
  const [, start = ""] = /^Bearer ([A-Za-z0-9]+_(?:test|live)_)/.exec(authorization ?? "") ?? [];
  return `Bearer ${start}…`;
}

/** Calls the listener and ignores its errors. */
function report(listener: (exchange: Exchange) => void, exchange: Exchange): void {
  try {
    listener(exchange);
  } catch {
    // Otherwise a call would fail although the API has created its payment.
  }
}

function asError(failure: unknown): Error {
  return failure instanceof Error ? failure : new Error(String(failure));
}
