/**
 * One attempt of a request over the wire: sent, read to its end, timed, reported.
 */

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

/** How an attempt is made. */
export interface ExchangeOptions {
  fetch: Fetch;
  /** From sending to the end of the answer. */
  timeoutMs: number;
  signal: AbortSignal | undefined;
  onExchange: ((exchange: Exchange) => void) | undefined;
  /** 1 for the first. */
  attempt: number;
}

/** What came back, or why nothing did. */
export type Outcome =
  | { answer: NonNullable<Exchange["response"]> }
  | { failure: unknown; timed_out: boolean };

/** Makes one attempt. Never rejects: a failure is an outcome. */
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
    request: {
      method,
      url,
      headers: { ...headers, Authorization: masked(headers.Authorization) },
      body,
    },
    response: "answer" in outcome ? outcome.answer : null,
    ...("failure" in outcome && { error: asError(outcome.failure) }),
    duration_ms: performance.now() - started,
    attempt,
  });
  return outcome;
}

/** An `Authorization` that says no more than the key's mode. */
function masked(authorization: string | undefined): string {
  const [, start = ""] = /^Bearer ([A-Za-z0-9]+_(?:test|live)_)/.exec(authorization ?? "") ?? [];
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
