/** The bodies and queries of requests on webhook endpoints, deliveries and events (contract §4). */

import * as z from "zod";
import {
  DELIVERY_STATUSES,
  ENDPOINT_DELIVERIES,
  ENDPOINT_STATUSES,
  EVENT_PATTERNS,
  EVENT_TYPES,
} from "../core/vocabulary.ts";
import { EventType } from "./event_type.ts";
import { MAX_DESCRIPTION } from "./limits.ts";
import { oneSubject, page } from "./list.ts";
import { mustBe, replaceable } from "./requirement.ts";
import { rule } from "./rule.ts";
import { id, Metadata } from "./values.ts";

/** Longest time in seconds that older secrets sign after a rotation (contract §4). */
const MAX_SECRET_OVERLAP_S = 604_800;

/** Entries of an endpoint's list of events: every type and every pattern once. */
const MAX_SUBSCRIPTIONS = EVENT_TYPES.length + EVENT_PATTERNS.length;

/** An entry of an endpoint's list of events: a type, or a pattern of types. */
export const EventSubscription = mustBe(
  z.enum([...EVENT_TYPES, ...EVENT_PATTERNS])
    .describe("A type of event, or a pattern of types. `*` matches all"),
  `an event type such as "payment.completed" or "payment.*". GET /v1/openapi.json lists them`,
);

const Subscriptions = mustBe(
  z.array(EventSubscription).min(1).max(MAX_SUBSCRIPTIONS)
    .transform((types) => [...new Set(types)]),
  `a list of 1 to ${MAX_SUBSCRIPTIONS} event types, such as ["payment.completed", "refund.*"]`,
);

const Url = mustBe(
  z.string()
    .describe("`https` and a public host. The operator can allow `http` and private hosts"),
  'a URL such as "https://example.com/webhooks"',
);

const Notes = z.string().max(MAX_DESCRIPTION).describe("Your own text for people");

export const EndpointDelivery = z.enum(ENDPOINT_DELIVERIES).describe(
  "`url`: the service sends the events to the URL. `inbox`: there is no URL, and the receiver " +
    "reads the events",
);
export type EndpointDelivery = z.infer<typeof EndpointDelivery>;

/** The end of the messages about a URL that is missing, or that an inbox cannot have. */
export const URL_RULES = {
  required: 'is required: send a URL such as "https://example.com/webhooks", or send ' +
    '"delivery": "inbox"',
  refused: 'cannot be sent with "delivery": "inbox", because an inbox has no URL: send one of them',
} as const;

/** The body of `POST /v1/webhook_endpoints`. `core/endpoint_url.ts` checks the URL. */
export const CreateWebhookEndpointBody = z.object({
  delivery: EndpointDelivery.default("url"),
  url: replaceable(Url.optional()),
  events: Subscriptions.default(["*"]).describe("The types of events that the endpoint receives"),
  description: Notes.optional(),
  metadata: Metadata.optional(),
}).check(rule(({ delivery, url }, context) => {
  if ((delivery === "url") === (url !== undefined)) return;
  const message = delivery === "url" ? URL_RULES.required : URL_RULES.refused;
  context.addIssue({ code: "custom", path: ["url"], message });
})).describe("A new webhook endpoint");
export type CreateWebhookEndpointBody = z.infer<typeof CreateWebhookEndpointBody>;

export const EndpointStatus = z.enum(ENDPOINT_STATUSES)
  .describe("Status of an endpoint. Only an `enabled` one gets events");
export type EndpointStatus = z.infer<typeof EndpointStatus>;

/** The body of `PUT /v1/webhook_endpoints/{id}`. Absent fields keep their values. */
export const UpdateWebhookEndpointBody = z.object({
  delivery: EndpointDelivery.optional().describe(
    "`inbox` removes the URL. `url` needs a `url`, and sends the deliveries to it that are in " +
      "the inbox and not acknowledged",
  ),
  url: Url.optional(),
  events: Subscriptions.optional().describe("The types of events that the endpoint receives"),
  status: EndpointStatus.optional(),
  description: Notes.nullable().optional().describe("Your own text for people; null removes it"),
  metadata: Metadata.optional(),
}).describe("The fields to change. Absent fields keep their values");
export type UpdateWebhookEndpointBody = z.infer<typeof UpdateWebhookEndpointBody>;

export const RotateWebhookSecretBody = z.object({
  expires_in: mustBe(
    z.number().int().min(0).max(MAX_SECRET_OVERLAP_S).default(0)
      .describe(
        "Seconds that the older secrets still sign, in addition to the new one; `0` ends all of " +
          "them at once. At most 5 secrets sign: a rotation that would make a sixth ends the " +
          "oldest",
      ),
    `a whole number of seconds from 0 to ${MAX_SECRET_OVERLAP_S}, which is 7 days`,
  ),
}).describe("The time that the older secrets still sign");

export const DeliveryStatus = z.enum(DELIVERY_STATUSES).describe(
  "Status of a delivery. `available`: it is in an inbox, and its receiver has not acknowledged it",
);
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;

export const TriggerWebhookBody = z.object({
  endpoint_id: mustBe(
    z.string().describe("The endpoint that receives the event"),
    'the id of a webhook endpoint, which begins with "whe_"',
  ),
  event: EventType.describe("Any type of event except those of transfers and instruments"),
  payment_id: mustBe(
    z.string().describe("The payment that the event shows"),
    'the id of a payment, which begins with "pay_"',
  ),
}).describe("The event to send");
export type TriggerWebhookBody = z.infer<typeof TriggerWebhookBody>;

export const ListWebhookEndpointsQuery = z.object({
  ...page("whe_"),
});

export const ListWebhookDeliveriesQuery = z.object({
  ...page("whd_"),
  endpoint_id: id("whe_").optional().describe("Only deliveries to this webhook endpoint"),
  event_id: id("evt_").optional().describe("Only deliveries of this event"),
  payment_id: id("pay_").optional().describe(
    "Only deliveries of events of this payment. It cannot be combined with `transfer_id`",
  ),
  transfer_id: id("tr_").optional().describe("Only deliveries of events of this transfer"),
  instrument_id: id("ins_").optional()
    .describe("Only deliveries of `instrument.*` events of this instrument"),
  status: DeliveryStatus.optional().describe("Only deliveries in this status"),
}).check(rule(oneSubject));

export const ListEventsQuery = z.object({
  ...page("evt_"),
  type: EventType.optional().describe("Only events of this type"),
  payment_id: id("pay_").optional().describe(
    "Only events of this payment. It cannot be combined with `transfer_id`",
  ),
  transfer_id: id("tr_").optional().describe("Only events of this transfer"),
  instrument_id: id("ins_").optional()
    .describe("Only events of this instrument, and of payments that have saved or used it"),
  request_id: id("req_").optional().describe("Only events that this request has caused"),
}).check(rule(oneSubject));
