/**
 * Decides what the reply of a provider to an operation changes, and what the request returns
 * (architecture §7). Pure.
 */

import { formatTime } from "../../core/clock.ts";
import { ApiError, type DeclineCode } from "../../core/errors.ts";
import type { Payment } from "../../schema/payment.ts";
import type { Transfer } from "../../schema/transfer.ts";
import type { Change, MovementRow, StoredResponse } from "../../store/commit_rows.ts";
import type { OperationResult } from "../../store/operation_row.ts";
import type { HandledProviderEvent, ProviderRecord } from "../../store/provider_rows.ts";
import { type Applied, applyEvent, endWait, NO_PARTS } from "./apply_event.ts";
import { type Effect, type Expected, movementsOf, type Parts } from "../providers/effect.ts";
import { ChangeBuilder, type ResourceChange } from "../changes/change_builder.ts";
import { type ErrorOrigin, renderError } from "../changes/error_body.ts";
import type { EventContext } from "../changes/event.ts";
import { readRefund } from "../changes/read_resource.ts";
import { declineResponse } from "../payments/payment_steps.ts";
import type {
  ProviderEvent,
  ProviderOp,
  ProviderReply,
  StoredProviderEvent,
} from "../providers/connector.ts";
import { eventOf, type Operation, rowOf } from "../providers/operation.ts";
import {
  invalidState,
  isCapturable,
  isDeposit,
  isOpenDeposit,
  isProcessing,
  isUnsuccessful,
  nextStatuses,
} from "../payments/lifecycle.ts";
import { STATUSES, type WaitsFor } from "../payment_statuses.ts";
import { handled, recordOf, rowsOf, unhandled, unusableAccount } from "./event_record.ts";

/** Delays before each further attempt. After the last one the service asks hourly. */
const RETRY_DELAYS_MS = [5_000, 10_000, 30_000, 60_000, 300_000, 1_800_000];
const LAST_DELAY_MS = 3_600_000;
/** Delay before the next attempt of an operation whose result comes as a later provider event. */
const WAITING_MS = 60_000;
/**
 * Time since the first attempt. An operation that the provider then does not know needs the
 * operator.
 */
const ABSENT_AFTER_MS = 3_600_000;
/** Time since the first attempt. Every operation that then has no result needs the operator. */
const GIVE_UP_AFTER_MS = 7 * 24 * 3_600_000;

/**
 * The operator reads a reply on one or two lines. A transaction with its fee needs 220 characters.
 */
const REPLY_LENGTH_MAX = 300;

/** The step of a payment that an operation ends. */
const ENDS: ReadonlyMap<ProviderOp, WaitsFor> = new Map([
  ["abandon", "authentication"],
  ["expire", "capture"],
]);

/** Operations for which no request waits. The service sends them again, or the operator decides. */
export const NEVER_REFUSED: ReadonlySet<ProviderOp> = new Set(["abandon", "detach"]);

/** How to decide a reply that could not be recorded at once. */
interface ReplyOptions {
  /** The amount that the ledger has booked for its first event as unmatched; 0 by default. */
  booked_minor?: number;
  /**
   * Whether fees are recorded with the event that they came with (the default). False: the worker
   * records them, because one of them can be booked already.
   */
  records_fees?: boolean;
  /** The parts of the resource; by default those of the operation. */
  parts?: Parts;
}

/** The decision about a reply. The rows of the resource are in its change. */
interface Decision {
  result: OperationResult;
  response: StoredResponse;
  provider_events?: HandledProviderEvent[];
  /** Movements of money that belongs to the account. */
  movements?: MovementRow[];
  expected?: Expected;
}

export function decideResult(
  operation: Operation,
  reply: ProviderReply,
  context: EventContext,
  options: ReplyOptions = {},
): { record: ProviderRecord; response: StoredResponse } {
  const { id, environment_id, subject } = operation;
  const change: ResourceChange = changeOf(subject, context);
  const { result, response, provider_events = [], movements = [], expected = {} } = decide(
    change,
    operation,
    reply,
    options,
  );
  return {
    record: {
      environment_id,
      operation_id: id,
      operation: result,
      provider_events,
      change: rowsOf(change, movements, expected),
      response,
    },
    response,
  };
}

