/** Runs test files in a copy of the project, and tells which file fails first. */

import { dirname, join } from "node:path";
import { git } from "./faults.ts";

/** The result of a run of test files. */
export interface Verdict {
  /** Whether all tests passed. */
  passed: boolean;
  /** The test file that failed first; null if none did, or if the run failed without a test. */
  failed_file: string | null;
  /** The end of the output, for a run that failed without a test. */
  output: string;
}

/** A run of test files. */
export interface TestRun {
  /** The root of a copy of the project. */
  copy: string;
  files: readonly string[];
  /** Whether the files need a database: `deno task test` makes it. */
  needs_database: boolean;
  env?: Record<string, string>;
  /** Modules that Deno loads before each file. */
  preload?: string;
  timeout_ms: number;
}

/** Copies the files that git lists into a folder of its own. */
export async function copyProject(root: string): Promise<string> {
  const copy = await Deno.makeTempDir({ prefix: "payments-mutants-" });
  await Deno.chmod(copy, 0o755);
  const listed = await git(root, ["ls-files", "--cached", "--others", "--exclude-standard"]);
  for (const file of listed.split("\n")) {
    if (file === "" || !await Deno.stat(join(root, file)).catch(() => null)) continue;
    await Deno.mkdir(dirname(join(copy, file)), { recursive: true });
    await Deno.copyFile(join(root, file), join(copy, file));
  }
  return copy;
}

/** Runs the files one after the other up to the first failure. A timeout is a failure. */
export async function runTests(run: TestRun): Promise<Verdict> {
  const flags = ["--fail-fast", ...run.preload ? [`--preload=${run.preload}`] : []];
  const command = run.needs_database
    ? ["run", "-A", "tools/testing/test.ts"]
    : ["test", "-A", "--no-check"];
  const child = new Deno.Command(Deno.execPath(), {
    args: [...command, ...flags, ...run.files],
    cwd: run.copy,
    env: { NO_COLOR: "1", SEED: "1", DENO_JOBS: "1", ...run.env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let timed_out = false;
  const timer = setTimeout(() => {
    timed_out = true;
    child.kill("SIGTERM");
  }, run.timeout_ms);
  const { success, stdout, stderr } = await child.output();
  clearTimeout(timer);
  const output = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  return {
    passed: success && !timed_out,
    failed_file: success ? null : failedFile(output, run.files, timed_out),
    output: output.slice(-2_000),
  };
}

/** `deno test` names the place of each failed test after ERRORS, and a file that does not load. */
function failedFile(output: string, files: readonly string[], timed_out: boolean): string | null {
  const failures = output.slice(Math.max(0, output.search(/^ ERRORS $/m)));
  const named = files.find((file) =>
    failures.includes(`./${file}`) || failures.includes(`/${file}`)
  );
  return named ?? (timed_out || /^FAILED \| /m.test(output) ? files[0]! : null);
}
