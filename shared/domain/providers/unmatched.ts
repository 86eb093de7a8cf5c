/**
 * Money at a provider that matches no payment or transfer (contract §3). Such a provider event is
 * booked at once for the account, so the ledger always agrees with the provider: money that comes
 * in is `unmatched`, and money that leaves, such as a fee or a refund, is `unmatched_reversal`. If
 * the event is matched later, the same change books the reverse. The order of events does not
 * matter. Pure.
 */

import type { MovementRow } from "../../store/commit_rows.ts";
import type { EventContext } from "../changes/event.ts";
import { movementRow, type ResourceChange } from "../changes/change_builder.ts";
import type { ProviderEvent, StoredProviderEvent } from "./connector.ts";
import type { Effect } from "./effect.ts";
import { movedAtProvider } from "./moved_at_provider.ts";

/** Books an event without a payment or transfer, unless it is booked already. */
export function applyUnmatched(
  event: StoredProviderEvent,
  context: EventContext,
  exception: string | null = null,
): Effect {
  const amount_minor = movedHere(event, context) - event.booked_minor;
  const movement = amount_minor === 0 ? null : unapplied(event, amount_minor, context);
  return { outcome: "unmatched", exception, movement };
}

/** Ignores an event whose money other events book, and reverses what was booked for it. */
export function undoUnmatched(event: StoredProviderEvent, context: EventContext): Effect {
  const { booked_minor } = event;
  return booked_minor === 0
    ? { outcome: "ignored" }
    : { outcome: "ignored", movement: unapplied(event, -booked_minor, context) };
}

/** Books an event for the account although it has a payment, and tells the operator why. */
export function applyForAccount(
  event: ProviderEvent,
  exception: string,
  context: EventContext,
): Effect {
  const movement = unapplied(event, movedAtProvider(event), context);
  return { outcome: "unmatched", exception, movement };
}

/**
 * Returns the money that an event has moved. An object in a test mode moves none, and that of
 * another account is booked there.
 */
function movedHere(event: ProviderEvent, { livemode }: EventContext): number {
  return event.livemode === livemode && !isElsewhere(event) ? movedAtProvider(event) : 0;
}

/**
 * Books the money of an event that contradicts our books for the account, so that the ledger agrees
 * with the provider while the operator looks at the exception.
 */
function bookException(effect: Effect, event: ProviderEvent, context: EventContext): Effect {
  if (effect.outcome !== "exception") return effect;
  return movedHere(event, context) !== 0
    ? applyForAccount(event, effect.exception, context)
    : effect;
}

/**
 * Reports whether another account books the money of an event. An entry of a bank is money of its
 * own account, whatever reference the payer has given.
 */
function isElsewhere(event: ProviderEvent & Partial<Pick<StoredProviderEvent, "is_elsewhere">>) {
  return event.is_elsewhere === true && !event.bank?.entry;
}

/**
 * Adds the reverse of the booking of an unmatched event to the effect that the event has on its
 * payment or transfer. Without such an effect the event stays unmatched, and so does the money of
 * an exception.
 * @param booked_minor the signed amount that is booked for the event
 */
export function afterUnmatched(
  change: ResourceChange,
  effect: Effect,
  event: ProviderEvent,
  booked_minor: number,
): Effect {
  const { context } = change;
  if (effect.outcome === "wait") return effect;
  if (booked_minor === 0) return bookException(effect, event, context);
  if (effect.outcome !== "applied") {
    const reason = effect.outcome === "exception" ? effect.exception : null;
    const exception = reason ??
      `it changes nothing at ${event.subject_id}, so the money is unmatched`;
    return { outcome: "unmatched", exception, movement: null };
  }
  change.addMovement(unapplied(event, -booked_minor, context));
  return effect;
}

/** Makes the movement of money that belongs to the account, and to no payment. */
function unapplied(
  { account_id, currency }: ProviderEvent,
  signed_minor: number,
  context: EventContext,
): MovementRow {
  const kind = signed_minor > 0 ? "unmatched" : "unmatched_reversal";
  const amount_minor = Math.abs(signed_minor);
  const movement = {
    kind,
    subject_id: account_id,
    refund_id: null,
    amount_minor,
    currency,
  } as const;
  return movementRow(movement, context);
}
