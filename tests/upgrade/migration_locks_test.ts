/** The migrations of a large database: none reads a table while it stops reads and writes. */

import assert from "node:assert/strict";
import postgres from "postgres";
import { listMigrations, migrate, MIGRATIONS_DIR } from "../../scripts/schema/migrate.ts";
import { readMigrationFolder } from "../../scripts/schema/migration_folder.ts";
import { createEmptyDatabase } from "../support/database/database.ts";

const MONEY = "20261122200100_money.sql";

Deno.test("the constraints on money are checked by a migration of their own", async () => {
  const database = await createEmptyDatabase();
  const sql = postgres(database.url, { max: 1, onnotice: () => {} });
  const unchecked = async () => {
    const rows = await sql`
      select conname from pg_constraint
      where connamespace = 'pay'::regnamespace and not convalidated`;
    return rows.map(({ conname }) => conname).sort();
  };
  try {
    const { version } = (await listMigrations(MIGRATIONS_DIR)).find(({ file }) => file === MONEY)!;
    const folder = await readMigrationFolder(MIGRATIONS_DIR);
    const upTo = folder.migrations.filter((migration) => migration.version <= version);
    await folder.copyOf(upTo, {}).withCopy(async (path) => {
      await migrate(database.url, undefined, path);
    });
    assert.deepEqual(await unchecked(), [
      "ledger_movements_accounts_known",
      "ledger_movements_kind_known",
      "payments_money_agrees_with_status",
      "payments_refunds_in_range",
      "payments_released_in_range",
      "payments_status_known",
      "refunds_status_known",
    ]);
    await migrate(database.url);
    assert.deepEqual(await unchecked(), []);
  } finally {
    await sql.end();
    await database.drop();
  }
});
