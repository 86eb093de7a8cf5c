/**
 * `deno task test`: runs all tests, or the given files and folders with the given flags, on a
 * PostgreSQL server that it creates for this run. TEST_DATABASE_URL names another server instead;
 * its user must be allowed to create databases and roles. Exits with the code of `deno test`.
 * `deno task ok` checks the types.
 *
 * For the tests that call the functions over HTTP, TEST_FUNCTIONS=cells runs the functions in two
 * cells behind HAProxy, on Deno 2.1.4. `cells-pooled` also puts pgbouncer before the databases.
 * Tests that need internals of the functions cannot run then, and are named at the end.
 *
 * `--times` prints the time of each file at the end. `--live-card` runs the tests at Stripe itself
 * (live_card.ts).
 *
 * Test files get their databases from tests/support/database/database.ts as copies of a migrated
 * template.
 */

import postgres from "postgres";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestServer } from "../../tests/support/database/database.ts";
import { EDGE_DENO, edgeDeno } from "../../tests/support/supabase/edge_deno.ts";
import { UNTESTED_FILE } from "../../tests/support/service/needs_internals.ts";
import { startPgbouncer } from "../../tests/support/supabase/pgbouncer.ts";
import { makeMemoryFolder } from "../../apps/server/data_dir/memory_dir.ts";
import { startPostgres } from "../../apps/server/postgres/embedded_postgres.ts";
import { grantFunctionsRole } from "../../apps/server/postgres/functions_role.ts";
import { migrate } from "../../apps/server/migrations/migrate.ts";
import { applySchemaFiles } from "../schema/schema_files.ts";
import { randomPassword } from "../../apps/server/data_dir/private_file.ts";
import { LiveCardRefused, readLiveCardRun } from "./live_card.ts";
import { NoTestFiles, selectTestFiles, type TestSelection } from "./test_files.ts";
import { shareWorkers } from "./test_groups.ts";
import { runWithProgress } from "./test_progress.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Space in memory for the files of a run: three times what one has needed. */
const MEMORY_BYTES = 4 * 1024 ** 3;
/** Test files run in parallel, and each opens several connections. */
const MAX_CONNECTIONS = "300";

/** The PostgreSQL server of a run. */
interface RunServer {
  superuser_url: string;
  programs_home: string;
  /** Stops the server if this run has started it. */
  close(): Promise<void>;
}

if (import.meta.main) Deno.exit(await main(Deno.args));

/** Runs the tests that the arguments select. Prints an error if they select none. */
async function main(args: readonly string[]): Promise<number> {
  try {
    const live_card = readLiveCardRun(args, (name) => Deno.env.get(name));
    const selection = await selectTestFiles(live_card?.args ?? args, ROOT);
    return await runTests(selection, live_card?.env ?? {});
  } catch (error) {
    if (!(error instanceof NoTestFiles || error instanceof LiveCardRefused)) throw error;
    console.error(error.message);
    return 1;
  }
}

/** Runs `deno test` with this selection. */
async function runTests(
  selection: TestSelection,
  env: Record<string, string>,
): Promise<number> {
  await fetchPackages();
  const functions_mode = Deno.env.get("TEST_FUNCTIONS");
  return await withTestServer(async (server, folder) => {
    const pooler = functions_mode === "cells-pooled"
      ? await startPgbouncer(
        Number(new URL(server.superuser_url).port),
        server.functions_role,
      )
      : null;
    try {
      const runSelected = functions_mode ? runWithProcesses : denoTest;
      const test_server = { ...server, pooler_port: pooler?.port ?? null };
      return await runSelected(selection, test_server, { TMPDIR: folder, ...env });
    } finally {
      await pooler?.close();
    }
  });
}

/**
 * Runs `work` with a server for tests and the folder of its files. Removes the databases and the
 * folder afterwards, also after Ctrl-C.
 */
export async function withTestServer<T>(
  work: (server: TestServer, folder: string) => Promise<T>,
): Promise<T> {
  const external_url = Deno.env.get("TEST_DATABASE_URL");
  // Also the temporary files of the tests: making and deleting thousands of files on a disk costs
  // more of the processor than the tests that use them.
  const folder = await makeMemoryFolder("payments-test-", MEMORY_BYTES);
  const server = external_url ? externalServer(external_url, folder) : await startServer(folder);
  const run = crypto.randomUUID().slice(0, 8);
  try {
    const template = await createTemplate(server.superuser_url, run);
    const { programs_home } = server;
    return await work({ ...template, programs_home, pooler_port: null }, folder);
  } finally {
    if (external_url) await dropRun(server.superuser_url, run);
    await server.close();
    await Deno.remove(folder, { recursive: true });
  }
}

