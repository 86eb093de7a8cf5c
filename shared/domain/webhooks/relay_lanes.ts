/**
 * The claimed deliveries of a relay, and the choice of the next ones to send. There is a lane for
 * each endpoint; a lane holds chains of deliveries that must be sent one after another. Pure: the
 * relay sends (ADR 0020).
 *
 * Two numbers are limited: attempts under way (places), and claimed deliveries, which can wait here
 * for a place. Both are counted for each endpoint, environment (by its public id, which a reset
 * keeps) and account. A fast endpoint may have more waiting deliveries, because a turn that claims
 * many costs little more than a turn that claims one.
 */

import type { ClaimedDelivery, RelayRooms } from "../../store/webhook_store.ts";
import { type SlotBounds, Slots, SlotsByName } from "../../jobs/slots.ts";

/** Most attempts under way in this isolate. */
const MAX_UNDER_WAY = 256;
/** `places` of them are reserved for accounts with fewer than `few` attempts under way. */
const RESERVED = { places: 64, few: 4 };
/** Slots of an endpoint, and most attempts under way at an endpoint whose last attempt failed. */
const OF_ENDPOINT: SlotBounds = { first: 4, most: 16, least: 2 };
const MAX_OF_FAILING = 2;
/**
 * Slots of an environment. `least` is two for each of 16 endpoints, so none stops another. The 64
 * endpoints that a sandbox can have take turns.
 */
const OF_ENVIRONMENT: SlotBounds = { first: 16, most: 64, least: 32 };
/** Slots of an account. Two accounts at their limit leave the reserved places free. */
const OF_ACCOUNT: SlotBounds = { first: 32, most: 96, least: 48 };

/** Claimed deliveries for each place, so that one is ready when an attempt ends. */
const CLAIMED_PER_PLACE = 2;
/** A fast endpoint may have the claimed deliveries of this time, up to `AHEAD_MAX`. */
const AHEAD_MS = 100;
const AHEAD_MAX = 512;
/** Most claimed deliveries of this isolate, and of one account, so that others can claim too. */
export const MAX_CLAIMED = 1024;
const MAX_CLAIMED_OF_ACCOUNT = 768;
/** Longest expected wait for a place: half of `WAIT_SHARE` of a lease. Longer queues are cut. */
const LONGEST_QUEUE_MS = 4_000;

/** Limits of the first claim of an endpoint, environment or account. */
export const FIRST_CLAIM = {
  // The limit of a fast endpoint, because a fast one earns its places before the next turn.
  endpoint: OF_ENDPOINT.most * CLAIMED_PER_PLACE,
  environment: OF_ENVIRONMENT.first * CLAIMED_PER_PLACE,
  account: OF_ACCOUNT.first * CLAIMED_PER_PLACE,
} as const;

/** Deliveries of one endpoint and subject, to be sent in order. */
export interface Chain {
  /** In the order of sending; at least one. */
  deliveries: ClaimedDelivery[];
  claimed_at_ms: number;
  /** Start of the attempt under way, by the clock of the lanes. */
  began_ms: number;
}

/** The claimed deliveries of one endpoint. */
interface Lane {
  readonly public_id: string;
  readonly account: string;
  readonly places: Slots;
  /** The places of the endpoint, its environment and its account. */
  readonly holders: readonly [Slots, Slots, Slots];
  readonly waiting: Chain[];
  /** True if the last attempt failed. */
  failing: boolean;
}

/** The lanes of one relay. */
export class RelayLanes {
  readonly #now: () => number;
  readonly #lanes = new Map<string, Lane>();
  readonly #environments = new SlotsByName(OF_ENVIRONMENT);
  readonly #accounts = new SlotsByName(OF_ACCOUNT);
  readonly #suspects: Chain[] = [];
  #claimed = 0;
  #under_way = 0;

  /** @param now a monotonic clock in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Claimed deliveries that have not ended. */
  get claimed(): number {
    return this.#claimed;
  }

