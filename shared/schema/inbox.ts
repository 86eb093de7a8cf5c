/** The inbox of a webhook endpoint, and recovery, on the wire (contract §4). */

import * as z from "zod";
import { Limit } from "./list.ts";
import { mustBe } from "./requirement.ts";
import { id, Time } from "./values.ts";
import { waitFor } from "./wait.ts";

/** The form of a cursor: the endpoint, and a position in its inbox. */
export const INBOX_CURSOR = /^inb_([0-9a-z]{26})_(\d{1,15})$/;

export const ReadInboxQuery = z.object({
  after: mustBe(
    z.string().regex(INBOX_CURSOR).optional().describe(
      "The `next_cursor` of an earlier response. It acknowledges the deliveries up to it. " +
        "Without it, the response begins with the first delivery that is not acknowledged",
    ),
    'the "next_cursor" of an earlier response, which begins with "inb_"',
  ),
  wait: waitFor("a delivery if the inbox has none"),
  limit: Limit,
});
export type ReadInboxQuery = z.infer<typeof ReadInboxQuery>;

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

export const RecoverDeliveriesBody = z.object({
  since: Time.describe("The first time of the period, at most 30 days ago"),
  until: Time.optional().describe("The last time of the period. By default the present"),
  status: z.enum(["failed", "all"]).default("failed").describe(
    "`failed`: deliveries that have failed or were cancelled. `all`: also those that the " +
      "endpoint has got",
  ),
  starting_after: mustBe(
    id("whd_").optional().describe("The `next_cursor` of the previous response"),
    'the "next_cursor" of the previous response, which begins with "whd_"',
  ),
}).describe("The period whose deliveries the endpoint gets again");
export type RecoverDeliveriesBody = z.infer<typeof RecoverDeliveriesBody>;

export const Recovery = z.object({
  object: z.literal("recovery"),
  endpoint_id: id("whe_").describe("Id of the endpoint that gets them"),
  count: z.number().int().min(0).describe("Number of deliveries that are `pending` again"),
  has_more: z.boolean().describe("True if the period has more deliveries"),
  next_cursor: id("whd_").nullable().describe(
    "The value of `starting_after` for the next request. Null if `has_more` is false",
  ),
}).describe("A recovery of the deliveries that an endpoint has missed");
