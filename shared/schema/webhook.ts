/**
 * Webhook endpoints, events and deliveries on the wire (contract §4).
 */

import { z } from "zod";
import { MAX_DESCRIPTION } from "./limits.ts";
import { id, Limit } from "./list.ts";
import { Instant, Metadata } from "./values.ts";

/** Every kind of event. */
export const EVENT_TYPES = [
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
] as const;
export type EventType = typeof EVENT_TYPES[number];

/** Patterns that stand for several kinds. */
const PATTERNS = ["*", "payment.*", "refund.*", "transfer.*", "webhook_endpoint.*"] as const;

/** Longest time for which an older secret still signs after a rotation: contract §4. */
export const MAX_SECRET_OVERLAP_S = 604_800;
/** Entries of an endpoint's list of events; ours: every kind and every pattern once. */
const MAX_SUBSCRIPTIONS = EVENT_TYPES.length + PATTERNS.length;

const Subscriptions = z.array(z.enum([...EVENT_TYPES, ...PATTERNS])).min(1).max(MAX_SUBSCRIPTIONS)
  .transform((types) => [...new Set(types)]);

/** `POST /v1/webhook_endpoints`. The address is judged by rules of its own. */
export const CreateWebhookEndpointBody = z.object({
  url: z.string(),
  events: Subscriptions.default(["*"]),
  description: z.string().max(MAX_DESCRIPTION).optional(),
  metadata: Metadata.optional(),
});
export type CreateWebhookEndpointBody = z.infer<typeof CreateWebhookEndpointBody>;

/** `PUT /v1/webhook_endpoints/{id}`: what is given is changed. */
export const UpdateWebhookEndpointBody = z.object({
  url: z.string().optional(),
  events: Subscriptions.optional(),
  status: z.enum(["enabled", "disabled"]).optional(),
  description: z.string().max(MAX_DESCRIPTION).nullable().optional(),
  metadata: Metadata.optional(),
});
export type UpdateWebhookEndpointBody = z.infer<typeof UpdateWebhookEndpointBody>;

/** `POST /v1/webhook_endpoints/{id}/rotate_secret`: seconds for which the older secret still signs. */
export const RotateSecretBody = z.object({
  expires_in: z.number().int().min(0).max(MAX_SECRET_OVERLAP_S).default(0),
});

/** Why an endpoint is off. */
export const DISABLED_REASONS = ["manual", "gone", "failing"] as const;

/** A webhook endpoint as every answer shows it; `secret` only on creation and rotation. */
export const WebhookEndpoint = z.object({
  id: z.string(),
  object: z.literal("webhook_endpoint"),
  url: z.string(),
  events: z.array(z.string()),
  status: z.enum(["enabled", "disabled"]),
  disabled_reason: z.enum(DISABLED_REASONS).nullable(),
  description: z.string().nullable(),
  metadata: z.record(z.string(), z.string()),
  livemode: z.boolean(),
  created_at: Instant,
  updated_at: Instant,
  secret: z.string().optional(),
});
export type WebhookEndpoint = z.infer<typeof WebhookEndpoint>;

/** One HTTP try of a delivery. `duration_ms` is rounded up to 100. */
export const DeliveryAttempt = z.object({
  number: z.number().int().min(1),
  at: Instant,
  response_status: z.number().int().nullable(),
  duration_ms: z.number().int().min(0),
  error: z.enum(["timeout", "connection_failed"]).nullable(),
});
export type DeliveryAttempt = z.infer<typeof DeliveryAttempt>;

/** Statuses of a delivery. */
export const DELIVERY_STATUSES = ["pending", "delivered", "failed", "cancelled"] as const;

/** An event on its way to one endpoint. */
export const WebhookDelivery = z.object({
  id: z.string(),
  object: z.literal("webhook_delivery"),
  event_id: z.string(),
  event_type: z.string(),
  endpoint_id: z.string(),
  payment_id: z.string().nullable(),
  status: z.enum(DELIVERY_STATUSES),
  attempts: z.array(DeliveryAttempt),
  next_attempt_at: Instant.nullable(),
  created_at: Instant,
});

/** An event: what happened, with the resource as of then. */
export const Event = z.object({
  id: z.string(),
  object: z.literal("event"),
  type: z.enum(EVENT_TYPES),
  api_version: z.literal("v1"),
  created_at: Instant,
  livemode: z.boolean(),
  sequence: z.number().int(),
  triggered: z.literal(true).optional(),
  data: z.object({ object: z.record(z.string(), z.unknown()) }),
  request: z.object({ id: z.string().nullable(), idempotency_key: z.string().nullable() }),
});

/** `POST /webhooks/trigger` */
export const TriggerBody = z.object({
  endpoint_id: z.string(),
  event: z.enum(EVENT_TYPES),
  payment_id: z.string(),
});
export type TriggerBody = z.infer<typeof TriggerBody>;

/** `GET /v1/webhook_endpoints` */
export const ListWebhookEndpointsQuery = z.object({
  limit: Limit,
  starting_after: id("whe_").optional(),
});

/** `GET /v1/webhook_deliveries` */
export const ListWebhookDeliveriesQuery = z.object({
  limit: Limit,
  starting_after: id("whd_").optional(),
  endpoint_id: id("whe_").optional(),
  event_id: id("evt_").optional(),
  payment_id: id("pay_").optional(),
  status: z.enum(DELIVERY_STATUSES).optional(),
});

/** `GET /v1/events` */
export const ListEventsQuery = z.object({
  limit: Limit,
  starting_after: id("evt_").optional(),
  type: z.enum(EVENT_TYPES).optional(),
  payment_id: id("pay_").optional(),
});
