/**
 * Webhook endpoints and deliveries on the wire (contract §4).
 */

import * as z from "zod";
import { ERROR_PAGE } from "../core/errors.ts";
import {
  DELIVERY_STATUSES,
  ENDPOINT_STATUSES,
  EVENT_PATTERNS,
  EVENT_TYPES,
} from "../core/vocabulary.ts";
import { EventType } from "./event_type.ts";
import { MAX_DESCRIPTION } from "./limits.ts";
import { cursor, Limit } from "./list.ts";
import { mustBe } from "./requirement.ts";
import { id, Instant, Metadata, ShownMetadata } from "./values.ts";

/** Longest time for which an older secret still signs after a rotation: contract §4. */
export const MAX_SECRET_OVERLAP_S = 604_800;
/** Entries of an endpoint's list of events; ours: every kind and every pattern once. */
const MAX_SUBSCRIPTIONS = EVENT_TYPES.length + EVENT_PATTERNS.length;

/** What an endpoint can ask for: a kind, or a pattern of kinds. */
export const EventSubscription = mustBe(
  z.enum([...EVENT_TYPES, ...EVENT_PATTERNS])
    .describe("A kind of event, or a pattern of kinds; `*` is all"),
  `an event type such as "payment.completed" or "payment.*". ${ERROR_PAGE}#event-types lists them`,
);

const Subscriptions = mustBe(
  z.array(EventSubscription).min(1).max(MAX_SUBSCRIPTIONS)
    .transform((types) => [...new Set(types)]),
  `a list of 1 to ${MAX_SUBSCRIPTIONS} event types, such as ["payment.completed", "refund.*"]`,
);
const Url = mustBe(
  z.string()
    .describe("`https` on a public host; where the operator allows it, `http` and private hosts"),
  'a URL such as "https://example.com/webhooks"',
);
const Notes = z.string().max(MAX_DESCRIPTION).describe("Free text");

/** `POST /v1/webhook_endpoints`. The address is judged by rules of its own. */
export const CreateWebhookEndpointBody = z.object({
  url: Url,
  events: Subscriptions.default(["*"]),
  description: Notes.optional(),
  metadata: Metadata.optional(),
});
export type CreateWebhookEndpointBody = z.infer<typeof CreateWebhookEndpointBody>;

/** Whether an endpoint gets events. */
export const EndpointStatus = z.enum(ENDPOINT_STATUSES)
  .describe("Whether the endpoint gets events");
export type EndpointStatus = z.infer<typeof EndpointStatus>;

/** `PUT /v1/webhook_endpoints/{id}`: what is given is changed. */
export const UpdateWebhookEndpointBody = z.object({
  url: Url.optional(),
  events: Subscriptions.optional(),
  status: EndpointStatus.optional(),
  description: Notes.nullable().optional(),
  metadata: Metadata.optional(),
}).describe("What is given is changed");
export type UpdateWebhookEndpointBody = z.infer<typeof UpdateWebhookEndpointBody>;

/** `POST /v1/webhook_endpoints/{id}/rotate_secret`: seconds for which the older secret still signs. */
export const RotateWebhookSecretBody = z.object({
  expires_in: mustBe(
    z.number().int().min(0).max(MAX_SECRET_OVERLAP_S).default(0)
      .describe(
        "Seconds for which the older secrets still sign, beside the new one; `0` ends all of them " +
          "at once. At most 5 secrets sign: a rotation that would make a sixth ends the oldest",
      ),
    `a whole number of seconds from 0 to ${MAX_SECRET_OVERLAP_S}, which is 7 days`,
  ),
});

/** Why an endpoint is off. */
export const DISABLED_REASONS = ["manual", "gone", "failing"] as const;
export type DisabledReason = typeof DISABLED_REASONS[number];

/** A webhook endpoint as every answer shows it; `secret` only on creation and rotation. */
export const WebhookEndpoint = z.object({
  id: id("whe_"),
  object: z.literal("webhook_endpoint"),
  url: z.string(),
  events: z.array(EventSubscription),
  status: EndpointStatus,
  disabled_reason: z.enum(DISABLED_REASONS).nullable().describe(
    "`manual`: by a request; `gone`: it answered 410; `failing`: five days of failures only",
  ),
  description: z.string().nullable(),
  metadata: ShownMetadata,
  livemode: z.boolean(),
  created_at: Instant,
  updated_at: Instant,
  secret: z.string().optional()
    .describe("What its deliveries are signed with: on creation and rotation only"),
}).describe("An address that gets events, signed with a secret of its own");
export type WebhookEndpoint = z.infer<typeof WebhookEndpoint>;

/** What a delete of an endpoint answers. */
export const DeletedWebhookEndpoint = z.object({
  id: id("whe_"),
  object: z.literal("webhook_endpoint"),
  deleted: z.literal(true),
});
export type DeletedWebhookEndpoint = z.infer<typeof DeletedWebhookEndpoint>;

/** One HTTP try of a delivery. */
export const DeliveryAttempt = z.object({
  number: z.number().int().min(1),
  at: Instant,
  response_status: z.number().int().nullable().describe("What the receiver answered, if it did"),
  duration_ms: z.number().int().min(0).describe("Rounded up to 100"),
  error: z.enum(["timeout", "connection_failed", "crashed"]).nullable().describe(
    "The reason for a missing answer. `crashed`: the service stopped three times while it sent " +
      "this delivery, and the attempt counts as failed",
  ),
}).describe("One HTTP try of a delivery");
export type DeliveryAttempt = z.infer<typeof DeliveryAttempt>;

/** Status of a delivery. */
export const DeliveryStatus = z.enum(DELIVERY_STATUSES).describe("Where a delivery stands");
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;

/** An event on its way to one endpoint. */
export const WebhookDelivery = z.object({
  id: id("whd_"),
  object: z.literal("webhook_delivery"),
  event_id: id("evt_"),
  event_type: EventType,
  endpoint_id: id("whe_"),
  payment_id: id("pay_").nullable().describe("Of an event of a payment"),
  status: DeliveryStatus,
  attempts: z.array(DeliveryAttempt).describe("The first, and at least the newest 50"),
  next_attempt_at: Instant.nullable(),
  created_at: Instant,
}).describe("An event on its way to one endpoint");
export type WebhookDelivery = z.infer<typeof WebhookDelivery>;

/** `POST /webhooks/trigger` */
export const TriggerWebhookBody = z.object({
  endpoint_id: mustBe(z.string(), 'the id of a webhook endpoint, which begins with "whe_"'),
  event: EventType.describe("Any kind but those of transfers"),
  payment_id: mustBe(z.string(), 'the id of a payment, which begins with "pay_"'),
});
export type TriggerWebhookBody = z.infer<typeof TriggerWebhookBody>;

/** `GET /v1/webhook_endpoints` */
export const ListWebhookEndpointsQuery = z.object({
  limit: Limit,
  starting_after: cursor("whe_"),
});

/** `GET /v1/webhook_deliveries` */
export const ListWebhookDeliveriesQuery = z.object({
  limit: Limit,
  starting_after: cursor("whd_"),
  endpoint_id: id("whe_").optional().describe("Only those of this webhook endpoint"),
  event_id: id("evt_").optional().describe("Only those of this event"),
  payment_id: id("pay_").optional().describe("Only those of this payment"),
  status: DeliveryStatus.optional().describe("Only deliveries in this status"),
});

/** `GET /v1/events` */
export const ListEventsQuery = z.object({
  limit: Limit,
  starting_after: cursor("evt_"),
  type: EventType.optional().describe("Only events of this kind"),
  payment_id: id("pay_").optional().describe("Only those of this payment"),
});
