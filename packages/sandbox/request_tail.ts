/**
 * The newest requests of a sandbox, each once. A request appears in the log after its response, but
 * at the place of its start, so a long one appears behind others that are known already. Each read
 * therefore goes back by the duration of the longest request.
 */

import type { List, LoggedRequest } from "../client/mod.ts";

/** Longer than a request of the log takes. Reads of an inbox take up to 20 s and are not in it. */
const OVERLAP_MS = 30_000;

/** Which requests were read before. */
export class RequestTail {
  readonly #read: () => List<LoggedRequest>;
  /** Times of the requests that were read, by their ids. */
  readonly #seen = new Map<string, number>();
  /** Requests that began before it are not new. */
  #horizon_ms = 0;

  /** @param read reads the log, newest first */
  constructor(read: () => List<LoggedRequest>) {
    this.#read = read;
  }

  /** Returns the newest requests, oldest first. The next read begins there. */
  async last(count: number): Promise<LoggedRequest[]> {
    const found: LoggedRequest[] = [];
    for await (const request of this.#read()) {
      const newest_ms = Date.parse((found[0] ?? request).created_at);
      const is_old = Date.parse(request.created_at) < newest_ms - OVERLAP_MS;
      if (is_old && found.length >= count) break;
      found.push(request);
    }
    this.#remember(found);
    return found.slice(0, count).reverse();
  }

  /**
   * Returns the requests that have appeared since the last read, oldest first. If it fails, the
   * next call returns them.
   */
  async next(): Promise<LoggedRequest[]> {
    const found: LoggedRequest[] = [];
    for await (const request of this.#read()) {
      if (Date.parse(request.created_at) < this.#horizon_ms) break;
      if (!this.#seen.has(request.id)) found.push(request);
    }
    this.#remember(found);
    return found.reverse();
  }

  #remember(requests: readonly LoggedRequest[]): void {
    for (const { id, created_at } of requests) {
      const at_ms = Date.parse(created_at);
      this.#seen.set(id, at_ms);
      this.#horizon_ms = Math.max(this.#horizon_ms, at_ms - OVERLAP_MS);
    }
    for (const [id, at_ms] of this.#seen) {
      if (at_ms < this.#horizon_ms) this.#seen.delete(id);
    }
  }
}
