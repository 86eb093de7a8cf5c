/**
 * `deno task release VERSION` assigns the new migrations to a release: it writes their hashes to
 * supabase/releases.json, and a database of the release to tests/upgrade for the upgrade test.
 * Commit both. It fails if the schema, the versions or the changelog do not agree.
 *
 * It starts a PostgreSQL server, or uses the one of TEST_DATABASE_URL, whose user must be a
 * superuser.
 */

import { makeFixture, writeFixture } from "../../tests/support/upgrade/fixture.ts";
import { migrate, MIGRATIONS_DIR } from "./migrate.ts";
import { readMigrationFolder } from "./migration_folder.ts";
import { findOrderProblems, hashUnreleased, readReleases, RELEASES_FILE } from "./releases.ts";
import { checkSchema } from "./schema_dump.ts";
import { type ScratchServer, withScratchServer } from "../postgres/scratch_database.ts";
import { findVersionProblems } from "./version.ts";

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  const [version, ...more] = args;
  if (version === undefined || more.length > 0 || !/^\d+\.\d+\.\d+$/.test(version)) {
    console.error("Usage: deno task release VERSION, for example 1.0.0");
    return 2;
  }
  return await withScratchServer(async (server) => {
    const problems = await findProblems(server, version);
    if (problems.length > 0) {
      console.error([...problems, `${version} was not released`].join("\n\n"));
      return 1;
    }
    const releases = await readReleases();
    const hashes = await hashUnreleased(releases, await readMigrationFolder(MIGRATIONS_DIR));
    const fixture = await server.withDatabase(async (url) => {
      await migrate(url);
      return await makeFixture(url);
    });
    const text = JSON.stringify({ ...releases, [version]: hashes }, null, 2);
    for (const path of await writeFixture(version, fixture)) console.log(`Written: ${path}`);
    await Deno.writeTextFile(RELEASES_FILE, `${text}\n`);
    console.log(`Written: ${RELEASES_FILE}`);
    console.log(`New migrations in ${version}: ${Object.keys(hashes).length}`);
    return 0;
  });
}

async function findProblems(server: ScratchServer, version: string): Promise<string[]> {
  return [
    ...await findVersionProblems(version),
    ...findOrderProblems(await readReleases(), version),
    ...await checkSchema(server),
  ];
}
