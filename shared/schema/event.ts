/**
 * The event on the wire (contract §4): what a receiver gets, byte for byte what `GET /v1/events/{id}`
 * answers. Its kind says what resource it shows.
 */

import * as z from "zod";
import {
  ENDPOINT_EVENT_TYPES,
  PAYMENT_EVENT_TYPES,
  REFUND_EVENT_TYPES,
  TRANSFER_EVENT_TYPES,
} from "../core/vocabulary.ts";
import { Payment } from "./payment.ts";
import { Refund } from "./refund.ts";
import { Transfer } from "./transfer.ts";
import { id, Instant } from "./values.ts";
import { WebhookEndpoint } from "./webhook.ts";

/** An event of a payment. */
export const PaymentEvent = eventOf(PAYMENT_EVENT_TYPES, Payment)
  .describe("An event that shows a payment");
/** An event of a refund. */
export const RefundEvent = eventOf(REFUND_EVENT_TYPES, Refund)
  .describe("An event that shows a refund");
/** An event of a transfer. */
export const TransferEvent = eventOf(TRANSFER_EVENT_TYPES, Transfer)
  .describe("An event that shows a transfer");
/** An event of a webhook endpoint. */
export const WebhookEndpointEvent = eventOf(ENDPOINT_EVENT_TYPES, WebhookEndpoint)
  .describe("An event that shows a webhook endpoint");

/** An event: what happened, with the resource as of then. Never changes. */
export const Event = z.discriminatedUnion("type", [
  PaymentEvent,
  RefundEvent,
  TransferEvent,
  WebhookEndpointEvent,
]).describe("What happened, with the resource as it was then. It never changes");
export type Event = z.infer<typeof Event>;

function eventOf<const Types extends readonly string[], Resource extends z.ZodType>(
  types: Types,
  resource: Resource,
) {
  return z.object({
    id: id("evt_"),
    object: z.literal("event"),
    type: z.enum(types),
    api_version: z.literal("v1"),
    created_at: Instant,
    livemode: z.boolean(),
    sequence: z.number().int().min(0)
      .describe("Orders the events of one resource: its `sequence` as of the event"),
    triggered: z.literal(true).optional().describe("Sent on demand: nothing has changed"),
    data: z.object({ object: resource }),
    request: z.object({
      id: id("req_").nullable().describe("The request that made the change; null: the service"),
      idempotency_key: z.string().nullable(),
    }),
  });
}
