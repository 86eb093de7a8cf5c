/**
 * The money that provider events move at a provider, whatever the books here say about it. Pure.
 */

import type { ProviderEvent, ProviderEventOp, ProviderEventState } from "./connector.ts";

/** The effect of each event on the balance at the provider. Other events move no money. */
const MOVES: Partial<Record<ProviderEventOp, Partial<Record<ProviderEventState, 1 | -1>>>> = {
  authorize: { succeeded: 1, returned: -1 },
  capture: { succeeded: 1, returned: -1 },
  refund: { succeeded: -1, returned: 1 },
  dispute: { disputed: -1, dispute_won: 1 },
  transfer: { succeeded: -1, returned: 1 },
  fee: { succeeded: -1, returned: 1 },
  adjustment: { succeeded: -1, returned: 1 },
};

/** Returns the signed amount by which an event changes the balance at the provider. */
export function movedAtProvider({ op, state, amount_minor }: ProviderEvent): number {
  return (MOVES[op]?.[state] ?? 0) * amount_minor;
}
