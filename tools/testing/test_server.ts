/** The PostgreSQL server of test files, with the database that each copies. */

import type { TestServer } from "../../tests/support/database/database.ts";
import { randomPassword } from "../../apps/server/data_dir/private_file.ts";
import { migrate } from "../../apps/server/migrations/migrate.ts";
import { openConnection } from "../../apps/server/postgres/connection.ts";
import { grantFunctionsRole } from "../../apps/server/postgres/functions_role.ts";
import { writeFunctions } from "../schema/schema_files.ts";
import { databaseUrl, withServer } from "./scratch_server.ts";

/** Space in memory for the files of a run: three times what one has needed. */
const MEMORY_BYTES = 4 * 1024 ** 3;

/**
 * Runs `work` with a server for tests and the folder of its files. Removes the databases and the
 * folder afterwards, also after Ctrl-C.
 */
export async function withTestServer<T>(
  work: (server: TestServer, folder: string) => Promise<T>,
): Promise<T> {
  // Also the temporary files of the tests: making and deleting thousands of files on a disk costs
  // more of the processor than the tests that use them.
  return await withServer("payments-test-", MEMORY_BYTES, async (server, folder) => {
    const run = crypto.randomUUID().slice(0, 8);
    try {
      return await work(await createTemplate({ ...server, folder }, run), folder);
    } finally {
      if (Deno.env.get("TEST_DATABASE_URL")) await dropRun(server.superuser_url, run);
    }
  });
}

async function dropRun(superuser_url: string, run: string): Promise<void> {
  await using sql = openConnection(superuser_url);
  const databases = await sql<{ datname: string }[]>`
    select datname from pg_database where starts_with(datname, ${`pay_test_${run}_`})`;
  for (const { datname } of databases) await sql`drop database ${sql(datname)} with (force)`;
  await sql`drop role if exists ${sql(`pay_functions_${run}`)}`;
}

/** Creates the database that test files copy, and the role that the functions log in as. */
export async function createTemplate(
  { superuser_url, programs_home, folder }: Pick<
    TestServer,
    "superuser_url" | "programs_home" | "folder"
  >,
  run: string,
): Promise<TestServer> {
  const template = `pay_test_${run}_template`;
  await using sql = openConnection(superuser_url);
  await sql`create database ${sql(template)}`;
  // So that tests see a change of supabase/schemas.
  const written = await writeFunctions();
  if (written !== null) console.log(`Written: ${written}`);
  await migrate(databaseUrl(superuser_url, template));
  const functions_role = { name: `pay_functions_${run}`, password: randomPassword() };
  await grantFunctionsRole(sql, functions_role);
  const clone_prefix = `pay_test_${run}_`;
  return {
    ...{ superuser_url, programs_home, folder, template, functions_role, clone_prefix },
    pooler_port: null,
  };
}
