/**
 * Limits the long work under way in this isolate: triggered attempts, and reads that wait for an
 * inbox. It is counted by the public id of the environment, which a reset keeps, and by the account
 * (ADR 0032).
 */

import { tryAgain } from "../../core/errors.ts";

/** The tenant of a piece of work. */
export interface Tenant {
  /** The environment's public id. */
  public_id: string;
  account: string;
}

/** The most work under way. */
export interface TenantLimits {
  of_environment: number;
  /** An account can have any number of sandboxes. */
  of_account: number;
  in_all: number;
}

/** Counts the work of one kind under way. */
export class TenantPlaces {
  readonly #limits: TenantLimits;
  readonly #refusal: string;
  readonly #environments = new Map<string, number>();
  readonly #accounts = new Map<string, number>();
  #in_all = 0;

  /** @param refusal the message for work that gets no place */
  constructor(limits: TenantLimits, refusal: string) {
    this.#limits = limits;
    this.#refusal = refusal;
  }

  /** Takes a place; the returned function frees it. Throws `rate_limited` if none is left. */
  enter({ public_id, account }: Tenant): () => void {
    const { of_environment, of_account, in_all } = this.#limits;
    if (
      this.#in_all >= in_all ||
      (this.#environments.get(public_id) ?? 0) >= of_environment ||
      (this.#accounts.get(account) ?? 0) >= of_account
    ) {
      throw tryAgain("rate_limited", this.#refusal);
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
