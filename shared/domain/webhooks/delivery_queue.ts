/**
 * The leased deliveries of a dispatcher that wait for a slot, and how many more it may lease. Pure:
 * the dispatcher sends (ADR 0017).
 *
 * Two numbers are limited: running attempts (slots), and leased deliveries, which can wait here for
 * a slot. Both are counted for each endpoint, environment (by its public id, which a reset keeps)
 * and account. A fast endpoint may have more waiting deliveries, because a poll that leases many
 * costs little more than a poll that leases one.
 */

import { FairQueue, type Slot } from "../../jobs/fair_queue.ts";
import type { SlotBounds, Slots } from "../../jobs/slots.ts";
import type { LeaseCapacity, LeasedDelivery } from "../../store/webhook_store.ts";

/** Most running attempts in this isolate. */
const MAX_RUNNING = 256;
/** `slots` of them are reserved for accounts with fewer than `few` running attempts. */
const RESERVED = { slots: 64, few: 4 };
/** Most attempts at an endpoint whose last attempt failed. */
const MAX_OF_FAILING = 2;
const OF_ENDPOINT: SlotBounds = { first: 4, most: 16, least: 2, failing: MAX_OF_FAILING };
/**
 * Slots of an environment. `least` is two for each of 16 endpoints, so none stops another. The 64
 * endpoints that a sandbox can have take turns.
 */
const OF_ENVIRONMENT: SlotBounds = { first: 16, most: 64, least: 32 };
/** Slots of an account. Two accounts at their limit leave the reserved slots free. */
const OF_ACCOUNT: SlotBounds = { first: 32, most: 96, least: 48 };

/** Leased deliveries for each slot, so that one is ready when an attempt ends. */
const LEASED_PER_SLOT = 2;
/** A fast endpoint may have the leased deliveries of this time, up to `AHEAD_MAX`. */
const AHEAD_MS = 100;
const AHEAD_MAX = 512;
/** Most leased deliveries of this isolate, and of one account, so that others can lease too. */
export const MAX_LEASED = 1024;
const MAX_LEASED_OF_ACCOUNT = 768;
/** Longest expected wait for a slot: half of `WAIT_SHARE` of a lease. Longer queues are cut. */
const LONGEST_QUEUE_MS = 4_000;

/** Limits of the first lease of an endpoint, environment or account. */
export const FIRST_LEASE = {
  // The limit of a fast endpoint, because a fast one earns its slots before the next poll.
  endpoint: OF_ENDPOINT.most * LEASED_PER_SLOT,
  environment: OF_ENVIRONMENT.first * LEASED_PER_SLOT,
  account: OF_ACCOUNT.first * LEASED_PER_SLOT,
} as const;

/** Deliveries of one endpoint and subject, to be sent in order. */
export interface Chain {
  /** In the order of sending; at least one. */
  deliveries: LeasedDelivery[];
  leased_at_ms: number;
}

/** Makes chains of the deliveries of a lease. Those of a chain are consecutive. */
export function chainsOf(leased: readonly LeasedDelivery[], leased_at_ms: number): Chain[] {
  const chains: Chain[] = [];
  for (const delivery of leased) {
    const chain = chains.at(-1);
    const last = chain?.deliveries[0];
    const is_next = last?.endpoint_id === delivery.endpoint_id &&
      last.subject_id === delivery.subject_id && !delivery.poison && !last.poison;
    if (is_next) chain!.deliveries.push(delivery);
    else chains.push({ deliveries: [delivery], leased_at_ms });
  }
  return chains;
}

/** The leased deliveries of one dispatcher. */
export class DeliveryQueue {
  readonly #now: () => number;
  readonly #queue: FairQueue;

