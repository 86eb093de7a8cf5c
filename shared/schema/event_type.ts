/**
 * Types of events (contract §4).
 */

import * as z from "zod";
import { ERROR_PAGE } from "../core/errors.ts";
import { EVENT_TYPES } from "../core/vocabulary.ts";
import { mustBe } from "./requirement.ts";

/** Type of an event. */
export const EventType = mustBe(
  z.enum(EVENT_TYPES).describe("Type of an event"),
  `an event type such as "payment.completed". ${ERROR_PAGE}#event-types lists them`,
);
export type EventType = z.infer<typeof EventType>;

/** The event types that begin with the name of a resource, such as `payment.created`. */
export type EventTypeOf<Kind extends string> = Extract<EventType, `${Kind}.${string}`>;
