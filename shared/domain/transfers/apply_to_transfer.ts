/** Applies the facts of providers to transfers, as apply_to_payment.ts does to payments. Pure. */

import { formatAmount } from "../../core/currency.ts";
import type { TransferChange } from "../changes/change_builder.ts";
import type { Fact } from "../providers/connector.ts";
import { cancel, complete, fail } from "./settlement.ts";
import { apply, type Effect, finding, IGNORED, shown } from "../providers/effect.ts";

/** Applies a fact to its transfer. */
export function applyToTransfer(change: TransferChange, fact: Fact): Effect {
  const { status, amount_minor, currency, livemode } = change.subject;
  if (fact.livemode !== livemode) return finding("the provider's object belongs to another mode");
  if (fact.currency !== currency || fact.amount_minor !== amount_minor) {
    return finding(
      `the amount is ${shown(fact)} instead of ${formatAmount(amount_minor, currency)}`,
    );
  }
  if (status === "failed" && fact.state === "succeeded" && fact.tx_hash !== undefined) {
    return finding("the transfer succeeded on the chain, but is failed here");
  }
  if (status !== "pending") return IGNORED;
  switch (fact.state) {
    case "succeeded":
      return apply(() => complete(change, fact.tx_hash));
    case "failed":
    case "returned":
      return apply(() =>
        fail(change, fact.failure_code ?? "processing_failed", fact.return_code ?? null)
      );
    case "cancelled":
      return apply(() => cancel(change));
    default:
      return IGNORED;
  }
}