/**
 * Decides an operation whose provider replies within the request: what happened is in the same
 * change as the rows of the request. The operation itself takes a row only if its result is
 * unknown, or if the provider's reference has to be found again.
 */
export function decideAtOnce(
  change: ResourceChange,
  operation: Operation,
  reply: ProviderReply,
): Change {
  const { result, response } = decide(change, operation, reply, {});
  const { state, next_attempt_at, provider_reference } = result;
  if (state === "pending" && "unknown" in reply) {
    const { simulated } = reply;
    const request = { ...operation.request, ...(simulated && { simulated }) };
    const row = rowOf({ ...operation, request });
    const delay_ms = Date.parse(next_attempt_at!) - change.context.at_ms;
    change.addOperation({ ...row, decline_is_error: false, delay_ms });
  } else if (provider_reference) {
    change.addOperation({ ...rowOf(operation), decline_is_error: false, provider_reference });
  }
  return change.finish(response);
}

function decide(
  change: ResourceChange,
  operation: Operation,
  reply: ProviderReply,
  options: ReplyOptions,
): Decision {
  if ("provider_events" in reply) {
    return decideReplyEvents(change, operation, reply.provider_events, options);
  }
  if ("refused" in reply) return decideRefusal(change, operation, reply);
  if ("waiting" in reply) return decideWaiting(change, operation, reply);
  if ("absent" in reply) return decideUnknown(change, operation, "absent", operation.may_repeat);
  const { unknown, may_repeat, after_ms } = reply;
  return decideUnknown(change, operation, unknown, may_repeat, { after_ms });
}

/**
 * Makes the record that settles an operation which has nothing left to do. Its payment has left the
 * step that the operation ends, and never comes to a step of `ENDS` again; or its dispute has
 * evidence or an end. Returns null for other operations.
 */
export function pointlessRecord(operation: Operation): ProviderRecord | null {
  const { id, environment_id, op, subject, dispute } = operation;
  let left: string | null = null;
  if (op === "dispute_expire") {
    const status = dispute?.status ?? "needs_response";
    left = status === "needs_response" ? null : status;
  } else if (op === "abandon" && subject.object === "payment" && isDeposit(subject)) {
    left = isOpenDeposit(subject) ? null : subject.status;
  } else if (isEnded(operation) || isAdvanced(operation)) {
    left = subject.status;
  }
  if (left === null) return null;
  return unsentRecord(environment_id, id, `it is ${left}`);
}

/** Makes the record that settles an operation without sending it. */
export function unsentRecord(environment_id: string, id: string, reason: string): ProviderRecord {
  return {
    environment_id,
    operation_id: id,
    operation: { state: "settled", last_reply: `not sent: ${reason}` },
    provider_events: [],
    change: null,
    response: null,
  };
}

/** Reports whether the payment has left the step that the operation ends. */
function isEnded({ op, subject }: Operation): boolean {
  const waits_for = subject.object === "payment" ? STATUSES[subject.status].waits_for : null;
  if (!ENDS.has(op) || ENDS.get(op) === waits_for) return false;
  // A payment that was not successful here can still be open at a live provider.
  return op !== "abandon" || !subject.livemode || !isUnsuccessful(subject);
}

/**
 * Reports whether an advance of the sandbox has given the result that the operation waits for. A
 * live provider alone knows its results.
 */
function isAdvanced({ op, subject, refund }: Operation): boolean {
  if (subject.livemode) return false;
  if (op === "authorize") return subject.object === "payment" && !isProcessing(subject);
  if (op === "capture") return subject.object === "payment" && !isCapturable(subject);
  return op === "refund" && refund?.status !== "pending";
}

/**
 * Decides the record of a stored event. If its operation has no result yet, the event is the
 * result.
 * @param operation null: there is none, or it is settled
 */
export function decideStoredEvent(
  { subject, operation, ...parts }: Parts & {
    subject: Payment | Transfer;
    operation: Operation | null;
  },
  environment_id: string,
  event: StoredProviderEvent,
  context: EventContext,
): { effect: Effect; record: ProviderRecord; status: string } {
  const { booked_minor } = event;
  const change = changeOf(subject, context);
  const applied = endWait(change, applyEvent(change, parts, event, booked_minor), event);
  const { effect } = applied;
  const { status } = change.subject;
  const is_result = effect.outcome === "applied" || effect.outcome === "ignored";
  const record = operation && is_result
    ? decideResult(operation, { provider_events: [event] }, context, { booked_minor, parts }).record
    : recordOf(environment_id, event, change, applied, booked_minor);
  return { effect, record, status };
}

