/**
 * The health check of the database. It distinguishes an unavailable database from a slow statement.
 * It runs `select 1` on a separate connection while a statement is slow. If the check fails,
 * requests fail at once, and the check repeats until it succeeds (promise R12, ADR 0007).
 *
 * There is no check while all statements are fast. In the background the check repeats only for
 * some seconds after the last failed request.
 */

/** Deadline of a health check. After it the database counts as unavailable (promise R12). */
export const PROBE_DEADLINE_MS = 1_000;
/** Pause between two checks while the database is unavailable. */
const PROBE_PAUSE_MS = 200;
/** The checks stop this long after the last request that was refused. */
const PROBE_FOR_MS = 10_000;
/** If a timer fires this late, the process was busy, and the check gets more time. */
const LATE_MS = 250;

export interface Probe {
  /** Runs the check. Rejects if it fails. */
  ask(): Promise<unknown>;
  /** Closes the connection. The next check opens a new one. */
  reset(): void;
}

/** Tracks whether the database is available. */
export class DatabaseHealth {
  readonly #probe: Probe;
  readonly #on_unavailable: () => void;
  readonly #deadline_ms: number;
  #is_unavailable = false;
  #wanted_until = 0;
  #asking: Promise<boolean> | null = null;
  #pause: { timer: ReturnType<typeof setTimeout>; end: () => void } | null = null;
  #is_watching = false;
  #is_closed = false;

  /**
   * @param on_unavailable called each time the database becomes unavailable
   * @param deadline_ms deadline of a check
   */
  constructor(probe: Probe, on_unavailable: () => void, deadline_ms: number) {
    this.#probe = probe;
    this.#on_unavailable = on_unavailable;
    this.#deadline_ms = deadline_ms;
  }

  /**
   * Reports whether a request may be sent. Responds at once, except for the first request after a
   * pause of the checks: this one waits for a new check.
   */
  async admits(): Promise<boolean> {
    if (!this.#is_unavailable) return true;
    const is_watched = performance.now() < this.#wanted_until;
    this.#wanted_until = performance.now() + PROBE_FOR_MS;
    if (is_watched) return false;
    const responses = await this.responds();
    if (!responses) this.#watch();
    return responses;
  }

  /** Runs a check, or joins the running one. False: the database is unavailable. */
  responds(): Promise<boolean> {
    return this.#asking ??= this.#ask().finally(() => this.#asking = null);
  }

  /** Stops the repeated checks and closes the connection. */
  close(): void {
    this.#is_closed = true;
    this.#pause?.end();
    this.#probe.reset();
  }

  async #ask(): Promise<boolean> {
    const was_unavailable = this.#is_unavailable;
    this.#is_unavailable = !await responds(this.#probe.ask(), this.#deadline_ms);
    if (!this.#is_unavailable || this.#is_closed) return !this.#is_unavailable;
    this.#probe.reset();
    if (!was_unavailable) {
      this.#wanted_until = performance.now() + PROBE_FOR_MS;
      this.#on_unavailable();
      this.#watch();
    }
    return false;
  }

  /** Repeats the check while the database is unavailable and requests arrive. */
  async #watch(): Promise<void> {
    if (this.#is_watching) return;
    this.#is_watching = true;
    while (this.#is_unavailable && !this.#is_closed && performance.now() < this.#wanted_until) {
      await new Promise<void>((resolve) => {
        const end = () => {
          clearTimeout(timer);
          resolve();
        };
        const timer = setTimeout(end, PROBE_PAUSE_MS);
        this.#pause = { timer, end };
      });
      if (!this.#is_closed) await this.responds();
    }
    this.#is_watching = false;
    this.#pause = null;
  }
}

/** Reports whether a check succeeds before its deadline. */
function responds(response: Promise<unknown>, deadline_ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    let due = performance.now() + deadline_ms;
    const decide = () => {
      const late_ms = performance.now() - due;
      if (late_ms < LATE_MS) return resolve(false);
      // The response may have arrived already, and this process has not read it yet.
      due = performance.now() + LATE_MS;
      timer = setTimeout(decide, LATE_MS);
    };
    let timer = setTimeout(decide, deadline_ms);
    response.then(() => true, () => false).then((has_responded) => {
      clearTimeout(timer);
      resolve(has_responded);
    });
  });
}
