/**
 * Calls of the entry functions, for one request each. Tenants alternate, and these calls
 * never use all connections of the pool. A tenant that sends too many requests delays itself, but
 * neither other tenants nor the statements that many requests share (request_batcher.ts). All
 * sandboxes of an account are one tenant (known_tenants.ts).
 *
 * Rate limits do not bound the number of calls: a request over its limit costs a call as well, and
 * a reset or a concurrent duplicate occupies its connection for seconds. Source: ADR 0001.
 */

import type { Database } from "./database.ts";
import { KnownTenants } from "./known_tenants.ts";
import { LOAD, loadParameter, type RequestedResource } from "./load_statement.ts";
import { type Access, type Admitted, type Row, untilFresh } from "./outcome.ts";
import { FairQueue, type FairQueueBounds } from "../jobs/fair_queue.ts";
import { batchRequests } from "./request_batcher.ts";

/**
 * Most calls that run: one less than the default number of connections of a pool (database.ts), and
 * of one tenant.
 */
const BOUNDS: FairQueueBounds = { slots: 3, levels: [2] };

export class EntryCalls {
  /** The tenants of keys, which `authenticate` learns. */
  readonly tenants = new KnownTenants();
  readonly #database: Database;
  readonly #check: (requested: RequestedResource) => Promise<Row>;
  readonly #queue: FairQueue;

  /** @param bounds only tests pass others */
  constructor(database: Database, bounds = BOUNDS) {
    this.#database = database;
    this.#queue = new FairQueue(bounds);
    this.#check = batchRequests<RequestedResource>(
      this.tenants,
      (list) => database.attempt(LOAD, [loadParameter(list)]),
    );
  }

  /** Checks a key and its scope, and counts the request. Throws the errors of `untilFresh`. */
  async authenticate(access: Access): Promise<void> {
    await untilFresh(access, async () => {
      const row = await this.#check({ access, kind: null, id: null, idempotency: null });
      this.tenants.learn(access.key_hash, row);
      return row;
    });
  }

  /**
   * Calls an entry function that returns one row for one request. Throws the errors of
   * `untilFresh`.
   */
  ask<T extends Row<string> = Row>(
    access: Access,
    text: string,
    parameters: readonly (string | number | null)[],
  ): Promise<Admitted<T>> {
    return untilFresh(access, async () => {
      const [row] = await this.run<T>(access, text, parameters);
      if (access.is_payer && row) this.tenants.learn(access.key_hash, row);
      return row;
    });
  }

  /** Runs a statement of a request when it is its tenant's turn. Throws `ApiError`. */
  run<T>(
    access: Access,
    text: string,
    parameters: readonly (string | number | null)[],
  ): Promise<T[]> {
    const tenant = this.tenants.nameOf(access.key_hash);
    return this.#queue.run([tenant], () => this.#database.query<T>(text, parameters));
  }
}
