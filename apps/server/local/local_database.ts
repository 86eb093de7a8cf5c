/** The database of a local start: the embedded server, or the server of DATABASE_URL. */

import type postgres from "postgres";
import { openConnection } from "../postgres/connection.ts";
import { type PostgresOptions, startPostgres } from "../postgres/embedded_postgres.ts";
import { grantFunctionsRole } from "../postgres/functions_role.ts";
import { migrate } from "../migrations/migrate.ts";
import { migrateDataDir } from "../migrations/migrate_data_dir.ts";
import { randomPassword } from "../data_dir/private_file.ts";
import { connectionFailed, SettingsError } from "../data_dir/settings.ts";
import type { Shutdown } from "./shutdown.ts";

const FUNCTIONS_ROLE = "pay_functions";

/** Options of the embedded server of a start. */
export interface DatabaseOptions extends Omit<PostgresOptions, "data_dir" | "signal"> {
  /** Whether the data folder is a copy that has every migration, so that none is looked for. */
  is_migrated?: boolean | undefined;
}

/** A migrated database, ready for the functions. */
export interface ReadyDatabase {
  /** URL with a user who can execute the operator's functions. */
  operator_url: string;
  functions_url: string;
  /** Host and database name for the banner. Null for the embedded server. */
  shown_as: string | null;
  /**
   * Resolves when the embedded server has ended and cannot be restarted: to null after a
   * shutdown, otherwise to the error. The server of DATABASE_URL does not end.
   */
  exited?: Promise<Error | null>;
}

/** Starts the embedded server of the data folder. The functions log in as a role of their own. */
export async function startDatabase(
  data_dir: string,
  shutdown: Shutdown,
  { is_migrated = false, ...options }: DatabaseOptions,
): Promise<ReadyDatabase> {
  const starting = startPostgres({ ...options, data_dir, signal: shutdown.signal });
  shutdown.add(async () => (await starting.catch(() => null))?.stop());
  const server = await starting;
  if (!is_migrated) await migrateDataDir(server.superuser_url, data_dir);
  // Each start sets a new password, so no file has to store it.
  const role = { name: FUNCTIONS_ROLE, password: randomPassword() };
  await using sql = openConnection(server.superuser_url);
  await grantFunctionsRole(sql, role);
  const functions_url = new URL(server.urlFor("postgres", role));
  if (server.socket_folder) functions_url.searchParams.set("host", server.socket_folder);
  return {
    operator_url: server.superuser_url,
    functions_url: functions_url.href,
    shown_as: null,
    exited: server.exited,
  };
}

/**
 * Uses the server of DATABASE_URL. The functions log in as the user of the URL, as they do by
 * default when they are deployed.
 * @throws {SettingsError} if the server refuses the connection, or isolates transactions in another
 * way than the functions need
 */
export async function useDatabase(url: string): Promise<ReadyDatabase> {
  const { host, pathname } = new URL(url);
  {
    await using sql = openConnection(url, { connect_timeout: 5 });
    await refuseIsolation(sql, "DATABASE_URL").catch((error) => {
      throw connectionFailed("DATABASE_URL", error);
    });
  }
  await migrate(url);
  return {
    operator_url: url,
    functions_url: url,
    shown_as: host + pathname,
  };
}

/**
 * Each statement of a function must see what other transactions have committed before it.
 * @throws {SettingsError} with the name of the setting if it does not
 */
export async function refuseIsolation(sql: postgres.Sql, setting: string): Promise<void> {
  const [found] = await sql<[{ isolation: string }]>`
    select current_setting('default_transaction_isolation') as isolation`;
  if (found.isolation === "read committed") return;
  throw new SettingsError(
    `${setting} cannot be used: default_transaction_isolation is "${found.isolation}" there, and ` +
      'the service needs "read committed", which is PostgreSQL\'s default',
  );
}
