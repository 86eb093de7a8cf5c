/**
 * The part that all entry functions share: the caller's access, and the error codes of the outcomes
 * of admission, idempotency and paging. The caller of an entry function handles its other outcomes.
 */

import { formatTime } from "../core/clock.ts";
import { ApiError, tryAgain } from "../core/errors.ts";
import type { Scope } from "../schema/api_key.ts";
import type { Answer } from "./commit_rows.ts";
import { requestInProgress } from "./database.ts";

/** Requests a second, with bursts of twice that; 0: no limit. */
export interface RateLimits {
  key: number;
  /** All keys of an environment together. */
  environment: number;
}

/** Who asks, and when. */
export interface Access {
  /** Lower-case hex SHA-256 of the key text. */
  key_hash: string;
  /** The scope that the operation needs; null when any key will do. */
  scope: Scope | null;
  at_ms: number;
  request_id: string;
  /** Null: not limited, or this request is counted already. */
  rate_limits: RateLimits | null;
  /** Called with the key's id and the requests that it or its environment has left, the smaller. */
  observe: (api_key_id: string, remaining: number | null) => void;
}

/** The idempotency key of a request, with the fingerprint of what it asks. */
export interface Idempotency {
  key: string;
  /** Lower-case hex SHA-256. */
  fingerprint: string;
}

/**
 * A request as the entry functions take it in a list (supabase/schemas/admission.sql); `n` ties a row
 * to it. A writing request has more (`keyedRequest`).
 */
export function listedAccess(access: Access, index: number) {
  return {
    n: index + 1,
    key_hash: access.key_hash,
    scope: access.scope,
    at: formatTime(access.at_ms),
    ...(access.rate_limits && { rate: [access.rate_limits.key, access.rate_limits.environment] }),
  };
}

/**
 * A request that may have an idempotency key.
 * @param answer to store under the key when the request claims it; null if it only looks for one
 */
export function keyedRequest(
  access: Access,
  idempotency: Idempotency | null,
  answer: Answer | null,
  index = 0,
) {
  return {
    ...listedAccess(access, index),
    ...(answer && { request_id: access.request_id }),
    ...(idempotency && { idempotency_key: idempotency.key, fingerprint: idempotency.fingerprint }),
    ...(idempotency && answer),
  };
}

/** The parameter of an entry function that writes one request: a list of one. */
export function requestParameter(
  access: Access,
  idempotency: Idempotency | null = null,
  answer: Answer = { status: 200, body: "" },
): string {
  return JSON.stringify([keyedRequest(access, idempotency, answer)]);
}

/** The errors of the outcomes with which any entry function refuses a request. */
const REFUSALS = {
  unauthorized,
  forbidden: ({ scope }: Access) =>
    new ApiError("permission_denied", `This API key lacks the scope "${scope}"`, {
      required_scope: scope,
    }),
  rate_limited: rateLimited,
  live: () => new ApiError("test_key_required", "The sandbox takes test keys only"),
  /** One answer for unknown ids and for ids of other environments. */
  not_found: () => new ApiError("not_found", "No such resource"),
  conflict: () =>
    new ApiError(
      "idempotency_conflict",
      "This Idempotency-Key was used with a different request: use a new key for a new operation",
    ),
  in_progress: requestInProgress,
  unknown_cursor: () =>
    new ApiError("invalid_parameter", "Unknown cursor: no such item in this list", {
      param: "starting_after",
    }),
} as const;

/** An outcome that refuses a request. */
type Refusal = keyof typeof REFUSALS;

/**
 * A row of an entry function.
 * @typeParam Own outcomes of this function, beside those that all entry functions share
 */
export interface Row<Own extends string = never> {
  outcome: Refusal | "resetting" | "expired" | "replay" | "ok" | "committed" | Own;
  api_key_id: string | null;
  /** Requests that the key and its environment have left; null when they are not limited. */
  remaining?: number | null;
  status: number | null;
  body: string | null;
  /** Of a webhook endpoint: its revision, secrets, environment and account, as JSON text. */
  detail?: string | null;
  /** Of a commit: how many deliveries it made due; a bigint as text. */
  deliveries?: string | null;
}

/** A row whose outcome is neither a refusal nor a reset. */
export type Admitted<T extends Row<string>> = T & {
  outcome: Exclude<T["outcome"], Refusal | "resetting">;
};

/** How often a request is sent again when an answer older than 24 hours was in its way. */
const EXPIRED_TRIES = 3;

/** How long requests wait while their sandbox is being reset, and how long between two looks. */
const RESET_PATIENCE_MS = 3_000;
const RESET_PAUSE_MS = 5;

/**
 * Asks, and admits the row; again while an outlived answer was in the way, which is then gone, and while
 * the sandbox is being reset. Throws `service_unavailable` when that takes too long.
 */
export async function untilFresh<T extends Row<string>>(
  access: Access,
  ask: () => Promise<T | undefined>,
): Promise<Admitted<T>> {
  let expired = 0;
  let give_up_at: number | null = null;
  for (;;) {
    const row = await ask();
    if (!row) throw new Error("an entry function gave no row");
    if (row.api_key_id) access.observe(row.api_key_id, row.remaining ?? null);
    if (row.outcome in REFUSALS) throw REFUSALS[row.outcome as Refusal](access);
    if (row.outcome === "expired" && expired++ < EXPIRED_TRIES) continue;
    if (row.outcome !== "resetting") return row as Admitted<T>;
    give_up_at ??= performance.now() + RESET_PATIENCE_MS;
    if (performance.now() > give_up_at) {
      throw tryAgain("service_unavailable", "This sandbox is being reset: try again");
    }
    await new Promise((resolve) => setTimeout(resolve, RESET_PAUSE_MS));
  }
}

/** One answer for every reason why a key opens nothing (contract §6). */
export function unauthorized(): ApiError {
  return new ApiError(
    "unauthorized",
    "Send a valid API key as: Authorization: Bearer <API_KEY>",
    {},
    { "WWW-Authenticate": "Bearer" },
  );
}

/**
 * Too many requests: of a key, or of an address without one. The window of the limit slides: after a
 * second a part of it is free again.
 */
export function rateLimited(): ApiError {
  return tryAgain("rate_limited", "Too many requests: slow down and try again");
}

/** The stored answer in a row. */
export function answerOf(row: Row<string>): Answer {
  return { status: row.status!, body: row.body! };
}
