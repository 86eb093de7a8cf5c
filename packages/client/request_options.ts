/** Options of a single call, with their defaults and limits. */

import { checkedOptions } from "./checked_object.ts";
import type { RequestFault } from "./resources.ts";

/** Default of `maxRetries`. */
export const DEFAULT_MAX_RETRIES = 2;
/** Default of `timeoutMs`. */
export const DEFAULT_TIMEOUT_MS = 30_000;

/** Maximum delay of `setTimeout`. A longer one would end at once. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Options of a call that changes something. */
export interface RequestOptions {
  /**
   * 1 to 255 visible ASCII characters. By default a new UUID for each call. If you pass a key that
   * you have stored with the order, a repeated call after a crash of your process is safe too.
   */
  idempotencyKey?: string | undefined;
  /** Cancels the call, also between attempts. The promise rejects with the reason of the signal. */
  signal?: AbortSignal | undefined;
  /** Timeout of one attempt in milliseconds. By default that of the client. */
  timeoutMs?: number | undefined;
  /** Maximum of retries. By default that of the client. */
  maxRetries?: number | undefined;
  /**
   * The first attempt fails in this way, in the sandbox (contract §7). Retries have no fault, so
   * the call shows what a program sees after such a failure.
   */
  sandboxFault?: SandboxFault | undefined;
}

/** The names of the options of a call that changes nothing. */
export const READ_OPTIONS: readonly (keyof ReadOptions)[] = [
  "signal",
  "timeoutMs",
  "maxRetries",
  "sandboxFault",
];
/** The names of the options of a call that changes something. */
export const REQUEST_OPTIONS: readonly (keyof RequestOptions)[] = [
  "idempotencyKey",
  ...READ_OPTIONS,
];

/** A fault of one request in the sandbox; `delay_ms` delays the response by 1 to 10 000 ms. */
export type SandboxFault = Exclude<RequestFault, "delay"> | { delay_ms: number };

/** Options of a call that changes nothing. */
export type ReadOptions = Omit<RequestOptions, "idempotencyKey">;

/** Time in milliseconds for the response itself, after a wait at the server. */
const RESPONSE_MS = 30_000;

/** Returns the timeout of a read that waits at the server for some seconds. */
export function timeoutOfWait(wait = 0): number {
  return wait * 1000 + RESPONSE_MS;
}

/** Returns the number, or throws a `TypeError` if it is not a count. */
export function checkedRetries(maxRetries: number): number {
  if (Number.isInteger(maxRetries) && maxRetries >= 0) return maxRetries;
  throw new TypeError(`maxRetries is ${maxRetries}, but must be a whole number of 0 or more`);
}

/** Returns the timeout, or throws a `TypeError` if a timer cannot have it. */
export function checkedTimeout(timeoutMs: number): number {
  if (timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS) return timeoutMs;
  throw new TypeError(
    `timeoutMs is ${timeoutMs}, but must be more than 0 and at most ${MAX_TIMEOUT_MS}`,
  );
}

/** Returns the value of the header `Sandbox-Fault`. */
export function faultHeader(fault: SandboxFault): string {
  if (typeof fault === "string") return fault;
  return `delay; delay_ms=${checkedOptions(fault, ["delay_ms"]).delay_ms}`;
}

/** Returns the key, or throws a `TypeError` if the API would refuse it (contract §5). */
export function checkedIdempotencyKey(key: string): string {
  if (typeof key === "string" && /^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new TypeError("idempotencyKey must be a string of 1 to 255 visible ASCII characters");
}
