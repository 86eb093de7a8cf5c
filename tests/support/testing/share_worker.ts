/**
 * Loads test files that share a worker of `deno test` (scripts/testing/test_groups.ts). Their tests
 * have the path of the file in front of their names, as `deno test` prints it.
 */

import { noteTime } from "./files_done.ts";

type Run = Deno.TestDefinition["fn"];

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
    const test = new Proxy(register, {
      apply(_, __, [first, fn]: [string | Deno.TestDefinition, Run]) {
        const given = typeof first === "string" ? { name: first, fn } : first;
        const name = `./${path} => ${given.name}`;
        register({ ...given, name, fn: (t) => timed(() => given.fn(t)) });
      },
    });
    Object.assign(Deno, { test });
    await timed(load);
  }
}
