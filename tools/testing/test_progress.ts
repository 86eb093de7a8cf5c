/**
 * Runs `deno test` and prints how many files have ended: on a terminal it rewrites the last line,
 * elsewhere it prints a line after every ten files. Of the output of `deno test` it leaves out only
 * the names of shared workers. At the end it can print the time of each file.
 */

import { fileURLToPath } from "node:url";
import { type DoneFile, FILES_DONE, filesDone } from "../../tests/support/testing/files_done.ts";
import { withoutGroups } from "./test_groups.ts";

const PRELOADED = fileURLToPath(
  new URL("../../tests/support/testing/before_file.ts", import.meta.url),
);
/** Number of files between two progress lines if the output is not a terminal. */
const STEP = 10;
/** Moves the cursor to the start of the line and erases the line. */
const ERASE_LINE = "\r\x1b[K";

/** A run of `deno test`. */
interface TestRun {
  /** Arguments of `deno test`. */
  args: readonly string[];
  file_count: number;
  /** Whether to print the time of each file at the end. */
  shows_times: boolean;
  cwd: string;
  env: Record<string, string>;
}

/** Runs the tests to the end and returns the exit code. */
export async function runWithProgress(run: TestRun): Promise<number> {
  const { args, file_count, shows_times, cwd, env } = run;
  const done_file = await Deno.makeTempFile({ prefix: "payments-test-" });
  const child = new Deno.Command(Deno.execPath(), {
    args: ["test", `--preload=${PRELOADED}`, ...args],
    cwd,
    env: { ...env, [FILES_DONE]: done_file },
    stdin: "null",
    stdout: "piped",
  }).spawn();
  try {
    // Ctrl-C also reaches the child. This process ignores it and cleans up after the child.
    Deno.addSignalListener("SIGINT", () => {});
    if (Deno.build.os !== "windows") {
      Deno.addSignalListener("SIGTERM", () => child.kill("SIGTERM"));
    }
    await passOn(child.stdout, () => filesDone(done_file, cwd).length, file_count);
    const { code } = await child.status;
    if (shows_times) write(tableOf(filesDone(done_file, cwd)));
    return code;
  } finally {
    await Deno.remove(done_file);
  }
}

function tableOf(files: readonly DoneFile[]): string {
  return files.toSorted((a, b) => b.seconds - a.seconds)
    .map(({ file, seconds }) => `${seconds.toFixed(1).padStart(7)} s  ${file}\n`).join("");
}

/** Prints a stream. After complete lines it prints how many files are done. */
async function passOn(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  countDone: () => number,
  file_count: number,
): Promise<void> {
  const is_terminal = Deno.stdout.isTerminal();
  let [shown, steps] = ["", 0];
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    write((shown && ERASE_LINE) + withoutGroups(text));
    shown = "";
    if (file_count === 1 || !text.endsWith("\n")) continue;
    const count = countDone();
    const line = `${count} of ${file_count} files`;
    if (is_terminal) write(shown = line);
    else if (steps < Math.floor(count / STEP)) write(`${line}\n`);
    steps = Math.floor(count / STEP);
  }
  write(shown && ERASE_LINE);
}

/** Writes a text whole. `writeSync` can write fewer bytes than it gets. */
function write(text: string): void {
  let rest = new TextEncoder().encode(text);
  while (rest.length > 0) rest = rest.subarray(Deno.stdout.writeSync(rest));
}
