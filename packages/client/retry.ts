/**
 * Decides whether the client retries a request, and after which delay. The functions are pure: time
 * and randomness are arguments.
 *
 * A retry is always safe, because every change has an idempotency key and the service rolls back a
 * request to which it responds with 5xx. So the only question is whether a retry can succeed.
 * Source: contract §5 and §6.
 */

/** The first delay before jitter. It doubles with each attempt. */
export const BASE_DELAY_MS = 500;
/** The maximum delay without `Retry-After`. */
export const MAX_DELAY_MS = 8_000;
/** The maximum of `Retry-After`. If it is longer, the client throws the error at once. */
export const MAX_RETRY_AFTER_MS = 60_000;

/** The parts of a response that decide. */
export interface RetryFacts {
  /** HTTP status. */
  status: number;
  /** Code of the error, if the body has one. */
  code: string | undefined;
}

/** Whether a retry of the request can succeed. */
export function isTransient({ status, code }: RetryFacts): boolean {
  if (code === "idempotency_in_progress") return true;
  // Only the operator can change this.
  if (code === "provider_not_configured") return false;
  return status === 408 || status === 429 || status >= 500;
}

/**
 * Returns the delay before the next attempt in milliseconds, or null if the client must not retry.
 * The delay doubles with each attempt and is random between a half and the whole of that. It is
 * never shorter than `Retry-After`.
 *
 * @param attempt number of attempts so far, 1 or more
 * @param retryAfterMs the header `Retry-After`
 * @param random a random number, 0 or more and less than 1
 */
export function retryDelayMs(
  attempt: number,
  retryAfterMs: number | undefined,
  random: number,
): number | null {
  const backoff = Math.min(BASE_DELAY_MS * 2 ** (attempt - 1), MAX_DELAY_MS);
  const jittered = backoff / 2 + random * backoff / 2;
  if (retryAfterMs === undefined) return jittered;
  if (retryAfterMs > MAX_RETRY_AFTER_MS) return null;
  // The random part spreads clients that got the same `Retry-After` at the same time.
  return Math.max(jittered, retryAfterMs + random * BASE_DELAY_MS);
}

/**
 * Parses a `Retry-After`, which is a number of seconds or an HTTP date (RFC 9110 §10.2.3).
 * @returns milliseconds from now, or undefined if the header is missing or malformed
 */
export function parseRetryAfter(value: string | null, now_ms: number): number | undefined {
  if (value === null) return undefined;
  const text = value.trim();
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  // Date.parse alone would accept "-1" and "1.5" as dates.
  if (!/^[A-Z][a-z]+, .* GMT$/.test(text)) return undefined;
  const at_ms = Date.parse(text);
  return Number.isNaN(at_ms) ? undefined : Math.max(0, at_ms - now_ms);
}
