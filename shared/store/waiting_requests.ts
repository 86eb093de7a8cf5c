/**
 * Limits the requests of one kind that wait in this isolate, by tenant and in all. A request above a
 * limit gets 429 at once, so no tenant occupies the memory and the connections that the
 * others need (ADR 0020).
 */

import { FairQueue, type Owners, type Slot } from "../jobs/fair_queue.ts";
import type { KnownTenants } from "./known_tenants.ts";

/** The most requests that wait. */
interface WaitingLimits {
  of_account: number;
  in_all: number;
}

/**
 * Most requests that wait for their turn or for the end of a reset. Of a tenant: a quarter of all, so
 * that the others find slots. In all: as many as the local server has connections (ADR 0033).
 */
const WAITING_LIMITS: WaitingLimits = { of_account: 256, in_all: 1_024 };

/**
 * Most requests that wait for the end of a delay of the sandbox. A delay lasts up to 10 s and holds a
 * connection of the client: half of the local server's connections stay free (ADR 0033).
 */
export const DELAY_LIMITS: WaitingLimits = { of_account: 128, in_all: 512 };

/**
 * Most requests with a live key that wait for a provider or for a request with their key. A
 * provider that hangs holds each for 8 s, so an account at 60 payments a second still finds slots.
 */
export const LIVE_LIMITS: WaitingLimits = { of_account: 512, in_all: 1_024 };

/** The requests of one kind that wait, by the tenants of their keys. */
export class WaitingRequests {
  readonly #tenants: KnownTenants;
  readonly #queue: FairQueue;

  constructor(tenants: KnownTenants, { of_account, in_all } = WAITING_LIMITS) {
    this.#tenants = tenants;
    this.#queue = new FairQueue({
      slots: in_all,
      levels: [of_account],
      waiting: 0,
      refusal:
        "Too many requests of this account wait at the same time: send fewer at once, and try again",
    });
  }

  /**
   * Runs work that waits. Throws its errors, and `rate_limited` if the tenant has no slot left.
   * @param key_hash of the request's key. The slot of an unknown key counts for the key alone
   */
  hold<T>(key_hash: string, work: () => Promise<T>): Promise<T> {
    return this.#queue.run([this.#tenants.nameOf(key_hash)], work);
  }

  /**
   * Takes the slots of a request in another queue. A request that must wait for them is held.
   * @param key_hash as of `hold`
   */
  async take(key_hash: string, queue: FairQueue, owners: Owners): Promise<Slot> {
    return queue.tryTake(owners) ?? await this.hold(key_hash, () => queue.take(owners));
  }

  /** Runs a job when it has its slots, as `take` does. */
  async run<T>(
    key_hash: string,
    queue: FairQueue,
    owners: Owners,
    job: () => Promise<T>,
  ): Promise<T> {
    const slot = await this.take(key_hash, queue, owners);
    try {
      return await job();
    } finally {
      slot.leave();
    }
  }
}
