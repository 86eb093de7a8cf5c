/** The body of the evidence for a dispute (contract §3). */

import * as z from "zod";
import { MAX_EVIDENCE } from "./limits.ts";

export const SubmitEvidenceBody = z.object({
  text: z.string().min(1).max(MAX_EVIDENCE).describe(
    `The evidence in words, at most ${MAX_EVIDENCE} characters. It replaces saved evidence`,
  ),
  submit: z.boolean().optional().describe(
    "False only saves the evidence. True, the default, submits it, which is possible once",
  ),
}).describe("Evidence for a dispute");
export type SubmitEvidenceBody = z.infer<typeof SubmitEvidenceBody>;
