/**
 * The connector of the sandbox. A request in a sandbox has its result at once and needs no call,
 * except where the result comes later by itself: a late answer, and the end of an authorization, of
 * a payment whose payer does nothing, or of a dispute that the merchant has not won in time.
 * The worker makes these calls as it makes those of live providers.
 */

import type {
  Connector,
  Fact,
  FactState,
  ProviderCall,
  ProviderReply,
} from "../domain/providers/connector.ts";
import { formatTime } from "../core/clock.ts";

/** Creates the connector of the sandbox. */
export function sandboxConnector(): Connector {
  return {
    name: "sandbox",
    method_kinds: ["card", "sepa", "swift", "stablecoin"],
    checkSettings() {},
    send: (_account, call) => Promise.resolve(replyTo(call)),
    look: (_account, call) => Promise.resolve(replyTo(call)),
    find: (_account, call) => Promise.resolve(replyTo(call)),
    poll: (_account, cursor) => Promise.resolve({ facts: [], cursor, more: false }),
    readNotification: () => Promise.resolve([]),
    totals: () => Promise.resolve({ totals: [] }),
    test: () => Promise.resolve("The sandbox needs no provider"),
  };
}

function replyTo(call: ProviderCall): ProviderReply {
  if (call.op === "expire") return { facts: [{ ...factOf(call, "cancelled"), op: "cancel" }] };
  if (call.op === "abandon") {
    return { facts: [{ ...factOf(call, "failed"), failure_code: "expired" }] };
  }
  if (call.dispute) {
    const { id } = call.dispute.present;
    const lost = {
      ...factOf(call, "dispute_lost"),
      op: "dispute",
      reference: `${id}:lost`,
    } as const;
    return { facts: [lost] };
  }
  const is_manual = call.subject.object === "payment" && call.subject.capture === "manual";
  return { facts: [factOf(call, is_manual ? "authorized" : "succeeded")] };
}

function factOf(call: ProviderCall, state: FactState): Fact {
  const { id, op, subject, amount_minor, currency, created_at_ms } = call;
  return {
    account_id: "sandbox",
    reference: `${id}:${state}`,
    op,
    state,
    subject_id: subject.id,
    refund_id: null,
    provider_reference: null,
    amount_minor,
    currency,
    at: formatTime(created_at_ms),
    livemode: false,
  };
}
