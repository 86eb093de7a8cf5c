/** The clock of a sandbox on the wire (contract §7). */

import * as z from "zod";
import { SetClockBody } from "./clock_body.ts";
import { Instant } from "./values.ts";

const CLOCK = {
  object: z.literal("clock"),
  now: Instant,
  mode: SetClockBody.shape.mode.unwrap(),
  offset_seconds: z.int().nullable()
    .describe("How far a running clock is ahead of the real time; null while the clock is frozen"),
  target: Instant.nullable()
    .describe(
      "The end of the advances that are not complete; null: none is under way. In the response " +
        "to `POST`: the end of the advance of that request",
    ),
};

export const Clock = z.object(CLOCK).describe("The clock of a sandbox");

const Count = z.int().min(0);

/** A thing that happens by itself when the clock reaches its time (`pay_internal.due_kind`). */
const DueKind = z.enum([
  "payment_result",
  "payment_end",
  "authentication_end",
  "authorization_end",
  "payment_return",
  "refund_result",
  "transfer_result",
  "dispute_loss",
  "dispute_result",
  "delivery",
  "instrument_end",
]).describe(
  "`payment_result`: the provider replies late, or a collection is due. `payment_end`, " +
    "`authentication_end`: the payer's time to pay or to authenticate ends. `authorization_end`: an authorization ends. " +
    "`payment_return`: the bank of a payer takes a payment back. `refund_result` and " +
    "`transfer_result`: the provider replies late. `dispute_loss`: a dispute is lost without " +
    "evidence. `dispute_result`: a dispute with evidence, or an accepted one, is closed. " +
    "`delivery`: a webhook is sent. `instrument_end`: a mandate ends after 36 months without use",
);

export const Due = z.object({
  object: z.literal("due"),
  now: Instant,
  until: Instant.nullable().describe("The `until` of the request"),
  data: z.array(
    z.object({
      kind: DueKind,
      count: z.int().min(1).describe("How many of them wait"),
      first_at: Instant.describe("When the first of them is due; before `now`: it is under way"),
      first_id: z.string().describe(
        "The first of them: a payment (also of a refund or a dispute), transfer, delivery or " +
          "instrument",
      ),
    }).describe("The things of one kind that wait for the clock"),
  ).describe("One item for each kind that something waits of, the earliest first"),
  has_more: z.boolean().describe(
    "True: at least 10 000 operations, deliveries or mandates wait. The counts are those of the " +
      "first 10 000 each",
  ),
}).describe("The things that the clock of a sandbox brings next");

export const ClockAdvance = z.object({
  ...CLOCK,
  did: z.object({
    deliveries: Count.describe("Attempts to deliver webhooks, and deliveries to inboxes"),
    expired_payments: Count.describe("Payments and authorizations that have ended by themselves"),
    disputes_closed: Count.describe("Disputes that were lost at their deadline"),
    purged: Count.describe("Rows that were deleted after their retention"),
  }).describe(
    "The numbers of actions that the advance has done so far. Advances that overlap count together",
  ),
  has_more: z.boolean()
    .describe("True: the clock is on its way to `target`. Send `to` with the value of `target`"),
}).describe("The clock of a sandbox, and what became due");
