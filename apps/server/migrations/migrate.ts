/**
 * Applies `supabase/migrations/<version>_<name>.sql` to a database. It records each migration in
 * the same table as the Supabase CLI, so either of them can continue after the other. Each
 * migration is one transaction. If two processes migrate at the same time, a lock makes the second
 * one wait, and it then finds nothing to apply.
 */

import postgres from "postgres";
import { join } from "node:path";
import { driverEncryption } from "../../../shared/store/database_encryption.ts";
import { fileURLToPath } from "node:url";
import { lineAt, splitStatements, type SqlStatement } from "./sql_statements.ts";

/** The folder of this project's migrations. */
export const MIGRATIONS_DIR = fileURLToPath(
  new URL("../../../supabase/migrations", import.meta.url),
);

/** The file names that the Supabase CLI accepts. */
const FILE_NAME = /^(\d+)_(.*)\.sql$/;
/** Key of the advisory lock: the text "paymigra" as a number, which no other program uses. */
const LOCK_KEY = "8097887115815645793";

/** A migration failed. The message is complete for the user. */
export class MigrationError extends Error {
  override readonly name = "MigrationError";
}

/**
 * The record of migrations in the database does not fit those of this version. Nothing was changed.
 */
export class ForeignDatabaseError extends MigrationError {
  /** @param reason a clause that follows "The database", without a remedy */
  constructor(readonly reason: string) {
    super(`The database ${reason}. Nothing was changed: use that version, or an empty database`);
  }
}

interface Migration {
  file: string;
  version: string;
  name: string;
}

/**
 * Applies the migrations that the database at `url` does not have.
 * @param onProgress receives a line for each file
 * @param onWarning receives each warning of a migration. By default it goes to standard error
 * @returns the files that were applied, in order
 * @throws {MigrationError} if a migration fails. The message has file and line; earlier migrations
 * stay applied, and the failed one is rolled back
 * @throws {ForeignDatabaseError} if the database has a migration that the folder does not have, or
 * lacks an earlier one
 */
export async function migrate(
  url: string,
  onProgress?: (line: string) => void,
  folder: string = MIGRATIONS_DIR,
  onWarning: (text: string) => void = (text) => console.error(text),
): Promise<string[]> {
  const migrations = await listMigrations(folder);
  const sql = postgres(url, {
    max: 1,
    onnotice: ({ severity, message, detail, hint }) => {
      // Notices report normal events, for example that a schema exists.
      if (severity !== "WARNING") return;
      onWarning([`Warning: ${message}`, detail, hint].filter(Boolean).join("\n  "));
    },
    prepare: false,
    ...driverEncryption(url),
  });
  try {
    await sql`select pg_advisory_lock(${LOCK_KEY}::bigint)`;
    await createRecord(sql);
    const pending = await findPending(sql, folder, migrations);
    for (const migration of pending) {
      onProgress?.(`Applying ${migration.file}`);
      await apply(sql, folder, migration);
    }
    return pending.map(({ file }) => file);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/**
 * Lists the migrations of a folder, sorted by version.
 * @throws {MigrationError} if two files have the same version
 */
export async function listMigrations(folder: string): Promise<Migration[]> {
  const migrations: Migration[] = [];
  for await (const { name: file, isFile } of Deno.readDir(folder)) {
    const [, version, name] = FILE_NAME.exec(file) ?? [];
    if (isFile && version !== undefined && name !== undefined) {
      migrations.push({ file, version, name });
    }
  }
  migrations.sort((a, b) => a.version < b.version ? -1 : 1);
  for (const [i, { file, version }] of migrations.entries()) {
    const next = migrations[i + 1];
    if (next?.version !== version) continue;
    const files = [file, next.file].sort().join(" and ");
    throw new MigrationError(`${files} have the same version: give the newer one a later version`);
  }
  return migrations;
}

async function createRecord(sql: postgres.Sql): Promise<void> {
  const [found] = await sql`select to_regclass('supabase_migrations.schema_migrations') as name`;
  if (found?.name != null) return;
  await sql.unsafe(`
    create schema if not exists supabase_migrations;
    create table if not exists supabase_migrations.schema_migrations (
      version text not null primary key,
      statements text[],
      name text
    );
  `).simple();
}

/**
 * Returns the files of the migrations that a database lacks.
 * @param sql its user may read the record, as that of the functions may after `deno task migrate`
 * @throws {ForeignDatabaseError} as `migrate` does
 */
export async function listMissing(sql: postgres.Sql): Promise<string[]> {
  const migrations = await listMigrations(MIGRATIONS_DIR);
  const missing = await findPending(sql, MIGRATIONS_DIR, migrations);
  return missing.map(({ file }) => file);
}

/** A row of the record. The Supabase CLI and a restore can leave the statements out. */
interface AppliedMigration {
  version: string;
  text: string | null;
}

async function findPending(
  sql: postgres.Sql,
  folder: string,
  migrations: Migration[],
): Promise<Migration[]> {
  const applied = await sql<AppliedMigration[]>`
    select version, array_to_string(statements, ';\n') as text
    from supabase_migrations.schema_migrations order by version`;
  for (const [i, { version, text: recorded }] of applied.entries()) {
    const migration = migrations[i];
    if (migration?.version !== version) throw refusal(version, migrations, migration);
    const text = await Deno.readTextFile(join(folder, migration.file));
    if (recorded && fingerprint(recorded) !== fingerprint(text)) {
      throw new ForeignDatabaseError(
        `has a different ${migration.file} than this version of the project: it was created by a ` +
          "version between releases",
      );
    }
  }
  return migrations.slice(applied.length);
}

/** Returns the error for a database whose migration `version` is not the expected one. */
function refusal(
  version: string,
  migrations: Migration[],
  expected: Migration | undefined,
): MigrationError {
  const made_by = version > (migrations.at(-1)?.version ?? "")
    ? "it was created by a newer version"
    : "it was created by a version between releases";
  const is_known = migrations.some((migration) => migration.version === version);
  return new ForeignDatabaseError(
    is_known
      ? `has migration ${version} but not ${expected!.file}, which comes before it: ${made_by}`
      : `has migration ${version}, which this version of the project does not have: ${made_by}`,
  );
}

/**
 * Returns the text without comments, white space and semicolons. The migrator and the Supabase CLI
 * record these differently for the same file.
 */
function fingerprint(text: string): string {
  return text.replaceAll(/--[^\n]*/g, "").replaceAll(/[\s;]+/g, "");
}

async function apply(sql: postgres.Sql, folder: string, migration: Migration): Promise<void> {
  const { file, version, name } = migration;
  const statements = splitStatements(await Deno.readTextFile(join(folder, file)));
  await sql.begin(async (transaction) => {
    for (const statement of statements) {
      await transaction.unsafe(statement.text).simple().catch((error: unknown) => {
        throw new MigrationError(describe(file, statement, error), { cause: error });
      });
    }
    await transaction`
      insert into supabase_migrations.schema_migrations (version, name, statements)
      values (${version}, ${name}, ${statements.map(({ text }) => text)})`;
  });
}

/**
 * Returns `<file>:<line>: <message>`. The line is the position in the error if the server reports
 * one, or else the first line of the statement.
 */
function describe(file: string, statement: SqlStatement, error: unknown): string {
  if (!(error instanceof postgres.PostgresError)) return `${file}: ${String(error)}`;
  const place = Number(error.position ?? 1) - 1;
  const line = statement.line + lineAt(statement.text, place) - 1;
  const more = [error.detail, error.hint, error.where].filter((text) => text !== undefined);
  return [`${file}:${line}: ${error.message} (${error.code})`, ...more].join("\n  ");
}
