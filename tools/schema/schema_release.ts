/**
 * Generates the migration that changes the functions and views of a database to those of
 * `supabase/schemas`. `deno task schema --release NAME` writes it, and replaces it at every further
 * run until a release contains it.
 */

import { join } from "node:path";
import postgres from "postgres";
import { diffLines } from "../diff_lines.ts";
import { migrate } from "../../apps/server/migrations/migrate.ts";
import {
  type MigrationFolder,
  readMigrationFolder,
} from "../../apps/server/migrations/migration_folder.ts";
import { readReleases, releasedFiles } from "./releases.ts";
import { readSchema, renderDescription, type SchemaDescription } from "./schema_catalogue.ts";
import { planChange, type SchemaChange } from "./schema_change.ts";
import { applySchemaFiles, renderMigration, SchemaFileError } from "./schema_files.ts";
import type { ScratchServer } from "../../apps/server/postgres/scratch_database.ts";

/** A migration cannot be generated. The message is complete for the developer. */
export class SchemaReleaseError extends Error {
  override readonly name = "SchemaReleaseError";
}

/** The result of `writeRelease()`. */
export interface SchemaRelease {
  /** The path of the migration, or null if the schema files change nothing. */
  written: string | null;
  /** The file of an unreleased migration that is no longer needed or has a new name, or null. */
  removed: string | null;
  change: SchemaChange;
}

/** The paths of a project. */
export interface SchemaFolders {
  migrations: string;
  schemas: string;
  /** The path of releases.json. */
  releases: string;
}

const NAME = /^[a-z0-9_]+$/;
const HEAD =
  /^-- Written by "deno task schema --release \w+" from supabase\/schemas: do not edit\.\n/;

/**
 * Writes the migration. It replaces an unreleased generated migration and keeps its version.
 * @throws {SchemaReleaseError} if there is no such migration; the folder does not change then
 */
export async function writeRelease(
  server: ScratchServer,
  folders: SchemaFolders,
  name: string,
): Promise<SchemaRelease> {
  if (!NAME.test(name)) {
    throw new SchemaReleaseError(
      `--release "${name}": the name of a migration must only have the letters a to z, digits ` +
        'and "_"',
    );
  }
  const folder = await readMigrationFolder(folders.migrations);
  const present = await findUnreleased(folder, folders);
  const version = present?.version ?? nextVersion(folder);
  const change = await planAt(server, folders, folder.before(version));
  if (change.statements === "") {
    if (present !== null) await Deno.remove(join(folders.migrations, present.file));
    return { written: null, removed: present?.file ?? null, change };
  }
  const text = `-- Written by "deno task schema --release ${name}" from supabase/schemas: ` +
    `do not edit.\n\n${renderMigration(change.statements)}`;
  const file = `${version}_${name}.sql`;
  const others = folder.migrations.filter((migration) => migration.file !== present?.file);
  await verify(server, folders, folder.copyOf(others, { [file]: text }));
  await Deno.writeTextFile(join(folders.migrations, file), text);
  const is_renamed = present !== null && present.file !== file;
  if (is_renamed) await Deno.remove(join(folders.migrations, present.file));
  return {
    written: join(folders.migrations, file),
    removed: is_renamed ? present.file : null,
    change,
  };
}

/**
 * Returns the difference between the migrations and the schema files as text, empty if none.
 */
export async function compareWithFiles(
  server: ScratchServer,
  { migrations, schemas }: Pick<SchemaFolders, "migrations" | "schemas">,
): Promise<string> {
  return await server.withDatabase(async (url) => {
    await migrate(url, undefined, migrations);
    const migrated = await readWhole(url);
    await applySchemaFiles(url, schemas);
    return diffLines(renderDescription(migrated), renderDescription(await readWhole(url)));
  });
}

/** Describes the schema of a database, with the bodies of functions and the queries of views. */
export async function readWhole(url: string): Promise<SchemaDescription> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return await readSchema(sql, "whole");
  } finally {
    await sql.end();
  }
}

async function findUnreleased(folder: MigrationFolder, { releases }: SchemaFolders) {
  const released = releasedFiles(await readReleases(releases));
  const found = [];
  for (const migration of folder.migrations) {
    if (released.has(migration.file)) continue;
    if (HEAD.test(await folder.read(migration.file))) found.push(migration);
  }
  if (found.length > 1) {
    const files = found.map(({ file }) => file).join(" and ");
    throw new SchemaReleaseError(
      `${files} are generated and unreleased, but there must be only one: delete all but the ` +
        "first, then try again",
    );
  }
  return found[0] ?? null;
}

/** Returns the present time, or the last version plus one if that version is later. */
function nextVersion({ migrations }: MigrationFolder): string {
  const now = new Date().toISOString().replaceAll(/\D/g, "").slice(0, 14);
  const last = migrations.at(-1)?.version ?? "";
  return now > last ? now : String(BigInt(last) + 1n);
}

/** Computes the change from the migrations of a folder to the schema files. */
async function planAt(
  server: ScratchServer,
  folders: SchemaFolders,
  folder: MigrationFolder,
): Promise<SchemaChange> {
  return await folder.withCopy((base) =>
    server.withDatabase(async (base_url) => {
      await migrate(base_url, undefined, base);
      return await server.withDatabase(async (target_url) => {
        await applySchemaFiles(target_url, folders.schemas).catch((error) => {
          if (!(error instanceof SchemaFileError)) throw error;
          const after = folder.last === undefined ? "" : ` after ${folder.last.file}`;
          throw new SchemaReleaseError(
            `The schema files do not apply${after}:\n${error.message}\nIf this needs a later ` +
              "migration, give that one an earlier version. A function that a policy, a trigger " +
              "or a default uses cannot be dropped: write a migration by hand that removes the use",
          );
        });
        return await planChange(base_url, await readWhole(target_url), folders.schemas);
      }, base_url);
    })
  );
}

/**
 * Checks that the migrations and the schema files agree.
 * @throws {SchemaReleaseError} if they differ
 */
async function verify(server: ScratchServer, folders: SchemaFolders, folder: MigrationFolder) {
  const difference = await folder.withCopy((migrations) =>
    compareWithFiles(server, { ...folders, migrations })
  );
  if (difference === "") return;
  throw new SchemaReleaseError(
    `${difference}\nThe migrations (-) and supabase/schemas (+) would still differ: write a ` +
      "migration for the difference by hand",
  );
}
