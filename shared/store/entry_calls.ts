/**
 * Calls of the entry functions that answer one request each. Tenants take turns, and these calls never
 * take all connections of the pool. A tenant that sends too many of them delays itself, but neither the
 * calls of others nor the statements that many requests share (coalescer.ts).
 *
 * Rate limits do not bound the number of calls: a request over its limit costs a call as well, and a
 * reset or a twin keeps its connection for seconds. Source: ADR 0035.
 */

import { Coalescer } from "./coalescer.ts";
import type { Database } from "./database.ts";
import { KnownEnvironments } from "./known_environments.ts";
import { LOAD, loadParameter, type RequestedResource } from "./load_statement.ts";
import { type Access, type Admitted, type Row, unauthorized, untilFresh } from "./outcome.ts";

/** How many calls may be under way. */
export interface CallLimits {
  under_way: number;
  of_tenant: number;
}

/** A pool has four connections unless the operator says otherwise (database.ts). */
const LIMITS: CallLimits = { under_way: 3, of_tenant: 2 };

/** A call whose turn has not come. */
interface Waiting {
  key_hash: string;
  start: () => void;
}

/** The calls of one pool. */
export class EntryCalls {
  /** The environments of keys, from the answers of this pool. */
  readonly environments = new KnownEnvironments();
  readonly #database: Database;
  readonly #limits: CallLimits;
  readonly #owners: Coalescer<RequestedResource>;
  /** By tenant, each in order of arrival; the first queue has the next turn. */
  readonly #waiting = new Map<string, Waiting[]>();
  /** Keys of the calls under way. The tenant of a key may become known later. */
  readonly #under_way: string[] = [];

  /** @param limits others only in tests */
  constructor(database: Database, limits: CallLimits = LIMITS) {
    this.#database = database;
    this.#limits = limits;
    this.#owners = new Coalescer(
      {
        send: (list) => database.attempt(LOAD, [loadParameter(list)]),
        weigh: () => 0,
      },
      this.environments,
    );
  }

  /** Calls an entry function that answers one request with one row, and admits the row. */
  ask<T extends Row<string> = Row>(
    access: Access,
    text: string,
    parameters: readonly (string | number | null)[],
  ): Promise<Admitted<T>> {
    return untilFresh(access, async () => {
      await this.#begin(access);
      try {
        const [row] = await this.#database.query<T>(text, parameters);
        return row;
      } finally {
        this.#end(access.key_hash);
      }
    });
  }

  /** The environment of a key; asks the database once for each key. Throws `unauthorized`. */
  async environmentOf(access: Access): Promise<string> {
    const known = this.environments.of(access.key_hash);
    if (known !== undefined) return known;
    // Not counted: the request itself will be.
    const asked = { ...access, scope: null, rate_limits: null };
    const row = await this.#owners.ask({ access: asked, kind: null, id: null, idempotency: null });
    if (row.environment_id === null) throw unauthorized();
    return row.environment_id;
  }

  /** Waits for the turn of the caller. */
  async #begin(access: Access): Promise<void> {
    const { key_hash } = access;
    // The tenant matters only if calls wait, so an idle service makes no second call.
    if (this.#hasRoom(this.#tenantOf(key_hash))) return void this.#under_way.push(key_hash);
    const tenant = await this.environmentOf(access);
    if (this.#hasRoom(tenant)) return void this.#under_way.push(key_hash);
    const turn = Promise.withResolvers<void>();
    const waiting: Waiting = { key_hash, start: turn.resolve };
    const queue = this.#waiting.get(tenant);
    if (queue) queue.push(waiting);
    else this.#waiting.set(tenant, [waiting]);
    await turn.promise;
  }

  #tenantOf(key_hash: string): string {
    return this.environments.of(key_hash) ?? key_hash;
  }

  /** Whether a tenant's call may begin. If so, none of the tenant's calls waits. */
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
      // Last in line, so that the next call is another tenant's.
      this.#waiting.delete(tenant);
      if (queue.length > 0) this.#waiting.set(tenant, queue);
      this.#under_way.push(next.key_hash);
      next.start();
    }
  }
}
