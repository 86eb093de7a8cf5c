/**
 * Limits the concurrent attempts of one holder: an endpoint, environment or account (ADR 0020).
 * Each attempt occupies a place. A holder begins with few places. Each fast successful delivery
 * adds one, and slow attempts reduce them, regardless of the HTTP status. Pure: the caller passes
 * the times.
 */

/** The numbers of places of one kind of holder. */
export interface PlaceBounds {
  /** Places of a new holder. */
  readonly first: number;
  /** Most places of a fast holder. */
  readonly most: number;
  /** Places of a very slow holder. */
  readonly least: number;
}

/**
 * An attempt up to this duration is fast and costs no places. For slower ones the number of places
 * falls to `most` × QUICK_MS / duration. Receivers that are far away, or work before they answer,
 * often take some hundred milliseconds and keep all places.
 */
const QUICK_MS = 500;
/** Idle holders that `PlacesByName` remembers (ADR 0020). */
const MAX_REMEMBERED = 4096;
/** Weight of the newest attempt in the moving average of durations. */
const PACE_WEIGHT = 1 / 8;

/** The places of one holder, and the number of occupied ones. */
export class Places {
  readonly #bounds: PlaceBounds;
  #earned: number;
  #under_way = 0;
  /** Sum of the start times of the attempts under way. */
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

  /** Moving average of the duration of attempts; null before the first one has ended. */
  get pace_ms(): number | null {
    return this.#pace_ms;
  }

  /** True if the holder has no claimed delivery and no attempt under way. */
  get is_idle(): boolean {
    return this.claimed === 0 && this.#under_way === 0;
  }

  /** Records that an attempt begins. */
  enter(now_ms: number): void {
    this.#under_way++;
    this.#began_ms += now_ms;
  }

  /** Records that an attempt frees its place. */
  leave(began_ms: number): void {
    this.#under_way--;
    // Reset to 0 when idle, because rounding errors of floating point add up.
    this.#began_ms = this.#under_way === 0 ? 0 : this.#began_ms - began_ms;
  }

  /** Records the duration of an attempt that has ended. */
  learn(took_ms: number, delivered: boolean): void {
    this.#pace_ms = this.#pace_ms === null
      ? took_ms
      : this.#pace_ms + (took_ms - this.#pace_ms) * PACE_WEIGHT;
    if (delivered && took_ms <= QUICK_MS) {
      this.#earned = Math.min(this.#bounds.most, this.#earned + 1);
    }
  }

  /** Returns the mean duration of ended attempts, or the mean age of running ones if longer. */
  paceNow(now_ms: number): number {
    const running_ms = this.#under_way === 0 ? 0 : now_ms - this.#began_ms / this.#under_way;
    return Math.max(1, this.#pace_ms ?? 0, running_ms);
  }

  /** Returns the number of places now. */
  count(now_ms: number): number {
    const { most, least } = this.#bounds;
    const by_pace = Math.floor(most * QUICK_MS / this.paceNow(now_ms));
    return Math.min(this.#earned, Math.max(least, by_pace));
  }

  /** Reports whether one more attempt may begin. */
  hasPlace(now_ms: number): boolean {
    return this.#under_way < this.count(now_ms);
  }
}

/** Places by the name of the holder. Idle ones are kept, so that a slow holder stays slow. */
export class PlacesByName {
  readonly #bounds: PlaceBounds;
  /** In the order of last use. */
  readonly #by_name = new Map<string, Places>();

  constructor(bounds: PlaceBounds) {
    this.#bounds = bounds;
  }

  /** Returns the places of a holder, new ones if the name is unknown. */
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
