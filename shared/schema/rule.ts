/** Rules over the members of a value, for `check` of a schema. */

import * as z from "zod";

/** Refuses a value. `issues` has what was found before. */
export type RuleContext = Pick<z.core.$RefinementCtx, "addIssue" | "issues">;

/**
 * Makes a check of a rule. zod's `superRefine` would give the value of each request a member that
 * is a new function. V8 places a function that is assigned to a member in the old generation, where
 * it would keep the value until the next full collection.
 */
export function rule<Value>(
  judge: (value: Value, context: RuleContext) => void,
  params?: z.core.$ZodCustomParams,
) {
  return z.core._check<Value>(({ value, issues }) => {
    const addIssue: RuleContext["addIssue"] = (issue) => {
      const given = { input: value, continue: true, ...issue as object };
      issues.push(given as unknown as z.core.$ZodRawIssue);
    };
    judge(value, { issues, addIssue });
  }, params);
}
