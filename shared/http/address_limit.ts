/**
 * Limits requests without a valid key, so that guessing keys costs the database little. This
 * isolate counts them in memory, per network and in total, because an attacker can have many
 * networks. The nearest proxy names the address. Without a proxy a client can choose it, and only
 * the total holds.
 *
 * A key that was admitted here before always passes: the database limits callers by their key.
 * Guarantees: in a window the database checks at most `MAX_REFUSED` plus `MAX_SPARE` keys that it
 * refuses, and memory is bounded. In a flood a valid key that is new here needs one of the spare
 * checks. Each network has one, so only many networks can use them up (ADR 0011).
 */

import { networkOf } from "./address_network.ts";

/** Failures that a network may have in a window before it has to wait. */
const MAX_FAILURES = 100;
/** Well-formed keys of such a network that the database still checks in a window. */
const MAX_UNKNOWN = 20;
/** Keys that the database has refused in a window, plus unknown keys under way. */
const MAX_REFUSED = 1_000;
/** Unknown keys that the database checks beyond that, one for each network. */
const MAX_SPARE = 200;
/** Length of a window. */
const WINDOW_MS = 10_000;
/** Networks that are counted one by one in a window; further ones count only in the total. */
const MAX_NETWORKS = 10_000;
/** Valid keys that are remembered: the ones used last. */
const MAX_GOOD_KEYS = 10_000;

/** The database's decision on a key; `unknown`: it was not asked, or did not answer. */
export type Verdict = "admitted" | "refused" | "unknown";

/** Counts of one network in this window. */
interface Tally {
  failures: number;
  asked: number;
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
   * Decides whether a request passes; null: it does not. The caller calls the returned function
   * once, with the verdict.
   * @param key_hash undefined if the text is not a key
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
    } else if (is_over && tally.asked++ >= MAX_UNKNOWN) {
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
    // An admitted key moves to the end: it is the one used last.
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

  /** The counts of an address's network; null if there are too many networks. */
  #tallyOf(address: string): Tally | null {
    const network = networkOf(address);
    let tally = this.#networks.get(network);
    if (tally === undefined) {
      if (this.#networks.size >= MAX_NETWORKS) return null;
      tally = { failures: 0, asked: 0, has_spare: false };
      this.#networks.set(network, tally);
    }
    return tally;
  }

  /** Begins a new window. A request that began in an earlier window does not restore that one. */
  #turn(at_ms: number): void {
    const window = Math.floor(at_ms / WINDOW_MS);
    if (window <= this.#window) return;
    this.#window = window;
    this.#networks.clear();
    this.#refused = 0;
    this.#spare = 0;
  }
}
