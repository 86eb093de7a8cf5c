/**
 * The migration that brings the functions and views of a database to the files of
 * `supabase/schemas`.
 * `deno task schema --release NAME` writes it, and rewrites it until a release fixes it.
 */

import { join } from "node:path";
import postgres from "postgres";
import { diffLines } from "../diff_lines.ts";
import { migrate } from "./migrate.ts";
import { type MigrationFolder, readMigrationFolder } from "./migration_folder.ts";
import { readReleases, releasedFiles } from "./releases.ts";
import { readSchema, renderDescription, type SchemaDescription } from "./schema_catalogue.ts";
import { planChange, type SchemaChange } from "./schema_change.ts";
import { applySchemaFiles, renderMigration, SchemaFileError } from "./schema_files.ts";
import type { ScratchServer } from "../postgres/scratch_database.ts";

/** Something that the person has to change; the message is complete. */
export class SchemaReleaseError extends Error {
  override readonly name = "SchemaReleaseError";
}

/** The result of `writeRelease()`. */
export interface SchemaRelease {
  /** The path of the migration; null when the schema files change nothing. */
  written: string | null;
  /** An unreleased migration that is no longer needed, or had another name. */
  removed: string | null;
  change: SchemaChange;
}

/** The folders of a project. */
export interface SchemaFolders {
  migrations: string;
  schemas: string;
  /** The file of the releases. */
  releases: string;
}

const NAME = /^[a-z0-9_]+$/;
const HEAD =
  /^-- Written by "deno task schema --release \w+" from supabase\/schemas: do not edit\.\n/;

/**
 * Writes the migration. An unreleased one is written anew and keeps its version.
 * Errors: `SchemaReleaseError`, after which the folder is as it was.
 */
export async function writeRelease(
  server: ScratchServer,
  folders: SchemaFolders,
  name: string,
): Promise<SchemaRelease> {
  if (!NAME.test(name)) {
    throw new SchemaReleaseError(
      `--release "${name}": the name of the migration must be of the letters a to z, digits and "_"`,
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
 * The difference between the migrations and the schema files; empty if there is none.
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

/** The whole description of a database's schema. */
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
    throw new SchemaReleaseError(
      `${found.map(({ file }) => file).join(" and ")} are both generated and unreleased: delete ` +
        "all but the first, then try again",
    );
  }
  return found[0] ?? null;
}

/** The time of day, or a number after every other version when those are of the future. */
function nextVersion({ migrations }: MigrationFolder): string {
  const now = new Date().toISOString().replaceAll(/\D/g, "").slice(0, 14);
  const last = migrations.at(-1)?.version ?? "";
  return now > last ? now : String(BigInt(last) + 1n);
}

/** The change from the migrations of a folder to the schema files. */
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
              "or a default uses cannot be dropped: take it out of use with a migration by hand",
          );
        });
        return await planChange(base_url, await readWhole(target_url), folders.schemas);
      }, base_url);
    })
  );
}

/** Errors: the migrations alone do not make what the schema files say. */
async function verify(server: ScratchServer, folders: SchemaFolders, folder: MigrationFolder) {
  const difference = await folder.withCopy((migrations) =>
    compareWithFiles(server, { ...folders, migrations })
  );
  if (difference === "") return;
  throw new SchemaReleaseError(
    `${difference}\nThe migrations (-) would not make what supabase/schemas says (+): write the ` +
      "difference as a migration by hand",
  );
}
