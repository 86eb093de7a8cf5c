/**
 * Disposable sandboxes: a test key makes one with a single call, gets a key of it, makes further
 * ones, and ends it (ADR 0022). The keys are derived as those of `api_keys.ts` are. Each change
 * runs one entry function in one round trip (supabase/schemas/sandboxes.sql).
 */

import { seededPrefix } from "../core/api_key.ts";
import { ApiError } from "../core/errors.ts";
import type { CreateSandboxBody, CreateSandboxKeyBody } from "../schema/sandbox.ts";
import { renderError } from "../domain/changes/error_body.ts";
import { keyId } from "../domain/keys/api_keys.ts";
import { deriveKey, withKey } from "../domain/keys/derived_key.ts";
import type { Reply, ServiceRequest } from "../domain/changes/service_request.ts";
import { KEY_REFUSALS, type RefusedKey } from "../store/api_key_store.ts";
import type { EntryCalls } from "../store/entry_calls.ts";
import { requestParameter, respondedBy, type Row } from "../store/outcome.ts";
import { sql } from "../store/statement.ts";

/** Most disposable sandboxes of an account at a time, as in `pay_internal.max_sandboxes`. */
export const MAX_SANDBOXES = 1_000;
/**
 * Most of an account with those that have ended within a day, as in
 * `pay_internal.max_stored_sandboxes`.
 */
export const MAX_KEPT_SANDBOXES = 10_000;

/** The changes. Each throws `ApiError`. `caller` is the text of the caller's key. */
export class Sandboxes {
  readonly #calls: EntryCalls;

  constructor(calls: EntryCalls) {
    this.#calls = calls;
  }

  /**
   * Makes a sandbox. Throws `permission_denied` if the caller's own sandbox is disposable, and
   * `invalid_parameter` if the account has `MAX_SANDBOXES` already, and `invalid_state` if one of
   * them has the same seed.
   */
  async create(
    request: ServiceRequest,
    caller: string,
    { name, expires_in, seed }: CreateSandboxBody,
  ): Promise<Reply> {
    const status = 201;
    const { access, context: { newId }, idempotency } = request;
    const sandbox = { id: newId("env_"), name, expires_in, seed: seed ?? undefined };
    const prefix = seed == null ? undefined : seededPrefix(caller);
    const secret = { ...deriveKey(request, caller, prefix), key_id: newId("key_") };
    const row = await this.#calls.ask<Row<Refused>>(
      access,
      ...sql`select * from pay.make_sandbox(
        p_request => ${requestParameter(access, idempotency, { status, body: "" })},
        p_sandbox => ${sandbox}, p_secret => ${secret})`,
    );
    if (row.outcome in REFUSALS) throw REFUSALS[row.outcome as Refused]();
    return withKey(respondedBy(row, status), caller);
  }

  /**
   * Makes a key of a sandbox. Throws the errors of `ApiKeyStore.change`, and `not_found` for an id
   * that the caller's sandbox has not made.
   */
  async createKey(
    request: ServiceRequest,
    caller: string,
    sandbox_id: string,
    { name, scopes, expires_in }: CreateSandboxKeyBody,
  ): Promise<Reply> {
    const status = 201;
    const { access, context, idempotency } = request;
    const ended = new ApiError("invalid_state", "Cannot make a key: the sandbox has ended", {
      current_status: "ended",
      allowed: [],
    });
    const key = { id: keyId(request), name, scopes, expires_in };
    // Whether the sandbox has a seed, only the database knows.
    const secrets = {
      plain: deriveKey(request, caller),
      seeded: deriveKey(request, caller, seededPrefix(caller)),
    };
    const row = await this.#calls.ask<Row<RefusedKey | "ended">>(
      access,
      ...sql`select * from pay.make_sandbox_key(
        p_request => ${requestParameter(access, idempotency, { status, body: "" })},
        p_sandbox_id => ${sandbox_id}, p_key => ${key}, p_secrets => ${secrets},
        p_refusal => ${renderError(ended, context)})`,
    );
    if (row.outcome in KEY_REFUSALS) throw KEY_REFUSALS[row.outcome as RefusedKey]();
    const responded = respondedBy(row, row.outcome === "ended" ? ended.status : status);
    return withKey(responded, caller);
  }

  /**
   * Ends a sandbox at once. Ending it again changes nothing. Throws `not_found` for an id that the
   * caller's sandbox has not made.
   */
  async end({ access, idempotency }: ServiceRequest, id: string): Promise<Reply> {
    const end = sql`select * from pay.end_sandbox(
      p_request => ${requestParameter(access, idempotency)}, p_id => ${id})`;
    return respondedBy(await this.#calls.ask(access, ...end), 200);
  }
}

/** Errors of the outcomes after which nothing has changed and no response is stored. */
const REFUSALS = {
  disposable: () =>
    new ApiError(
      "permission_denied",
      "A disposable sandbox cannot make further sandboxes: use the key that made this one",
    ),
  full: () =>
    new ApiError(
      "invalid_parameter",
      `Cannot make a sandbox: this account has ${MAX_SANDBOXES} disposable sandboxes that have ` +
        `not ended, or ${MAX_KEPT_SANDBOXES} with those of the last day. Delete one first, or ` +
        "try again later",
    ),
  seed_taken: () =>
    new ApiError(
      "invalid_state",
      'Cannot make a sandbox: one that has not ended has this "seed". Delete that one, or reset ' +
        "and use it",
      { param: "seed", current_status: "active", allowed: ["ended"] },
    ),
} as const;

type Refused = keyof typeof REFUSALS;
