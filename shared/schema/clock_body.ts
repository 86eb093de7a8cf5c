/** The requests on the clock of a sandbox (contract §7). */

import * as z from "zod";
import { MAX_ADVANCE_DAYS } from "./limits.ts";
import { mustBe } from "./requirement.ts";
import { Time } from "./values.ts";

const ClockMode = z.enum(["real", "frozen"])
  .describe("`real`: the clock runs. `frozen`: it stands");

export const SetClockBody = z.object({
  to: Time.optional().describe(
    "The new time, at most 400 days after the present one and not after 2200-01-01T00:00:00Z. A " +
      "time before the end of an advance that is not complete goes on to that end",
  ),
  advance: mustBe(
    z.int().min(1).max(MAX_ADVANCE_DAYS * 86_400),
    "a whole number of seconds from 1 to 34560000 (400 days)",
  ).optional().describe(
    "Seconds by which the clock advances, after the end of the advances that are not complete",
  ),
  mode: ClockMode.optional(),
}).describe("Send `to` or `advance`, `mode`, or one of the first two together with `mode`");
export type SetClockBody = z.infer<typeof SetClockBody>;

export const DueQuery = z.object({
  until: Time.optional().describe("Only what is due until this RFC 3339 time of the sandbox"),
});
