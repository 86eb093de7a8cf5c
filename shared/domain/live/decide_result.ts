/**
 * Decides what the reply of a provider to a call changes, and what the request answers
 * (architecture §7). Pure.
 */

import { formatTime } from "../../core/clock.ts";
import { ApiError, type DeclineCode } from "../../core/errors.ts";
import type { SandboxSettings } from "../../store/known_settings.ts";
import type { Payment, PaymentStatus } from "../../schema/payment.ts";
import type { Transfer } from "../../schema/transfer.ts";
import type { Answer } from "../../store/commit_rows.ts";
import type { CallResult, HandledFact, ProviderRecord } from "../../store/provider_rows.ts";
import { ChangeBuilder } from "../changes/change_builder.ts";
import { renderError } from "../changes/error_body.ts";
import type { EventContext } from "../changes/event.ts";
import { failRefund } from "../payments/refund_payment.ts";
import { declineAnswer, fail } from "../payments/settlement.ts";
import { fail as failTransfer } from "../transfers/create_transfer.ts";
import type {
  Fact,
  ProviderCall,
  ProviderOp,
  ProviderReply,
  StoredFact,
} from "../providers/connector.ts";
import {
  canBecome,
  invalidState,
  isDeposit,
  isUnsuccessful,
  nextStatuses,
} from "../payments/lifecycle.ts";
import { changeOf, type Effect, type FactChange } from "./fact_effect.ts";
import {
  applyToSubject,
  endWait,
  handled,
  recordOf,
  type SubjectOfFact,
  unhandled,
  unusableAccount,
} from "./fact_record.ts";

/** A call with the parts that only the service needs. */
export interface OwnCall extends ProviderCall {
  environment_id: string;
  /** The time of the first attempt. */
  first_sent_at_ms: number;
  /** Number of the attempt whose reply it is, from 1. */
  attempt: number;
  /** False: the provider would only replay its first answer, so the service looks instead. */
  may_repeat: boolean;
  request_id: string;
  /** True: a decline answers 402. */
  decline_is_error: boolean;
  /** Of a call that comes later: when it is due by the clock of its sandbox, and its settings. */
  clock?: { due_ms: number; settings: SandboxSettings };
}

/** The record to write for a reply, and the answer of the request. */
interface Result {
  record: ProviderRecord;
  answer: Answer;
}

/** Delays before each further attempt. After the last one the service asks hourly. */
const RETRY_DELAYS_MS = [5_000, 10_000, 30_000, 60_000, 300_000, 1_800_000];
const LAST_DELAY_MS = 3_600_000;
/** Delay before the next attempt of a call whose result comes as a later fact. */
const WAITING_MS = 60_000;
/** Time since the first attempt. A call that the provider then does not know needs the operator. */
const ABSENT_AFTER_MS = 3_600_000;
/** Time since the first attempt. Every call that then has no result needs the operator. */
const GIVE_UP_AFTER_MS = 7 * 24 * 3_600_000;

/** The operator reads a reply on one or two lines. A transaction with its fee needs 220 characters. */
const REPLY_LENGTH_MAX = 300;

/** The other parts of a subject, which a fee does not concern. */
const NO_PARTS = { refund: null, dispute: null, deposit: null };

/** The status of a payment that an operation ends. */
const ENDS: ReadonlyMap<ProviderOp, PaymentStatus> = new Map([
  ["abandon", "requires_action"],
  ["expire", "authorized"],
]);

/** How to decide a reply that could not be recorded at once. */
interface ReplyOptions {
  /** The amount that the ledger has booked for its first fact as unmatched; 0 by default. */
  booked_minor?: number;
  /**
   * Whether fees are recorded with the fact that they came with (the default). False: the worker
   * records them, because one of them can be booked already.
   */
  records_fees?: boolean;
}

