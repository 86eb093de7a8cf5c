/**
 * The shared part of all calls of entry functions: the access of a request, and the error codes for
 * the outcomes of admission, idempotency and paging (contract §5, contract §6). The caller of an
 * entry function handles its other outcomes.
 */

import { formatTime } from "../core/clock.ts";
import { ApiError, tryAgain } from "../core/errors.ts";
import type { Scope } from "../schema/api_key.ts";
import type { StoredResponse } from "./commit_rows.ts";
import { Retries } from "../jobs/retries.ts";
import { requestInProgress } from "./database.ts";
import { rowText } from "./row_text.ts";
import { parseSettings, type SandboxSettings } from "./sandbox_settings.ts";

/** Limits in requests a second, with bursts of twice that; 0: no limit. */
export interface RateLimits {
  key: number;
  /** Limit of all live keys of an account together, and of all keys of its sandboxes. */
  account: number;
}

/** The bytes that a request of a sandbox adds to the storage of its account. */
export interface StoredBytes {
  bytes: number;
  /** Its events, each of which has a delivery to each endpoint. */
  events: number;
}

/** The access of a request: its key, the scope that it needs, and its time. */
export interface Access {
  /** Lower-case hex SHA-256 of the key text, or of the token of a payer. */
  key_hash: string;
  /** True: the caller has the token of a checkout in place of a key. */
  is_payer?: true;
  /** The scope that the operation needs; null if any key is enough. */
  scope: Scope | null;
  /** The version of the sandbox's settings by which the request is decided; 0: it has none. */
  version: number;
  /** The time of the request, by the clock of the sandbox. */
  at_ms: number;
  request_id: string;
  /** Null: there are no limits, or the request is counted already. */
  rate_limits: RateLimits | null;
  /**
   * The gigabytes that the sandboxes of the account may store; null: no limit, or a live key.
   * Requests that add nothing, such as a reset, are not refused.
   */
  storage: { gb: number; adds: boolean } | null;
  retries: Retries;
  /**
   * Called with the id of the key, the smaller number of requests left to it or its account, and
   * its environment at the time of the request.
   */
  observe: (
    api_key_id: string,
    remaining: number | null,
    environment_id: string | null,
  ) => void;
}

/**
 * The database has refused a request that was decided with outdated settings of its sandbox.
 * Nothing has happened, and the request is not counted.
 */
export class OutdatedSettings extends Error {
  /** @param settings the present ones; null: the sandbox has none */
  constructor(readonly settings: SandboxSettings | null) {
    super("The request was decided with outdated settings of its sandbox");
  }
}

/**
 * Asks with the present settings: for the last step of a request that has already done something,
 * so that it cannot be decided again. This step has retries of its own.
 */
export async function withAnySettings<T>(
  access: Access,
  ask: (access: Access) => Promise<T>,
): Promise<T> {
  const retries = new Retries();
  for (let { version } = access;;) {
    try {
      return await ask({ ...access, version, retries });
    } catch (error) {
      if (!(error instanceof OutdatedSettings)) throw error;
      version = error.settings?.version ?? 0;
      await retries.again(() => error);
    }
  }
}

/** The idempotency key of a request, and the fingerprint of the request. */
export interface Idempotency {
  key: string;
  /** Lower-case hex SHA-256. */
  fingerprint: string;
  /** Method and path: `POST /api-v1-payments/v1/payments`. Stored when the key is claimed. */
  request_line: string;
}

/**
 * Makes the entry of a request in the list that an entry function takes
 * (supabase/schemas/admission.sql). The row of its response has the same `n`. `keyedRequest` adds
 * the fields of a write.
 */
export function listedAccess(access: Access, index: number) {
  return {
    n: index + 1,
    key_hash: access.key_hash,
    scope: access.scope,
    at: formatTime(access.at_ms),
    ...(access.is_payer && { is_payer: true }),
    ...(access.version !== 0 && { version: access.version }),
    ...(access.rate_limits && { rate: [access.rate_limits.key, access.rate_limits.account] }),
  };
}

/** An estimate for a request that adds an endpoint, a key, a fault or a response. */
const FEW_BYTES: StoredBytes = { bytes: 4_096, events: 0 };

/**
 * Makes the entry of a request that can have an idempotency key.
 * @param response is stored if the request claims the key; null: the request only looks for a
 * response
 * @param stored what it adds, unless its access says that it adds nothing
 */
export function keyedRequest(
  access: Access,
  idempotency: Idempotency | null,
  response: Partial<StoredResponse> | null,
  index = 0,
  stored: () => StoredBytes = () => FEW_BYTES,
) {
  return {
    ...listedAccess(access, index),
    ...(access.storage && response && { storage: storageOf(access.storage, stored) }),
    ...(response && { request_id: access.request_id }),
    ...(idempotency && { idempotency_key: idempotency.key, fingerprint: idempotency.fingerprint }),
    ...(idempotency && response && { ...response, request_line: idempotency.request_line }),
  };
}

function storageOf({ gb, adds }: { gb: number; adds: boolean }, stored: () => StoredBytes) {
  if (!adds) return [gb];
  const { bytes, events } = stored();
  return [gb, bytes, events];
}

/** The columns of the type `pay_internal.request`. */
const REQUEST = `key_hash is_payer scope version at rate storage request_id idempotency_key
  fingerprint request_line status body subject_id sequence has_quota kind id`.split(/\s+/);

/** Makes the list of the requests of many callers. */
export function requestsText(list: readonly { n: number }[]): string {
  return `{${list.map((request) => rowText(REQUEST, request, request.n)).join()}}`;
}

