/**
 * What a relay has claimed, and what of it may be sent now: a lane for each endpoint, in it chains of
 * deliveries that have to go one after another. Pure bookkeeping; the relay sends.
 *
 * Two limits: attempts under way (places), and claimed deliveries, which may wait here for a place.
 * Both are counted per endpoint, per environment (by its public id, which a reset keeps) and per
 * account. A fast endpoint may have more deliveries waiting: it takes them soon, and a turn that
 * claims many costs little more than a turn that claims one.
 */

import type { ClaimedDelivery, RelayRooms } from "../../store/webhook_store.ts";
import { type PlaceBounds, Places, PlacesByName } from "./places.ts";

/** Attempts under way in this isolate. */
const MAX_UNDER_WAY = 256;
/** `places` of them are for accounts with fewer than `few` attempts under way. */
const RESERVED = { places: 64, few: 4 };
/** Attempts under way at one endpoint, and at a failing one. */
const OF_ENDPOINT: PlaceBounds = { first: 4, most: 16, least: 2 };
const MAX_OF_FAILING = 2;
/** Of one environment. Two for each of 16 endpoints: a silent endpoint must not stop the others. */
const OF_ENVIRONMENT: PlaceBounds = { first: 16, most: 64, least: 32 };
/** Of one account: two accounts at their limit leave the reserved places free. */
const OF_ACCOUNT: PlaceBounds = { first: 32, most: 96, least: 48 };

/** Claimed deliveries for each place, so that the next one is ready when an attempt ends. */
const CLAIMED_PER_PLACE = 2;
/** An endpoint may have as many claimed deliveries as it takes in this time, up to `AHEAD_MAX`. */
const AHEAD_MS = 100;
const AHEAD_MAX = 512;
/** Claimed deliveries of this isolate, and of one account, so that others can claim as well. */
export const MAX_CLAIMED = 1024;
const MAX_CLAIMED_OF_ACCOUNT = 768;
/** Deliveries that would wait longer for a place are given back: half of a claim's longest wait. */
const LONGEST_QUEUE_MS = 4_000;

/** Limits of a first claim of an endpoint, environment or account. */
export const FIRST_CLAIM = {
  // As for a fast one, which earns its places before the next turn.
  endpoint: OF_ENDPOINT.most * CLAIMED_PER_PLACE,
  environment: OF_ENVIRONMENT.first * CLAIMED_PER_PLACE,
  account: OF_ACCOUNT.first * CLAIMED_PER_PLACE,
} as const;

/** Deliveries of one endpoint and subject. */
export interface Chain {
  /** In the order to send them in; at least one. */
  deliveries: ClaimedDelivery[];
  claimed_at_ms: number;
  /** When its attempt under way began, by the clock of the lanes. */
  began_ms: number;
}

/** The claimed deliveries of one endpoint. */
interface Lane {
  readonly public_id: string;
  readonly account: string;
  readonly places: Places;
  /** Of the endpoint, its environment and its account. */
  readonly holders: readonly [Places, Places, Places];
  readonly waiting: Chain[];
  failing: boolean;
}

/** The lanes of one relay. */
export class RelayLanes {
  readonly #now: () => number;
  readonly #lanes = new Map<string, Lane>();
  readonly #environments = new PlacesByName(OF_ENVIRONMENT);
  readonly #accounts = new PlacesByName(OF_ACCOUNT);
  readonly #suspects: Chain[] = [];
  #claimed = 0;
  #under_way = 0;

  /** @param now milliseconds of a monotonic clock */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Claimed deliveries that have not ended. */
  get claimed(): number {
    return this.#claimed;
  }

