/** Notes the test files that have ended: each file adds one line to a file of the run. */

import { relative } from "node:path";
import { fileURLToPath } from "node:url";

/** The variable with the path of the file; `deno task test` sets it. */
export const FILES_DONE = "TEST_FILES_DONE";

/** A test file that has ended. */
export interface DoneFile {
  /** Path relative to the folder of the run. */
  file: string;
  /** Time from the start of its worker, which loads the modules, to its end. */
  seconds: number;
}

/** Notes this test file when its worker ends. */
export function noteAtEnd(): void {
  const path = Deno.env.get(FILES_DONE);
  if (path === undefined) return;
  const started = performance.now();
  addEventListener("unload", () => {
    const seconds = (performance.now() - started) / 1_000;
    const line = JSON.stringify({ file: Deno.mainModule, seconds } satisfies DoneFile);
    Deno.writeTextFileSync(path, `${line}\n`, { append: true });
  });
}

/** Returns the test files that have ended, in the order of their ends. */
export function filesDone(path: string, cwd: string): DoneFile[] {
  const lines = Deno.readTextFileSync(path).split("\n").filter((line) => line !== "");
  return lines.map((line): DoneFile => {
    const { file, seconds } = JSON.parse(line);
    return { file: relative(cwd, fileURLToPath(file)), seconds };
  });
}
