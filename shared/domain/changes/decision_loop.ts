/**
 * Load, decide, commit: how every change of an existing payment, transfer or webhook endpoint goes.
 * When another isolate changes the resource between the load and the commit, all three run again.
 */

import type { Access } from "../../store/outcome.ts";
import { databaseAway } from "../../store/database.ts";
import type { Loaded, Store } from "../../store/store.ts";
import { KeyedQueue } from "./keyed_queue.ts";
import { countedAlready, type Reply, type ServiceRequest } from "./service_request.ts";

/**
 * How often a change is decided when other isolates change the resource too (architecture §2). Each
 * decision after the first can lose to any of them: with two isolates, every second one does. With a
 * limit of 10, some of 2 600 refunds that raced on two isolates were refused.
 */
const MAX_DECISIONS = 20;
/** Longest pause before the second decision; the limit doubles with each loss, up to `last`. */
const PAUSE_MS = { first: 2, last: 64 };

/** Kinds of resources that requests change. */
type ChangedKind = "payments" | "transfers" | "webhook_endpoints";

/**
 * Decides on a loaded resource and commits the decision with `access`. Null when the resource has
 * changed since the load.
 */
type DecideAndCommit = (
  loaded: Extract<Loaded, { outcome: "found" }>,
  access: Access,
) => Promise<Reply | null>;

/** Changes resources of one store, one queue for each resource. */
export class DecisionLoop {
  readonly #store: Store;
  readonly #queue = new KeyedQueue();

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Runs a change until it is committed or refused. Only the first load counts against the rate.
   * Throws `service_unavailable` after too many losses; then nothing has happened.
   */
  run(
    request: ServiceRequest,
    kind: ChangedKind,
    id: string,
    decideAndCommit: DecideAndCommit,
  ): Promise<Reply> {
    const counted = countedAlready(request.access);
    return this.#queue.run(`${request.access.key_hash} ${id}`, async () => {
      for (let i = 0; i < MAX_DECISIONS; i++) {
        if (i > 0) await pauseAtRandom(Math.min(PAUSE_MS.first * 2 ** (i - 1), PAUSE_MS.last));
        const access = i === 0 ? request.access : counted;
        const loaded = await this.#store.load(access, kind, id, request.idempotency);
        if (loaded.outcome === "replay") return { answer: loaded.answer, replayed: true };
        const reply = await decideAndCommit(loaded, counted);
        if (reply) return reply;
      }
      throw databaseAway();
    });
  }
}

/** Lets the isolates that lost to each other come back at different times. */
function pauseAtRandom(longest_ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * longest_ms));
}
