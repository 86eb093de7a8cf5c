/**
 * How long a sandbox may add pending deliveries without a new count of them (contract §5). The
 * statement that many requests share never counts them. Each isolate knows its own counts.
 */

import { RecentMap } from "../core/recent_map.ts";

/** Most keys in the cache. */
const KEYS_MAX = 10_000;
/** Deliveries that a sandbox adds in a millisecond: a count comes before they use up its quota. */
const ADDED_PER_MS = 4;

/** The keys of sandboxes that may have more pending deliveries. */
export class PendingQuota {
  /** By the hash of a key, the time of `performance.now` up to which it needs no count. */
  readonly #until_ms = new RecentMap<string, number>(KEYS_MAX);

  /** Reports whether requests with this key may add deliveries without a new count. */
  has(key_hash: string): boolean {
    return performance.now() < (this.#until_ms.get(key_hash) ?? 0);
  }

  /** Stores the quota that a count has found. */
  note(key_hash: string, quota: number): void {
    this.#until_ms.set(key_hash, performance.now() + quota / ADDED_PER_MS);
  }
}
