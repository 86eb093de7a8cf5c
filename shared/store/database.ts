/**
 * The connection to Postgres: a small pool, one prepared statement per call, a deadline for each,
 * and the one place where a database error becomes a code of the contract.
 *
 * A database that is away is noticed by a question beside the statements (database_health.ts): a
 * frozen one costs a request a second and a half, and those that follow nothing (promise R12).
 */

import postgres from "postgres";
import { ApiError, tryAgain } from "../core/errors.ts";
import { encryptionOf } from "./database_encryption.ts";
import { encryptedSockets } from "./database_socket.ts";
import { outliveLostWrites } from "./lost_write.ts";
import { DatabaseHealth, type Probe, PROBE_DEADLINE_MS } from "./database_health.ts";

/** How to reach the database. */
interface DatabaseOptions {
  /** `postgres://…`; its `sslmode` says whether it is encrypted (database_encryption.ts). */
  url: string;
  /** PEM of an authority that the server's certificate may be of, beside the runtime's. */
  authority?: string;
  /** Connections of this isolate; small, because a platform runs many isolates. */
  max_connections?: number;
  /** Closes a connection after so many seconds without use; 60 by default. */
  idle_s?: number;
  /** Off behind a transaction pooler; by default where the port is that of Supabase's (6543). */
  prepare?: boolean;
  /** The database counts as away if a health check takes longer: 1 s by default (R12). */
  away_after_ms?: number;
  /** Called for each statement as it is sent; tests count round trips with it. */
  on_statement?: (text: string) => void;
}

/** Connections of one isolate. More were measured slower on two cores (4 and 8 alike). */
const DEFAULT_CONNECTIONS = 4;
/** Closes a connection after so many seconds without use. */
const IDLE_S = 60;
/** Longest time a statement may take: over the 3 s for which a twin waits for the first request. */
const STATEMENT_DEADLINE_MS = 5_000;
/** A statement that takes longer makes us ask whether the database answers at all. */
const SLOW_AFTER_MS = 500;
/** The connection of the question is given up when it was not needed for so long. */
const PROBE_IDLE_S = 20;
/** How long the other statements of a pool that is replaced may go on: as long as any may. */
const DRAIN_MS = STATEMENT_DEADLINE_MS;

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
  outliveLostWrites();
  const prepare = isPrepared(options);
  const open = () =>
    connect(options, options.max_connections ?? DEFAULT_CONNECTIONS, options.idle_s ?? IDLE_S);
  let pool = open();
  const retired = new Map<postgres.Sql, ReturnType<typeof setTimeout>>();
  const end = async (old: postgres.Sql) => {
    clearTimeout(retired.get(old));
    retired.delete(old);
    await old.end({ timeout: 0 }).catch(() => {});
  };
  /** Leaves a pool whose connections cannot be relied on; statements under way may go on. */
  const replace = (old: postgres.Sql, drain_ms: number) => {
    if (pool !== old) return;
    pool = open();
    retired.set(old, setTimeout(() => end(old), drain_ms));
  };
  const away_after_ms = awayAfterMs(options);
  const health = new DatabaseHealth(openProbe(options), () => replace(pool, 0), away_after_ms);

  async function once<Row>(
    text: string,
    parameters: readonly (string | number | null)[],
  ): Promise<Row[]> {
    if (!await health.admits()) throw databaseAway();
    options.on_statement?.(text);
    const from = pool;
    const rows = from.unsafe(text, parameters as (string | number | null)[], { prepare });
    const leave = () => replace(from, DRAIN_MS);
    try {
      return withoutHoles(await whileWell(rows, health, leave) as unknown as Row[]);
    } catch (error) {
      // The driver would use the lost connection's object again, with what was left in it.
      if (LOST.test(codeOf(error) ?? "")) leave();
      throw error;
    }
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
    async close() {
      health.close();
      await Promise.all([pool.end({ timeout: 5 }), ...[...retired.keys()].map(end)]);
    },
  };
}

/**
 * The rows of an answer. postgres.js 3.4.9 goes on counting rows where a connection broke off within
 * an answer: the next answer then begins with as many holes.
 */
function withoutHoles<Row>(rows: Row[]): Row[] {
  return rows.length === 0 || 0 in rows ? rows : rows.filter(() => true);
}

/**
 * Nothing is sent behind a statement that has no answer yet: one that waits for a lock would hold it up,
 * whoever sent it. The driver knows this option, its types do not.
 */
const ONE_AT_A_TIME = { max_pipeline: 0 };

