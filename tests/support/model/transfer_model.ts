/** A model of transfers, written like payment_model.ts from the interface and the contract (§3). */

import type { Expected } from "./payment_model.ts";

/** A transfer in the model. */
export interface TransferStanding {
  status: string;
  /** Nobody takes a completed transfer to a wallet back. */
  is_to_wallet: boolean;
  amount: number;
  sequence: number;
}

/** The expected response to a new transfer with a sufficient balance. */
export function expectTransfer(
  destination: "approved" | "returned",
  is_manual: boolean,
  amount: number,
  is_to_wallet = false,
): Expected<TransferStanding> {
  const status = is_manual ? "pending" : destination === "approved" ? "completed" : "failed";
  const events = ["transfer.created", ...(is_manual ? [] : [`transfer.${status}`])];
  const next = { status, is_to_wallet, amount, sequence: events.length };
  return { http: 201, code: null, next, events };
}

/** The expected response to a move of a transfer. */
export function expectTransferMove(
  transfer: TransferStanding,
  move: { do: "cancel" } | { do: "advance"; to: string },
): Expected<TransferStanding> {
  const to = move.do === "cancel" ? "cancelled" : move.to;
  if (move.do === "advance" && to === transfer.status) {
    return { http: 200, code: null, next: transfer, events: [] };
  }
  // A bank can return a transfer that has completed.
  const ends = transfer.status === "pending"
    ? ["completed", "failed", "cancelled"]
    : transfer.status === "completed" && !transfer.is_to_wallet
    ? ["failed"]
    : [];
  if (!ends.includes(to)) {
    return { http: 409, code: "invalid_state", next: transfer, events: [] };
  }
  const next = { ...transfer, status: to, sequence: transfer.sequence + 1 };
  return { http: 200, code: null, next, events: [`transfer.${to}`] };
}
