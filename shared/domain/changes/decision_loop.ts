/**
 * Changes an existing payment, transfer or webhook endpoint in three steps: load, decide, commit.
 * If another isolate changes the resource between the load and the commit, all three run again
 * (architecture §2).
 */

import { FairQueue } from "../../jobs/fair_queue.ts";
import type { Access } from "../../store/outcome.ts";
import { databaseUnavailable } from "../../store/database.ts";
import type { Loaded, Store } from "../../store/store.ts";
import { type Reply, type ServiceRequest, withoutRateCount } from "./service_request.ts";

/**
 * Most decisions for one change. With two isolates that change the same resource, every second
 * decision is stale. With a limit of 10, some of 2 600 refunds that raced on two isolates failed.
 */
const MAX_DECISIONS = 20;
/** Longest pause before the second decision. It doubles with each further one, up to `last`. */
const PAUSE_MS = { first: 2, last: 64 };

/** Kinds of resources that requests change. */
type ChangedKind = "payments" | "transfers" | "webhook_endpoints";

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
   * limit. Throws `service_unavailable` after `MAX_DECISIONS`; then nothing was written.
   */
  run(
    request: ServiceRequest,
    kind: ChangedKind,
    id: string,
    decideAndCommit: DecideAndCommit,
  ): Promise<Reply> {
    const counted = withoutRateCount(request.access);
    return this.#queue.run([`${request.access.key_hash} ${id}`], async () => {
      for (let i = 0; i < MAX_DECISIONS; i++) {
        if (i > 0) await pauseAtRandom(Math.min(PAUSE_MS.first * 2 ** (i - 1), PAUSE_MS.last));
        const access = i === 0 ? request.access : counted;
        const loaded = await this.#store.load(access, kind, id, request.idempotency);
        if (loaded.outcome === "replay") return { answer: loaded.answer, replayed: true };
        const reply = await decideAndCommit(loaded, counted);
        if (reply) return reply;
      }
      throw databaseUnavailable();
    });
  }
}

/** Waits for a random time, so that competing isolates do not collide again. */
function pauseAtRandom(longest_ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * longest_ms));
}