  /** @param now a monotonic clock in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    const levels = [OF_ACCOUNT, OF_ENVIRONMENT, OF_ENDPOINT];
    this.#queue = new FairQueue({ slots: MAX_RUNNING, reserved: RESERVED, levels }, now);
  }

  /** Leased deliveries that have not ended. */
  get leased(): number {
    let leased = 0;
    for (const { levels } of this.#queue.owner_queues) leased += levels[2]!.load;
    return leased;
  }

  /**
   * Waits for the slots of a chain; null: the chain was cancelled. A poison delivery does not wait,
   * because a dispatcher has one at a time.
   */
  async take({ deliveries }: Chain): Promise<Slot | null> {
    const { account, public_id, endpoint_id, failing_since, poison } = deliveries[0]!;
    const owners = [account, public_id, endpoint_id] as const;
    this.#queue.levelsOf(owners)[2]!.is_failing = failing_since !== null;
    if (poison) return this.#queue.tryTake(owners, 1, true);
    return await this.#queue.take(owners, deliveries.length).catch(() => null);
  }

  /** Cancels the chains that wait, of one endpoint or of all. */
  cancel(endpoint_id?: string): void {
    if (endpoint_id === undefined) this.#queue.cancelAll(null);
    else this.#queue.cancel(endpoint_id, null);
  }

  /**
   * Cancels waiting chains of endpoints that have become too slow, because they would prevent
   * leases of other endpoints.
   */
  cancelSurplus(): void {
    const now = this.#now();
    for (const { owners, levels, waiting } of [...this.#queue.owner_queues]) {
      const own = levels[2]!;
      const queue_ms = own.load * own.paceNow(now) / own.count(now);
      if (waiting.length === 0 || queue_ms <= LONGEST_QUEUE_MS) continue;
      this.#queue.cancel(owners.at(-1)!, null, own.load - mayLease(own, now));
    }
  }

  /** Returns how many deliveries each endpoint, environment and account may still lease. */
  capacity(): LeaseCapacity {
    const now = this.#now();
    const endpoints: Record<string, number> = {};
    const environments: Record<string, number> = {};
    // The operator chooses the names: an account can be called `__proto__`.
    const accounts: Record<string, number> = Object.create(null);
    const queues = [...this.#queue.owner_queues].map(({ owners, levels }) =>
      [owners as Names, levels as Levels] as const
    );
    for (const [[account, public_id, endpoint_id], [of_account, of_environment, own]] of queues) {
      const most = mayLease(own, now);
      endpoints[endpoint_id] = most - own.load;
      environments[public_id] ??= of_environment.count(now) * LEASED_PER_SLOT -
        of_environment.load;
      accounts[account] ??= of_account.count(now) * LEASED_PER_SLOT - of_account.load;
      // Fast endpoints may lease ahead beyond the limits of their environment and account.
      const ahead = Math.max(0, most - OF_ENDPOINT.most * LEASED_PER_SLOT);
      environments[public_id]! += ahead;
      accounts[account]! += ahead;
    }
    for (const [[account], [of_account]] of queues) {
      accounts[account] = Math.min(accounts[account]!, MAX_LEASED_OF_ACCOUNT - of_account.load);
    }
    return {
      endpoints: atLeastZero(endpoints),
      environments: atLeastZero(environments),
      accounts: atLeastZero(accounts),
    };
  }
}

type Names = [account: string, public_id: string, endpoint_id: string];
type Levels = [account: Slots, environment: Slots, endpoint: Slots];

/** Returns the number of deliveries that an endpoint may have leased at the same time. */
function mayLease(own: Slots, now_ms: number): number {
  if (own.is_failing) return MAX_OF_FAILING;
  const count = own.count(now_ms);
  if (own.pace_ms === null) return FIRST_LEASE.endpoint;
  const ahead = count * AHEAD_MS / Math.max(1, own.pace_ms);
  return Math.max(count * LEASED_PER_SLOT, Math.min(AHEAD_MAX, Math.floor(ahead)));
}

function atLeastZero(capacities: Record<string, number>): Record<string, number> {
  for (const name in capacities) capacities[name] = Math.max(0, capacities[name]!);
  return capacities;
}
