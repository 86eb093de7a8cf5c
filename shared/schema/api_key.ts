/**
 * API keys on the wire (contract §5).
 */

import { z } from "zod";
import { id, Limit } from "./list.ts";
import { MAX_KEY_NAME } from "./limits.ts";
import { Instant } from "./values.ts";

/** What a key may do. */
export const SCOPES = [
  "payments:read",
  "payments:write",
  "refunds:write",
  "transfers:read",
  "transfers:write",
  "webhooks:read",
  "webhooks:write",
  "events:read",
  "ledger:read",
  "keys:write",
  "sandbox:write",
] as const;
export type Scope = typeof SCOPES[number];

/** Longest time for which an older secret is still accepted after a rotation: contract §5. */
export const MAX_KEY_OVERLAP_S = 604_800;
/** How long an older secret is accepted when nothing is said: contract §5. */
export const DEFAULT_KEY_OVERLAP_S = 86_400;

/** `POST /v1/api_keys`: a test key, for the caller's own sandbox. */
export const CreateApiKeyBody = z.object({
  name: z.string().min(1).max(MAX_KEY_NAME),
  scopes: z.array(z.enum(SCOPES)).min(1).max(SCOPES.length)
    .transform((scopes) => [...new Set(scopes)]).optional(),
  expires_at: z.iso.datetime({ offset: true, error: "is not an RFC 3339 time" }).optional(),
});
export type CreateApiKeyBody = z.infer<typeof CreateApiKeyBody>;

/** `POST /v1/api_keys/{id}/rotate`: seconds for which the older secrets are still accepted. */
export const RotateApiKeyBody = z.object({
  expires_in: z.number().int().min(0).max(MAX_KEY_OVERLAP_S).default(DEFAULT_KEY_OVERLAP_S),
});

/** A key as every answer shows it; `secret` only on creation and rotation. */
export const ApiKey = z.object({
  id: z.string(),
  object: z.literal("api_key"),
  name: z.string(),
  scopes: z.array(z.enum(SCOPES)).nullable().describe("Null: every scope"),
  livemode: z.boolean(),
  secrets: z.array(z.object({
    prefix: z.string(),
    last4: z.string(),
    created_at: Instant,
    expires_at: Instant.nullable(),
  })),
  last_used_at: Instant.nullable().describe("Written at most once an hour"),
  created_at: Instant,
  revoked_at: Instant.nullable(),
  secret: z.string().optional(),
});

/** `GET /v1/api_keys` */
export const ListApiKeysQuery = z.object({
  limit: Limit,
  starting_after: id("key_").optional(),
});
