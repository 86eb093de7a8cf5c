/** Disposable sandboxes on the wire (contract §5). */

import * as z from "zod";
import { NewKeyScopes } from "./api_key.ts";
import { MAX_KEY_NAME } from "./limits.ts";
import { page } from "./list.ts";
import { mustBe } from "./requirement.ts";
import { id, Instant } from "./values.ts";

/** Shortest time in seconds until a disposable sandbox ends. The service chose the number. */
const MIN_SANDBOX_S = 60;
/** Longest life of a disposable sandbox in seconds: 7 days. The service chose the number. */
const MAX_SANDBOX_S = 604_800;
/** Time in seconds until a disposable sandbox ends by default: one day. */
const DEFAULT_SANDBOX_S = 86_400;
/** Longest seed of a sandbox in characters. The service chose the number. */
const MAX_SEED = 100;

export const CreateSandboxBody = z.object({
  name: z.string().min(1).max(MAX_KEY_NAME).optional()
    .describe("A name for people, such as the branch or the test"),
  expires_in: mustBe(
    z.number().int().min(MIN_SANDBOX_S).max(MAX_SANDBOX_S).default(DEFAULT_SANDBOX_S)
      .describe(
        "Seconds until the sandbox ends. It ends with the caller's key at the latest",
      ),
    `a whole number of seconds from ${MIN_SANDBOX_S} to ${MAX_SANDBOX_S}, which is 7 days`,
  ),
  seed: mustBe(
    z.string().min(1).max(MAX_SEED).nullable().optional().describe(
      "The ids, tokens and secrets of the sandbox follow from this text and from the number of " +
        "the request, and its clock stands at 2030-01-01T00:00:00.000Z. So the same requests in " +
        "the same order give the same bytes. Null or left out: they are random",
    ),
    `text of 1 to ${MAX_SEED} characters`,
  ),
}).describe("A disposable sandbox of the caller's account");
export type CreateSandboxBody = z.infer<typeof CreateSandboxBody>;

export const CreateSandboxKeyBody = z.object({
  name: z.string().min(1).max(MAX_KEY_NAME).default("Made for the sandbox")
    .describe("Your own name for the key"),
  scopes: NewKeyScopes,
  expires_in: mustBe(
    z.number().int().min(MIN_SANDBOX_S).max(MAX_SANDBOX_S).optional().describe(
      "Seconds until the key ends. By default, and at the latest, it ends with the sandbox, and " +
        "with the caller's key",
    ),
    `a whole number of seconds from ${MIN_SANDBOX_S} to ${MAX_SANDBOX_S}, which is 7 days`,
  ),
}).describe("A key of a disposable sandbox");
export type CreateSandboxKeyBody = z.infer<typeof CreateSandboxKeyBody>;

/** A disposable sandbox in a response. Only creation shows `test_key`. */
export const DisposableSandbox = z.object({
  id: id("env_"),
  object: z.literal("sandbox"),
  name: z.string().nullable().describe("The name of the creation. Null: none"),
  seed: z.string().nullable().describe("The seed. Null: the ids of the sandbox are random"),
  created_at: Instant,
  expires_at: Instant
    .describe("Time at which the sandbox and all its keys end. In the past: it has ended"),
  test_key: z.string().optional()
    .describe(
      "The text of a key of the sandbox, with all scopes: `sk_test_…`, with a seed " +
        "`skseeded_test_…`. Only creation shows it",
    ),
}).describe("A disposable sandbox");

export const ListSandboxesQuery = z.object({
  ...page("env_"),
});
