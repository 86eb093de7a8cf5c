/**
 * The payments service: each operation of the interface as load, decide, commit. Rules are decided
 * by the pure modules beside this one; the store commits a decided change whole or not at all.
 */

import { ApiError } from "../core/errors.ts";
import type { AdvanceBody, AuthenticateBody, CreatePaymentBody } from "../schema/payment.ts";
import type { Payment } from "../schema/payment.ts";
import type { CreateRefundBody } from "../schema/refund.ts";
import { amountOf } from "../schema/values.ts";
import type { z } from "zod";
import type { Answer, Change } from "../store/change.ts";
import { databaseAway } from "../store/database.ts";
import type { Access, Idempotency } from "../store/outcome.ts";
import type { Committed, Store } from "../store/store.ts";
import { decideCreate } from "./create_payment.ts";
import { renderError } from "./error_body.ts";
import { KeyedQueue } from "./keyed_queue.ts";
import { decideAdvance, decideAuthenticate, decideCancel } from "./move_payment.ts";
import type { RequestContext } from "./event.ts";
import { answerOnly } from "./payment_change.ts";
import { type Provider, unconfiguredProvider } from "./provider.ts";
import { decideRefund } from "./refund_payment.ts";
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

/** The operations that change payments. Each throws `ApiError`. */
export interface Payments {
  create(
    request: ServiceRequest,
    body: CreatePaymentBody,
    decline_is_error: boolean,
  ): Promise<Reply>;
  cancel(request: ServiceRequest, id: string): Promise<Reply>;
  refund(request: ServiceRequest, id: string, body: CreateRefundBody): Promise<Reply>;
  advance(request: ServiceRequest, id: string, body: z.infer<typeof AdvanceBody>): Promise<Reply>;
  authenticate(
    request: ServiceRequest,
    id: string,
    body: z.infer<typeof AuthenticateBody>,
  ): Promise<Reply>;
  reset(request: ServiceRequest): Promise<Reply>;
}

/**
 * How often a change is decided when other isolates change the payment too (architecture §2). Each
 * time but the first it may have lost to any of them; with 4 and no pause 4 % of 50 refunds racing
 * on two isolates ran out of turns, with these none did.
 */
const MAX_DECISIONS = 10;
/**
 * Longest pause before deciding again; the limit doubles with each loss, up to the second figure.
 */
const PAUSE_MS = { first: 2, last: 64 };
/** No id of anything: asks the database for a kept answer alone. */
const NO_ID = "none";

/** The payments service over a store. */
export function createPayments(options: { store: Store; base_url: string }): Payments {
  const { store, base_url } = options;
  const queue = new KeyedQueue();

  /** Load, decide, commit; again when the payment has changed in between. */
  function changePayment(
    request: ServiceRequest,
    id: string,
    decide: (payment: Payment) => Change | null | Promise<Change | null>,
  ): Promise<Reply> {
    return queue.run(`${request.access.key_hash} ${id}`, async () => {
      for (let i = 0; i < MAX_DECISIONS; i++) {
        if (i > 0) await pauseAtRandom(Math.min(PAUSE_MS.first * 2 ** (i - 1), PAUSE_MS.last));
        const loaded = await store.load(request.access, "payments", id, request.idempotency);
        if (loaded.outcome === "replay") return { answer: loaded.answer, replayed: true };
        const payment: Payment = JSON.parse(loaded.body);
        const change = await decideOrKeep(request, payment, loaded.body, decide);
        if ("status" in change) return { answer: change, replayed: false };
        const reply = replyOf(await store.commit(request.access, change, request.idempotency));
        if (reply) return reply;
      }
      return unavailable();
    });
  }

  /** The kept answer to the same request under its key, or null. One round trip with a key. */
  async function keptReply(request: ServiceRequest): Promise<Reply | null> {
    if (!request.idempotency) return null;
    try {
      const loaded = await store.load(request.access, "payments", NO_ID, request.idempotency);
      return loaded.outcome === "replay" ? { answer: loaded.answer, replayed: true } : null;
    } catch (error) {
      // A refused request is no conflict: schema comes before replay (contract §6).
      const is_none = error instanceof ApiError &&
        (error.code === "not_found" || error.code === "idempotency_conflict");
      if (is_none) return null;
      throw error;
    }
  }

  return {
    async create(request, body, decline_is_error) {
      const { context } = request;
      const provider = providerOf(context);
      let change: Change;
      try {
        change = await decideCreate(body, { ...context, provider, base_url, decline_is_error });
      } catch (error) {
        // What the clock refuses by now, such as a card's expiry, may have been answered before.
        const kept = await keptReply(request);
        if (kept) return kept;
        throw error;
      }
      return replyOf(await store.commit(request.access, change, request.idempotency)) ??
        unavailable();
    },

    cancel: (request, id) =>
      changePayment(request, id, async (payment) => {
        const change = decideCancel(payment, request.context);
        await providerOf(request.context).cancel(payment);
        return change;
      }),

    refund: (request, id, body) =>
      changePayment(request, id, async (payment) => {
        const change = decideRefund(payment, amountOf(body), body, request.context);
        await providerOf(request.context).refund(payment, change.refunds[0]!.amount_minor);
        return change;
      }),

    advance: (request, id, { to }) =>
      changePayment(
        request,
        id,
        (payment) => decideAdvance(payment, to, base_url, request.context),
      ),

    authenticate: (request, id, { result }) =>
      changePayment(request, id, (payment) => decideAuthenticate(payment, result, request.context)),

    async reset(request) {
      return replyOf(await store.resetSandbox(request.access, request.idempotency)) ??
        unavailable();
    },
  };
}

/**
 * The change to commit, or the answer when there is none to commit. Answers that are kept though
 * nothing changes (a refused move, an advance to where the payment is) become a change of their own
 * when the request carries an idempotency key.
 */
async function decideOrKeep(
  request: ServiceRequest,
  payment: Payment,
  body: string,
  decide: (payment: Payment) => Change | null | Promise<Change | null>,
): Promise<Change | Answer> {
  let answer: Answer;
  try {
    const change = await decide(payment);
    if (change) return change;
    answer = { status: 200, body };
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "invalid_state") throw error;
    if (!request.idempotency) throw error;
    answer = { status: error.status, body: renderError(error, request.context.request_id) };
  }
  return request.idempotency ? answerOnly(payment, answer) : answer;
}

function providerOf(context: RequestContext): Provider {
  return context.livemode ? unconfiguredProvider : sandboxProvider;
}

function replyOf(committed: Committed): Reply | null {
  if (committed.outcome === "stale") return null;
  return { answer: committed.answer, replayed: committed.outcome === "replay" };
}

/** Lets the isolates that lost to each other come back at different times. */
function pauseAtRandom(longest_ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * longest_ms));
}

function unavailable(): never {
  throw databaseAway();
}