/** Decides the result of a reply. */
export function decideResult(
  call: OwnCall,
  reply: ProviderReply,
  context: EventContext,
  { booked_minor = 0, records_fees = true }: ReplyOptions = {},
): Result {
  if ("facts" in reply) {
    return decideFacts(call, reply.facts, { booked_minor, records_fees }, context);
  }
  if ("refused" in reply) return decideRefusal(call, reply, context);
  if ("waiting" in reply) return decideWaiting(call, reply, context);
  if ("absent" in reply) return decideUnknown(call, "absent", call.may_repeat, context);
  return decideUnknown(call, reply.unknown, reply.may_repeat, context);
}

/**
 * Makes the record that settles a call which has nothing left to do. Its payment has left the status
 * that the call ends, and never gets a status of `ENDS` again; or its dispute has evidence or an
 * end. Returns null for other calls.
 */
export function pointlessRecord(own: OwnCall): ProviderRecord | null {
  const { id, environment_id, op, subject, dispute } = own;
  let left: string | null = null;
  if (op === "dispute_expire") {
    const status = dispute?.present.status ?? "needs_response";
    left = status === "needs_response" ? null : status;
  } else if (op === "abandon" && subject.object === "payment" && isDeposit(subject)) {
    left = subject.status === "pending" || subject.status === "processing" ? null : subject.status;
  } else if (isEnded(own) || isAdvanced(own)) {
    left = subject.status;
  }
  if (left === null) return null;
  const call = { state: "settled", last_reply: `not sent: it is ${left}` } as const;
  return { environment_id, call_id: id, call, facts: [], change: null, answer: null };
}

/** Reports whether the payment has left the status that the operation ends. */
function isEnded({ op, subject }: OwnCall): boolean {
  if (!ENDS.has(op) || ENDS.get(op) === subject.status) return false;
  // A payment that was not successful here can still be open at a live provider.
  return op !== "abandon" || !subject.livemode || !isUnsuccessful(subject);
}

/**
 * Reports whether an advance of the sandbox has given the result that the call waits for. A live
 * provider alone knows its results.
 */
function isAdvanced({ op, subject, refund }: OwnCall): boolean {
  if (subject.livemode) return false;
  if (op === "authorize") return subject.status !== "processing";
  if (op === "capture") return subject.status !== "authorized";
  return op === "refund" && refund?.status !== "pending";
}

/**
 * Decides the record of a stored fact. If its call has no result yet, the fact is the result.
 * @param call null: there is none, or it is settled
 */
export function decideFact(
  { call, ...subject }: SubjectOfFact & { call: OwnCall | null },
  environment_id: string,
  fact: StoredFact,
  context: EventContext,
): { effect: Effect; record: ProviderRecord } {
  const { booked_minor } = fact;
  const applied = applyToSubject(subject, fact, booked_minor, context);
  const effect = endWait(applied, fact, context);
  const is_result = effect.outcome === "applied" || effect.outcome === "ignored";
  const record = call && is_result
    ? decideResult(call, { facts: [fact] }, context, { booked_minor }).record
    : recordOf(environment_id, fact, effect, booked_minor);
  return { effect, record };
}

function decideFacts(
  call: OwnCall,
  [fact, ...others]: readonly [Fact, ...Fact[]],
  { booked_minor, records_fees }: Required<ReplyOptions>,
  context: EventContext,
): Result {
  const effect = applyToSubject(subjectOf(call), fact, booked_minor, context);
  if (effect.outcome === "finding" || effect.outcome === "unmatched") {
    const { record, answer } = decideUnknown(call, effect.finding ?? "", false, context, true);
    const facts = [handled(fact, effect, booked_minor), ...others.map(unhandled)];
    const booked = effect.outcome === "unmatched" ? effect.change : null;
    const change = record.change && booked
      ? { ...record.change, ledger: [...record.change.ledger, ...booked.ledger] }
      : record.change ?? booked;
    return { record: { ...record, facts, change }, answer };
  }
  const fees = records_fees
    ? applyFees(effect, others, context)
    : { effect, facts: others.map(unhandled) };
  const change = fees.effect.outcome === "applied" ? fees.effect.change : null;
  const answer = answerOf(call, change?.subject ?? call.subject, change);
  return {
    record: {
      ...recordOf(call.environment_id, fact, fees.effect, booked_minor),
      call_id: call.id,
      call: {
        state: "settled",
        ...(fact.provider_reference !== null &&
          { provider_reference: fact.provider_reference }),
        last_reply: fact.source === undefined ? fact.state : `${fact.state}, by the operator`,
      },
      facts: [handled(fact, effect, booked_minor), ...fees.facts],
      answer,
    },
    answer,
  };
}

