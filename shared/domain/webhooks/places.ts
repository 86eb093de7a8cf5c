/**
 * Limits the attempts under way of one endpoint, environment or account (ADR 0032). A holder begins
 * with few places. Each delivery that is taken quickly adds one. Slow attempts reduce them,
 * whatever the status of their answers. Pure bookkeeping; the caller supplies the times.
 */

/** The bounds of one kind of holder. */
export interface PlaceBounds {
  /** At the beginning. */
  readonly first: number;
  /** Of a fast holder. */
  readonly most: number;
  /** Of a very slow holder. */
  readonly least: number;
}

/**
 * An attempt up to this time is fast and costs no places. Beyond it the number of places falls so
 * that places × time stays at most × QUICK_MS. Receivers that are far away or work before they
 * answer often take some hundred milliseconds, and keep their full rate.
 */
const QUICK_MS = 500;
/** Idle holders that `PlacesByName` remembers (ADR 0032). */
const MAX_REMEMBERED = 4096;
/** Weight of the newest attempt in the mean time of an attempt. */
const PACE_WEIGHT = 1 / 8;

/** The places of one holder, and how many of them are taken. */
export class Places {
  readonly #bounds: PlaceBounds;
  #earned: number;
  #under_way = 0;
  /** Sum of the times at which the attempts under way began. */
  #began_ms = 0;
  #pace_ms: number | null = null;
  /** Claimed deliveries that have not ended. */
  claimed = 0;

  constructor(bounds: PlaceBounds) {
    this.#bounds = bounds;
    this.#earned = bounds.first;
  }

  /** Attempts under way. */
  get under_way(): number {
    return this.#under_way;
  }

  /** Mean time of an attempt; null before the first has ended. */
  get pace_ms(): number | null {
    return this.#pace_ms;
  }

  /** Whether the holder has no claimed delivery and no attempt under way. */
  get is_idle(): boolean {
    return this.claimed === 0 && this.#under_way === 0;
  }

  /** An attempt begins. */
  enter(now_ms: number): void {
    this.#under_way++;
    this.#began_ms += now_ms;
  }

  /** An attempt has left its place. */
  leave(began_ms: number): void {
    this.#under_way--;
    // Reset to 0 when possible: a sum of many fractions is not exact.
    this.#began_ms = this.#under_way === 0 ? 0 : this.#began_ms - began_ms;
  }

  /** Notes the time of an attempt that has ended. */
  learn(took_ms: number, delivered: boolean): void {
    this.#pace_ms = this.#pace_ms === null
      ? took_ms
      : this.#pace_ms + (took_ms - this.#pace_ms) * PACE_WEIGHT;
    if (delivered && took_ms <= QUICK_MS) {
      this.#earned = Math.min(this.#bounds.most, this.#earned + 1);
    }
  }

  /** The mean time of ended attempts, or the mean age of those under way if that is longer. */
  paceNow(now_ms: number): number {
    const running_ms = this.#under_way === 0 ? 0 : now_ms - this.#began_ms / this.#under_way;
    return Math.max(1, this.#pace_ms ?? 0, running_ms);
  }

  /** How many attempts may be under way. */
  count(now_ms: number): number {
    const { most, least } = this.#bounds;
    const by_pace = Math.floor(most * QUICK_MS / this.paceNow(now_ms));
    return Math.min(this.#earned, Math.max(least, by_pace));
  }

  /** Whether one more attempt may begin. */
  hasPlace(now_ms: number): boolean {
    return this.#under_way < this.count(now_ms);
  }
}

/** Places by name. They are kept while idle, so that a slow holder stays slow. */
export class PlacesByName {
  readonly #bounds: PlaceBounds;
  /** In the order of their last use. */
  readonly #by_name = new Map<string, Places>();

  constructor(bounds: PlaceBounds) {
    this.#bounds = bounds;
  }

  of(name: string): Places {
    const places = this.#by_name.get(name) ?? new Places(this.#bounds);
    this.#by_name.delete(name);
    this.#by_name.set(name, places);
    if (this.#by_name.size > MAX_REMEMBERED) this.#dropOldest();
    return places;
  }

  #dropOldest(): void {
    for (const [name, places] of this.#by_name) {
      if (!places.is_idle) continue;
      this.#by_name.delete(name);
      return;
    }
  }
}
