/**
 * What the functions are built from, and how it is read from the environment. One set per isolate:
 * the pool is shared by its requests, nothing else outlives one.
 */

import { type Clock, systemClock } from "../core/clock.ts";
import { type RandomSource, systemRandom } from "../core/ids.ts";
import { createPayments, type Payments } from "../domain/payments.ts";
import { openDatabase } from "../store/database.ts";
import { createStore, type Store } from "../store/store.ts";
import { type LogLine, writeLogLine } from "./request_log.ts";

/** What both functions need. */
export interface Dependencies {
  store: Store;
  payments: Payments;
  /** Where both functions are served, without a slash at the end. */
  base_url: string;
  clock: Clock;
  random: RandomSource;
  /** Origins that may call from a browser: exact, or `http://localhost:*` for any port. */
  allowed_origins: readonly string[];
  log: (line: LogLine) => void;
}

/** What can be set; everything has a default but the database. */
export interface Settings {
  /** `postgres://…`; a role that is a member of `pay_api`. */
  database_url: string;
  /** Where both functions are served, without a slash at the end. */
  base_url: string;
  allowed_origins?: readonly string[];
  max_connections?: number;
  prepare?: boolean;
  clock?: Clock;
  random?: RandomSource;
  log?: (line: LogLine) => void;
  on_statement?: (text: string) => void;
}

/** Dependencies that can be given back. */
export type OpenDependencies = Dependencies & { close(): Promise<void> };

/** Builds the dependencies of a set of settings. */
export function createDependencies(settings: Settings): OpenDependencies {
  const { max_connections, prepare, on_statement } = settings;
  const database = openDatabase({
    url: settings.database_url,
    ...(max_connections !== undefined && { max_connections }),
    ...(prepare !== undefined && { prepare }),
    ...(on_statement && { on_statement }),
  });
  const store = createStore(database);
  return {
    store,
    payments: createPayments({ store, base_url: settings.base_url }),
    base_url: settings.base_url,
    clock: settings.clock ?? systemClock,
    random: settings.random ?? systemRandom,
    allowed_origins: settings.allowed_origins ?? [],
    log: settings.log ?? writeLogLine,
    close: () => database.close(),
  };
}

/**
 * Builds the dependencies from environment variables:
 * `PAYMENTS_DB_URL` (else `SUPABASE_DB_URL`), `PUBLIC_BASE_URL` (else `SUPABASE_URL` and
 * `/functions/v1`), `CONSOLE_ORIGINS` (comma-separated), `DB_POOL_SIZE`, `DB_PREPARE` (`false`
 * behind a transaction pooler). Throws when no database is named.
 */
export function openDependencies(
  env: (name: string) => string | undefined,
  overrides: Partial<Settings> = {},
): OpenDependencies {
  const database_url = env("PAYMENTS_DB_URL") ?? env("SUPABASE_DB_URL");
  if (!database_url) throw new Error("Set PAYMENTS_DB_URL (or SUPABASE_DB_URL) to the database");
  const base_url = env("PUBLIC_BASE_URL") ?? `${env("SUPABASE_URL") ?? ""}/functions/v1`;
  const pool_size = Number(env("DB_POOL_SIZE") ?? NaN);
  return createDependencies({
    database_url,
    base_url: base_url.replace(/\/+$/, ""),
    allowed_origins: (env("CONSOLE_ORIGINS") ?? "").split(",").map((o) => o.trim()).filter(Boolean),
    ...(pool_size > 0 && { max_connections: pool_size }),
    ...(env("DB_PREPARE") === "false" && { prepare: false }),
    ...overrides,
  });
}
