/**
 * Calls of the entry functions, for one request each. Tenants alternate, and these calls
 * never use all connections of the pool. A tenant that sends too many requests delays itself, but
 * neither other tenants nor the statements that many requests share (request_batcher.ts). All sandboxes of
 * an account are one tenant (known_tenants.ts).
 *
 * Rate limits do not bound the number of calls: a request over its limit costs a call as well, and
 * a reset or a concurrent duplicate occupies its connection for seconds. Source: ADR 0003.
 */

import type { Database } from "./database.ts";
import { KnownTenants } from "./known_tenants.ts";
import { LOAD, loadParameter, type RequestedResource } from "./load_statement.ts";
import { type Access, type Admitted, type Row, unauthorized, untilFresh } from "./outcome.ts";
import { FairQueue, type FairQueueBounds, type Slot } from "../jobs/fair_queue.ts";
import { batchRequests } from "./request_batcher.ts";
import { WaitingRequests } from "./waiting_requests.ts";

/**
 * Most calls that run: one less than the default number of connections of a pool (database.ts), and
 * of one tenant.
 */
const BOUNDS: FairQueueBounds = { slots: 3, levels: [2] };

/** The calls of one pool. */
export class EntryCalls {
  /** The tenants of keys, from earlier responses. */
  readonly tenants = new KnownTenants();
  /** The requests that wait for their turn here, or elsewhere for something else. */
  readonly waits = new WaitingRequests(this.tenants);
  readonly #database: Database;
  readonly #loadOwner: (requested: RequestedResource) => Promise<Row>;
  readonly #queue: FairQueue;
  /** The slots that were taken before the tenant of their key was known. */
  readonly #early = new Map<Slot, string>();

  /** @param bounds only tests pass others */
  constructor(database: Database, bounds = BOUNDS) {
    this.#database = database;
    this.#queue = new FairQueue(bounds);
    this.#loadOwner = batchRequests<RequestedResource>(
      this.tenants,
      (list) => database.attempt(LOAD, [loadParameter(list)]),
    );
  }

  /**
   * Calls an entry function that returns one row for one request. Throws the errors of
   * `untilFresh`, and `rate_limited` if too many requests of the tenant wait for their turn.
   */
  ask<T extends Row<string> = Row>(
    access: Access,
    text: string,
    parameters: readonly (string | number | null)[],
  ): Promise<Admitted<T>> {
    return this.untilFresh(access, async () => {
      const [row] = await this.run<T>(access, text, parameters);
      if (row) this.tenants.learn(access.key_hash, row);
      return row;
    });
  }

  /** Calls `ask` as `untilFresh` does. */
  untilFresh<T extends Row<string>>(
    access: Access,
    ask: () => Promise<T | undefined>,
  ): Promise<Admitted<T>> {
    return untilFresh(access, this.waits, ask);
  }

  /** Runs a statement of a request when it is its tenant's turn. Throws `ApiError`. */
  async run<T>(
    access: Access,
    text: string,
    parameters: readonly (string | number | null)[],
  ): Promise<T[]> {
    const slot = await this.#takeSlot(access);
    try {
      return await this.#database.query<T>(text, parameters);
    } finally {
      this.#early.delete(slot);
      slot.leave();
    }
  }

  /** Returns the tenant of a key. One query for each new key. Throws `unauthorized`. */
  async tenantOf(access: Access): Promise<string> {
    const { key_hash } = access;
    const known = this.tenants.of(key_hash);
    if (known !== undefined) return known;
    // Does not count against the rate limit, because the request itself will.
    const requested = { ...access, scope: null, rate_limits: null };
    const row = await this.#loadOwner({
      access: requested,
      kind: null,
      id: null,
      idempotency: null,
    });
    if (row.outcome === "unauthorized") throw unauthorized();
    // An outdated request names no tenant. Its next decision finds it.
    return this.tenants.nameOf(key_hash);
  }

  async #takeSlot(access: Access): Promise<Slot> {
    const { key_hash } = access;
    // Only a call that must wait needs its tenant, so an idle service makes no second call.
    this.#moveEarly();
    const free = this.#queue.tryTake([this.tenants.nameOf(key_hash)]);
    if (free !== null) {
      if (this.tenants.of(key_hash) === undefined) this.#early.set(free, key_hash);
      return free;
    }
    const tenant = await this.tenantOf(access);
    this.#moveEarly();
    return await this.waits.take(key_hash, this.#queue, [tenant]);
  }

  /** Gives slots to their tenants, as far as they have become known. */
  #moveEarly(): void {
    for (const [slot, key_hash] of this.#early) {
      const tenant = this.tenants.of(key_hash);
      if (tenant === undefined) continue;
      slot.move([tenant]);
      this.#early.delete(slot);
    }
  }
}
