/**
 * The session: one test key and the address it is sent to. The key lives in this module's memory
 * and nowhere else; a reload forgets it (security §2, browser).
 */

import { signal } from "@preact/signals";

/** What a page needs to call the API. */
interface Session {
  api_key: string;
  /** `{base_url}` of the API, absolute. */
  base_url: string;
}

/** The session, or null while nobody has pasted a key. */
export const session = signal<Session | null>(null);
/** Why the last session ended, when the API ended it. */
export const session_end = signal<unknown>(null);

/** What is wrong with a pasted key, as far as its text shows it. */
export type KeyVerdict = "test" | "live" | "malformed";

/** Prefix, mode, 43 characters of secret and 6 of checksum (contract §5). */
const TEST_KEY = /^[a-z][a-z0-9]{0,15}_test_[0-9A-Za-z]{49}$/;

/** Judges a pasted text before anything is sent: a live key must never leave the page. */
export function judgeKey(text: string): KeyVerdict {
  if (TEST_KEY.test(text)) return "test";
  return /_live_/i.test(text) ? "live" : "malformed";
}

/** Ends the session and forgets the key; `reason` is what the API answered, if it was its doing. */
export function endSession(reason: unknown = null): void {
  session_end.value = reason;
  session.value = null;
}

/** The key as it may stand on the screen: `sk_test_…Ab12`. */
export function maskedKey(api_key: string): string {
  return `${api_key.slice(0, api_key.indexOf("_test_") + 6)}…${api_key.slice(-4)}`;
}
