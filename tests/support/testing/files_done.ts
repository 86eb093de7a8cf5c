/** Counts the test files that have ended: each file adds one byte to a file of the run. */

/** The variable with the path of the file; `deno task test` sets it. */
export const FILES_DONE = "TEST_FILES_DONE";

/** Counts this test file when its worker ends. */
export function countAtEnd(): void {
  const path = Deno.env.get(FILES_DONE);
  if (path === undefined) return;
  addEventListener("unload", () => Deno.writeTextFileSync(path, ".", { append: true }));
}

/** Returns how many test files have ended. */
export function filesDone(path: string): number {
  return Deno.statSync(path).size;
}
