/** Notes the test files that have ended: each file adds one line to a file of the run. */

import { relative } from "node:path";
import { fileURLToPath } from "node:url";

/** The variable with the path of the file; `deno task test` sets it. */
export const FILES_DONE = "TEST_FILES_DONE";

/** A test file that has ended. */
export interface DoneFile {
  /** Path relative to the folder of the run. */
  file: string;
  /**
   * Time from the start of its worker, which loads the modules, to its end. With a shared worker,
   * the time to load it and to run its tests.
   */
  seconds: number;
}

/** The milliseconds of the files that share this worker. */
const times_ms = new Map<string, number>();

/** Adds to the time of a file that shares the worker with others. */
export function noteTime(file: string, ms: number): void {
  times_ms.set(file, (times_ms.get(file) ?? 0) + ms);
}

/** Notes the files of this worker when it ends. */
export function noteAtEnd(): void {
  const path = Deno.env.get(FILES_DONE);
  if (path === undefined) return;
  const started = performance.now();
  addEventListener("unload", () => {
    if (times_ms.size === 0) times_ms.set(Deno.mainModule, performance.now() - started);
    const lines = [...times_ms].map(([file, ms]) =>
      JSON.stringify({ file, seconds: ms / 1_000 } satisfies DoneFile)
    );
    Deno.writeTextFileSync(path, `${lines.join("\n")}\n`, { append: true });
  });
}

/** Returns the test files that have ended, in the order of their ends. */
export function filesDone(path: string, cwd: string): DoneFile[] {
  const lines = Deno.readTextFileSync(path).split("\n").filter((line) => line !== "");
  return lines.map((line): DoneFile => {
    const { file, seconds }: DoneFile = JSON.parse(line);
    return { file: URL.canParse(file) ? relative(cwd, fileURLToPath(file)) : file, seconds };
  });
}
