/** Responses of operations on the service and the sandbox as a whole. */

import * as z from "zod";

export const Health = z.object({ status: z.literal("ok") }).describe("The database responds");
export type Health = z.infer<typeof Health>;

export const DispatcherAwake = z.object({ status: z.literal("awake") }).describe(
  "The dispatcher has started due deliveries",
);
export type DispatcherAwake = z.infer<typeof DispatcherAwake>;

export const Purged = z.object({
  purged: z.number().int().min(0).describe("Number of rows that were deleted"),
}).describe("The result of a call that deletes expired data");
export type Purged = z.infer<typeof Purged>;

export const Transcript = z.string().describe(
  "One line of JSON for each request of the run, oldest first: its number `n`, the `request` " +
    "with method, path, idempotency key and body, and the `answer` with status, request id and " +
    "body. API keys are left out",
);

const Count = z.number().int().min(0).describe("Number of deleted resources of this kind");

export const ResetSandboxBody = z.object({
  webhook_endpoints: z.boolean().optional().describe(
    "Whether to delete the webhook endpoints too. By default they stay",
  ),
}).describe("What the reset deletes beside the data");

/** The response to `POST /reset`: the number of deleted resources of each kind. */
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
    webhook_endpoints: Count,
    instruments: Count,
    checkouts: Count,
  }).describe("Number of deleted resources of each kind, at most 250 000"),
}).describe("The result of a reset");
export type SandboxReset = z.infer<typeof SandboxReset>;
