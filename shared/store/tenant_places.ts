/**
 * Limits the requests of one kind that wait in this isolate, by tenant and in all. A request that
 * gets no place is answered 429 at once, so no tenant occupies the memory and the connections that
 * the others need (ADR 0020).
 */

import { tryAgain } from "../core/errors.ts";
import type { KnownTenants } from "./known_tenants.ts";

/** The tenant of a request. */
export interface Tenant {
  /** The environment's public id, which a reset keeps. */
  public_id?: string;
  account: string;
}

/** The most requests that wait. */
export interface TenantLimits {
  /** Absent: only the account is limited. */
  of_environment?: number;
  /** An account can have any number of sandboxes. */
  of_account: number;
  in_all: number;
}

/** Counts the requests of one kind that wait. */
export class TenantPlaces {
  readonly #limits: TenantLimits;
  readonly #refusal: string;
  readonly #environments = new Map<string, number>();
  readonly #accounts = new Map<string, number>();
  #in_all = 0;

  /** @param refusal the message for a request that gets no place */
  constructor(limits: TenantLimits, refusal: string) {
    this.#limits = limits;
    this.#refusal = refusal;
  }

  /** Takes a place; the returned function frees it. Throws `rate_limited` if none is left. */
  enter({ public_id = "", account }: Tenant): () => void {
    const { of_environment = Infinity, of_account, in_all } = this.#limits;
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

/**
 * Most requests that wait for their turn or for the end of a reset. Of a tenant: a quarter of all, so
 * that the others find places. In all: as many as the local server has connections (ADR 0033).
 */
const WAITING_LIMITS: TenantLimits = { of_account: 256, in_all: 1_024 };

/**
 * Most requests that wait for the end of a delay of the sandbox. A delay lasts up to 10 s and holds a
 * connection of the client: half of the local server's connections stay free (ADR 0033).
 */
export const DELAY_LIMITS: TenantLimits = { of_account: 128, in_all: 512 };

/**
 * Most requests with a live key that wait for a provider or for a twin. A provider that hangs holds
 * each for 8 s, so an account at 60 payments a second still finds places.
 */
export const LIVE_LIMITS: TenantLimits = { of_account: 512, in_all: 1_024 };

/** The requests of one kind that wait, by the tenants of their keys. */
export class WaitingRequests {
  readonly #tenants: KnownTenants;
  readonly #places: TenantPlaces;

  constructor(tenants: KnownTenants, limits: TenantLimits = WAITING_LIMITS) {
    this.#tenants = tenants;
    this.#places = new TenantPlaces(
      limits,
      "Too many requests of this account wait at the same time: send fewer at once, and try again",
    );
  }

  /**
   * Runs work that waits. Throws its errors, and `rate_limited` if the tenant has no place left.
   * @param key_hash of the request's key. The place of an unknown key counts for the key alone
   */
  async hold<T>(key_hash: string, work: () => Promise<T>): Promise<T> {
    const leave = this.#places.enter({ account: this.#tenants.of(key_hash) ?? key_hash });
    try {
      return await work();
    } finally {
      leave();
    }
  }
}
