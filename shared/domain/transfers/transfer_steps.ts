/** The steps of a transfer: each adds an event to a change, and a movement if money moves. Pure. */

import type { PayeeCheck } from "../../schema/bank_account.ts";
import type { TransferChange } from "../changes/change_builder.ts";
import { type Failure, shownFailure } from "../payments/payment_steps.ts";
import { railOf, withTransaction } from "../rails.ts";

export function noteCheck(change: TransferChange, payee_check: PayeeCheck): void {
  change.addEvent("transfer.updated", { payee_check });
}

/**
 * Completes the transfer: the money has left.
 * @param tx_hash the provider's id of the transaction, if it tells one
 */
export function complete(change: TransferChange, tx_hash?: string): void {
  const { amount_minor, destination } = change.subject;
  change.move("transfer_completed", amount_minor);
  change.addEvent("transfer.completed", {
    status: "completed",
    completed_at: change.at,
    ...(tx_hash !== undefined && {
      destination: withTransaction(destination, railOf(change.subject), tx_hash),
    }),
  });
}

/**
 * Makes the transfer fail, and moves the money back to the available balance: from outside if the
 * transfer had completed before.
 */
export function fail(change: TransferChange, failure: Failure): void {
  const { status, amount_minor } = change.subject;
  change.move(status === "completed" ? "transfer_returned" : "transfer_reversed", amount_minor);
  change.addEvent("transfer.failed", {
    status: "failed",
    ...shownFailure(failure),
  });
}

/** Cancels the transfer, and moves the money back to the available balance. */
export function cancel(change: TransferChange): void {
  change.move("transfer_reversed", change.subject.amount_minor);
  change.addEvent("transfer.cancelled", { status: "cancelled", cancelled_at: change.at });
}
