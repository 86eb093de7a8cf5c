/** Checks that all files that state the version of the project agree. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** The files that state the version, each with a pattern that matches it. */
const STATEMENTS: readonly (readonly [file: string, place: RegExp])[] = [
  ["deno.json", /^ {2}"version": "([^"]*)"/m],
  ["client/package.json", /^ {2}"version": "([^"]*)"/m],
  ["client/jsr.json", /^ {2}"version": "([^"]*)"/m],
  ["client/README.md", /payments-api-client-(.*)\.tgz/],
  ["client/user_agent.ts", /^export const VERSION = "([^"]*)"/m],
];
const CHANGELOG = join(ROOT, "CHANGELOG.md");

/** Returns the version that each file states, or "none", by file. */
export async function readVersions(root: string = ROOT): Promise<Record<string, string>> {
  const versions: Record<string, string> = {};
  for (const [file, place] of STATEMENTS) {
    versions[file] = place.exec(await Deno.readTextFile(join(root, file)))?.[1] ?? "none";
  }
  return versions;
}

/** Returns the releases of a changelog with their dates, newest first, without "Unreleased". */
export function readChangelog(text: string): { version: string; date: string }[] {
  return [...text.matchAll(/^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})$/gm)]
    .map(([, version, date]) => ({ version: version!, date: date! }));
}

/** Returns the reasons against a release of this version, a sentence for each. */
export async function findVersionProblems(version: string): Promise<string[]> {
  const problems: string[] = [];
  for (const [file, stated] of Object.entries(await readVersions())) {
    if (stated !== version) problems.push(`${file} has version ${stated}, not ${version}`);
  }
  const [newest] = readChangelog(await Deno.readTextFile(CHANGELOG));
  if (newest?.version !== version) {
    problems.push(`CHANGELOG.md has no section "## [${version}] - <date>" above all releases`);
  }
  return problems;
}
