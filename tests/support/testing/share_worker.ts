/**
 * Loads test files that share a worker of `deno test` (tools/testing/test_groups.ts). Their tests
 * have the path of the file in front of their names, as `deno test` prints it.
 */

import { noteTime } from "./files_done.ts";

type Run = Deno.TestDefinition["fn"];
type Options = Omit<Deno.TestDefinition, "name" | "fn">;

/** Loads the files one after another. Paths are relative to the folder of the run. */
export async function loadFiles(
  files: readonly [path: string, load: () => Promise<unknown>][],
): Promise<void> {
  const register = Deno.test;
  for (const [path, load] of files) {
    const timed = async <T>(work: () => T | Promise<T>) => {
      const started = performance.now();
      try {
        return await work();
      } finally {
        noteTime(path, performance.now() - started);
      }
    };
    const named = new Proxy(register, {
      apply(_, __, [given, ...rest]: [string | Deno.TestDefinition, ...(Options | Run)[]]) {
        const fn = rest.pop() as Run;
        const test = typeof given === "string" ? { ...rest[0], name: given, fn } : given;
        const name = `./${path} => ${test.name}`;
        register({ ...test, name, fn: (t) => timed(() => test.fn(t)) });
      },
    });
    Object.assign(Deno, { test: named });
    await timed(load);
  }
}
