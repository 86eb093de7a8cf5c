/** API keys on the wire (contract §5). */

import * as z from "zod";
import { SCOPES } from "../core/vocabulary.ts";
import { page } from "./list.ts";
import { MAX_KEY_NAME } from "./limits.ts";
import { mustBe } from "./requirement.ts";
import { id, Instant, Time } from "./values.ts";

export const Scope = mustBe(
  z.enum(SCOPES).describe("A permission of a key"),
  'one of the scopes of the contract, such as "payments:read"',
);
export type Scope = z.infer<typeof Scope>;

/** Longest time in seconds that older secrets work after a rotation (contract §5). */
export const MAX_KEY_OVERLAP_S = 604_800;
/** Time in seconds that older secrets work after a rotation by default (contract §5). */
export const DEFAULT_KEY_OVERLAP_S = 86_400;

export const NewKeyScopes = mustBe(
  z.array(Scope).min(1).max(SCOPES.length)
    .transform((scopes) => [...new Set(scopes)]).optional()
    .describe(
      "At most the scopes of the caller's key. By default all scopes, which only a key with " +
        "all scopes can give",
    ),
  `a list of 1 to ${SCOPES.length} scopes, such as ["payments:read"]`,
);

/** The body of `POST /v1/api_keys`, which makes a test key for the caller's own sandbox. */
export const CreateApiKeyBody = z.object({
  name: z.string().min(1).max(MAX_KEY_NAME).describe("Your own name for the key"),
  scopes: NewKeyScopes,
  expires_at: Time.optional()
    .describe(
      "Time at which the key expires. By default, and at the latest, it expires with the " +
        "caller's key",
    ),
}).describe("A test key for the caller's own sandbox");
export type CreateApiKeyBody = z.infer<typeof CreateApiKeyBody>;

export const RotateApiKeyBody = z.object({
  expires_in: mustBe(
    z.number().int().min(0).max(MAX_KEY_OVERLAP_S).default(DEFAULT_KEY_OVERLAP_S)
      .describe(
        "Seconds that the older secrets still work; `0` ends all of them at once. At most 5 " +
          "secrets work: a rotation that would make a sixth ends the oldest",
      ),
    `a whole number of seconds from 0 to ${MAX_KEY_OVERLAP_S}, which is 7 days`,
  ),
}).describe("The time that the older secrets still work");

/** A key in a response. Only creation and rotation show `secret`. */
export const ApiKey = z.object({
  id: id("key_"),
  object: z.literal("api_key"),
  name: z.string().describe("Your own name for the key"),
  scopes: z.array(Scope).nullable().describe("Permissions of the key. Null: all"),
  livemode: z.boolean(),
  secrets: z.array(z.object({
    prefix: z.string().describe("The beginning of the key's text, such as `sk_test_`"),
    last4: z.string().describe("The last four characters of the key's text"),
    created_at: Instant,
    expires_at: Instant.nullable()
      .describe("Time at which this secret expires: after a rotation, or with the key"),
  })).describe("The secrets of the key that work now, newest first"),
  last_used_at: Instant.nullable().describe("Time of the last use, updated at most once an hour"),
  created_at: Instant,
  expires_at: Instant.nullable().describe("Time at which the key expires. Null: never"),
  revoked_at: Instant.nullable(),
  secret: z.string().optional()
    .describe("The text of the key. Only creation and rotation show it"),
}).describe("An API key");
export type ApiKey = z.infer<typeof ApiKey>;

export const ListApiKeysQuery = z.object({
  ...page("key_"),
});
