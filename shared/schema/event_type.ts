/**
 * Types of events (contract §4).
 */

import * as z from "zod";
import { ERROR_PAGE } from "../core/errors.ts";
import { mustBe } from "./requirement.ts";

/** Types of events that show a payment. */
export const PAYMENT_EVENT_TYPES = [
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
] as const;

/** Types of events that show a refund. */
export const REFUND_EVENT_TYPES = ["refund.completed"] as const;

/** Types of events that show a transfer. */
export const TRANSFER_EVENT_TYPES = [
  "transfer.created",
  "transfer.completed",
  "transfer.failed",
  "transfer.cancelled",
] as const;

/** Types of events that show a webhook endpoint. */
export const ENDPOINT_EVENT_TYPES = ["webhook_endpoint.disabled", "ping"] as const;

/** Every type of event. */
export const EVENT_TYPES = [
  ...PAYMENT_EVENT_TYPES,
  ...REFUND_EVENT_TYPES,
  ...TRANSFER_EVENT_TYPES,
  ...ENDPOINT_EVENT_TYPES,
] as const;
export const EventType = mustBe(
  z.enum(EVENT_TYPES).describe("Type of an event"),
  `an event type such as "payment.completed". ${ERROR_PAGE}#event-types lists them`,
);
export type EventType = z.infer<typeof EventType>;

/** The event types that begin with the name of a resource, such as `payment.created`. */
export type EventTypeOf<Kind extends string> = Extract<EventType, `${Kind}.${string}`>;
