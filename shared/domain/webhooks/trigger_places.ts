/**
 * Limits the triggered attempts under way in this isolate, because each occupies a request and a
 * connection for up to 15 s. They are counted by the public id of the environment, which a reset
 * keeps, and by the account (ADR 0032).
 */

import { tryAgain } from "../../core/errors.ts";

/** The tenant of a trigger. */
export interface TriggerOwner {
  /** The environment's public id. */
  public_id: string;
  account: string;
}

/** Attempts of one environment: enough for a test suite that triggers in parallel. */
export const MAX_TRIGGERS_OF_ENVIRONMENT = 16;
/** Attempts of one account, which can have any number of sandboxes: two sandboxes at the limit. */
export const MAX_TRIGGERS_OF_ACCOUNT = 32;
/** Attempts in total: half of the relay's limit. */
const MAX_TRIGGERS = 128;

/** Counts the triggered attempts under way. */
export class TriggerPlaces {
  readonly #environments = new Map<string, number>();
  readonly #accounts = new Map<string, number>();
  #in_all = 0;

  /** Takes a place; the returned function frees it. Throws `rate_limited` if none is left. */
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

/** Adds to the count of a name, and removes the name if the count becomes 0. */
function add(counts: Map<string, number>, name: string, by: number): void {
  const count = (counts.get(name) ?? 0) + by;
  if (count === 0) counts.delete(name);
  else counts.set(name, count);
}
