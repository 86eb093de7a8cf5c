/** The clock of a sandbox (contract §7). */

/** `POST /clock`. Send `to` or `advance`, `mode`, or one of the first two together with `mode`. */
export interface SetClockInput {
  /** The new time, RFC 3339: at most 400 days after the present one, and never before it. */
  to?: string | undefined;
  /** Seconds by which the clock advances, from 1 to 34 560 000 (400 days). */
  advance?: number | undefined;
  /** `real`: the clock runs. `frozen`: it stands. */
  mode?: "real" | "frozen" | undefined;
}

/** The clock of a sandbox. */
export interface Clock {
  object: "clock";
  /** The present time of the sandbox. */
  now: string;
  /** `real`: the clock runs. `frozen`: it stands. */
  mode: "real" | "frozen";
  /** How far a running clock is ahead of the real time; null while the clock is frozen. */
  offset_seconds: number | null;
  /** The end of an advance that is not complete; null: none is under way. */
  target: string | null;
}

/** The clock after it was set. */
export interface ClockAdvance extends Clock {
  /** What became due in the advance so far, and was done. */
  did: {
    /** Attempts to deliver webhooks. */
    deliveries: number;
    /** Payments and authorizations that have ended by themselves. */
    expired_payments: number;
    /** Disputes that were lost at their deadline. */
    disputes_closed: number;
    /** Rows that were deleted after their retention. */
    purged: number;
  };
  /** True: the clock is on its way to `target`. */
  has_more: boolean;
}
