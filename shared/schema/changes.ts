/** Changes of a sandbox on the wire (contract §7). */

import * as z from "zod";
import { mustBe } from "./requirement.ts";
import { waitFor } from "./wait.ts";

const CURSOR = /^chg_[0-9a-f]{32}$/;

export const ReadChangesQuery = z.object({
  after: mustBe(
    z.string().regex(CURSOR).optional().describe(
      "The `next_cursor` of an earlier response. Without it, the response comes at once",
    ),
    'the "next_cursor" of an earlier response, which begins with "chg_"',
  ),
  wait: waitFor("a change if there was none after the cursor"),
});
export type ReadChangesQuery = z.infer<typeof ReadChangesQuery>;

export const Changes = z.object({
  object: z.literal("changes"),
  changed: z.boolean().describe(
    "True if something has changed after the cursor, or if the request had none",
  ),
  next_cursor: z.string().describe("The value of `after` for the next read"),
}).describe("Whether anything in a sandbox has changed");
export type Changes = z.infer<typeof Changes>;
