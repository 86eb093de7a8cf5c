/**
 * A PostgreSQL 17 that offers the extensions `pg_cron` and `pg_net`, as Supabase's does: their
 * control files, and our stand-ins as their scripts.
 */

import { dirname, join } from "node:path";
import {
  installPostgres,
  type PostgresPrograms,
} from "../../../apps/server/postgres/postgres_package.ts";
import { STAND_INS } from "../database/scheduled_database.ts";

/**
 * Control files with the settings of the real ones that decide the schema. On Supabase `postgres`
 * may create both extensions. Here they are trusted for it.
 */
const CONTROL = {
  pg_cron: "default_version = '1.6'\nrelocatable = false\nschema = pg_catalog\ntrusted = true\n",
  pg_net: "default_version = '0.20.4'\nrelocatable = false\ntrusted = true\n",
};
const VERSIONS = { pg_cron: "1.6", pg_net: "0.20.4" };

/** Installs PostgreSQL 17 with the extensions in a folder of its own. */
export async function installWithExtensions(home: string): Promise<PostgresPrograms> {
  const programs = await installPostgres(home);
  const folder = join(dirname(dirname(programs.postgres)), "share/postgresql/extension");
  for (const name of ["pg_cron", "pg_net"] as const) {
    await Deno.writeTextFile(join(folder, `${name}.control`), CONTROL[name]);
    await Deno.copyFile(STAND_INS[name], join(folder, `${name}--${VERSIONS[name]}.sql`));
    await Deno.chmod(join(folder, `${name}--${VERSIONS[name]}.sql`), 0o644);
  }
  return programs;
}
