/** Webhook endpoints and deliveries on the wire (contract §4). */

import * as z from "zod";
import { EventType } from "./event_type.ts";
import { id, Instant, ShownMetadata } from "./values.ts";
import {
  DeliveryStatus,
  EndpointDelivery,
  EndpointStatus,
  EventSubscription,
} from "./webhook_body.ts";

export const DISABLED_REASONS = ["manual", "gone", "failing"] as const;
export type DisabledReason = typeof DISABLED_REASONS[number];

/** A webhook endpoint in a response. Only creation and rotation show `secret`. */
export const WebhookEndpoint = z.object({
  id: id("whe_"),
  object: z.literal("webhook_endpoint"),
  delivery: EndpointDelivery.describe("`url` or `inbox`"),
  url: z.string().nullable().describe("Address that receives the events. Null for an inbox"),
  events: z.array(EventSubscription).describe("The types of events that it receives"),
  status: EndpointStatus,
  disabled_reason: z.enum(DISABLED_REASONS).nullable().describe(
    "`manual`: a request disabled it. `gone`: it returned 410. `failing`: all attempts of five " +
      "days failed",
  ),
  description: z.string().nullable().describe("Your own text for people; null without one"),
  metadata: ShownMetadata,
  livemode: z.boolean(),
  created_at: Instant,
  updated_at: Instant,
  secret: z.string().optional()
    .describe("The secret that signs its deliveries. Only creation and rotation show it"),
  failing: z.literal(true).optional()
    .describe("Only reads show it, while the endpoint is enabled and its newest attempt failed"),
}).describe("A URL or an inbox that gets events, signed with its own secret");
export type WebhookEndpoint = z.infer<typeof WebhookEndpoint>;

export const DeletedWebhookEndpoint = z.object({
  id: id("whe_"),
  object: z.literal("webhook_endpoint"),
  deleted: z.literal(true).describe("Always true"),
}).describe("A deleted webhook endpoint");
export type DeletedWebhookEndpoint = z.infer<typeof DeletedWebhookEndpoint>;

export const DeliveryAttempt = z.object({
  number: z.number().int().min(1).describe("Number of the attempt, from 1"),
  at: Instant,
  response_status: z.number().int().nullable()
    .describe("HTTP status of the receiver's response. Null: there was none"),
  duration_ms: z.number().int().min(0)
    .describe("Duration in milliseconds, rounded up to a multiple of 100"),
  error: z.enum(["timeout", "connection_failed", "crashed"]).nullable().describe(
    "The reason for a missing response. `crashed`: the service stopped three times while it sent " +
      "this delivery, and the attempt counts as failed",
  ),
}).describe("One HTTP attempt of a delivery");
export type DeliveryAttempt = z.infer<typeof DeliveryAttempt>;

export const DeliveryExchange = z.object({
  attempt: z.number().int().min(1).describe("Number of the attempt"),
  request: z.object({
    url: z.string().describe("The URL of the request"),
    headers: z.record(z.string(), z.string())
      .describe("Headers of the request, with the signatures"),
    body: z.string().describe("Body of the request: the exact text that the signature covers"),
  }).describe("The request of the attempt"),
  response: z.object({
    text: z.string().describe(
      "The first 1 024 bytes of the response as UTF-8: status line, headers and body as they came",
    ),
    truncated: z.boolean().describe("True: the response had more bytes"),
  }).nullable().describe("Beginning of the response. Null: there was none"),
}).describe("The request of an attempt in a sandbox, and the beginning of its response");
export type DeliveryExchange = z.infer<typeof DeliveryExchange>;

export const WebhookDelivery = z.object({
  id: id("whd_"),
  object: z.literal("webhook_delivery"),
  event_id: id("evt_").describe("The delivered event"),
  event_type: EventType,
  endpoint_id: id("whe_").describe("The endpoint that receives it"),
  payment_id: id("pay_").nullable()
    .describe("The payment of the event. Null if the event belongs to no payment"),
  status: DeliveryStatus,
  attempts: z.array(DeliveryAttempt)
    .describe(
      "All attempts up to 50, then the first and at least the newest 50. A delivery to an inbox " +
        "has none",
    ),
  next_attempt_at: Instant.nullable(),
  created_at: Instant,
  blocked_by: id("whd_").describe(
    "The pending delivery that this one waits for: the first of the same payment and endpoint. " +
      "Missing if it waits for none",
  ).optional(),
  exchanges: z.array(DeliveryExchange).optional().describe(
    "Requests and responses of the newest five attempts, oldest first. Only the read of one " +
      "delivery shows them, in a sandbox, for 7 days",
  ),
}).describe("The delivery of an event to one endpoint");
export type WebhookDelivery = z.infer<typeof WebhookDelivery>;
