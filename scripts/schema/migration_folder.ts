/** A folder of migrations, and parts of it as folders of their own. */

import { join } from "node:path";
import { listMigrations, type Migration } from "./migrate.ts";

/** Migrations in the order of their versions, with their texts. */
export interface MigrationFolder {
  migrations: readonly Migration[];
  last: Migration | undefined;
  read(file: string): Promise<string>;
  /** The migrations before a version. */
  before(version: string): MigrationFolder;
  /** These migrations, and others by their texts. */
  copyOf(migrations: readonly Migration[], added?: Record<string, string>): MigrationFolder;
  /** Runs `work` with a temporary folder that holds these migrations. */
  withCopy<T>(work: (folder: string) => Promise<T>): Promise<T>;
}

/** Reads which migrations a folder holds. */
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
