/**
 * Stripe's payouts as provider events. Pure.
 *
 * The balance changes when Stripe creates a payout, days before the money arrives, and changes back
 * when the payout fails or is cancelled, which can happen after it was paid. A payout below zero
 * debits the bank account. Each event gives all provider events so far, so a lost or late event
 * loses nothing.
 */

import type { ProviderEvent } from "../../domain/providers/connector.ts";
import { draftEvent, present, type ProviderEventSource } from "./stripe_provider_events.ts";
import type { Payout } from "./stripe_objects.ts";

export function payoutEvents(source: ProviderEventSource, payout: Payout): ProviderEvent[] {
  const { amount, created, currency, status } = payout;
  const event = (reference_state: string, taken: number, seconds: number) =>
    draftEvent(source, {
      of: payout,
      reference_state,
      op: "payout",
      state: taken > 0 ? "succeeded" : "returned",
      amount: Math.abs(taken),
      currency,
      seconds,
    });
  const is_returned = status === "failed" || status === "canceled";
  return [
    event("created", amount, created),
    is_returned ? event("returned", -amount, source.event_seconds ?? created) : null,
  ].flatMap(present);
}
