/** The store of API keys. Each call runs one entry function in one round trip (contract §5). */

import { formatTime } from "../core/clock.ts";
import { ApiError } from "../core/errors.ts";
import type { Scope } from "../schema/api_key.ts";
import type { StoredResponse } from "./commit_rows.ts";
import type { EntryCalls } from "./entry_calls.ts";
import {
  type Access,
  type Idempotency,
  requestParameter,
  type Responded,
  respondedBy,
  type Row,
} from "./outcome.ts";
import { sql } from "./statement.ts";

/** Most active keys of an environment, as in `pay_internal.max_active_keys`. */
export const MAX_ACTIVE_KEYS = 100;

/** The parts of a new secret that are stored. The database never gets its text. */
export interface StoredSecret {
  /** Lower-case hex SHA-256 of the text. */
  hash: string;
  prefix: string;
  last_four: string;
  /** The reference that replaces the text in the stored response. */
  reference: string;
}

/** A change of a key in the caller's environment. */
interface ApiKeyChange {
  action: "create" | "rotate" | "revoke";
  id: string;
  status: number;
  name?: string;
  /** Undefined: every scope. */
  scopes?: Scope[] | undefined;
  secret?: StoredSecret;
  expires_at_ms?: number | undefined;
  older_expire_at_ms?: number;
  /** For a rotation: the response if the key has ended. */
  refusal?: StoredResponse;
}

export class ApiKeyStore {
  readonly #calls: EntryCalls;

  constructor(calls: EntryCalls) {
    this.#calls = calls;
  }

  /**
   * Writes a change. Throws `permission_denied` if the key has more scopes or a later expiry than
   * the caller's key, and `invalid_parameter` if the environment has `MAX_ACTIVE_KEYS` already.
   */
  async change(
    access: Access,
    change: ApiKeyChange,
    idempotency: Idempotency | null,
  ): Promise<Responded> {
    const { action, id, name, scopes, secret } = change;
    const request = requestParameter(access, idempotency, { status: change.status, body: "" });
    const key = { name, scopes, expires_at: timeOf(change.expires_at_ms) };
    const row = await this.#calls.ask<Row<RefusedKey | "ended">>(
      access,
      ...sql`select * from pay.change_api_key(p_request => ${request}, p_action => ${action},
        p_id => ${id}, p_key => ${key}, p_secret => ${secret},
        p_older_expire_at => ${timeOf(change.older_expire_at_ms)}::timestamptz,
        p_refusal => ${change.refusal?.body})`,
    );
    if (row.outcome in KEY_REFUSALS) throw KEY_REFUSALS[row.outcome as RefusedKey]();
    return respondedBy(row, row.outcome === "ended" ? change.refusal!.status : change.status);
  }
}

function timeOf(at_ms: number | undefined): string | null {
  return at_ms === undefined ? null : formatTime(at_ms);
}

/** Errors of the outcomes after which nothing has changed and no response is stored. */
export const KEY_REFUSALS = {
  wider: () =>
    new ApiError(
      "permission_denied",
      'A key cannot make or change a key with more scopes than its own: send fewer "scopes", or ' +
        "use a key with more scopes",
      { param: "scopes" },
    ),
  outlives: () =>
    new ApiError(
      "permission_denied",
      "A key that expires cannot rotate a key that lives longer: use a key that lives as long",
    ),
  full: () =>
    new ApiError(
      "invalid_parameter",
      `Cannot make a key: its environment has ${MAX_ACTIVE_KEYS} keys that are neither revoked ` +
        "nor expired. Revoke one first",
    ),
} as const;

export type RefusedKey = keyof typeof KEY_REFUSALS;
