/**
 * The migration that brings the functions and views of a database to the files of `supabase/schemas`.
 * Written by `deno task schema --release NAME`, until a release makes it as fixed as every other.
 */

import { join } from "node:path";
import { MIGRATIONS_DIR } from "./migrate.ts";
import { readSchemaFiles, renderMigration, renderObjects } from "./schema_files.ts";

/** Writes the migration and returns its path. */
export async function writeRelease(name: string): Promise<string> {
  const head =
    `-- Written by "deno task schema --release ${name}" from supabase/schemas: do not edit.`;
  const text = renderMigration([renderObjects(await readSchemaFiles())]);
  const path = join(MIGRATIONS_DIR, `20261120001000_${name}.sql`);
  await Deno.writeTextFile(path, `${head}\n\n${text}`);
  return path;
}
