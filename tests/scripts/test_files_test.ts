/** `deno task test`: the test files that its arguments select, and refused arguments. */

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { NoTestFiles, selectTestFiles, SLOWEST } from "../../tools/testing/test_files.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FILES = [
  "tests/a_test.ts",
  "tests/b/c_test.tsx",
  "tests/b/c_case.ts",
  "tests/b/d_test.ts",
  "tests/none/case.ts",
  SLOWEST[1]!,
  SLOWEST[0]!,
];

/** Creates a project of empty files. */
async function withProject(work: (root: string) => Promise<void>): Promise<void> {
  const root = await Deno.makeTempDir({ prefix: "payments-test-" });
  try {
    for (const file of FILES) {
      await Deno.mkdir(join(root, dirname(file)), { recursive: true });
      await Deno.writeTextFile(join(root, file), "");
    }
    await work(root);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

const B = ["tests/b/c_test.tsx", "tests/b/d_test.ts"];
const ALL = [...SLOWEST.slice(0, 2), "tests/a_test.ts", ...B];

/** [arguments, files, flags, arguments of the tests, whether the times are printed] */
const SELECTIONS: [string[], string[], string[], string[], boolean?][] = [
  [[], ALL, [], []],
  [["tests"], ALL, [], []],
  [["tests/b"], B, [], []],
  [["./tests/b/"], B, [], []],
  [["tests/b/d_test.ts", "tests/b"], [B[1]!, B[0]!], [], []],
  [["tests/none/case.ts"], ["tests/none/case.ts"], [], []],
  [["tests/*_test.ts"], ["tests/a_test.ts"], [], []],
  [["--no-check", "tests/b"], B, ["--no-check"], []],
  [["--filter", "tests/a", "tests/b"], B, ["--filter", "tests/a"], []],
  [["--filter=x", "tests/b"], B, ["--filter=x"], []],
  [[`--ignore=tests/b,${dirname(SLOWEST[0]!)}`, "tests"], [SLOWEST[1]!, "tests/a_test.ts"], [], []],
  [["tests/b", "--", "--seed", "x"], B, [], ["--", "--seed", "x"]],
  [["--times", "tests/b"], B, [], [], true],
  [["tests/b", "--", "--times"], B, [], ["--", "--times"]],
];

Deno.test("selectTestFiles() finds the files and leaves the flags", async (t) => {
  await withProject(async (root) => {
    for (const [args, files, flags, script_args, shows_times = false] of SELECTIONS) {
      await t.step(args.join(" ") || "no argument", async () => {
        assert.deepEqual(
          await selectTestFiles(args, root),
          { files, flags, script_args, shows_times },
        );
      });
    }
  });
});

/** [arguments, message] */
const REFUSALS: [string[], RegExp][] = [
  [["tests/b/x_test.ts"], /^No file or folder "tests\/b\/x_test\.ts" in /],
  [["refunds"], /^No file or folder "refunds" in /],
  [["tests/a_test.ts", "--ignore=tests/x"], /^No file or folder "tests\/x" in /],
  [["tests/none"], /^No test file \(\*_test\.ts\) in "tests\/none"$/],
  [["tests/x*_test.ts"], /^No test file \(\*_test\.ts\) in "tests\/x\*_test\.ts"$/],
  [["tests/b", "--ignore=tests/b"], /^The arguments exclude every test file$/],
];

Deno.test("selectTestFiles() refuses a path without tests", async (t) => {
  await withProject(async (root) => {
    for (const [args, message] of REFUSALS) {
      await t.step(args.join(" "), async () => {
        await assert.rejects(selectTestFiles(args, root), (error) => {
          assert.ok(error instanceof NoTestFiles);
          assert.match(error.message, message);
          return true;
        });
      });
    }
  });
});

Deno.test("selectTestFiles() puts the slowest files of this project first", async () => {
  const { files } = await selectTestFiles([], ROOT);
  assert.deepEqual(files.slice(0, SLOWEST.length), SLOWEST);
});

Deno.test("deno task test names an unknown path and starts no server", async () => {
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "tools/testing/test.ts", "tests/unknown_test.ts"],
    cwd: ROOT,
    // This port has no listener.
    env: { TEST_DATABASE_URL: "postgres://x@127.0.0.1:1/x" },
    stdin: "null",
  }).output();
  const said = new TextDecoder().decode(stderr);
  assert.match(said, /^No file or folder "tests\/unknown_test\.ts" in .*\n$/);
  assert.equal(code, 1);
});