/**
 * Adds the movements of fees to the effect of the fact that they came with, so that both are
 * recorded together. The worker applies the other facts later.
 */
function applyFees(
  first: Effect,
  others: readonly Fact[],
  context: EventContext,
): { effect: Effect; facts: HandledFact[] } {
  let effect = first;
  const facts = others.map((fact): HandledFact => {
    if (fact.op !== "fee" || effect.outcome !== "applied" || !effect.change.subject) {
      return unhandled(fact);
    }
    const { subject } = effect.change;
    const fee = applyToSubject({ ...NO_PARTS, subject }, fact, 0, context);
    if (fee.outcome !== "applied" || fee.change.events.length > 0) return unhandled(fact);
    const ledger = [...effect.change.ledger, ...fee.change.ledger];
    effect = { ...effect, change: { ...effect.change, ledger } };
    return handled(fact, fee, 0);
  });
  return { effect, facts };
}

/**
 * Decides about a call whose result is not known: the service asks again or looks.
 * @param is_over true: the operator decides, because asking again would not help
 */
function decideUnknown(
  call: OwnCall,
  reason: string,
  may_repeat: boolean,
  context: EventContext,
  is_over = false,
): Result {
  const age_ms = context.at_ms - call.first_sent_at_ms;
  const is_absent = reason === "absent" && age_ms > ABSENT_AFTER_MS;
  const result: CallResult = {
    last_reply: reason.slice(0, REPLY_LENGTH_MAX),
    may_repeat: may_repeat && call.may_repeat,
    ...(is_over || is_absent || age_ms > GIVE_UP_AFTER_MS ? { state: "operator" } : {
      state: "pending",
      next_attempt_at: formatTime(
        context.at_ms + (RETRY_DELAYS_MS[call.attempt - 1] ?? LAST_DELAY_MS),
      ),
    }),
  };
  const { subject } = call;
  const builder = subject.object === "payment" && subject.status === "pending"
    ? new ChangeBuilder(subject, context)
    : null;
  builder?.addEvent("payment.processing", { status: "processing" });
  const answer = answerOf(call, builder?.subject ?? subject, null);
  return {
    record: {
      environment_id: call.environment_id,
      call_id: call.id,
      call: result,
      facts: [],
      change: builder?.finish(answer) ?? null,
      answer,
    },
    answer,
  };
}

/** Keeps a call pending whose result comes as a later fact. The service never gives up on it. */
function decideWaiting(
  call: OwnCall,
  { waiting, needs_operator = false }: Extract<ProviderReply, { waiting: string }>,
  { at_ms }: EventContext,
): Result {
  const answer = answerOf(call, call.subject, null);
  return {
    record: {
      environment_id: call.environment_id,
      call_id: call.id,
      call: {
        state: "pending",
        last_reply: waiting.slice(0, REPLY_LENGTH_MAX),
        needs_operator,
        next_attempt_at: formatTime(at_ms + WAITING_MS),
      },
      facts: [],
      change: null,
      answer,
    },
    answer,
  };
}

