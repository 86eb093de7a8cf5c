/**
 * Strangers: requests whose key opens nothing are counted in this isolate's memory, so that guessing
 * keys costs the database little. They are counted for each network that they come from, and in all,
 * since an attacker can have many networks. The address is what the nearest proxy says: where a client
 * is that itself, only the bound in all holds.
 *
 * A key that was admitted here before passes whatever others do: callers are limited by their key, in
 * the database. Guarantees: in a window the database is asked about at most `MAX_REFUSED` and
 * `MAX_SPARE` keys that it refuses, and memory is bounded. A good key that is new here competes for
 * the spare asks during a flood; each network has one of them, so it takes many networks to use them up.
 */

import { networkOf } from "./address_network.ts";

/** Failures that a network may have in a window before it has to wait. */
const MAX_FAILURES = 100;
/** Well-formed keys of such a network that may still ask the database in a window. */
const MAX_UNKNOWN = 20;
/** Refused keys, and unknown ones under way, that an isolate asks the database about in a window. */
const MAX_REFUSED = 1_000;
/** Unknown keys that may ask beyond that, one of each network. */
const MAX_SPARE = 200;
/** Length of a window. */
const WINDOW_MS = 10_000;
/** Networks that are counted one by one in a window; those beyond it count in all only. */
const MAX_NETWORKS = 10_000;
/** Good keys that are remembered: those that were used last. */
const MAX_GOOD_KEYS = 10_000;

/** What the database said of a key; `unknown` when it was not asked, or did not answer. */
export type Verdict = "admitted" | "refused" | "unknown";

/** What a network has done in this window. */
interface Tally {
  failures: number;
  asked: number;
  has_spare: boolean;
}

/** Counts strangers. */
export class AddressLimit {
  readonly #networks = new Map<string, Tally>();
  readonly #good_keys = new Set<string>();
  #refused = 0;
  #under_way = 0;
  #spare = 0;
  #window = 0;

  /**
   * Lets a request pass or not. Whoever passes has to call what is returned once, with the verdict.
   * @param key_hash undefined when the text is no key
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
    // Also of an admitted one: it becomes the one that was used last.
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

  /** Null when there are too many networks to count one more. */
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

  /** Begins a new window. A request that began in an earlier one does not bring that back. */
  #turn(at_ms: number): void {
    const window = Math.floor(at_ms / WINDOW_MS);
    if (window <= this.#window) return;
    this.#window = window;
    this.#networks.clear();
    this.#refused = 0;
    this.#spare = 0;
  }
}
