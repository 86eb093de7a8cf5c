/**
 * Applies provider events about money that belongs to the account at the provider and to no
 * payment: payouts to the merchant's bank account, fees of the account, reserves, and everything
 * else that the provider books. The order of the events does not matter, because each books one
 * movement. Pure.
 */

import type { MovementKind } from "../../store/commit_rows.ts";
import { movementRow } from "../changes/change_builder.ts";
import type { EventContext } from "../changes/event.ts";
import type { AccountOp, ProviderEvent, StoredProviderEvent } from "./connector.ts";
import { type Effect, exception, IGNORED, shown } from "./effect.ts";
import { applyUnmatched, undoUnmatched } from "./unmatched.ts";

/**
 * The movement of each event. An adjustment has none of its own, because nobody knows its reason.
 */
const MOVEMENTS: Record<AccountOp, Record<"succeeded" | "returned", MovementKind> | null> = {
  payout: { succeeded: "settlement", returned: "settlement_reversal" },
  account_fee: { succeeded: "fee", returned: "fee_reversal" },
  reserve: { succeeded: "reserve", returned: "reserve_reversal" },
  adjustment: null,
};

/** The state with which the movement of an event is reversed. */
const OPPOSITE = { succeeded: "returned", returned: "succeeded" } as const;

export function isAccountEvent<F extends ProviderEvent>(event: F): event is F & { op: AccountOp } {
  return Object.hasOwn(MOVEMENTS, event.op);
}

/** Applies an event about the account. An adjustment is unmatched money, with an exception. */
export function applyToAccount(
  event: StoredProviderEvent & { op: AccountOp },
  context: EventContext,
): Effect {
  const { op, state, account_id: subject_id, amount_minor, currency, livemode } = event;
  if (livemode !== context.livemode) {
    return exception(`the provider's ${op} is ${livemode ? "live" : "in test mode"}`);
  }
  if (state !== "succeeded" && state !== "returned") {
    return exception(`${op} has no provider event ${state}`);
  }
  const { bank, booked_minor } = event;
  const is_replaced = bank?.is_replaced;
  const kinds = MOVEMENTS[op];
  if (kinds === null) {
    return is_replaced
      ? undoUnmatched(event, context)
      : applyUnmatched(event, context, reasonOf(event));
  }
  if (is_replaced && booked_minor === 0) return IGNORED;
  const kind = kinds[is_replaced ? OPPOSITE[state] : state];
  const refund_id = null;
  const movement = movementRow({ kind, subject_id, refund_id, amount_minor, currency }, context);
  return is_replaced
    ? { outcome: "ignored", movement }
    : { outcome: "applied", exception: null, movement };
}

/** Tells the operator about an adjustment. Its reference ends in its type. */
function reasonOf(event: ProviderEvent): string {
  const sign = event.state === "succeeded" ? "-" : "";
  const type = event.reference.slice(event.reference.lastIndexOf(":") + 1);
  return event.reason ??
    `the provider has booked ${sign}${shown(event)} as ${type}, outside of payments`;
}
