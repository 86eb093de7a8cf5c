/** The next things that the clock of the sandbox brings, from the resources that name their time. */

import type { Dispute, Payment, WebhookDelivery } from "../client/mod.ts";
import { AUTHENTICATION_WINDOW_MS } from "../shared/domain/payments/lifecycle.ts";

/** A thing that happens by itself at a time. */
export interface Due {
  at_ms: number;
  text: string;
  /** The resource. */
  id: string;
}

/** Returns what is due for payments, disputes and deliveries, the earliest first. */
export function dueOf(
  payments: readonly Payment[],
  disputes: readonly Dispute[],
  deliveries: readonly WebhookDelivery[],
): Due[] {
  return [
    ...payments.flatMap(dueOfPayment),
    ...disputes.flatMap(({ id, evidence_due_by }) =>
      evidence_due_by === null
        ? []
        : [{ at_ms: Date.parse(evidence_due_by), text: "Lost without evidence", id }]
    ),
    ...deliveries.flatMap((delivery) => {
      const { id, event_type, payment_id, next_attempt_at, blocked_by } = delivery;
      if (next_attempt_at === null || blocked_by !== undefined) return [];
      const text = `Attempt to deliver ${event_type}`;
      return [{ at_ms: Date.parse(next_attempt_at), text, id: payment_id ?? id }];
    }),
  ].sort((a, b) => a.at_ms - b.at_ms);
}

function dueOfPayment({ id, status, capture_before, next_action, updated_at }: Payment): Due[] {
  if (capture_before !== null) {
    return [{ at_ms: Date.parse(capture_before), text: "Authorization ends", id }];
  }
  if (next_action !== null && "expires_at" in next_action) {
    return [{ at_ms: Date.parse(next_action.expires_at), text: "Time to pay ends", id }];
  }
  if (status !== "requires_action") return [];
  const at_ms = Date.parse(updated_at) + AUTHENTICATION_WINDOW_MS;
  return [{ at_ms, text: "Time to authenticate ends", id }];
}
