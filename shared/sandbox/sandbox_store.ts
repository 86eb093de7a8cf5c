/**
 * The store of disposable sandboxes. Each call runs one entry function in one round trip
 * (supabase/schemas/sandboxes.sql).
 */

import { ApiError } from "../core/errors.ts";
import type { Scope } from "../schema/api_key.ts";
import { KEY_REFUSALS, type RefusedKey, type StoredSecret } from "../store/api_key_store.ts";
import type { StoredResponse } from "../store/commit_rows.ts";
import type { EntryCalls } from "../store/entry_calls.ts";
import {
  type Access,
  type Idempotency,
  requestParameter,
  type Responded,
  respondedBy,
  type Row,
} from "../store/outcome.ts";
import { sql } from "../store/statement.ts";

/** Most disposable sandboxes of an account at a time, as in `pay_internal.max_sandboxes`. */
export const MAX_SANDBOXES = 1_000;
/**
 * Most of an account with those that have ended within a day, as in
 * `pay_internal.max_stored_sandboxes`.
 */
export const MAX_KEPT_SANDBOXES = 10_000;

/** A new sandbox, with its first key. */
interface NewSandbox {
  id: string;
  name: string | undefined;
  /** Seconds until it ends. */
  expires_in: number;
  /** The seed of its ids and secrets; undefined: they are random. */
  seed: string | undefined;
  key: StoredSecret & { key_id: string };
}

interface NewSandboxKey {
  id: string;
  name: string;
  /** Undefined: every scope. */
  scopes: Scope[] | undefined;
  /** Seconds until it ends; undefined: with the sandbox. */
  expires_in: number | undefined;
}

export class SandboxStore {
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
    access: Access,
    { key, ...sandbox }: NewSandbox,
    idempotency: Idempotency | null,
  ): Promise<Responded> {
    const status = 201;
    const request = requestParameter(access, idempotency, { status, body: "" });
    const row = await this.#calls.ask<Row<Refused>>(
      access,
      ...sql`select * from pay.make_sandbox(p_request => ${request}, p_sandbox => ${sandbox},
        p_secret => ${key})`,
    );
    if (row.outcome in REFUSALS) throw REFUSALS[row.outcome as Refused]();
    return respondedBy(row, status);
  }

  /** Ends a sandbox. Throws `not_found` for an id that the caller's sandbox has not made. */
  async end(access: Access, id: string, idempotency: Idempotency | null): Promise<Responded> {
    const end = sql`select * from pay.end_sandbox(
      p_request => ${requestParameter(access, idempotency)}, p_id => ${id})`;
    return respondedBy(await this.#calls.ask(access, ...end), 200);
  }

  /**
   * Makes a key of a sandbox. Throws the errors of `ApiKeyStore.change`, and `not_found` for an id
   * that the caller's sandbox has not made.
   * @param secrets the secret for a sandbox without a seed, and that for one with a seed
   * @param refusal the response if the sandbox has ended
   */
  async makeKey(
    access: Access,
    sandbox_id: string,
    key: NewSandboxKey,
    secrets: { plain: StoredSecret; seeded: StoredSecret },
    refusal: StoredResponse,
    idempotency: Idempotency | null,
  ): Promise<Responded> {
    const status = 201;
    const request = requestParameter(access, idempotency, { status, body: "" });
    const row = await this.#calls.ask<Row<RefusedKey | "ended">>(
      access,
      ...sql`select * from pay.make_sandbox_key(p_request => ${request},
        p_sandbox_id => ${sandbox_id}, p_key => ${key}, p_secrets => ${secrets},
        p_refusal => ${refusal.body})`,
    );
    if (row.outcome in KEY_REFUSALS) throw KEY_REFUSALS[row.outcome as RefusedKey]();
    return respondedBy(row, row.outcome === "ended" ? refusal.status : status);
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
