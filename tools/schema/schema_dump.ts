/**
 * `deno task schema` prints a description of a database with all migrations.
 * `deno task schema --release NAME` writes the migration for changes in supabase/schemas.
 * `deno task schema --check` writes nothing. It fails if the migrations and supabase/schemas
 * differ, or if a released migration has changed.
 *
 * It starts a PostgreSQL server, or uses the one of TEST_DATABASE_URL, whose user must be allowed
 * to create databases.
 */

import postgres from "postgres";
import { migrate, MigrationError, MIGRATIONS_DIR } from "../../apps/server/migrations/migrate.ts";
import { readMigrationFolder } from "../../apps/server/migrations/migration_folder.ts";
import { findBrokenReleases, readReleases, RELEASES_FILE } from "./releases.ts";
import { readSchema, renderDescription } from "./schema_catalogue.ts";
import type { SchemaChange } from "./schema_change.ts";
import { SchemaFileError, SCHEMAS_DIR } from "./schema_files.ts";
import {
  compareWithFiles,
  type SchemaFolders,
  SchemaReleaseError,
  writeRelease,
} from "./schema_release.ts";
import {
  type ScratchServer,
  withScratchServer,
} from "../../apps/server/postgres/scratch_database.ts";

const HEADER =
  `-- The database as the migrations make it, without the bodies of functions and the queries of views,
-- which are in supabase/schemas. This is a description: do not run it.

`;
const FOLDERS: SchemaFolders = {
  migrations: MIGRATIONS_DIR,
  schemas: SCHEMAS_DIR,
  releases: RELEASES_FILE,
};
const USAGE = "Usage: deno task schema [--check | --release NAME]";

if (import.meta.main) Deno.exit(await main(Deno.args));

/** Returns the description of a migrated database. */
export async function renderSchema(url: string): Promise<string> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return HEADER + renderDescription(await readSchema(sql, "signatures"));
  } finally {
    await sql.end();
  }
}

/**
 * Compares the migrations with supabase/schemas and supabase/releases.json. Returns a message for
 * each difference, with a remedy.
 */
export async function checkSchema(server: ScratchServer): Promise<string[]> {
  const problems = await findBrokenReleases(
    await readReleases(),
    await readMigrationFolder(MIGRATIONS_DIR),
  );
  const difference = await compareWithFiles(server, FOLDERS);
  if (difference !== "") {
    problems.push(
      `${difference}\nThe migrations (-) and supabase/schemas (+) differ: run ` +
        '"deno task schema --release NAME"',
    );
  }
  return problems;
}

async function renderMigrated(server: ScratchServer): Promise<string> {
  return await server.withDatabase(async (url) => {
    await migrate(url);
    return await renderSchema(url);
  });
}

async function main(args: readonly string[]): Promise<number> {
  const [option, name, ...more] = args;
  const is_known = option === undefined || (option === "--check" && name === undefined) ||
    (option === "--release" && name !== undefined);
  if (!is_known || more.length > 0) {
    console.error(USAGE);
    return 2;
  }
  try {
    return await withScratchServer(async (server) => {
      if (option === "--check") return await check(server);
      if (name !== undefined) await release(server, name);
      else console.log(await renderMigrated(server));
      return 0;
    });
  } catch (error) {
    const has_user_message = error instanceof SchemaReleaseError ||
      error instanceof SchemaFileError || error instanceof MigrationError ||
      (error instanceof Error && error.constructor === Error);
    if (!has_user_message) throw error;
    console.error(error.message);
    return 1;
  }
}

async function check(server: ScratchServer): Promise<number> {
  const problems = await checkSchema(server);
  if (problems.length === 0) {
    console.log("The migrations and supabase/schemas agree");
    return 0;
  }
  console.error(problems.join("\n\n"));
  return 1;
}

async function release(server: ScratchServer, name: string): Promise<void> {
  const { written, removed, change } = await writeRelease(server, FOLDERS, name);
  if (removed !== null) console.log(`Removed: ${removed}`);
  if (written === null) console.log("No migration is needed: supabase/schemas has no changes");
  else console.log(`Written: ${written}\n${renderSummary(change)}`);
}

/** The number of objects that change, and a warning about those that older functions could call. */
function renderSummary({ created, dropped, withdrawn }: SchemaChange): string {
  return [
    `  creates or replaces ${created.length}, drops ${dropped.length}`,
    ...withdrawn.map((object) =>
      `  Warning: drops ${object}, which the HTTP functions of older releases could call`
    ),
  ].join("\n");
}
