/**
 * Work that costs more than a usual request, such as a list with a costly filter or a large body.
 * It runs one at a time, and accounts take turns, whatever their numbers of requests, keys and
 * sandboxes. After each the queue rests for a multiple of its duration, so such work uses only a
 * part of one processor, and one account cannot take it from the others.
 */

import { isUnavailable } from "../core/database_error.ts";
import { FairQueue } from "./fair_queue.ts";

export interface CostlyWorkBounds {
  /** Most requests of an account that wait. */
  waiting_of_owner: number;
  /** Longest wait. */
  patience_ms: number;
  /** Rest after each, as a multiple of its duration, and the longest rest. */
  rest_factor: number;
  rest_most_ms: number;
  /** The message of both refusals. */
  refusal: string;
}

export class CostlyWork {
  readonly #bounds: CostlyWorkBounds;
  readonly #queue: FairQueue;

  constructor(bounds: CostlyWorkBounds) {
    this.#bounds = bounds;
    this.#queue = new FairQueue({ ...bounds, slots: 1, levels: [1] });
  }

  /**
   * Does the work when it is the account's turn. Throws its errors, `rate_limited` and
   * `service_unavailable`.
   * @param account of a key that the database knows, so that invalid keys have no queue
   */
  async run<T>(account: string, work: () => T | Promise<T>): Promise<T> {
    const slot = await this.#queue.take([account]);
    const began = performance.now();
    try {
      return await work();
    } catch (error) {
      // The waiting requests would fail in the same way, one after another.
      if (isUnavailable(error)) this.#queue.cancelAll(error);
      throw error;
    } finally {
      const { rest_factor, rest_most_ms } = this.#bounds;
      slot.leave(Math.min(rest_factor * (performance.now() - began), rest_most_ms));
    }
  }
}
