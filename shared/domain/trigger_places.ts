/**
 * How many triggered attempts are under way at once, of this isolate: each holds a request and a
 * connection for up to 15 s. Counted by what a reset does not change. Contract: README, "Limits".
 */

import { tryAgain } from "../core/errors.ts";

/** Whose trigger it is. */
export interface TriggerOwner {
  /** The environment's public id. */
  public_id: string;
  account: string;
}

/** Of one environment: a test suite that triggers in parallel stays below it. */
export const MAX_TRIGGERS_OF_ENVIRONMENT = 16;
/** Of one account, which can have any number of sandboxes: two of them at full use. */
export const MAX_TRIGGERS_OF_ACCOUNT = 32;
/** In all: as many attempts as the relay has, at half of its cost in memory. */
export const MAX_TRIGGERS = 128;

/** Counts the triggered attempts under way. */
export class TriggerPlaces {
  readonly #environments = new Map<string, number>();
  readonly #accounts = new Map<string, number>();
  #in_all = 0;

  /** Takes a place; what is returned gives it back. Throws `rate_limited` when none is left. */
  enter({ public_id, account }: TriggerOwner): () => void {
    if (
      this.#in_all >= MAX_TRIGGERS ||
      (this.#environments.get(public_id) ?? 0) >= MAX_TRIGGERS_OF_ENVIRONMENT ||
      (this.#accounts.get(account) ?? 0) >= MAX_TRIGGERS_OF_ACCOUNT
    ) {
      throw tryAgain(
        "rate_limited",
        "Too many triggered deliveries are under way: try again when one has ended",
      );
    }
    const count = (by: 1 | -1) => {
      this.#in_all += by;
      add(this.#environments, public_id, by);
      add(this.#accounts, account, by);
    };
    count(1);
    return () => count(-1);
  }
}

/** Holds nothing for a name with a count of 0. */
function add(counts: Map<string, number>, name: string, by: number): void {
  const count = (counts.get(name) ?? 0) + by;
  if (count === 0) counts.delete(name);
  else counts.set(name, count);
}
