/**
 * API keys on the wire (contract §5).
 */

import * as z from "zod";
import { cursor, Limit } from "./list.ts";
import { MAX_KEY_NAME } from "./limits.ts";
import { mustBe } from "./requirement.ts";
import { id, Instant, Time } from "./values.ts";

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
export const Scope = z.enum(SCOPES).describe("What a key may do");
export type Scope = z.infer<typeof Scope>;

/** Longest time for which an older secret is still accepted after a rotation: contract §5. */
export const MAX_KEY_OVERLAP_S = 604_800;
/** How long an older secret is accepted when nothing is said: contract §5. */
export const DEFAULT_KEY_OVERLAP_S = 86_400;

/** `POST /v1/api_keys`: a test key, for the caller's own sandbox. */
export const CreateApiKeyBody = z.object({
  name: z.string().min(1).max(MAX_KEY_NAME),
  scopes: mustBe(
    z.array(Scope).min(1).max(SCOPES.length)
      .transform((scopes) => [...new Set(scopes)]).optional()
      .describe("At most those of the key that asks; by default the same"),
    `a list of 1 to ${SCOPES.length} scopes, such as ["payments:read"]`,
  ),
  expires_at: Time.optional()
    .describe(
      "When the key ends, at the latest when the caller's key ends. By default it ends with the " +
        "caller's key, or never",
    ),
}).describe("A test key for the caller's own sandbox");
export type CreateApiKeyBody = z.infer<typeof CreateApiKeyBody>;

/** `POST /v1/api_keys/{id}/rotate`: seconds for which the older secrets are still accepted. */
export const RotateApiKeyBody = z.object({
  expires_in: mustBe(
    z.number().int().min(0).max(MAX_KEY_OVERLAP_S).default(DEFAULT_KEY_OVERLAP_S)
      .describe(
        "Seconds for which the older secrets still work; `0` ends all of them at once. At most 5 " +
          "secrets work: a rotation that would make a sixth ends the oldest",
      ),
    `a whole number of seconds from 0 to ${MAX_KEY_OVERLAP_S}, which is 7 days`,
  ),
});

/** A key as every answer shows it; `secret` only on creation and rotation. */
export const ApiKey = z.object({
  id: id("key_"),
  object: z.literal("api_key"),
  name: z.string(),
  scopes: z.array(Scope).nullable().describe("Null: every scope"),
  livemode: z.boolean(),
  secrets: z.array(z.object({
    prefix: z.string().describe("How the text of the key begins, such as `sk_test_`"),
    last4: z.string().describe("Its last four characters"),
    created_at: Instant,
    expires_at: Instant.nullable()
      .describe("When this secret ends: after a rotation, at the latest with the key"),
  })).describe("The texts that open this key now, newest first"),
  last_used_at: Instant.nullable().describe("Written at most once an hour"),
  created_at: Instant,
  expires_at: Instant.nullable().describe("When the key ends; null: never"),
  revoked_at: Instant.nullable(),
  secret: z.string().optional().describe("The text of the key: on creation and rotation only"),
}).describe("An API key");
export type ApiKey = z.infer<typeof ApiKey>;

/** `GET /v1/api_keys` */
export const ListApiKeysQuery = z.object({
  limit: Limit,
  starting_after: cursor("key_"),
});
