/**
 * Lets test files share workers of `deno test`. A worker loads and compiles the service and its
 * packages, which takes longer than many a file.
 */

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { SLOWEST } from "./test_files.ts";

const LOADER = new URL("../../tests/support/testing/share_worker.ts", import.meta.url).href;
const GROUP_FILES = 6;
/** Tests that start programs take their time whatever a worker costs. */
const WITH_PROGRAMS =
  /^tests\/(cells|chaos|checkout|console|documents|end_to_end|examples|openapi|package|production|scripts|shop|supabase)\//;

export function startsPrograms(file: string): boolean {
  return WITH_PROGRAMS.test(file);
}

/** Fewer files run each in a worker of its own. */
const LEAST_FILES = 20;
/** The end of what `deno test` prints before the name of a test in a shared worker. */
const PREFIX_END = /\/group_\d{3}_test\.ts => (?=\.\/)/;

/**
 * Writes a module for each worker and returns their paths. The slowest files, and those that start
 * programs, come first and have workers of their own. A few files are returned as they are.
 * @param files paths relative to `root`
 */
export async function shareWorkers(
  files: readonly string[],
  folder: string,
  root: string,
): Promise<string[]> {
  if (files.length < LEAST_FILES) return [...files];
  const isAlone = (file: string) => SLOWEST.includes(file) || startsPrograms(file);
  const groups = files.filter(isAlone).map((file) => [file]);
  const others = files.filter((file) => !isAlone(file));
  for (let i = 0; i < others.length; i += GROUP_FILES) {
    groups.push(others.slice(i, i + GROUP_FILES));
  }
  return await Promise.all(groups.map(async (group, i) => {
    const path = join(folder, `group_${String(i).padStart(3, "0")}_test.ts`);
    const lines = group.map((file) => {
      const url = pathToFileURL(join(root, file)).href;
      return `  [${JSON.stringify(file)}, () => import(${JSON.stringify(url)})],\n`;
    });
    await Deno.writeTextFile(
      path,
      `import { loadFiles } from ${JSON.stringify(LOADER)};\n` +
        `await loadFiles([\n${lines.join("")}]);\n`,
    );
    return path;
  }));
}

/** Removes the names of shared workers from the output of `deno test`. */
export function withoutGroups(text: string): string {
  return text.split("\n").map((line) => {
    const end = PREFIX_END.exec(line);
    return end ? line.slice(end.index + end[0].length) : line;
  }).join("\n");
}
