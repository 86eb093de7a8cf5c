/** Applies provider events to transfers, as apply_to_payment.ts does to payments. Pure. */

import type { TransferChange } from "../changes/change_builder.ts";
import { failureIn } from "../payments/payment_steps.ts";
import type { ProviderEvent } from "../providers/connector.ts";
import { cancel, complete, fail, noteCheck } from "./transfer_steps.ts";
import {
  apply,
  applyAmount,
  differs,
  type Effect,
  exception,
  IGNORED,
  WAIT,
} from "../providers/effect.ts";

export function applyToTransfer(change: TransferChange, event: ProviderEvent): Effect {
  const { status, amount_minor, currency, livemode } = change.subject;
  if (event.livemode !== livemode) {
    return exception("the provider's object belongs to another mode");
  }
  if (event.currency !== currency) {
    return exception(`the currency is ${event.currency} instead of ${currency}`);
  }
  const other = differs(amount_minor, event);
  if (other) return other;
  if (event.op === "payee_check") return applyCheck(change, event);
  if (status === "failed" && event.state === "succeeded" && event.chain !== undefined) {
    return exception("the transfer succeeded on the chain, but is failed here");
  }
  // A bank takes the money in one entry before it brings it back in another one.
  if (status === "pending" && event.state === "returned" && event.bank?.entry) return WAIT;
  const is_returned = status === "completed" && event.state === "returned";
  if (status !== "pending" && !is_returned) return IGNORED;
  switch (event.state) {
    case "succeeded":
      return applyAmount(change, amount_minor, event, () => complete(change, event.chain?.tx_hash));
    case "failed":
    case "returned":
      return applyAmount(change, amount_minor, event, () => {
        fail(change, failureIn(event));
      });
    case "cancelled":
      return apply(() => cancel(change));
    default:
      return IGNORED;
  }
}

/** Applies the result about the payee. A transfer that is over stays as it is. */
function applyCheck(change: TransferChange, { bank }: ProviderEvent): Effect {
  const { subject: transfer } = change;
  const payee_check = bank?.payee_check;
  if (payee_check === undefined) return exception("the result about the payee is missing");
  if (transfer.status !== "pending" || transfer.payee_check === payee_check) return IGNORED;
  return apply(() => noteCheck(change, payee_check));
}
