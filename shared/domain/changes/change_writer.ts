/**
 * Creates and changes payments and transfers. The operations and the advances of sandboxes
 * decide a change, and the store commits it whole or not at all.
 */

import { ApiError, serviceUnavailable } from "../../core/errors.ts";
import { span } from "../../core/tracing.ts";
import type { Change, StoredResponse } from "../../store/commit_rows.ts";
import type { Committed, Store } from "../../store/store.ts";
import { DecisionLoop } from "./decision_loop.ts";
import { renderError } from "./error_body.ts";
import { responseOnly, type Subject } from "./change_builder.ts";
import { readPayment } from "./read_resource.ts";
import { type Reply, type ServiceRequest, withoutRateCount } from "./service_request.ts";

/** Decides a change of a loaded resource. Null: the resource stays as it is. */
type Decide<T extends Subject> = (subject: T) => Change | null | Promise<Change | null>;

/** An id that no resource has: the load then looks for a stored response only. */
const NO_ID = "none";

export class ChangeWriter {
  readonly #store: Store;
  readonly #loop: DecisionLoop;

  constructor(store: Store) {
    this.#store = store;
    this.#loop = new DecisionLoop(store);
  }

  /**
   * Creates a payment or transfer.
   * @param decide makes the change. If it throws, the stored response of an earlier identical
   * request
   *   comes first: a card can have expired since then
   */
  create(request: ServiceRequest, decide: () => Change | Promise<Change>): Promise<Reply> {
    return request.access.retries.untilDecided(async () => {
      let change: Change;
      try {
        change = await span("decide", decide);
      } catch (error) {
        const stored = await this.#storedReply(request);
        if (stored) return stored;
        if (!isFinalRefusal(error)) throw error;
        return await this.#refuse(request, error);
      }
      const committed = await this.#store.commit(request.access, change, request.idempotency);
      if (committed.outcome === "insufficient") {
        return await this.#refuse(
          request,
          new ApiError(
            "balance_insufficient",
            "Cannot transfer: the amount is more than the available balance in this currency",
          ),
        );
      }
      const reply = replyOf(committed, change);
      // A new resource is decided again only if its declared fault is used up, or if another one of
      // the same statement uses its mandate, or its instrument or checkout has changed.
      const can_change = change.fault_id !== undefined || change.instruments || change.checkouts;
      return reply || can_change ? reply : unavailable();
    });
  }

  /** Changes a payment or transfer. Decides again if another request has changed it meanwhile. */
  change<T extends Subject>(
    request: ServiceRequest,
    kind: "payments" | "transfers",
    id: string,
    decide: Decide<T>,
  ): Promise<Reply> {
    return this.#loop.run(request, kind, id, async ({ body }, access) => {
      const subject = kind === "payments" ? readPayment(body) : JSON.parse(body);
      let change: Change | StoredResponse;
      try {
        change = await span(
          "decide",
          () => decideOrStore(request, subject as T, body, decide),
        );
      } catch (error) {
        // A concurrent duplicate can have changed the resource after the load looked for its key.
        const stored = await this.#storedReply({ ...request, access });
        if (stored) return stored;
        throw error;
      }
      if ("status" in change) return { response: change, replayed: false };
      return replyOf(await this.#store.commit(access, change, request.idempotency), change);
    });
  }

  /** Loads the stored response of the same request, or null. One round trip if there is a key. */
  async #storedReply(request: ServiceRequest): Promise<Reply | null> {
    if (!request.idempotency) return null;
    try {
      const loaded = await this.#store.load(request.access, "payments", NO_ID, request.idempotency);
      return loaded.outcome === "replay" ? { response: loaded.response, replayed: true } : null;
    } catch (error) {
      // The fault of the request comes before an idempotency conflict (contract §6).
      const is_none = error instanceof ApiError &&
        (error.code === "not_found" || error.code === "idempotency_conflict");
      if (is_none) return null;
      throw error;
    }
  }

  /** Returns an error to a create, and stores it like every 402 and 409. */
  async #refuse(request: ServiceRequest, error: ApiError): Promise<Reply> {
    if (!request.idempotency) throw error;
    const body = renderError(error, request.context);
    const stored = responseOnly(null, { status: error.status, body });
    const access = withoutRateCount(request.access);
    return replyOf(await this.#store.commit(access, stored, request.idempotency)) ?? unavailable();
  }
}

/**
 * Reports whether an instrument has ended or failed, or a checkout takes no attempt. An instrument
 * that is pending can become active, and an attempt that is under way can fail.
 */
export function isFinalRefusal(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === "invalid_state" &&
    !["pending", "processing"].includes(error.details["current_status"] as string);
}

/** Returns the reply of a commit, or null if the change must be decided again. */
export function replyOf(
  committed: Committed,
  { fault_id }: Pick<Change, "fault_id"> = {},
): Reply | null {
  if (committed.outcome === "stale" || committed.outcome === "insufficient") return null;
  const { response } = committed;
  if (committed.outcome === "replay") return { response, replayed: true };
  const { operation } = committed;
  return {
    response,
    replayed: false,
    ...(operation && { operation }),
    ...(fault_id !== undefined && { fault_id }),
  };
}

/** Throws the 503 for a change that was not committed. Nothing was written. */
export function unavailable(): never {
  throw serviceUnavailable();
}

/**
 * Returns the change to commit, or the response if there is no change. With an idempotency key, a
 * response without a change (a refused move, or an advance to the current status) becomes a change
 * that stores only the response.
 */
async function decideOrStore<T extends Subject>(
  request: ServiceRequest,
  subject: T,
  body: string,
  decide: Decide<T>,
): Promise<Change | StoredResponse> {
  let response: StoredResponse;
  try {
    const change = await decide(subject);
    if (change) return change;
    response = { status: 200, body };
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "invalid_state") throw error;
    if (!request.idempotency) throw error;
    response = { status: error.status, body: renderError(error, request.context) };
  }
  return request.idempotency ? responseOnly(subject, response) : response;
}