function connect(options: DatabaseOptions, max: number, idle_timeout: number): postgres.Sql {
  const mode = encryptionOf(options.url);
  return postgres(options.url, {
    max,
    // The driver's own TLS does not work on the edge runtime's Deno.
    ssl: false,
    ...(mode !== "disable" && { socket: encryptedSockets(mode, options.authority) }),
    prepare: isPrepared(options),
    // Longest time to open a connection (promise R12: 503 within 2 s).
    connect_timeout: (SLOW_AFTER_MS + awayAfterMs(options)) / 1_000,
    idle_timeout,
    // One failed attempt answers the request; the next request tries again.
    backoff: false,
    ...ONE_AT_A_TIME,
    // Saves the round trip that would fetch array types: none is used.
    fetch_types: false,
    onnotice: () => {},
    connection: { application_name: "payments" },
  });
}

function awayAfterMs({ away_after_ms }: DatabaseOptions): number {
  return away_after_ms ?? PROBE_DEADLINE_MS;
}

/** Port of Supabase's pooler for transactions; a statement may find another session than the last. */
const TRANSACTION_POOLER_PORT = "6543";

/** Whether statements stay prepared in their session. */
function isPrepared({ prepare, url }: DatabaseOptions): boolean {
  return prepare ?? new URL(url).port !== TRANSACTION_POOLER_PORT;
}

/** The question beside the statements, over a connection that opens when it is first needed. */
function openProbe(options: DatabaseOptions): Probe {
  let sql: postgres.Sql | null = null;
  return {
    async ask() {
      sql ??= connect(options, 1, PROBE_IDLE_S);
      try {
        await sql.unsafe("select 1");
      } catch (error) {
        if (!isRefusal(error)) throw error;
      }
    },
    reset() {
      sql?.end({ timeout: 0 }).catch(() => {});
      sql = null;
    },
  };
}

/** A server that refuses us a connection (too many clients, say) is there, and so is the pool. */
function isRefusal(error: unknown): boolean {
  return error instanceof postgres.PostgresError && !error.code.startsWith("57");
}

/** The answer when the database cannot be asked. */
export function databaseAway(): ApiError {
  return tryAgain("service_unavailable", "The service is briefly unavailable: try again");
}

/** The answer to a twin of a request that has no answer yet. */
export function requestInProgress(): ApiError {
  return tryAgain(
    "idempotency_in_progress",
    "A request with this Idempotency-Key is still under way: try again",
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
  return isAway(error) ? databaseAway() : error as Error;
}

/**
 * What means "not now" rather than "wrong": connection failures of the driver and the system, and
 * the SQLSTATE classes 08 (connection), 40 (rollback: deadlock, serialization), 53 (resources),
 * 55P03 (lock timeout), 57 (operator intervention).
 */
const AWAY =
  /^(CONNECT_TIMEOUT|CONNECTION_\w+|E(CONN|PIPE|AI_|HOST|NET|TIMEDOUT|NOTFOUND)\w*|08\w{3}|40\w{3}|53\w{3}|55P03|57\w{3})$/;

/** What means that a connection is gone: of those that AWAY names, all but the server's own "later". */
const LOST =
  /^(CONNECT_TIMEOUT|CONNECTION_(CLOSED|ENDED)|E(CONNRESET|PIPE|TIMEDOUT)|08\w{3}|57P0\d)$/;

/** Whether a statement waited too long for a lock. */
export function isLockTimeout(error: unknown): boolean {
  return codeOf(error) === LOCK_TIMEOUT;
}

/** Whether an error of `attempt` means that the database cannot be asked now. */
export function isAway(error: unknown): boolean {
  const { syscall } = error as { syscall?: unknown };
  return isOverdue(error) || syscall !== undefined || AWAY.test(codeOf(error) ?? "");
}

/** Whether `attempt` gave up after its deadline, or that of a connection. */
export function isOverdue(error: unknown): boolean {
  return error instanceof ApiError || codeOf(error) === "CONNECT_TIMEOUT";
}

function codeOf(error: unknown): string | null {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : null;
}

/**
 * The result of a statement, or `service_unavailable` once the database is away or the statement has
 * taken too long. It may still commit then: the client finds out by retrying with its key.
 * @param on_late told when the database is well and the statement has not ended all the same
 */
async function whileWell<T>(
  work: Promise<T>,
  health: DatabaseHealth,
  on_late: () => void,
): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let has_ended = false;
  const until = performance.now() + STATEMENT_DEADLINE_MS;
  const given_up = new Promise<never>((_, reject) => {
    const look = async () => {
      const is_late = performance.now() >= until;
      if (is_late) on_late();
      if (is_late || !await health.answers()) reject(databaseAway());
      else if (!has_ended) timer = setTimeout(look, SLOW_AFTER_MS);
    };
    timer = setTimeout(look, SLOW_AFTER_MS);
  });
  given_up.catch(() => {});
  work.catch(() => {});
  try {
    return await Promise.race([work, given_up]);
  } finally {
    has_ended = true;
    clearTimeout(timer);
  }
}
