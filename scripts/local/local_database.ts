/** The database of a local start: an embedded server, or the one that DATABASE_URL names. */

import postgres from "postgres";
import { driverEncryption } from "../../shared/store/database_encryption.ts";
import { startPostgres } from "../postgres/embedded_postgres.ts";
import { grantFunctionsRole } from "../postgres/functions_role.ts";
import { migrate } from "../schema/migrate.ts";
import { migrateDataDir } from "../schema/migrate_data_dir.ts";
import { randomPassword } from "../data_dir/private_file.ts";
import { SettingsError } from "../data_dir/settings.ts";
import { say, type Shutdown } from "./shutdown.ts";

const FUNCTIONS_ROLE = "pay_functions";

/** A database that is migrated and ready for the functions. */
export interface ReadyDatabase {
  /** A user who may execute the operator's functions. */
  operator_url: string;
  functions_url: string;
  /** For the banner; null for the embedded server. */
  shown_as: string | null;
  /** Resolves when the database is gone for good; to null when we ended it. */
  exited: Promise<Error | null>;
}

/** The embedded server of the data folder; the functions log in as a role made for them. */
export async function startDatabase(
  data_dir: string,
  shutdown: Shutdown,
): Promise<ReadyDatabase> {
  const starting = startPostgres({
    data_dir,
    durable: true,
    onProgress: say,
    signal: shutdown.signal,
  });
  shutdown.add(async () => (await starting.catch(() => null))?.stop());
  const server = await starting;
  await migrateDataDir(server.superuser_url, data_dir);
  // A new password with each start: no file has to keep it.
  const role = { name: FUNCTIONS_ROLE, password: randomPassword() };
  const sql = postgres(server.superuser_url, { max: 1, onnotice: () => {} });
  try {
    await grantFunctionsRole(sql, role);
  } finally {
    await sql.end();
  }
  return {
    operator_url: server.superuser_url,
    functions_url: server.urlFor("postgres", role),
    shown_as: null,
    exited: server.exited,
  };
}

/** The user's own server: the functions log in as its user, as they do when deployed. */
export async function useDatabase(url: string): Promise<ReadyDatabase> {
  const { host, pathname } = new URL(url);
  const sql = postgres(url, {
    max: 1,
    connect_timeout: 5,
    ...driverEncryption(url),
    onnotice: () => {},
  });
  try {
    await sql`select 1`;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new SettingsError(`DATABASE_URL names a server that does not let us in: ${reason}`);
  } finally {
    await sql.end();
  }
  await migrate(url);
  return {
    operator_url: url,
    functions_url: url,
    shown_as: host + pathname,
    exited: new Promise(() => {}),
  };
}
