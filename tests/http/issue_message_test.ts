/** A message counts the characters of a text only if their number is the fault. */

import assert from "node:assert/strict";
import * as z from "zod";
import { issueMessage } from "../../shared/http/issue_message.ts";
import { mustBe } from "../../shared/schema/requirement.ts";

const WORDS = "text of 2 to 4 letters";
const SCHEMA = z.object({ code: mustBe(z.string().min(2).max(4).regex(/^[a-z]*$/), WORDS) });

const CASES: [sent: string, end: string][] = [
  ["abcde", ": it has 5"],
  ["", ": it is empty"],
  ["a1", ""],
];

for (const [sent, end] of CASES) {
  Deno.test(`issueMessage() of "${sent}" ends with "${WORDS}${end}"`, () => {
    const [issue] = SCHEMA.safeParse({ code: sent }).error!.issues;
    const fault = { param: "code", sent, literal: undefined, currency: undefined };
    assert.equal(issueMessage(SCHEMA, issue!, fault), `"code" must be ${WORDS}${end}`);
  });
}
