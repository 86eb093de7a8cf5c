/**
 * Opens the database of an operator's command: the server of DATABASE_URL, or else the embedded
 * server of DATA_DIR. If a local start holds `start.lock`, the command uses the server of that
 * start. Otherwise it takes the lock, so that no start begins meanwhile, and runs the server itself
 * until it is done.
 */

import type postgres from "postgres";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createConnectors } from "../../shared/functions/connectors.ts";
import type { ConnectorFinder } from "../../shared/domain/providers/connector.ts";
import { BankStore } from "../../shared/store/bank_store.ts";
import { ChainStore } from "../../shared/store/chain_store.ts";
import type { Database } from "../../shared/store/database.ts";
import type { Shell } from "./command_line.ts";
import { openConnection } from "../server/postgres/connection.ts";
import { startPostgres } from "../server/postgres/embedded_postgres.ts";
import { type FileLock, takeFileLock } from "../server/data_dir/file_lock.ts";
import { migrateDataDir } from "../server/migrations/migrate_data_dir.ts";
import { readOperatorUrl, removeOperatorUrl } from "../server/data_dir/operator_url.ts";
import {
  connectionFailed,
  readSettings,
  type Settings,
  SettingsError,
} from "../server/data_dir/settings.ts";

/** A connection whose user can execute the operator's functions. `await using` closes it. */
type OperatorDatabase = { sql: postgres.Sql } & AsyncDisposable;

const PROJECT_DIR = fileURLToPath(new URL("../../", import.meta.url));
/** Time to wait for the database of a start that has just begun. A first start fetches it. */
const START_WAIT_MS = 60_000;
const POLL_MS = 100;
const CONNECT_TIMEOUT_S = 5;

/**
 * Opens the database.
 * @param onProgress receives a line for each slow step
 * @throws {SettingsError} if the connection fails, or the database does not have this service
 */
export async function openOperatorDatabase(
  { data_dir, database_url }: Pick<Settings, "data_dir" | "database_url">,
  onProgress: (line: string) => void,
): Promise<OperatorDatabase> {
  if (database_url !== null) return await connect(database_url, "DATABASE_URL");
  await Deno.mkdir(data_dir, { recursive: true });
  const give_up_at = Date.now() + START_WAIT_MS;
  for (;;) {
    const lock = takeFileLock(join(data_dir, "start.lock"));
    if (!("held_by" in lock)) return await startTemporarily(data_dir, lock, onProgress);
    const url = await readOperatorUrl(data_dir);
    if (url !== null) return await connect(url, `DATA_DIR "${data_dir}"`);
    if (Date.now() > give_up_at) {
      throw new SettingsError(
        `DATA_DIR "${data_dir}" is in use by process ${lock.held_by}, which runs no embedded ` +
          "server: set DATABASE_URL to the server that it uses",
      );
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/**
 * Runs a command with the database that the variables name, by default that of the local start.
 * @throws {SettingsError} if there is none
 */
export async function withOperatorDatabase<T>(
  { env, printMessage }: Shell,
  work: (sql: postgres.Sql, settings: Settings) => Promise<T>,
): Promise<T> {
  const settings = readSettings(env, PROJECT_DIR);
  await using database = await openOperatorDatabase(settings, printMessage);
  return await work(database.sql, settings);
}

/** Returns the database of a connection, as the stores of the service take it. */
export function databaseOf(sql: postgres.Sql): Database {
  const run = async <Row>(text: string, parameters: readonly (string | number | null)[]) =>
    await sql.unsafe(text, [...parameters]) as unknown as Row[];
  return { query: run, attempt: run, close: () => Promise.resolve() };
}

export function connectorsOf(sql: postgres.Sql): ConnectorFinder {
  const database = databaseOf(sql);
  return createConnectors(new ChainStore(database), new BankStore(database));
}

/** Starts the embedded server, which ends with the connection. Then the lock is released. */
async function startTemporarily(
  data_dir: string,
  lock: FileLock,
  onProgress: (line: string) => void,
): Promise<OperatorDatabase> {
  await using started = new AsyncDisposableStack();
  started.defer(() => lock.release());
  removeOperatorUrl(data_dir);
  const server = await startPostgres({ data_dir, durable: true, onProgress });
  started.defer(() => server.stop());
  await migrateDataDir(server.superuser_url, data_dir);
  const { sql } = started.use(await connect(server.superuser_url, `DATA_DIR "${data_dir}"`));
  const kept = started.move();
  return { sql, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

async function connect(url: string, setting: string): Promise<OperatorDatabase> {
  const sql = openConnection(url, {
    connect_timeout: CONNECT_TIMEOUT_S,
    // The end of the connection is the end of a command's lock.
    max_lifetime: null,
    // The driver can read no other style.
    connection: { DateStyle: "ISO" },
  });
  const close = () => sql.end({ timeout: CONNECT_TIMEOUT_S });
  try {
    const [found] = await sql`select to_regprocedure('pay.list_api_keys()') as name`;
    if (found!.name === null) {
      throw new SettingsError(
        `${setting} has a database without this service: apply supabase/migrations first`,
      );
    }
  } catch (error) {
    await close();
    throw connectionFailed(setting, error);
  }
  return { sql, [Symbol.asyncDispose]: close };
}
