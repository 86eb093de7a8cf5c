/**
 * Changes an existing payment, transfer, checkout or webhook endpoint in three steps: load, decide,
 * commit.
 * If another isolate changes the resource between the load and the commit, all three run again
 * (architecture §2).
 */

import { FairQueue } from "../../jobs/fair_queue.ts";
import type { Access } from "../../store/outcome.ts";
import type { Loaded, Store } from "../../store/store.ts";
import { type Reply, type ServiceRequest, withoutRateCount } from "./service_request.ts";

type ChangedKind = "payments" | "transfers" | "checkouts" | "webhook_endpoints";

/**
 * Decides on a loaded resource and commits the change with `access`. Returns null if the resource
 * has changed since the load.
 */
type DecideAndCommit = (
  loaded: Extract<Loaded, { outcome: "found" }>,
  access: Access,
) => Promise<Reply | null>;

/** Changes resources of one store. Changes of one resource with one key run one at a time. */
export class DecisionLoop {
  readonly #store: Store;
  readonly #queue = new FairQueue({ slots: Infinity, levels: [1] });

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Runs a change until it is committed or refused. Only the first load counts against the rate
   * limit. Throws the errors of `Retries.again`.
   */
  run(
    request: ServiceRequest,
    kind: ChangedKind,
    id: string,
    decideAndCommit: DecideAndCommit,
  ): Promise<Reply> {
    const counted = withoutRateCount(request.access);
    return this.#queue.run(
      [`${request.access.key_hash} ${id}`],
      () =>
        request.access.retries.untilDecided(async (n) => {
          const access = n === 0 ? request.access : counted;
          const loaded = await this.#store.load(access, kind, id, request.idempotency);
          if (loaded.outcome === "replay") return { response: loaded.response, replayed: true };
          return await decideAndCommit(loaded, counted);
        }),
    );
  }
}
