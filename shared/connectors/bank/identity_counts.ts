/**
 * Counts equal hashes in about 10 bytes each, because a file can have millions of entries: a Map
 * would need ten times as much. The hashes are spread over tables that grow one by one, so that
 * growing needs little memory beside them.
 */

/** Digits of a hash that choose its table: 256 tables. */
const TABLE_DIGITS = 2;
/** Digits that are its key in the table: 48 bits. */
const KEY_DIGITS = 12;
const FIRST_SLOTS = 16;
/** The largest share of a table that is filled, and its growth beyond. */
const FULL = 0.85;
const GROWTH = 1.5;
/** A slot counts up to this number. */
const SLOT_COUNT_MAX = 255;

export class Counts {
  readonly #tables = new Map<string, Table>();
  /** Counts that are too large for their slot. */
  readonly #large = new Map<string, number>();

  /** Returns how often this hash has been added, with this time. */
  add(hash: string): number {
    const number = hash.slice(0, TABLE_DIGITS);
    const table = this.#tables.get(number) ?? new Table();
    this.#tables.set(number, table);
    const key = hash.slice(0, TABLE_DIGITS + KEY_DIGITS);
    const count = table.add(parseInt(key.slice(TABLE_DIGITS), 16));
    if (count < SLOT_COUNT_MAX) return count;
    const large = (this.#large.get(key) ?? SLOT_COUNT_MAX - 1) + 1;
    this.#large.set(key, large);
    return large;
  }
}

/** A hash table of 48-bit keys with their counts, by open addressing. */
class Table {
  #low = new Uint32Array(FIRST_SLOTS);
  #high = new Uint16Array(FIRST_SLOTS);
  /** 0 is an empty slot. */
  #counts = new Uint8Array(FIRST_SLOTS);
  #used = 0;

  /** Counts a key. Returns its count, at most `SLOT_COUNT_MAX`. */
  add(key: number): number {
    const slot = this.#slotOf(key);
    if (this.#counts[slot] === 0) {
      this.#fill(slot, key, 1);
      if (++this.#used > this.#counts.length * FULL) this.#grow();
      return 1;
    }
    return this.#counts[slot] = Math.min(this.#counts[slot]! + 1, SLOT_COUNT_MAX);
  }

  #slotOf(key: number): number {
    const { length } = this.#counts;
    const [low, high] = [key >>> 0, Math.floor(key / 2 ** 32)];
    let slot = key % length;
    while (this.#counts[slot] !== 0 && (this.#low[slot] !== low || this.#high[slot] !== high)) {
      slot = (slot + 1) % length;
    }
    return slot;
  }

  #fill(slot: number, key: number, count: number): void {
    this.#low[slot] = key;
    this.#high[slot] = key / 2 ** 32;
    this.#counts[slot] = count;
  }

  #grow(): void {
    const [low, high, counts] = [this.#low, this.#high, this.#counts];
    const length = Math.ceil(counts.length * GROWTH);
    this.#low = new Uint32Array(length);
    this.#high = new Uint16Array(length);
    this.#counts = new Uint8Array(length);
    for (const [slot, count] of counts.entries()) {
      if (count === 0) continue;
      const key = high[slot]! * 2 ** 32 + low[slot]!;
      this.#fill(this.#slotOf(key), key, count);
    }
  }
}
