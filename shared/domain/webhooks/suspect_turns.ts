/**
 * Decides which account's suspect is next. A relay sends one suspect at a time, and accounts share its
 * time, not the number of attempts: otherwise an account with silent receivers would delay each suspect
 * of the others by 15 s. Pure bookkeeping; the caller passes the times. Source: ADR 0032.
 */

/** Start-time fair queuing: a new account starts level with the account that has had least time. */
export class SuspectTurns {
  /** The suspect that has its turn. */
  #turn: { account: string; since_ms: number } | null = null;
  /** The time that the last suspect's account had used before its turn. */
  #level_ms = 0;
  /** Accounts that have used more than that; all others are level with it. */
  readonly #had_ms = new Map<string, number>();

  /** A suspect of this account has its turn. */
  begin(account: string, now_ms: number): void {
    this.#turn = { account, since_ms: now_ms };
    this.#level_ms = this.#had_ms.get(account) ?? this.#level_ms;
    for (const [name, had_ms] of this.#had_ms) {
      if (had_ms <= this.#level_ms) this.#had_ms.delete(name);
    }
  }

  /** The turn is over. */
  end(now_ms: number): void {
    if (this.#turn === null) return;
    const { account, since_ms } = this.#turn;
    // At least 1 ms, so that accounts take turns.
    this.#had_ms.set(account, this.#level_ms + Math.max(1, now_ms - since_ms));
    this.#turn = null;
  }

  /**
   * How far accounts are ahead of the accounts that are not listed. The account that is least ahead
   * comes next. Null while a suspect has its turn.
   */
  ahead(): Readonly<Record<string, number>> | null {
    if (this.#turn !== null) return null;
    // The operator chooses the names, so `__proto__` can be one.
    const ahead: Record<string, number> = Object.create(null);
    for (const [name, had_ms] of this.#had_ms) ahead[name] = had_ms - this.#level_ms;
    return ahead;
  }
}
