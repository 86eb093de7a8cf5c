/**
 * Repeats a decision while others change the same resource: load, decide, commit, and again if the
 * commit is stale.
 */

import { databaseUnavailable } from "../../store/database.ts";

/**
 * Most decisions. With two isolates that change the same resource, every second decision is stale.
 * With a limit of 10, some of 2 600 refunds that raced on two isolates failed.
 */
const MAX_DECISIONS = 20;
/** Longest pause before the second decision. It doubles with each further one, up to `last`. */
const PAUSE_MS = { first: 2, last: 64 };

/**
 * Returns the first result that is not null. Throws `service_unavailable` after `MAX_DECISIONS`;
 * then nothing was written.
 * @param decide null: the state has changed since it was loaded. Gets the number of the decision,
 *   from 0
 */
export async function retryOnStale<T>(decide: (n: number) => Promise<T | null>): Promise<T> {
  for (let n = 0; n < MAX_DECISIONS; n++) {
    if (n > 0) await pauseAtRandom(Math.min(PAUSE_MS.first * 2 ** (n - 1), PAUSE_MS.last));
    const result = await decide(n);
    if (result !== null) return result;
  }
  throw databaseUnavailable();
}

/** Waits for a random time, so that competing isolates do not collide again. */
function pauseAtRandom(longest_ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * longest_ms));
}
