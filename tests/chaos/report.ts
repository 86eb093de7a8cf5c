/** The report of a chaos run: as lines of text, and as the page last_runs.md. */

import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import type { Verdict } from "./harness/audit.ts";

/** The circumstances of a run. */
interface Circumstances {
  /** The command line after `deno task chaos` that repeats it. */
  args: string;
  commit: string;
  /** Such as `2026-01-31`, UTC. */
  day: string;
}

/** The verdicts of a run. */
export interface Judged {
  run: string;
  seconds: number;
  verdicts: Verdict[];
}

/** A run on the page. */
interface LastRun extends Circumstances {
  run: string;
  cpus: number;
  seconds: number;
  promises: { promise: string; is_held: boolean; says: string }[];
}

const PAGE = fileURLToPath(import.meta.resolve("./last_runs.md"));
/** What the page says. */
const DATA = fileURLToPath(import.meta.resolve("./last_runs.json"));
/** The project. */
export const ROOT = fileURLToPath(import.meta.resolve("../../"));
const BREACHES_SHOWN = 10;

/** The verdicts of a run as lines of text. */
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

/** Writes a run to the page. It replaces the last one of the same name. */
export async function writePage(
  { run, seconds, verdicts }: Judged,
  circumstances: Circumstances,
): Promise<void> {
  const promises = verdicts.map(({ promise, says, breaches }) => ({
    ...{ promise, says },
    is_held: breaches.length === 0,
  }));
  const made: LastRun = {
    run,
    ...circumstances,
    cpus: availableParallelism(),
    seconds: Math.round(seconds),
    promises,
  };
  const before: LastRun[] = JSON.parse(await Deno.readTextFile(DATA));
  const runs = [...before.filter((other) => other.run !== run), made];
  await Deno.writeTextFile(DATA, `${JSON.stringify(runs, null, 2)}\n`);
  await Deno.writeTextFile(PAGE, renderPage(runs));
  const args = ["fmt", "--quiet", PAGE, DATA];
  const format = new Deno.Command(Deno.execPath(), { args, cwd: ROOT });
  if (!(await format.output()).success) throw new Error(`${PAGE} cannot be formatted`);
}

/** The page about the last runs in Markdown. */
function renderPage(runs: readonly LastRun[]): string {
  return [
    "# The last runs of the chaos test\n",
    "`deno task chaos --full --write` writes this page, and with `--promise` only the runs that it " +
    "names. [Reliability](../../docs/reliability.md) explains the promises and the runs.\n",
    "| Run | `deno task chaos …` | Commit | Day | CPUs | Seconds |",
    "| --- | --- | --- | --- | --- | --- |",
    ...runs.map(({ run, args, commit, day, cpus, seconds }) =>
      `| ${run} | \`${args}\` | ${commit} | ${day} | ${cpus} | ${seconds} |`
    ),
    "",
    "| Run | Promise | Held | Figures |",
    "| --- | --- | --- | --- |",
    ...runs.flatMap(({ run, promises }) =>
      promises.map(({ promise, is_held, says }) =>
        `| ${run} | ${promise} | ${is_held ? "yes" : "**no**"} | ${says} |`
      )
    ),
    "",
  ].join("\n");
}
