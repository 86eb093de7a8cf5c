/**
 * Calls of the entry functions that answer one request each. Tenants alternate, and these calls
 * never use all connections of the pool. A tenant that sends too many requests delays itself, but
 * neither other tenants nor the statements that many requests share (coalescer.ts). All sandboxes of
 * an account are one tenant (known_tenants.ts).
 *
 * Rate limits do not bound the number of calls: a request over its limit costs a call as well, and
 * a reset or a twin occupies its connection for seconds. Source: ADR 0003.
 */

import type { Database } from "./database.ts";
import { KnownTenants } from "./known_tenants.ts";
import { LOAD, loadParameter, type RequestedResource } from "./load_statement.ts";
import { type Access, type Admitted, type Row, unauthorized, untilFresh } from "./outcome.ts";
import { batchRequests } from "./request_batcher.ts";
import { WaitingRequests } from "./tenant_places.ts";

/** Most calls under way. */
export interface CallLimits {
  under_way: number;
  of_tenant: number;
}

/** One less than the default number of connections of a pool (database.ts). */
const LIMITS: CallLimits = { under_way: 3, of_tenant: 2 };

/** A call that waits for its turn. */
interface Waiting {
  key_hash: string;
  start: () => void;
}

/** The calls of one pool. */
export class EntryCalls {
  /** The tenants of keys, from earlier answers. */
  readonly tenants = new KnownTenants();
  /** The requests that wait for their turn here, or elsewhere for something else. */
  readonly waits = new WaitingRequests(this.tenants);
  readonly #database: Database;
  readonly #limits: CallLimits;
  readonly #loadOwner: (asked: RequestedResource) => Promise<Row>;
  /** By tenant, each in order of arrival; the first queue has the next turn. */
  readonly #waiting = new Map<string, Waiting[]>();
  /** Keys of the calls under way. The tenant of a key may become known later. */
  readonly #under_way: string[] = [];

  /** @param limits only tests pass others */
  constructor(database: Database, limits: CallLimits = LIMITS) {
    this.#database = database;
    this.#limits = limits;
    this.#loadOwner = batchRequests<RequestedResource>(
      this.tenants,
      (list) => database.attempt(LOAD, [loadParameter(list)]),
    );
  }

  /**
   * Calls an entry function that answers one request with one row. Throws the errors of
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
    await this.#begin(access);
    try {
      return await this.#database.query<T>(text, parameters);
    } finally {
      this.#end(access.key_hash);
    }
  }

  /** Returns the tenant of a key. One query for each new key. Throws `unauthorized`. */
  async tenantOf(access: Access): Promise<string> {
    const { key_hash } = access;
    const known = this.tenants.of(key_hash);
    if (known !== undefined) return known;
    // Does not count against the rate limit, because the request itself will.
    const asked = { ...access, scope: null, rate_limits: null };
    const row = await this.#loadOwner({ access: asked, kind: null, id: null, idempotency: null });
    if (row.outcome === "unauthorized") throw unauthorized();
    // An outdated request names no tenant. Its next decision finds it.
    return this.tenants.of(key_hash) ?? key_hash;
  }

  /** Waits for the turn of the caller. */
  async #begin(access: Access): Promise<void> {
    const { key_hash } = access;
    // Only a call that must wait needs its tenant, so an idle service makes no second call.
    if (this.#hasRoom(this.#tenantOf(key_hash))) return void this.#under_way.push(key_hash);
    const tenant = await this.tenantOf(access);
    if (this.#hasRoom(tenant)) return void this.#under_way.push(key_hash);
    await this.waits.hold(key_hash, () => this.#turn(key_hash, tenant));
  }

  async #turn(key_hash: string, tenant: string): Promise<void> {
    const turn = Promise.withResolvers<void>();
    const waiting: Waiting = { key_hash, start: turn.resolve };
    const queue = this.#waiting.get(tenant);
    if (queue) queue.push(waiting);
    else this.#waiting.set(tenant, [waiting]);
    await turn.promise;
  }

  #tenantOf(key_hash: string): string {
    return this.tenants.of(key_hash) ?? key_hash;
  }

  /** Reports whether a call of a tenant may begin. If so, no other call of the tenant waits. */
  #hasRoom(tenant: string): boolean {
    const { under_way, of_tenant } = this.#limits;
    if (this.#under_way.length >= under_way) return false;
    return this.#under_way.filter((key) => this.#tenantOf(key) === tenant).length < of_tenant;
  }

  #end(key_hash: string): void {
    this.#under_way.splice(this.#under_way.indexOf(key_hash), 1);
    for (const [tenant, queue] of this.#waiting) {
      if (!this.#hasRoom(tenant)) continue;
      const next = queue.shift()!;
      // Moves to the end, so that the next call belongs to another tenant.
      this.#waiting.delete(tenant);
      if (queue.length > 0) this.#waiting.set(tenant, queue);
      this.#under_way.push(next.key_hash);
      next.start();
    }
  }
}