/** Makes the parameter of an entry function for one request: a list with one entry. */
export function requestParameter(
  access: Access,
  idempotency: Idempotency | null = null,
  response: StoredResponse = { status: 200, body: "" },
): string {
  return JSON.stringify([keyedRequest(access, idempotency, response)]);
}

/** Most pending deliveries of a sandbox, as in `pay_internal.max_pending_deliveries`. */
export const MAX_PENDING_DELIVERIES = 20_000;

/** The error of each outcome with which an entry function refuses a request. */
const REFUSALS = {
  unauthorized,
  forbidden: ({ scope }: Access) =>
    new ApiError(
      "permission_denied",
      `This API key lacks the scope "${scope}": use a key that has it`,
      { required_scope: scope },
    ),
  rate_limited: rateLimited,
  storage_full: ({ storage }: Access) =>
    tryAgain(
      "rate_limited",
      `The sandboxes of this account store ${storage?.gb} GiB or more, which is their limit: ` +
        "empty one with POST /reset, or end disposable sandboxes",
    ),
  too_often: () =>
    tryAgain("rate_limited", "The sandbox was reset too often: reset it at most 5 times a second"),
  waiting: () =>
    tryAgain(
      "rate_limited",
      "Too many reset sandboxes of this account wait for the deletion of their data: try again " +
        "in some minutes",
    ),
  backlog: () =>
    tryAgain(
      "rate_limited",
      `The sandbox has ${MAX_PENDING_DELIVERIES} pending deliveries: let its webhook endpoints ` +
        "receive them (a clock that stands must advance), disable an endpoint, or reset the " +
        "sandbox",
    ),
  live: () => new ApiError("test_key_required", "The sandbox takes test keys only"),
  /** One response for unknown ids and for ids of other environments. */
  not_found: () => new ApiError("not_found", "No such resource"),
  conflict: () =>
    new ApiError(
      "idempotency_conflict",
      "This Idempotency-Key was used with a different request: use a new key for a new operation",
    ),
  in_progress: requestInProgress,
  unknown_cursor: () =>
    new ApiError(
      "invalid_parameter",
      '"starting_after" names no item of this list: send the "next_cursor" of the previous page',
      { param: "starting_after" },
    ),
} as const;

/** An outcome that refuses a request. */
type Refusal = keyof typeof REFUSALS;

/**
 * A row of an entry function.
 * @typeParam Own outcomes of this function, beside those that all entry functions share
 */
export interface Row<Own extends string = never> {
  outcome: Refusal | "resetting" | "outdated" | "expired" | "replay" | "ok" | "committed" | Own;
  api_key_id: string | null;
  environment_id: string | null;
  account: string | null;
  livemode: boolean | null;
  /** Requests left to the key or its account, the smaller number; null without limits. */
  remaining?: number | null;
  status: number | null;
  body: string | null;
  /**
   * For a webhook endpoint: its revision, secrets, environment and account, as JSON text. For an
   * outdated request the settings of its sandbox.
   */
  detail?: string | null;
  /** For a commit: the number of deliveries that it made due, a bigint as text. */
  deliveries?: string | null;
}

/** A row whose outcome is final, and no refusal. */
export type Admitted<T extends Row<string>> = T & {
  outcome: Exclude<T["outcome"], Refusal | "resetting" | "outdated" | "expired">;
};

/**
 * Calls `ask` until the outcome is final, and returns its row. It repeats the call if the stored
 * response of the idempotency key had expired, because the call deletes such a response, and while
 * the sandbox is being reset or its account waits at the fence of a move. Throws the error of the
 * outcome, `OutdatedSettings` if the request must be decided again, and `service_unavailable` if
 * that takes too long.
 */
export async function untilFresh<T extends Row<string>>(
  access: Access,
  ask: () => Promise<T | undefined>,
): Promise<Admitted<T>> {
  for (;;) {
    const row = admitted(access, await ask());
    if (row.outcome !== "resetting" && row.outcome !== "expired") return row as Admitted<T>;
    await access.retries.again(row.outcome === "resetting" ? beingReset : undefined);
  }
}

function beingReset(): ApiError {
  return tryAgain(
    "service_unavailable",
    "This sandbox is being reset, its clock is being set, or its account is moving to another " +
      "database: try again",
  );
}

/** Returns the row of a request that was not refused. Throws the error of the outcome. */
function admitted<T extends Row<string>>(access: Access, row: T | undefined): T {
  if (!row) throw new Error("an entry function gave no row");
  if (row.api_key_id) {
    access.observe(row.api_key_id, row.remaining ?? null, row.environment_id);
  }
  if (row.outcome in REFUSALS) throw REFUSALS[row.outcome as Refusal](access);
  if (row.outcome === "outdated") throw new OutdatedSettings(parseSettings(row.detail ?? null));
  return row;
}

/** Makes the 401 for a key that is unknown, revoked or expired (contract §6). */
function unauthorized(): ApiError {
  return new ApiError(
    "unauthorized",
    "Send a valid API key as: Authorization: Bearer <API_KEY>",
    {},
    { "WWW-Authenticate": "Bearer" },
  );
}

/**
 * Makes the 429 of a key, or of an address without a valid key. The window slides, so some requests
 * are possible again after a second.
 */
export function rateLimited(): ApiError {
  return tryAgain("rate_limited", "Too many requests: slow down and try again");
}

export function responseOf(row: Row<string>): StoredResponse {
  return { status: row.status!, body: row.body! };
}

/** A response, and whether it is the stored one of an earlier request. */
export interface Responded {
  response: StoredResponse;
  replayed: boolean;
}

/** Returns the stored response of a row that replays one, or else its body with a status. */
export function respondedBy(row: Row<string>, status: number): Responded {
  if (row.outcome === "replay") return { response: responseOf(row), replayed: true };
  return { response: { status, body: row.body! }, replayed: false };
}
