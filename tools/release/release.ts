/**
 * `deno task release VERSION` prepares a release: it writes the hashes of the new migrations to
 * supabase/releases.json. Commit the file. The command fails if the schema, the versions or the
 * changelog do not agree. It starts a PostgreSQL server, or uses the one of TEST_DATABASE_URL,
 * whose user must be a superuser.
 *
 * `deno task release --check [VERSION]` makes all files of the release, and checks everything but
 * the upload. The workflow of a tag gives the version, whose release must be prepared.
 */

import { withScratchServer } from "../testing/scratch_server.ts";
import {
  findOrderProblems,
  findUnreleased,
  hashMigrations,
  readReleases,
  RELEASES_FILE,
} from "../schema/releases.ts";
import { checkSchema } from "../schema/schema.ts";
import { checkRelease } from "./check_release.ts";
import { findVersionProblems } from "./version.ts";

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  const is_check = args[0] === "--check";
  const [version, ...more] = is_check ? args.slice(1) : args;
  const is_version = version !== undefined && /^\d+\.\d+\.\d+$/.test(version);
  if (more.length > 0 || !(is_version || (is_check && version === undefined))) {
    console.error("Usage: deno task release VERSION | --check [VERSION], for example 1.0.0");
    return 2;
  }
  try {
    if (is_check) await checkRelease(version ?? null);
    else await prepareRelease(version!);
    return 0;
  } catch (error) {
    // The message of an error of this program says all; another error needs its stack.
    console.error((error as Error).constructor === Error ? (error as Error).message : error);
    return 1;
  }
}

/** Writes the record of a release. Throws the reasons against it. */
async function prepareRelease(version: string): Promise<void> {
  await withScratchServer(async (server_url) => {
    const problems = await findProblems(server_url, version);
    if (problems.length > 0) {
      throw new Error([...problems, `${version} was not released`].join("\n\n"));
    }
    const releases = await readReleases();
    const hashes = findUnreleased(releases, await hashMigrations());
    const text = JSON.stringify({ ...releases, [version]: hashes }, null, 2);
    await Deno.writeTextFile(RELEASES_FILE, `${text}\n`);
    console.log(`Written: ${RELEASES_FILE}`);
    console.log(`New migrations in ${version}: ${Object.keys(hashes).length}`);
  });
}

async function findProblems(server_url: string, version: string): Promise<string[]> {
  return [
    ...await findVersionProblems(version),
    ...findOrderProblems(await readReleases(), version),
    ...await checkSchema(server_url),
  ];
}
