/** The report of a chaos run: as lines of text, and as the page last_runs.md. */

import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import type { Verdict } from "./harness/audit.ts";

export interface Judged {
  run: string;
  seconds: number;
  verdicts: Verdict[];
}

interface Circumstances {
  /** The command line after `deno task chaos` that repeats it. */
  args: string;
  commit: string;
  day: string;
}

const PAGE = fileURLToPath(import.meta.resolve("./last_runs.md"));
export const ROOT = fileURLToPath(import.meta.resolve("../../"));
const BREACHES_SHOWN = 10;

export function renderRun({ run, seconds, verdicts }: Judged): string {
  const lines = verdicts.flatMap(({ promise, says, breaches }) => {
    const more = breaches.length - BREACHES_SHOWN;
    return [
      `${breaches.length === 0 ? "ok    " : "BROKEN"} ${promise.padEnd(4)} ${says}`,
      ...breaches.slice(0, BREACHES_SHOWN).map((breach) => `       ${breach}`),
      ...(more > 0 ? [`       and ${more} more`] : []),
    ];
  });
  return [...lines, `       ${run}: ${seconds.toFixed(1)} s`].join("\n");
}

/** Writes a run to both tables of the page. It replaces the last one of the same name. */
export async function writePage(
  { run, seconds, verdicts }: Judged,
  { args, commit, day }: Circumstances,
): Promise<void> {
  const page = (await Deno.readTextFile(PAGE)).trimEnd().split("\n")
    .filter((line) => !new RegExp(`^\\| ${run} *\\|`).test(line));
  const figures = `${availableParallelism()} | ${Math.round(seconds)}`;
  page.splice(
    page.lastIndexOf(""),
    0,
    `| ${run} | \`${args}\` | ${commit} | ${day} | ${figures} |`,
  );
  for (const { promise, says, breaches } of verdicts) {
    page.push(`| ${run} | ${promise} | ${breaches.length === 0 ? "yes" : "**no**"} | ${says} |`);
  }
  await Deno.writeTextFile(PAGE, page.join("\n") + "\n");
  const format = new Deno.Command(Deno.execPath(), { args: ["fmt", "--quiet", PAGE], cwd: ROOT });
  if (!(await format.output()).success) throw new Error(`${PAGE} cannot be formatted`);
}
