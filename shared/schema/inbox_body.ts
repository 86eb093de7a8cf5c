/** The requests on the inbox of a webhook endpoint, and on recovery (contract §4). */

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
