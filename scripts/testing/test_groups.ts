/**
 * Lets test files share workers of `deno test`. A worker loads and compiles the service and its
 * packages, which takes longer than many a file.
 */

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { SLOWEST } from "./test_files.ts";

const LOADER = new URL("../../tests/support/testing/share_worker.ts", import.meta.url).href;
/** Files that share a worker. */
const GROUP_FILES = 6;
/** Fewer files run each in a worker of its own. */
const LEAST_FILES = 20;
/** What `deno test` prints before the name of a test in a shared worker. */
export const GROUP_PREFIX = /\S*\bgroup_\d+_test\.ts => (?=\.\/)/g;

/**
 * Writes a module for each worker and returns their paths, in the order of the files. The slowest
 * files have workers of their own. A few files are returned as they are.
 * @param files paths relative to `root`
 */
export async function shareWorkers(
  files: readonly string[],
  folder: string,
  root: string,
): Promise<string[]> {
  if (files.length < LEAST_FILES) return [...files];
  const groups: string[][] = [];
  for (const file of files) {
    const last = groups.at(-1);
    const is_alone = SLOWEST.includes(file) || !last || SLOWEST.includes(last[0]!);
    if (is_alone || last.length === GROUP_FILES) groups.push([file]);
    else last.push(file);
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
