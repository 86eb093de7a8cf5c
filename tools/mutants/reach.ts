/** Finds which test files pass in the instrumented copy, at which level, and which mutants they reach. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runTests } from "./test_runs.ts";

/** A test file, and the mutants that its run executes. */
export interface ReachingFile {
  file: string;
  /** `pure` needs neither a database nor a server; `database` runs by `deno task test`. */
  level: "pure" | "database";
  seconds: number;
  /** The numbers of the mutants. */
  mutants: ReadonlySet<string>;
}

const NOTE_REACHED = fileURLToPath(new URL("note_reached.ts", import.meta.url));
const TIMEOUT_MS = 180_000;

/**
 * Folders whose tests read the project as text, start programs that load the service again, or need
 * programs of others. They cannot show what they reach.
 */
const UNSEEN =
  /^tests\/(bench|cells|chaos|console|documents|end_to_end|examples|live_card|openapi|package|production|scripts|shop|stripe|supabase|upgrade)\//;

/** Whether the reach of a test file can be seen. */
export function isSeen(file: string): boolean {
  return !UNSEEN.test(file);
}

/** Runs a test file and returns its reach, or null if it fails without a fault. */
export async function reachOf(copy: string, file: string): Promise<ReachingFile | null> {
  for (const level of ["pure", "database"] as const) {
    const noted = await Deno.makeTempFile();
    const started = performance.now();
    const { passed } = await runTests({
      copy,
      files: [file],
      needs_database: level === "database",
      preload: NOTE_REACHED,
      env: { MUTANTS_REACHED: noted },
      timeout_ms: TIMEOUT_MS,
    });
    const seconds = (performance.now() - started) / 1_000;
    const ids = (await Deno.readTextFile(noted)).split(/\s/).filter((id) => id !== "");
    await Deno.remove(noted);
    if (passed) return { file, level, seconds, mutants: new Set(ids) };
  }
  return null;
}

/** Lists the test files of a copy, as paths relative to it. */
export async function testFiles(copy: string, folder = "tests"): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(join(copy, folder))) {
    const path = `${folder}/${name}`;
    if (isDirectory) found.push(...await testFiles(copy, path));
    else if (/_test\.tsx?$/.test(name)) found.push(path);
  }
  return found.sort();
}
