/** Rules over the members of a value, for `check` of a schema. */

import * as z from "zod";

/** An issue of the checked value; by default its input is the whole value. */
interface Refusal {
  code: z.core.$ZodIssue["code"];
  path?: PropertyKey[];
  message?: string;
  [member: string]: unknown;
}

export interface RuleContext {
  addIssue(issue: Refusal): void;
  /** Those that earlier checks have added. */
  issues: z.core.$ZodRawIssue[];
}

/**
 * Makes a check of a rule. zod's `superRefine` would assign a new function to a member of its
 * payload. V8 places such a function in the old generation, where it would keep the value until the
 * next full collection. (`transform` does the same, but to the values of single members.)
 */
export function rule<Value>(
  judge: (value: Value, context: RuleContext) => void,
  params?: Pick<z.core.$ZodCustomParams, "when">,
) {
  return z.core._check<Value>(({ value, issues }) => {
    const addIssue = (issue: Refusal) => {
      issues.push({ input: value, continue: true, ...issue } as unknown as z.core.$ZodRawIssue);
    };
    judge(value, { issues, addIssue });
  }, params);
}