async function startServer(folder: string): Promise<RunServer> {
  const server = await startPostgres({
    data_dir: join(folder, "data"),
    durable: false,
    settings: { max_connections: MAX_CONNECTIONS },
  });
  return {
    superuser_url: server.superuser_url,
    programs_home: server.programs_home,
    close: async () => {
      await server.stop();
      // For root it is elsewhere if the account of PostgreSQL cannot enter the folder.
      await Deno.remove(server.home, { recursive: true });
    },
  };
}

function externalServer(superuser_url: string, folder: string): RunServer {
  return { superuser_url, programs_home: folder, close: () => Promise.resolve() };
}

/** Creates the database that test files copy, and the role that the functions log in as. */
async function createTemplate(
  superuser_url: string,
  run: string,
): Promise<Omit<TestServer, "programs_home" | "pooler_port">> {
  const template = `pay_test_${run}_template`;
  const sql = postgres(superuser_url, { max: 1, onnotice: () => {} });
  try {
    await sql`create database ${sql(template)}`;
    const url = new URL(superuser_url);
    url.pathname = `/${template}`;
    await migrate(url.href);
    // So tests see a change of a function in supabase/schemas before a migration has it.
    await applySchemaFiles(url.href);
    const functions_role = { name: `pay_functions_${run}`, password: randomPassword() };
    await grantFunctionsRole(sql, functions_role);
    return { superuser_url, template, functions_role, clone_prefix: `pay_test_${run}_` };
  } finally {
    await sql.end();
  }
}

/** Drops the databases and the role of this run from the server of TEST_DATABASE_URL. */
async function dropRun(superuser_url: string, run: string): Promise<void> {
  const sql = postgres(superuser_url, { max: 1, onnotice: () => {} });
  try {
    const databases = await sql<{ datname: string }[]>`
      select datname from pg_database where starts_with(datname, ${`pay_test_${run}_`})`;
    for (const { datname } of databases) await sql`drop database ${sql(datname)} with (force)`;
    await sql`drop role if exists ${sql(`pay_functions_${run}`)}`;
  } finally {
    await sql.end();
  }
}

/**
 * Runs the tests with the functions in processes of their own. Prints the names of the tests and
 * steps that had no result, because they need internals of the functions.
 */
async function runWithProcesses(
  selection: TestSelection,
  server: TestServer,
  env: Record<string, string>,
): Promise<number> {
  const untested = await Deno.makeTempFile();
  try {
    const { path } = await edgeDeno();
    const code = await denoTest(selection, server, {
      ...env,
      [UNTESTED_FILE]: untested,
      [EDGE_DENO]: path,
    });
    const names = (await Deno.readTextFile(untested)).split("\n").filter((name) => name !== "")
      .sort();
    console.log(
      "Not tested, because they need internals of the functions: " +
        `${names.length} tests and steps`,
    );
    for (const name of names) console.log(`  ${name}`);
    return code;
  } finally {
    await Deno.remove(untested);
  }
}

async function denoTest(
  { files, flags, script_args, shows_times }: TestSelection,
  server: TestServer,
  env: Record<string, string>,
): Promise<number> {
  // Flags, such as a filter, are about files and tests as they are.
  const workers = flags.length > 0 ? files : await shareWorkers(files, env.TMPDIR!, ROOT);
  return await runWithProgress({
    args: ["-A", "--no-check", "--parallel", ...flags, ...workers, ...script_args],
    file_count: files.length,
    shows_times,
    cwd: ROOT,
    env: { TEST_SERVER: JSON.stringify(server), ...env },
    on_start(child) {
      // Ctrl-C also reaches the child. This process ignores it and cleans up after the child.
      Deno.addSignalListener("SIGINT", () => {});
      if (Deno.build.os === "windows") return;
      Deno.addSignalListener("SIGTERM", () => child.kill("SIGTERM"));
    },
  }, {
    is_terminal: Deno.stdout.isTerminal(),
    write: writeOut,
  });
}

/** Writes all bytes to standard output. `writeSync` can write fewer than it gets. */
function writeOut(bytes: Uint8Array): void {
  for (let rest = bytes; rest.length > 0;) rest = rest.subarray(Deno.stdout.writeSync(rest));
}

/**
 * Fetches every package of the project, so that the output and the time of programs that tests
 * start do not depend on the cache.
 * @throws {Error} with the standard error of Deno
 */
async function fetchPackages(): Promise<void> {
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["install", "--frozen", "--quiet"],
    cwd: ROOT,
    stdin: "null",
  }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
}
