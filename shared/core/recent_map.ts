/**
 * A map of bounded size. When it is full, the entry goes that was used longest ago, so whoever adds
 * many entries displaces the idle ones first.
 */

/** Entries by key, in the order of their last use. */
export class RecentMap<Key, Value> {
  readonly #most: number;
  readonly #entries = new Map<Key, Value>();
  /** The key that was used last, which is at its place. */
  #last: Key | undefined;

  /** @param most entries */
  constructor(most: number) {
    this.#most = most;
  }

  /** Returns the value of a key, which counts as a use, or undefined. */
  get(key: Key): Value | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined && key !== this.#last) this.#use(key, value);
    return value;
  }

  /** Stores the value of a key, which counts as a use. */
  set(key: Key, value: Value): void {
    this.#use(key, value);
    if (this.#entries.size <= this.#most) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }

  delete(key: Key): void {
    this.#entries.delete(key);
  }

  #use(key: Key, value: Value): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    this.#last = key;
  }
}
