/**
 * Strangers: requests that fail to authenticate are counted per address in this isolate's memory, so
 * that guessing keys costs the database little. A key that has been good here before passes whatever
 * its neighbours behind the same proxy do: callers are limited by their key, in the database. The
 * address is what the nearest proxy says, so it means little where a client is that itself.
 */

/** Failures that an address may have in a window before it has to wait. */
const MAX_FAILURES = 100;
/** Well-formed keys of such an address that may still ask the database in a window. */
const MAX_UNKNOWN = 20;
/** Length of a window. */
const WINDOW_MS = 10_000;
/** Addresses and keys that are remembered; beyond it all are forgotten, which bounds memory. */
const MAX_REMEMBERED = 10_000;

/** Counts failures to authenticate. */
export class AddressLimit {
  readonly #failures = new Map<string, number>();
  readonly #unknown = new Map<string, number>();
  readonly #good_keys = new Set<string>();
  #window = 0;

  /**
   * Whether an address has failed too often for this key. One that has never been good here may still
   * be: a few such keys are let through to the database in each window.
   */
  isOver(address: string, key_hash: string | undefined, at_ms: number): boolean {
    this.#turn(at_ms);
    if ((this.#failures.get(address) ?? 0) < MAX_FAILURES) return false;
    if (key_hash === undefined) return true;
    if (this.#good_keys.has(key_hash)) return false;
    const asked = (this.#unknown.get(address) ?? 0) + 1;
    this.#unknown.set(address, asked);
    return asked > MAX_UNKNOWN;
  }

  /** Notes a request whose key opened nothing. */
  noteFailure(address: string, at_ms: number): void {
    this.#turn(at_ms);
    if (this.#failures.size >= MAX_REMEMBERED) this.#failures.clear();
    this.#failures.set(address, (this.#failures.get(address) ?? 0) + 1);
  }

  /** Notes a key that the database has admitted. It decides anew at every request. */
  noteSuccess(key_hash: string): void {
    if (this.#good_keys.size >= MAX_REMEMBERED) this.#good_keys.clear();
    this.#good_keys.add(key_hash);
  }

  #turn(at_ms: number): void {
    const window = Math.floor(at_ms / WINDOW_MS);
    if (window === this.#window) return;
    this.#window = window;
    this.#failures.clear();
    this.#unknown.clear();
  }
}