/** Decides about a call that the provider has refused: nothing has happened there. */
function decideRefusal(
  call: OwnCall,
  reply: Extract<ProviderReply, { refused: unknown }>,
  context: EventContext,
): Result {
  const { subject, refund } = call;
  // No request waits for the refusal, and the payment would wait for its payer forever.
  if (call.op === "abandon") {
    return decideUnknown(call, `refused: ${reply.reason ?? reply.message}`, false, context, true);
  }
  const is_new = call.op === "authorize" || call.op === "transfer";
  const effect = failSubject(call, context);
  const changed = effect?.subject ?? subject;
  const is_error = refund === null && (call.decline_is_error || !is_new);
  const answer = is_error ? refusalAnswer(call, reply, changed) : answerOf(call, changed, effect);
  return {
    record: {
      environment_id: call.environment_id,
      call_id: call.id,
      call: {
        state: "settled",
        last_reply: `refused: ${reply.reason ?? reply.message}`.slice(0, REPLY_LENGTH_MAX),
      },
      facts: reply.unusable_account === undefined
        ? []
        : [unusableAccount(call, reply.unusable_account, reply.reason ?? reply.message, context)],
      change: effect,
      answer,
    },
    answer,
  };
}

/** Makes the subject of a refused call fail. Null if it stays as it is. */
function failSubject(call: OwnCall, context: EventContext): FactChange | null {
  const { subject, refund, op } = call;
  if (subject.object === "transfer") {
    if (subject.status !== "pending") return null;
    const builder = new ChangeBuilder(subject, context);
    failTransfer(builder, "provider_refused", null);
    return changeOf(builder);
  }
  const builder = new ChangeBuilder(subject, context);
  if (refund) {
    if (refund.status !== "pending") return null;
    const refund_body = failRefund(builder, refund, "provider_refused");
    return changeOf(builder, refund_body);
  }
  if (op !== "authorize" || subject.amount_captured > 0 || !canBecome(subject, "failed")) {
    return null;
  }
  fail(builder, "provider_refused", null);
  return changeOf(builder);
}

function refusalAnswer(
  call: OwnCall,
  { refused, message, param }: Extract<ProviderReply, { refused: unknown }>,
  subject: Payment | Transfer,
): Answer {
  const error = new ApiError(refused, message, {
    ...(param !== undefined && { param }),
    [subject.object]: subject,
  });
  return { status: error.status, body: renderError(error, call.request_id) };
}

/** Returns the subject of a call, with the refund or dispute that it is about. */
export function subjectOf({ subject, refund, dispute }: OwnCall): SubjectOfFact {
  return { subject, refund, dispute: dispute?.present ?? null, deposit: null };
}

/** Makes the answer of the request that made the call. */
function answerOf(
  call: OwnCall,
  subject: Payment | Transfer,
  change: Pick<FactChange, "refund_body" | "disputes"> | null,
): Answer {
  if (call.refund) {
    return { status: 201, body: change?.refund_body ?? JSON.stringify(call.refund) };
  }
  if (call.dispute) {
    const body = change?.disputes.at(-1)?.body ?? JSON.stringify(call.dispute.present);
    return { status: 200, body };
  }
  if (subject.object === "payment" && subject.status === "declined" && call.decline_is_error) {
    return declineAnswer(subject, subject.failure_code as DeclineCode, call.request_id);
  }
  if (subject.object === "payment" && isMissed(call, subject)) {
    const error = invalidState(call.op, subject, nextStatuses(subject));
    return { status: error.status, body: renderError(error, call.request_id) };
  }
  const is_new = call.op === "authorize" || call.op === "transfer";
  return { status: is_new ? 201 : 200, body: JSON.stringify(subject) };
}

/** Reports whether the payment has ended at the provider before the capture or cancel came. */
function isMissed({ op }: OwnCall, payment: Payment): boolean {
  const { status, amount_captured } = payment;
  if (op === "capture") {
    return amount_captured === 0 && (status === "cancelled" || isUnsuccessful(payment));
  }
  return op === "cancel" && (amount_captured > 0 || isUnsuccessful(payment));
}

/** Makes the answer of a request whose call somebody else has settled. */
export function currentAnswer(call: OwnCall): Answer {
  return answerOf(call, call.subject, null);
}
