/**
 * Whether the database answers at all, as opposed to being slow at one statement: a question of its
 * own (`select 1`), asked over a connection of its own while a statement keeps us waiting. Once it
 * goes unanswered, requests fail at once and the question is repeated until it is answered (promise
 * R12, ADR 0020).
 *
 * Nothing is asked while all statements are quick, and nothing goes on in the background but for a
 * while after a request that failed.
 */

/** How long the question may stay unanswered before the database counts as away (promise R12). */
export const PROBE_DEADLINE_MS = 1_000;
/** Pause before the question is repeated while the database is away. */
const PROBE_PAUSE_MS = 200;
/** So long after the last request that it failed, the question is repeated no more. */
const PROBE_FOR_MS = 10_000;
/** A deadline that fires so late says that this process was busy, not that the database is away. */
const LATE_MS = 250;

/** How the question is put; rejects when there is no answer to come. */
export interface Probe {
  ask(): Promise<unknown>;
  /** Gives the connection up, so that the next question opens another. */
  reset(): void;
}

/** Knows whether the database is away. */
export class DatabaseHealth {
  readonly #probe: Probe;
  readonly #on_away: () => void;
  readonly #deadline_ms: number;
  #is_away = false;
  #wanted_until = 0;
  #asking: Promise<boolean> | null = null;
  #pause: { timer: ReturnType<typeof setTimeout>; end: () => void } | null = null;
  #is_watching = false;
  #is_closed = false;

  /**
   * @param on_away called each time the database is found to be away
   * @param deadline_ms how long the question may stay unanswered
   */
  constructor(probe: Probe, on_away: () => void, deadline_ms: number) {
    this.#probe = probe;
    this.#on_away = on_away;
    this.#deadline_ms = deadline_ms;
  }

  /** Whether a request may be sent. At once, but for the first after a quiet time away. */
  async admits(): Promise<boolean> {
    if (!this.#is_away) return true;
    const is_watched = performance.now() < this.#wanted_until;
    this.#wanted_until = performance.now() + PROBE_FOR_MS;
    if (is_watched) return false;
    const answers = await this.answers();
    if (!answers) this.#watch();
    return answers;
  }

  /** Asks; whoever asks meanwhile shares the answer. False: the database is away. */
  answers(): Promise<boolean> {
    return this.#asking ??= this.#ask().finally(() => this.#asking = null);
  }

  /** Ends what goes on in the background. */
  close(): void {
    this.#is_closed = true;
    this.#pause?.end();
    this.#probe.reset();
  }

  async #ask(): Promise<boolean> {
    const was_away = this.#is_away;
    this.#is_away = !await isAnswered(this.#probe.ask(), this.#deadline_ms);
    if (!this.#is_away || this.#is_closed) return !this.#is_away;
    this.#probe.reset();
    if (!was_away) {
      this.#wanted_until = performance.now() + PROBE_FOR_MS;
      this.#on_away();
      this.#watch();
    }
    return false;
  }

  /** Repeats the question while the database is away and requests come. */
  async #watch(): Promise<void> {
    if (this.#is_watching) return;
    this.#is_watching = true;
    while (this.#is_away && !this.#is_closed && performance.now() < this.#wanted_until) {
      await new Promise<void>((resolve) => {
        const end = () => {
          clearTimeout(timer);
          resolve();
        };
        const timer = setTimeout(end, PROBE_PAUSE_MS);
        this.#pause = { timer, end };
      });
      if (!this.#is_closed) await this.answers();
    }
    this.#is_watching = false;
    this.#pause = null;
  }
}

/** Whether a question is answered in time. */
function isAnswered(answer: Promise<unknown>, deadline_ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    let due = performance.now() + deadline_ms;
    const decide = () => {
      const late_ms = performance.now() - due;
      if (late_ms < LATE_MS) return resolve(false);
      // The answer may lie here unread.
      due = performance.now() + LATE_MS;
      timer = setTimeout(decide, LATE_MS);
    };
    let timer = setTimeout(decide, deadline_ms);
    answer.then(() => true, () => false).then((is_answered) => {
      clearTimeout(timer);
      resolve(is_answered);
    });
  });
}
