/** Parses the arguments of `deno task test` and selects the test files, the slowest first. */

import { globSync } from "node:fs";
import { join, relative } from "node:path";
import { pureTests } from "./pure_tests.ts";

/** The parsed arguments of a run. */
export interface TestSelection {
  /** Paths relative to the project. */
  files: string[];
  /** Flags for `deno test`. */
  flags: string[];
  /** The arguments after `--`, for the tests. */
  script_args: string[];
  shows_times: boolean;
  is_pure: boolean;
  /** The files that only their paths, or `--night`, select. */
  left_out: readonly string[];
}

/** The arguments select no test. The message is for the user. */
export class NoTestFiles extends Error {}

/** Flags of `deno test` that take the next argument as their value. */
const FLAGS_WITH_VALUE = new Set([
  "--cert",
  "--conditions",
  "--config",
  "-c",
  "--ext",
  "--filter",
  "--import-map",
  "--junit-path",
  "--location",
  "--preload",
  "--reporter",
  "--seed",
]);
const IGNORE = "--ignore=";
const TIMES = "--times";
const PURE = "--pure";
const NIGHT = "--night";
const ALL_TESTS = "tests";
/**
 * The slowest files, as `--times` shows them, without those that share a browser (test_groups.ts). A
 * slow file that starts last runs alone at the end, so each is the first of its folder. Deno starts
 * folders with longer paths first.
 */
export const SLOWEST: readonly string[] = [
  "tests/package/package_test.ts",
  "tests/cells/move_test.ts",
  "tests/examples/shops_test.ts",
  "tests/supabase/push_test.ts",
  "tests/supabase/deploy_test.ts",
  "tests/openapi/generated_clients_test.ts",
  "tests/supabase/outage_test.ts",
  "tests/core/linear_time_test.ts",
  "tests/live/bank_results_test.ts",
  "tests/database/list_rows_test.ts",
  "tests/scripts/start_test.ts",
  "tests/documents/readme_test.ts",
  "tests/documents/docs_site_test.ts",
  "tests/model/model_test.ts",
  "tests/examples/supabase_orders_test.ts",
  "tests/http/seeded_run_test.ts",
  "tests/fuzz/openapi_fuzz_test.ts",
  "tests/end_to_end/client_package_test.ts",
  "tests/scripts/archive_test.ts",
  "tests/races/late_results_test.ts",
  "tests/races/moves_test.ts",
];

/**
 * The files that a run without paths leaves to `.ci/nightly`. They install packages, compile
 * programs in other languages, measure times or sizes, render hundreds of views, or wait for
 * minutes.
 */
const AT_NIGHT: readonly string[] = [
  "tests/cells/move_test.ts",
  "tests/cells/outage_test.ts",
  "tests/console/views_test.ts",
  "tests/core/linear_time_test.ts",
  "tests/database/list_rows_test.ts",
  "tests/end_to_end/client_package_test.ts",
  "tests/examples/shops_test.ts",
  "tests/examples/supabase_orders_test.ts",
  "tests/http/retention_test.ts",
  "tests/http/storage_test.ts",
  "tests/live/bank_load_test.ts",
  "tests/openapi/generated_clients_test.ts",
  "tests/package/package_test.ts",
  "tests/scripts/reference_site_test.ts",
  "tests/supabase/outage_test.ts",
  "tests/supabase/push_test.ts",
  "tests/webhook/retention_test.ts",
];

/**
 * Parses the arguments and finds the files. Without paths it leaves out those of AT_NIGHT.
 * @param root the folder that paths are relative to
 * @throws {NoTestFiles} if a path is unknown, or contains no test
 */
export async function selectTestFiles(
  args: readonly string[],
  root: string,
): Promise<TestSelection> {
  const end = args.includes("--") ? args.indexOf("--") : args.length;
  const flags: string[] = [];
  const paths: string[] = [];
  const ignored = new Set<string>();
  let shows_times = false;
  let is_pure = false;
  for (let i = 0; i < end; i++) {
    const arg = args[i]!;
    if (arg.startsWith(IGNORE)) {
      for (const path of arg.slice(IGNORE.length).split(",")) {
        for (const file of await filesOf(path, root)) ignored.add(file);
      }
    } else if (arg === TIMES) {
      shows_times = true;
    } else if (arg === PURE) {
      is_pure = true;
    } else if (arg === NIGHT) {
      paths.push(...AT_NIGHT);
    } else if (FLAGS_WITH_VALUE.has(arg)) {
      flags.push(...args.slice(i, Math.min(i + 2, end)));
      i++;
    } else if (arg.startsWith("-")) {
      flags.push(arg);
    } else {
      paths.push(arg);
    }
  }
  const found = new Set<string>();
  for (const path of paths.length > 0 ? paths : [ALL_TESTS]) {
    for (const file of await filesOf(path, root)) found.add(file);
  }
  const left_out = paths.length > 0 || is_pure ? [] : AT_NIGHT;
  const selected = [...found.difference(ignored)].filter((file) => !left_out.includes(file));
  const read = (path: string) => Deno.readTextFile(join(root, path)).catch(() => null);
  const files = (is_pure ? await pureTests(selected, read) : selected).sort((a, b) =>
    rank(a) - rank(b)
  );
  if (files.length === 0) throw new NoTestFiles("The arguments exclude every test file");
  return { files, flags, script_args: args.slice(end), shows_times, is_pure, left_out };
}

/** The index of a file in SLOWEST; other files come after these and keep their order. */
function rank(file: string): number {
  const place = SLOWEST.indexOf(file);
  return place === -1 ? SLOWEST.length : place;
}

/** Returns the file, the test files below the folder, or the files that match the pattern. */
async function filesOf(path: string, root: string): Promise<string[]> {
  const matches = /[*?[{]/.test(path) ? globSync(path, { cwd: root }) : [path];
  const found: string[] = [];
  for (const match of matches) {
    const full = join(root, match);
    const info = await Deno.stat(full).catch(() => null);
    if (info?.isFile) found.push(full);
    else if (info?.isDirectory) {
      const inside = globSync("**/*_test.{ts,tsx}", { cwd: full });
      found.push(...inside.map((name) => join(full, name)));
    } else throw new NoTestFiles(`No file or folder "${path}" in ${root}`);
  }
  if (found.length === 0) throw new NoTestFiles(`No test file (*_test.ts) in "${path}"`);
  return found.map((file) => relative(root, file)).sort();
}
