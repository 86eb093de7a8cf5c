/**
 * Chooses the account of the next suspect. A relay sends one suspect at a time. An attempt at a
 * silent receiver takes 15 s. So accounts share the time, and not the number of attempts. Pure: the
 * caller passes the times. Source: ADR 0020.
 */

/** Start-time fair queuing: a new account starts level with the one that has used least time. */
export class SuspectTurns {
  /** The suspect that is being sent. */
  #turn: { account: string; since_ms: number } | null = null;
  /** The time that the last suspect's account had used before its turn. */
  #level_ms = 0;
  /** Accounts that have used more than that; all others are level with it. */
  readonly #had_ms = new Map<string, number>();

  /** Starts the turn of a suspect of this account. */
  begin(account: string, now_ms: number): void {
    this.#turn = { account, since_ms: now_ms };
    this.#level_ms = this.#had_ms.get(account) ?? this.#level_ms;
    for (const [name, had_ms] of this.#had_ms) {
      if (had_ms <= this.#level_ms) this.#had_ms.delete(name);
    }
  }

  /** Ends the turn. */
  end(now_ms: number): void {
    if (this.#turn === null) return;
    const { account, since_ms } = this.#turn;
    // At least 1 ms, so that accounts take turns.
    this.#had_ms.set(account, this.#level_ms + Math.max(1, now_ms - since_ms));
    this.#turn = null;
  }

  /**
   * Returns the time by which each listed account is ahead of the accounts that are not listed. The
   * account that is least ahead comes next. Null while a suspect is being sent.
   */
  ahead(): Readonly<Record<string, number>> | null {
    if (this.#turn !== null) return null;
    // The operator chooses the names, so `__proto__` can be one.
    const ahead: Record<string, number> = Object.create(null);
    for (const [name, had_ms] of this.#had_ms) ahead[name] = had_ms - this.#level_ms;
    return ahead;
  }
}
