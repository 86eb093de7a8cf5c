/** The inbox of a webhook endpoint, and recovery, on the wire (contract §4). */

import * as z from "zod";
import { id } from "./values.ts";

export const InboxDelivery = z.object({
  id: id("whd_"),
  event_id: id("evt_").describe("Id of the event that is delivered"),
  headers: z.record(z.string(), z.string())
    .describe("The headers, signed with the time of the read"),
  body: z.string().describe("The raw text that is signed. Verify it before you parse it"),
}).describe("A delivery in an inbox: the request that an endpoint with a URL would get");
export type InboxDelivery = z.infer<typeof InboxDelivery>;

export const Inbox = z.object({
  object: z.literal("inbox"),
  data: z.array(InboxDelivery).describe(
    "The deliveries, oldest first. One with the declared fault `duplicate` comes twice",
  ),
  has_more: z.boolean().describe("True if the inbox has more deliveries after these"),
  next_cursor: z.string().describe(
    "The value of `after` for the next read. It acknowledges these deliveries, so send it when " +
      "you have handled them",
  ),
}).describe("Deliveries in the inbox of a webhook endpoint");
export type Inbox = z.infer<typeof Inbox>;

export const Recovery = z.object({
  object: z.literal("recovery"),
  endpoint_id: id("whe_").describe("Id of the endpoint that gets them"),
  count: z.number().int().min(0).describe("Number of deliveries that are `pending` again"),
  has_more: z.boolean().describe("True if the period has more deliveries"),
  next_cursor: id("whd_").nullable().describe(
    "The value of `starting_after` for the next request. Null if `has_more` is false",
  ),
}).describe("A recovery of the deliveries that an endpoint has missed");
