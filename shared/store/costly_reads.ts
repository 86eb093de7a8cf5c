/**
 * Costly reads run one at a time on a separate connection, so that no write waits for one (ADR
 * 0005). Tenants take turns, whatever their numbers of requests, keys and sandboxes. After a read
 * the queue rests for a multiple of its duration, so that these reads use only a part of one
 * processor.
 */

import { isUnavailable } from "../core/database_error.ts";
import { FairQueue } from "../jobs/fair_queue.ts";

/**
 * A page of 2 000 rows takes about 2 ms. With the rest after each, reads use about a tenth of one
 * processor, and about 50 a second serve the 50 waiting requests of a tenant within `patience_ms`. A
 * 503 comes within 2 s, as it does if the database is unavailable (promise R12).
 */
const BOUNDS = {
  slots: 1,
  levels: [1],
  waiting_of_owner: 50,
  waiting: 1_000,
  patience_ms: 2_000,
  refusal: "Too many requests for filtered lists are waiting: try again",
};
/** Rest after a read, as a multiple of its duration. */
const REST_FACTOR = 9;
/**
 * Longest rest. The work of a page is bounded, so a read above 6 ms has waited for a lock or a
 * processor. That is no reason to delay other reads.
 */
const REST_MAX_MS = 50;

/** The costly reads of one database. */
export class CostlyReads {
  readonly #queue = new FairQueue(BOUNDS);

  /**
   * Runs `read` when it is the tenant's turn. Throws the errors of `read`, `rate_limited` and
   * `service_unavailable`.
   * @param tenant that of the key, from the database, so that invalid keys have no queue
   */
  async run<T>(tenant: string, read: () => Promise<T>): Promise<T> {
    const slot = await this.#queue.take([tenant]);
    const began = performance.now();
    try {
      return await read();
    } catch (error) {
      // The waiting requests would fail in the same way, one after another.
      if (isUnavailable(error)) this.#queue.cancelAll(error);
      throw error;
    } finally {
      slot.leave(Math.min(REST_FACTOR * (performance.now() - began), REST_MAX_MS));
    }
  }
}
