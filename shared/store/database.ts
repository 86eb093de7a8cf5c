/**
 * The connection to Postgres: a small pool, one prepared statement for each call, and a deadline
 * for each statement. This module maps database errors to error codes.
 *
 * A health check on a separate connection detects that the database is unavailable
 * (database_health.ts). If the database hangs, the first request fails after about 1.5 s and later
 * ones fail at once (promise R12).
 */

import postgres from "postgres";
import { codeOf, isLockTimeout, isUnavailable } from "../core/database_error.ts";
import { ApiError, serviceUnavailable, tryAgain } from "../core/errors.ts";
import { encryptionOf } from "./database_encryption.ts";
import { encryptedSockets } from "./database_socket.ts";
import { outliveLostWrites } from "./lost_write.ts";
import { DatabaseHealth, type Probe, PROBE_DEADLINE_MS } from "./database_health.ts";

interface DatabaseOptions {
  /**
   * `postgres://…`. Its `sslmode` selects the encryption (database_encryption.ts). As with libpq, a
   * parameter `host` can be the folder of a Unix socket, which is not encrypted.
   */
  url: string;
  /** Certificate authority in PEM that is trusted in addition to those of the runtime. */
  authority?: string;
  /** Most connections of this isolate. Small, because a platform runs many isolates. */
  max_connections?: number;
  /** Seconds without use after which a connection closes; 60 by default. */
  idle_s?: number;
  /** False behind a transaction pooler, and by default on the port of Supabase's pooler (6543). */
  prepare?: boolean;
  /** The database is unavailable if a health check takes longer; 1 s by default (promise R12). */
  unavailable_after_ms?: number;
  /** Called with each statement that is sent. Tests count round trips with it. */
  on_statement?: (text: string) => void;
}

/** Connections of one isolate. On two cores 8 were measured as fast as 4, and more were slower. */
const DEFAULT_CONNECTIONS = 4;
/** Seconds without use after which a connection closes. */
const IDLE_S = 60;
/** Deadline of a statement: more than the 3 s that a concurrent duplicate waits. */
const STATEMENT_DEADLINE_MS = 5_000;
const SLOW_AFTER_MS = 500;
/** Seconds without use after which the connection of the health check closes. */
const PROBE_IDLE_S = 20;
/** Time for the running statements of a replaced pool: the deadline of a statement. */
const DRAIN_MS = STATEMENT_DEADLINE_MS;

/** SQLSTATE of a transaction that a deadlock ended. */
const DEADLOCK = "40P01";
/** Most attempts of a statement that ends in a deadlock. */
const DEADLOCK_TRIES = 3;

/** A pool of connections. Each connection runs one statement at a time. */
export interface Database {
  /** Runs one statement and returns its rows. Throws `ApiError`. One round trip. */
  query<Row>(text: string, parameters: readonly (string | number | null)[]): Promise<Row[]>;
  /** Like `query`, but throws the driver's error, for callers that handle it themselves. */
  attempt<Row>(text: string, parameters: readonly (string | number | null)[]): Promise<Row[]>;
  /** Closes all connections after their running statements. */
  close(): Promise<void>;
}

/** Makes the text of a PostgreSQL array of ids, which need no quotes. */
export function arrayOf(ids: Iterable<string>): string {
  return `{${[...ids].join(",")}}`;
}

