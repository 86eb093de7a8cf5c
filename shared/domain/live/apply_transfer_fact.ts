/** Applies the facts of providers to transfers, as apply_fact.ts does to payments. Pure. */

import { formatAmount } from "../../core/currency.ts";
import type { Transfer } from "../../schema/transfer.ts";
import { ChangeBuilder } from "../changes/change_builder.ts";
import type { EventContext } from "../changes/event.ts";
import type { Fact } from "../providers/connector.ts";
import { complete, fail } from "../transfers/create_transfer.ts";
import { type Effect, effectOf } from "./fact_effect.ts";

/** Applies a fact to its transfer. */
export function applyTransferFact(
  transfer: Transfer,
  fact: Fact,
  context: EventContext,
): Effect {
  const { amount_minor, currency } = transfer;
  if (fact.livemode !== transfer.livemode) {
    return { outcome: "finding", finding: "the provider's object belongs to another mode" };
  }
  if (fact.currency !== currency || fact.amount_minor !== amount_minor) {
    return {
      outcome: "finding",
      finding: `the amount is ${formatAmount(fact.amount_minor, fact.currency)} instead of ` +
        formatAmount(amount_minor, currency),
    };
  }
  if (transfer.status === "failed" && fact.state === "succeeded" && fact.tx_hash !== undefined) {
    const finding = "the transfer succeeded on the chain, but is failed here";
    return { outcome: "finding", finding };
  }
  if (transfer.status !== "pending") return { outcome: "ignored" };
  const builder = new ChangeBuilder(transfer, context);
  if (fact.state === "succeeded") complete(builder, fact.tx_hash);
  else if (fact.state === "failed" || fact.state === "returned") {
    fail(builder, fact.failure_code ?? "processing_failed", fact.return_code ?? null);
  } else return { outcome: "ignored" };
  return effectOf(builder);
}
