/**
 * Generated migrations on a database with data: an invented next release, applied to a database
 * that this tree has filled.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { diffLines } from "../../scripts/diff_lines.ts";
import { migrate } from "../../scripts/schema/migrate.ts";
import { renderDescription } from "../../scripts/schema/schema_catalogue.ts";
import { compareWithFiles, readWhole } from "../../scripts/schema/schema_release.ts";
import { scratchServer } from "../../scripts/postgres/scratch_database.ts";
import { createEmptyDatabase, testServer } from "../support/database/database.ts";
import { loadRows } from "../support/upgrade/data_file.ts";
import { makeFixture } from "../support/upgrade/fixture.ts";
import { withNextRelease } from "../support/upgrade/next_release.ts";
import { checkUpgraded } from "../support/upgrade/upgraded.ts";

Deno.test("a filled database accepts the generated migrations of a next release", async (t) => {
  const server = scratchServer(testServer().superuser_url);
  const fixture = await server.withDatabase(async (url) => {
    await migrate(url);
    return await makeFixture(url);
  });
  const database = await createEmptyDatabase();
  try {
    await migrate(database.url);
    const sql = postgres(database.url, { max: 1, onnotice: () => {} });
    await loadRows(sql, fixture.rows).finally(() => sql.end());
    await withNextRelease(server, async (folders) => {
      const applied = await migrate(database.url, undefined, folders.migrations);
      assert.equal(applied.length, 3);
      assert.equal(await compareWithFiles(server, folders), "");
      const made = await server.withDatabase(async (url) => {
        await migrate(url, undefined, folders.migrations);
        return renderDescription(await readWhole(url));
      });
      assert.equal(diffLines(made, renderDescription(await readWhole(database.url))), "");
    });
    await checkUpgraded(t, database, fixture);
  } finally {
    await database.drop();
  }
});
