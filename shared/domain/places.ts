/**
 * How many attempts may be under way at once of one endpoint, of one environment or of one account.
 * Each begins with few places, earns more with each attempt that is taken quickly, and has fewer the
 * longer its attempts take, whatever they are answered. Pure bookkeeping; times are the caller's.
 */

/** The bounds of one kind of holder. */
export interface PlaceBounds {
  /** At the beginning, before anything is known. */
  readonly first: number;
  /** Of one that answers quickly. */
  readonly most: number;
  /** Of one that is very slow. */
  readonly least: number;
}

/**
 * An attempt is quick up to this time, and leaves the holder all of its places. Beyond it the places
 * fall as the time grows, so that most × QUICK_MS of receivers' time are under way at a time: 500 ms
 * leave a merchant that is far away, or does its work before it answers, at full speed.
 */
export const QUICK_MS = 500;
/** Weight of the newest attempt in the pace. */
const PACE_WEIGHT = 1 / 8;

/** The places of one holder, and how many it has taken. */
export class Places {
  readonly #bounds: PlaceBounds;
  #earned: number;
  #under_way = 0;
  /** Sum of the times at which the attempts under way began. */
  #began_ms = 0;
  #pace_ms: number | null = null;
  /** Deliveries that are claimed and have not ended. */
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

  /** Whether nothing is claimed and nothing under way. */
  get is_idle(): boolean {
    return this.claimed === 0 && this.#under_way === 0;
  }

  /** An attempt begins. */
  enter(now_ms: number): void {
    this.#under_way++;
    this.#began_ms += now_ms;
  }

  /** What has begun is over. */
  leave(began_ms: number): void {
    this.#under_way--;
    // Set anew when it can be: a sum of many fractions is not exact.
    this.#began_ms = this.#under_way === 0 ? 0 : this.#began_ms - began_ms;
  }

  /** Learns how long an attempt took. */
  learn(took_ms: number, delivered: boolean): void {
    this.#pace_ms = this.#pace_ms === null
      ? took_ms
      : this.#pace_ms + (took_ms - this.#pace_ms) * PACE_WEIGHT;
    if (delivered && took_ms <= QUICK_MS) {
      this.#earned = Math.min(this.#bounds.most, this.#earned + 1);
    }
  }

  /** Time of an attempt as it looks now: those that have not ended count with what they have taken. */
  paceNow(now_ms: number): number {
    const running_ms = this.#under_way === 0 ? 0 : now_ms - this.#began_ms / this.#under_way;
    return Math.max(1, this.#pace_ms ?? 0, running_ms);
  }

  /** How many may be under way. */
  count(now_ms: number): number {
    const { most, least } = this.#bounds;
    const by_pace = Math.floor(most * QUICK_MS / this.paceNow(now_ms));
    return Math.min(this.#earned, Math.max(least, by_pace));
  }

  /** Whether one more may begin. */
  hasPlace(now_ms: number): boolean {
    return this.#under_way < this.count(now_ms);
  }
}
