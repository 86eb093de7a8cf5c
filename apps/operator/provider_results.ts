/** Checks the results that the operator names, and says why one cannot be recorded. */

import { formatAmount } from "../../shared/core/currency.ts";
import type { Effect } from "../../shared/domain/providers/effect.ts";
import type { ReadyAccount } from "../../shared/domain/operations/provider_accounts.ts";
import type {
  Operation,
  ProviderEvent,
  ProviderReply,
} from "../../shared/domain/providers/connector.ts";
import { CommandError } from "./command_line.ts";

export type ProviderEvents = readonly [ProviderEvent, ...ProviderEvent[]];

const SUCCEEDED: Record<Operation["op"], readonly ProviderEvent["state"][]> = {
  authorize: ["succeeded", "authorized"],
  capture: ["succeeded"],
  cancel: ["cancelled"],
  abandon: ["failed"],
  refund: ["succeeded"],
  transfer: ["succeeded"],
  expire: ["cancelled"],
  dispute_evidence: ["succeeded", "dispute_won", "dispute_lost"],
  dispute_accept: ["dispute_lost"],
  dispute_expire: ["dispute_lost"],
  return: ["returned"],
  detach: ["succeeded"],
};

export function checkResult(operation: Operation, found: ProviderEvent, reference: string): void {
  const { id, op, subject, refund, amount_minor, currency, provider_reference } = operation;
  const refuse = (reason: string) =>
    new CommandError(`${id} left unchanged: ${reference} ${reason}`);
  if (!SUCCEEDED[op].includes(found.state)) {
    throw refuse(`is ${found.state}, not a ${op} that worked`);
  }
  if ((found.op === "refund") !== (refund !== null)) throw refuse(`is not the result of a ${op}`);
  if (found.subject_id !== null && found.subject_id !== subject.id) {
    throw refuse(`belongs to ${found.subject_id}, not to ${subject.id}`);
  }
  if (found.refund_id !== null && found.refund_id !== refund?.id) {
    throw refuse(`belongs to ${found.refund_id}, not to ${refund?.id ?? subject.id}`);
  }
  if (provider_reference !== null && found.provider_reference !== provider_reference) {
    throw refuse(`belongs to ${found.provider_reference}, not to ${provider_reference}`);
  }
  // A cancel reports the amount of the payment.
  if (found.amount_minor === amount_minor && found.currency === currency) return;
  const shown = formatAmount(found.amount_minor, found.currency);
  throw refuse(`is ${shown} instead of ${formatAmount(amount_minor, currency)}`);
}

/** Returns the provider events of a reply, or throws the reason why there are none. */
export function eventsIn(
  reply: ProviderReply,
  { connector }: ReadyAccount,
  beginning: string,
  missing: string,
): ProviderEvents {
  if ("provider_events" in reply) return reply.provider_events;
  const reason = "absent" in reply
    ? `${connector.name} has ${missing}`
    : "unknown" in reply
    ? `${connector.name} gives no response (${reply.unknown})`
    : "waiting" in reply
    ? `the result is open: ${reply.waiting}`
    : reply.message;
  throw new CommandError(`${beginning}: ${reason}`);
}

/** Says why a provider event has no effect. */
export function reasonOf(effect: Effect, target: string): string {
  if (effect.outcome === "wait") {
    return `it builds on a provider event that ${target} does not have yet`;
  }
  if ("exception" in effect && effect.exception !== null) return effect.exception;
  return `it changes nothing at ${target}`;
}
