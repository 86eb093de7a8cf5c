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

export function readChangelogFile(): Promise<string> {
  return Deno.readTextFile(join(ROOT, "CHANGELOG.md"));
}

/** Returns the section of a changelog without its heading. Empty if there is none. */
export function readSection(text: string, title: string): string {
  const section = text.split(/^## /m).find((one) => one.startsWith(`[${title}]`));
  return section?.replace(/^.*\n/, "").trim() ?? "";
}

/** Returns the files that state another version, a sentence for each. */
export async function findVersionDifferences(version: string): Promise<string[]> {
  const problems: string[] = [];
  for (const [file, place] of STATEMENTS) {
    const [, stated = "none"] = place.exec(await Deno.readTextFile(join(ROOT, file))) ?? [];
    if (stated !== version) problems.push(`${file} has version ${stated}, not ${version}`);
  }
  return problems;
}

/** Returns the reasons against a release of this version, a sentence for each. */
export async function findVersionProblems(version: string): Promise<string[]> {
  const changelog = await readChangelogFile();
  const problems = await findVersionDifferences(version);
  const [, newest] = /^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$/m.exec(changelog) ?? [];
  if (newest !== version) {
    problems.push(`CHANGELOG.md has no section "## [${version}] - <date>" above all releases`);
  } else if (readSection(changelog, version) === "") {
    problems.push(`The section of ${version} in CHANGELOG.md is empty`);
  }
  return problems;
}
