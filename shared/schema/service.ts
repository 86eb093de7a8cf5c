/**
 * Answers about the service and the sandbox as a whole.
 */

import * as z from "zod";

/** `GET /health` */
export const Health = z.object({ status: z.literal("ok") }).describe("The database answers");
export type Health = z.infer<typeof Health>;

/** `POST /internal/relay` */
export const RelayAwake = z.object({ status: z.literal("awake") });
export type RelayAwake = z.infer<typeof RelayAwake>;

/** `POST /internal/retention` */
export const Purged = z.object({
  purged: z.number().int().min(0).describe("Rows of outlived data that were deleted"),
});
export type Purged = z.infer<typeof Purged>;

const Count = z.number().int().min(0);

/** `POST /reset`: how many of each were deleted. */
export const SandboxReset = z.object({
  object: z.literal("sandbox_reset"),
  deleted: z.object({
    payments: Count,
    refunds: Count,
    transfers: Count,
    ledger_entries: Count,
    events: Count,
    webhook_deliveries: Count,
    idempotency_keys: Count,
  }).describe("How many of each were deleted"),
}).describe("What a reset deleted. Keys and webhook endpoints stay");
export type SandboxReset = z.infer<typeof SandboxReset>;
