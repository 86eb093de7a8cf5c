/**
 * The connection to Postgres: a small pool, one prepared statement per call, a deadline for each,
 * and the one place where a database error becomes a code of the contract.
 */

import postgres from "postgres";
import { ApiError } from "../core/errors.ts";

/** How to reach the database. */
export interface DatabaseOptions {
  /** `postgres://…` */
  url: string;
  /** Connections of this isolate; small, because a platform runs many isolates. */
  max_connections?: number;
  /** Off behind a transaction pooler. */
  prepare?: boolean;
  /** Called for each statement as it is sent; tests count round trips with it. */
  on_statement?: (text: string) => void;
}

/** Connections of one isolate. More were measured slower on two cores (4 and 8 alike). */
const DEFAULT_CONNECTIONS = 4;
/** Longest time a statement may take: over the 3 s for which a twin waits for the first request. */
const STATEMENT_DEADLINE_MS = 5_000;
/** Longest time to open a connection (promise R12: 503 within 2 s). */
const CONNECT_DEADLINE_S = 2;
/** What a client is told to wait when the database is away. */
const RETRY_AFTER_S = 1;

/** SQLSTATE of a transaction that was ended because it waited in a circle. */
const DEADLOCK = "40P01";
/** SQLSTATE of a statement that waited too long for a lock. */
const LOCK_TIMEOUT = "55P03";
/** How often such a statement is sent in all. */
const DEADLOCK_TRIES = 3;

/** A database that answers one statement at a time per connection. */
export interface Database {
  /** Sends one statement and gives its rows. Throws `ApiError`. One round trip. */
  query<Row>(text: string, parameters: readonly (string | number | null)[]): Promise<Row[]>;
  /** As `query`, but throws the driver's error, for a caller that can tell what to make of it. */
  attempt<Row>(text: string, parameters: readonly (string | number | null)[]): Promise<Row[]>;
  /** Ends all connections; statements under way are finished first. */
  close(): Promise<void>;
}

/** Opens a pool; connects when first used. */
export function openDatabase(options: DatabaseOptions): Database {
  const sql = postgres(options.url, {
    max: options.max_connections ?? DEFAULT_CONNECTIONS,
    prepare: options.prepare ?? true,
    connect_timeout: CONNECT_DEADLINE_S,
    idle_timeout: 60,
    // One failed attempt answers the request; the next request tries again.
    backoff: false,
    // Saves the round trip that would fetch array types: none is used.
    fetch_types: false,
    onnotice: () => {},
    connection: { application_name: "payments" },
  });
  async function once<Row>(
    text: string,
    parameters: readonly (string | number | null)[],
  ): Promise<Row[]> {
    options.on_statement?.(text);
    const rows = sql.unsafe(text, parameters as (string | number | null)[], {
      prepare: options.prepare ?? true,
    });
    return await withDeadline(rows) as unknown as Row[];
  }
  async function attempt<Row>(text: string, parameters: readonly (string | number | null)[]) {
    for (let tries = 1;; tries++) {
      try {
        return await once<Row>(text, parameters);
      } catch (error) {
        // The statement was all of its transaction and left nothing: it is safe to send again.
        if (codeOf(error) !== DEADLOCK || tries === DEADLOCK_TRIES) throw error;
      }
    }
  }
  return {
    attempt,
    async query<Row>(text: string, parameters: readonly (string | number | null)[]) {
      try {
        return await attempt<Row>(text, parameters);
      } catch (error) {
        throw toApiError(error);
      }
    },
    close: () => sql.end({ timeout: 5 }),
  };
}

/** The answer when the database cannot be asked. */
export function databaseAway(): ApiError {
  return new ApiError("service_unavailable", "The service is briefly unavailable: try again", {}, {
    "Retry-After": String(RETRY_AFTER_S),
  });
}

/** The answer to a twin of a request that has no answer yet. */
export function requestInProgress(): ApiError {
  return new ApiError(
    "idempotency_in_progress",
    "A request with this Idempotency-Key is still under way: try again",
    {},
    { "Retry-After": String(RETRY_AFTER_S) },
  );
}

/** A driver's error as an answer. Nothing of the error's text gets into it. */
export function toApiError(error: unknown): Error {
  if (error instanceof ApiError) return error;
  const code = codeOf(error);
  if (code === null) return error instanceof Error ? error : new Error("unknown");
  const { where } = error as { where?: unknown };
  // A twin that waited too long for the first request's answer.
  if (code === LOCK_TIMEOUT && String(where).includes('"idempotency_keys"')) {
    return requestInProgress();
  }
  return AWAY.test(code) ? databaseAway() : error as Error;
}

/**
 * What means "not now" rather than "wrong": connection failures of the driver and the system, and
 * the SQLSTATE classes 08 (connection), 40 (rollback: deadlock, serialization), 53 (resources),
 * 55P03 (lock timeout), 57 (operator intervention).
 */
const AWAY =
  /^(CONNECT_TIMEOUT|CONNECTION_\w+|E(CONN|PIPE|AI_|HOST|NET|TIMEDOUT|NOTFOUND)\w*|08\w{3}|40\w{3}|53\w{3}|55P03|57\w{3})$/;

/** Whether a statement waited too long for a lock. */
export function isLockTimeout(error: unknown): boolean {
  return codeOf(error) === LOCK_TIMEOUT;
}

/** Whether an error of `attempt` means that the database cannot be asked now. */
export function isAway(error: unknown): boolean {
  return isOverdue(error) || AWAY.test(codeOf(error) ?? "");
}

/** Whether `attempt` gave up after its deadline. */
export function isOverdue(error: unknown): boolean {
  return error instanceof ApiError;
}

function codeOf(error: unknown): string | null {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : null;
}

function withDeadline<T>(work: Promise<T> & { cancel?: () => void }): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      // The statement may still commit: the client finds out by retrying with its key.
      work.catch(() => {});
      reject(databaseAway());
    }, STATEMENT_DEADLINE_MS);
  });
  return Promise.race([work, deadline]).finally(() => clearTimeout(timer));
}
