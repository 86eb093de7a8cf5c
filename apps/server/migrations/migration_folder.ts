/**
 * A list of migrations with their texts, from a folder. Subsets and additions are new lists, which
 * can be written to a temporary folder; the original folder does not change.
 */

import { join } from "node:path";
import { listMigrations, type Migration } from "./migrate.ts";

/** Migrations, sorted by version. */
export interface MigrationFolder {
  migrations: readonly Migration[];
  last: Migration | undefined;
  /** Returns the text of a migration. */
  read(file: string): Promise<string>;
  /** Returns the migrations before a version. */
  before(version: string): MigrationFolder;
  /** Returns these migrations, and further ones given as text by file name. */
  copyOf(migrations: readonly Migration[], added?: Record<string, string>): MigrationFolder;
  /** Runs `work` with the path of a temporary folder that holds these migrations. */
  withCopy<T>(work: (folder: string) => Promise<T>): Promise<T>;
}

/** Lists the migrations of a folder. */
export async function readMigrationFolder(folder: string): Promise<MigrationFolder> {
  return migrationFolder(folder, await listMigrations(folder), {});
}

function migrationFolder(
  folder: string,
  migrations: readonly Migration[],
  added: Record<string, string>,
): MigrationFolder {
  const read = async (file: string) => added[file] ?? await Deno.readTextFile(join(folder, file));
  return {
    migrations,
    last: migrations.at(-1),
    read,
    before: (version) =>
      migrationFolder(folder, migrations.filter((migration) => migration.version < version), {}),
    copyOf: (some, texts = {}) => migrationFolder(folder, some, texts),
    async withCopy(work) {
      const copy = await Deno.makeTempDir({ prefix: "payments-migrations-" });
      try {
        const files = [...migrations.map(({ file }) => file), ...Object.keys(added)];
        for (const file of files) await Deno.writeTextFile(join(copy, file), await read(file));
        return await work(copy);
      } finally {
        await Deno.remove(copy, { recursive: true });
      }
    },
  };
}
