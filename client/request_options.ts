/**
 * What a call can be given beside what the API takes, and its limits.
 */

/** How often a request is sent again unless said otherwise. */
export const DEFAULT_MAX_RETRIES = 2;
/** How long one attempt may take unless said otherwise. */
export const DEFAULT_TIMEOUT_MS = 30_000;

/** The longest that timers count to: a longer one would end at once. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Options of a call that changes something. */
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

/** Throws `TypeError` for a text that no key may be (contract §5). */
export function checkedIdempotencyKey(key: string): string {
  if (typeof key === "string" && /^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new TypeError("idempotencyKey is not a text of 1 to 255 visible ASCII characters");
}
