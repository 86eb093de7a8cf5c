/** The statuses of a payment in the model, written from the contract (§3). */

/** The statuses that can follow each status, for some payment. */
export const MOVES: Readonly<Record<string, readonly string[]>> = {
  pending: [
    ...["requires_action", "processing", "authorized", "completed", "declined", "failed"],
    "cancelled",
  ],
  requires_action: ["processing", "authorized", "completed", "declined", "failed", "cancelled"],
  processing: [
    ...["pending", "requires_action", "authorized", "completed", "declined", "failed"],
    "cancelled",
  ],
  authorized: ["completed", "failed", "cancelled"],
  completed: ["partially_refunded", "refunded", "chargeback", "failed"],
  declined: [],
  failed: [],
  cancelled: [],
  partially_refunded: ["partially_refunded", "refunded", "chargeback", "failed"],
  refunded: [],
  chargeback: ["completed", "partially_refunded"],
};

export const STATUSES = Object.keys(MOVES);

export const OPEN: readonly string[] = ["pending", "requires_action", "processing"];
/** Statuses in which the amount is held on the card. */
export const HELD: readonly string[] = ["authorized"];
