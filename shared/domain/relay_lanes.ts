/**
 * What a relay has claimed, and what of it may be sent now: a lane for each endpoint, in it chains of
 * deliveries that have to go one after another. Pure bookkeeping; the relay sends.
 *
 * Two bounds: how much is under way (places at receivers), and how much is claimed (what may wait
 * here for a place). An endpoint that answers quickly may have more waiting than others: it is
 * worked off in a moment, and a turn that claims much costs little more than one that claims one.
 */

import type { ClaimedDelivery } from "../store/webhook_store.ts";

/** Attempts under way in all, of this isolate. */
const MAX_UNDER_WAY = 256;
/** Attempts under way of one environment: a tenant whose receivers never answer stops no other. */
const MAX_OF_ENVIRONMENT = 64;
/** Attempts under way at one endpoint; at one that is failing. */
const MAX_OF_ENDPOINT = { healthy: 16, failing: 2 };

/** Claimed of one endpoint and of one environment, for each place: the next are at hand. */
const CLAIMED_PER_PLACE = 2;
/** An endpoint may have as much claimed as it takes in this time, up to a number. */
const AHEAD_MS = 100;
const AHEAD_MAX = 512;
/** Weight of the newest attempt in an endpoint's pace. */
const PACE_WEIGHT = 1 / 8;

/** Claimed when a relay knows nothing of an endpoint or environment yet. */
export const FIRST_CLAIM = {
  endpoint: MAX_OF_ENDPOINT.healthy * CLAIMED_PER_PLACE,
  environment: MAX_OF_ENVIRONMENT * CLAIMED_PER_PLACE,
} as const;

/** Deliveries of one endpoint and subject. */
export interface Chain {
  /** In the order to send them in; at least one. */
  deliveries: ClaimedDelivery[];
  claimed_at_ms: number;
}

/** What there is of one endpoint. */
interface Lane {
  readonly environment: Environment;
  readonly waiting: Chain[];
  claimed: number;
  under_way: number;
  failing: boolean;
  /** Mean time of an attempt; null before the first has ended. */
  pace_ms: number | null;
}

/** What there is of one environment. */
interface Environment {
  readonly id: string;
  readonly lanes: Set<Lane>;
  claimed: number;
  under_way: number;
}

/** The lanes of one relay. */
export class RelayLanes {
  readonly #lanes = new Map<string, Lane>();
  readonly #environments = new Map<string, Environment>();
  #claimed = 0;
  #under_way = 0;

  /** Deliveries that are claimed and have not ended. */
  get claimed(): number {
    return this.#claimed;
  }

  /** Takes what a turn has claimed; a chain's deliveries follow each other. */
  add(deliveries: readonly ClaimedDelivery[], claimed_at_ms: number): void {
    let chain: Chain | undefined;
    for (const delivery of deliveries) {
      const last = chain?.deliveries[0];
      const lane = this.#laneOf(delivery);
      lane.failing = delivery.failing_since !== null;
      if (
        last?.endpoint_id === delivery.endpoint_id && last.subject_id === delivery.subject_id
      ) {
        chain!.deliveries.push(delivery);
      } else lane.waiting.push(chain = { deliveries: [delivery], claimed_at_ms });
      this.#count(lane, "claimed", 1);
    }
  }

  /**
   * The chains that may begin now; each has a place until `leave`. Endpoints take turns, also from one
   * call to the next: who has had a place comes last.
   */
  *enter(): Generator<Chain> {
    // A lane that is set again is met again by this loop.
    for (const [endpoint_id, lane] of this.#lanes) {
      if (lane.waiting.length === 0 || !this.#hasPlace(lane)) continue;
      this.#lanes.delete(endpoint_id);
      this.#lanes.set(endpoint_id, lane);
      this.#count(lane, "under_way", 1);
      yield lane.waiting.shift()!;
    }
  }

  /** An attempt has ended, or was let go without one (`took_ms` null). */
  end(delivery: ClaimedDelivery, took_ms: number | null, delivered: boolean): void {
    const lane = this.#laneOf(delivery);
    this.#count(lane, "claimed", -1);
    if (took_ms === null) return;
    lane.failing = !delivered;
    lane.pace_ms = lane.pace_ms === null
      ? took_ms
      : lane.pace_ms + (took_ms - lane.pace_ms) * PACE_WEIGHT;
  }

  /** A chain is over, all of its deliveries have ended. */
  leave({ deliveries: [delivery] }: Chain): void {
    const lane = this.#laneOf(delivery!);
    this.#count(lane, "under_way", -1);
    if (lane.claimed > 0 || lane.under_way > 0) return;
    const { environment } = lane;
    this.#lanes.delete(delivery!.endpoint_id);
    environment.lanes.delete(lane);
    if (environment.lanes.size === 0) this.#environments.delete(environment.id);
  }

  /** Takes what waits of an endpoint out of its lane; the caller ends each delivery. */
  empty(endpoint_id: string): ClaimedDelivery[] {
    return this.#lanes.get(endpoint_id)?.waiting.splice(0).flatMap(({ deliveries }) =>
      deliveries
    ) ?? [];
  }

  /** How much more there may be of each endpoint and environment that has something here. */
  rooms(): Record<string, number> {
    const rooms: Record<string, number> = {};
    for (const [endpoint_id, lane] of this.#lanes) {
      rooms[endpoint_id] = Math.max(0, mayClaim(lane) - lane.claimed);
    }
    for (const { id, lanes, claimed } of this.#environments.values()) {
      let most = FIRST_CLAIM.environment;
      for (const lane of lanes) most += Math.max(0, mayClaim(lane) - FIRST_CLAIM.endpoint);
      rooms[id] = Math.max(0, most - claimed);
    }
    return rooms;
  }

  #hasPlace({ under_way, failing, environment }: Lane): boolean {
    return under_way < (failing ? MAX_OF_ENDPOINT.failing : MAX_OF_ENDPOINT.healthy) &&
      environment.under_way < MAX_OF_ENVIRONMENT && this.#under_way < MAX_UNDER_WAY;
  }

  #count(lane: Lane, what: "claimed" | "under_way", by: 1 | -1): void {
    lane[what] += by;
    lane.environment[what] += by;
    if (what === "claimed") this.#claimed += by;
    else this.#under_way += by;
  }

  #laneOf({ endpoint_id, environment_id }: ClaimedDelivery): Lane {
    let lane = this.#lanes.get(endpoint_id);
    if (lane !== undefined) return lane;
    let environment = this.#environments.get(environment_id);
    if (environment === undefined) {
      environment = { id: environment_id, lanes: new Set(), claimed: 0, under_way: 0 };
      this.#environments.set(environment_id, environment);
    }
    lane = { environment, waiting: [], claimed: 0, under_way: 0, failing: false, pace_ms: null };
    environment.lanes.add(lane);
    this.#lanes.set(endpoint_id, lane);
    return lane;
  }
}

/** How much of an endpoint may be claimed at a time. */
function mayClaim({ failing, pace_ms }: Lane): number {
  if (failing) return MAX_OF_ENDPOINT.failing;
  const ahead = pace_ms === null ? 0 : MAX_OF_ENDPOINT.healthy * AHEAD_MS / Math.max(1, pace_ms);
  return Math.max(FIRST_CLAIM.endpoint, Math.min(AHEAD_MAX, Math.floor(ahead)));
}
