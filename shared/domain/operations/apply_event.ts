/**
 * `applyEvent` is the only function that moves a payment, refund, dispute or transfer, with live
 * keys and in sandboxes. A provider says what has happened; the rules here say what follows. Pure.
 */

import type { PaymentChange, ResourceChange } from "../changes/change_builder.ts";
import type { ProviderEvent, StoredProviderEvent } from "../providers/connector.ts";
import { applyToPayment, isReceivedMoney } from "../payments/apply_to_payment.ts";
import { applyToTransfer } from "../transfers/apply_to_transfer.ts";
import {
  bookedAtProvider,
  type Effect,
  exception,
  type Expected,
  movementsOf,
  type Parts,
  shown,
} from "../providers/effect.ts";
import { movedAtProvider } from "../providers/moved_at_provider.ts";
import { expectedOf } from "../payments/received_money.ts";
import { afterUnmatched } from "../providers/unmatched.ts";

/**
 * Age after which a provider event that waits for another one is an exception. Polls bring it
 * within hours.
 */
const WAIT_LIMIT_MS = 7 * 24 * 3_600_000;

/** An event about a resource without parts. */
export const NO_PARTS: Parts = { refund: null, dispute: null, deposit: null };

export interface Applied {
  effect: Effect;
  /** The signed change of the balance at the provider that the ledger has booked. */
  booked_minor: number;
  /** What the record depends on besides the sequence of the resource. */
  expected: Expected;
}

/**
 * Applies an event to a payment or transfer, and to the refund or dispute that it is about. Rows of
 * an applied event are added to the change; any other outcome leaves it as it is.
 * @param booked_minor the amount that the ledger has booked for the event as unmatched
 */
export function applyEvent(
  change: ResourceChange,
  parts: Parts,
  event: ProviderEvent,
  booked_minor = 0,
): Applied {
  const before = change.ledger.length;
  const expected = isPayment(change) && isReceivedMoney(change, event)
    ? expectedOf(change, parts.deposit, event)
    : {};
  const applied = booked(
    isPayment(change) ? applyToPayment(change, parts, event) : applyToTransfer(change, event),
    change.subject,
    event,
  );
  const effect = afterUnmatched(change, applied, event, booked_minor);
  const movements = [...change.ledger.slice(before), ...movementsOf(effect)];
  return { effect, booked_minor: bookedAtProvider(movements), expected };
}

/**
 * Ends the wait of a stored event: the event that it builds on has not come within the limit, or it
 * has come and changed no payment.
 */
export function endWait(
  change: ResourceChange,
  applied: Applied,
  event: StoredProviderEvent,
): Applied {
  const age_ms = change.context.at_ms - Date.parse(event.received_at);
  if (applied.effect.outcome !== "wait") return applied;
  if (!event.follows_unmatched && age_ms <= WAIT_LIMIT_MS) return applied;
  const reason = event.follows_unmatched ? "is unmatched" : "has not come";
  const found = exception(`${event.op} ${event.state} builds on a provider event that ${reason}`);
  const effect = afterUnmatched(change, found, event, event.booked_minor);
  return { effect, booked_minor: bookedAtProvider(movementsOf(effect)), expected: {} };
}

/**
 * Makes an exception of an entry of a bank that changes nothing, or nothing yet, so that its money
 * is booked for the account: unlike the events of other providers, two entries are never about the
 * same money. One that came too early is applied when its subject has changed
 * (`pay_internal.reopen_bank_entries`).
 */
function booked(effect: Effect, { id, status }: ResourceChange["subject"], event: ProviderEvent) {
  if (!event.bank?.entry || movedAtProvider(event) === 0) return effect;
  if (effect.outcome === "ignored") {
    return exception(`${shown(event)} was booked for ${id}, which is ${status} already`);
  }
  if (effect.outcome !== "wait") return effect;
  const order = event.provider_reference ?? id;
  return exception(`${shown(event)} of ${order} came back before the bank had booked it`);
}

export function isPayment(change: ResourceChange): change is PaymentChange {
  return change.subject.object === "payment";
}
