/** The dispute on the wire (contract §3). */

import * as z from "zod";
import { DisputeReason, DisputeStatus } from "./statuses.ts";
import { AmountMinor, CurrencyCode, id, Instant } from "./values.ts";

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
