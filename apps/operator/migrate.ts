/**
 * `deno task migrate` applies the missing migrations to the database of DATABASE_URL, for
 * `deno task serve`. It also lets the functions read the record of the migrations, because an
 * instance refuses the database of another version. Its user may create roles and schemas.
 */

import { readSettings, reasonOf, SettingsError } from "../server/data_dir/settings.ts";
import { migrate, MigrationError } from "../server/migrations/migrate.ts";
import { openConnection } from "../server/postgres/connection.ts";
import { print, readVariable, UsageError } from "./command_line.ts";

/** Exit codes: 0 success, 1 failure, 2 invalid arguments. */
export async function main(): Promise<number> {
  const { database_url } = readSettings(readVariable, ".");
  if (database_url === null) {
    throw new UsageError(
      "Set DATABASE_URL to the database, like postgres://user:password@host:5432/database",
    );
  }
  const applied = await migrate(database_url, (line) => print(`${line}\n`)).catch(explain);
  await showRecord(database_url);
  print(
    applied.length === 0 ? "The database has every migration\n" : `Applied: ${applied.length}\n`,
  );
  return 0;
}

/** Throws an error of the connection with the name of the variable. */
function explain(error: unknown): never {
  if (error instanceof MigrationError) throw error;
  throw new SettingsError(`DATABASE_URL cannot be used: ${reasonOf(error)}`);
}

/** Lets the functions read the record of the migrations, which have made their role. */
export async function showRecord(url: string): Promise<void> {
  await using sql = openConnection(url);
  await sql`grant usage on schema supabase_migrations to pay_api`;
  await sql`grant select on supabase_migrations.schema_migrations to pay_api`;
}
