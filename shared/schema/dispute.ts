/** The dispute on the wire (contract §3). */

import * as z from "zod";
import { DISPUTE_REASONS, DISPUTE_STATUSES } from "../core/vocabulary.ts";
import { MAX_EVIDENCE } from "./limits.ts";
import { AmountMinor, CurrencyCode, id, Instant } from "./values.ts";

export const DisputeReason = z.enum(DISPUTE_REASONS).describe("Reason that the payer gives");
export type DisputeReason = z.infer<typeof DisputeReason>;

export const DisputeStatus = z.enum(DISPUTE_STATUSES).describe(
  "Status of the dispute. `needs_response` waits for evidence, and `under_review` for the " +
    "payer's bank. `won` and `lost` are final",
);
export type DisputeStatus = z.infer<typeof DisputeStatus>;

export const DisputeEvidence = z.object({
  text: z.string().describe("The evidence in words"),
  submitted_at: Instant.nullable()
    .describe("Time at which the evidence was submitted. Null: it is saved only"),
}).describe("The evidence of the merchant");
export type DisputeEvidence = z.infer<typeof DisputeEvidence>;

export const Dispute = z.object({
  id: id("dp_"),
  object: z.literal("dispute"),
  payment_id: id("pay_").describe("Id of the payment that is charged back"),
  amount_minor: AmountMinor,
  currency: CurrencyCode,
  reason: DisputeReason,
  status: DisputeStatus,
  evidence: DisputeEvidence.nullable(),
  evidence_due_by: Instant.nullable().describe(
    "Time until which evidence can be sent. Null if the provider of a live payment names none",
  ),
  created_at: Instant,
  closed_at: Instant.nullable().describe("Time at which the dispute was won or lost"),
}).describe("A dispute: the payer has charged a payment back");
export type Dispute = z.infer<typeof Dispute>;

export const SubmitEvidenceBody = z.object({
  text: z.string().min(1).max(MAX_EVIDENCE).describe(
    `The evidence in words, at most ${MAX_EVIDENCE} characters. It replaces saved evidence`,
  ),
  submit: z.boolean().optional().describe(
    "False only saves the evidence. True, the default, submits it, which is possible once",
  ),
}).describe("Evidence for a dispute");
export type SubmitEvidenceBody = z.infer<typeof SubmitEvidenceBody>;