  /**
   * Adds the claims of a turn. The deliveries of a chain are consecutive. A suspect is a chain of
   * its own.
   */
  add(deliveries: readonly ClaimedDelivery[], claimed_at_ms: number): void {
    let chain: Chain | undefined;
    for (const delivery of deliveries) {
      const last = chain?.deliveries[0];
      const lane = this.#laneOf(delivery);
      lane.failing = delivery.failing_since !== null;
      if (
        !delivery.suspect && last?.endpoint_id === delivery.endpoint_id &&
        last.subject_id === delivery.subject_id
      ) {
        chain!.deliveries.push(delivery);
      } else {
        chain = { deliveries: [delivery], claimed_at_ms, began_ms: 0 };
        (delivery.suspect ? this.#suspects : lane.waiting).push(chain);
      }
      this.#countClaimed(lane, 1);
    }
  }

  /**
   * Yields the chains that may begin now. Each occupies a place until `leave`. Endpoints alternate,
   * also across calls: an endpoint that gets a place moves to the end. A suspect needs no place,
   * because a relay has one suspect at a time.
   */
  *enter(): Generator<Chain> {
    for (let chain = this.#suspects.shift(); chain; chain = this.#suspects.shift()) {
      yield this.#begin(this.#laneOf(chain.deliveries[0]!), chain);
    }
    // The loop visits a lane again, because it is deleted and set again.
    for (const [endpoint_id, lane] of this.#lanes) {
      if (lane.waiting.length === 0 || !this.#hasPlace(lane)) continue;
      this.#lanes.delete(endpoint_id);
      this.#lanes.set(endpoint_id, lane);
      yield this.#begin(lane, lane.waiting.shift()!);
    }
  }

  /** Records that an attempt of a chain has ended. The next delivery keeps the place. */
  end(chain: Chain, delivered: boolean): void {
    const lane = this.#laneOf(chain.deliveries[0]!);
    const now = this.#now();
    lane.failing = !delivered;
    for (const places of lane.holders) {
      places.learn(now - chain.began_ms, delivered);
      places.leave(chain.began_ms);
      places.enter(now);
    }
    chain.began_ms = now;
    this.#countClaimed(lane, -1);
  }

  /** Removes a claimed delivery without an attempt. */
  release(delivery: ClaimedDelivery): void {
    this.#countClaimed(this.#laneOf(delivery), -1);
    this.#forget(delivery.endpoint_id);
  }

  /** Frees the place of a chain after its last delivery. */
  leave({ deliveries: [delivery], began_ms }: Chain): void {
    for (const places of this.#laneOf(delivery!).holders) places.leave(began_ms);
    this.#under_way--;
    this.#forget(delivery!.endpoint_id);
  }

  /** Removes the waiting deliveries of one endpoint or of all. The caller releases each. */
  empty(endpoint_id?: string): ClaimedDelivery[] {
    const lanes = endpoint_id === undefined
      ? [...this.#lanes.values()]
      : [this.#lanes.get(endpoint_id)].filter((lane) => lane !== undefined);
    return lanes.flatMap(({ waiting }) => waiting.splice(0)).flatMap((chain) => chain.deliveries);
  }

  /**
   * Removes waiting deliveries of endpoints that have become too slow, because they would prevent
   * claims of other endpoints. The caller releases each.
   */
  surplus(): ClaimedDelivery[] {
    const now = this.#now();
    const taken: ClaimedDelivery[] = [];
    for (const lane of this.#lanes.values()) {
      const { waiting, places } = lane;
      if (waiting.length === 0) continue;
      const queue_ms = places.load * places.paceNow(now) / places.count(now);
      if (queue_ms <= LONGEST_QUEUE_MS) continue;
      for (let left = places.load - mayClaim(lane, now); left > 0 && waiting.length > 0;) {
        const { deliveries } = waiting.pop()!;
        taken.push(...deliveries);
        left -= deliveries.length;
      }
    }
    return taken;
  }

  /** Returns the deliveries that each endpoint, environment and account may still claim. */
  rooms(): RelayRooms {
    const now = this.#now();
    const endpoints: Record<string, number> = {};
    const environments: Record<string, number> = {};
    // The operator chooses the names: an account can be called `__proto__`.
    const accounts: Record<string, number> = Object.create(null);
    for (const [endpoint_id, lane] of this.#lanes) {
      const [own, environment, account] = lane.holders;
      const most = mayClaim(lane, now);
      endpoints[endpoint_id] = most - own.load;
      environments[lane.public_id] ??= environment.count(now) * CLAIMED_PER_PLACE -
        environment.load;
      accounts[lane.account] ??= account.count(now) * CLAIMED_PER_PLACE - account.load;
      // Fast endpoints may claim ahead beyond the limits of their environment and account.
      const ahead = Math.max(0, most - OF_ENDPOINT.most * CLAIMED_PER_PLACE);
      environments[lane.public_id]! += ahead;
      accounts[lane.account]! += ahead;
    }
    for (const { account, holders } of this.#lanes.values()) {
      accounts[account] = Math.min(accounts[account]!, MAX_CLAIMED_OF_ACCOUNT - holders[2].load);
    }
    return {
      endpoints: atLeastZero(endpoints),
      environments: atLeastZero(environments),
      accounts: atLeastZero(accounts),
    };
  }

  #hasPlace({ failing, places, holders }: Lane): boolean {
    const now = this.#now();
    const account = holders[2];
    const most = account.running < RESERVED.few ? MAX_UNDER_WAY : MAX_UNDER_WAY - RESERVED.places;
    return this.#under_way < most && !(failing && places.running >= MAX_OF_FAILING) &&
      holders.every((holder) => holder.isFree(now));
  }

  #begin(lane: Lane, chain: Chain): Chain {
    chain.began_ms = this.#now();
    for (const places of lane.holders) places.enter(chain.began_ms);
    this.#under_way++;
    return chain;
  }

  #countClaimed({ holders }: Lane, by: 1 | -1): void {
    for (const places of holders) places.load += by;
    this.#claimed += by;
  }

  /** Removes an idle endpoint. The places of its environment and account stay. */
  #forget(endpoint_id: string): void {
    if (this.#lanes.get(endpoint_id)?.places.is_idle) this.#lanes.delete(endpoint_id);
  }

  #laneOf({ endpoint_id, public_id, account }: ClaimedDelivery): Lane {
    let lane = this.#lanes.get(endpoint_id);
    if (lane !== undefined) return lane;
    const places = new Slots(OF_ENDPOINT);
    lane = {
      public_id,
      account,
      places,
      holders: [places, this.#environments.of(public_id), this.#accounts.of(account)],
      waiting: [],
      failing: false,
    };
    this.#lanes.set(endpoint_id, lane);
    return lane;
  }
}

/** Returns the number of deliveries that an endpoint may have claimed at the same time. */
function mayClaim({ failing, places }: Lane, now_ms: number): number {
  if (failing) return MAX_OF_FAILING;
  const count = places.count(now_ms);
  if (places.pace_ms === null) return FIRST_CLAIM.endpoint;
  const ahead = count * AHEAD_MS / Math.max(1, places.pace_ms);
  return Math.max(count * CLAIMED_PER_PLACE, Math.min(AHEAD_MAX, Math.floor(ahead)));
}

function atLeastZero(rooms: Record<string, number>): Record<string, number> {
  for (const name in rooms) rooms[name] = Math.max(0, rooms[name]!);
  return rooms;
}
