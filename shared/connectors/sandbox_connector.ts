/**
 * The connector of the sandbox. A request in a sandbox has its result at once and needs no call,
 * except where the result comes later by itself: a late answer, a call with a declared timeout, and
 * the end of an authorization, of a payment whose payer does nothing, or of a dispute that the
 * merchant has not won in time.
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
import { METHOD_KINDS } from "../core/vocabulary.ts";
import { transactionHash } from "../domain/providers/sandbox_provider.ts";
import type { Payment } from "../schema/payment.ts";

/** Creates the connector of the sandbox. */
export function sandboxConnector(): Connector {
  return {
    name: "sandbox",
    secret_is_optional: true,
    method_kinds: METHOD_KINDS,
    checkSettings: (settings) => Promise.resolve(settings),
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
  const { op, simulated, subject, dispute } = call;
  if (simulated) return { facts: [{ ...factOf(call, simulated.state), ...simulated }] };
  if (dispute) {
    const lost = {
      ...factOf(call, "dispute_lost"),
      op: "dispute",
      reference: `${dispute.present.id}:lost`,
    } as const;
    return { facts: [lost] };
  }
  switch (op) {
    case "expire":
      return { facts: [{ ...factOf(call, "cancelled"), op: "cancel" }] };
    case "abandon":
      return { facts: [{ ...factOf(call, "failed"), failure_code: "expired" }] };
    case "cancel":
      return { facts: [factOf(call, "cancelled")] };
    case "authorize":
      return { facts: [authorizationOf(call, subject as Payment)] };
    default:
      return { facts: [factOf(call, "succeeded")] };
  }
}

function authorizationOf(call: ProviderCall, payment: Payment): Fact {
  if (payment.capture === "manual") return factOf(call, "authorized");
  const { method, amount_minor, currency } = payment;
  return {
    ...factOf(call, "succeeded"),
    ...(method?.type === "stablecoin" && {
      tx_hash: transactionHash(amount_minor, currency, method.wallet),
    }),
  };
}

function factOf(call: ProviderCall, state: FactState): Fact {
  const { id, op, subject, refund, amount_minor, currency, created_at_ms } = call;
  return {
    account_id: "sandbox",
    reference: `${id}:${state}`,
    op,
    state,
    subject_id: subject.id,
    refund_id: refund?.id ?? null,
    provider_reference: null,
    amount_minor,
    currency,
    at: formatTime(created_at_ms),
    livemode: false,
  };
}
