/**
 * runWithProgress(): the count of ended files in a pipe and on a terminal, the output of the tests,
 * and the times of the files, also of those that share a worker.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { shareWorkers } from "../../tools/testing/test_groups.ts";
import { ERASE_LINE, runWithProgress } from "../../tools/testing/test_progress.ts";

const COUNT = 21;

/** Runs `deno test` on files with these texts, one after another. */
async function run(
  texts: readonly string[],
  { is_terminal = false, shows_times = false, shares_workers = false, flags = [] }: {
    is_terminal?: boolean;
    shows_times?: boolean;
    shares_workers?: boolean;
    flags?: string[];
  } = {},
) {
  const folder = await Deno.makeTempDir({ prefix: "payments-test-" });
  try {
    const files = texts.map((_, i) => `file_${String(i).padStart(2, "0")}_test.ts`);
    for (const [i, text] of texts.entries()) {
      await Deno.writeTextFile(join(folder, files[i]!), text);
    }
    const workers = shares_workers ? await shareWorkers(files, folder, folder) : files;
    let text = "";
    const code = await runWithProgress(
      {
        args: ["-A", "--no-check", ...flags, ...workers],
        file_count: files.length,
        shows_times,
        cwd: folder,
        // With one job the output has another form.
        env: { NO_COLOR: "1", DENO_JOBS: "2" },
      },
      { is_terminal, write: (bytes) => text += new TextDecoder().decode(bytes) },
    );
    return { code, text };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const passing = (i: number) => `Deno.test("test ${i}", () => {});\n`;
const PASSING = Array.from({ length: COUNT }, (_, i) => passing(i));

Deno.test("runWithProgress() writes a line to a pipe after every ten files", async () => {
  const { code, text } = await run(PASSING);
  assert.equal(code, 0);
  const counts = [...text.matchAll(/^(\d+) of 21 files$/gm)].map(([, count]) => Number(count));
  // A file that ends while the output is read can merge two lines into one.
  assert.ok(counts.length === 1 || counts.length === 2, `${counts}`);
  assert.ok(counts.at(-1)! >= 20, `${counts}`);
  assert.match(text, /\nok \| 21 passed \| 0 failed /);
  assert.ok(!text.includes("\x1b"));
});

Deno.test("runWithProgress() rewrites one line on a terminal", async () => {
  const { code, text } = await run(PASSING.slice(0, 3), { is_terminal: true });
  assert.equal(code, 0);
  const [before, ...others] = text.split(ERASE_LINE);
  assert.ok(others.length > 0);
  const last = [before!, ...others.slice(0, -1)].map((part) => part.split("\n").at(-1)!);
  const counts = last.map((line) => Number(/^(\d) of 3 files$/.exec(line)?.[1]));
  assert.deepEqual(counts, counts.toSorted((a, b) => a - b));
  assert.equal(counts.at(-1), 3);
  const rest = text.replaceAll(new RegExp(`\\d of 3 files${RegExp.escape(ERASE_LINE)}`, "g"), "");
  assert.doesNotMatch(rest, /of 3 files/);
  assert.match(rest, /\nok \| 3 passed \| 0 failed \([^)]*\)\n\n$/);
});

Deno.test("runWithProgress() forwards failures, flags and the exit code", async () => {
  const failing = 'Deno.test("bad", () => { console.log("told"); throw new Error("why"); });\n';
  const { code, text } = await run([passing(1), failing], { flags: ["--parallel"] });
  assert.equal(code, 1);
  assert.match(text, /told/);
  assert.match(text, /file_01_test\.ts => bad \.\.\. FAILED/);
  assert.match(text, /error: Error: why/);
  assert.match(text, /FAILED \| 1 passed \| 1 failed/);
  assert.doesNotMatch(text, /of 2 files/);
  const filtered = await run([passing(1), failing], { flags: ["--filter", "test"] });
  assert.equal(filtered.code, 0);
  assert.match(filtered.text, /ok \| 1 passed \| 0 failed \| 1 filtered out/);
});

Deno.test("runWithProgress() prints the time of each file, the slowest first", async () => {
  const slow = 'Deno.test("slow", () => new Promise((resolve) => setTimeout(resolve, 200)));\n';
  const { text } = await run([passing(0), slow, passing(2)], { shows_times: true });
  const table = [...text.matchAll(/^ +([\d.]+) s {2}(\S+)$/gm)];
  const files = table.map(([, , file]) => file);
  assert.equal(files[0], "file_01_test.ts");
  assert.deepEqual(files.toSorted(), ["file_00_test.ts", "file_01_test.ts", "file_02_test.ts"]);
  const seconds = table.map(([, seconds]) => Number(seconds));
  assert.ok(seconds[0]! >= 0.2, `${seconds}`);
  assert.deepEqual(seconds, seconds.toSorted((a, b) => b - a));
});

Deno.test("files that share a worker look as if each had its own", async () => {
  const failing = `Deno.test({ name: "bad", fn: () => { throw new Error("why"); } });
Deno.test({ name: "left out", ignore: true, fn: () => {} });
Deno.test("options", { ignore: true }, () => {});
Deno.test("steps", async (t) => void await t.step("one", () => {}));\n`;
  const texts = PASSING.with(3, failing);
  const { code, text } = await run(texts, {
    shares_workers: true,
    shows_times: true,
    flags: ["--parallel"],
  });
  assert.equal(code, 1);
  assert.match(text, /^\.\/file_02_test\.ts => test 2 \.\.\. ok/m);
  assert.match(text, /^\.\/file_03_test\.ts => bad \.\.\. FAILED/m);
  assert.match(text, /^\.\/file_03_test\.ts => left out \.\.\. ignored/m);
  assert.match(text, /^\.\/file_03_test\.ts => options \.\.\. ignored/m);
  assert.match(text, /^\.\/file_03_test\.ts => steps \.\.\. one \.\.\. ok/m);
  assert.match(text, /error: Error: why\n[^]*? at .*file_03_test\.ts:1:\d+/);
  assert.match(text, /FAILED \| 21 passed \(1 step\) \| 1 failed \| 2 ignored/);
  assert.doesNotMatch(text, /^\S*group_\d+_test\.ts => \.\/file/m);
  const files = [...text.matchAll(/^ +[\d.]+ s {2}(\S+)$/gm)].map(([, file]) => file);
  assert.equal(new Set(files).size, COUNT);
});
