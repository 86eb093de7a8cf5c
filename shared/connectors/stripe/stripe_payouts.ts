/**
 * Stripe's payouts as facts. Pure.
 *
 * The balance changes when Stripe creates a payout, days before the money arrives, and changes back
 * when the payout fails or is cancelled, which can happen after it was paid. A payout below zero
 * debits the bank account. Each event gives all facts so far, so a lost or late event loses nothing.
 */

import type { Fact } from "../../domain/providers/connector.ts";
import { draftFact, type FactSource, present } from "./stripe_facts.ts";
import type { Payout } from "./stripe_objects.ts";

/** Returns the facts of a payout: its creation, and its return. */
export function payoutFacts(source: FactSource, payout: Payout): Fact[] {
  const { amount, created, currency, status } = payout;
  const fact = (reference_state: string, taken: number, seconds: number) =>
    draftFact(source, {
      of: payout,
      reference_state,
      op: "payout",
      state: taken > 0 ? "succeeded" : "returned",
      subject_id: null,
      provider_reference: null,
      amount: Math.abs(taken),
      currency,
      seconds,
    });
  const is_returned = status === "failed" || status === "canceled";
  return [
    fact("created", amount, created),
    is_returned ? fact("returned", -amount, source.event_seconds ?? created) : null,
  ].flatMap(present);
}