function decideReplyEvents(
  change: ResourceChange,
  operation: Operation,
  [event, ...others]: readonly [ProviderEvent, ...ProviderEvent[]],
  { booked_minor = 0, records_fees = true, parts = partsOf(operation) }: ReplyOptions,
): Decision {
  const applied = applyEvent(change, parts, event, booked_minor);
  const { effect, expected } = applied;
  if (effect.outcome === "exception" || effect.outcome === "unmatched") {
    const unknown = decideUnknown(change, operation, effect.exception ?? "", false, {
      is_over: true,
    });
    return {
      ...unknown,
      provider_events: [handled(event, change, applied, booked_minor), ...others.map(unhandled)],
      movements: movementsOf(effect),
    };
  }
  const provider_events = [handled(event, change, applied, booked_minor)];
  for (const other of others) {
    provider_events.push(fold(change, operation, applied, other, records_fees));
  }
  return {
    result: {
      state: "settled",
      ...(event.provider_reference !== null && { provider_reference: event.provider_reference }),
      last_reply: event.source === undefined ? event.state : `${event.state}, by the operator`,
    },
    provider_events,
    response: responseOf(operation, change),
    expected,
  };
}

/**
 * Applies another event of a reply, so that both are recorded together: a fee of a live provider,
 * and every event of the sandbox, which has no other source of them. The worker applies others
 * later.
 */
function fold(
  change: ResourceChange,
  operation: Operation,
  first: Applied,
  event: ProviderEvent,
  records_fees: boolean,
): HandledProviderEvent {
  const is_fee = records_fees && event.op === "fee" && first.effect.outcome === "applied";
  if (change.subject.livemode && !is_fee) return unhandled(event);
  const parts = change.subject.livemode ? NO_PARTS : presentParts(operation, change);
  const applied = applyEvent(change, parts, event);
  if (change.subject.livemode && applied.effect.outcome !== "applied") return unhandled(event);
  return handled(event, change, applied, 0);
}

/**
 * Decides about an operation whose result is not known: the service asks again or syncs.
 * @param options.is_over true: the operator decides, because asking again would not help
 * @param options.after_ms time until the next attempt; absent: by the number of attempts
 */
function decideUnknown(
  change: ResourceChange,
  operation: Operation,
  reason: string,
  may_repeat: boolean,
  { is_over = false, after_ms }: { is_over?: boolean; after_ms?: number | undefined } = {},
): Decision {
  const { at_ms } = change.context;
  const age_ms = at_ms - Date.parse(operation.first_sent_at ?? operation.created_at);
  const is_absent = reason === "absent" && age_ms > ABSENT_AFTER_MS;
  const delay_ms = after_ms ?? RETRY_DELAYS_MS[operation.attempts - 1] ?? LAST_DELAY_MS;
  const { subject } = change;
  if (subject.object === "payment" && subject.status === "pending") {
    applyEvent(change, NO_PARTS, eventOf(operation, "pending", { op: "authorize" }));
  }
  return {
    result: {
      last_reply: reason.slice(0, REPLY_LENGTH_MAX),
      may_repeat: may_repeat && operation.may_repeat,
      ...(is_over || is_absent || age_ms > GIVE_UP_AFTER_MS
        ? { state: "operator" }
        : { state: "pending", next_attempt_at: formatTime(at_ms + delay_ms) }),
    },
    response: responseOf(operation, change),
  };
}

/**
 * Keeps an operation pending whose result comes as a later event. The service never gives up on it.
 */
function decideWaiting(
  change: ResourceChange,
  operation: Operation,
  { waiting, needs_operator = false }: Extract<ProviderReply, { waiting: string }>,
): Decision {
  return {
    result: {
      state: "pending",
      last_reply: waiting.slice(0, REPLY_LENGTH_MAX),
      needs_operator,
      next_attempt_at: formatTime(change.context.at_ms + WAITING_MS),
    },
    response: responseOf(operation, change),
  };
}

