/**
 * When a request is sent again, and after how long. Pure; time and chance are arguments.
 *
 * Every request that changes something carries an idempotency key, and the service rolls back what
 * it answers with 5xx: so sending again is always safe. What is decided here is whether it can help.
 * Source: contract §5 and §6.
 */

/** The first wait, before jitter; it doubles with each attempt. */
export const BASE_DELAY_MS = 500;
/** The longest wait that is chosen here. */
export const MAX_DELAY_MS = 8_000;
/** The longest wait that a server is obeyed in; if it asks for more, the error is thrown at once. */
export const MAX_RETRY_AFTER_MS = 60_000;

/** An answer, as far as it matters here. */
export interface RetryFacts {
  /** HTTP status. */
  status: number;
  /** Code of the error, if the body has one. */
  code: string | undefined;
}

/** Whether the same request may be answered otherwise in a while. */
export function isTransient({ status, code }: RetryFacts): boolean {
  if (code === "idempotency_in_progress") return true;
  // Permanent until an operator acts.
  if (code === "provider_not_configured") return false;
  return status === 408 || status === 429 || status >= 500;
}

/**
 * How long to wait before the next attempt, in milliseconds; null: not worth waiting for.
 * Exponential, the upper half of each wait by chance; a server's wish is never undercut.
 *
 * @param attempt how often the request was sent, 1 or more
 * @param retryAfterMs what the server asked for
 * @param random 0 to below 1
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
  // Those who were told the same time do not come back at the same instant.
  return Math.max(jittered, retryAfterMs + random * BASE_DELAY_MS);
}

/** A `Retry-After` in milliseconds: seconds or an HTTP date (RFC 9110 §10.2.3). */
export function parseRetryAfter(value: string | null, now_ms: number): number | undefined {
  if (value === null) return undefined;
  const text = value.trim();
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  // Not every text that Date.parse takes: "-1" and "1.5" would be dates.
  if (!/^[A-Z][a-z]+, .* GMT$/.test(text)) return undefined;
  const at_ms = Date.parse(text);
  return Number.isNaN(at_ms) ? undefined : Math.max(0, at_ms - now_ms);
}
