/**
 * Writes new payments and transfers and changes existing ones. The pure modules beside this one
 * decide the rules; the store commits a decided change whole or not at all.
 */

import { ApiError } from "../../core/errors.ts";
import type { Answer, Change } from "../../store/commit_rows.ts";
import { databaseAway } from "../../store/database.ts";
import type { Committed, Store } from "../../store/store.ts";
import { DecisionLoop } from "./decision_loop.ts";
import { renderError } from "./error_body.ts";
import type { RequestContext } from "./event.ts";
import { type Provider, unconfiguredProvider } from "../providers/provider.ts";
import { answerOnly, type Subject } from "./change_builder.ts";
import { sandboxProvider } from "../providers/sandbox_provider.ts";
import { countedAlready, type Reply, type ServiceRequest } from "./service_request.ts";

/** Decides a change of a loaded resource; null when there is nothing to change. */
type Decide<T extends Subject> = (subject: T) => Change | null | Promise<Change | null>;

/** No id of anything: asks the database for a kept answer alone. */
const NO_ID = "none";

/** Writes changes through a store. */
export class ChangeWriter {
  readonly #store: Store;
  readonly #loop: DecisionLoop;

  constructor(store: Store) {
    this.#store = store;
    this.#loop = new DecisionLoop(store);
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

  /** ChangeWriter a payment or transfer; decides again when it has changed in between. */
  change<T extends Subject>(
    request: ServiceRequest,
    kind: "payments" | "transfers",
    id: string,
    decide: Decide<T>,
  ): Promise<Reply> {
    return this.#loop.run(request, kind, id, async ({ body }, access) => {
      const change = await decideOrKeep(request, body, decide);
      if ("status" in change) return { answer: change, replayed: false };
      return replyOf(await this.#store.commit(access, change, request.idempotency));
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

/** The provider of a request's mode. */
export function providerOf(context: RequestContext): Provider {
  return context.livemode ? unconfiguredProvider : sandboxProvider;
}

/** The reply of a commit; null when it has to be decided again. */
export function replyOf(committed: Committed): Reply | null {
  if (committed.outcome === "stale" || committed.outcome === "insufficient") return null;
  return { answer: committed.answer, replayed: committed.outcome === "replay" };
}

/** Throws the 503 of a change that was not committed; nothing has happened. */
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
