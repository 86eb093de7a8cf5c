/** The version of the project, which several files state, and its section of the changelog. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** The files that state the version, each with a pattern that matches it. */
const STATEMENTS: readonly (readonly [file: string, place: RegExp])[] = [
  ["deno.json", /^ {2}"version": "([^"]*)"/m],
  ["packages/client/package.json", /^ {2}"version": "([^"]*)"/m],
  ["packages/client/jsr.json", /^ {2}"version": "([^"]*)"/m],
  ["packages/client/user_agent.ts", /^export const VERSION = "([^"]*)"/m],
  ["packages/sandbox/package.json", /^ {2}"version": "([^"]*)"/m],
];

/** Returns the version that each file states, or "none", by file. */
async function readVersions(): Promise<Record<string, string>> {
  const versions: Record<string, string> = {};
  for (const [file, place] of STATEMENTS) {
    versions[file] = place.exec(await Deno.readTextFile(join(ROOT, file)))?.[1] ?? "none";
  }
  return versions;
}

export function readChangelogFile(): Promise<string> {
  return Deno.readTextFile(join(ROOT, "CHANGELOG.md"));
}

/** Returns the releases of a changelog with their dates, newest first, without "Unreleased". */
function readChangelog(text: string): { version: string; date: string }[] {
  return [...text.matchAll(/^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})$/gm)]
    .map(([, version, date]) => ({ version: version!, date: date! }));
}

/** Returns the section of a changelog without its heading. Empty if there is none. */
export function readSection(text: string, title: string): string {
  const section = text.split(/^## /m).find((one) => one.startsWith(`[${title}]`));
  return section?.replace(/^.*\n/, "").trim() ?? "";
}

/** Returns the files that state another version, a sentence for each. */
export async function findVersionDifferences(version: string): Promise<string[]> {
  return Object.entries(await readVersions()).filter(([, stated]) => stated !== version)
    .map(([file, stated]) => `${file} has version ${stated}, not ${version}`);
}

/** Returns the reasons against a release of this version, a sentence for each. */
export async function findVersionProblems(version: string): Promise<string[]> {
  const changelog = await readChangelogFile();
  const problems = await findVersionDifferences(version);
  if (readChangelog(changelog)[0]?.version !== version) {
    problems.push(`CHANGELOG.md has no section "## [${version}] - <date>" above all releases`);
  } else if (readSection(changelog, version) === "") {
    problems.push(`The section of ${version} in CHANGELOG.md is empty`);
  }
  return problems;
}
