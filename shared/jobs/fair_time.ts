/**
 * Divides the time of jobs that run one at a time between accounts. A job can take 15 s, so
 * accounts share the time, and not the number of jobs. Pure: the caller passes the times. Source:
 * ADR 0017.
 */

/** Start-time fair queuing: a new account starts level with the one that has used least time. */
export class FairTime {
  /** The job that runs. */
  #running: { account: string; since_ms: number } | null = null;
  /** The time that the account of the last job had used before it. */
  #level_ms = 0;
  /** Accounts that have used more than that; all others are level with it. */
  readonly #had_ms = new Map<string, number>();

  begin(account: string, now_ms: number): void {
    this.#running = { account, since_ms: now_ms };
    this.#level_ms = this.#had_ms.get(account) ?? this.#level_ms;
    for (const [name, had_ms] of this.#had_ms) {
      if (had_ms <= this.#level_ms) this.#had_ms.delete(name);
    }
  }

  end(now_ms: number): void {
    if (this.#running === null) return;
    const { account, since_ms } = this.#running;
    // At least 1 ms, so that accounts take turns.
    this.#had_ms.set(account, this.#level_ms + Math.max(1, now_ms - since_ms));
    this.#running = null;
  }

  /**
   * Returns the time by which each listed account is ahead of the accounts that are not listed. The
   * account that is least ahead comes next. Null while a job runs.
   */
  ahead(): Readonly<Record<string, number>> | null {
    if (this.#running !== null) return null;
    // The operator chooses the names, so `__proto__` can be one.
    const ahead: Record<string, number> = Object.create(null);
    for (const [name, had_ms] of this.#had_ms) ahead[name] = had_ms - this.#level_ms;
    return ahead;
  }
}
