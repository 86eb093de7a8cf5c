/**
 * Lets test files share workers of `deno test`. A worker loads and compiles the service and its
 * packages, which takes longer than many a file.
 */

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { SLOWEST } from "./test_files.ts";

const LOADER = new URL("../../tests/support/testing/share_worker.ts", import.meta.url).href;
const GROUP_FILES = 20;
/** Tests that start programs take longer. */
const PROGRAM_GROUP_FILES = 3;
/** Such files share a local start and a browser too. With five, workers take about the same time. */
const BROWSER_GROUP_FILES = 5;
const IN_BROWSER = /^tests\/(checkout|console)\//;
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
 * Writes a module for each worker and returns their paths. Files with a browser come first, then
 * those that start programs, of which the slowest have workers of their own. The others are dealt to
 * workers that take about the same time. A few files are returned as they are.
 * @param files paths relative to `root`, the slowest first
 */
export async function shareWorkers(
  files: readonly string[],
  folder: string,
  root: string,
): Promise<string[]> {
  if (files.length < LEAST_FILES) return [...files];
  const { browser = [], slow = [], program = [], other = [] } = Object.groupBy(files, kindOf);
  const count = Math.ceil(other.length / GROUP_FILES);
  const groups = [
    ...inParts(browser, BROWSER_GROUP_FILES),
    ...inParts(slow, 1),
    ...inParts(program, PROGRAM_GROUP_FILES),
    ...Array.from({ length: count }, (_, i) => other.filter((_, at) => at % count === i)),
  ];
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

function kindOf(file: string): "browser" | "slow" | "program" | "other" {
  if (IN_BROWSER.test(file)) return "browser";
  if (!startsPrograms(file)) return "other";
  return SLOWEST.includes(file) ? "slow" : "program";
}

/** Cuts a list into parts of this size. */
function inParts(files: readonly string[], size: number): string[][] {
  const count = Math.ceil(files.length / size);
  return Array.from({ length: count }, (_, i) => files.slice(i * size, (i + 1) * size));
}

/** Removes the names of shared workers from the output of `deno test`. */
export function withoutGroups(text: string): string {
  return text.split("\n").map((line) => {
    const end = PREFIX_END.exec(line);
    return end ? line.slice(end.index + end[0].length) : line;
  }).join("\n");
}
