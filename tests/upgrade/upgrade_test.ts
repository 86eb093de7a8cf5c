/**
 * This tree's migrations upgrade a database that an older release has created and filled. Its
 * schema equals that of a new database, its books are correct, and the service works with its rows.
 * The test also fills a database from a fixture of this tree, as a release will.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { join } from "node:path";
import { migrate, MIGRATIONS_DIR } from "../../apps/server/migrations/migrate.ts";
import { readReleases, releasedFiles } from "../../tools/schema/releases.ts";
import { scratchServer } from "../../apps/server/postgres/scratch_database.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { createEmptyDatabase, testServer } from "../support/database/database.ts";
import { describeSchema } from "../support/database/schema_description.ts";
import { loadRows } from "../support/upgrade/data_file.ts";
import { type Fixture, makeFixture, readFixture } from "../support/upgrade/fixture.ts";
import { checkUpgraded } from "../support/upgrade/upgraded.ts";

const releases = await readReleases();

for (const release of Object.keys(releases)) {
  Deno.test(`a database of ${release} is upgraded to this tree`, async (t) => {
    const fixture = await readFixture(release);
    await withTemporaryFolder(async (folder) => {
      await Deno.mkdir(folder);
      for (const file of releasedFiles(releases, release).keys()) {
        await Deno.copyFile(join(MIGRATIONS_DIR, file), join(folder, file));
      }
      await upgrade(t, folder, fixture);
    });
  });
}

// A fixture of 60 days ago is as a release's will be: many of its ends have come.
Deno.test("a database of this tree is filled from a fixture of 60 days ago", async (t) => {
  const end_ms = Date.now() - 60 * 86_400_000;
  const fixture = await scratchServer(testServer().superuser_url).withDatabase(async (url) => {
    await migrate(url);
    return await makeFixture(url, end_ms);
  });
  await upgrade(t, MIGRATIONS_DIR, fixture);
});

/** The queries of the views, as one server writes them. */
async function viewQueries(url: string): Promise<object[]> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    const views = await sql`select schemaname, viewname, definition from pg_views
      where schemaname in ('pay', 'pay_internal', 'pay_exposed') order by 1, 2`;
    assert.ok(views.length > 0);
    return [...views];
  } finally {
    await sql.end();
  }
}

async function upgrade(t: Deno.TestContext, folder: string, fixture: Fixture): Promise<void> {
  const [upgraded, made] = [await createEmptyDatabase(), await createEmptyDatabase()];
  try {
    await migrate(upgraded.url, undefined, folder);
    const sql = postgres(upgraded.url, { max: 1, onnotice: () => {} });
    await loadRows(sql, fixture.rows).finally(() => sql.end());
    await t.step("the schema equals that of a new database", async () => {
      await migrate(upgraded.url);
      await migrate(made.url);
      assert.deepEqual(await describeSchema(upgraded.url), await describeSchema(made.url));
      assert.deepEqual(await viewQueries(upgraded.url), await viewQueries(made.url));
    });
    await checkUpgraded(t, upgraded, fixture);
  } finally {
    await upgraded.drop();
    await made.drop();
  }
}
