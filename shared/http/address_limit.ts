/**
 * Limits requests without a valid key, so that guessing keys costs the database little. The isolate
 * counts them in memory, by network and in total, because an attacker can have many networks. The
 * nearest proxy supplies the address. Without a proxy a client can choose the address, and only the
 * total limit is effective.
 *
 * Only requests whose key this isolate does not know are counted here; the database limits the
 * others by their rate. Guarantees: in a window the database checks at most `MAX_REFUSED` plus
 * `MAX_SPARE` keys that it refuses, no network can use up the checks of the others, and memory is
 * bounded (ADR 0006).
 */

/** Failures of a network in a window, after which it must wait. */
const MAX_FAILURES = 100;
/** Well-formed keys of a waiting network that the database still checks in a window. */
const MAX_UNKNOWN = 20;
/** Most keys that the database refuses in a window, plus unknown keys under way. */
const MAX_REFUSED = 1_000;
/** Unknown keys that the database checks beyond `MAX_REFUSED`: in all, and of a network. */
const MAX_SPARE = 1_000;
const MAX_SPARE_OF_NETWORK = 5;
const WINDOW_MS = 10_000;
/** Networks with their own counts in a window. Further ones count only in the total. */
const MAX_NETWORKS = 10_000;

/** The database's decision on a key. `unknown`: the database did not check the key. */
export type Verdict = "admitted" | "refused" | "unknown";

/** Counts of one network in this window. */
interface Tally {
  failures: number;
  /** Unknown keys that the database checks at this time. */
  under_way: number;
  /** Checks beyond `MAX_FAILURES`, and beyond `MAX_REFUSED`. Admitted keys give theirs back. */
  beyond: number;
  spare: number;
}

/** Counts requests without a known key. */
export class AddressLimit {
  readonly #networks = new Map<string, Tally>();
  #refused = 0;
  #under_way = 0;
  #spare = 0;
  #window = 0;

  /** Reports whether a network must wait because of its failures. */
  isOver(network: string, at_ms: number): boolean {
    this.#turn(at_ms);
    return (this.#tallyOf(network)?.failures ?? 0) >= MAX_FAILURES;
  }

  /** Counts a failed request, which has not reached the database. */
  fail(network: string, at_ms: number): void {
    this.#turn(at_ms);
    const tally = this.#tallyOf(network);
    if (tally) tally.failures++;
  }

  /** Counts a key that the database has refused. */
  refuse(network: string, at_ms: number): void {
    this.fail(network, at_ms);
    this.#refused++;
  }

  /**
   * Decides whether the database checks an unknown key. Returns null if the network must wait.
   * Otherwise the caller calls the returned function once, with the decision of the database.
   */
  admit(network: string, at_ms: number): ((verdict: Verdict) => void) | null {
    this.#turn(at_ms);
    const tally = this.#tallyOf(network);
    const is_beyond = tally !== null && tally.failures + tally.under_way >= MAX_FAILURES;
    const is_spare = this.#refused + this.#under_way >= MAX_REFUSED;
    if (is_beyond && tally.beyond >= MAX_UNKNOWN) return null;
    if (is_spare && this.#spare >= MAX_SPARE) return null;
    if (is_spare && tally !== null && tally.spare >= MAX_SPARE_OF_NETWORK) return null;
    const count = (more: number) => {
      if (tally && is_beyond) tally.beyond += more;
      if (tally && is_spare) tally.spare += more;
      if (is_spare) this.#spare += more;
    };
    const underWay = (more: number) => {
      this.#under_way += more;
      if (tally) tally.under_way += more;
    };
    count(1);
    underWay(1);
    const window = this.#window;
    return (verdict) => {
      underWay(-1);
      // The counts of an earlier window are gone.
      if (verdict !== "refused" && window === this.#window) count(-1);
      if (verdict === "refused") this.refuse(network, at_ms);
    };
  }

  /** Returns the counts of a network, or null if there are too many networks. */
  #tallyOf(network: string): Tally | null {
    let tally = this.#networks.get(network);
    if (tally === undefined) {
      if (this.#networks.size >= MAX_NETWORKS) return null;
      tally = { failures: 0, under_way: 0, beyond: 0, spare: 0 };
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
