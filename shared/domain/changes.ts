/**
 * Load, decide, commit: how every change of an existing payment or transfer goes, and how a new one
 * is written. Rules are decided by the pure modules beside this one; the store commits a decided
 * change whole or not at all.
 */

import { ApiError } from "../core/errors.ts";
import type { Answer, Change } from "../store/change.ts";
import { databaseAway } from "../store/database.ts";
import type { Access, Idempotency } from "../store/outcome.ts";
import type { Committed, Store } from "../store/store.ts";
import { renderError } from "./error_body.ts";
import type { RequestContext } from "./event.ts";
import { KeyedQueue } from "./keyed_queue.ts";
import { type Provider, unconfiguredProvider } from "./provider.ts";
import { answerOnly, type Subject } from "./resource_change.ts";
import { sandboxProvider } from "./sandbox_provider.ts";

/** A request as the domain sees it. */
export interface ServiceRequest {
  access: Access;
  context: RequestContext;
  idempotency: Idempotency | null;
}

/** An answer, and whether it is that of an earlier request with the same key. */
export interface Reply {
  answer: Answer;
  replayed: boolean;
}

/** Decides a change of a loaded resource; null when there is nothing to change. */
export type Decide<T extends Subject> = (subject: T) => Change | null | Promise<Change | null>;

/**
 * How often a change is decided when other isolates change the payment too (architecture §2). Each
 * time but the first it may have lost to any of them: of two isolates to the other, every second
 * time. With 10 some of 2 600 refunds racing on two isolates ran out of turns.
 */
const MAX_DECISIONS = 20;
/**
 * Longest pause before deciding again; the limit doubles with each loss, up to the second figure.
 */
const PAUSE_MS = { first: 2, last: 64 };
/** No id of anything: asks the database for a kept answer alone. */
const NO_ID = "none";

/** Writes changes through a store, one queue for each resource. */
export class Changes {
  readonly #store: Store;
  readonly #queue = new KeyedQueue();

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Writes something new.
   * @param decide makes the change; what it throws is the answer, unless the same request was
   *   answered before: what the clock refuses by now, such as a card's expiry, may have been accepted
   */
  async create(request: ServiceRequest, decide: () => Promise<Change>): Promise<Reply> {
    let change: Change;
    try {
      change = await decide();
    } catch (error) {
      const kept = await this.#keptReply(request);
      if (kept) return kept;
      throw error;
    }
    const committed = await this.#store.commit(request.access, change, request.idempotency);
    if (committed.outcome === "insufficient") return await this.#refuseFunds(request);
    return replyOf(committed) ?? unavailable();
  }

  /** Load, decide, commit; again when the resource has changed in between. */
  change<T extends Subject>(
    request: ServiceRequest,
    kind: "payments" | "transfers",
    id: string,
    decide: Decide<T>,
  ): Promise<Reply> {
    return this.#queue.run(`${request.access.key_hash} ${id}`, async () => {
      for (let i = 0; i < MAX_DECISIONS; i++) {
        if (i > 0) await pauseAtRandom(Math.min(PAUSE_MS.first * 2 ** (i - 1), PAUSE_MS.last));
        const access = i === 0 ? request.access : countedAlready(request.access);
        const loaded = await this.#store.load(access, kind, id, request.idempotency);
        if (loaded.outcome === "replay") return { answer: loaded.answer, replayed: true };
        const change = await decideOrKeep(request, loaded.body, decide);
        if ("status" in change) return { answer: change, replayed: false };
        const reply = replyOf(
          await this.#store.commit(countedAlready(request.access), change, request.idempotency),
        );
        if (reply) return reply;
      }
      return unavailable();
    });
  }

  /** The kept answer to the same request under its key, or null. One round trip with a key. */
  async #keptReply(request: ServiceRequest): Promise<Reply | null> {
    if (!request.idempotency) return null;
    try {
      const loaded = await this.#store.load(request.access, "payments", NO_ID, request.idempotency);
      return loaded.outcome === "replay" ? { answer: loaded.answer, replayed: true } : null;
    } catch (error) {
      // A refused request is no conflict: schema comes before replay (contract §6).
      const is_none = error instanceof ApiError &&
        (error.code === "not_found" || error.code === "idempotency_conflict");
      if (is_none) return null;
      throw error;
    }
  }

  /** The 402 of a transfer that is more than the balance; kept like every 402. */
  async #refuseFunds(request: ServiceRequest): Promise<Reply> {
    const error = new ApiError(
      "balance_insufficient",
      "Cannot transfer: the amount is more than the available balance in this currency",
    );
    if (!request.idempotency) throw error;
    const body = renderError(error, request.context.request_id);
    const kept = answerOnly(null, { status: error.status, body });
    const access = countedAlready(request.access);
    return replyOf(await this.#store.commit(access, kept, request.idempotency)) ?? unavailable();
  }
}

/** The access of a request's later round trips: the first has counted it. */
export function countedAlready(access: Access): Access {
  return {
    ...access,
    rate_limits: null,
    observe: (api_key_id) => access.observe(api_key_id, null),
  };
}

/** The provider of a request's mode. */
export function providerOf(context: RequestContext): Provider {
  return context.livemode ? unconfiguredProvider : sandboxProvider;
}

/** The reply of a commit; null when it has to be decided again. */
export function replyOf(committed: Committed): Reply | null {
  if (committed.outcome === "stale" || committed.outcome === "insufficient") return null;
  return { answer: committed.answer, replayed: committed.outcome === "replay" };
}

/** Throws the 503 of a change that lost too often; nothing has happened. */
export function unavailable(): never {
  throw databaseAway();
}

/**
 * The change to commit, or the answer when there is none to commit. Answers that are kept though
 * nothing changes (a refused move, an advance to where the resource is) become a change of their own
 * when the request carries an idempotency key.
 */
async function decideOrKeep<T extends Subject>(
  request: ServiceRequest,
  body: string,
  decide: Decide<T>,
): Promise<Change | Answer> {
  const subject: T = JSON.parse(body);
  let answer: Answer;
  try {
    const change = await decide(subject);
    if (change) return change;
    answer = { status: 200, body };
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "invalid_state") throw error;
    if (!request.idempotency) throw error;
    answer = { status: error.status, body: renderError(error, request.context.request_id) };
  }
  return request.idempotency ? answerOnly(subject, answer) : answer;
}

/** Lets the isolates that lost to each other come back at different times. */
function pauseAtRandom(longest_ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * longest_ms));
}
