/** Kinds of events, as they are offered to be picked. A test holds them equal to the schema's. */

import type { EventType } from "../client/mod.ts";

/** Every kind, in the order of the lifecycle. */
export const EVENT_TYPES: readonly EventType[] = [
  "payment.created",
  "payment.requires_action",
  "payment.processing",
  "payment.completed",
  "payment.declined",
  "payment.failed",
  "payment.cancelled",
  "payment.partially_refunded",
  "payment.refunded",
  "payment.chargeback",
  "refund.completed",
  "transfer.created",
  "transfer.completed",
  "transfer.failed",
  "transfer.cancelled",
  "webhook_endpoint.disabled",
  "ping",
];
