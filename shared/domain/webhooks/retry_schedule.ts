/**
 * When a failed delivery is tried again (contract §4). Pure.
 */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Waits after the first, second, … attempt of a live delivery; each ± 20 %. */
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
/** Waits of a test delivery, exact: a developer is watching. */
export const TEST_DELAYS_MS: readonly number[] = [5 * SECOND, MINUTE, 10 * MINUTE];
/** By how much a live wait varies either way, so that receivers are not hit in step. */
const JITTER = 0.2;
/** A live endpoint that does nothing but fail for this long is turned off (contract §4). */
export const FAILING_LIMIT_MS = 5 * 24 * HOUR;

/** A failed attempt. */
interface FailedAttempt {
  livemode: boolean;
  /** 1 for the first. */
  number: number;
  at_ms: number;
  /** The receiver's `Retry-After`: seconds or an HTTP date. */
  retry_after?: string | undefined;
}

/**
 * When the next attempt is due, in milliseconds since 1970; null when there is none.
 * With a `Retry-After` it is never sooner than the schedule's wait, nor later than twice that.
 * @param random 0 up to 1
 */
export function nextAttemptAt(failed: FailedAttempt, random: number): number | null {
  const delays = failed.livemode ? LIVE_DELAYS_MS : TEST_DELAYS_MS;
  const base = delays[failed.number - 1];
  if (base === undefined) return null;
  const jittered = failed.livemode ? base * (1 + JITTER * (2 * random - 1)) : base;
  const asked = readRetryAfter(failed.retry_after, failed.at_ms);
  const wait = asked === null ? jittered : Math.min(Math.max(asked, jittered, base), 2 * base);
  return failed.at_ms + Math.round(wait);
}

/** A `Retry-After` as milliseconds from now (RFC 9110 §10.2.3); null when it is none. */
function readRetryAfter(text: string | undefined, at_ms: number): number | null {
  if (text === undefined) return null;
  if (/^\d{1,9}$/.test(text)) return Number(text) * SECOND;
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : Math.max(0, date - at_ms);
}
