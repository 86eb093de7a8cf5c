/** Makes changes of money that belongs to an account at a provider, and to no payment. Pure. */

import type { MovementRow } from "../../store/commit_rows.ts";
import { bookedAtProvider, type FactChange } from "./fact_effect.ts";

/** Makes the change that books one movement and nothing else. */
export function accountChange(movement: MovementRow): FactChange {
  return {
    subject: null,
    refund_body: null,
    booked_minor: bookedAtProvider([movement]),
    expects: null,
    payment: null,
    transfer: null,
    refunds: [],
    disputes: [],
    ledger: [movement],
    events: [],
    calls: [],
  };
}
