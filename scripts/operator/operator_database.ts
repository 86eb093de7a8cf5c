/**
 * The database of an operator's command: the one that DATABASE_URL names, else the embedded server of
 * DATA_DIR. That one is shared with a start that runs, or started for as long as the command takes;
 * `start.lock` tells which, and is held meanwhile so that no start gets in between.
 */

import postgres from "postgres";
import { join } from "node:path";
import { driverEncryption } from "../../shared/store/database_encryption.ts";
import { startPostgres } from "../postgres/embedded_postgres.ts";
import { type FileLock, takeFileLock } from "../data_dir/file_lock.ts";
import { migrateDataDir } from "../schema/migrate_data_dir.ts";
import { readOperatorUrl, removeOperatorUrl } from "../data_dir/operator_url.ts";
import { type Settings, SettingsError } from "../data_dir/settings.ts";

/** A connection as a user who may execute the operator's functions. */
interface OperatorDatabase {
  sql: postgres.Sql;
  close(): Promise<void>;
}

/** A start that is on its way gets this long until its database is ready: a first one unpacks it. */
const START_WAIT_MS = 60_000;
const POLL_MS = 100;
const CONNECT_TIMEOUT_S = 5;

/**
 * Opens the database.
 * @param onProgress told what takes a while
 * Errors: `SettingsError` naming the variable at fault.
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
    if (!("held_by" in lock)) return await startForTheMoment(data_dir, lock, onProgress);
    const url = await readOperatorUrl(data_dir);
    if (url !== null) return await connect(url, `DATA_DIR "${data_dir}"`);
    if (Date.now() > give_up_at) {
      throw new SettingsError(
        `DATA_DIR "${data_dir}" is in use by process ${lock.held_by}, which has no server of its ` +
          "own: set DATABASE_URL to the one that it uses",
      );
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

async function startForTheMoment(
  data_dir: string,
  lock: FileLock,
  onProgress: (line: string) => void,
): Promise<OperatorDatabase> {
  const closers: (() => void | Promise<void>)[] = [() => lock.release()];
  const close = async () => {
    for (let next = closers.pop(); next !== undefined; next = closers.pop()) await next();
  };
  try {
    removeOperatorUrl(data_dir);
    const server = await startPostgres({ data_dir, durable: true, onProgress });
    closers.push(() => server.stop());
    await migrateDataDir(server.superuser_url, data_dir);
    const connected = await connect(server.superuser_url, `DATA_DIR "${data_dir}"`);
    closers.push(() => connected.close());
    return { sql: connected.sql, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function connect(url: string, setting: string): Promise<OperatorDatabase> {
  const sql = postgres(url, {
    max: 1,
    connect_timeout: CONNECT_TIMEOUT_S,
    prepare: false,
    ...driverEncryption(url),
    onnotice: () => {},
  });
  const close = () => sql.end({ timeout: CONNECT_TIMEOUT_S });
  try {
    const [found] = await sql`select to_regprocedure('pay.list_api_keys()') as name`;
    if (found!.name === null) {
      throw new SettingsError(
        `${setting} names a database without this service: apply supabase/migrations first`,
      );
    }
  } catch (error) {
    await close();
    if (error instanceof SettingsError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new SettingsError(`${setting} names a server that does not let us in: ${reason}`);
  }
  return { sql, close };
}
