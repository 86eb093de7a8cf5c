/** How long a read waits (contract §4, contract §7). */

import * as z from "zod";
import { mustBe } from "./requirement.ts";

const MAX_WAIT_S = 20;

const WORDS = `a whole number of seconds from 0 to ${MAX_WAIT_S}`;

/** Makes the parameter of a read that can wait for something. */
export function waitFor(something: string) {
  return mustBe(
    z.string().regex(/^\d{1,2}$/)
      .transform(Number)
      .refine((wait) => wait <= MAX_WAIT_S, { error: `must be ${WORDS}` })
      .default(0)
      .describe(`Seconds to wait for ${something}`),
    WORDS,
  );
}
