/** Makes the records of provider events and of their effects (architecture §7). Pure. */

import { formatTime } from "../../core/clock.ts";
import type { MovementRow } from "../../store/commit_rows.ts";
import type { HandledProviderEvent, ProviderRecord } from "../../store/provider_rows.ts";
import type { Applied } from "./apply_event.ts";
import { bookedAtProvider, type Effect, type Expected, movementsOf } from "../providers/effect.ts";
import type { ResourceChange } from "../changes/change_builder.ts";
import type { EventContext } from "../changes/event.ts";
import type { ProviderEvent } from "../providers/connector.ts";
import type { Operation } from "../providers/operation.ts";

/** A record's rows without any, on no expectation. */
const NO_ROWS = {
  expects: null,
  payment: null,
  transfer: null,
  refunds: [],
  disputes: [],
  ledger: [],
  events: [],
  operations: [],
};

/**
 * Returns the rows of a change for a record; null if it has none, and depends on nothing.
 * @param movements of money that belongs to the account
 * @param depends whether a change without rows is right for the present resource only
 */
export function rowsOf(
  change: ResourceChange,
  movements: readonly MovementRow[],
  expected: Expected,
  depends = Object.keys(expected).length > 0,
): ProviderRecord["change"] {
  if (change.is_empty && !depends) {
    return movements.length === 0 ? null : { ...NO_ROWS, ledger: [...movements] };
  }
  const { response: _, ...rows } = change.finish({ status: 200, body: "" });
  return {
    ...rows,
    ledger: [...rows.ledger, ...movements],
    expects: { ...rows.expects!, ...expected },
  };
}

/**
 * Makes the record of an event about a resource.
 * @param was_booked_minor the amount that the ledger has booked for the event before
 */
export function recordOf(
  environment_id: string,
  event: ProviderEvent,
  change: ResourceChange,
  applied: Applied,
  was_booked_minor: number,
): ProviderRecord {
  const { effect, expected } = applied;
  // An entry that comes too early must not miss the change that it waits for.
  const is_exception = effect.outcome === "exception" || effect.outcome === "unmatched";
  const rows = is_exception
    ? rowsOf(change, movementsOf(effect), {}, true)
    : rowsOf(change, movementsOf(effect), expected);
  return {
    environment_id,
    operation_id: null,
    operation: null,
    provider_events: [handled(event, change, applied, was_booked_minor)],
    change: rows,
    response: null,
  };
}

/** Makes the record of an event that belongs to no payment or transfer. */
export function accountRecord(
  environment_id: string,
  event: ProviderEvent,
  effect: Effect,
  was_booked_minor: number,
): ProviderRecord {
  const movements = movementsOf(effect);
  const booked_minor = bookedAtProvider(movements);
  return {
    environment_id,
    operation_id: null,
    operation: null,
    provider_events: [
      handled(event, null, { effect, booked_minor, expected: {} }, was_booked_minor),
    ],
    change: movements.length === 0 ? null : { ...NO_ROWS, ledger: movements },
    response: null,
  };
}

export function handled(
  event: ProviderEvent,
  change: ResourceChange | null,
  { effect, booked_minor }: Applied,
  was_booked_minor: number,
): HandledProviderEvent {
  const is_refund = effect.outcome === "applied" && event.op === "refund";
  return {
    ...event,
    // A refund that somebody has made at the provider: later events of it find it by this.
    refund_id: event.refund_id ?? (is_refund && change ? change.refund_id : null),
    outcome: effect.outcome === "wait" ? null : effect.outcome,
    exception: "exception" in effect ? effect.exception : null,
    booked_minor: was_booked_minor + booked_minor,
    was_booked_minor,
  };
}

/** Makes an event that the worker applies later. */
export function unhandled(event: ProviderEvent): HandledProviderEvent {
  return { ...event, outcome: null, exception: null, booked_minor: 0, was_booked_minor: 0 };
}

/**
 * Makes the exception about an account whose operations cannot work, once a day. It names the first
 * one that was refused.
 */
export function unusableAccount(
  operation: Operation,
  account_id: string,
  reason: string,
  context: EventContext,
): HandledProviderEvent {
  const at = formatTime(context.at_ms);
  const { op, amount_minor, currency, subject: { id, livemode } } = operation;
  const event: ProviderEvent = {
    account_id,
    reference: `${account_id}:unusable:${at.slice(0, 10)}`,
    object_id: account_id,
    op,
    state: "failed",
    subject_id: null,
    refund_id: null,
    provider_reference: null,
    amount_minor,
    currency,
    at,
    livemode,
  };
  const exception = `operations are refused since ${op} of ${id}: ${reason}`.slice(0, 500);
  const effect: Effect = { outcome: "exception", exception };
  return handled(event, null, { effect, booked_minor: 0, expected: {} }, 0);
}
