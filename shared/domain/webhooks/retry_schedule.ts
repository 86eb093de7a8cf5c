/** The retry schedule of deliveries (contract §4). Pure. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Waits after the first, second, … failed attempt of a live delivery, each ± 20 %. */
export const LIVE_DELAYS_MS: readonly number[] = [
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
];
/** Waits after the failed attempts of a test delivery. They have no jitter, for developers. */
export const TEST_DELAYS_MS: readonly number[] = [5 * SECOND, MINUTE, 10 * MINUTE];
/** Random variation of a live wait in both directions, which spreads the retries. */
const JITTER = 0.2;
/** The service disables a live endpoint that only fails for this long (contract §4). */
export const FAILING_LIMIT_MS = 5 * 24 * HOUR;

interface FailedAttempt {
  livemode: boolean;
  /** Number of the attempt, from 1. */
  number: number;
  at_ms: number;
  /** The receiver's `Retry-After`: seconds or an HTTP date. */
  retry_after?: string | undefined;
}

/**
 * Returns the time of the next attempt in milliseconds since 1970, or null if there is none.
 * `Retry-After` can make the wait longer, up to twice the wait of the schedule.
 * @param random at least 0 and less than 1
 */
export function nextAttemptAt(failed: FailedAttempt, random: number): number | null {
  const delays = failed.livemode ? LIVE_DELAYS_MS : TEST_DELAYS_MS;
  const base = delays[failed.number - 1];
  if (base === undefined) return null;
  const jittered = failed.livemode ? base * (1 + JITTER * (2 * random - 1)) : base;
  const requested = readRetryAfter(failed.retry_after, failed.at_ms);
  const wait = requested === null
    ? jittered
    : Math.min(Math.max(requested, jittered, base), 2 * base);
  return failed.at_ms + Math.round(wait);
}

/** Parses `Retry-After` to milliseconds from now (RFC 9110 §10.2.3), or null if it is invalid. */
function readRetryAfter(text: string | undefined, at_ms: number): number | null {
  if (text === undefined) return null;
  if (/^\d{1,9}$/.test(text)) return Number(text) * SECOND;
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : Math.max(0, date - at_ms);
}
