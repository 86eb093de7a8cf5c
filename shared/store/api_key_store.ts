/** The store of API keys over HTTP. Each call runs one entry function in one round trip. */

import { formatTime } from "../core/clock.ts";
import { ApiError } from "../core/errors.ts";
import type { Scope } from "../schema/api_key.ts";
import type { Answer } from "./commit_rows.ts";
import type { EntryCalls } from "./entry_calls.ts";
import { type Access, answerOf, type Idempotency, requestParameter, type Row } from "./outcome.ts";

/** Most keys of an environment that are neither revoked nor expired; as in pay.max_live_keys. */
export const MAX_LIVE_KEYS = 100;

/** What the database learns of a new secret. */
export interface SecretFacts {
  /** Lower-case hex SHA-256 of the text. */
  hash: string;
  prefix: string;
  last_four: string;
  /** What stands for the text in the answer that is kept. */
  reference: string;
}

/** A change of a key of the caller's environment. */
interface ApiKeyChange {
  action: "create" | "rotate" | "revoke";
  id: string;
  status: number;
  name?: string;
  /** Undefined: every scope. */
  scopes?: Scope[] | undefined;
  secret?: SecretFacts;
  expires_at_ms?: number | undefined;
  older_expire_at_ms?: number;
  /** Of a rotation: the answer if the key has expired. */
  refusal?: Answer;
}

/** Keys in the database. */
export interface ApiKeyStore {
  /**
   * Throws `permission_denied` if the key would have more scopes than the caller's or outlive it,
   * and `invalid_parameter` if the environment has `MAX_LIVE_KEYS` already.
   */
  change(
    access: Access,
    change: ApiKeyChange,
    idempotency: Idempotency | null,
  ): Promise<{ answer: Answer; replayed: boolean }>;
}

const CHANGE = `select * from pay.change_api_key(
  p_request => $1::text, p_action => $2::text, p_id => $3::text, p_key => $4::text,
  p_secret => $5::text, p_older_expire_at => $6::text::timestamptz, p_refusal => $7::text)`;

/** Keys over one database. */
export function createApiKeyStore(calls: EntryCalls): ApiKeyStore {
  const time = (at_ms: number | undefined) => at_ms === undefined ? null : formatTime(at_ms);
  return {
    async change(access, change, idempotency) {
      const row = await calls.ask<Row<Refused | "ended">>(access, CHANGE, [
        requestParameter(access, idempotency, { status: change.status, body: "" }),
        change.action,
        change.id,
        JSON.stringify({
          name: change.name,
          scopes: change.scopes,
          expires_at: time(change.expires_at_ms),
        }),
        change.secret ? JSON.stringify(change.secret) : null,
        time(change.older_expire_at_ms),
        change.refusal?.body ?? null,
      ]);
      if (row.outcome in REFUSALS) throw REFUSALS[row.outcome as Refused]();
      if (row.outcome === "replay") return { answer: answerOf(row), replayed: true };
      const status = row.outcome === "ended" ? change.refusal!.status : change.status;
      return { answer: { status, body: row.body! }, replayed: false };
    },
  };
}

/** Errors for the outcomes that change nothing and are not stored. */
const REFUSALS = {
  wider: () =>
    new ApiError(
      "permission_denied",
      "A key cannot make or change a key with a scope that it lacks itself",
      { param: "scopes" },
    ),
  outlives: () =>
    new ApiError(
      "permission_denied",
      "A key that expires cannot rotate a key that lives longer",
    ),
  full: () =>
    new ApiError(
      "invalid_parameter",
      `Cannot make a key: this environment has ${MAX_LIVE_KEYS} live keys. Revoke one first`,
    ),
} as const;

type Refused = keyof typeof REFUSALS;
