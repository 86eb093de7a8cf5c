/** Types of events (contract §4). */

import * as z from "zod";
import { EVENT_TYPES } from "../core/vocabulary.ts";
import { mustBe } from "./requirement.ts";

export const EventType = mustBe(
  z.enum(EVENT_TYPES).describe("Type of an event"),
  `an event type such as "payment.completed". GET /v1/openapi.json lists them`,
);
export type EventType = z.infer<typeof EventType>;

/** The event types that begin with the name of a resource, such as `payment.created`. */
export type EventTypeOf<Kind extends string> = Extract<EventType, `${Kind}.${string}`>;
