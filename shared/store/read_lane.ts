/**
 * The read lane runs costly reads one at a time on a separate connection, so that no write waits
 * for one (ADR 0005).
 *
 * Tenants alternate, independent of their numbers of requests, keys and sandboxes. After a read of
 * duration t the lane pauses for a multiple of t, so that these reads use only a share of one
 * processor. If the queue of a tenant is full, the answer is 429, and if a request waits too long, it
 * is 503. Both have `Retry-After`.
 */

import { tryAgain } from "../core/errors.ts";
import { isUnavailable } from "../core/database_error.ts";

/** Limits of the lane. */
interface LaneLimits {
  /** Pause after a read, as a multiple of its duration. */
  rest_factor: number;
  /** Most waiting requests of one tenant. */
  waiting_of_tenant: number;
  /** Most waiting requests of all tenants. */
  waiting: number;
  /** Longest time that a request waits. */
  patience_ms: number;
}

/**
 * Reads use about a tenth of one processor. A page of 2 000 rows takes about 2 ms, so the lane
 * reads about 50 pages a second and serves 50 waiting requests within `patience_ms`. A 503 comes
 * within 2 s, as it does if the database is unavailable (promise R12).
 */
const LIMITS: LaneLimits = {
  rest_factor: 9,
  waiting_of_tenant: 50,
  waiting: 1_000,
  patience_ms: 2_000,
};
/**
 * Longest pause. The work of a page is bounded, so a read above 6 ms has waited for a lock or a
 * processor. That is no reason to delay other reads.
 */
export const REST_MAX_MS = 50;

interface Waiting {
  start: () => void;
  reject: (error: unknown) => void;
}

/** A queue for each tenant, and one read under way. */
export class ReadLane {
  readonly #limits: LaneLimits;
  /** By tenant, each in order of arrival; the first queue has the next turn. */
  readonly #queues = new Map<string, Waiting[]>();
  #waiting = 0;
  #is_busy = false;
  #rests_until = 0;
  /** Set only while a request waits for the end of a pause. */
  #rest: ReturnType<typeof setTimeout> | undefined;

  /** @param limits only tests pass others */
  constructor(limits: LaneLimits = LIMITS) {
    this.#limits = limits;
  }

  /**
   * Runs `read` when it is the tenant's turn. Throws the errors of `read`, `rate_limited` and
   * `service_unavailable`.
   * @param tenant that of the key, from the database, so that invalid keys have no queue
   */
  async run<T>(tenant: string, read: () => Promise<T>): Promise<T> {
    await this.#turn(tenant);
    const began = performance.now();
    try {
      return await read();
    } catch (error) {
      // The waiting requests would fail in the same way, one after another.
      if (isUnavailable(error)) this.#rejectAll(error);
      throw error;
    } finally {
      const ended = performance.now();
      const rest_ms = (ended - began) * this.#limits.rest_factor;
      this.#rests_until = ended + Math.min(rest_ms, REST_MAX_MS);
      this.#is_busy = false;
      this.#next();
    }
  }

  #turn(tenant: string): Promise<void> {
    const { waiting, waiting_of_tenant, patience_ms } = this.#limits;
    return new Promise((resolve, reject) => {
      const queue = this.#queues.get(tenant) ?? [];
      if (this.#waiting >= waiting || queue.length >= waiting_of_tenant) {
        return reject(tooMany("rate_limited"));
      }
      const entry: Waiting = {
        start: () => {
          clearTimeout(timer);
          resolve();
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      };
      const timer = setTimeout(() => this.#leave(tenant, entry), patience_ms);
      queue.push(entry);
      this.#queues.set(tenant, queue);
      this.#waiting++;
      this.#next();
    });
  }

  /** Starts the read of the tenant whose turn it is, now or after the pause. */
  #next(): void {
    if (this.#is_busy || this.#waiting === 0 || this.#rest !== undefined) return;
    const rest_ms = this.#rests_until - performance.now();
    if (rest_ms > 0) {
      this.#rest = setTimeout(() => {
        this.#rest = undefined;
        this.#next();
      }, rest_ms);
      return;
    }
    const [[tenant, queue]] = this.#queues as unknown as [[string, Waiting[]]];
    const entry = queue.shift()!;
    // Moves to the end, so that the next read belongs to another tenant.
    this.#queues.delete(tenant);
    if (queue.length > 0) this.#queues.set(tenant, queue);
    this.#waiting--;
    this.#is_busy = true;
    entry.start();
  }

  /** Rejects a request that has waited for `patience_ms`. */
  #leave(tenant: string, entry: Waiting): void {
    const queue = this.#queues.get(tenant)!;
    queue.splice(queue.indexOf(entry), 1);
    if (queue.length === 0) this.#queues.delete(tenant);
    this.#waiting--;
    entry.reject(tooMany("service_unavailable"));
    this.#stopResting();
  }

  #rejectAll(error: unknown): void {
    const all = [...this.#queues.values()].flat();
    this.#queues.clear();
    this.#waiting = 0;
    for (const entry of all) entry.reject(error);
    this.#stopResting();
  }

  /** Stops the timer if no request waits. */
  #stopResting(): void {
    if (this.#waiting > 0) return;
    clearTimeout(this.#rest);
    this.#rest = undefined;
  }
}

function tooMany(code: "rate_limited" | "service_unavailable") {
  return tryAgain(
    code,
    "Too many requests for filtered lists are waiting: try again",
  );
}