/** Opens a pool. It connects at the first statement. */
export function openDatabase(options: DatabaseOptions): Database {
  outliveLostWrites();
  const open = () => new ConnectionPool(options);
  let pool = open();
  const retired = new Map<ConnectionPool, ReturnType<typeof setTimeout>>();
  const end = async (old: ConnectionPool) => {
    clearTimeout(retired.get(old));
    retired.delete(old);
    await old.destroy();
  };
  /** Replaces a pool with broken connections. Its running statements may go on for `drain_ms`. */
  const replace = (old: ConnectionPool, drain_ms: number) => {
    if (pool !== old) return;
    pool = open();
    retired.set(old, setTimeout(() => end(old), drain_ms));
  };
  const unavailable_after_ms = unavailableAfterMs(options);
  const health = new DatabaseHealth(
    openProbe(options),
    () => replace(pool, 0),
    unavailable_after_ms,
  );

  async function once<Row>(
    text: string,
    parameters: readonly (string | number | null)[],
  ): Promise<Row[]> {
    if (!await health.admits()) throw serviceUnavailable();
    options.on_statement?.(text);
    const from = pool;
    const rows = from.run<Row>(text, parameters);
    const leave = () => replace(from, DRAIN_MS);
    try {
      return withoutHoles(await withinDeadline(rows, health, leave));
    } catch (error) {
      // The driver would reuse the object of the lost connection with its unsent data (ADR 0007).
      if (LOST.test(codeOf(error) ?? "")) leave();
      throw error;
    }
  }
  async function attempt<Row>(text: string, parameters: readonly (string | number | null)[]) {
    for (let tries = 1;; tries++) {
      try {
        return await once<Row>(text, parameters);
      } catch (error) {
        // The statement is a whole transaction and was rolled back, so a retry is safe.
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
      await Promise.all([pool.close(), ...[...retired.keys()].map(end)]);
    },
  };
}

/**
 * Removes empty elements from a response. If a connection breaks inside a response, postgres.js
 * 3.4.9 does not reset its row count, and the next response begins with that many empty elements.
 */
function withoutHoles<Row>(rows: Row[]): Row[] {
  return rows.length === 0 || 0 in rows ? rows : rows.filter(() => true);
}

/**
 * Connections with one statement at a time each: a statement that waits for a lock must not delay
 * another. The connection that was used last is used first, because its session has warm caches.
 * The driver's own pool takes them in turns (ADR 0001).
 */
class ConnectionPool {
  readonly #prepare: boolean;
  readonly #all: readonly postgres.Sql[];
  /** The last one is used next. */
  readonly #free: postgres.Sql[];
  readonly #waiting: ((connection: postgres.Sql) => void)[] = [];

  constructor(options: DatabaseOptions) {
    const { max_connections: length = DEFAULT_CONNECTIONS, idle_s = IDLE_S } = options;
    this.#prepare = isPrepared(options);
    this.#all = Array.from({ length }, () => connect(options, idle_s));
    this.#free = [...this.#all];
  }

  /** Throws the driver's error. */
  async run<Row>(text: string, parameters: readonly (string | number | null)[]): Promise<Row[]> {
    const connection = this.#free.pop() ?? await this.#wait();
    try {
      return await this.#send<Row>(connection, text, parameters);
    } finally {
      this.#release(connection);
    }
  }

  /**
   * The driver assigns new functions to its object of a statement, so that V8 keeps the object
   * until the next full collection (schema/rule.ts). It must not hold the parameters and the rows.
   */
  async #send<Row>(
    connection: postgres.Sql,
    text: string,
    parameters: readonly (string | number | null)[],
  ): Promise<Row[]> {
    const sent = [...parameters];
    const query = connection.unsafe<Row[]>(text, sent, { prepare: this.#prepare });
    let rows: Row[] = [];
    try {
      rows = await query;
      return rows.slice();
    } finally {
      const { parameters: bound = [] }: { parameters?: unknown[] } = query as object;
      for (const held of [sent, bound, rows]) held.length = 0;
    }
  }

  /** Closes the connections after the statements that run and wait. */
  async close(): Promise<void> {
    if (this.#free.length === 0) this.#release(await this.#wait());
    await Promise.all(this.#all.map((connection) => connection.end({ timeout: 5 })));
  }

  /** Closes the connections now. Their statements fail. */
  async destroy(): Promise<void> {
    await Promise.allSettled(this.#all.map((connection) => connection.end({ timeout: 0 })));
  }

  #wait(): Promise<postgres.Sql> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #release(connection: postgres.Sql): void {
    const next = this.#waiting.shift();
    if (next) next(connection);
    else this.#free.push(connection);
  }
}

/** One connection, which opens at its first statement. It has no deadline, for jobs. */
export function connect(options: DatabaseOptions, idle_timeout = IDLE_S): postgres.Sql {
  const mode = encryptionOf(options.url);
  const url = new URL(options.url);
  const folder = url.searchParams.get("host");
  const is_socket = folder?.startsWith("/");
  // The driver would send it to the server.
  if (is_socket) url.searchParams.delete("host");
  return postgres(is_socket ? url.href : options.url, {
    max: 1,
    ...(is_socket && { path: `${folder}/.s.PGSQL.${url.port || 5432}` }),
    // The driver's TLS does not work on the edge runtime's version of Deno (ADR 0007).
    ssl: false,
    ...(mode !== "disable" && !is_socket && {
      socket: encryptedSockets(mode, options.authority),
    }),
    prepare: isPrepared(options),
    // Longest time to open a connection (promise R12: 503 within 2 s).
    connect_timeout: (SLOW_AFTER_MS + unavailableAfterMs(options)) / 1_000,
    idle_timeout,
    // A failed attempt fails the request. The next request tries again.
    backoff: false,
    // Saves the round trip that fetches array types, which the service does not use.
    fetch_types: false,
    onnotice: () => {},
    // The driver can read no other style, and poolers know this parameter of a session.
    connection: { application_name: "payments", DateStyle: "ISO" },
  });
}

function unavailableAfterMs({ unavailable_after_ms }: DatabaseOptions): number {
  return unavailable_after_ms ?? PROBE_DEADLINE_MS;
}

/** Port of Supabase's transaction pooler, where each statement can run in another session. */
const TRANSACTION_POOLER_PORT = "6543";

/** Reports whether prepared statements stay in their session. */
function isPrepared({ prepare, url }: DatabaseOptions): boolean {
  return prepare ?? new URL(url).port !== TRANSACTION_POOLER_PORT;
}

/** Creates the health check. Its connection opens when it is first needed. */
function openProbe(options: DatabaseOptions): Probe {
  let sql: postgres.Sql | null = null;
  return {
    async ask() {
      sql ??= connect(options, PROBE_IDLE_S);
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

/** A server that refuses a connection, for example because of too many clients, is available. */
function isRefusal(error: unknown): boolean {
  return error instanceof postgres.PostgresError && !error.code.startsWith("57");
}

/** Makes the 409 for a concurrent duplicate of a request that has no response yet. */
export function requestInProgress(): ApiError {
  return tryAgain(
    "idempotency_in_progress",
    "A request with this Idempotency-Key is still under way: try again",
  );
}

/** Maps an error of the driver to an `ApiError`. The text of the error does not get into it. */
export function toApiError(error: unknown): Error {
  if (error instanceof ApiError) return error;
  const code = codeOf(error);
  if (code === null) return error instanceof Error ? error : new Error("unknown");
  const { where } = error as { where?: unknown };
  // A concurrent duplicate waited too long for the response of the first request.
  if (isLockTimeout(error) && String(where).includes('"idempotency_keys"')) {
    return requestInProgress();
  }
  // The log shows the cause, because no retry helps against a wrong address of the database.
  return isUnavailable(error)
    ? Object.assign(serviceUnavailable(), { cause: error })
    : error as Error;
}

/** Codes after which the pool is replaced, because its connections can be lost. */
const LOST =
  /^(CONNECT_TIMEOUT|CONNECTION_(CLOSED|ENDED)|E(CONNRESET|PIPE|TIMEDOUT)|08\w{3}|57P0\d)$/;

/**
 * Waits for the result of a statement. Throws `service_unavailable` if the database is unavailable
 * or the statement exceeds its deadline. The statement can still commit after that, so the client
 * repeats the request with its idempotency key.
 * @param on_late called if the statement exceeds its deadline
 */
async function withinDeadline<T>(
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
      if (is_late || !await health.responds()) reject(serviceUnavailable());
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
