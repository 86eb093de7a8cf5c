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
 * Without paths it leaves the files of AT_NIGHT (test_files.ts) to `.ci/nightly`, which runs them
 * by `--night`. `--pure` leaves out those that need more than their own process, and starts no
 * server. `--times` prints the time of each file at the end. `--live-card` runs the tests at Stripe
 * itself (live_card.ts).
 *
 * Test files get their databases from tests/support/database/database.ts as copies of a migrated
 * template.
 */

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { TestServer } from "../../tests/support/database/database.ts";
import { UNTESTED_FILE } from "../../tests/support/service/needs_internals.ts";
import { startPgbouncer } from "../../tests/support/supabase/pgbouncer.ts";
import { LiveCardRefused, readLiveCardRun } from "./live_card.ts";
import { NoTestFiles, selectTestFiles, type TestSelection } from "./test_files.ts";
import { shareWorkers } from "./test_groups.ts";
import { runWithProgress } from "./test_progress.ts";
import { withTestServer } from "./test_server.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
if (import.meta.main) Deno.exit(await main(Deno.args));

/** Runs the tests that the arguments select. Prints an error if they select none. */
async function main(args: readonly string[]): Promise<number> {
  try {
    const live_card = readLiveCardRun(args, (name) => Deno.env.get(name));
    const selection = await selectTestFiles(live_card?.args ?? args, ROOT);
    const code = await runTests(selection, live_card?.env ?? {});
    const { left_out } = selection;
    if (left_out.length > 0) console.log(`Left to --night: ${left_out.join(", ")}`);
    return code;
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
  if (selection.is_pure) return await denoTest(selection, null, env);
  fetchPackages();
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
    const code = await denoTest(selection, server, { ...env, [UNTESTED_FILE]: untested });
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
  server: TestServer | null,
  env: Record<string, string>,
): Promise<number> {
  // Flags, such as a filter, are about files and tests as they are.
  const workers = flags.length > 0 || server === null
    ? files
    : await shareWorkers(files, env.TMPDIR!, ROOT);
  return await runWithProgress({
    args: ["-A", "--no-check", "--parallel", ...flags, ...workers, ...script_args],
    file_count: files.length,
    shows_times,
    cwd: ROOT,
    env: { TEST_SERVER: server ? JSON.stringify(server) : "", ...env },
  });
}

/**
 * Fetches every package of the project, so that the output and the time of programs that tests
 * start do not depend on the cache. Throws with the standard error of Deno.
 */
function fetchPackages(): void {
  const args = ["install", "--frozen", "--quiet"];
  const { status, stderr } = spawnSync(Deno.execPath(), args, { cwd: ROOT, encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
}
