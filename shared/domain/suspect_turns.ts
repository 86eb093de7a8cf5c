/**
 * Whose suspect is next, when a relay sends one at a time: accounts share the time, not the number of
 * attempts. An account whose receivers are silent for 15 s each would otherwise make every suspect of
 * the others wait that long. Pure bookkeeping; times are the caller's.
 */

/** Start-time fair queuing: an account that comes new is level with the one that has had least. */
export class SuspectTurns {
  /** The suspect that has its turn. */
  #turn: { account: string; since_ms: number } | null = null;
  /** The time that the account of the last suspect had had when its turn began. */
  #level_ms = 0;
  /** Accounts that have had more than that; all others are level with it. */
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
    // At least something, so that accounts take turns.
    this.#had_ms.set(account, this.#level_ms + Math.max(1, now_ms - since_ms));
    this.#turn = null;
  }

  /**
   * How far accounts are ahead of those that are not named: who is least ahead comes next. Null
   * while a suspect has its turn.
   */
  ahead(): Readonly<Record<string, number>> | null {
    if (this.#turn !== null) return null;
    // Named by the operator: `__proto__` is a name like any other.
    const ahead: Record<string, number> = Object.create(null);
    for (const [name, had_ms] of this.#had_ms) ahead[name] = had_ms - this.#level_ms;
    return ahead;
  }
}
