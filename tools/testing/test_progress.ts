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
const NEWLINE = 0x0a;
/** Moves the cursor to the start of the line and erases the line. */
const ERASE_LINE = "\r\x1b[K";

/** A run of `deno test`. */
interface TestRun {
  /** Arguments of `deno test`. */
  args: readonly string[];
  /** Number of files that the arguments name. */
  file_count: number;
  /** Whether to print the time of each file at the end. */
  shows_times?: boolean;
  cwd: string;
  env: Record<string, string>;
  /** Called with the process when it has started, to forward signals. */
  on_start?: (child: Deno.ChildProcess) => void;
}

/** Destination of the output. */
interface TestOutput {
  is_terminal: boolean;
  write(bytes: Uint8Array): void;
}

/** Runs the tests to the end and returns the exit code. */
export async function runWithProgress(run: TestRun, output: TestOutput): Promise<number> {
  const done_file = await Deno.makeTempFile({ prefix: "payments-test-" });
  const child = new Deno.Command(Deno.execPath(), {
    args: ["test", `--preload=${PRELOADED}`, ...run.args],
    cwd: run.cwd,
    env: { ...run.env, [FILES_DONE]: done_file },
    stdin: "null",
    stdout: "piped",
  }).spawn();
  try {
    run.on_start?.(child);
    const done = () => filesDone(done_file, run.cwd);
    const nextLine = progressLines(() => done().length, run.file_count, output.is_terminal);
    await passOn(child.stdout, output, nextLine);
    const { code } = await child.status;
    if (run.shows_times) output.write(new TextEncoder().encode(tableOf(done())));
    return code;
  } finally {
    await Deno.remove(done_file);
  }
}

/** Returns the text to write after complete lines; a terminal erases it before the next line. */
function progressLines(
  done: () => number,
  file_count: number,
  is_terminal: boolean,
): () => string {
  let steps_shown = 0;
  return () => {
    const count = done();
    if (is_terminal) return file_count > 1 ? `${count} of ${file_count} files` : "";
    const steps = Math.floor(count / STEP);
    if (steps === steps_shown) return "";
    steps_shown = steps;
    return `${count} of ${file_count} files\n`;
  };
}

/** The seconds of each file, the slowest first. */
function tableOf(files: readonly DoneFile[]): string {
  return files.toSorted((a, b) => b.seconds - a.seconds)
    .map(({ file, seconds }) => `${seconds.toFixed(1).padStart(7)} s  ${file}\n`).join("");
}

async function passOn(
  stream: ReadableStream<Uint8Array>,
  output: TestOutput,
  nextLine: () => string,
): Promise<void> {
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  let is_shown = false;
  const erase = () => {
    if (is_shown && output.is_terminal) output.write(encoder.encode(ERASE_LINE));
    is_shown = false;
  };
  for await (const bytes of stream) {
    erase();
    const text = decoder.decode(bytes, { stream: true });
    output.write(encoder.encode(withoutGroups(text)));
    if (bytes.at(-1) !== NEWLINE) continue;
    const line = nextLine();
    if (line !== "") output.write(encoder.encode(line));
    is_shown = line !== "";
  }
  erase();
}