  /**
   * Adds the claims of a turn. A chain's deliveries are consecutive; a suspect is its own chain.
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
   * The chains that may begin now; each has a place until `leave`. Endpoints take turns, also
   * across calls: an endpoint that gets a place moves to the end. A suspect needs no place: there
   * is one at a time, and other suspects wait for it.
   */
  *enter(): Generator<Chain> {
    for (let chain = this.#suspects.shift(); chain; chain = this.#suspects.shift()) {
      yield this.#begin(this.#laneOf(chain.deliveries[0]!), chain);
    }
    // This loop visits a lane again after it has been set again.
    for (const [endpoint_id, lane] of this.#lanes) {
      if (lane.waiting.length === 0 || !this.#hasPlace(lane)) continue;
      this.#lanes.delete(endpoint_id);
      this.#lanes.set(endpoint_id, lane);
      yield this.#begin(lane, lane.waiting.shift()!);
    }
  }

  /** An attempt of a chain has ended; the next delivery of the chain keeps the place. */
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

  /** Removes a claimed delivery of which no attempt is made. */
  release(delivery: ClaimedDelivery): void {
    this.#countClaimed(this.#laneOf(delivery), -1);
    this.#forget(delivery.endpoint_id);
  }

  /** All deliveries of a chain have ended: frees its place. */
  leave({ deliveries: [delivery], began_ms }: Chain): void {
    for (const places of this.#laneOf(delivery!).holders) places.leave(began_ms);
    this.#under_way--;
    this.#forget(delivery!.endpoint_id);
  }

  /** Removes the waiting deliveries of one endpoint or of all; the caller releases each. */
  empty(endpoint_id?: string): ClaimedDelivery[] {
    const lanes = endpoint_id === undefined
      ? [...this.#lanes.values()]
      : [this.#lanes.get(endpoint_id)].filter((lane) => lane !== undefined);
    return lanes.flatMap(({ waiting }) => waiting.splice(0)).flatMap((chain) => chain.deliveries);
  }

  /**
   * Removes waiting deliveries of endpoints that have become too slow for them; the caller releases
   * each. Otherwise they would prevent claims of others.
   */
  surplus(): ClaimedDelivery[] {
    const now = this.#now();
    const taken: ClaimedDelivery[] = [];
    for (const lane of this.#lanes.values()) {
      const { waiting, places } = lane;
      if (waiting.length === 0) continue;
      const queue_ms = places.claimed * places.paceNow(now) / places.count(now);
      if (queue_ms <= LONGEST_QUEUE_MS) continue;
      for (let left = places.claimed - mayClaim(lane, now); left > 0 && waiting.length > 0;) {
        const { deliveries } = waiting.pop()!;
        taken.push(...deliveries);
        left -= deliveries.length;
      }
    }
    return taken;
  }

  /** How many more deliveries each endpoint, environment and account in these lanes may claim. */
  rooms(): RelayRooms {
    const now = this.#now();
    const endpoints: Record<string, number> = {};
    const environments: Record<string, number> = {};
    // The operator chooses the names: an account can be called `__proto__`.
    const accounts: Record<string, number> = Object.create(null);
    for (const [endpoint_id, lane] of this.#lanes) {
      const [own, environment, account] = lane.holders;
      const most = mayClaim(lane, now);
      endpoints[endpoint_id] = most - own.claimed;
      environments[lane.public_id] ??= environment.count(now) * CLAIMED_PER_PLACE -
        environment.claimed;
      accounts[lane.account] ??= account.count(now) * CLAIMED_PER_PLACE - account.claimed;
      // Plus the deliveries that its fast endpoints may claim ahead.
      const ahead = Math.max(0, most - OF_ENDPOINT.most * CLAIMED_PER_PLACE);
      environments[lane.public_id]! += ahead;
      accounts[lane.account]! += ahead;
    }
    for (const { account, holders } of this.#lanes.values()) {
      accounts[account] = Math.min(accounts[account]!, MAX_CLAIMED_OF_ACCOUNT - holders[2].claimed);
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
    const most = account.under_way < RESERVED.few ? MAX_UNDER_WAY : MAX_UNDER_WAY - RESERVED.places;
    return this.#under_way < most && !(failing && places.under_way >= MAX_OF_FAILING) &&
      holders.every((holder) => holder.hasPlace(now));
  }

  #begin(lane: Lane, chain: Chain): Chain {
    chain.began_ms = this.#now();
    for (const places of lane.holders) places.enter(chain.began_ms);
    this.#under_way++;
    return chain;
  }

  #countClaimed({ holders }: Lane, by: 1 | -1): void {
    for (const places of holders) places.claimed += by;
    this.#claimed += by;
  }

  /** Forgets an idle endpoint. Its environment and account are remembered. */
  #forget(endpoint_id: string): void {
    if (this.#lanes.get(endpoint_id)?.places.is_idle) this.#lanes.delete(endpoint_id);
  }

  #laneOf({ endpoint_id, public_id, account }: ClaimedDelivery): Lane {
    let lane = this.#lanes.get(endpoint_id);
    if (lane !== undefined) return lane;
    const places = new Places(OF_ENDPOINT);
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

/** How many deliveries of an endpoint may be claimed at a time. */
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
