/**
 * The retries of a request. It is decided again if another request has changed its resource, if the
 * settings of its sandbox are outdated, during a reset, or while its duplicate is under way. All of
 * these share one budget, so that no cause multiplies another. The record of a provider's result
 * and a command of the operator have a budget of their own.
 */

import { serviceUnavailable } from "../core/errors.ts";

/**
 * With two isolates that change the same resource, every second decision is stale. With 10 retries,
 * some of 2 600 refunds that raced on two isolates failed. A request waits 3 s for a duplicate
 * (contract §5) or a reset: `within_ms` is the time from the first retry to the last one.
 */
const BOUNDS = { retries: 100, within_ms: 3_000 };
/** Longest pause before the first retry. It doubles with each further one, up to `last`. */
const PAUSE_MS = { first: 2, last: 64 };

export class Retries {
  readonly #bounds: typeof BOUNDS;
  #made = 0;
  #until_ms: number | null = null;

  constructor(bounds = BOUNDS) {
    this.#bounds = bounds;
  }

  /**
   * Waits before a retry. Throws an error of `usedUp` in place of one beyond the bounds.
   * @param since_ms the time of `performance.now` from which the first retry counts
   */
  async again(
    usedUp: () => Error = serviceUnavailable,
    since_ms = performance.now(),
  ): Promise<void> {
    const { retries, within_ms } = this.#bounds;
    this.#until_ms ??= since_ms + within_ms;
    if (this.#made === retries || performance.now() >= this.#until_ms) throw usedUp();
    const longest_ms = Math.min(PAUSE_MS.first * 2 ** this.#made++, PAUSE_MS.last);
    // Random, so that competing isolates do not collide again.
    const pause_ms = longest_ms * (1 + Math.random()) / 2;
    await new Promise((resolve) => setTimeout(resolve, pause_ms));
  }

  /**
   * Returns the first result that is not null. Throws `service_unavailable` when the retries are
   * used up; then nothing was written.
   * @param decide null: the state has changed since it was loaded. Gets the number of the decision,
   *   from 0
   */
  async untilDecided<T>(decide: (n: number) => Promise<T | null>): Promise<T> {
    for (let n = 0;; n++) {
      const result = await decide(n);
      if (result !== null) return result;
      await this.again();
    }
  }

  /** Starts the time again, after a wait that the client has asked for. */
  restart(): void {
    this.#until_ms = null;
  }
}
