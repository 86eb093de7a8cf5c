/**
 * Applies facts about payouts: money that moves between the balance at the provider and the
 * merchant's bank account. A payout belongs to no payment, so its movement belongs to the account at
 * the provider. Pure.
 */

import { movementRow } from "../changes/change_builder.ts";
import type { EventContext } from "../changes/event.ts";
import type { Fact } from "../providers/connector.ts";
import { accountChange } from "./account_change.ts";
import { type Effect, finding } from "./fact_effect.ts";

/** Applies a payout. The order of its facts does not matter, because each books one movement. */
export function applyPayout(fact: Fact, context: EventContext): Effect {
  if (fact.livemode !== context.livemode) {
    return finding(`the provider's payout is ${fact.livemode ? "live" : "in test mode"}`);
  }
  if (fact.state !== "succeeded" && fact.state !== "returned") {
    return finding(`a payout has no fact ${fact.state}`);
  }
  const kind = fact.state === "succeeded" ? "settlement" : "settlement_reversal";
  const { account_id: subject_id, amount_minor, currency } = fact;
  const movement = movementRow(
    { kind, subject_id, refund_id: null, amount_minor, currency },
    context,
  );
  return { outcome: "applied", finding: null, change: accountChange(movement) };
}
