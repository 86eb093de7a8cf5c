/**
 * The event on the wire (contract §4). A receiver gets the same bytes as the response of
 * `GET /v1/events/{id}`. The type of an event determines the resource that it shows.
 */

import * as z from "zod";
import {
  DISPUTE_EVENT_TYPES,
  ENDPOINT_EVENT_TYPES,
  INSTRUMENT_EVENT_TYPES,
  PAYMENT_EVENT_TYPES,
  REFUND_EVENT_TYPES,
  TRANSFER_EVENT_TYPES,
} from "../core/vocabulary.ts";
import { Dispute } from "./dispute.ts";
import { Instrument } from "./instrument.ts";
import { Payment } from "./payment.ts";
import { Refund } from "./refund.ts";
import { Transfer } from "./transfer.ts";
import { id, Instant } from "./values.ts";
import { WebhookEndpoint } from "./webhook.ts";

export const PaymentEvent = eventOf(PAYMENT_EVENT_TYPES, Payment)
  .describe("An event that shows a payment");
export const RefundEvent = eventOf(REFUND_EVENT_TYPES, Refund)
  .describe("An event that shows a refund");
export const DisputeEvent = eventOf(DISPUTE_EVENT_TYPES, Dispute)
  .describe("An event that shows a dispute");
export const TransferEvent = eventOf(TRANSFER_EVENT_TYPES, Transfer)
  .describe("An event that shows a transfer");
export const InstrumentEvent = eventOf(INSTRUMENT_EVENT_TYPES, Instrument)
  .describe("An event that shows an instrument");
export const WebhookEndpointEvent = eventOf(ENDPOINT_EVENT_TYPES, WebhookEndpoint)
  .describe("An event that shows a webhook endpoint");

export const Event = z.discriminatedUnion("type", [
  PaymentEvent,
  RefundEvent,
  DisputeEvent,
  TransferEvent,
  InstrumentEvent,
  WebhookEndpointEvent,
]).describe("An event, with the resource as it was at the time. An event never changes");

function eventOf<const Types extends readonly string[], Resource extends z.ZodType>(
  types: Types,
  resource: Resource,
) {
  return z.object({
    id: id("evt_"),
    object: z.literal("event"),
    type: z.enum(types).describe("Type of the event"),
    api_version: z.literal("v1"),
    created_at: Instant,
    livemode: z.boolean(),
    sequence: z.number().int().min(0)
      .describe(
        "Orders the events of a resource. Events of refunds and disputes count with the payment",
      ),
    triggered: z.literal(true).optional()
      .describe("Present if a trigger sent the event: the resource did not change"),
    data: z.object({ object: resource }).describe("The resource of the event"),
    request: z.object({
      id: id("req_").nullable()
        .describe("The request that made the change. Null if the service made it"),
      idempotency_key: z.string().nullable().describe(
        "Idempotency key of that request, if it had one",
      ),
    }).describe("The request that caused the event"),
  });
}
