/**
 * Limits requests without a valid key, so that guessing keys costs the database little. The isolate
 * counts them in memory, by network and in total, because an attacker can have many networks. The
 * nearest proxy supplies the address. Without a proxy a client can choose the address, and only the
 * total limit is effective.
 *
 * A key that this isolate has admitted before always passes; the database limits it by its rate.
 * Guarantees: in a window the database checks at most `MAX_REFUSED` plus `MAX_SPARE` keys that it
 * refuses, and memory is bounded. During an attack a valid key that is new to the isolate needs one
 * of the spare checks. Each network has one, so only many networks can use them up (ADR 0008).
 */

import { networkOf } from "./address_network.ts";

/** Failures of a network in a window, after which it must wait. */
const MAX_FAILURES = 100;
/** Well-formed keys of a waiting network that the database still checks in a window. */
const MAX_UNKNOWN = 20;
/** Most keys that the database refuses in a window, plus unknown keys under way. */
const MAX_REFUSED = 1_000;
/** Unknown keys that the database checks beyond `MAX_REFUSED`, one for each network. */
const MAX_SPARE = 200;
/** Length of a window. */
const WINDOW_MS = 10_000;
/** Networks with their own counts in a window. Further ones count only in the total. */
const MAX_NETWORKS = 10_000;
/** Valid keys in memory: the ones that were used last. */
const MAX_GOOD_KEYS = 10_000;

/** The database's decision on a key. `unknown`: the database did not check the key. */
export type Verdict = "admitted" | "refused" | "unknown";

/** Counts of one network in this window. */
interface Tally {
  failures: number;
  requested: number;
  has_spare: boolean;
}

/** Counts requests without a valid key. */
export class AddressLimit {
  readonly #networks = new Map<string, Tally>();
  readonly #good_keys = new Set<string>();
  #refused = 0;
  #under_way = 0;
  #spare = 0;
  #window = 0;

  /**
   * Decides whether a request passes. Returns null if it must wait. Otherwise the caller calls the
   * returned function once, with the decision of the database.
   * @param key_hash undefined if the header has no well-formed key
   */
  admit(
    address: string,
    key_hash: string | undefined,
    at_ms: number,
  ): ((verdict: Verdict) => void) | null {
    this.#turn(at_ms);
    if (key_hash !== undefined && this.#good_keys.has(key_hash)) {
      return (verdict) => this.#settle(address, key_hash, at_ms, verdict);
    }
    const tally = this.#tallyOf(address);
    const is_over = tally !== null && tally.failures >= MAX_FAILURES;
    if (key_hash === undefined) {
      return is_over ? null : () => {
        if (tally) tally.failures++;
      };
    }
    if (this.#refused + this.#under_way >= MAX_REFUSED) {
      if (this.#spare >= MAX_SPARE || tally?.has_spare) return null;
      this.#spare++;
      if (tally) tally.has_spare = true;
    } else if (is_over && tally.requested++ >= MAX_UNKNOWN) {
      return null;
    }
    this.#under_way++;
    return (verdict) => {
      this.#under_way--;
      this.#settle(address, key_hash, at_ms, verdict);
    };
  }

  #settle(address: string, key_hash: string, at_ms: number, verdict: Verdict): void {
    if (verdict === "unknown") return;
    // An admitted key moves to the end, because it was used last.
    this.#good_keys.delete(key_hash);
    if (verdict === "admitted") {
      if (this.#good_keys.size >= MAX_GOOD_KEYS) {
        for (const oldest of this.#good_keys) {
          this.#good_keys.delete(oldest);
          break;
        }
      }
      this.#good_keys.add(key_hash);
      return;
    }
    this.#turn(at_ms);
    this.#refused++;
    const tally = this.#tallyOf(address);
    if (tally) tally.failures++;
  }

  /** Returns the counts of an address's network, or null if there are too many networks. */
  #tallyOf(address: string): Tally | null {
    const network = networkOf(address);
    let tally = this.#networks.get(network);
    if (tally === undefined) {
      if (this.#networks.size >= MAX_NETWORKS) return null;
      tally = { failures: 0, requested: 0, has_spare: false };
      this.#networks.set(network, tally);
    }
    return tally;
  }

  /** Begins a new window if it is time. Requests of an earlier window do not bring it back. */
  #turn(at_ms: number): void {
    const window = Math.floor(at_ms / WINDOW_MS);
    if (window <= this.#window) return;
    this.#window = window;
    this.#networks.clear();
    this.#refused = 0;
    this.#spare = 0;
  }
}
