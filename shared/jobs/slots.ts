/**
 * Limits the concurrent jobs of one owner: an endpoint, environment or account (ADR 0017). Each
 * running job occupies a slot. An owner begins with few slots. Each fast success adds one, and slow
 * jobs reduce them, whether they succeed or fail. Pure: the caller passes the times.
 */

export interface SlotBounds {
  readonly first: number;
  /** Most slots of a fast owner. */
  readonly most: number;
  /** Slots of a very slow owner. */
  readonly least: number;
  /** Most slots of an owner whose last job failed; absent: as many as before. */
  readonly failing?: number;
}

/**
 * A job up to this duration is fast and costs no slots. For slower ones the number of slots falls
 * to `most` × QUICK_MS / duration. Receivers that are far away, or work before they respond, often
 * take some hundred milliseconds and keep all slots.
 */
const QUICK_MS = 500;
/** Idle owners that `SlotsByName` remembers. */
const MAX_REMEMBERED = 4096;
/** Weight of the newest job in the moving average of durations. */
const PACE_WEIGHT = 1 / 8;

/** The slots of one owner, and the number of occupied ones. */
export class Slots {
  readonly #bounds: SlotBounds;
  #earned: number;
  #running = 0;
  /** Sum of the start times of the running jobs. */
  #began_ms = 0;
  #pace_ms: number | null = null;
  /** Jobs that wait or run. */
  load = 0;
  /** True if the last job failed. */
  is_failing = false;

  constructor(bounds: SlotBounds) {
    this.#bounds = bounds;
    this.#earned = bounds.first;
  }

  get running(): number {
    return this.#running;
  }

  /** Moving average of the duration of jobs; null before the first one has ended. */
  get pace_ms(): number | null {
    return this.#pace_ms;
  }

  /** True if the owner has no job. */
  get is_idle(): boolean {
    return this.load === 0 && this.#running === 0;
  }

  /** Records that a job begins. */
  enter(now_ms: number): void {
    this.#running++;
    this.#began_ms += now_ms;
  }

  /** Records that a job frees its slot. */
  leave(began_ms: number): void {
    this.#running--;
    // Reset to 0 when idle, because rounding errors of floating point add up.
    this.#began_ms = this.#running === 0 ? 0 : this.#began_ms - began_ms;
  }

  /** Records the duration and the result of a job that has ended. */
  learn(took_ms: number, is_success: boolean): void {
    this.#pace_ms = this.#pace_ms === null
      ? took_ms
      : this.#pace_ms + (took_ms - this.#pace_ms) * PACE_WEIGHT;
    this.is_failing = !is_success;
    if (is_success && took_ms <= QUICK_MS) {
      this.#earned = Math.min(this.#bounds.most, this.#earned + 1);
    }
  }

  /** Returns the mean duration of ended jobs, or the mean age of running ones if longer. */
  paceNow(now_ms: number): number {
    const running_ms = this.#running === 0 ? 0 : now_ms - this.#began_ms / this.#running;
    return Math.max(1, this.#pace_ms ?? 0, running_ms);
  }

  count(now_ms: number): number {
    const { most, least, failing = most } = this.#bounds;
    const by_pace = Math.floor(most * QUICK_MS / this.paceNow(now_ms));
    const count = Math.min(this.#earned, Math.max(least, by_pace));
    return this.is_failing ? Math.min(failing, count) : count;
  }

  /** Reports whether one more job may begin. */
  isFree(now_ms: number): boolean {
    return this.#running < this.count(now_ms);
  }
}

/** Slots by the name of the owner. Idle ones are kept, so that a slow owner stays slow. */
export class SlotsByName {
  readonly #bounds: SlotBounds;
  /** In the order of last use. */
  readonly #by_name = new Map<string, Slots>();

  constructor(bounds: SlotBounds) {
    this.#bounds = bounds;
  }

  /** Returns the slots of an owner, new ones if the name is unknown. */
  of(name: string): Slots {
    const slots = this.#by_name.get(name) ?? new Slots(this.#bounds);
    this.#by_name.delete(name);
    this.#by_name.set(name, slots);
    if (this.#by_name.size > MAX_REMEMBERED) this.#dropOldest();
    return slots;
  }

  #dropOldest(): void {
    for (const [name, slots] of this.#by_name) {
      if (!slots.is_idle) continue;
      this.#by_name.delete(name);
      return;
    }
  }
}
