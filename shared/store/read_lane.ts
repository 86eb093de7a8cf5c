/**
 * The lane of the reads that are not cheap: one at a time, over a connection of their own, so that no
 * write waits behind one (ADR 0029).
 *
 * Tenants take turns, however many requests and keys each has. After a read that took a time t the
 * lane rests for a multiple of t: the reads of one isolate cannot take more than a share of one
 * processor, and less of it while the database is busy. A request that finds its queue full, or that
 * waits too long, is answered with 503 and `Retry-After`.
 */

import { tryAgain } from "../core/errors.ts";
import { isAway } from "./database.ts";

/** How the lane is paced. */
export interface LaneLimits {
  /** The lane rests for so many times as long as a read took. */
  rest_factor: number;
  /** Requests of one tenant that may wait. */
  waiting_of_tenant: number;
  /** Requests of all tenants that may wait: their bodies are small, their clients are not. */
  waiting: number;
  /** Longest time that a request waits. */
  patience_ms: number;
}

/**
 * Reads take a tenth of one processor at most. A page reads 2 000 rows in about 2 ms, so that the lane
 * makes some 50 pages a second, and 50 that wait are answered within `patience_ms`.
 * A 503 comes as soon as that of a database that is away (promise R12).
 */
const LIMITS: LaneLimits = {
  rest_factor: 9,
  waiting_of_tenant: 50,
  waiting: 1_000,
  patience_ms: 2_000,
};
/**
 * Longest rest. The work of a page is bounded: one that takes longer than 6 ms has waited, for a lock
 * or for a processor, and that is no reason to keep the others out.
 */
export const REST_MAX_MS = 50;

interface Waiting {
  start: () => void;
  reject: (error: unknown) => void;
}

/** A queue for each tenant, and one read under way. */
export class ReadLane {
  readonly #limits: LaneLimits;
  /** By tenant, each in order of arrival; the first in line is the next. */
  readonly #queues = new Map<string, Waiting[]>();
  #waiting = 0;
  #is_busy = false;
  #rests_until = 0;
  /** Set only while somebody waits for the end of a rest. */
  #rest: ReturnType<typeof setTimeout> | undefined;

  /** @param limits others only in tests */
  constructor(limits: LaneLimits = LIMITS) {
    this.#limits = limits;
  }

  /**
   * Reads once it is the tenant's turn. Throws what `read` throws, and `service_unavailable`.
   * @param tenant the environment that the database has named for the key: whoever has no key that
   *   opens one must not wait here, where he would take the places of others
   */
  async run<T>(tenant: string, read: () => Promise<T>): Promise<T> {
    await this.#turn(tenant);
    const began = performance.now();
    try {
      return await read();
    } catch (error) {
      // The database is away: those that wait would find the same, one after another.
      if (isAway(error)) this.#rejectAll(error);
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
      if (this.#waiting >= waiting || queue.length >= waiting_of_tenant) return reject(tooMany());
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

  /** Starts the read of the tenant whose turn it is, now or when the rest is over. */
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
    // Last in line, so that the next read is another tenant's.
    this.#queues.delete(tenant);
    if (queue.length > 0) this.#queues.set(tenant, queue);
    this.#waiting--;
    this.#is_busy = true;
    entry.start();
  }

  /** The patience of a request has ended. */
  #leave(tenant: string, entry: Waiting): void {
    const queue = this.#queues.get(tenant)!;
    queue.splice(queue.indexOf(entry), 1);
    if (queue.length === 0) this.#queues.delete(tenant);
    this.#waiting--;
    entry.reject(tooMany());
    this.#stopResting();
  }

  #rejectAll(error: unknown): void {
    const all = [...this.#queues.values()].flat();
    this.#queues.clear();
    this.#waiting = 0;
    for (const entry of all) entry.reject(error);
    this.#stopResting();
  }

  /** No timer runs for nobody. */
  #stopResting(): void {
    if (this.#waiting > 0) return;
    clearTimeout(this.#rest);
    this.#rest = undefined;
  }
}

function tooMany() {
  return tryAgain(
    "service_unavailable",
    "Too many reads of this kind are waiting: try again",
  );
}
