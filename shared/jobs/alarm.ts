/**
 * Wakes this process when work is due that it has rescheduled itself, such as the retry of a
 * delivery. Otherwise the work would wait for the next wake from outside, which comes every 5
 * seconds (architecture §4). Nothing depends on an alarm: a process that ends loses its alarms, and
 * the next wake from outside finds the work.
 */

import type { Clock } from "../core/clock.ts";

/** Longest time ahead of which an alarm is set. For longer waits 5 seconds do not matter. */
const MAX_AHEAD_MS = 10 * 60_000;
/** Most times that wait. Further ones are left to the wakes from outside. */
const MAX_TIMES = 1_000;

/** The times at which a process wakes itself. */
export class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => void;
  /** In ascending order. */
  #times: number[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #is_closed = false;

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Rings at a time, or shortly after it. */
  at(at_ms: number): void {
    const is_near = at_ms - this.#clock() <= MAX_AHEAD_MS;
    if (this.#is_closed || !is_near || this.#times.length >= MAX_TIMES) return;
    let place = this.#times.length;
    while (place > 0 && this.#times[place - 1]! > at_ms) place--;
    this.#times.splice(place, 0, at_ms);
    if (place === 0) this.#set();
  }

  /** Rings no more. */
  close(): void {
    this.#is_closed = true;
    this.#times = [];
    clearTimeout(this.#timer);
  }

  #set(): void {
    clearTimeout(this.#timer);
    const [next] = this.#times;
    if (next === undefined) return;
    this.#timer = setTimeout(() => {
      const now = Math.max(next, this.#clock());
      this.#times = this.#times.filter((at_ms) => at_ms > now);
      this.#set();
      this.#ring();
    }, Math.max(0, next - this.#clock()));
  }
}