/** Decides about an operation that the provider has refused: nothing has happened there. */
function decideRefusal(
  change: ResourceChange,
  operation: Operation,
  reply: Extract<ProviderReply, { refused: unknown }>,
): Decision {
  const { op, refund, decline_is_error } = operation;
  const reason = `refused: ${reply.reason ?? reply.message}`;
  // The payment would wait for its payer forever, and the card would stay at the provider.
  if (NEVER_REFUSED.has(op)) {
    return decideUnknown(change, operation, reason, false, { is_over: true });
  }
  const is_new = op === "authorize" || op === "transfer";
  // The amount that a refund holds is free again; a capture or cancel leaves its payment as it is.
  if (is_new || refund?.status === "pending") {
    const failed = eventOf(operation, "failed", { failure_code: "provider_refused" });
    applyEvent(change, partsOf(operation), failed);
  }
  const is_error = refund === null && (decline_is_error || !is_new);
  const { unusable_account } = reply;
  return {
    result: { state: "settled", last_reply: reason.slice(0, REPLY_LENGTH_MAX) },
    provider_events: unusable_account === undefined ? [] : [
      unusableAccount(operation, unusable_account, reply.reason ?? reply.message, change.context),
    ],
    response: is_error
      ? refusalResponse(originOf(operation, change), reply, change.subject)
      : responseOf(operation, change),
  };
}

function refusalResponse(
  origin: ErrorOrigin,
  { refused, message, param }: Extract<ProviderReply, { refused: unknown }>,
  subject: Payment | Transfer,
): StoredResponse {
  const error = new ApiError(refused, message, {
    ...(param !== undefined && { param }),
    ...(subject.object === "payment" && { payment: subject }),
  });
  return { status: error.status, body: renderError(error, origin) };
}

/**
 * Returns the effect that an event would have as the result of an operation, and the status then.
 */
export function effectOn(
  operation: Operation,
  event: ProviderEvent,
  context: EventContext,
  booked_minor = 0,
): { effect: Effect; status: string } {
  const change = changeOf(operation.subject, context);
  const { effect } = applyEvent(change, partsOf(operation), event, booked_minor);
  return { effect, status: change.subject.status };
}

function partsOf({ refund, dispute }: Operation): Parts {
  return { refund, dispute, deposit: null };
}

/** Returns the same parts, with what the change has made of the refund. */
function presentParts(operation: Operation, { refund_body }: ResourceChange): Parts {
  const parts = partsOf(operation);
  return parts.refund && refund_body ? { ...parts, refund: readRefund(refund_body) } : parts;
}

function changeOf(subject: Payment | Transfer, context: EventContext): ResourceChange {
  return subject.object === "payment"
    ? new ChangeBuilder(subject, context)
    : new ChangeBuilder(subject, context);
}

function responseOf(operation: Operation, change: ResourceChange): StoredResponse {
  const { op, refund, dispute, decline_is_error } = operation;
  const { subject } = change;
  if (refund) return { status: 201, body: change.refund_body ?? JSON.stringify(refund) };
  if (dispute) {
    return { status: 200, body: change.dispute_body ?? JSON.stringify(dispute) };
  }
  if (subject.object === "payment" && subject.status === "declined" && decline_is_error) {
    return declineResponse(
      subject,
      subject.failure_code as DeclineCode,
      originOf(operation, change),
    );
  }
  if (subject.object === "payment" && isMissed(op, subject)) {
    const error = invalidState(op, subject, nextStatuses(subject));
    return { status: error.status, body: renderError(error, originOf(operation, change)) };
  }
  const is_new = op === "authorize" || op === "transfer";
  return { status: is_new ? 201 : 200, body: change.body || JSON.stringify(subject) };
}

/** The error of a request is that of its first response, whoever decides its result later. */
function originOf({ request_id }: Operation, { context }: ResourceChange): ErrorOrigin {
  return { request_id, docs_url: context.docs_url };
}

/** Reports whether the payment has ended at the provider before the capture or cancel came. */
function isMissed(op: ProviderOp, payment: Payment): boolean {
  const { status, amount_captured } = payment;
  if (op === "capture") {
    return amount_captured === 0 && (status === "cancelled" || isUnsuccessful(payment));
  }
  return op === "cancel" && (amount_captured > 0 || isUnsuccessful(payment));
}

/** Makes the response of a request whose operation somebody else has settled. */
export function currentResponse(operation: Operation, context: EventContext): StoredResponse {
  return responseOf(operation, changeOf(operation.subject, context));
}
